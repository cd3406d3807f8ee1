"""Differences on the same items."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from auditor.stats.arrays import TIE, FloatArray, Interval
from auditor.stats.noise import unit_errors, unit_of


def macro_difference(
    tasks: Sequence[FloatArray], confidence: float = 0.95, *, clusters: Sequence[npt.ArrayLike] | None = None
) -> Interval | None:
    """Interval of a mean over tasks of mean differences per item, tasks fixed and items sampled, or whole `clusters`.

    `tasks` are arrays (I_t,) of one difference of rates per item, within [-1, 1] as the interval is. Student's t with
    Satterthwaite's degrees of freedom; None where a task has fewer than two items or clusters.
    """
    known: Sequence[npt.ArrayLike | None] = [None] * len(tasks) if clusters is None else clusters
    units = [unit_of(one[None], ids) for one, ids in zip(tasks, known, strict=True)]
    if not tasks or any(unit.max(initial=0) < 1 for unit in units):
        return None
    mean = float(np.mean([differences.mean() for differences in tasks]))
    errors = [unit_errors(one[None], unit) for one, unit in zip(tasks, units, strict=True)]
    parts = np.array([float((error**2).sum()) for error in errors]) / len(tasks) ** 2
    variance = float(parts.sum())
    if variance <= TIE**2:
        return mean, mean
    df = variance**2 / float(sum(part**2 / (len(error) - 1) for part, error in zip(parts, errors, strict=True)))
    half = float(stdtrit(df, (1 + confidence) / 2)) * math.sqrt(variance)
    return max(-1.0, mean - half), min(1.0, mean + half)
