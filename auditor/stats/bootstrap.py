"""Macro averages over tasks with the FSI paper's percentile bootstrap.

The interval is the paper's and is known to cover too little when effects are small; print it under that name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import FloatArray, IntArray, Interval, Rng, floats


@dataclass(frozen=True, slots=True)
class MacroMean:
    """A statistic's mean over tasks and its percentile interval."""

    mean: float | None
    interval: Interval | None
    tasks: int
    reason: str | None = None


def macro_means(
    values: npt.ArrayLike, rng: Rng, *, resamples: int = 10_000, confidence: float = 0.95
) -> tuple[MacroMean, ...]:
    """The mean over tasks of each of S statistics, `values` (S, T), one result a row.

    All rows share the resampled task indices, so that contrasts between them are paired. Percentiles interpolate
    linearly. Source: FSI paper, section 4 (10,000 resamples over tasks, 95 %).
    """
    rows = floats(values, ndim=2)
    tasks = rows.shape[1]
    indices = np.random.default_rng(rng).integers(0, tasks, (resamples, tasks)) if tasks > 1 else None
    return tuple(_macro_mean(row, indices, confidence) for row in rows)


def _macro_mean(row: FloatArray, indices: IntArray | None, confidence: float) -> MacroMean:
    tasks = row.size
    if tasks == 0:
        return MacroMean(None, None, 0, "no task was measured")
    if not np.isfinite(row).all():
        return MacroMean(None, None, tasks, "a task has no value")
    mean = math.fsum(row) / tasks
    if indices is None:
        return MacroMean(mean, None, tasks, "one task cannot be resampled")
    # clip: a mean of equal values may otherwise round past them
    draws = row[indices].mean(axis=1).clip(row.min(), row.max())
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return MacroMean(mean, (float(low), float(high)), tasks)
