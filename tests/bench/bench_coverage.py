"""Bias and coverage of the statistics of FSI and PSI by simulation: `python tests/bench/bench_coverage.py [--quick]`.

Prints a Markdown table, a line per setting as soon as it is done. Every coverage is of a nominal 95 % interval, with
its Monte Carlo error and, in brackets, the mean width. Cells of a task: logit p = d + 2.0 z(item) + 0.7 z(item,
wrapper), d solved so that the mean over items is the wrapper's rate exactly; seeds are Bernoulli draws. Tasks are
covered where a task's own range is, macro averages where the mean range of the population of tasks is.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from auditor.stats.arrays import FloatArray, IntArray, Interval
from auditor.stats.bootstrap import macro_means
from auditor.stats.inversion import range_inversion
from auditor.stats.macro import hierarchical_means, macro_range, macro_t, resampled_ranges
from auditor.stats.simultaneous import range_bounds

WRAPPERS, ITEM_SD, WRAPPER_SD, DRAWS = 5, 2.0, 0.7, 600
PER_TASK = ("inversion", "max-t", "percentile, items")
MACRO = ("range", "t on signed", "percentile, tasks", "hierarchical")
TAIL = np.array([0.025, 0.975])


@dataclass(frozen=True, slots=True)
class Setting:
    """One row. `top` is the best wrapper's rate, drawn per task (base .4 to .7) when None; `varying` draws the range
    of a task as effect x 3 x Beta(1.5, 3), whose mean is `effect`; `cluster` items share half of every variance."""

    name: str
    effect: float
    one_bad: bool = False
    varying: bool = False
    tasks: int = 7
    items: int = 200
    seeds: int = 5
    top: float | None = None
    cluster: int = 1
    ignored: bool = False


SETTINGS = (
    Setting("FSI 0", 0),
    Setting("FSI .025 hom spread", 0.025),
    Setting("FSI .05 hom spread", 0.05),
    Setting("FSI .05 hom onebad", 0.05, True),
    Setting("FSI .05 het spread", 0.05, varying=True),
    Setting("FSI .05 het onebad", 0.05, True, True),
    Setting("FSI .3 hom spread", 0.3),
    Setting("FSI .3 hom onebad", 0.3, True),
    Setting("FSI .3 het spread", 0.3, varying=True),
    Setting("FSI .3 het onebad", 0.3, True, True),
    Setting("FSI 0, 3 tasks", 0, tasks=3),
    Setting("FSI .05 het spread, 3 tasks", 0.05, varying=True, tasks=3),
    Setting("FSI 0, 20 tasks", 0, tasks=20),
    Setting("FSI .05 het spread, 20 tasks", 0.05, varying=True, tasks=20),
    Setting("FSI .3 hom onebad, 20 tasks", 0.3, True, tasks=20),
    Setting("FSI 0, 50 items", 0, items=50),
    Setting("FSI .05 het spread, 50 items", 0.05, varying=True, items=50),
    Setting("FSI .3 het onebad, 50 items", 0.3, True, True, items=50),
    Setting("FSI 0, 1 seed", 0, seeds=1),
    Setting("FSI 0, passages of 4", 0, cluster=4),
    Setting("FSI .05 het spread, passages of 4", 0.05, varying=True, cluster=4),
    Setting("the same, passages ignored", 0.05, varying=True, cluster=4, ignored=True),
    Setting("PSI 0 at .99", 0, top=0.99),
    Setting("PSI 0 at .999", 0, top=0.999),
    Setting("PSI .01 hom onebad below .999", 0.01, True, top=0.999),
    Setting("PSI .02 hom onebad below .999, 1 seed", 0.02, True, top=0.999, seeds=1),
    Setting("PSI .05 hom spread below .995", 0.05, top=0.995),
    Setting("PSI .05 het onebad below .995", 0.05, True, True, top=0.995),
    Setting("PSI .3 het onebad below .995", 0.3, True, True, top=0.995),
    Setting("PSI .95 hom onebad below .995", 0.95, True, top=0.995),
    Setting("PSI .05 het onebad below .995, 50 items", 0.05, True, True, top=0.995, items=50),
    Setting("PSI .05 het onebad below .995, passages of 4", 0.05, True, True, top=0.995, cluster=4),
)


@dataclass(frozen=True, slots=True)
class Repetition:
    """Per task (T,): true, plug-in and adjusted ranges; intervals (methods, T, 2); macro intervals (methods, 2)."""

    truth: FloatArray
    plugin: FloatArray
    adjusted: FloatArray
    tasks: FloatArray
    macro: FloatArray


def intercepts(rates: FloatArray) -> FloatArray:
    """d with E expit(d + sd z) = rate, by interpolation in a table of Gauss-Hermite integrals."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.linspace(-16, 16, 4001)
    means = expit(grid[:, None] + math.hypot(ITEM_SD, WRAPPER_SD) * nodes) @ (weights / weights.sum())
    return np.interp(rates, means, grid)


