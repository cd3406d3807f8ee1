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

from auditor.parsing import Reader, canonical, gold_reply
from auditor.parsing.numbers import text_of
from auditor.records import AnswerSpace, Contract, Reply

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
