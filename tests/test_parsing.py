"""The parsers' public functions, the parser files' own examples, and what strict and paper demand."""

from __future__ import annotations

import json
import tomllib
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from parsing_samples import (
    BOOLEAN,
    CONTRACTS,
    FOLDER,
    JSON,
    LABEL,
    LETTERS,
    METALS,
    NORMALIZED,
    NUMBER,
    PAPER,
    PARSERS,
    READERS,
    STRICT,
    TEN,
    TEXT,
    UNSCOPED,
    steps,
)

from auditor.errors import UsageError
from auditor.parsing import Reader, canonical, compile_parser, explain, explained, gold_reply, is_correct, schema
from auditor.records import AnswerSpace, Contract, Outcome, Parser, ParserExample, Reply

EXAMPLES = [(name, example) for name, parser in PARSERS.items() for example in parser.examples]


def space_of(example: ParserExample) -> AnswerSpace:
    texts = tuple(example.choices.values()) if isinstance(example.choices, dict) else ()
    return AnswerSpace(example.answer_type, tuple(example.choices), texts)


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(EXAMPLES)])
def test_every_example_of_a_parser_file_holds(name: str, example: ParserExample) -> None:
    """A parser says of each example in its file exactly what the file says."""
    reply = Reply(example.reply, example.finish_reason)
    outcome = READERS[name].read(reply, CONTRACTS[example.contract], space_of(example))
    assert (outcome.value, outcome.candidates, outcome.reason) == (example.parsed, example.ambiguous, example.reason)
    if example.needed is not None:
        assert outcome.needed == example.needed


def test_no_parser_file_is_left_out() -> None:
    """Every file in parsers/ is one of the parsers tested here, named like its file, with at least four examples."""
    files = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.toml")}
    assert {name: tree["name"] for name, tree in files.items()} == {name: name for name in PARSERS}
    assert all(len(parser.examples) >= 4 for parser in PARSERS.values())


def test_an_unknown_step_names_the_nearest() -> None:
    """A step that does not exist is a usage error whose hint names the nearest one."""
    with pytest.raises(UsageError, match="unknown parser step 'exact_tokn'") as caught:
        compile_parser(Parser("mine", 1, "", steps("classify_reply", "exact_tokn"), (), "mine.toml", ""))
    assert "exact_token" in caught.value.hint


def test_every_step_is_explained_and_used() -> None:
    """Each step has a docstring, stands in parsers/README.md, and is a step of at least one of our parsers."""
    readme = (FOLDER / "README.md").read_text("utf-8")
    used = {step.name for parser in PARSERS.values() for step in parser.steps}
    assert set(explained()) - used == {"lowercase", "uppercase", "map", "canonical_value", "declare_language"}
    assert all(told and f"`{name}`" in readme for name, told in explained().items())


def test_a_parser_whose_steps_never_end_gives_no_answer() -> None:
    """Running out of steps is an outcome, not an error."""
    reader = compile_parser(Parser("mine", 1, "", steps("classify_reply"), (), "", ""))
    assert reader.read(Reply("B"), CONTRACTS["text"], LETTERS) == Outcome("unparseable", reason="no_answer")


@pytest.mark.parametrize(
    ("text", "space", "expected"),
    [
        ("B", METALS, "B"),
        (" B ", METALS, "B"),
        ("copper", METALS, "B"),
        ("Copper", METALS, None),
        ("1", METALS, None),
        ("b", METALS, None),
        ("x", AnswerSpace("choice", ("A", "B"), ("x", "x")), None),
        ("B", AnswerSpace("choice", ("A", "B"), ("B", "A")), "B"),
        ("YES", BOOLEAN, "true"),
        ("0", BOOLEAN, "false"),
        ("maybe", BOOLEAN, None),
        ("18.00", NUMBER, "18"),
        ("0.50", NUMBER, "0.5"),
        ("3/4", NUMBER, "0.75"),
        ("2/6", NUMBER, "1/3"),
        ("-1/8", NUMBER, "-0.125"),
        ("1,234", NUMBER, "1234"),
        ("$29.00", NUMBER, "29"),
        ("50%", NUMBER, "50"),
        ("1.234,56", NUMBER, None),
        ("-0", NUMBER, "0"),
        ("five", NUMBER, None),
        ("card_payment", LABEL, "card_payment"),
        ("card payment", LABEL, None),
        (" a b ", TEXT, "a b"),
        (" ", TEXT, None),
        ('{"b": 1.0, "a": [true, null]}', JSON, '{"a":[true,null],"b":1.0}'),
        ("{'b': 1}", JSON, None),
    ],
)
def test_canonical_values(text: str, space: AnswerSpace, expected: str | None) -> None:
    """A gold answer becomes the canonical value of its space, or None where it is none."""
    assert canonical(text, space) == expected


