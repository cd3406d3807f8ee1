"""A/A: one and the same cell with one seed against another, on the items that both answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    first, second = np.triu_indices(len(answered), 1)
    both = answered[first] & answered[second]
    count = both.sum(axis=1)
    first, second, both, count = first[count > 0], second[count > 0], both[count > 0], count[count > 0]
    if not len(count):
        return Gaps(0.0, 0.0, 0.0, 0, 0)
    turned = (hits[first].astype(np.int8) - hits[second]) * both
    differences = turned.sum(axis=1) / count
    # turned is -1, 0 or 1, so that its squares are their own sum
    variance = (np.abs(turned).sum(axis=1) / count - differences**2) / np.maximum(count - 1, 1)
    judged = (count > 1) & (variance > TIE)
    squares = float((differences[judged] ** 2 / variance[judged]).sum())
    distances = np.abs(differences)
    return Gaps(float(distances.mean()), float(distances.max()), squares, int(judged.sum()), len(count))


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
