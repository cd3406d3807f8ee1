"""Differences on the same items."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

FloatArray = npt.NDArray[np.float64]


def macro_difference(tasks: Sequence[FloatArray], confidence: float = 0.95) -> tuple[float, float] | None:
    """Interval of a mean over tasks of mean differences per item, tasks fixed and items sampled.

    `tasks` are arrays (I_t,) of one difference of rates per item, within [-1, 1] as the interval is. Student's t with
    Satterthwaite's degrees of freedom; None where a task has fewer than two items.
    """
    if not tasks or any(len(differences) < 2 for differences in tasks):
        return None
    mean = float(np.mean([differences.mean() for differences in tasks]))
    parts = np.array([differences.var(ddof=1) / len(differences) for differences in tasks]) / len(tasks) ** 2
    variance = float(parts.sum())
    if variance == 0:
        return mean, mean
    df = variance**2 / float(sum(part**2 / (len(one) - 1) for part, one in zip(parts, tasks, strict=True)))
    half = float(stdtrit(df, (1 + confidence) / 2)) * math.sqrt(variance)
    return max(-1.0, mean - half), min(1.0, mean + half)