@pytest.mark.parametrize("value", ["7", "-0.125", "1/3", "-22/7", "12.5", "0"])
def test_a_canonical_number_is_the_same_rational(value: str) -> None:
    """The canonical text of a number is that number (against `fractions.Fraction`)."""
    assert canonical(value, NUMBER) == value
    assert canonical(f"{Fraction(value).numerator}/{Fraction(value).denominator}", NUMBER) == value


def test_is_correct_compares_canonical_values() -> None:
    """Two writings of one value are equal; two values are not; what is no value equals nothing else."""
    assert is_correct("0.5", "1/2", NUMBER)
    assert is_correct("true", "yes", BOOLEAN)
    assert not is_correct("A", "B", METALS)
    assert not is_correct("?", "!", NUMBER)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text", "B"),
        ("json", '{"answer": "B"}'),
        ("fields", "answer: B"),
        ("block", "<BEGIN ANSWER>\nanswer: B\n<END ANSWER>"),
        ("final_line", "answer: B"),
    ],
)
def test_the_gold_reply_of_each_contract(kind: str, expected: str) -> None:
    """The shortest reply that fulfils each contract is the one the protocol writes."""
    assert gold_reply(CONTRACTS[kind], "B", METALS) == expected


NESTED = Contract(
    "json",
    schema={
        "type": "object",
        "required": ["why", "result"],
        "properties": {
            "why": {"type": "string"},
            "result": {
                "type": "object",
                "required": ["label"],
                "properties": {"label": {"enum": ["A", "B", "C", "D"]}, "sure": {"type": "number"}},
            },
        },
        "additionalProperties": False,
    },
    answer_path="/result/label",
)


@pytest.mark.parametrize(
    ("reply", "value", "reason"),
    [
        ('{"why": "x", "result": {"label": "B"}}', "B", None),
        ('{"why": "x", "result": {"label": "B", "sure": 0.9}}', "B", None),
        ('{"why": "x", "result": {"label": "E"}}', None, "wrong_type"),
        ('{"result": {"label": "B"}}', None, "wrong_type"),
        ('{"why": "x"}', None, "missing_key"),
        ('{"why": "x", "result": {"label": "B", "label": "B"}}', None, "duplicate_field"),
    ],
)
def test_strict_holds_a_reply_against_the_users_schema(reply: str, value: str | None, reason: str | None) -> None:
    """A schema of the user's own must be satisfied; the answer is what stands at its path. jsonschema agrees."""
    outcome = STRICT.read(Reply(reply), NESTED, METALS)
    assert (outcome.value, outcome.reason) == (value, reason)
    assert NESTED.schema is not None
    fits = jsonschema.Draft202012Validator(NESTED.schema).is_valid(json.loads(reply))
    assert schema.fits(reply, NESTED.schema) == fits


def test_normalized_reads_the_answer_at_the_users_path() -> None:
    """With an answer path the tolerant reading looks there and nowhere else."""
    assert NORMALIZED.read(Reply('So: {"result": {"label": "b"}, "label": "C"}'), NESTED, METALS).value == "B"


