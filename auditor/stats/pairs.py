"""Two wrappers, or two models, on the same items: is one better, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, ndtr, ndtri

from auditor.stats.arrays import TIE, FloatArray, IntArray, Interval, Rng, floats, grouped, same_length
from auditor.stats.noise import unit_sums
from auditor.stats.resample import resampled_means


@dataclass(frozen=True, slots=True)
class McNemar:
    """Items that only the first (`b`) or only the second (`c`) got right, and two-sided p-values; 1 where b + c = 0."""

    b: int
    c: int
    p: float
    mid_p: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of first minus second over items, then tasks, with bootstrap intervals; `units` are items, or clusters."""

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
    exact, mid = (1.0 if p > 1 - TIE else p for p in (2 * upto, upto + below))
    return McNemar(b, c, exact, mid)


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

    Items are resampled, or whole `clusters` (N,) of them.
    """
    x, y = floats(first), floats(second)
    same_length(first=x, second=y)
    units = None if clusters is None else [clusters]
    with np.errstate(invalid="ignore"):  # inf - inf is a hole, which gets its reason
        items = (x - y)[None]
    (found,) = differences([items], rng, clusters=units, resamples=resamples, confidence=confidence)
    return found


def differences(
    tasks: Sequence[npt.ArrayLike],
    rng: Rng,
    *,
    clusters: Sequence[npt.ArrayLike] | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> tuple[Difference, ...]:
    """The means over tasks of mean differences of D pairs, with percentile and BCa intervals.

    `tasks` are differences per item, (D, N_t) each. Tasks are fixed; the items of each are resampled, or whole
    `clusters` (N_t,) of them, the same ones for all pairs. Percentiles interpolate linearly. BCa takes its acceleration
    from leaving out one unit at a time, and is None where all resamples lie on one side of the mean.
    Source: Efron (1987); for several tasks Davison and Hinkley (1997, section 5.3).
    """
    rows = [floats(task, ndim=2) for task in tasks]
    units = [np.arange(row.shape[1]) for row in rows] if clusters is None else [grouped(ids)[1] for ids in clusters]
    for row, unit in zip(rows, units, strict=True):
        same_length(items=row.T, clusters=unit)
    count = sum(int(unit.max(initial=-1)) + 1 for unit in units)
    reason = _incomparable(rows, units)
    if reason is not None:
        return tuple(Difference(None, None, None, count, reason) for _ in range(len(rows[0]) if rows else 0))
    sums = [unit_sums(row, unit) for row, unit in zip(rows, units, strict=True)]
    sizes = [np.bincount(unit).astype(np.float64) for unit in units]
    means = np.mean([row.sum(axis=1) / size.sum() for row, size in zip(sums, sizes, strict=True)], axis=0)
    generator = np.random.default_rng(rng)
    draws = np.mean([resampled_means(*one, generator, resamples) for one in zip(sums, sizes, strict=True)], axis=0)
    influence = np.hstack([_influence(*one) for one in zip(sums, sizes, strict=True)])
    tail = (1 - confidence) / 2
    return tuple(_difference(*one, count, tail) for one in zip(means.tolist(), draws.T, influence, strict=True))


def _difference(mean: float, draws: FloatArray, influence: FloatArray, units: int, tail: float) -> Difference:
    if np.abs(influence).max() <= TIE:
        reason = "fewer than two items or clusters" if units < 2 else _CONSTANT
        return Difference(mean, None, None, units, reason)
    return Difference(mean, _quantiles(draws, tail, 1 - tail), _bca(draws, mean, influence, tail), units)


_CONSTANT = "the difference is the same in all items or clusters"


def _incomparable(rows: Sequence[FloatArray], units: Sequence[IntArray]) -> str | None:
    if not rows or any(len(unit) == 0 for unit in units):
        return "no item was measured"
    return None if all(np.isfinite(row).all() for row in rows) else "an item was not measured in both"


def _influence(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """What each unit adds to its task's mean, (D, units): the mean less that without it."""
    units = len(sizes)
    if units < 2:
        return np.zeros_like(sums)
    left_out = (sums.sum(axis=1, keepdims=True) - sums) / (sizes.sum() - sizes)
    influence: FloatArray = (left_out.mean(axis=1, keepdims=True) - left_out) * ((units - 1) / units)
    return influence


def _bca(draws: FloatArray, mean: float, influence: FloatArray, tail: float) -> Interval | None:
    """The percentiles moved for bias and acceleration; draws that equal the mean count half on either side."""
    below = float(((draws < mean - TIE).mean() + (draws <= mean + TIE).mean()) / 2)
    if not 0 < below < 1:
        return None
    acceleration = float((influence**3).sum() / (6 * (influence**2).sum() ** 1.5))
    bias = float(ndtri(below))
    z = bias + ndtri(np.array([tail, 1 - tail]))
    low, high = ndtr(bias + z / (1 - acceleration * z))
    return _quantiles(draws, float(low), float(high))


def _quantiles(draws: FloatArray, low: float, high: float) -> Interval:
    first, last = np.quantile(draws, [low, high])
    return float(first), float(last)
