"""Intervals of a mean over tasks that stand for more tasks of their kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from auditor.stats.arrays import TIE, FloatArray, IntArray, Interval, Rng, floats
from auditor.stats.bootstrap import MacroMean
from auditor.stats.inversion import RangeEstimate
from auditor.stats.noise import unit_of, unit_sums, unusable
from auditor.stats.resample import resampled_means

HIERARCHICAL_COVERAGE = "simulated coverage of its nominal 95 %: 0 % at FSI 0, 0 to 76 % at 0.05, 7 to 98 % at 0.3"
"""To be printed wherever `hierarchical_means` is (`tests/bench/bench_coverage.py`)."""


def macro_range(estimates: Sequence[RangeEstimate], *, confidence: float = 0.95) -> MacroMean:
    """The mean over T tasks of signed adjusted ranges, with an interval for more tasks of their kind.

    From the lower end of Student's interval (`macro_t`) over the tasks' `least` to the upper end over their `most`,
    and at least the one over `adjusted`, which alone covers too little: the bias of a range has one sign in all tasks
    and does not average out (71 % at no effect with 20 tasks, 89 % at 0.3 with one bad wrapper in each of 7 tasks).
    Where ranges are skewed the far end moves out by Johnson's correction: a few tasks with a large range among many
    with a small one, as real ones are, were covered in 88 %.

    One task, and tasks that do not differ, say nothing about their spread: the interval is the mean of their own.
    Ends may leave [0, 1]; clip for display.
    """
    tasks = len(estimates)
    if tasks == 0:
        return MacroMean(None, None, 0, "no task was measured")
    reason = next((one.reason for one in estimates if one.reason), None)
    if reason is not None:
        return MacroMean(None, None, tasks, reason)
    adjusted, least, most = np.array([(one.adjusted, one.least, one.most) for one in estimates], np.float64).T
    middle = macro_t(adjusted, confidence=confidence)
    if middle.interval is None:
        return MacroMean(middle.mean, _mean_interval([one.interval for one in estimates]), tasks)
    below, own, above = (_skewed(values, confidence) for values in (least, adjusted, most))
    return MacroMean(middle.mean, (min(below[0], own[0]), max(above[1], own[1])), tasks)


def fixed_tasks(estimates: Sequence[RangeEstimate]) -> MacroMean:
    """The mean over exactly these T tasks of signed adjusted ranges, with an interval over their items alone.

    The tasks' own distances from estimate to end are added as independent errors are, as the square root of the sum of
    squares over T (Zou and Donner 2008), around the tasks' `least` and `most`: the bias of a range has one sign in all
    tasks. Ends may leave [0, 1]; clip for display.
    """
    mean = macro_range(estimates)
    if mean.mean is None:
        return mean
    rows = [(one.adjusted, one.least, one.most, *(one.interval or (math.nan, math.nan))) for one in estimates]
    adjusted, least, most, low, high = np.array(rows, np.float64).T
    down, up = adjusted.clip(min=0) - low, high - adjusted.clip(min=0)
    # an end that is clipped at 0 says nothing of how far the estimate could be off
    down = np.where(low <= TIE, np.maximum(down, up), down)
    below, above = (math.sqrt(float((side**2).sum())) / len(rows) for side in (down, up))
    interval = min(mean.mean, float(least.mean())) - below, max(mean.mean, float(most.mean())) + above
    return MacroMean(mean.mean, interval if math.isfinite(sum(interval)) else None, len(rows))


def macro_t(signed: npt.ArrayLike, *, confidence: float = 0.95) -> MacroMean:
    """The mean over tasks of signed values (T,) with Student's interval, T - 1 degrees of freedom.

    Signed, since averages of values clipped at 0 are biased where effects are small; clip for display alone.
    """
    values = floats(signed)
    tasks = len(values)
    if tasks == 0:
        return MacroMean(None, None, 0, "no task was measured")
    if not np.isfinite(values).all():
        return MacroMean(None, None, tasks, "a task has no value")
    if tasks == 1 or np.ptp(values) <= TIE:
        reason = "one task has no spread" if tasks == 1 else "tasks that do not differ have no spread"
        return MacroMean(math.fsum(values) / tasks, None, tasks, reason)
    return MacroMean(math.fsum(values) / tasks, _student(values, confidence), tasks)


def _student(values: FloatArray, confidence: float) -> Interval:
    tasks = len(values)
    mean = math.fsum(values) / tasks
    half = float(stdtrit(tasks - 1, (1 + confidence) / 2)) * float(values.std(ddof=1)) / math.sqrt(tasks)
    return mean - half, mean + half


def _skewed(values: FloatArray, confidence: float) -> Interval:
    """Student's interval whose end on the side of the longer tail is moved out (Johnson 1978)."""
    low, high = _student(values, confidence)
    tasks = len(values)
    if tasks < 3 or np.ptp(values) <= TIE:
        return low, high
    centred = values - values.mean()
    # the adjusted coefficient of skewness
    shape = float((centred**3).mean() / (centred**2).mean() ** 1.5) * math.sqrt(tasks * (tasks - 1)) / (tasks - 2)
    quantile = float(stdtrit(tasks - 1, (1 + confidence) / 2))
    shift = shape * (1 + 2 * quantile**2) * float(values.std(ddof=1)) / (6 * tasks)
    return low + min(shift, 0.0), high + max(shift, 0.0)


