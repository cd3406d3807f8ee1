"""A function of the user's own as a parser, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from parsing_samples import BOOLEAN, CONTRACTS, LETTERS, METALS, NUMBER, TEXT

from auditor import extractor as extractor_module
from auditor.errors import UsageError
from auditor.extractor import extractor
from auditor.parsing import Reader
from auditor.records import AnswerSpace, Outcome, Reply

MODULE = """
import os, re, time

def last_letter(text):
    print("noise on standard output")
    found = re.findall("[A-D]", text)
    return found[-1] if found else None

def by_text(text, choices):
    return next((label for label, words in choices.items() if words in text), None)

def number(text): return float(text) if "." in text else int(text)
def truth(text): return "yes" in text
def strange(text): return {1, 2}
def raises(text): raise ValueError("no number in\\n" + text)
def hangs(text):
    if "hang" in text: time.sleep(60)
    return "A"
def dies(text):
    if "die" in text: os._exit(3)
    return "A"
def reads_input(text): return input()
class Pack:
    @staticmethod
    def inner(text, flag=True): return text.strip().upper()
constant = 3
"""

Make = Callable[[str], Reader]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    (tmp_path / "own_extractors.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return lambda function: extractor(f"python:own_extractors:{function}")[1]


def read(reader: Reader, text: str | None, space: AnswerSpace = LETTERS) -> Outcome:
    return reader.read(Reply(text, "stop"), CONTRACTS["text"], space)


def test_what_a_function_returns_is_a_value(make: Make) -> None:
    """Text, numbers and booleans are read as values; None is no answer; what it prints is not in the way."""
    letter = make("last_letter")
    assert read(letter, "A or B").value == "B"
    assert read(letter, "neither").reason == "no_answer"
    assert read(letter, None).reason == "empty"
    assert read(make("number"), "1.50", NUMBER).value == "1.5"
    assert read(make("truth"), "yes!", BOOLEAN).value == "true"
    assert read(make("Pack.inner"), " b ").value == "B"
    assert read(make("last_letter"), "\ud800 C").value == "C"
    assert letter.faults() == {}


def test_a_function_of_two_arguments_is_given_the_choices(make: Make) -> None:
    """The second is a dict of label to text."""
    assert read(make("by_text"), "I think copper", METALS).value == "B"


def test_what_it_raises_is_a_parser_error_and_told(make: Make) -> None:
    """Each reply is unparseable with reason parser_error, and the messages are counted, one line each."""
    reader = make("raises")
    assert [read(reader, text, TEXT).reason for text in ("x", "x", "y")] == ["parser_error"] * 3
    assert reader.faults() == {"ValueError: no number in x": 2, "ValueError: no number in y": 1}
    strange = make("strange")
    assert read(strange, "x").reason == "parser_error"
    assert strange.faults() == {"TypeError: it returned a set": 1}
    assert read(make("reads_input"), "x").reason == "parser_error"


def test_a_function_that_hangs_or_dies_costs_only_its_reply(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is started again, and the next reply is read."""
    monkeypatch.setattr(extractor_module, "SECONDS", 0.5)
    hangs, dies = make("hangs"), make("dies")
    assert [read(hangs, text).value for text in ("x", "hang", "x")] == ["A", None, "A"]
    assert [read(dies, text).value for text in ("x", "die", "x")] == ["A", None, "A"]
    assert hangs.faults() == {"more than 0.5 s": 1}
    assert dies.faults() == {"its process ended with 3": 1}


def test_a_function_that_hangs_again_and_again_is_given_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten in a row end the reading with one clear line instead of hours of waiting."""
    monkeypatch.setattr(extractor_module, "SECONDS", 0.05)
    reader = make("hangs")
    assert [read(reader, "hang").reason for _ in range(9)] == ["parser_error"] * 9
    with pytest.raises(UsageError, match=r"more than 0\.05 s, on 10 replies in a row"):
        read(reader, "hang")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("python:own_extractors", "is no function"),
        ("python:own_extractors:nope", "AttributeError: module 'own_extractors' has no attribute 'nope'"),
        ("python:own_extractors:constant", "TypeError: constant is not a function"),
        ("python:no_such_module:f", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("python:broken:f", "SyntaxError"),
        ("python:exits:f", "SystemExit: 4"),
    ],
)
def test_a_function_that_cannot_be_imported(make: Make, tmp_path: Path, name: str, message: str) -> None:
    """One clear line says why."""
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(4)\n")
    with pytest.raises(UsageError) as caught:
        extractor(name)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_its_outcomes_are_never_taken_for_those_of_another_process(make: Make) -> None:
    """What a function imports may change between two runs, so every process has a digest of its own."""
    assert make("truth")
    first, second = (extractor("python:own_extractors:truth")[0].digest for _ in range(2))
    assert first != second
