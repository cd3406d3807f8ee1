"""TACRED from the user's own copy: it is licensed (LDC2018T24), so no hub has it.

Zhang et al., 2017: Position-aware Attention and Supervised Data Improve Slot Filling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from auditor.errors import FileError
from auditor.records import AnswerSpace, Item, Task
from auditor.tasks.choices import Canonical

_HINT = "a .json task is TACRED: a list of objects with token, relation, subj_start, ...; else a .jsonl file"
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""As the set's tokenizer writes them."""


class Example(Struct, frozen=True):
    """One object of the file. Positions count tokens from 0, and the end is part of the span."""

    id: str
    relation: str
    token: tuple[str, ...]
    subj_start: int
    subj_end: int
    obj_start: int
    obj_end: int
    subj_type: str
    obj_type: str

    @property
    def subject(self) -> str:
        """The subject's words."""
        return _words(self.token[self.subj_start : self.subj_end + 1])

    @property
    def object(self) -> str:
        """The object's words."""
        return _words(self.token[self.obj_start : self.obj_end + 1])


def read_tacred(path: Path, canonical: Canonical) -> Task:
    """The task in one of TACRED's files (`train.json`, `dev.json`, `test.json`), named by the file's stem.

    The answer is a label, one of all relations that occur in the file. The pairs of one sentence are a cluster.
    Raises FileError for a .json file that is anything else, naming the object by its number, from 0.
    """
    examples = _examples(path)
    space = AnswerSpace("label", tuple(sorted({example.relation for example in examples})))
    ids: set[str] = set()
    items = []
    for number, example in enumerate(examples):
        if fault := _fault(example, ids):
            raise FileError(path, f"{fault} - at `$[{number}]`", _HINT)
        ids.add(example.id)
        items.append(_item(example, space, canonical(example.relation, space)))
    return Task(path.stem, tuple(items), source=str(path))


def _examples(path: Path) -> list[Example]:
    try:
        examples = msgspec.json.decode(path.read_bytes(), type=list[Example])
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(path, f"not TACRED: {error}", _HINT) from error
    if not examples:
        raise FileError(path, "not TACRED: an empty list", _HINT)
    return examples


def _fault(example: Example, ids: set[str]) -> str:
    """What is wrong with an example, or nothing."""
    if example.id in ids:
        return f"the id {example.id!r} stands there twice"
    for name in ("id", "relation"):
        if getattr(example, name).strip() != getattr(example, name) or not getattr(example, name):
            return f"{name}: {getattr(example, name)!r} is empty, or has white space around it"
    for name, first, last in (
        ("subj", example.subj_start, example.subj_end),
        ("obj", example.obj_start, example.obj_end),
    ):
        if not 0 <= first <= last < len(example.token):
            return f"{name}_start, {name}_end: {first} to {last} is no span of {len(example.token)} tokens"
    return ""


def _item(example: Example, space: AnswerSpace, gold: str | None) -> Item:
    sentence = _words(example.token)
    question = (
        f"{sentence}\n\nSubject: {example.subject} ({example.subj_type})\n"
        f"Object: {example.object} ({example.obj_type})\nWhat is the relation of the subject to the object?"
    )
    cluster = hashlib.sha256(sentence.encode()).hexdigest()[:16]
    columns = {"sentence": sentence, "subject": example.subject, "object": example.object}
    columns |= {"subject_type": example.subj_type, "object_type": example.obj_type}
    return Item(example.id, question, space, gold, cluster=cluster, columns=columns)


def _words(tokens: Sequence[str]) -> str:
    return " ".join(_BRACKETS.get(token, token) for token in tokens)