def test_gold_replies_satisfy_a_users_schema() -> None:
    """Required properties beside the answer are filled, and a number is unquoted where the schema wants one."""
    assert STRICT.read(Reply(gold_reply(NESTED, "B", METALS)), NESTED, METALS).value == "B"
    amount = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number"}}}
    contract = Contract("json", schema=amount, answer_path="/amount")
    assert gold_reply(contract, "18", NUMBER) == '{"amount":18}'
    assert STRICT.read(Reply('{"amount":18}'), contract, NUMBER).value == "18"


def test_a_schema_is_never_fetched() -> None:
    """A reference to another address makes the schema unusable; nothing is opened for it."""
    contract = Contract("json", schema={"$ref": "http://127.0.0.1:9/schema.json"})
    outcome = STRICT.read(Reply('{"answer": "B"}'), contract, METALS)
    assert outcome == Outcome("unparseable", reason="parser_error")


@pytest.mark.parametrize("reader", [STRICT, PAPER, NORMALIZED], ids=lambda reader: reader.name)
def test_json_answers_are_the_whole_object(reader: Reader) -> None:
    """A json answer is the reply's object, keys sorted, number literals as written."""
    outcome = reader.read(Reply('{"b": 1.50, "a": "x"}'), CONTRACTS["json"], JSON)
    assert outcome.value == '{"a":"x","b":1.50}'


@pytest.mark.parametrize(
    ("contract", "space", "reply", "reason"),
    [
        ("text", METALS, "B\n\n", "extra_text"),
        ("text", METALS, "B because copper conducts", "extra_text"),
        ("text", METALS, "```\nB\n```", "code_fence"),
        ("text", BOOLEAN, "True", "not_canonical"),
        ("text", NUMBER, "1/2", "not_canonical"),
        ("text", NUMBER, "-0", "not_canonical"),
        ("text", NUMBER, "٣", "extra_text"),
        ("text", NUMBER, "n/a", "no_answer"),
        ("text", LABEL, "card_lost", "not_in_choices"),
        ("json", METALS, ' {"answer": "B"}', "extra_text"),
        ("json", METALS, '{"answer": "B"} {"answer": "B"}', "extra_text"),
        ("json", METALS, '{"answer": "B", "why": "x"}', "extra_key"),
        ("json", METALS, '{"Answer": "B"}', "missing_key"),
        ("json", METALS, '["B"]', "wrong_type"),
        ("json", METALS, '{"answer": 2}', "wrong_type"),
        ("json", METALS, '{"answer": null}', "wrong_type"),
        ("json", METALS, '{"answer": "\\ud83d"}', "invalid_json"),
        ("json", METALS, '{"answer": "\ud83d"}', "invalid_json"),
        ("json", METALS, '{"answer": "B"', "invalid_json"),
        ("json", METALS, "[" * 100_000, "invalid_json"),
        ("json", NUMBER, '{"answer": 18.00}', "not_canonical"),
        ("json", NUMBER, '{"answer": Infinity}', "invalid_json"),
        ("json", NUMBER, '{"answer": true}', "wrong_type"),
        ("fields", METALS, "answer: B\nanswer: B", "duplicate_field"),
        ("fields", METALS, "why: x\n\nanswer: B", "extra_text"),
        ("fields", METALS, "answer:B", "not_canonical"),
        ("fields", METALS, "answer:  B", "extra_text"),
        ("fields", METALS, "answer:", "no_answer"),
        ("block", METALS, "<BEGIN ANSWER>\nB\n<END ANSWER>", "field_missing"),
        ("block", METALS, "x\n<BEGIN ANSWER>\nanswer: B\n<END ANSWER>", "extra_text"),
        ("block", METALS, "<BEGIN ANSWER>\nwhy: x\nanswer: B\n<END ANSWER>", "extra_text"),
        ("block", METALS, "<BEGIN ANSWER><END ANSWER>", "extra_text"),
        ("final_line", METALS, "x\nAnswer: B", "field_missing"),
        ("final_line", METALS, "answer: B\nx", "extra_text"),
        ("final_line", METALS, "x\nanswer: B.", "not_canonical"),
    ],
)
def test_strict_refuses_and_says_why(contract: str, space: AnswerSpace, reply: str, reason: str) -> None:
    """Whatever is not the contract to the letter is unparseable, with the first thing that is wrong as the reason."""
    assert STRICT.read(Reply(reply), CONTRACTS[contract], space) == Outcome("unparseable", reason=reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("contract", "space", "reply"),
    [
        ("json", METALS, '{\n  "answer": "B"\n}\n'),
        ("json", METALS, '{"answer": "\\u0042"}'),
        ("fields", METALS, "why: because: x\nanswer: B\nsure: yes"),
        ("final_line", METALS, "answer: A\nno, better\nanswer: B\n"),
    ],
)
def test_strict_accepts_what_the_contract_allows(contract: str, space: AnswerSpace, reply: str) -> None:
    """JSON may be laid out and escaped, fields may stand beside the answer, a last line may follow an earlier one."""
    assert STRICT.read(Reply(reply), CONTRACTS[contract], space) == Outcome("parsed", "B")


