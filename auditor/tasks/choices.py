"""The choices of an item, however a file writes them, and which of them an answer means."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct

from auditor.records import AnswerSpace
from auditor.tasks.table import json_value, plain

Canonical = Callable[[str, AnswerSpace], str | None]
"""The canonical value of a gold answer in its space; None when it is none of that space."""

LETTERS = tuple(string.ascii_uppercase)


class Choices(Struct, frozen=True):
    """Option texts, shown as A, B, ... in order. `names` are the source's own labels, or empty where it has none."""

    texts: tuple[str, ...]
    names: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What a reply names."""
        return LETTERS[: len(self.texts)]

    @property
    def space(self) -> AnswerSpace:
        """The space of a choice item."""
        return AnswerSpace("choice", self.labels, self.texts)

    def named(self, answer: str) -> str | None:
        """The label of the choice with this source label, or with this letter where the source has no labels."""
        names = self.names or self.labels
        return self.labels[names.index(answer)] if answer in names else None

    def saying(self, answer: str) -> str | None:
        """The label of the only choice with exactly this text, apart from white space around it."""
        texts = [text.strip() for text in self.texts]
        return self.labels[texts.index(answer)] if texts.count(answer) == 1 else None

    def __str__(self) -> str:
        shown = zip(self.names or self.labels, self.texts, strict=True)
        return ", ".join(f"{name}: {text!r}" for name, text in shown)


def read_choices(value: Any) -> Choices:
    """Choices from a list of texts, an object label -> text, an object {"text": [...], "label": [...]}, or any of
    these as JSON text, or from texts that `|` separates. Raises ValueError, whose message follows `choices: `."""
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, dict):
        names, texts = _lists(value)
    else:
        names, texts = [], read_list(value)
    choices = Choices(tuple(map(_text, texts)), tuple(map(_text, names)))
    if len(choices.texts) > len(LETTERS):
        raise ValueError(f"{len(choices.texts)} of them, and there are {len(LETTERS)} letters")
    if len(choices.texts) < 2:
        raise ValueError(f"{len(choices.texts)} of them, but a choice needs two")
    return choices


def read_list(value: Any) -> list[Any]:
    """A list, a JSON list as text, or texts that `|` separates. Raises ValueError."""
    if isinstance(value, str):
        value = _parsed(value)
    if not isinstance(value, list):
        raise ValueError("not a list")
    return value


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return [part.strip() for part in text.split("|")]
    try:
        return json_value(text)
    except ValueError as error:
        raise ValueError(f"neither JSON nor texts with | between them: {error}") from None


def _lists(value: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Labels and texts of an object, in either of its two forms."""
    if set(value) == {"text", "label"} and all(isinstance(part, list) for part in value.values()):
        names, texts = value["label"], value["text"]
    else:
        names, texts = list(value), list(value.values())
    if len(names) != len(texts):
        raise ValueError(f"{len(texts)} texts, but {len(names)} labels")
    if len({_text(name) for name in names}) < len(names):
        raise ValueError("two of them have the same label")
    return names, texts


def _text(value: Any) -> str:
    if isinstance(value, (str, bool, int, float, Raw)) and plain(value).strip():
        return plain(value)
    raise ValueError("each must be a text that is not empty")
