"""The steps that work as lm-evaluation-harness's filters do, and those that are told something else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from parsing_samples import BOOLEAN, CONTRACTS, LETTERS, METALS, NUMBER, READERS, TEXT, YES_NO, steps

from auditor.errors import FileError
from auditor.parsing import Reader, compile_parser
from auditor.records import AnswerSpace, Outcome, Parser, Reply


def reader(*told: str | dict[str, Any]) -> Reader:
    return compile_parser(Parser("mine", 1, "", steps(*told), (), "mine.toml", ""))


def read(text: str, space: AnswerSpace, *told: str | dict[str, Any]) -> Outcome:
    return reader(*told).read(Reply(text, "stop"), CONTRACTS["text"], space)


@pytest.mark.parametrize(
    ("text", "told", "value"),
    [
        ("#### 12 and #### 1,234", {}, "12"),
        ("#### 12 and #### 1,234", {"group_select": -1}, "1234"),
        ("#### 12 and #### 13", {"group_select": 2}, None),
        ("a 7 b 8", {"regex_pattern": r"x(\d)|b (\d)"}, "8"),
        ("a 7", {"regex_pattern": r"a (\d)?(\d)?(\d)?"}, "7"),
        ("none here", {}, None),
        ("none here", {"fallback": "5"}, "5"),
        (" 9 ", {"regex_pattern": r"^(.*)$"}, "9"),
        ("say 12", {"regex_pattern": r"\d+"}, "12"),
    ],
)
def test_regex_keeps_the_chosen_match(text: str, told: dict[str, Any], value: str | None) -> None:
    """Match number `group_select`, of several groups the first that is not empty, stripped; else `fallback`."""
    outcome = read(text, NUMBER, {"step": "regex", **told}, "canonical_value")
    assert (outcome.value, outcome.reason) == (value, None if value else "no_answer")


MULTI = {"step": "multi_choice_regex", "regex_pattern": r"(\([A-Z]\))", "group_select": -1}


@pytest.mark.parametrize(
    ("text", "told", "value"),
    [
        ("(A), no, (C)", {}, "C"),
        ("(Z)", {}, None),
        ("I say copper or tin", {}, "C"),
        ("I say COPPER", {}, None),
        ("I say COPPER", {"ignore_case": True}, "B"),
        ("I say cop-per", {"ignore_punctuation": True}, "B"),
        ("I say co99pper", {"regexes_to_ignore": [r"\d"]}, "B"),
        ("It is: D", {}, "D"),
        ("It is D", {}, None),
    ],
)
def test_multi_choice_regex_goes_from_the_pattern_to_texts_to_a_colon(
    text: str, told: dict[str, Any], value: str | None
) -> None:
    """The pattern; else the chosen one of the options' texts that occur; else a label after a colon."""
    assert read(text, METALS, {**MULTI, **told}, "exact_match").value == value


def test_map_lowercase_uppercase_and_white_space() -> None:
    """A value of the map or its default; no default is no answer; only one leading space goes."""
    letters = {"step": "map", "mapping_dict": {"x": "A", "y": 2}}
    assert read("x", LETTERS, letters, "exact_match").value == "A"
    assert read("y", NUMBER, letters, "exact_match").value == "2"
    assert read("z", LETTERS, letters, "exact_match").reason == "no_answer"
    assert read("z", LETTERS, {**letters, "default_value": "D"}, "exact_match").value == "D"
    assert read("b", LETTERS, "uppercase", "exact_match").value == "B"
    assert read("YES", YES_NO, "lowercase", "exact_match").value == "yes"
    assert read("  B", LETTERS, "remove_whitespace", "exact_match").reason == "not_in_choices"
    assert read(" B", LETTERS, "remove_whitespace", "exact_match").value == "B"