@pytest.mark.parametrize(
    ("contract", "space", "reply", "value", "reason"),
    [
        ("text", METALS, "answer: D", "D", None),
        ("text", METALS, "None of them, B", "B", None),
        ("text", NUMBER, "4 or -5", "-5", None),
        ("text", NUMBER, "12-5", "5", None),
        ("text", NUMBER, "no idea", None, "no_answer"),
        ("text", NUMBER, "9" * 600, None, "no_answer"),
        ("text", BOOLEAN, "It is not false", "false", None),
        ("text", BOOLEAN, "nothing", None, "no_answer"),
        ("text", LABEL, "card payment", None, "not_in_choices"),
        ("text", TEXT, " x \n", "x", None),
        ("json", METALS, '{"answer": "A", "answer": "B"}', "B", None),
        ("json", NUMBER, '{"answer": 1e3}', "1000", None),
        ("json", METALS, '{"answer": ["B"]}', None, "wrong_type"),
        ("json", METALS, '{"result": "B"}', None, "missing_key"),
        ("json", METALS, "B", None, "invalid_json"),
        ("json", METALS, '"B"', None, "wrong_type"),
        ("block", METALS, "<BEGIN ANSWER>\nB\n<END ANSWER>", None, "field_missing"),
        ("fields", METALS, "answer: unsure", None, "no_answer"),
    ],
)
def test_paper_applies_appendix_b_to_the_field(
    contract: str, space: AnswerSpace, reply: str, value: str | None, reason: str | None
) -> None:
    """First letter in A-E, the first truth word, the last number, the exact label, of the field only."""
    outcome = PAPER.read(Reply(reply), CONTRACTS[contract], space)
    assert (outcome.value, outcome.reason) == (value, reason)


def test_the_papers_parsers_do_not_apply_past_e() -> None:
    """Labels past E give a reason instead of results; strict and normalized read any label."""
    assert PAPER.applies(TEN) == UNSCOPED.applies(TEN) == "labels go past E (F)"
    assert (PAPER.applies(METALS), PAPER.applies(NUMBER), PAPER.applies(LABEL)) == (None, None, None)
    assert (STRICT.applies(TEN), NORMALIZED.applies(TEN)) == (None, None)


