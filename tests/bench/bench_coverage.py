"""Bias and coverage of the statistics of FSI and PSI where the truth is known.

`python tests/bench/bench_coverage.py [--quick] [--run FOLDER --parser NAME]` prints a Markdown table, a line per
setting as soon as it is done: of simulated designs, or, with `--run`, of designs resampled from the real replies of a
finished run. Every coverage is of a nominal 95 % interval, with its Monte Carlo error and, in brackets, the mean width.
A task is covered where its own range is, these tasks where the mean of theirs is, macro averages where the mean range
of the population of tasks is.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from generators import WRAPPERS, Design, Resampled, Simulated, replies

from auditor.stats.arrays import FloatArray, IntArray, Interval
from auditor.stats.bootstrap import macro_means
from auditor.stats.inversion import range_inversion
from auditor.stats.macro import fixed_tasks, hierarchical_means, macro_range, macro_t, resampled_ranges
from auditor.stats.simultaneous import range_bounds

DRAWS = 600
PER_TASK = ("inversion", "max-t", "percentile, items")
MACRO = ("range", "t on signed", "percentile, tasks", "hierarchical")
COLUMNS = (
    *("setting", "bias plug-in", "bias adjusted", *PER_TASK, "mean of these tasks"),
    *(f"macro: {name}" for name in MACRO),
)
TAIL = np.array([0.025, 0.975])

SIMULATED = (
    Simulated("FSI 0", 0),
    Simulated("FSI .025 hom spread", 0.025),
    Simulated("FSI .05 hom spread", 0.05),
    Simulated("FSI .05 hom onebad", 0.05, True),
    Simulated("FSI .05 het spread", 0.05, varying=True),
    Simulated("FSI .05 het onebad", 0.05, True, True),
    Simulated("FSI .3 hom spread", 0.3),
    Simulated("FSI .3 hom onebad", 0.3, True),
    Simulated("FSI .3 het spread", 0.3, varying=True),
    Simulated("FSI .3 het onebad", 0.3, True, True),
    Simulated("FSI 0, 3 tasks", 0, tasks=3),
    Simulated("FSI .05 het spread, 3 tasks", 0.05, varying=True, tasks=3),
    Simulated("FSI 0, 20 tasks", 0, tasks=20),
    Simulated("FSI .05 het spread, 20 tasks", 0.05, varying=True, tasks=20),
    Simulated("FSI .3 hom onebad, 20 tasks", 0.3, True, tasks=20),
    Simulated("FSI 0, 50 items", 0, items=50),
    Simulated("FSI .05 het spread, 50 items", 0.05, varying=True, items=50),
    Simulated("FSI .3 het onebad, 50 items", 0.3, True, True, items=50),
    Simulated("FSI 0, 1 seed", 0, seeds=1),
    Simulated("FSI 0, passages of 4", 0, cluster=4),
    Simulated("FSI .05 het spread, passages of 4", 0.05, varying=True, cluster=4),
    Simulated("the same, passages ignored", 0.05, varying=True, cluster=4, ignored=True),
    Simulated("PSI 0 at .99", 0, top=0.99),
    Simulated("PSI 0 at .999", 0, top=0.999),
    Simulated("PSI .01 hom onebad below .999", 0.01, True, top=0.999),
    Simulated("PSI .02 hom onebad below .999, 1 seed", 0.02, True, top=0.999, seeds=1),
    Simulated("PSI .05 hom spread below .995", 0.05, top=0.995),
    Simulated("PSI .05 het onebad below .995", 0.05, True, True, top=0.995),
    Simulated("PSI .3 het onebad below .995", 0.3, True, True, top=0.995),
    Simulated("PSI .95 hom onebad below .995", 0.95, True, top=0.995),
    Simulated("PSI .05 het onebad below .995, 50 items", 0.05, True, True, top=0.995, items=50),
    Simulated("PSI .05 het onebad below .995, passages of 4", 0.05, True, True, top=0.995, cluster=4),
)


def resampled(folder: Path, parser: str) -> Iterator[Resampled]:
    """The tasks of a run as the only ones and as a sample of their kind, and such a sample without an effect."""
    populations = {"FSI": replies(folder, parser, "correct"), "PSI": replies(folder, parser, "parsed")}
    kinds = (
        ("as is", None, 0),
        ("as is", 7, 0),
        ("as is", 20, 0),
        ("no effect", 7, WRAPPERS),
        ("no effect", 20, WRAPPERS),
    )
    for (measure, found), (effect, tasks, tied) in product(populations.items(), kinds):
        for items, seeds in product((200, 50), (5, 1)):
            kind = f"the {len(found)} tasks" if tasks is None else f"{tasks} tasks drawn"
            yield Resampled(f"{measure} {effect}, {kind}, {items} items x {seeds}", found, tasks, items, seeds, tied)


@dataclass(frozen=True, slots=True)
class Repetition:
    """Per task (T,): true, plug-in and adjusted ranges; intervals (methods, T, 2). Intervals of the mean over these
    tasks, (2,), and over all of their kind, (methods, 2)."""

    truth: FloatArray
    plugin: FloatArray
    adjusted: FloatArray
    tasks: FloatArray
    these: FloatArray
    macro: FloatArray


def repeated(design: Design, rng: np.random.Generator) -> Repetition:
    """Every statistic of one draw of a design."""
    truth, items = design.drawn(rng)
    unit = design.unit
    found = [range_inversion(task, rng, clusters=unit, draws=DRAWS) for task in items]
    tasks = [
        [known(one.interval) for one in found],
        [known(range_bounds(task, rng, clusters=unit, draws=DRAWS).interval) for task in items],
        [np.quantile(resampled_ranges(task[None], unit, rng, DRAWS)[:, 0], TAIL) for task in items],
    ]
    plugin, adjusted = np.array([(one.observed, one.adjusted) for one in found], np.float64).T
    macro = []
    if design.target is not None:
        macro = [
            known(macro_range(found).interval),
            known(macro_t(adjusted).interval),
            known(macro_means([plugin], rng, resamples=DRAWS)[0].interval),
            known(hierarchical(items, unit, rng)),
        ]
    these = known(fixed_tasks(found).interval)
    return Repetition(truth, plugin, adjusted, np.array(tasks), np.array(these), np.array(macro))


def hierarchical(items: FloatArray, unit: IntArray, rng: np.random.Generator) -> Interval | None:
    (found,) = hierarchical_means([task[None] for task in items], rng, clusters=[unit] * len(items), resamples=DRAWS)
    return found.interval


def known(interval: Interval | None) -> Interval:
    if interval is None:
        raise AssertionError("a design gave no interval")
    return interval


def row(design: Design, runs: list[Repetition]) -> str:
    """One line of the table."""
    truth = np.array([run.truth for run in runs])
    biases = [
        bias(np.array([run.plugin for run in runs]) - truth),
        bias(np.array([run.adjusted for run in runs]) - truth),
    ]
    tasks, macro = np.array([run.tasks for run in runs]), np.array([run.macro for run in runs])
    per_task = [coverage(tasks[:, method], truth) for method in range(len(PER_TASK))]
    these = coverage(np.array([run.these for run in runs]), truth.mean(axis=1))
    averages = [""] * len(MACRO)
    if design.target is not None:
        averages = [coverage(macro[:, method], np.full(len(runs), design.target)) for method in range(len(MACRO))]
    return "| " + " | ".join([design.name, *biases, *per_task, these, *averages]) + " |"


def bias(excess: FloatArray) -> str:
    """The mean excess over the truth (reps, T) and its error."""
    means = excess.mean(axis=1)
    return f"{means.mean():+.4f} ± {means.std(ddof=1) / math.sqrt(len(means)):.4f}"


def coverage(intervals: FloatArray, truth: FloatArray) -> str:
    """Share of intervals (..., 2) that hold `truth` (...), its error, and the mean width."""
    low, high = intervals[..., 0], intervals[..., 1]
    # rates come back through a difference of two: equal but for rounding is covered
    share = float(((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean())
    return f"{shown(share, truth.size)} ({(high - low).mean():.3f})"


def shown(share: float, tries: int) -> str:
    """A share of tries and its error."""
    # one more of each kind, so that a share of 1 has an error too
    smooth = (share * tries + 1) / (tries + 2)
    return f"{share:.3f} ± {math.sqrt(smooth * (1 - smooth) / tries):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=500, help="repetitions of each setting (500)")
    parser.add_argument("--quick", action="store_true", help="20 repetitions, to see that it runs")
    parser.add_argument("--run", type=Path, help="the folder of a finished run, to resample its replies")
    parser.add_argument("--parser", default="normalized", help="the parser that reads them (normalized)")
    options = parser.parse_args()
    reps = 20 if options.quick else options.reps
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    start = time.perf_counter()
    for design in resampled(options.run, options.parser) if options.run else SIMULATED:
        rng = np.random.default_rng(20)
        print(row(design, [repeated(design, rng) for _ in range(reps)]), flush=True)
    print(f"\n{reps} repetitions, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
