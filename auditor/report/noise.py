"""What noise is and what is more than noise, in sentences made from the result."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.figures import SensitivityRow, Summary
from auditor.report.card import primary, telling
from auditor.report.text import count, plural, rate

LEVEL = 0.05
SMALLEST = 0.0005
"""What is shown as 0.000."""


def sentences(summary: Summary, parser: str) -> tuple[str, ...]:
    """What a reader can act on, for the rows of one parser; none where nothing was computed."""
    rows = [row for row in summary.sensitivity if row.parser == parser and row.fsi_floor is not None]
    if not rows:
        return ()
    if max(row.fsi_floor or 0.0 for row in rows) < SMALLEST:
        return (
            f"With {_design(summary, rows)}, no reply counts otherwise than another: there is no noise to measure.",
        )
    return tuple(filter(None, (_floor(summary, rows), _effects(rows), _power(rows))))


def floor(summary: Summary) -> str:
    """Which ranges are noise, under the parser that sentences are about; empty where nothing varies."""
    parser = telling(summary)
    rows = [row for row in summary.sensitivity if row.parser == parser and row.fsi_floor is not None]
    if not rows or max(row.fsi_floor or 0.0 for row in rows) < SMALLEST:
        return ""
    return under(summary, _floor(summary, rows))


def under(summary: Summary, said: str) -> str:
    """The sentence, after the parser it is about where that is not the one that headlines quote."""
    parser = telling(summary)
    return f"Read by {parser}: {said[0].lower()}{said[1:]}" if said and parser != primary(summary.parsers) else said


def _floor(summary: Summary, rows: Sequence[SensitivityRow]) -> str:
    floors = [row.fsi_floor for row in rows if row.fsi_floor is not None and row.fsi_floor >= SMALLEST]
    by_task = " by task" if rate(min(floors)) != rate(max(floors)) else ""
    shown = f"noise alone shows ranges of {_span(floors)} on average{by_task}"
    return f"With {_design(summary, rows)}, {shown}: less is nothing."


def _design(summary: Summary, rows: Sequence[SensitivityRow]) -> str:
    keys = {(row.model, row.task, row.arm, row.parser) for row in rows}
    cells = [cell for cell in summary.cells if (cell.model, cell.task, cell.arm, cell.parser) in keys]
    items = sorted({cell.items for cell in cells if cell.items})
    replies = sorted({round((cell.n or 0) / cell.items) for cell in cells if cell.items})
    seeds = "reply" if replies == [1] else "replies"
    return f"{_few(items)} items a task and {_few(replies)} {seeds} to each"


def _few(values: Sequence[int]) -> str:
    return count(values[0]) if len(values) == 1 else f"{count(values[0])} to {count(values[-1])}"


def _span(values: Sequence[float]) -> str:
    low, high = rate(min(values)), rate(max(values))
    return low if low == high else f"{low} to {high}"


def _effects(rows: Sequence[SensitivityRow]) -> str:
    tested = [row for row in rows if row.p_holm is not None]
    sure = [row for row in tested if row.p_holm is not None and row.p_holm < LEVEL]
    if not tested:
        return ""
    where = plural(len(tested), "pair of model and task", "pairs of model and task")
    return f"In {len(sure)} of {where} chance does not explain the effect of the wrapper (permutation test, Holm, 5 %)."


def _power(rows: Sequence[SensitivityRow]) -> str:
    seen = [row.fsi_detectable for row in rows if row.fsi_detectable is not None]
    items = [row.items_for_lower_floor for row in rows if row.items_for_lower_floor is not None]
    told = f"A true range of {_span(seen)} is found by four of five such runs" if seen else ""
    more = f"a noise floor of 0.02 takes {_few(sorted({min(items), max(items)}))} items" if items else ""
    return "; ".join(part for part in (told, more) if part) + "." if told or more else ""
