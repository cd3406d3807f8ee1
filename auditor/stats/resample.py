"""Means over units drawn with replacement, for every bootstrap of items."""

from __future__ import annotations

import numpy as np

from auditor.stats.arrays import FloatArray
from auditor.stats.noise import normal_noise

CELLS = 100_000
"""Counts made at once: few enough to stay in a cache, which doubles the speed."""
MANY = 5000
"""From so many units on resampled means are drawn from their normal limit."""


def resampled_means(sums: FloatArray, sizes: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Means (B, K) of K statistics over units drawn with replacement, the same ones for all: from their sums (K, units)
    and sizes (units,) in items. Where sizes differ these are ratios.

    From 5,000 units on they are drawn from their normal limit: counting each unit in each resample would take minutes
    for 20,000 items, and the two differ by less than 10,000 resamples can show.
    """
    units = len(sizes)
    if units >= MANY:
        means = sums.sum(axis=1) / sizes.sum()
        errors = (np.nan_to_num(sums) - np.outer(np.nan_to_num(means), sizes)).T / sizes.sum()
        drawn: FloatArray = means + normal_noise(np.ascontiguousarray(errors), rng, resamples)
        return drawn
    step = max(1, CELLS // units)
    starts = range(0, max(resamples, 1), step)
    return np.concatenate([_counted(sums, sizes, rng, min(step, resamples - start)) for start in starts])


def _counted(sums: FloatArray, sizes: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    units = len(sizes)
    drawn = rng.integers(0, units, (resamples, units)) + units * np.arange(resamples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=resamples * units).reshape(resamples, units).astype(np.float64)
    means: FloatArray = (counts @ sums.T) / (counts @ sizes)[:, None]
    return means
