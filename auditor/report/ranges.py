"""How accuracy is spread over wrappers, arranged for reading."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from auditor.figures import FirstRow, GainRow, SpreadRow, Summary
from auditor.report.card import Subject, leading, primary, subjects
from auditor.report.text import plural, rate

MANY = 6
"""So many wrappers are a sample of what one could write, and their mean and deviation say something."""
NAMED = 3
"""Tasks and wrappers that a sentence names."""


class Led(Struct, frozen=True):
    """One model and the wrappers that put it first; `apart`: it could be first with a wrapper chosen for each model."""

    model: str
    wrappers: tuple[str, ...]
    apart: bool


class FirstTable(Struct, frozen=True):
    """One task's models."""

    row: FirstRow
    models: tuple[Led, ...]


class SpreadTable(Struct, frozen=True):
    """All of it under one parser."""

    parser: str
    spreads: tuple[SpreadRow, ...]
    gains: tuple[GainRow, ...]
    firsts: tuple[FirstTable, ...]


def shown(summary: Summary) -> bool:
    """Whether a report shows it: somewhere are many wrappers, or there is nothing but cells."""
    only_cells = all(cell.parser == "given" and cell.items is None for cell in summary.cells)
    return any(row.wrappers >= MANY or only_cells for row in summary.spreads)


def by_parser(summary: Summary) -> tuple[SpreadTable, ...]:
    """A table for each parser; none where it is not shown."""
    return tuple(_table(summary, parser) for parser in summary.parsers) if shown(summary) else ()


def sentence(summary: Summary) -> str:
    """The largest spread, and whether any model can be put first; empty where it is not shown."""
    parser, found = primary(summary.parsers), leading(subjects(summary))
    rows = [row for row in summary.spreads if row.parser == parser and Subject(row.model, row.arm) in found]
    known = [(row.spread, row) for row in rows if row.spread is not None]
    if not shown(summary) or not known:
        return ""
    arms = {subject.arm for subject in found}
    firsts = [row for row in summary.firsts if row.parser == parser and row.arm in arms]
    return " ".join([_widest(known, parser), *([_any_model(firsts)] if firsts else [])])


def _table(summary: Summary, parser: str) -> SpreadTable:
    return SpreadTable(
        parser,
        tuple(row for row in summary.spreads if row.parser == parser),
        tuple(row for row in summary.gains if row.parser == parser),
        tuple(FirstTable(row, _led(row)) for row in summary.firsts if row.parser == parser),
    )


def _led(row: FirstRow) -> tuple[Led, ...]:
    won = {model: tuple(name for name, first in row.by_wrapper.items() if model in first) for model in row.models}
    return tuple(Led(model, wrappers, model not in row.never_apart) for model, wrappers in won.items())


def _widest(known: Sequence[tuple[float, SpreadRow]], parser: str) -> str:
    least, most = min(spread for spread, _ in known), max(spread for spread, _ in known)
    row = next(row for spread, row in known if spread == most)
    where = f"{row.model} in {row.task}, from {_few(row.worst_wrappers)} to {_few(row.best_wrappers)}"
    each = f"{rate(least)} to {rate(most)}" if len(known) > 1 else rate(most)
    return (
        f"Spread of accuracy over up to {plural(max(row.wrappers for _, row in known), 'wrapper')} ({parser}): {each}, "
        f"the widest for {where}."
    )


def _any_model(firsts: Sequence[FirstRow]) -> str:
    free = [row.task for row in firsts if not row.never]
    held = [row.task for row in firsts if row.never]
    told = [f"{word} in {_few(tasks)}" for word, tasks in (("yes", free), ("no", held)) if tasks]
    return f"Can the choice of one wrapper put any model first: {'; '.join(told)}."


def _few(names: Sequence[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