def _mean_interval(intervals: Sequence[Interval | None]) -> Interval | None:
    known = [interval for interval in intervals if interval is not None]
    if len(known) < len(intervals):
        return None
    return math.fsum(low for low, _ in known) / len(known), math.fsum(high for _, high in known) / len(known)


def hierarchical_means(
    tasks: Sequence[npt.ArrayLike],
    rng: Rng,
    *,
    clusters: Sequence[npt.ArrayLike | None] | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
) -> tuple[MacroMean, ...]:
    """The mean over tasks of each of S plug-in ranges with the hierarchical percentile bootstrap that the FSI paper
    names as future work: tasks are drawn with replacement, then items (or clusters) within every task drawn.

    `tasks` are item means over seeds, (S, F_t, N_t) each: S matrices over the same items, so that accuracies and
    parseabilities share the resamples. `clusters` has ids (N_t,) or None per task. ValueError where these do not fit.
    No task gives an empty tuple.

    Percentiles of a range inherit its bias and add the resampling's own, so that the interval is not calibrated:
    `HIERARCHICAL_COVERAGE` says how far.
    """
    matrices = [floats(task, ndim=3) for task in tasks]
    units = _units(matrices, clusters)
    reasons = [_reason([matrix[s] for matrix in matrices], units) for s in range(len(matrices[0]) if matrices else 0)]
    if all(reasons):
        return tuple(MacroMean(None, None, len(matrices), reason) for reason in reasons)
    means = np.array([np.ptp(matrix.mean(axis=2), axis=1) for matrix in matrices]).T
    if len(matrices) == 1:
        return tuple(_alone(float(row[0]), reason) for row, reason in zip(means, reasons, strict=True))
    draws = _drawn(matrices, units, np.random.default_rng(rng), resamples)
    return tuple(_percentiles(*row, confidence=confidence) for row in zip(means, draws, reasons, strict=True))


def resampled_ranges(items: FloatArray, unit: IntArray, rng: Rng, resamples: int) -> FloatArray:
    """Ranges over wrappers of `items` (S, F, N) with units drawn with replacement, (resamples, S).

    `unit` (N,) is each item's unit by position. Ratio estimates where units differ in size.
    """
    sums, sizes = unit_sums(items.reshape(-1, items.shape[2]), unit), np.bincount(unit).astype(np.float64)
    means = resampled_means(sums, sizes, np.random.default_rng(rng), resamples).reshape(resamples, *items.shape[:2])
    ranges: FloatArray = means.max(axis=2) - means.min(axis=2)
    return ranges


def _drawn(matrices: list[FloatArray], units: list[IntArray], rng: np.random.Generator, resamples: int) -> FloatArray:
    """Means over resampled tasks of ranges over resampled items, (S, resamples)."""
    chosen = rng.integers(0, len(matrices), (resamples, len(matrices)))
    ranges = np.empty((*chosen.shape, len(matrices[0])))
    for task, (matrix, unit) in enumerate(zip(matrices, units, strict=True)):
        here = chosen == task
        # a task that is drawn twice gets two draws of items
        ranges[here] = resampled_ranges(matrix, unit, rng, int(here.sum()))
    means: FloatArray = ranges.mean(axis=1).T
    return means


def _units(matrices: list[FloatArray], clusters: Sequence[npt.ArrayLike | None] | None) -> list[IntArray]:
    groups = [None] * len(matrices) if clusters is None else list(clusters)
    if len(groups) != len(matrices):
        raise ValueError(f"{len(groups)} clusterings for {len(matrices)} tasks")
    if len({len(matrix) for matrix in matrices}) > 1:
        raise ValueError("tasks differ in the number of statistics")
    return [unit_of(matrix[0], group) for matrix, group in zip(matrices, groups, strict=True)]


def _reason(rows: list[FloatArray], units: list[IntArray]) -> str | None:
    reasons = (unusable(row, int(unit.max(initial=-1)) + 1) for row, unit in zip(rows, units, strict=True))
    return next((reason for reason in reasons if reason), None)


def _alone(value: float, reason: str | None) -> MacroMean:
    if reason is not None:
        return MacroMean(None, None, 1, reason)
    return MacroMean(value, None, 1, "one task cannot be resampled")


def _percentiles(values: FloatArray, draws: FloatArray, reason: str | None, *, confidence: float) -> MacroMean:
    if reason is not None:
        return MacroMean(None, None, len(values), reason)
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return MacroMean(math.fsum(values) / len(values), (float(low), float(high)), len(values))
