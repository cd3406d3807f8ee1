"""Hand labels: what a line may say, and the line that is named otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples import write_jsonl

from auditor import border
from auditor.errors import FileError, UsageError
from auditor.records import Outcome

ROW: dict[str, object] = {"model": "m", "task": "t", "item": "1", "wrapper": "json", "seed": 0}
READ = {**ROW, "text": "B", "choices": {"A": "car", "B": "apple"}, "gold": "B"}
KEY = ("m", "t", "1", "json", "none", 0)


def labels(tmp_path: Path, told: list[dict[str, object]], rows: list[dict[str, object]] | None = None) -> object:
    source = write_jsonl(tmp_path / "rows.jsonl", [READ] if rows is None else rows)
    return border.hand_labels(write_jsonl(tmp_path / "labels.jsonl", told), source, ())


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"label": "B"}, (Outcome("parsed", "B"), True)),
        ({"label": "car", "note": "by its text"}, (Outcome("parsed", "A"), False)),
        ({"label": None}, (Outcome("unparseable"), False)),
        ({"label": None, "ambiguous": True, "arm": "none"}, (Outcome("ambiguous"), False)),
    ],
)
def test_a_label_is_a_canonical_value_or_none(tmp_path: Path, told: dict[str, object], expected: object) -> None:
    """A label, an option's text, null, or ambiguous; the arm may be left out; whether it is correct."""
    assert labels(tmp_path, [{**ROW, **told}]) == {KEY: expected}


def test_a_label_is_read_in_the_terms_of_its_row(tmp_path: Path) -> None:
    """A number as it may be written; without gold nothing is correct."""
    row = {**ROW, "text": "18", "answer_type": "number"}
    assert labels(tmp_path, [{**ROW, "label": "1,800.0"}], [row]) == {KEY: (Outcome("parsed", "1800"), None)}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([{"label": "E"}], "labels.jsonl:1: label 'E' is no choice answer (choices: A, B)"),
        ([{"label": "A", "item": "2"}], "has model 'm', task 't', item '2', wrapper 'json', arm 'none', seed 0"),
        ([{"label": "A"}, {"label": "A"}], "labels.jsonl:2: a second label of the row of line 1"),
        ([{}], "labels.jsonl:1: Object missing required field `label`"),
        ([{"label": 1}], "labels.jsonl:1: Expected `str | null`, got `int`: `label`"),
        ([{"label": "A", "ambiguous": True}], "labels.jsonl:1: ambiguous, and yet the label 'A'"),
    ],
)
def test_a_wrong_label_is_named(tmp_path: Path, told: list[dict[str, object]], said: str) -> None:
    """File, line and value are in one message."""
    with pytest.raises(FileError) as caught:
        labels(tmp_path, [{**ROW, **one} for one in told])
    assert said in caught.value.message


@pytest.mark.parametrize("key", ["model", "task", "item", "wrapper", "seed"])
def test_a_missing_identity_key_is_named(tmp_path: Path, key: str) -> None:
    """Every key of the identity but the arm must be there."""
    told = {name: value for name, value in ROW.items() if name != key} | {"label": "A"}
    with pytest.raises(FileError, match=rf"labels\.jsonl:1: Object missing required field `{key}`"):
        labels(tmp_path, [told])


def test_two_rows_of_one_label_are_an_error(tmp_path: Path) -> None:
    """It could be either; two rows that no label names are none of its business."""
    other = {**READ, "item": "2"}
    assert labels(tmp_path, [{**ROW, "label": "A"}], [other, other, READ])
    with pytest.raises(FileError, match=r"rows\.jsonl:3: a second row of what .*labels\.jsonl:1 labels"):
        labels(tmp_path, [{**ROW, "label": "A"}], [READ, other, READ])


def test_labels_need_a_source_that_can_be_read_twice(tmp_path: Path) -> None:
    """A pipe would be empty the second time."""
    told = tmp_path / "labels.jsonl"
    told.write_text(json.dumps({**ROW, "label": "A"}) + "\n")
    with pytest.raises(UsageError, match="/dev/null can be read only once"):
        border.hand_labels(told, Path("/dev/null"), ())
