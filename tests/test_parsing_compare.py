"""JSON answers compared field by field: each rule, what is not known, and laws that hold for any text."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.parsing import compare
from auditor.records import AnswerSpace, Contract, FieldRule

EXACT = FieldRule("/a", "exact")
TEXT = FieldRule("/a", "text")
CENT = FieldRule("/a", "number", 0.01)
RULES = (EXACT, FieldRule("/b", "text"), FieldRule("/c/0", "number", 0.5), FieldRule("/d", "number"))

PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
TREES = PARTS.map(json.dumps)
TEXTS = st.none() | st.text() | TREES


def right(value: str, gold: str, rule: FieldRule) -> bool | None:
    """Whether the field `a` of an answer is right, both given as the field's JSON."""
    return compare.fields(f'{{"a": {value}}}', f'{{"a": {gold}}}', (rule,))["/a"]


@pytest.mark.parametrize(
    ("value", "gold", "expected"),
    [
        ('"Billing"', '"Billing"', True),
        ('"billing"', '"Billing"', False),
        ('"Billing "', '"Billing"', False),
        ("18.00", "18", True),
        ("1.8e1", "18", True),
        ("-0", "0", True),
        ("18", '"18"', False),
        ("1e400", "1e400", True),
        ("1e400", "1e401", False),
        ("1e999999999", "2e999999999", False),
        ("true", "1", False),
        ("true", "true", True),
        ("null", "null", True),
        ('""', "null", False),
        ('{"x": 1, "y": [2, 3]}', '{"y": [2.0, 3], "x": 1}', True),
        ("[2, 3]", "[3, 2]", False),
        ('{"x": 1, "y": 2}', '{"x": 1}', False),
    ],
)
def test_exact_is_equal_json(value: str, gold: str, expected: bool) -> None:
    """Strings to the character, numbers by what they are worth, objects in any order of keys, lists in theirs."""
    assert right(value, gold, EXACT) is expected


@pytest.mark.parametrize(
    ("value", "gold", "expected"),
    [
        ('"  new\\n YORK"', '"New York"', True),
        ('"STRASSE"', '"straße"', True),
        ('"New York."', '"New York"', False),
        ('"New-York"', '"New York"', False),
        ("null", "null", True),
        ("18", '"18"', False),
        ("18.0", "18", True),
    ],
)
def test_text_folds_case_and_white_space(value: str, gold: str, expected: bool) -> None:
    """Of two strings only case and white space are passed over; what is no string is compared exactly."""
    assert right(value, gold, TEXT) is expected


@pytest.mark.parametrize(
    ("value", "gold", "expected"),
    [
        ("18.01", "18", True),
        ("17.99", "18", True),
        ("18.0100000000000000001", "18", False),
        ("0.3", "0.29", True),
        ('"$1,234.50"', "1234.5", True),
        ("1234.5", '"1,234.505"', True),
        ('"1,23"', "1.23", False),
        ('"4 or 5"', "4", False),
        ("true", "1", False),
        ("null", "0", False),
        ("null", "null", True),
        ('"n/a"', '"n/a"', True),
        ("1e400", "1e400", True),
        ("[18]", "18", False),
    ],
)
def test_number_has_an_exact_tolerance(value: str, gold: str, expected: bool) -> None:
    """Numbers, or strings that say exactly one, may be 0.01 apart and no more, without any rounding."""
    assert right(value, gold, CENT) is expected


def test_without_a_tolerance_a_number_is_that_number() -> None:
    """`number = 0` reads what a string says and accepts no difference."""
    rule = FieldRule("/a", "number")
    assert [right(value, "0.1", rule) for value in ('"0.10"', "1e-1", "0.1000001")] == [True, True, False]


