"""Hand labels: what a person says that replies answer, as JSON Lines, one of a row."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import msgspec

from auditor.errors import FileError
from auditor.records import Row
from auditor.rows import read_objects, wrong_field

Identity: TypeAlias = tuple[str, str, str, str, str, int]
"""(model, task, item, wrapper, arm, seed)."""


class Label(msgspec.Struct, frozen=True):
    """One line: the row's identity and the value as text, None where the reply has no answer, or more than one."""

    model: str
    task: str
    item: str
    wrapper: str
    seed: int
    label: str | None
    arm: str = "none"
    ambiguous: bool = False


def identity(of: Row | Label) -> Identity:
    """Which row it is, or is about."""
    return (of.model, of.task, of.item, of.wrapper, of.arm, of.seed)


def described(key: Identity) -> str:
    """An identity in a message."""
    names = ("model", "task", "item", "wrapper", "arm", "seed")
    return ", ".join(f"{name} {value!r}" for name, value in zip(names, key, strict=True))


def read_labels(path: Path) -> dict[Identity, tuple[int, Label]]:
    """Line and label by identity; other keys of a line are passed over. Raises FileError with the line."""
    found: dict[Identity, tuple[int, Label]] = {}
    for number, tree in read_objects(path):
        try:
            label = msgspec.convert(tree, Label)
        except msgspec.ValidationError as error:
            hint = "label is the value as text, null where the reply has no answer"
            raise wrong_field(path, number, error, hint) from error
        if label.ambiguous and label.label is not None:
            raise FileError(path, f"ambiguous, and yet the label {label.label!r}", "give one of them", line=number)
        first = found.setdefault(identity(label), (number, label))[0]
        if first != number:
            raise FileError(path, f"a second label of the row of line {first}", line=number)
    return found
