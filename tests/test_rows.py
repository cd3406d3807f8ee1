"""Rows that cross the border: what is accepted, and the line that is named otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples import write_jsonl

from auditor.errors import FileError
from auditor.parsing import canonical
from auditor.records import CellKey
from auditor.rows import item_of, read_cells, read_rows

ROW: dict[str, object] = {"model": "m", "task": "t", "item": "i", "wrapper": "json", "text": "B"}


def fails(path: Path) -> str:
    with pytest.raises(FileError) as caught:
        [item_of(path, number, row, canonical) for number, row in read_rows(path)]
    return caught.value.message.removeprefix(f"{path}:")


def test_unknown_keys_are_kept(tmp_path: Path) -> None:
    """A key we do not know goes to extra; seed, status and arm have defaults."""
    path = write_jsonl(tmp_path / "r.jsonl", [{**ROW, "trace": {"id": 1}, "extra": {"x": 2}}])
    [(line, row)] = read_rows(path)
    assert (line, row.seed, row.status, row.arm, row.extra) == (1, 0, "answered", "none", {"trace": {"id": 1}, "x": 2})


def test_tool_calls_may_be_nested(tmp_path: Path) -> None:
    """The list an API returns is kept as its JSON."""
    path = write_jsonl(tmp_path / "r.jsonl", [{**ROW, "tool_calls": [{"id": "c"}]}])
    assert [row.tool_calls for _, row in read_rows(path)] == ['[{"id":"c"}]']


def test_blank_lines_and_a_bom_are_passed_over(tmp_path: Path) -> None:
    """Line numbers still count them."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(ROW).encode() + b"\n\n" + json.dumps(ROW).encode())
    assert [line for line, _ in read_rows(path)] == [1, 3]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"model": "m"', "2: not JSON"),
        ("[1]", "2: a line must be a JSON object, not list"),
        (json.dumps({**ROW, "seed": "x"}), "2: Expected `int`, got `str`: `seed`"),
        (json.dumps({k: v for k, v in ROW.items() if k != "item"}), "2: Object missing required field `item`"),
        (
            json.dumps({**ROW, "text": None, "parsed": False, "correct": True}),
            "2: correct is true where parsed is false",
        ),
        (json.dumps({**ROW, "text": None, "correct": True}), "2: correct without parsed"),
        (json.dumps({**ROW, "parsed": True}), "2: both text and parsed"),
        (json.dumps({**ROW, "status": "lost"}), "2: Invalid enum value 'lost': `status`"),
        (
            json.dumps({"txt" if key == "text" else key: value for key, value in ROW.items()}),
            "2: no text; keys: 'model', 'task', 'item', 'wrapper', 'txt'",
        ),
        (json.dumps({**ROW, "choices": ["A", "B"], "gold": "E"}), "2: gold 'E' is no choice answer (choices: A, B)"),
        (json.dumps({**ROW, "answer_type": "number", "gold": "many"}), "2: gold 'many' is no number answer"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    """File, line, field and value are in one message."""
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + line + "\n")
    assert fails(path).startswith(said)


@pytest.mark.parametrize(
    ("key", "hint"), [("txt", "did you mean text by 'txt'"), ("completion", "the reply is the key text, null")]
)
def test_a_misspelt_text_gets_a_hint(tmp_path: Path, key: str, hint: str) -> None:
    """The nearest key, or what the key must be called."""
    row = {name: value for name, value in ROW.items() if name != "text"} | {key: "B", "refusal": None}
    with pytest.raises(FileError) as caught:
        list(read_rows(write_jsonl(tmp_path / "r.jsonl", [row])))
    assert caught.value.hint.startswith(hint)


def test_a_row_may_lack_a_text_for_a_reason(tmp_path: Path) -> None:
    """An explicit null, a missing reply, one scored elsewhere, or one whose answer stands elsewhere."""
    bare = {key: value for key, value in ROW.items() if key != "text"}
    reasons = [{"text": None}, {"status": "missing"}, {"parsed": False}, {"refusal": "no"}, {"reasoning": "so"}]
    reasons.append({"tool_calls": []})
    path = write_jsonl(tmp_path / "r.jsonl", [{**bare, **reason} for reason in reasons])
    assert [row.text for _, row in read_rows(path)] == [None] * 6


def test_a_table_of_cells(tmp_path: Path) -> None:
    """Parseability and arm may be absent or empty."""
    path = tmp_path / "c.csv"
    path.write_text("\ufeffmodel,task,wrapper,n,accuracy,parseability\nm,t,json,200,0.5,\nm,t,plain,200,0.25,0.75\n")
    assert list(read_cells(path)) == [
        (CellKey("m", "t", "json", "none"), 200, 0.5, None),
        (CellKey("m", "t", "plain", "none"), 200, 0.25, 0.75),
    ]


@pytest.mark.parametrize(
    "text", ["model,task,wrapper,accuracy\nm,t,w,0.5\n", "model,task,wrapper,n,accuracy\nm,t,w,,0.5\n"]
)
def test_a_table_need_not_say_n(tmp_path: Path, text: str) -> None:
    """Published tables often have none: without the column, or with an empty field, n is not known."""
    path = tmp_path / "c.csv"
    path.write_text(text)
    assert list(read_cells(path)) == [(CellKey("m", "t", "w", "none"), None, 0.5, None)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,task,wrapper,n\n", ":1: no column 'accuracy'"),
        ("model,task,wrapper,n,accuracy\nm,t,w,10,57.2\n", ":2: accuracy '57.2' is not a share between 0 and 1"),
        ("model,task,wrapper,n,accuracy\nm,t,w,10,nan\n", ":2: accuracy 'nan' is not a share"),
        ("model,task,wrapper,n,accuracy\nm,t,w,0,0.5\n", ":2: n '0' is not a count"),
        ("model,task,wrapper,n,accuracy\nm,t,w,9,0.5\nm,t,w,9,0.5\n", ":3: the cell of line 2 again"),
        ("model,task,wrapper,n,accuracy,parseability\nm,t,w,9,0.5,0.4\n", ":2: accuracy 0.5 is above parseability 0.4"),
    ],
)
def test_a_bad_table_is_named(tmp_path: Path, text: str, said: str) -> None:
    """File, line, column and value are in one message."""
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        list(read_cells(path))
    assert caught.value.message.removeprefix(str(path)).startswith(said)