NEGATIVES = [
    (METALS, "A closer look favours C."),
    (METALS, "A copper wire"),
    (METALS, "If the answer is B, then lead floats"),
    (METALS, "The answer is not B."),
    (METALS, "I don't think the answer is B."),
    (METALS, "You said the answer is B"),
    (METALS, "The answer is either B or C."),
    (METALS, "The answer is a metal."),
    (METALS, "The answer is A metal"),
    (METALS, "The answer is B?"),
    (METALS, "The answer is B. Wait, that's wrong."),
    (METALS, "The correct answer is B.\n\nWait, actually it is C."),
    (METALS, "Neither A nor B is correct"),
    (METALS, "Both A and B"),
    (METALS, "B and C"),
    (METALS, "A/B/C/D"),
    (METALS, "Not B"),
    (METALS, "Is it B?"),
    (METALS, "Answer: not B"),
    (METALS, "Answer: probably B"),
    (METALS, "Answer:\nA) iron\nB) copper"),
    (METALS, "A. iron B. copper C. tin D. lead"),
    (METALS, "lead me to the answer"),
    (METALS, "A\nclean solution"),
    (METALS, "None of the above"),
    (TEN, "I cannot tell"),
    (TEN, "I think, therefore I am"),
    (LETTERS, "E. coli"),
    (LETTERS, "A. Lincoln"),
    (LETTERS, "B, C"),
    (BOOLEAN, "No one knows"),
    (BOOLEAN, "Yes and no."),
    (BOOLEAN, "yes/no"),
    (BOOLEAN, "Yes. But no."),
    (BOOLEAN, "No, it's true."),
    (BOOLEAN, "Not true"),
    (BOOLEAN, "The answer is not true."),
    (NUMBER, "about 18"),
    (NUMBER, "(18)"),
    (NUMBER, "5!"),
    (NUMBER, "2**3"),
    (NUMBER, "2^3"),
    (NUMBER, "5k"),
    (NUMBER, "$1.5 million"),
    (NUMBER, "18th"),
    (NUMBER, "3:45"),
    (NUMBER, "12/25/2020"),
    (NUMBER, "1.2.3"),
    (NUMBER, "12 - 3"),
    (NUMBER, "12 - 3 = 9"),
    (NUMBER, "1. First, add them"),
    (NUMBER, "1.\nFirst, add them"),
    (NUMBER, "3 eggs\nmake a cake"),
    (NUMBER, "9\n10\n11"),
    (NUMBER, "5 degrees below zero"),
    (LABEL, "card_payment or card_arrival"),
    (LABEL, "not card_payment"),
    (LABEL, "card"),
]


@pytest.mark.parametrize(("space", "reply"), NEGATIVES, ids=[reply for _, reply in NEGATIVES])
def test_normalized_reads_no_answer_into_prose(space: AnswerSpace, reply: str) -> None:
    """Prose, hedges, negations, lists and doubtful numbers give no value, plain or under any other contract."""
    for contract in CONTRACTS.values():
        assert NORMALIZED.read(Reply(reply, "stop"), contract, space).value is None


def test_the_micro_benchmark_is_read_as_it_was_scored() -> None:
    """strict and normalized read the shared texts with exactly the parsed and correct flags they were scored with."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "micro"
    if not folder.is_dir():
        pytest.skip("the shared micro benchmark is not here")
    texts, scored = (
        [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
        for name in ("texts.jsonl", "scored.jsonl")
    )
    for row, given in zip(texts, scored, strict=True):
        contract = CONTRACTS["json" if row["wrapper"] == "json" else "text"]
        for reader in (STRICT, NORMALIZED):
            outcome = reader.read(Reply(row["text"], row["finish_reason"]), contract, LETTERS)
            assert (outcome.outcome == "parsed", outcome.value == row["gold"]) == (given["parsed"], given["correct"])


def test_explain_tells_each_step_up_to_the_end() -> None:
    """An explanation has one sentence per step that ran, and the last one is the outcome."""
    told = explain(
        PARSERS["normalized"], NORMALIZED, Reply('<think>A</think>```{"answer": "b"}```'), CONTRACTS["json"], METALS
    )
    assert told == [
        ("classify_reply", "nothing to do"),
        ("strict_first", "nothing to do"),
        ("drop_leading_think", 'left \'```{"answer": "b"}```\' (think_block)'),
        ("drop_leaks", "nothing to do"),
        ("locate_contract", "found 'b' (code_fence)"),
        ("one_value", "parsed B, needed think_block, code_fence, case"),
    ]
    assert explain(PARSERS["strict"], STRICT, Reply("b"), CONTRACTS["text"], METALS)[-1] == (
        "exact_token",
        "unparseable: not_canonical",
    )
