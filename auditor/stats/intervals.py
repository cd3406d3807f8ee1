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
from scipy.special import betaincinv, ndtri

from auditor.stats.arrays import Interval, floats

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
    z, p = float(ndtri((1 + confidence) / 2)), x / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if x == 0 else max(0.0, centre - half)
    high = 1.0 if x == n else min(1.0, centre + half)
    return RateInterval(p, (low, high), n)


def clopper_pearson(successes: float, n: int, *, confidence: float = 0.95, side: Side = "both") -> RateInterval:
    """The exact binomial interval by Beta quantiles (Clopper and Pearson 1934), continued to fractional successes.

    `side` lower or upper puts the whole error on that end: `side="lower"` gives (bound, 1).
    """
    x = _successes(successes, n)
    if n == 0:
        return RateInterval(None, None, 0, "no item was measured")
    tail = (1 - confidence) / (2 if side == "both" else 1)
    low = 0.0 if side == "upper" or x == 0 else float(betaincinv(x, n - x + 1, tail))
    high = 1.0 if side == "lower" or x == n else float(betaincinv(x + 1, n - x, 1 - tail))
    return RateInterval(x / n, (low, high), n)


def best_provable(n: int, confidence: float = 0.95) -> float | None:
    """The lower bound that `n` items without a single failure prove: (1 - confidence)^(1/n), 0.942 for 50.

    None without items. No rate above it can be certified with `n` items.
    """
    return (1 - confidence) ** (1 / n) if n > 0 else None


def cell_interval(item_means: npt.ArrayLike, *, confidence: float = 0.95) -> RateInterval:
    """A cell's accuracy or parseability with its Clopper-Pearson interval from per-item means over seeds (N,)."""
    means = floats(item_means)
    if not np.isfinite(means).all():
        return RateInterval(None, None, len(means), "an item has no answered seed")
    return clopper_pearson(math.fsum(means), len(means), confidence=confidence)


def _successes(successes: float, n: int) -> float:
    if not -WHOLE <= successes <= n + WHOLE:
        raise ValueError(f"{successes} successes among {n} items")
    whole = round(successes)
    return float(whole) if abs(successes - whole) <= WHOLE else float(successes)
