"""Two wrappers, or two models, on the same items: is one better, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, ndtr, ndtri

from auditor.stats.arrays import TIE, FloatArray, Interval, Rng, floats, grouped, same_length

CELLS = 500_000
"""Resampled values held at once: 4 MB, however many items and resamples."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """Items that only the first (`b`) or only the second (`c`) got right, and two-sided p-values; 1 where b + c = 0."""

    b: int
    c: int
    p: float
    mid_p: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of first minus second over items with bootstrap intervals; `units` are items, or clusters of them."""

    mean: float | None
    percentile: Interval | None
    bca: Interval | None
    units: int
    reason: str | None = None


def discordant(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[int, int]:
    """McNemar's b and c from 0/1 results (N,) on the same items; ValueError for other values."""
    x, y = floats(first), floats(second)
    same_length(first=x, second=y)
    if not all(((values == 0) | (values == 1)).all() for values in (x, y)):
        raise ValueError("McNemar's test needs results that are 0 or 1: one seed, no means")
    return int((x > y).sum()), int((x < y).sum())


def mcnemar(b: int, c: int) -> McNemar:
    """McNemar's exact test: the smaller of b and c is binomial(b + c, 1/2) without a difference; p is twice its tail.

    The mid-p counts half of what was observed, twice the smaller tail again (1 where b = c): the exact test rejects
    too seldom, the mid-p about as often as it says. Source: McNemar (1947); Fagerland, Lydersen and Laake (2013).
    """
    if b < 0 or c < 0:
        raise ValueError(f"{b} and {c} discordant items")
    small, n = min(b, c), b + c
    upto = float(bdtr(small, n, 0.5))
    below = float(bdtr(small - 1, n, 0.5)) if small > 0 else 0.0
    return McNemar(b, c, min(1.0, 2 * upto), min(1.0, upto + below))


def difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    rng: Rng,
    *,
    clusters: npt.ArrayLike | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> Difference:
    """Mean of `first` - `second`, item means (N,) on the same items, with percentile and BCa intervals.

    Items are resampled, or whole `clusters` (N,) of them. Percentiles interpolate linearly. BCa takes its acceleration
    from leaving out one unit at a time, and is None where all resamples lie on one side of the mean.
    Source: Efron (1987).
    """
    x, y = floats(first), floats(second)
    same_length(first=x, second=y)
    unit = np.arange(len(x)) if clusters is None else grouped(clusters)[1]
    same_length(first=x, clusters=unit)
    units = int(unit.max(initial=-1)) + 1
    if units == 0 or not np.isfinite([x, y]).all():
        reason = "no item was measured" if units == 0 else "an item was not measured in both"
        return Difference(None, None, None, units, reason)
    sums, sizes = np.bincount(unit, x - y).astype(np.float64), np.bincount(unit).astype(np.float64)
    mean = float(sums.sum() / sizes.sum())
    if units < 2:
        return Difference(mean, None, None, units, "fewer than two items or clusters")
    if np.ptp(sums / sizes) <= TIE:
        return Difference(mean, None, None, units, "the difference is the same in all items or clusters")
    draws = _resampled(sums, sizes, np.random.default_rng(rng), resamples)
    tail = (1 - confidence) / 2
    bca = _bca(draws, mean, _left_out(sums, sizes), tail)
    return Difference(mean, _quantiles(draws, tail, 1 - tail), bca, units)


def _resampled(sums: FloatArray, sizes: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Means (B,) over units drawn with replacement."""
    units = len(sums)
    rows = max(1, CELLS // units)
    means = []
    for start in range(0, resamples, rows):
        drawn = rng.integers(0, units, (min(rows, resamples - start), units))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    return np.concatenate(means)


def _left_out(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Means (units,) without one unit each."""
    means: FloatArray = (sums.sum() - sums) / (sizes.sum() - sizes)
    return means


def _bca(draws: FloatArray, mean: float, left_out: FloatArray, tail: float) -> Interval | None:
    """The percentiles moved for bias and acceleration; draws that equal the mean count half on either side."""
    below = float(((draws < mean - TIE).mean() + (draws <= mean + TIE).mean()) / 2)
    if not 0 < below < 1:
        return None
    influence = left_out.mean() - left_out
    acceleration = float((influence**3).sum() / (6 * (influence**2).sum() ** 1.5))
    bias = float(ndtri(below))
    z = bias + ndtri(np.array([tail, 1 - tail]))
    low, high = ndtr(bias + z / (1 - acceleration * z))
    return _quantiles(draws, float(low), float(high))


def _quantiles(draws: FloatArray, low: float, high: float) -> Interval:
    first, last = np.quantile(draws, [low, high])
    return float(first), float(last)
