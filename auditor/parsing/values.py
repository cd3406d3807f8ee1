"""Canonical values: what an answer is, apart from how a reply writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from auditor.parsing import numbers, strictjson
from auditor.parsing.peel import OPENING_THINK
from auditor.records import AnswerSpace

_TRUE = frozenset({"true", "yes", "1"})
_FALSE = frozenset({"false", "no", "0"})
_WORD = re.compile(r"\w+")
_OPENING = re.compile(r"[^\W_]+")
_JOINTS = re.compile(r"[\s_]+|(?<=\w)-(?=\w)")


class Index(Struct, frozen=True):
    """The names of a space, by how a reply may write them. `labels` and `texts` are folded and lead to labels."""

    exact: frozenset[str]
    labels: dict[str, tuple[str, ...]]
    texts: dict[str, tuple[str, ...]]
    booleans: dict[str, str]
    """`true` and `false` to labels, where the two labels are yes and no."""
    words: dict[str, tuple[str, ...]]
    """Label -> the words of its text."""
    longest: int
    """Characters in the longest name."""
    openings: frozenset[str]
    """The letters and digits that names start with, in lower case."""

    def may_start(self, text: str) -> bool:
        """Whether a name may stand at the start of a text; False is sure."""
        opening = _opening(text.casefold())
        return not opening or opening in self.openings


def fold_text(text: str) -> str:
    """An option's text: case, inner white space and a final full stop are not told apart."""
    return " ".join(text.casefold().split()).removesuffix(".")


def fold(text: str) -> str:
    """A label: case, and `_`, `-` or white space between words, are not told apart."""
    folded = text.casefold()
    return _JOINTS.sub(" ", folded).strip() if "-" in folded else " ".join(folded.replace("_", " ").split())


def _opening(folded: str) -> str:
    match = _OPENING.match(folded)
    return match[0] if match else ""


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return _WORD.findall(text.casefold())


@lru_cache(maxsize=8192)
def index(space: AnswerSpace) -> Index:
    """The names of a space; built once for each."""
    booleans = {boolean(label): label for label in space.labels}
    two = {key: label for key, label in booleans.items() if key is not None}
    is_boolean = len(two) == len(space.labels) == 2
    labels, texts = _grouped(map(fold, space.labels), space.labels), _grouped(map(fold_text, space.texts), space.labels)
    names = (*labels, *texts, *map(str.casefold, space.labels), *(_TRUE | _FALSE if is_boolean else ()))
    return Index(
        frozenset(space.labels),
        labels,
        texts,
        two if is_boolean else {},
        {label: tuple(words(text)) for label, text in zip(space.labels, space.texts, strict=False)},
        max(map(len, (*space.labels, *space.texts)), default=0),
        frozenset(map(_opening, names)),
    )


def _grouped(keys: Iterable[str], labels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for key, label in zip(keys, labels, strict=False):
        if key:
            groups[key] = (*groups.get(key, ()), label)
    return groups


def boolean(text: str) -> str | None:
    """`true` or `false` for true, yes, 1, false, no, 0 in any case."""
    word = text.strip().casefold()
    return "true" if word in _TRUE else "false" if word in _FALSE else None


def number(text: str) -> str | None:
    """The canonical number that a whole string says; None when none or more than one could be meant."""
    reading = numbers.read(text.strip())
    return reading.values[0] if reading and len(reading.values) == 1 else None


def json_value(text: str) -> str | None:
    """Compact JSON with sorted keys; None when the text is not JSON."""
    try:
        return strictjson.dumps(strictjson.strict(text))
    except ValueError:
        return None


def _named(text: str, space: AnswerSpace) -> str | None:
    name = text.strip()
    if name in space.labels:
        return name
    if space.texts.count(name) == 1 and (place := space.texts.index(name)) < len(space.labels):
        return space.labels[place]
    return None


def canonical(text: str, space: AnswerSpace) -> str | None:
    """The canonical value of a gold answer or of a value as text; None when it is not one of the space.

    choice and label: the label, given as such or as the exact text of exactly one option (a label wins over a text).
    boolean: `true` or `false`, from true/false/yes/no/1/0 in any case. number: an exact rational, written as an
    integer, the shortest finite decimal or `p/q`. text: without white space around it. json: compact, keys sorted.
    """
    match space.type:
        case "choice" | "label":
            return _named(text, space)
        case "boolean":
            return boolean(text)
        case "number":
            return number(text)
        case "json":
            return json_value(text)
        case _:
            return text.strip() or None


def is_correct(value: str, gold: str, space: AnswerSpace) -> bool:
    """Whether a value and a gold answer are the same canonical value."""
    if value == gold:
        return True
    known = canonical(value, space)
    return known is not None and known == canonical(gold, space)


def exact(token: str, space: AnswerSpace) -> str | None:
    """The value when the token already is canonical, else None. (Of JSON, every strict text of a value is.)"""
    match space.type:
        case "choice" | "label":
            return token if token in space.labels else None
        case "boolean":
            return token if token in ("true", "false") else None
        case "number":
            if numbers.CANONICAL.fullmatch(token):
                return token
            return token if "/" in token and number(token) == token else None
        case "json":
            return json_value(token) if token == token.strip() else None
        case _:
            return token if token and token == token.strip() and not OPENING_THINK.match(token) else None
