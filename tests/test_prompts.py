"""Item x wrapper -> messages."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.prompts import answer_hint, characters, content, fill, filler, has_slot, render
from auditor.records import AnswerSpace, Contract, Item, Message, Wrapper

CHOICE = AnswerSpace("choice", ("A", "B"), ("copper", "wood"))
NUMBER = AnswerSpace("number")
TEXT = Contract("text")


def gold_reply(contract: Contract, value: str, space: AnswerSpace) -> str:
    """A reply that says all it was given."""
    return f"{contract.kind}/{space.type}: {value}"


def wrapper(*turns: str, example: str = "", separator: str = "\n\n", contract: Contract = TEXT) -> Wrapper:
    """A wrapper of user turns, with an assistant turn between two."""
    messages = [Message("user", turn) for turn in turns]
    for at in range(len(messages) - 1, 0, -1):
        messages.insert(at, Message("assistant", "Go on."))
    return Wrapper("w", 1, "own", "", "", tuple(messages), contract, (), example, separator, "w.toml", "d")


def item(question: str = "Which conducts?", space: AnswerSpace = CHOICE, **more: object) -> Item:
    return Item(id="q", question=question, space=space, gold="A", **more)  # type: ignore[arg-type]


def text(one: Wrapper, of: Item, shots: tuple[Item, ...] = (), pad: str = "") -> str:
    """The last turn of a prompt."""
    return render(one, of, shots, gold_reply, pad)[-1].content


# Filling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("a {{x}} b", "a 1 b"),
        ("{{x}}{{y}}{{x}}", "1{{x}}1"),
        (r"\{{x}} {{x}}", "{{x}} 1"),
        ('{"x": {"x": {{x}}}}', '{"x": {"x": 1}}'),
        ("{{{x}}}", "{1}"),
        ("{{z}} {{X}} {{ x }} {x} $x", "{{z}} {{X}} {{ x }} {x} $x"),
        ("{{x", "{{x"),
    ],
)
def test_fill(template: str, filled: str) -> None:
    """Each {{name}} that is known is replaced once, `\\{{` becomes `{{`, and everything else stays."""
    assert fill(template, {"x": "1", "y": "{{x}}"}) == filled


pieces = st.lists(st.sampled_from(["{{x}}", "{{y}}", r"\{{", "{{", "}}", "\\", "x", "text ", "\n", "{"]), max_size=8)


@given(pieces.map("".join), pieces.map("".join))
def test_inserted_text_is_never_scanned_again(x: str, y: str) -> None:
    """Whatever is inserted arrives as it is, even where it looks like a placeholder or an escape."""
    assert fill("<{{x}}|{{y}}|{{x}}>", {"x": x, "y": y}) == f"<{x}|{y}|{x}>"


@given(st.text())
def test_a_template_without_placeholders_stays(template: str) -> None:
    """Text that asks for nothing is sent as written."""
    if "{{" not in template:
        assert fill(template, {"x": "1"}) == template


@given(pieces.map("".join), pieces.map("".join))
def test_an_item_cannot_speak_as_the_wrapper(question: str, column: str) -> None:
    """A question or a column that holds {{pad}} or {{question}} reaches the model as it is."""
    asked = item(question + "{{pad}}{{question}}", NUMBER, columns={"note": column + "{{content}}"})
    sent = text(wrapper("{{note}}|{{question}}|{{pad}}|"), asked, pad="   ")
    assert sent == f"{column}{{{{content}}}}|{question}{{{{pad}}}}{{{{question}}}}|   |"


# What a wrapper can name ---------------------------------------------------------------------------------------


def test_content_is_parts_question_and_lettered_choices() -> None:
    """Parts are joined with the wrapper's separator, then come the question and one lettered line a choice."""
    asked = item(parts=("a: 1", "b: 2"))
    assert content(asked, "; ") == "a: 1; b: 2\nWhich conducts?\nA. copper\nB. wood"
    assert text(wrapper("{{content}}", separator=" & "), asked) == "a: 1 & b: 2\nWhich conducts?\nA. copper\nB. wood"
    assert content(item("How many?", NUMBER), "; ") == "How many?"


def test_labels_without_texts_are_not_listed() -> None:
    """A closed set of labels stands in the hint, not below the question."""
    space = AnswerSpace("label", ("billing", "other"))
    assert text(wrapper("{{content}}|{{choices}}|{{answer_hint}}"), item("Q", space)) == "Q||one of billing, other"


def test_parts_of_the_content() -> None:
    """Question, choices, separator and the cases' own columns can be placed one by one."""
    one = wrapper("{{ticket}}: {{choices}}{{separator}}{{question}}", separator=" # ")
    assert text(one, item(columns={"ticket": "T1"})) == "T1: A. copper\nB. wood # Which conducts?"


def test_our_names_win_over_columns() -> None:
    """A column called as one of our placeholders does not replace it."""
    columns = {"question": "no", "content": "no", "pad": "no", "examples": "no"}
    assert text(wrapper("{{question}}{{pad}}{{examples}}"), item(columns=columns)) == "Which conducts?"


@pytest.mark.parametrize(
    ("space", "hint"),
    [
        (CHOICE, "one of A, B"),
        (AnswerSpace("label", ("billing", "other")), "one of billing, other"),
        (AnswerSpace("label"), "the answer"),
        (AnswerSpace("boolean"), "true or false"),
        (NUMBER, "a number"),
        (AnswerSpace("json"), "an object that fits the schema"),
        (AnswerSpace("text"), "the answer"),
    ],
)
def test_answer_hint(space: AnswerSpace, hint: str) -> None:
    """The hint says what an answer of each type can be."""
    assert answer_hint(space) == hint
    assert text(wrapper("{{answer_hint}}"), item(space=space)) == hint


