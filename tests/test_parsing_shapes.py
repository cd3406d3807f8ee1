"""Shapes of replies that break answer extraction, row by row: what strict and normalized say of each.

Numbers are those of the project's catalogue of shapes (gaps are its own). All replies are made up. Unless told
otherwise the options are A-D with texts iron, copper, tin, lead. Rows 1 and 2 (an error in an HTTP body) end before
parsing in a real run; here they show that nothing is read even so.
"""

from __future__ import annotations

import pytest
from msgspec import Struct
from parsing_samples import BOOLEAN, CONTRACTS, LETTERS, METALS, NORMALIZED, NUMBER, SPECIES, STRICT, TEN, TEXT, YES_NO

from auditor.records import AnswerSpace, Outcome, Reason, Reply

F = "```"


class Shape(Struct, frozen=True):
    """One row. `normalized`: a value, a tuple of candidates (ambiguous), or None with `reason`."""

    row: str
    contract: str
    reply: str | Reply
    strict: Reason | None
    normalized: str | tuple[str, ...] | None
    reason: Reason | None = None
    needed: tuple[str, ...] | None = None
    space: AnswerSpace = METALS


RESPONSE = [
    Shape("1", "json", '{"error":{"code":502,"message":"x"}}', "missing_key", None, "missing_key"),
    Shape("2", "json", Reply('{"answer":"B', "error"), "truncated", None, "truncated"),
    Shape(
        "3",
        "json",
        Reply(None, "stop", reasoning='{"answer":"B"}'),
        "content_in_reasoning",
        None,
        "content_in_reasoning",
    ),
    Shape(
        "4", "json", Reply("", "length", reasoning_tokens=24), "truncated_in_reasoning", None, "truncated_in_reasoning"
    ),
    Shape("4 blank", "json", Reply("\n\n", "length"), "truncated", None, "truncated"),
    Shape("5", "json", Reply(None, "stop", completion_tokens=80), "empty", None, "empty"),
    Shape("7", "text", "I'm not able to answer that.", "no_answer", None, "refusal"),
    Shape("7 ten", "text", "I'm not able to answer that.", "no_answer", None, "refusal", space=TEN),
    Shape("7 field", "text", Reply(None, "stop", refusal="No."), "refusal", None, "refusal"),
    Shape("7 filter", "text", Reply("B", "content_filter"), "content_filter", None, "content_filter"),
    Shape("8", "json", Reply(None, "tool_calls", tool_calls='{"answer":"B"}'), "tool_call", None, "tool_call"),
    Shape("9", "json", Reply('{"answer":"B","why":"since', "length"), "truncated", "B", needed=("truncated",)),
    Shape("9 late", "json", Reply('{"why":"x, {y}","answer":"B","z":"si', "length"), "truncated", "B"),
    Shape("9 inside", "json", Reply('{"answer":"B', "length"), "truncated", None, "truncated"),
    Shape("9 number", "json", Reply('{"answer":18', "length"), "truncated", None, "truncated", space=NUMBER),
    Shape("9 closed", "json", Reply('{"answer":18,', "length"), "truncated", "18", space=NUMBER),
    Shape("9 nested", "json", Reply('{"x":{"answer":"A"},"y":"', "length"), "truncated", None, "truncated"),
    Shape("9 twice", "json", Reply('{"answer":"A","answer":"B","y":"', "length"), "truncated", ("A", "B")),
    Shape("9 plain", "text", Reply("B", "length"), "truncated", None, "truncated"),
    Shape("9 line", "text", Reply("B\n\nThe reason is th", "length"), "truncated", "B"),
    Shape("9 other", "text", Reply("B\nThe answer is C.\nbecau", "length"), "truncated", ("C", "B")),
    Shape("9 phrase", "text", Reply("The answer is C.\nbecau", "length"), "truncated", None, "truncated"),
    Shape("9 block", "block", Reply("<BEGIN ANSWER>\nanswer: B\n<END ANS", "length"), "truncated", "B"),
    Shape("9 block open", "block", Reply("<BEGIN ANSWER>\nanswer: B", "length"), "truncated", None, "truncated"),
    Shape("9 final", "final_line", Reply("answer: B\nbut let me che", "length"), "truncated", None, "truncated"),
]

