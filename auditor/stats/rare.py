"""Ranges over wrappers of which one hardly ever fails, or hardly ever succeeds: so few events are not normal."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from auditor.stats.arrays import TIE, FloatArray, Interval
from auditor.stats.contrasts import pair_errors
from auditor.stats.intervals import wilson_ends

FEW = 10
"""A rate with fewer successes or fewer failures than this is not normal enough for normal noise."""


def rare_bounds(means: FloatArray, errors: FloatArray, confidence: float, *, constant: bool = True) -> Interval | None:
    """Bounds of the range over the pairs of wrappers of which one has few events, None where there is none; `constant`:
    pairs that are the same in all units too. `means` (F,), `errors` (units, F) are those of `noise.unit_errors`."""
    low, high = rare_differences(means, errors, confidence)
    pairs = np.isfinite(low) & (means[:, None] >= means)
    if not constant:
        varying = np.zeros_like(pairs)
        varying[np.triu_indices(len(means), 1)] = pair_errors(errors) > TIE
        pairs &= varying | varying.T
    if not pairs.any():
        return None
    return max(0.0, float(low[pairs].max())), min(1.0, float(high[pairs].max()))


def rare_differences(means: FloatArray, errors: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Both ends for the difference of each wrapper less each other one, (F, F), NaN where neither has few events.

    Each rate gets Wilson's interval with the effective sample size p(1-p)/se^2 (Korn and Graubard 1998), the number of
    units where it does not vary; a difference gets D - hypot(p - l_p, u_q - q), D + hypot(u_p - p, q - l_q) (Newcombe
    1998, method 10).
    """
    variance, se = means * (1 - means), np.sqrt((errors**2).sum(axis=0))
    size = np.divide(variance, se**2, out=np.full(len(means), float(len(errors))), where=se > TIE)
    few = np.minimum(means, 1 - means) * size < FEW
    low, high = wilson_ends(means, size, float(ndtri((1 + confidence) / 2)))
    difference = means[:, None] - means
    down = np.hypot((means - low)[:, None], high - means)
    up = np.hypot((high - means)[:, None], means - low)
    told = (few[:, None] | few) & ~np.eye(len(means), dtype=bool)
    return np.where(told, difference - down, np.nan), np.where(told, difference + up, np.nan)


def union(one: Interval | None, other: Interval | None) -> Interval | None:
    """From the lower of the lower ends to the higher of the higher; one of them where the other is None."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])
