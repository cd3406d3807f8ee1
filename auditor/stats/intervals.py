"""Intervals for one rate. The unit is the item: seeds are averaged within an item first, so `n` counts items and
`successes` is the sum of the item means, which need not be whole.

A mean of several seeds varies less than one answer does (the variance of a value in [0, 1] with mean p is at most
p(1-p)), so binomial intervals on it are wider than they must be, never narrower; taking generations for `n` would
count the same item once per seed and cover too little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri, stdtrit

from auditor.stats.arrays import TIE, FloatArray, IntArray, Interval, floats, grouped

Side = Literal["both", "lower", "upper"]

WHOLE = 1e-9
"""A sum of item means this close to a whole number is that number: 1/5 has no exact binary form."""


@dataclass(frozen=True, slots=True)
class RateInterval:
    """A rate over `n` items and the interval around it; a one-sided bound has 0 or 1 at its open end."""

    rate: float | None
    interval: Interval | None
    n: int
    reason: str | None = None


def wilson(successes: float, n: int, *, confidence: float = 0.95) -> RateInterval:
    """Wilson's score interval of `successes` among `n` items (Wilson 1927)."""
    x = _successes(successes, n)
    if n == 0:
        return RateInterval(None, None, 0, "no item was measured")
    low, high = wilson_ends(np.array([x / n]), np.array([float(n)]), float(ndtri((1 + confidence) / 2)))
    return RateInterval(x / n, (0.0 if x == 0 else float(low[0]), 1.0 if x == n else float(high[0])), n)


def wilson_ends(rates: FloatArray, sizes: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
    """Both ends for rates (K,) of samples of `sizes` (K,), which need not be whole; `z` is the normal quantile."""
    centre = (rates + z * z / (2 * sizes)) / (1 + z * z / sizes)
    half = z / (1 + z * z / sizes) * np.sqrt(rates * (1 - rates) / sizes + (z / (2 * sizes)) ** 2)
    return np.minimum(rates, centre - half).clip(min=0), np.maximum(rates, centre + half).clip(max=1)


def clopper_pearson(successes: float, n: int, *, confidence: float = 0.95, side: Side = "both") -> RateInterval:
    """The exact binomial interval by Beta quantiles (Clopper and Pearson 1934), continued to fractional successes.

    `side` lower or upper puts the whole error on that end: `side="lower"` gives (bound, 1).
    """
    x = _successes(successes, n)
    if n == 0:
        return RateInterval(None, None, 0, "no item was measured")
    return RateInterval(x / n, _exact(x, n, confidence, side), n)


def best_provable(n: int, confidence: float = 0.95) -> float | None:
    """The lower bound that `n` items without a single failure prove: (1 - confidence)^(1/n), 0.942 for 50.

    None without items. No rate above it can be certified with `n` items.
    """
    return (1 - confidence) ** (1 / n) if n > 0 else None


def cell_interval(
    item_means: npt.ArrayLike, *, clusters: npt.ArrayLike | None = None, confidence: float = 0.95, side: Side = "both"
) -> RateInterval:
    """A cell's accuracy or parseability with its Clopper-Pearson interval from per-item means over seeds (N,).

    Items of one of the `clusters` (N,) are alike: they count for as many independent ones as have the variance of the
    clusters' sums, with Student's quantiles for the number of clusters (Korn and Graubard 1998).
    """
    means = floats(item_means)
    if not np.isfinite(means).all():
        return RateInterval(None, None, len(means), "an item has no answered seed")
    if clusters is None or len(means) == 0:
        return clopper_pearson(math.fsum(means), len(means), confidence=confidence, side=side)
    size = _independent(means, grouped(clusters)[1], confidence)
    rate = math.fsum(means) / len(means)
    return RateInterval(rate, _exact(rate * size, size, confidence, side), len(means))


def _independent(means: FloatArray, unit: IntArray, confidence: float) -> float:
    """How many independent items say as much as these (N,) of the clusters `unit` (N,)."""
    items, units = len(means), int(unit.max()) + 1
    if units == items or units < 2:
        return float(units)
    centred = means - means.mean()
    between = units / (units - 1) * float((np.bincount(unit, centred) ** 2).sum())
    within = items / (items - 1) * float((centred**2).sum())
    if between <= TIE or within <= TIE:
        return float(units)
    tail = (1 + confidence) / 2
    size = items * within / between * float(stdtrit(items - 1, tail) / stdtrit(units - 1, tail)) ** 2
    return min(float(items), size)


def _exact(successes: float, size: float, confidence: float, side: Side) -> Interval:
    tail = (1 - confidence) / (2 if side == "both" else 1)
    x, rest = successes, size - successes
    low = 0.0 if side == "upper" or x <= 0 else float(betaincinv(x, rest + 1, tail))
    high = 1.0 if side == "lower" or rest <= 0 else float(betaincinv(x + 1, rest, 1 - tail))
    return low, high


def _successes(successes: float, n: int) -> float:
    if not -WHOLE <= successes <= n + WHOLE:
        raise ValueError(f"{successes} successes among {n} items")
    whole = round(successes)
    return float(whole) if abs(successes - whole) <= WHOLE else float(successes)