JSON = [
    Shape("11", "json", f'{F}json\n{{"answer":"B"}}\n{F}', "code_fence", "B", needed=("code_fence",)),
    Shape("11 one line", "json", f'{F}json {{"answer":"B"}} {F}', "code_fence", "B"),
    Shape("11 letter", "text", f"{F}A\nB\n{F}", "code_fence", None, "no_answer"),
    Shape("11 bare", "text", f"{F}B{F}", "code_fence", "B", needed=("code_fence",)),
    Shape("12", "json", f'{F}json {{"answer":"B"}} {F} Done {{ok}}', "code_fence", "B", needed=("extra_text",)),
    Shape("12 two", "json", f'{F}json {{"answer":"B"}} {F} or {{"answer":"C"}}', "code_fence", ("B", "C")),
    Shape("14", "json", '{"answer":"B","note":"use ``x``"}', "extra_key", "B", needed=("extra_key",)),
    Shape("14 fence", "json", f'{{"answer":"B","note":"{F}x{F}"}}', "extra_key", "B", needed=("extra_key",)),
    Shape("15", "json", 'Sure: {"answer":"B"}', "extra_text", "B", needed=("extra_text",)),
    Shape("15 after", "json", '{"answer":"B"} I hope that helps.', "extra_text", "B", needed=("extra_text",)),
    Shape("15 other", "json", '{"answer":"B"}\nAnswer: C', "extra_text", ("B", "C")),
    Shape("18", "json", '{"answer":"A","answer":"B"}', "duplicate_field", ("A", "B")),
    Shape("19", "json", '{"answer":"B" // sure\n}', "invalid_json", "B", needed=("comment",)),
    Shape("20", "json", '{"answer":"B",}', "invalid_json", "B", needed=("trailing_comma",)),
    Shape("21", "json", "{'answer':'B'}", "invalid_json", "B", needed=("single_quotes",)),
    Shape("23", "json", '{"answer":True,"x":None}', "invalid_json", "true", space=BOOLEAN),
    Shape("25", "json", '{answer: "B"}', "invalid_json", "B", needed=("unquoted_key",)),
    Shape("25 both", "json", "{answer: B}", "invalid_json", "B", needed=("unquoted_key", "unquoted_value")),
    Shape("26", "json", '{{"answer":"B"}}', "invalid_json", "B", needed=("double_braces",)),
    Shape("28", "json", '{"answer":"B","why":"l1\nl2"}', "invalid_json", "B", needed=("control_char", "extra_key")),
    Shape("29", "json", '{"answer":"\\sigma"}', "invalid_json", "\\sigma", needed=("bad_escape",), space=TEXT),
    Shape(
        "30", "json", '{"answer":"\\frac{1}{2}"}', "extra_text", "0.5", needed=("eaten_escape", "latex"), space=NUMBER
    ),
    Shape("30 box", "json", '{"answer":"\\boxed{B}"}', "not_in_choices", "B", needed=("eaten_escape", "latex")),
    Shape("32", "json", '"{\\"answer\\":\\"B\\"}"', "wrong_type", "B", needed=("double_encoded",)),
    Shape("33", "json", f'{{"output":"{F}json {{\\"answer\\":\\"B\\"}} {F}"}}', "missing_key", None, "missing_key"),
    Shape("35", "json", '{"$PARAMETER_NAME":{"answer":"B"}}', "missing_key", "B", needed=("wrapped",)),
    Shape("35 example", "json", '{"example":{"answer":"B"}}', "missing_key", None, "missing_key"),
    Shape("36", "json", '{"answer":{"answer":"B"}}', "wrong_type", "B", needed=("nested",)),
    Shape("38", "json", '{"answer":["B"]}', "wrong_type", "B", needed=("list_of_one",)),
    Shape("38 two", "json", '{"answer":["B","C"]}', "wrong_type", ("B", "C")),
    Shape("39", "json", '{"answer":"B","confidence":0.9}', "extra_key", "B", needed=("extra_key",)),
    Shape("41", "json", '{"answer":true}', "wrong_type", "yes", needed=("boolean_word",), space=YES_NO),
    Shape("41 letters", "json", '{"answer":true}', "wrong_type", None, "not_in_choices"),
    Shape("42", "json", '{"answer":NaN}', "invalid_json", None, "invalid_json", space=NUMBER),
    Shape("44", "json", "B", "invalid_json", "B", needed=("bare_answer",)),
    Shape("44 article", "json", "A copper wire", "invalid_json", None, "invalid_json"),
    Shape("45", "json", '\ufeff{"answer":"B"}', "extra_text", "B", needed=("invisible",)),
    Shape("45 zero width", "json", '\u200b{"answer":"B"}', "extra_text", "B", needed=("invisible",)),
    Shape("45 nbsp", "json", '\u00a0{"answer":"B"}', "extra_text", "B"),
    Shape("json prose", "json", '{"answer": "B" or "C"}', "invalid_json", None, "no_answer"),
    Shape("json key", "json", '{"Final_Answer": "b"}', "missing_key", "B", needed=("key_variant", "case")),
]

