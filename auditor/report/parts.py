"""FSI taken apart: what of the range is other answers, and what is replies that could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from auditor.figures import SensitivityRow
from auditor.report.text import known


class Segment(Struct, frozen=True):
    """A piece of a stacked bar from 0 to 1."""

    kind: str
    left: float
    right: float


class Parts(Struct, frozen=True):
    """One row's range and its parts. `against`: a part is below zero, so that the others are more than the range.
    `apart`: the parts do not add up to the range, since the two wrappers did not answer the same replies."""

    row: SensitivityRow
    segments: tuple[Segment, ...]
    against: bool
    apart: bool


def parts(rows: Sequence[SensitivityRow]) -> tuple[Parts, ...]:
    """Every row's parts, in their order; a row without parts has no segments."""
    return tuple(_parts(row) for row in rows)


def _parts(row: SensitivityRow) -> Parts:
    found = [(kind, value) for kind, value in _named(row) if value is not None and known(value)]
    total = sum(value for _, value in found)
    complete = row.content_part is not None and row.format_part is not None
    return Parts(
        row=row,
        segments=_stacked(found) if complete else (),
        against=any(value < 0 for _, value in found),
        apart=complete and row.fsi is not None and abs(total - row.fsi) >= 0.0005,
    )


def _named(row: SensitivityRow) -> tuple[tuple[str, float | None], ...]:
    if row.format_truncated is None or row.format_noncompliant is None:
        return (("content", row.content_part), ("noncompliant", row.format_part))
    return (
        ("content", row.content_part),
        ("truncated", row.format_truncated),
        ("noncompliant", row.format_noncompliant),
    )


def _stacked(found: Sequence[tuple[str, float]]) -> tuple[Segment, ...]:
    segments, left = [], 0.0
    for kind, value in found:
        right = left + max(value, 0.0)
        if right > left:
            segments.append(Segment(kind, left, right))
        left = right
    return tuple(segments)