def test_where_a_pointer_leads() -> None:
    """A field that the answer lacks is wrong, one that the gold answer lacks is not known, and null is a value."""
    rules = tuple(FieldRule(pointer, "exact") for pointer in ("/a", "/b/1", "/c~1d", "/e~0f", "/g", "/h"))
    gold = '{"a": null, "b": [1, 2], "c/d": 3, "e~f": 4, "h": 5}'
    assert compare.fields('{"b": [9, 2], "c/d": 3, "e~f": 4, "g": 7, "h": {}}', gold, rules) == {
        "/a": False,
        "/b/1": True,
        "/c~1d": True,
        "/e~0f": True,
        "/g": None,
        "/h": False,
    }


@pytest.mark.parametrize("value", [None, "", "{", "[]", "3", '"a"', '{"a": ' + "[" * 100_000, "\ud800"])
def test_an_answer_that_is_no_object_has_no_field_right(value: str | None) -> None:
    """What could not be read, and what is no JSON object, is wrong in every field that the gold answer has."""
    assert compare.fields(value, '{"a": 1}', (EXACT, FieldRule("/b", "text"))) == {"/a": False, "/b": None}


def test_without_gold_nothing_is_known() -> None:
    """An item whose answer is not known says nothing of any field."""
    found = compare.fields('{"a": 1}', None, (EXACT,))
    assert (found, compare.correct(found)) == ({"/a": None}, None)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"/a": True, "/b": True}, True),
        ({"/a": True, "/b": False}, False),
        ({"/a": True, "/b": None}, True),
        ({"/a": False, "/b": None}, False),
        ({"/a": None, "/b": None}, None),
    ],
)
def test_an_answer_is_correct_when_every_known_field_is(found: compare.Fields, expected: bool | None) -> None:
    """What is not known does not count; where nothing is, neither is correctness."""
    assert compare.correct(found) is expected


def test_only_json_answers_have_fields() -> None:
    """The rules of a contract hold for answers of type json; others are compared as ever."""
    contract = Contract("json", compare=(EXACT,))
    assert compare.rules(contract, AnswerSpace("json")) == (EXACT,)
    assert compare.rules(contract, AnswerSpace("label", ("x", "y"))) == ()
    assert compare.rules(Contract("json"), AnswerSpace("json")) == ()


@given(TEXTS, TEXTS)
def test_any_text_is_compared(value: str | None, gold: str | None) -> None:
    """No text is an error, and every field has a verdict of its own."""
    assert list(compare.fields(value, gold, RULES)) == [rule.pointer for rule in RULES]


@pytest.mark.parametrize("rule", [EXACT, TEXT, CENT])
@given(tree=PARTS)
def test_an_answer_is_right_about_itself(rule: FieldRule, tree: object) -> None:
    """Whatever a field holds, the same is right under every rule."""
    field = json.dumps(tree)
    assert right(field, field, rule) is True


NUMBERS = st.tuples(st.integers(-20, 20), st.integers(-2, 2), st.sampled_from(("", ".0", ".50"))).map(
    lambda parts: f"{parts[0]}{parts[2]}e{parts[1]}"
)


@given(NUMBERS, NUMBERS, st.sampled_from((0.0, 0.01, 0.5, 1.0)))
def test_distances_agree_with_decimals(value: str, gold: str, tolerance: float) -> None:
    """Equality and distance of numbers are those of `decimal`."""
    apart = abs(Decimal(value) - Decimal(gold))
    assert right(value, gold, EXACT) is (apart == 0)
    assert right(value, gold, FieldRule("/a", "number", tolerance)) is (apart <= Decimal(repr(tolerance)))


@pytest.mark.parametrize(("depth", "expected"), [(50, True), (300, True), (100_000, None)])
def test_depth_is_no_error(depth: int, expected: bool | None) -> None:
    """A field that is nested deeply is compared; what is too deep to read is no answer, and no gold answer either."""
    deep = "[" * depth + "]" * depth
    assert right(deep, deep, EXACT) is expected
    assert right(deep, "1", EXACT) is False
