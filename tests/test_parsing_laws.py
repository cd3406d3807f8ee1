"""Laws that hold for every reply: nothing raises, strict and normalized agree, decoration changes no value, and time
grows no faster than the text."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from parsing_samples import (
    BOOLEAN,
    CONTRACTS,
    JSON,
    LABEL,
    METALS,
    NORMALIZED,
    NUMBER,
    READERS,
    SPECIES,
    STRICT,
    TEN,
    TEXT,
    YES_NO,
)

from auditor.parsing import Reader, canonical, explained, gold_reply
from auditor.parsing.numbers import text_of
from auditor.parsing.state import Step
from auditor.parsing.steps import step_of
from auditor.records import AnswerSpace, Contract, ParserStep, Reply

SPACES = [METALS, TEN, SPECIES, YES_NO, BOOLEAN, NUMBER, LABEL, TEXT, JSON]
PIECES = [
    "{", "}", "[", "]", '"', "'", "`", "```", "```json", ",", ":", ".", "-", "*", "**", "#", "<", ">", "/", "\\", "$",
    "%", "(", ")", "answer", "Answer", "answer:", '"answer":', "is", "B", "A", "a", "I", "true", "No", "yes", "18",
    "1,234", "3/4", "copper", "E.", "\\boxed{", "<think>", "</think>", "<answer>", "</answer>", "<BEGIN ANSWER>",
    "<END ANSWER>", "<|im_end|>", "//", "/*", "None", "because", "or", "not", "答案", "：", "Ｂ", "½", "10⁵", "\ufeff",
    "\u200b", "\ud800", "card_payment", "[[ ## answer ## ]]", "True", "null", "NaN", "wait", " ", " ", "\n", "\n",
]  # fmt: skip
texts = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
)
contracts = st.sampled_from(
    [*CONTRACTS.values(), Contract("json", schema={"type": "object"}, answer_path="/a/0"), Contract("block")]
)
spaces = st.sampled_from(SPACES)


@st.composite
def values(draw: st.DrawFn) -> tuple[str, AnswerSpace]:
    """A canonical value and its space; texts are one line, as a line contract can only hold one."""
    space = draw(spaces)
    if space.labels:
        return draw(st.sampled_from(space.labels)), space
    if space.type == "boolean":
        return draw(st.sampled_from(["true", "false"])), space
    if space.type == "number":
        return text_of(draw(st.fractions(max_denominator=1000))), space
    if space.type == "json":
        value = draw(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=5), st.none())))
        text = canonical(json.dumps(value, ensure_ascii=False), space)
        assume(text is not None)
        return text or "", space
    line = draw(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30)).strip()
    assume(line)
    return line, space


@settings(max_examples=700, deadline=None)
@given(texts, contracts, spaces, st.sampled_from([None, "stop", "length", "error"]))
def test_no_parser_raises_on_any_text(text: str, contract: Contract, space: AnswerSpace, finish: str | None) -> None:
    """Every parser gives an outcome with exactly the parts of its kind, and a value only of the space."""
    for reader in READERS.values():
        outcome = reader.read(Reply(text, finish), contract, space)
        assert (outcome.value is not None) == (outcome.outcome == "parsed")
        assert (len(outcome.candidates) > 1) == (outcome.outcome == "ambiguous")
        assert (outcome.reason is not None) == (outcome.outcome == "unparseable")
        if outcome.value is not None:
            assert canonical(outcome.value, space) == outcome.value


EVERY_STEP = [
    step_of(ParserStep(name, told))
    for name, told in [
        *((name, {}) for name in explained()),
        ("regex", {"regex_pattern": r"(\w)|(\d+)|", "group_select": -1}),
        ("multi_choice_regex", {"ignore_case": True, "ignore_punctuation": True, "regexes_to_ignore": [r"\s"]}),
        ("map", {"mapping_dict": {"B": 1}, "default_value": "A"}),
        ("exact_match", {"ignore_case": True, "ignore_punctuation": True, "ignore_numbers": True}),
        ("declare_language", {"true": ["ja"], "false": ["nein"], "decimal_comma": True}),
    ]
]


@settings(max_examples=300, deadline=None)
@given(texts, contracts, spaces, st.sampled_from([None, "stop", "length"]), st.lists(st.sampled_from(EVERY_STEP)))
def test_no_step_raises_whatever_came_before_it(
    text: str, contract: Contract, space: AnswerSpace, finish: str | None, some: list[Step]
) -> None:
    """Any steps in any order take any state to another state or an outcome."""
    for last in EVERY_STEP:
        outcome = Reader("any", (*some, last)).read(Reply(text, finish), contract, space)
        assert outcome.outcome in ("parsed", "ambiguous", "unparseable")


@settings(max_examples=400, deadline=None)
@given(texts, contracts, spaces)
def test_normalized_agrees_wherever_strict_parses(text: str, contract: Contract, space: AnswerSpace) -> None:
    """What strict accepts, normalized gives unchanged and needs nothing for; anything else needs at least one name."""
    strict, normalized = (reader.read(Reply(text, "stop"), contract, space) for reader in (STRICT, NORMALIZED))
    if strict.outcome == "parsed":
        assert normalized == strict
    elif normalized.outcome == "parsed":
        assert normalized.needed


@settings(max_examples=400, deadline=None)
@given(values(), st.sampled_from(sorted(CONTRACTS)))
def test_strict_reads_every_gold_reply(value: tuple[str, AnswerSpace], kind: str) -> None:
    """The gold reply of any contract, value and space is parsed by strict, as that value."""
    expected, space = value
    outcome = STRICT.read(Reply(gold_reply(CONTRACTS[kind], expected, space), "stop"), CONTRACTS[kind], space)
    assert (outcome.value, outcome.needed) == (expected, ())


@st.composite
def near_misses(draw: st.DrawFn) -> tuple[str, str, AnswerSpace]:
    """A contract's gold reply with up to two pieces taken out, doubled or put in, so that it is hardly one any more."""
    kind = draw(st.sampled_from(sorted(CONTRACTS)))
    value, space = draw(values())
    text = gold_reply(CONTRACTS[kind], value, space)
    for _ in range(draw(st.integers(0, 2))):
        start, end = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        middle = draw(st.sampled_from(["", text[start:end] * 2, draw(st.sampled_from(PIECES)), "\n", "x: y\n"]))
        text = text[:start] + middle + text[end:]
    return text, kind, space