CHOICES = [
    Shape("47", "text", "b", "not_canonical", "B", needed=("case",)),
    Shape("48", "text", "B) copper", "extra_text", "B", needed=("letter_and_text",)),
    Shape("48 dot", "text", "b. copper", "extra_text", "B", needed=("letter_and_text",)),
    Shape("48 no texts", "text", "B) copper", "extra_text", "B", space=LETTERS),
    Shape("48 mismatch", "text", "B) iron", "conflicting_answers", ("B", "A")),
    Shape("48 other", "text", "B) gold", "conflicting_answers", ("B", "gold")),
    Shape("48 species", "text", "E. coli", "not_canonical", "B", needed=("option_text",), space=SPECIES),
    Shape("48 initial", "text", "A. Lincoln", "conflicting_answers", ("A", "Lincoln"), space=LETTERS),
    Shape("48 echo", "text", "A) iron\nB) copper\nC) tin", "extra_text", ("A", "B", "C")),
    Shape("48 explained", "text", "B) copper\n\nCopper conducts.", "extra_text", "B"),
    Shape("50", "text", "**Answer:** **B**", "extra_text", "B", needed=("answer_cue", "markdown")),
    Shape("51", "text", "\\boxed{\\text{B}}", "not_canonical", "B", needed=("latex",)),
    Shape("52", "text", "A closer look favours C.", "extra_text", None, "no_answer"),
    Shape("52 better", "text", "A better choice is C.", "extra_text", None, "no_answer"),
    Shape("52 good", "text", "A good question. The answer is C.", "extra_text", "C"),
    Shape("54", "text", "C since I checked", "extra_text", "C", needed=("explanation",), space=TEN),
    Shape("54 pronoun", "text", "I since checked C", "extra_text", None, "no_answer", space=TEN),
    Shape("55", "text", "Answer: **D**", "extra_text", "D", needed=("answer_cue", "markdown")),
    Shape("57", "text", "Answer seems to be C", "extra_text", "C", needed=("answer_cue",)),
    Shape("57 two", "text", "Answer seems to be C or D", "extra_text", ("C", "D")),
    Shape("60", "text", "I weighed (A). Final answer: D", "extra_text", "D", needed=("answer_cue",)),
    Shape("61", "text", "Answer: B\nHm.\nAnswer: C", "extra_text", ("B", "C")),
    Shape("61 shots", "text", "Q: x\nAnswer: A\n\nQ: y\nAnswer: B", "extra_text", ("A", "B")),
    Shape("61 final", "final_line", "Answer: B\nHm.\nAnswer: C", "field_missing", "C"),
    Shape("61 wavering", "final_line", "B? Wait, actually no.\n**answer: C**", "field_missing", "C"),
    Shape("61 taken back", "fields", "answer: B\nWait, that is wrong.", "extra_text", None, "conflicting_answers"),
    Shape("63", "text", "我選擇 B", "extra_text", "B", needed=("answer_cue",)),
    Shape("63 negated", "text", "我不選 B", "extra_text", None, "no_answer"),
    Shape("64", "text", "答案：Ｂ", "not_in_choices", "B", needed=("answer_cue", "full_width")),
    Shape("64 homoglyph", "text", "\u0412", "not_in_choices", None, "no_answer"),
    Shape("65", "text", "copper", "not_canonical", "B", needed=("option_text",)),
    Shape("65 inside", "text", "copperhead", "not_in_choices", None, "no_answer"),
    Shape("67", "text", "None of these", "no_answer", None, "no_answer"),
    Shape("67 above", "text", "None of the above", "no_answer", None, "no_answer", space=TEN),
    Shape("68", "text", "YES\n\nThere are two reasons", "extra_text", "true", space=BOOLEAN),
    Shape("68 turn", "text", "Yes.\nNo.", "conflicting_answers", ("true", "false"), space=BOOLEAN),
    Shape("68 number", "text", "No. 5 is best", "extra_text", None, "no_answer", space=BOOLEAN),
    Shape("70", "text", "Nein.", "no_answer", None, "no_answer", space=BOOLEAN),
    Shape("70 na", "text", "Na", "no_answer", None, "no_answer", space=BOOLEAN),
    Shape("71", "text", "The photo shows a greenhouse", "no_answer", None, "no_answer"),
]

