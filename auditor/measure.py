"""Aggregates from the store -> arrays per cell under one parser. The denominators live here, and no others exist.

n is answered generations: missing leaves every rate. Unparseable and ambiguous count as not parsed and as incorrect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.records import CellKey, CellTotal

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

GIVEN = "given"
"""The parser's name of rows and cells that were scored elsewhere."""

TallyRow = tuple[int, int, int, int, int | None]
"""(cell, item, count, parsed, correct) of generations that were given one value."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell under one parser. `parsed` and `correct` are counts out of `n`; None is not known: no gold, or the
    parser does not apply. `item_*` (I,) are rates per item over its seeds, in the order of `items`. `rates` are
    (accuracy, parseability) of a cell of an imported table, whose `n` may be None."""

    id: int
    key: CellKey
    n: int | None
    missing: int
    parsed: float | None
    correct: float | None
    items: IntArray | None
    item_parsed: FloatArray | None
    item_correct: FloatArray | None
    prompt_tokens_mean: float | None = None
    completion_tokens_mean: float | None = None
    truncated: int | None = None
    rates: tuple[float, float | None] | None = None

    @property
    def accuracy(self) -> float | None:
        """Correct over n."""
        if self.rates is not None:
            return self.rates[0]
        return None if self.correct is None or not self.n else self.correct / self.n

    @property
    def parseability(self) -> float | None:
        """Parsed over n."""
        if self.rates is not None:
            return self.rates[1]
        return None if self.parsed is None or not self.n else self.parsed / self.n

    @property
    def accuracy_parsed(self) -> float | None:
        """Correct over parsed."""
        if self.rates is not None:
            return self.rates[0] / self.rates[1] if self.rates[1] else None
        return None if self.correct is None or not self.parsed else self.correct / self.parsed


@dataclass(frozen=True, slots=True)
class Votes:
    """What seeds said, as columns (R,): a row is one value of one (cell, item) group, with how many gave it."""

    cell: IntArray
    group: IntArray
    count: IntArray
    correct: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything one parser says about a run."""

    parser: str
    cells: tuple[Cell, ...]
    votes: Votes

    def families(self) -> dict[tuple[str, str, str], list[Cell]]:
        """(model, task, arm) -> its cells, in the order of their wrappers."""
        found: dict[tuple[str, str, str], list[Cell]] = {}
        for cell in self.cells:
            found.setdefault((cell.key.model, cell.key.task, cell.key.arm), []).append(cell)
        return found


def measure(
    parser: str,
    keys: Mapping[int, CellKey],
    totals: Mapping[int, CellTotal],
    tallies: Sequence[TallyRow],
    given: Mapping[int, tuple[int | None, float, float | None]],
) -> Measured:
    """Shape one parser's tallies. `given` are cells (n, accuracy, parseability) that were scored elsewhere."""
    columns = np.array(
        [
            (cell, item, count, parsed, -1 if correct is None else correct)
            for cell, item, count, parsed, correct in tallies
        ],
        dtype=np.int64,
    ).reshape(-1, 5)
    starts = np.searchsorted(columns[:, 0], np.fromiter(keys, np.int64, len(keys)), side="left")
    ends = np.searchsorted(columns[:, 0], np.fromiter(keys, np.int64, len(keys)), side="right")
    cells = []
    for (id_, key), start, end in zip(keys.items(), starts, ends, strict=True):
        total = totals.get(id_)
        if parser == GIVEN and id_ in given:
            cells.append(_given_cell(id_, key, given[id_]))
        elif total is not None and _concerns(parser, total):
            cells.append(_cell(id_, key, total, columns[start:end]))
    return Measured(parser, tuple(cells), _votes(columns))


def on_subset(cell: Cell, counts: tuple[int, int, int | None] | None) -> Cell | None:
    """The same cell over a subset of its generations: (n, parsed, correct); None where the subset is empty."""
    if not counts or not counts[0]:
        return None
    n, parsed, correct = counts
    return Cell(cell.id, cell.key, n, 0, parsed, correct, None, None, None)


def _concerns(parser: str, total: CellTotal) -> bool:
    """Rows with a text are read by the parsers, rows scored elsewhere are `given`; a cell may hold both."""
    if parser == GIVEN:
        return total.given > 0
    return total.given < total.answered or total.answered == 0


def _given_cell(id_: int, key: CellKey, given: tuple[int | None, float, float | None]) -> Cell:
    n, accuracy, parseability = given
    parsed, correct = (None if n is None or rate is None else rate * n for rate in (parseability, accuracy))
    return Cell(id_, key, n, 0, parsed, correct, None, None, None, rates=(accuracy, parseability))


def _cell(id_: int, key: CellKey, total: CellTotal, rows: IntArray) -> Cell:
    tokens = (total.prompt_tokens_mean, total.completion_tokens_mean, total.truncated)
    if not len(rows):
        return Cell(id_, key, total.answered, total.missing, None, None, None, None, None, *tokens)
    items, position = np.unique(rows[:, 1], return_inverse=True)
    count, parsed, correct = rows[:, 2], rows[:, 2] * rows[:, 3], rows[:, 2] * np.maximum(rows[:, 4], 0)
    known = bool((rows[:, 4] >= 0).all())
    per_item = np.bincount(position, count)
    return Cell(
        id_,
        key,
        int(count.sum()),
        total.missing,
        int(parsed.sum()),
        int(correct.sum()) if known else None,
        items,
        np.bincount(position, parsed) / per_item,
        np.bincount(position, correct) / per_item if known else None,
        *tokens,
    )


def _votes(columns: IntArray) -> Votes:
    if not len(columns):
        nothing = np.zeros(0, np.int64)
        return Votes(nothing, nothing, nothing, np.zeros(0, np.bool_))
    pair = columns[:, 0] * (columns[:, 1].max() + 1) + columns[:, 1]
    _, group = np.unique(pair, return_inverse=True)
    return Votes(columns[:, 0], group.astype(np.int64), columns[:, 2], columns[:, 4] > 0)