def is_same(token: str, value: str, space: AnswerSpace) -> bool:
    """Of JSON every text of the value will do, of anything else only the canonical one."""
    if space.type != "json":
        return token == value
    try:
        return token == token.strip() and bool(json.loads(token, parse_float=str) == json.loads(value, parse_float=str))
    except ValueError:
        return False


def is_generated(text: str, kind: str, value: str, space: AnswerSpace) -> bool:
    """Whether a contract with this value can produce the text; written without the parser's code."""
    lines = text.split("\n")
    match kind:
        case "text":
            return is_same(text, value, space)
        case "json":
            loaded = json.loads(text, parse_float=str, parse_int=str)
            truth = {"true": True, "false": False}.get(value, value) if space.type == "boolean" else value
            return (
                is_same(text, value, space)
                if space.type == "json"
                else loaded in ({"answer": value}, {"answer": truth})
            )
        case "block":
            if (lines[0], lines[-1], len(lines)) != ("<BEGIN ANSWER>", "<END ANSWER>", 3):
                return False
            answers = lines[1:-1]
        case "final_line":
            answers = lines[-1:]
        case _:
            answers = [line for line in lines if line.startswith("answer:")]
            if not all(":" in line for line in lines):
                return False
    return len(answers) == 1 and answers[0][:8] == "answer: " and is_same(answers[0][8:], value, space)


@settings(max_examples=800, deadline=None)
@given(near_misses())
def test_strict_accepts_only_what_its_contract_generates(case: tuple[str, str, AnswerSpace]) -> None:
    """Of texts that almost fulfil a contract, strict parses those alone that the contract with that value produces."""
    text, kind, space = case
    value = STRICT.read(Reply(text, "stop"), CONTRACTS[kind], space).value
    assert value is None or is_generated(text.removesuffix("\n"), kind, value, space)


