"""A/A: one and the same cell with one seed against another, on the items that both answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from auditor.stats.arrays import TIE, BoolArray


@dataclass(frozen=True, slots=True)
class Gaps:
    """Absolute differences of two seeds' rates in one cell: their mean and largest over its `pairs` of seeds, and the
    sum of squares of the differences over their standard errors, over `judged` pairs that have one."""

    mean: float
    largest: float
    squares: float
    judged: int
    pairs: int


def gaps(answered: BoolArray, hits: BoolArray) -> Gaps:
    """Over all pairs of seeds, from what each seed answered and hit, (S, I)."""
    found, squares, judged = [], 0.0, 0
    for one, other in combinations(range(len(answered)), 2):
        both = answered[one] & answered[other]
        count = int(both.sum())
        if count == 0:
            continue
        difference = hits[one, both].astype(np.float64) - hits[other, both]
        found.append(abs(float(difference.mean())))
        error = float(difference.std(ddof=1)) / math.sqrt(count) if count > 1 else 0.0
        if error > TIE:
            squares, judged = squares + (found[-1] / error) ** 2, judged + 1
    return Gaps(math.fsum(found) / max(len(found), 1), max(found, default=0.0), squares, judged, len(found))


def mean(cells: Sequence[Gaps]) -> float | None:
    """Mean over cells of their mean difference."""
    return math.fsum(cell.mean for cell in cells) / len(cells) if cells else None


def largest(cells: Sequence[Gaps]) -> float | None:
    """The largest difference in any cell."""
    return max((cell.largest for cell in cells), default=None)


def excess(cells: Sequence[Gaps]) -> float | None:
    """The root mean square of differences over their standard errors: 1 where items are answered independently of each
    other, more where a seed moves many items at once. None where no difference has a standard error."""
    judged = sum(cell.judged for cell in cells)
    return math.sqrt(math.fsum(cell.squares for cell in cells) / judged) if judged else None
