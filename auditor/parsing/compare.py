"""JSON answers compared field by field, as a wrapper's `[compare]` says. Total: no text is an error, only wrong."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from msgspec import UnsetType

from auditor.parsing import strictjson
from auditor.parsing.strictjson import Number
from auditor.parsing.values import number
from auditor.records import AnswerSpace, Contract, FieldRule

Fields = dict[str, bool | None]
"""JSON pointer -> whether the answer is right there; None where that is not known."""

_NOTHING = object()
"""What a pointer leads to when it leads nowhere: null is a value."""


def rules(contract: Contract, space: AnswerSpace) -> tuple[FieldRule, ...]:
    """How an answer is compared; empty where it is compared as a whole."""
    return () if isinstance(contract.compare, UnsetType) or space.type != "json" else contract.compare


def fields(value: str | None, gold: str | None, compare: Iterable[FieldRule]) -> Fields:
    """Every compared field of an answer against the gold answer, both as JSON text.

    A field that the answer lacks is wrong, and of no answer (None, or no JSON) every field is; one that the gold answer
    lacks is not known.
    """
    said, wanted = _loaded(value), _loaded(gold)
    return {rule.pointer: _right(said, wanted, rule) for rule in compare}


def correct(found: Fields) -> bool | None:
    """Whether every known field is right; None where none is known."""
    known = [right for right in found.values() if right is not None]
    return all(known) if known else None


def _loaded(text: str | None) -> Any:
    try:
        return _NOTHING if text is None else strictjson.plain(text)
    except ValueError:
        return _NOTHING


def _at(value: Any, pointer: str) -> Any:
    try:
        return strictjson.at(value, pointer)
    except LookupError:
        return _NOTHING


def _right(said: Any, wanted: Any, rule: FieldRule) -> bool | None:
    gold, value = _at(wanted, rule.pointer), _at(said, rule.pointer)
    if gold is _NOTHING:
        return None
    if value is _NOTHING:
        return False
    if rule.kind == "number" and (apart := _apart(value, gold)) is not None:
        return apart <= Fraction(repr(rule.tolerance))
    if rule.kind == "text" and _is_text(value) and _is_text(gold):
        return _folded(value) == _folded(gold)
    return _equal(value, gold)


def _apart(value: Any, gold: Any) -> Fraction | None:
    """The exact distance of two numbers; None where one is no number."""
    found = [number(one) if isinstance(one, str) else None for one in (value, gold)]
    known = [Fraction(one) for one in found if one is not None]
    return abs(known[0] - known[1]) if len(known) == 2 else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _equal(value: Any, gold: Any) -> bool:
    try:
        return strictjson.dumps(_by_value(value)) == strictjson.dumps(_by_value(gold))
    except (ValueError, RecursionError):
        return False


def _by_value(value: Any) -> Any:
    """The same JSON with every number in its canonical form: `18.00` and `18` are one value."""
    if isinstance(value, Number):
        return Number(number(value) or value)
    if isinstance(value, dict):
        return dict(zip(value, map(_by_value, value.values()), strict=True))
    return list(map(_by_value, value)) if isinstance(value, list) else value
