"""What decoding is held to: which arms a contract has, its schema, and that strict reads what a grammar generates."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from parsing_samples import BOOLEAN, CONTRACTS, JSON, LABEL, METALS, NUMBER, STRICT, TEXT, YES_NO

from auditor.constraints import applies, constraint, grammar, portable_schema
from auditor.endpoints.grammars import regex
from auditor.parsing import gold_reply, schema
from auditor.parsing.numbers import CANONICAL
from auditor.records import AnswerSpace, Constraint, Contract, Enforcement, Part, Reply

SPECIAL = AnswerSpace(
    "label", ("C++", "a.b", "(x)", "[y]", "{z}", "p|q", "^$", "why?*", "a\\b", 'say "hi"', "it's 50%", "naïve 東")
)
CLOSED = {"metals": METALS, "yes_no": YES_NO, "label": LABEL, "special": SPECIAL, "boolean": BOOLEAN, "number": NUMBER}
FIELDS = {
    **CONTRACTS,
    "json, another field": Contract("json", field='queue "é"'),
    "fields, another field": Contract("fields", field="final answer"),
    "block, another": Contract("block", field="x", begin="[[ (1) ]]", end="$$"),
}
OWN: dict[str, Any] = {
    "type": "object",
    "properties": {"why": {"type": "string", "maxLength": 80}, "answer": {"enum": ["A", "B"]}},
    "required": ["answer"],
}

contracts = pytest.mark.parametrize("contract", FIELDS.values(), ids=FIELDS)
closed = pytest.mark.parametrize("space", CLOSED.values(), ids=CLOSED)


# Which arms there are ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(CONTRACTS))
def test_json_is_enforced_only_where_the_prompt_asks_for_json(kind: str) -> None:
    """A grammar, and nothing at all, fit every contract."""
    contract = CONTRACTS[kind]
    assert applies("none", contract)
    assert applies("grammar", contract)
    assert applies("json_object", contract) == applies("json_schema", contract) == (kind == "json")


@contracts
@pytest.mark.parametrize("space", [METALS, NUMBER, TEXT, JSON])
def test_the_arm_none_holds_to_nothing(contract: Contract, space: AnswerSpace) -> None:
    """Whatever the contract."""
    assert constraint("none", contract, space) is None


# Schemas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "leaf"),
    [
        (METALS, {"type": "string", "enum": ["A", "B", "C", "D"]}),
        (LABEL, {"type": "string", "enum": ["card_payment", "card_arrival", "extra_charge"]}),
        (BOOLEAN, {"type": "string", "enum": ["true", "false"]}),
        (NUMBER, {"type": "number"}),
        (TEXT, {"type": "string"}),
    ],
)
def test_the_portable_schema_is_flat_closed_and_requires_all(space: AnswerSpace, leaf: dict[str, Any]) -> None:
    """One key; no pattern, bound, format or default, which not every server knows."""
    expected = {
        "type": "object",
        "properties": {"queue": leaf},
        "required": ["queue"],
        "additionalProperties": False,
    }
    assert portable_schema("queue", space) == expected
    told = constraint("json_schema", Contract("json", field="queue"), space)
    assert told == Constraint("json_schema", schema=expected)


@pytest.mark.parametrize("space", [METALS, LABEL, SPECIAL, BOOLEAN, TEXT])
def test_a_gold_reply_fits_the_portable_schema(space: AnswerSpace) -> None:
    """What prompts show as an example is what decoding is held to."""
    for value in space.labels or (("true", "false") if space.type == "boolean" else ("some text",)):
        assert schema.fits(gold_reply(CONTRACTS["json"], value, space), portable_schema("answer", space))


@pytest.mark.parametrize("enforce", ["json_schema", "grammar"])
@pytest.mark.parametrize("space", [METALS, NUMBER, TEXT, JSON])
def test_a_schema_of_the_users_own_is_passed_on_unchanged(enforce: Enforcement, space: AnswerSpace) -> None:
    """Also under a grammar: the server makes its own of it."""
    before = json.dumps(OWN)
    told = constraint(enforce, Contract("json", schema=OWN, answer_path="/answer"), space)
    assert told is not None
    assert (told.kind, told.grammar) == (enforce, ())
    assert told.schema is OWN
    assert json.dumps(OWN) == before


def test_a_json_object_has_neither_schema_nor_grammar() -> None:
    """Also where the user has a schema: the arm says `an object`, no more."""
    assert constraint("json_object", CONTRACTS["json"], METALS) == Constraint("json_object")
    assert constraint("json_object", Contract("json", schema=OWN), METALS) == Constraint("json_object")


@pytest.mark.parametrize("enforce", ["json_schema", "grammar"])
def test_an_answer_that_may_be_any_json_is_held_to_an_object(enforce: Enforcement) -> None:
    """Without a schema nobody knows more of it."""
    assert constraint(enforce, CONTRACTS["json"], JSON) == Constraint("json_object")


# Grammars ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "space", "expected"),
    [
        ("text", METALS, (Part("one_of", ("A", "B", "C", "D")),)),
        ("text", BOOLEAN, (Part("one_of", ("true", "false")),)),
        ("text", TEXT, (Part("line"),)),
        ("fields", NUMBER, (Part("text", ("answer: ",)), Part("number"))),
        ("final_line", YES_NO, (Part("lines"), Part("text", ("answer: ",)), Part("one_of", ("yes", "no")))),
        (
            "block",
            YES_NO,
            (
                Part("text", ("<BEGIN ANSWER>\n",)),
                Part("text", ("answer: ",)),
                Part("one_of", ("yes", "no")),
                Part("text", ("\n<END ANSWER>",)),
            ),
        ),
        (
            "json",
            YES_NO,
            (Part("text", ('{"answer": ',)), Part("one_of", ('"yes"', '"no"')), Part("text", ("}",))),
        ),
        ("json", NUMBER, (Part("text", ('{"answer": ',)), Part("number"), Part("text", ("}",)))),
        ("json", TEXT, (Part("text", ('{"answer": ',)), Part("string"), Part("text", ("}",)))),
        ("fields", JSON, (Part("text", ("answer: ",)), Part("line"))),
    ],
)
def test_a_grammar_is_the_contract_in_parts(kind: str, space: AnswerSpace, expected: tuple[Part, ...]) -> None:
    """Each contract, each kind of answer, by hand."""
    assert grammar(CONTRACTS[kind], space) == expected
    assert constraint("grammar", CONTRACTS[kind], space) == Constraint("grammar", grammar=expected)


def pattern(contract: Contract, space: AnswerSpace) -> str:
    """The replies that a grammar generates."""
    told = constraint("grammar", contract, space)
    assert told is not None
    assert told.schema is None
    return regex(told.grammar)


def answer(reply: str, contract: Contract) -> str:
    """What a reply holds, read without our parser."""
    if contract.kind == "json":
        (value,) = json.loads(reply, parse_int=str, parse_float=str).values()
        return str(value)
    if contract.kind == "text":
        return reply
    line = reply.split("\n")[-2 if contract.kind == "block" else -1]
    return line.removeprefix(f"{contract.field}: ")


@settings(max_examples=30, deadline=None)
@contracts
@closed
@given(data=st.data())
def test_the_strict_parser_reads_what_a_grammar_generates(
    contract: Contract, space: AnswerSpace, data: st.DataObject
) -> None:
    """Any reply with an answer that is not free text is parsed, as the value it holds."""
    alphabet = st.characters(exclude_categories=["Cs"])
    reply = data.draw(st.from_regex(pattern(contract, space), fullmatch=True, alphabet=alphabet))
    expected = answer(reply, contract)
    assume(expected != "-0")  # below
    outcome = STRICT.read(Reply(reply, "stop"), contract, space)
    assert (outcome.outcome, outcome.value) == ("parsed", expected)


@contracts
def test_no_grammar_generates_minus_zero(contract: Contract) -> None:
    """A reply that decoding was held to is never unreadable for its form."""
    assert not CANONICAL.fullmatch("-0")
    before, _, after = gold_reply(contract, "\0", TEXT).partition("\0" if contract.kind != "json" else '"\\u0000"')
    assert not re.fullmatch(pattern(contract, NUMBER), f"{before}-0{after}")


def test_a_string_that_a_grammar_generates_is_json() -> None:
    """A tab in a string is \\t there."""
    assert not re.fullmatch(pattern(CONTRACTS["json"], TEXT), '{"answer": "a\tb"}')


@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("kind", ["fields", "block", "final_line", "text"])
@given(data=st.data())
def test_free_text_that_a_grammar_generates_is_read_where_no_space_is_around_it(kind: str, data: st.DataObject) -> None:
    """A line of words is an answer."""
    contract = CONTRACTS[kind]
    alphabet = st.characters(min_codepoint=32, max_codepoint=126, include_characters="\n")
    reply = data.draw(st.from_regex(pattern(contract, TEXT), fullmatch=True, alphabet=alphabet))
    expected = answer(reply, contract)
    assume(expected == expected.strip())
    outcome = STRICT.read(Reply(reply, "stop"), contract, TEXT)
    assert (outcome.outcome, outcome.value) == ("parsed", expected)


# Gold replies --------------------------------------------------------------------------------------------------


@contracts
@pytest.mark.parametrize("space", [METALS, YES_NO, LABEL, SPECIAL, BOOLEAN], ids=str)
def test_a_grammar_generates_the_gold_reply_of_every_label(contract: Contract, space: AnswerSpace) -> None:
    """Enforcement excludes no correct answer."""
    for value in space.labels or ("true", "false"):
        assert re.fullmatch(pattern(contract, space), gold_reply(contract, value, space))


numbers = st.tuples(
    st.sampled_from(["", "-"]), st.integers(1, 10**15 - 1), st.from_regex(r"(\.[0-9]{0,5}[1-9])?", fullmatch=True)
).map(lambda parts: f"{parts[0]}{parts[1]}{parts[2]}") | st.sampled_from(["0", "0.5", "-0.000001"])


@pytest.mark.parametrize("contract", [one for one in FIELDS.values() if one.kind != "json"])
@settings(max_examples=30, deadline=None)
@given(value=numbers)
def test_a_grammar_generates_the_gold_reply_of_a_number(contract: Contract, value: str) -> None:
    """Up to fifteen digits before and six after the point. In JSON the grammar's number has no quotes, the gold reply's
    has: strict reads both."""
    assert CANONICAL.fullmatch(value)
    assert re.fullmatch(pattern(contract, NUMBER), gold_reply(contract, value, NUMBER))


@contracts
@settings(max_examples=30, deadline=None)
@given(value=st.text(st.sampled_from("abc é東.,:;!?-()[]{}'"), min_size=1, max_size=200).map(str.strip).filter(bool))
def test_a_grammar_generates_the_gold_reply_of_a_line_of_text(contract: Contract, value: str) -> None:
    """Up to two hundred characters."""
    assert re.fullmatch(pattern(contract, TEXT), gold_reply(contract, value, TEXT))


@pytest.mark.parametrize("kind", ["text", "fields", "block", "final_line"])
def test_a_grammar_generates_the_gold_reply_of_a_small_object(kind: str) -> None:
    """JSON as a line, where the contract is not JSON itself."""
    gold = gold_reply(CONTRACTS[kind], '{"a":[1,"x"],"b":null}', JSON)
    assert re.fullmatch(pattern(CONTRACTS[kind], JSON), gold)