NUMBERS = [
    Shape("72", "text", "1,234", "not_canonical", "1234", needed=("thousands",), space=NUMBER),
    Shape("72 comma", "text", "1,23", "conflicting_answers", ("1.23", "123"), space=NUMBER),
    Shape("74", "text", "$29.00", "not_canonical", "29", needed=("currency",), space=NUMBER),
    Shape("75", "text", "\\$460", "not_canonical", "460", needed=("currency",), space=NUMBER),
    Shape("75 earlier", "text", "5 boxes make\n\\$460 or so", "extra_text", None, "no_answer", space=NUMBER),
    Shape("77", "text", "50%", "not_canonical", "50", needed=("percent",), space=NUMBER),
    Shape("78", "text", "3/4", "not_canonical", "0.75", needed=("fraction",), space=NUMBER),
    Shape("78 third", "text", "2/6", "not_canonical", "1/3", space=NUMBER),
    Shape("80", "text", "1.5e3", "not_canonical", "1500", needed=("scientific",), space=NUMBER),
    Shape("80 power", "text", "1.5 x 10^3", "not_canonical", "1500", needed=("scientific",), space=NUMBER),
    Shape("81", "text", "-3", None, "-3", needed=(), space=NUMBER),
    Shape("81 sign", "text", "−3", "not_canonical", "-3", needed=("unicode_minus",), space=NUMBER),
    Shape("81 bullet", "text", "- 3", "extra_text", None, "no_answer", space=NUMBER),
    Shape("83", "text", "1.234,56", "conflicting_answers", ("1234.56", "1.23456"), space=NUMBER),
    Shape("84", "text", "**73**", "not_canonical", "73", needed=("markdown",), space=NUMBER),
    Shape("85", "text", "so \\boxed{840} and \\boxed{840}", "extra_text", "840", space=NUMBER),
    Shape("85 two", "text", "so \\boxed{840} and \\boxed{84}", "extra_text", ("840", "84"), space=NUMBER),
    Shape("87", "text", "4 or 5", "conflicting_answers", ("4", "5"), space=NUMBER),
    Shape("87 between", "text", "between 3 and 5", "conflicting_answers", ("3", "5"), space=NUMBER),
    Shape("88", "text", "10⁵", "not_canonical", "100000", needed=("superscript",), space=NUMBER),
    Shape("88 half", "text", "1½", "not_canonical", "1.5", needed=("vulgar_fraction",), space=NUMBER),
    Shape("88 square", "text", "7²", "extra_text", None, "no_answer", space=NUMBER),
    Shape("unit", "text", "18 apples", "extra_text", "18", needed=("unit",), space=NUMBER),
    Shape("unit million", "text", "18 million", "extra_text", None, "no_answer", space=NUMBER),
    Shape("zeros", "text", "18.00", "not_canonical", "18", needed=("number_form",), space=NUMBER),
    Shape("last line", "text", "3 + 6 = 9 in all\n#### 9", "extra_text", "9", space=NUMBER),
    Shape("labelled", "text", "We add them up.\nTotal: 9", "extra_text", "9", space=NUMBER),
]