def test_the_contracts_schema_can_be_shown() -> None:
    """{{schema}} is the contract's JSON Schema, and nothing where it has none."""
    schema = {"type": "object", "title": "{{pad}}"}
    shown = text(wrapper("{{schema}}", contract=Contract("json", schema=schema)), item(), pad=" ")
    assert json.loads(shown) == schema
    assert text(wrapper("[{{schema}}]"), item()) == "[]"


def test_every_turn_is_filled() -> None:
    """System, user and assistant turns keep their roles and order, and each is filled."""
    turns = (
        Message("system", "{{answer_hint}}"),
        Message("user", "{{choices}}"),
        Message("assistant", r"\{{x}}"),
        Message("user", "{{question}} {{pad}}."),
    )
    told = msgspec.structs.replace(wrapper("x"), messages=turns)
    sent = render(told, item(), (), gold_reply, "--")
    assert sent == (
        Message("system", "one of A, B"),
        Message("user", "A. copper\nB. wood"),
        Message("assistant", "{{x}}"),
        Message("user", "Which conducts? --."),
    )
    assert characters(sent) == 11 + 17 + 5 + 19


def test_the_slot() -> None:
    """A wrapper has a slot in any of its turns; an escaped one is text."""
    assert has_slot(wrapper("a {{pad}} b"))
    assert has_slot(wrapper("a {{pad}} b", "{{content}}"))
    assert not has_slot(wrapper("{{content}}"))
    assert not has_slot(wrapper(r"a \{{pad}} {{content}}"))


# Worked examples -----------------------------------------------------------------------------------------------

SHOTS = (item("One?", NUMBER), item("Two?"))


def test_shots_by_default() -> None:
    """An example is content and the contract's gold reply; examples stand before the last user turn, a blank line
    between two and before the question."""
    sent = text(wrapper("{{content}}|{{pad}}|"), item("Three?", NUMBER), SHOTS, pad="  ")
    assert sent == "One?\ntext/number: A\n\nTwo?\nA. copper\nB. wood\ntext/choice: A\n\nThree?|  |"


def test_shots_as_a_wrapper_says() -> None:
    """`example` and `separator` say how examples look, {{examples}} where they stand."""
    one = wrapper("Learn:\n{{examples}}\nNow: {{question}}", example="Q {{question}} = {{reply}}", separator=" ; ")
    sent = text(one, item("Three?"), SHOTS)
    assert sent == "Learn:\nQ One? = text/number: A ; Q Two? = text/choice: A\nNow: Three?"


def test_the_separator_stands_before_the_question_too() -> None:
    """A wrapper's own separator stands between two examples and between them and the question."""
    sent = text(wrapper("{{question}}", separator=" # "), item("Three?"), SHOTS)
    assert sent == "One?\ntext/number: A # Two?\nA. copper\nB. wood\ntext/choice: A # Three?"


def test_shots_of_a_conversation_go_to_its_last_turn() -> None:
    """Without {{examples}} only the last user turn carries the examples."""
    sent = render(wrapper("Ready?", "{{question}}"), item("Three?"), SHOTS[:1], gold_reply, "")
    assert sent == (
        Message("user", "Ready?"),
        Message("assistant", "Go on."),
        Message("user", "One?\ntext/number: A\n\nThree?"),
    )


def test_no_shots_no_trace() -> None:
    """Without worked examples {{examples}} is empty and nothing stands before the question."""
    assert text(wrapper("{{examples}}{{question}}"), item("Three?")) == "Three?"
    assert text(wrapper("{{question}}"), item("Three?")) == "Three?"


def test_an_escaped_examples_is_no_place_for_them() -> None:
    """A literal {{examples}} does not swallow the worked examples."""
    sent = text(wrapper(r"\{{examples}} {{question}}"), item("Three?"), SHOTS[:1])
    assert sent == "One?\ntext/number: A\n\n{{examples}} Three?"


def test_an_examples_text_is_never_scanned() -> None:
    """What a worked example says arrives as it is, and it never holds padding."""
    shot = item("{{pad}} {{reply}}?", NUMBER, columns={"note": "{{question}}"})
    one = wrapper("{{question}}{{pad}}", example="{{note}} {{question}} {{pad}}{{reply}}")
    assert text(one, item("Three?"), (shot,), pad="  ") == (
        "{{question}} {{pad}} {{reply}}? text/number: A\n\nThree?  "
    )


def test_the_columns_of_an_example_are_its_own() -> None:
    """A column in `example` is the example's, not the item's."""
    shot = item("One?", NUMBER, columns={"ticket": "T1"})
    one = wrapper("{{ticket}} {{question}}", example="{{ticket}} {{reply}}")
    assert text(one, item("Three?", columns={"ticket": "T9"}), (shot,)) == "T1 text/number: A\n\nT9 Three?"


@given(st.integers(0, 5000))
def test_filler_is_white_space_of_exactly_that_length(length: int) -> None:
    """Lines of three spaces, cut where the budget ends."""
    assert len(filler(length)) == length
    assert filler(length).strip() == ""
    assert filler(6) == "   \n  "