def rates_of(setting: Setting, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """True ranges (T,) and the wrappers' rates (T, F)."""
    ranges = np.full(setting.tasks, setting.effect)
    if setting.varying:
        ranges = setting.effect * 3 * rng.beta(1.5, 3, setting.tasks)
    pattern = np.array([0.0] * (WRAPPERS - 1) + [1.0]) if setting.one_bad else np.linspace(0, 1, WRAPPERS)
    centre = np.clip(rng.uniform(0.4, 0.7, setting.tasks), ranges / 2 + 0.02, 0.98 - ranges / 2)
    top = centre + ranges / 2 if setting.top is None else np.full(setting.tasks, setting.top)
    return ranges, top[:, None] - ranges[:, None] * pattern


def drawn_items(setting: Setting, rates: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Item means over seeds, (T, F, N)."""
    item = normal(setting, rng, (len(rates), 1))
    interaction = normal(setting, rng, rates.shape)
    chance = expit(intercepts(rates)[:, :, None] + ITEM_SD * item + WRAPPER_SD * interaction)
    return np.asarray(rng.binomial(setting.seeds, chance) / setting.seeds)


def normal(setting: Setting, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Standard normal, (*shape, N); items of a cluster correlate by one half."""
    own = rng.standard_normal((*shape, setting.items))
    if setting.cluster == 1:
        return own
    shared = rng.standard_normal((*shape, -(-setting.items // setting.cluster)))
    return np.asarray((own + shared.repeat(setting.cluster, axis=-1)[..., : setting.items]) / math.sqrt(2))


def repeated(setting: Setting, rng: np.random.Generator) -> Repetition:
    """Every statistic of one simulated design."""
    truth, rates = rates_of(setting, rng)
    items = drawn_items(setting, rates, rng)
    unit = np.arange(setting.items) // (1 if setting.ignored else setting.cluster)
    found = [range_inversion(task, rng, clusters=unit, draws=DRAWS) for task in items]
    adjusted = np.array([one.adjusted for one in found], np.float64)
    plugin = np.array([one.observed for one in found], np.float64)
    tasks = [
        [known(one.interval) for one in found],
        [known(range_bounds(task, rng, clusters=unit, draws=DRAWS).interval) for task in items],
        [np.quantile(resampled_ranges(task[None], unit, rng, DRAWS)[:, 0], TAIL) for task in items],
    ]
    macro = [
        known(macro_range(found).interval),
        known(macro_t(adjusted).interval),
        known(macro_means([plugin], rng, resamples=DRAWS)[0].interval),
        known(hierarchical(items, unit, rng)),
    ]
    return Repetition(truth, plugin, adjusted, np.array(tasks), np.array(macro))


def hierarchical(items: FloatArray, unit: IntArray, rng: np.random.Generator) -> Interval | None:
    (found,) = hierarchical_means([task[None] for task in items], rng, clusters=[unit] * len(items), resamples=DRAWS)
    return found.interval


def known(interval: Interval | None) -> Interval:
    if interval is None:
        raise AssertionError("a simulated design gave no interval")
    return interval


def row(setting: Setting, runs: list[Repetition]) -> str:
    """One line of the table."""
    truth = np.array([run.truth for run in runs])
    estimates = np.array([(run.plugin.mean(), run.adjusted.mean()) for run in runs])
    biases = [bias(means, setting.effect) for means in estimates.T]
    tasks, macro = np.array([run.tasks for run in runs]), np.array([run.macro for run in runs])
    per_task = [coverage(tasks[:, method], truth) for method in range(len(PER_TASK))]
    averages = [coverage(macro[:, method], np.full(len(runs), setting.effect)) for method in range(len(MACRO))]
    return "| " + " | ".join([setting.name, *biases, *per_task, *averages]) + " |"


def bias(means: FloatArray, target: float) -> str:
    return f"{means.mean() - target:+.4f} ± {means.std(ddof=1) / math.sqrt(len(means)):.4f}"


def coverage(intervals: FloatArray, truth: FloatArray) -> str:
    """Share of intervals (..., 2) that hold `truth` (...), its error, and the mean width."""
    low, high = intervals[..., 0], intervals[..., 1]
    # rates come back through a difference of two: equal but for rounding is covered
    share = float(((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean())
    # one more of each kind, so that a share of 1 has an error too
    smooth = (share * truth.size + 1) / (truth.size + 2)
    return f"{share:.3f} ± {math.sqrt(smooth * (1 - smooth) / truth.size):.3f} ({(high - low).mean():.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=500, help="repetitions of each setting (500)")
    parser.add_argument("--quick", action="store_true", help="20 repetitions, to see that it runs")
    options = parser.parse_args()
    reps = 20 if options.quick else options.reps
    header = ["setting", "bias plug-in", "bias adjusted", *PER_TASK, *(f"macro: {name}" for name in MACRO)]
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|", flush=True)
    start = time.perf_counter()
    for setting in SETTINGS:
        rng = np.random.default_rng(20)
        print(row(setting, [repeated(setting, rng) for _ in range(reps)]), flush=True)
    print(f"\n{reps} repetitions, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