WRAPPINGS = [
    "```\n{}\n```",
    "```json\n{}\n```",
    "Sure, here you go.\n\n{}",
    "Here is my answer:\n{}",
    "{}\n\nI hope that helps.",
    "  {}  \n\n",
    "\ufeff{}",
    "{}<|im_end|>",
    "<think>A or B, 17, yes</think>\n{}",
    "> {}",
    "**{}**",
]


@settings(max_examples=500, deadline=None)
@given(values(), st.sampled_from(sorted(CONTRACTS)), st.sampled_from(WRAPPINGS))
def test_decoration_never_changes_a_value_to_another(value: tuple[str, AnswerSpace], kind: str, wrapping: str) -> None:
    """A fence, white space, a tag or a line of prose around a gold reply costs the value at most, never alters it."""
    expected, space = value
    assume(space.type != "text")  # There the decoration would be part of the answer.
    reply = Reply(wrapping.replace("{}", gold_reply(CONTRACTS[kind], expected, space)), "stop")
    for reader in (STRICT, NORMALIZED):
        assert reader.read(reply, CONTRACTS[kind], space).value in (expected, None)


ANY_WRAPPING = [*WRAPPINGS[:2], "  {}\n\n", "\n{}", "Sure, here you go.\n\n{}", "{}\n\nI hope that helps."]


@settings(max_examples=700, deadline=None)
@given(texts, contracts, spaces, st.sampled_from(ANY_WRAPPING))
def test_decoration_of_any_text_never_changes_a_value(
    text: str, contract: Contract, space: AnswerSpace, wrapping: str
) -> None:
    """A fence, white space or a line of prose around any text that normalized reads costs the value at most."""
    assume(space.type != "text")
    value = NORMALIZED.read(Reply(text, "stop"), contract, space).value
    if value is not None:
        decorated = Reply(wrapping.replace("{}", text), "stop")
        assert NORMALIZED.read(decorated, contract, space).value in (value, None)


@settings(max_examples=300, deadline=None)
@given(values(), st.sampled_from(sorted(CONTRACTS)), st.integers(min_value=0, max_value=60))
def test_a_cut_reply_never_gives_another_value(value: tuple[str, AnswerSpace], kind: str, length: int) -> None:
    """Cut anywhere by its token limit, a gold reply gives its own value or none."""
    expected, space = value
    reply = Reply(gold_reply(CONTRACTS[kind], expected, space)[:length], "length")
    assert STRICT.read(reply, CONTRACTS[kind], space).value is None
    assert NORMALIZED.read(reply, CONTRACTS[kind], space).value in (expected, None)


HOSTILE = [
    "{", '{"answer":', '{"a":{', "```\n", "9,", "answer:. ", "answer: ", "answer is B. ", "answer: B\n", '\\"', "'\\'",
    "/* ", "<think></think>", "<answer>", "\\boxed{", "<|im_end|>", "<eos> ", "* ", "B, ", " ", "\n", "<BEGIN ANSWER>",
]  # fmt: skip


def seconds(reader: Reader, text: str, contract: Contract, finish: str) -> float:
    begin = time.process_time()
    assert reader.read(Reply(text, finish), contract, METALS).outcome in ("parsed", "ambiguous", "unparseable")
    return time.process_time() - begin


@pytest.mark.parametrize(("kind", "finish"), [("text", "stop"), ("json", "length")])
def test_time_grows_no_faster_than_the_text(kind: str, finish: str) -> None:
    """Thirty-two times the text of any hostile shape, up to a million characters, takes far less than the square."""
    for unit in HOSTILE:
        short, long = (f'{{"answer": "{unit * (size // len(unit))}' for size in (31_250, 1_000_000))
        for reader in (STRICT, NORMALIZED):
            before = min(seconds(reader, short, CONTRACTS[kind], finish) for _ in range(3))
            assert seconds(reader, long, CONTRACTS[kind], finish) < 150 * before + 0.5, (reader.name, unit)


def test_a_million_characters_of_digits_are_no_number() -> None:
    """A number past any sensible length is refused by every parser instead of being converted."""
    for reader in READERS.values():
        assert reader.read(Reply("9" * 1_000_000, "stop"), CONTRACTS["text"], NUMBER).value is None