SCRATCHPAD = [
    Shape("89", "text", "<think>A?</think>B", "not_in_choices", "B", needed=("think_block",)),
    Shape("91", "text", "first A ... </think>B", "no_answer", "B", needed=("think_block",)),
    Shape("93", "text", "<Think>A</Think>\nB", "extra_text", "B", needed=("think_block",)),
    Shape("93 mm", "text", "<mm:think>A</mm:think>B", "not_in_choices", "B", needed=("think_block",)),
    Shape("93 thought", "text", "<thought>A</thought>B", "not_in_choices", "B", needed=("think_block",)),
    Shape("94", "json", '<think>{"answer":"A"}</think>{"answer":"B"}', "extra_text", "B", needed=("think_block",)),
    Shape("95", "text", "<answer>B", "not_in_choices", "B", needed=("tag",)),
    Shape("95 rest", "text", "<answer>B is what they say", "no_answer", None, "no_answer"),
    Shape("96", "text", "<think>x</tool><answer>B</answer>", "not_in_choices", "B", needed=("think_block", "tag")),
    Shape("96 open", "text", "<think>maybe B", "extra_text", None, "content_in_reasoning"),
    Shape("98", "text", "e.g. <answer>X</answer> so <answer>B</answer>", "no_answer", ("B", "X")),
    Shape("98 equal", "text", "<answer>B</answer> yes <answer>B</answer>", "no_answer", "B"),
    Shape("99", "text", "[[ ## why ## ]] ok[[ ## answer ## ]] B", "extra_text", "B", needed=("field_marker",)),
    Shape("100", "fields", "", "empty", None, "empty"),
    Shape("102", "fields", "final_answer : B", "field_missing", "B", needed=("key_variant",)),
    Shape("103 null", "json", '{"answer": null}', "wrong_type", None, "wrong_type", space=TEXT),
    Shape("103 text", "fields", "The answer is unclear.", "field_missing", None, "field_missing", space=TEXT),
    Shape("103", "text", "Answer: None (cannot decide)", "no_answer", None, "no_answer"),
    Shape("104", "text", "Answer: A\nObservation:\nAnswer: B", "extra_text", ("A", "B")),
    Shape("106", "text", "B<eos>", "not_canonical", "B", needed=("special_token",)),
    Shape("106 im", "text", "B<|im_end|>", "not_canonical", "B", needed=("special_token",)),
    Shape("108", "text", "Answer: <letter>", "no_answer", None, "placeholder_echo"),
    Shape("108 json", "json", '{"answer": "<letter>"}', "placeholder_echo", None, "placeholder_echo"),
    Shape("108 words", "text", "[YOUR ANSWER]", "placeholder_echo", None, "placeholder_echo"),
    Shape("108 dots", "fields", "answer: ...", "placeholder_echo", None, "placeholder_echo"),
    Shape("108 pipe", "text", "yes|no", "placeholder_echo", None, "placeholder_echo", space=BOOLEAN),
]

SHAPES = [*RESPONSE, *JSON, *CHOICES, *NUMBERS, *SCRATCHPAD]


def reply_of(shape: Shape) -> Reply:
    return shape.reply if isinstance(shape.reply, Reply) else Reply(shape.reply, "stop")


def said(outcome: Outcome) -> str | tuple[str, ...] | None:
    return outcome.candidates if outcome.outcome == "ambiguous" else outcome.value


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.row)
def test_normalized_reads_each_shape_soundly(shape: Shape) -> None:
    """Each shape gives exactly the value, the candidates or the reason that its row states."""
    outcome = NORMALIZED.read(reply_of(shape), CONTRACTS[shape.contract], shape.space)
    assert (said(outcome), outcome.reason) == (shape.normalized, shape.reason)
    if shape.needed is not None:
        assert outcome.needed == shape.needed


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.row)
def test_strict_gives_the_first_reason(shape: Shape) -> None:
    """Strict parses none of the shapes but those without a reason in their row, and names what stopped it."""
    outcome = STRICT.read(reply_of(shape), CONTRACTS[shape.contract], shape.space)
    assert outcome.reason == shape.strict
    assert (outcome.outcome == "parsed") == (shape.strict is None)
