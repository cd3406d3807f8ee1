"""Cells arranged for reading: by wrapper, by task, and the reasons why replies could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

from auditor.figures import CellRow, Summary
from auditor.report.card import Subject, span, subjects, weighted_mean

Number = TypeVar("Number", int, float)
Rate = Callable[[CellRow], float | None]
_ACCURACY: Rate = attrgetter("accuracy")
_ACCURACY_PARSED: Rate = attrgetter("accuracy_parsed")
_PARSEABILITY: Rate = attrgetter("parseability")
_MAJORITY_VOTE: Rate = attrgetter("majority_vote_accuracy")


class WrapperRows(Struct, frozen=True):
    """What a wrapper scored, one cell per parser. `lossy`: a cell, or one of those averaged, lacks more than 1 %."""

    wrapper: str
    cells: tuple[CellRow, ...]
    lossy: bool

    @property
    def shared(self) -> bool:
        """Whether every parser read the same generations, so that one set of counts serves them all."""
        return len({(cell.n, cell.missing, cell.truncated, cell.completion_tokens_mean) for cell in self.cells}) == 1


class ReasonRow(Struct, frozen=True):
    """How often replies could not be read for one reason, per wrapper (None: not measured) and in all."""

    reason: str
    counts: tuple[int | None, ...]
    total: int


class ReasonGroup(Struct, frozen=True):
    """One model's reasons under a parser; `n` answered generations per wrapper (None: not measured)."""

    subject: Subject
    n: tuple[int | None, ...]
    rows: tuple[ReasonRow, ...]


class ReasonTable(Struct, frozen=True):
    """Reasons x wrappers under one parser. `total` counts replies that could not be read."""

    parser: str
    wrappers: tuple[str, ...]
    groups: tuple[ReasonGroup, ...]
    total: int


def by_wrapper(cells: Sequence[CellRow]) -> tuple[WrapperRows, ...]:
    """The cells of one model and arm, averaged over tasks where there are several."""
    groups: dict[str, dict[str, list[CellRow]]] = {}
    peers: dict[str, list[CellRow]] = {}
    for cell in cells:
        groups.setdefault(cell.wrapper, {}).setdefault(cell.parser, []).append(cell)
        peers.setdefault(cell.parser, []).append(cell)
    return tuple(
        WrapperRows(
            wrapper,
            tuple(average(group, peers[parser]) for parser, group in by_parser.items()),
            any(cell.lossy for group in by_parser.values() for cell in group),
        )
        for wrapper, by_parser in groups.items()
    )


def by_task(cells: Sequence[CellRow]) -> tuple[tuple[str, tuple[WrapperRows, ...]], ...]:
    """(task, its cells by wrapper) for one model and arm."""
    tasks = dict.fromkeys(cell.task for cell in cells)
    return tuple((task, by_wrapper([cell for cell in cells if cell.task == task])) for task in tasks)


def average(cells: Sequence[CellRow], peers: Sequence[CellRow]) -> CellRow:
    """One wrapper's cells under one parser as one row: counts are added up, rates averaged over tasks, tokens over
    generations. `peers` are the cells of all wrappers: a rate is None unless it is there for every task that any of
    them has it for, so that the rows of a table stand for the same tasks."""
    if len({cell.task for cell in peers}) == 1:
        return cells[0]
    return CellRow(
        model=cells[0].model,
        task="",
        wrapper=cells[0].wrapper,
        arm=cells[0].arm,
        parser=cells[0].parser,
        n=_total([cell.n for cell in cells]),
        items=_total([cell.items for cell in cells]),
        parsed=_total([cell.parsed for cell in cells]),
        correct=_total([cell.correct for cell in cells]),
        accuracy=_macro(cells, peers, _ACCURACY),
        accuracy_ci=None,
        accuracy_parsed=_macro(cells, peers, _ACCURACY_PARSED),
        parseability=_macro(cells, peers, _PARSEABILITY),
        parseability_ci=None,
        missing=sum(cell.missing for cell in cells),
        prompt_tokens_mean=weighted_mean([(cell.prompt_tokens_mean, cell.n) for cell in cells]),
        completion_tokens_mean=weighted_mean([(cell.completion_tokens_mean, cell.n) for cell in cells]),
        truncated=_total([cell.truncated for cell in cells]),
        majority_vote_accuracy=_macro(cells, peers, _MAJORITY_VOTE),
        reasons=dict(sum((Counter(cell.reasons) for cell in cells), Counter[str]())),
    )


def _macro(cells: Sequence[CellRow], peers: Sequence[CellRow], rate: Rate) -> float | None:
    tasks = {cell.task for cell in peers if rate(cell) is not None}
    ends = span([rate(cell) for cell in cells if cell.task in tasks])
    return ends.mean if ends is not None and len({cell.task for cell in cells} & tasks) == len(tasks) else None


def _total(values: Sequence[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def reason_tables(summary: Summary) -> tuple[ReasonTable, ...]:
    """A table of reasons for every parser, models apart, tasks added up; the most frequent reason first."""
    return tuple(_reason_table(summary, parser) for parser in summary.parsers)


def _reason_table(summary: Summary, parser: str) -> ReasonTable:
    cells = [cell for cell in summary.cells if cell.parser == parser]
    wrappers = tuple(dict.fromkeys(cell.wrapper for cell in cells))
    groups = [_reason_group([c for c in cells if subject.owns(c)], subject, wrappers) for subject in subjects(summary)]
    total = sum(row.total for group in groups for row in group.rows)
    return ReasonTable(parser, wrappers, tuple(group for group in groups if group.rows), total)


def _reason_group(cells: Sequence[CellRow], subject: Subject, wrappers: Sequence[str]) -> ReasonGroup:
    n: Counter[str] = Counter()
    counts: dict[str, Counter[str]] = {}
    for cell in cells:
        n[cell.wrapper] += cell.n or 0
        for reason, number in cell.reasons.items():
            counts.setdefault(reason, Counter())[cell.wrapper] += number
    rows = [
        ReasonRow(reason, tuple(found[w] if w in n else None for w in wrappers), found.total())
        for reason, found in counts.items()
        if found.total()
    ]
    rows.sort(key=lambda row: (-row.total, row.reason))
    return ReasonGroup(subject, tuple(n.get(w) for w in wrappers), tuple(rows))