@pytest.mark.parametrize(
    ("text", "space", "told", "value"),
    [
        ("B", LETTERS, {}, "B"),
        ("(B)", LETTERS, {}, "B"),
        ("b", LETTERS, {}, None),
        ("b", LETTERS, {"ignore_case": True}, "B"),
        ("B.", LETTERS, {}, None),
        ("B.", LETTERS, {"ignore_punctuation": True}, "B"),
        ("B1", LETTERS, {"ignore_numbers": True}, "B"),
        ("so B", LETTERS, {"regexes_to_ignore": ["so "]}, "B"),
        ("...", LETTERS, {"ignore_punctuation": True}, None),
        ("[invalid]", TEXT, {}, None),
        ("$1,234", NUMBER, {"regexes_to_ignore": [r"\$", ","]}, "1234"),
        ("Yes", BOOLEAN, {}, "true"),
    ],
)
def test_exact_match_ignores_what_it_is_told(
    text: str, space: AnswerSpace, told: dict[str, Any], value: str | None
) -> None:
    """Text and label are equal once what is ignored is gone on both sides; other types must be a whole value."""
    assert read(text, space, {"step": "exact_match", **told}).value == value


def test_needed_names_the_filters_that_changed_the_text() -> None:
    """A filter that found the text as it is leaves no name."""
    assert read("B", LETTERS, {"step": "regex", "regex_pattern": "(.)"}, "exact_match").needed == ()
    assert read("Bx", LETTERS, {"step": "regex", "regex_pattern": "(.)"}, "exact_match").needed == ("regex",)


def test_a_pattern_that_takes_for_ever_is_a_parser_error() -> None:
    """The time limit of a search holds, in a step as well as in what exact_match ignores."""
    for told in (
        {"step": "regex", "regex_pattern": r"(x+x+)+y"},
        {"step": "exact_match", "regexes_to_ignore": [r"(x+x+)+y"]},
    ):
        begin = time.monotonic()
        assert read("x" * 5000, LETTERS, told).reason == "parser_error"
        assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            {"step": "regex", "regex_pattern": "("},
            "mine.toml: parser 'mine', step 1 (regex): '(' is not a regular expression",
        ),
        ({"step": "regex", "grup": 1}, "step 1 (regex): Object contains unknown field `grup`"),
        ({"step": "regex", "group_select": "x"}, "step 1 (regex): Expected `int`, got `str`: `group_select`"),
        ({"step": "lowercase", "x": 1}, "step 1 (lowercase): it is told nothing, and here x"),
        ({"step": "exact_match", "regexes_to_ignore": ["["]}, "'[' is not a regular expression"),
        ({"step": "declare_language", "true": ["ja"], "false": ["Ja"]}, "'ja' is not one word, or stands twice"),
        ("exact_tokn", "parser 'mine', step 1: unknown parser step 'exact_tokn'"),
    ],
)
def test_a_step_that_cannot_be_is_one_clear_line(told: str | dict[str, Any], message: str) -> None:
    """File, parser, step, and what is wrong with what it is told."""
    with pytest.raises(FileError) as caught:
        reader(told)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


GERMAN = {"step": "declare_language", "true": ["ja", "wahr"], "false": ["nein"], "decimal_comma": True}
TOLERANT = ("locate_contract", "one_value")


@pytest.mark.parametrize(
    ("text", "space", "value"),
    [
        ("Nein.", BOOLEAN, "false"),
        ("JA, weil es stimmt", BOOLEAN, "true"),
        ("Ja. Nein.", BOOLEAN, None),
        ("Ja", YES_NO, "yes"),
        ("yes", BOOLEAN, "true"),
        ("Jahr", BOOLEAN, None),
        ("1.234,56", NUMBER, "1234.56"),
        ("1,5", NUMBER, "1.5"),
        ("1.234", NUMBER, "1234"),
        ("3,50 €", NUMBER, "3.5"),
    ],
)
def test_a_language_is_read_only_where_it_is_declared(text: str, space: AnswerSpace, value: str | None) -> None:
    """Words for true and false, and the decimal comma, count in a parser that declares them, and are named."""
    outcome = read(text, space, GERMAN, *TOLERANT)
    assert outcome.value == value
    assert ("language" in outcome.needed) == (value is not None and text != "yes")
    if text in ("Nein.", "1.234,56"):
        assert READERS["normalized"].read(Reply(text, "stop"), CONTRACTS["text"], space).value is None
