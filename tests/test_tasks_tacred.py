"""TACRED from a local copy: sentence, subject and object in the question, the relations as labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import FileError
from auditor.parsing import canonical
from auditor.records import AnswerSpace, Item, Task
from auditor.tasks import load_task, read_tacred

ROW: dict[str, Any] = {
    "id": "e1", "docid": "d1", "relation": "org:founded_by", "stanford_pos": ["NNP"],
    "token": ["Tom", "Thabane", "founded", "the", "All", "Basotho", "Convention", "-LRB-", "ABC", "-RRB-", "."],
    "subj_start": 4, "subj_end": 6, "obj_start": 0, "obj_end": 1, "subj_type": "ORGANIZATION", "obj_type": "PERSON",
}  # fmt: skip


def write(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "tacred.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refusal(path: Path) -> FileError:
    with pytest.raises(FileError) as caught:
        read_tacred(path, canonical)
    return caught.value


def test_items(tmp_path: Path) -> None:
    """The question shows sentence, subject and object with their types; spans include their end; brackets are
    written as people write them; the labels are the relations that occur; a sentence's pairs are a cluster."""
    other = {**ROW, "id": "e2", "relation": "no_relation", "subj_start": 8, "subj_end": 8}
    path = write(tmp_path, [ROW, other])
    sentence = "Tom Thabane founded the All Basotho Convention ( ABC ) ."
    space = AnswerSpace("label", ("no_relation", "org:founded_by"))
    cluster = "893672d8de197000"  # printf '%s' "$sentence" | sha256sum | cut -c -16
    columns = {
        "sentence": sentence, "subject": "All Basotho Convention", "object": "Tom Thabane",
        "subject_type": "ORGANIZATION", "object_type": "PERSON",
    }  # fmt: skip
    question = (
        f"{sentence}\n\nSubject: All Basotho Convention (ORGANIZATION)\nObject: Tom Thabane (PERSON)\n"
        "What is the relation of the subject to the object?"
    )
    task = read_tacred(path, canonical)
    assert task == Task(
        "tacred",
        (
            Item("e1", question, space, "org:founded_by", cluster=cluster, columns=columns),
            Item(
                "e2",
                question.replace("Subject: All Basotho Convention", "Subject: ABC"),
                space,
                "no_relation",
                cluster=cluster,
                columns={**columns, "subject": "ABC"},
            ),
        ),
        source=str(path),
    )


def test_by_path(tmp_path: Path) -> None:
    """A .json path is read as TACRED."""
    path = write(tmp_path, [ROW])
    assert load_task(str(path), 0, {}, canonical) == read_tacred(path, canonical)


def test_no_such_file() -> None:
    """A .json path that is not there says so."""
    with pytest.raises(FileError, match=r"none\.json: no such file"):
        load_task("data/none.json", 0, {}, canonical)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[", "not TACRED: Input data was truncated"),
        (b"\xff", "not TACRED: JSON is malformed: invalid character (byte 0)"),
        ({"data": []}, "not TACRED: Expected `array`, got `object`"),
        ([], "not TACRED: an empty list"),
        ([{"question": "q"}], "not TACRED: Object missing required field `id` - at `$[0]`"),
        ([ROW, {**ROW, "subj_start": "4"}], "not TACRED: Expected `int`, got `str` - at `$[1].subj_start`"),
        ([ROW, ROW], "the id 'e1' stands there twice - at `$[1]`"),
        ([{**ROW, "relation": ""}], "relation: '' is empty, or has white space around it - at `$[0]`"),
        ([{**ROW, "id": " e1"}], "id: ' e1' is empty, or has white space around it - at `$[0]`"),
        ([{**ROW, "subj_end": 11}], "subj_start, subj_end: 4 to 11 is no span of 11 tokens - at `$[0]`"),
        ([{**ROW, "obj_start": -1}], "obj_start, obj_end: -1 to 1 is no span of 11 tokens - at `$[0]`"),
        ([{**ROW, "obj_start": 2}], "obj_start, obj_end: 2 to 1 is no span of 11 tokens - at `$[0]`"),
    ],
)
def test_anything_else(tmp_path: Path, content: Any, message: str) -> None:
    """Any other JSON is one line with the object and the value, and the hint says what a .json task is."""
    path = write(tmp_path, content)
    error = refusal(path)
    assert str(error) == f"{path}: {message}"
    assert "a .json task is TACRED" in error.hint


def test_deep_nesting(tmp_path: Path) -> None:
    """A file made to exhaust the reader is an error like any other."""
    assert "not TACRED" in str(refusal(write(tmp_path, b'[{"x":' + b"[" * 100_000)))


def test_unreadable(tmp_path: Path) -> None:
    """A folder is no file."""
    assert str(refusal(tmp_path)) == f"{tmp_path}: cannot be read: Is a directory"
