"""How often the tests reject at 5 % where there is nothing to find.

`python tests/bench/bench_tests.py [--quick] [--run FOLDER --parser NAME]` prints two Markdown tables of rejection rates
with their Monte Carlo errors: tests of a wrapper effect where wrappers have none, of simulated designs and, with
`--run`, of the real replies of a finished run, whose wrappers change labels at random within every item; then what is
said of best wrappers, of models that change places and of the regression. Rates are of single tasks, but for Holm's,
which is of any rejection among seven tasks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from bench_coverage import shown
from generators import WRAPPERS, Design, Resampled, Simulated, replies

from auditor.stats.arrays import FloatArray, Interval
from auditor.stats.best import best, reversals
from auditor.stats.effects import cochran_q, holm, permutation_test
from auditor.stats.noise import normal_noise, unit_errors
from auditor.stats.pairs import difference, discordant, mcnemar
from auditor.stats.regression import Regression, accuracy_on_parseability
from auditor.stats.simultaneous import range_bounds

LEVEL, DRAWS, MODELS, TASKS, ITEMS = 0.05, 999, 4, 7, 200
ONE_SEED = Simulated("", 0, items=ITEMS, seeds=1)
TESTS = (
    *("permutation", "permutation, mid-p", "Holm", "Cochran's Q", "max-t > 0"),
    *("McNemar", "McNemar, mid-p", "percentile", "BCa"),
)
AHEAD = {
    "all equal": np.zeros((MODELS, WRAPPERS)),
    "models and wrappers differ": np.add.outer(np.linspace(0, 0.2, MODELS), np.linspace(0, 0.1, WRAPPERS)),
    "one model ahead under four wrappers, equal under one": np.pad(np.full((1, 4), 0.2), ((0, MODELS - 1), (0, 1))),
}
"""By how much models are ahead under wrappers, none ever behind where it is ahead elsewhere."""

Populations = dict[str, tuple[FloatArray, ...]]
Once = Callable[[np.random.Generator], list[bool]]


def varying(found: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
    """Without the tasks on which a model never, or always, succeeds: there is nothing to test."""
    return tuple(task for task in found if np.ptp(task) > 0)


def nulls(populations: Populations) -> Iterator[Design]:
    """Designs without an effect: all wrappers have one rate in every task."""
    for items, seeds in product((200, 50), (5, 1)):
        size = f"{items} items x {seeds}"
        yield Simulated(f"simulated, {size}", 0, tasks=TASKS, items=items, seeds=seeds)
        for measure, found in populations.items():
            yield Resampled(f"real, {measure}, {size}", found, TASKS, items, seeds, tied=WRAPPERS)


def rejections(tasks: FloatArray, seeds: int, rng: np.random.Generator) -> dict[str, list[bool]]:
    """What every test says of `tasks` (T, F, N)."""
    found = [permutation_test(task, rng, relabellings=DRAWS) for task in tasks]
    told = {
        "permutation": [rejects(one.p) for one in found],
        "permutation, mid-p": [rejects(one.mid_p) for one in found],
        "Holm": [any(rejects(p) for p in holm([one.p for one in found]))],
        "max-t > 0": [excludes_0(range_bounds(task, rng, draws=DRAWS).interval) for task in tasks],
    }
    if seeds == 1:
        told["Cochran's Q"] = [rejects(cochran_q(task).p) for task in tasks]
    if tasks.shape[1] == 2:
        pairs = [difference(task[0], task[1], rng, resamples=DRAWS) for task in tasks]
        told["percentile"] = [excludes_0(pair.percentile) for pair in pairs]
        told["BCa"] = [excludes_0(pair.bca) for pair in pairs]
    if tasks.shape[1] == 2 and seeds == 1:
        exact = [mcnemar(*discordant(*task)) for task in tasks]
        told["McNemar"] = [rejects(one.p) for one in exact]
        told["McNemar, mid-p"] = [rejects(one.mid_p) for one in exact]
    return told


def rejects(p: float | None) -> bool:
    return p is not None and p <= LEVEL


def excludes_0(interval: Interval | None) -> bool:
    return interval is not None and (interval[0] > 0 or interval[1] < 0)


def loses(task: FloatArray, tied: int, rng: np.random.Generator) -> bool:
    """Whether one of the first `tied` wrappers of a task (F, N), all truly best, is told from the best."""
    errors = unit_errors(task, np.arange(task.shape[1]))
    contenders = best(task.mean(axis=1), errors, normal_noise(errors, rng, DRAWS)).contenders or ()
    return not set(range(tied)) <= set(contenders)


def certifies(tasks: FloatArray, rng: np.random.Generator) -> bool:
    """Whether a reversal between any two models is certified from tasks (T, M, F, N)."""
    return any(order.certified for order in reversals(list(tasks), rng, draws=DRAWS).orders or ())


def slopes(rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether A on P, and A given parsed on P, have a slope where wrappers move nothing but P."""
    chances = np.repeat(rng.uniform(0.5, 0.7, (TASKS, MODELS)), WRAPPERS, axis=1)
    correct = ONE_SEED.items_at(chances, rng)
    parsed = rng.random(correct.shape) < rng.uniform(0.8, 1, chances.shape)[:, :, None]
    p, a = parsed.mean(axis=2).ravel(), (correct * parsed).mean(axis=2).ravel()
    factors = [factor.ravel().tolist() for factor in np.indices((TASKS, MODELS, WRAPPERS))]
    plain = accuracy_on_parseability(a, p, factors)
    given = accuracy_on_parseability(a / p, p, factors, weights=ITEMS * p)
    return has_slope(plain), has_slope(given)


def has_slope(found: Regression) -> bool:
    return found.fit is not None and rejects(found.fit.p)


def claims(populations: Populations) -> Iterator[tuple[str, Once]]:
    """What is claimed though it is not so, and how to draw it once."""
    bad: list[Design] = [Simulated(f"simulated, x {seeds}", 0.1, True, seeds=seeds) for seeds in (5, 1)]
    for measure, found in populations.items():
        bad += [Resampled(f"real, {measure}, x {seeds}", found, TASKS, ITEMS, seeds, WRAPPERS - 1) for seeds in (5, 1)]
    for design in bad:
        yield f"one of four best wrappers is lost: {design.name}", partial(lost, design)
    for name, ahead in AHEAD.items():
        yield f"a reversal is certified: {name}", partial(reversed_, ahead)
    for measure, found in populations.items():
        design = Resampled("", found, TASKS, ITEMS, 1, WRAPPERS)
        yield f"a reversal is certified: 2 x 2 real, {measure}, all equal", partial(reversed_real, design)
    yield "A depends on P: wrappers move P alone", lambda rng: [slopes(rng)[0]]
    yield "A given parsed depends on P: the same", lambda rng: [slopes(rng)[1]]


def lost(design: Design, rng: np.random.Generator) -> list[bool]:
    return [loses(task, WRAPPERS - 1, rng) for task in design.drawn(rng)[1]]


def reversed_(ahead: FloatArray, rng: np.random.Generator) -> list[bool]:
    rates = rng.uniform(0.4, 0.6, (TASKS, 1)) + ahead.ravel()
    return [certifies(ONE_SEED.items_at(rates, rng).reshape(TASKS, *ahead.shape, ITEMS), rng)]


def reversed_real(design: Design, rng: np.random.Generator) -> list[bool]:
    """Four of the tied wrappers play two models under two."""
    return [certifies(design.drawn(rng)[1][:, :4].reshape(TASKS, 2, 2, ITEMS), rng)]


def tried(once: Once, reps: int) -> list[bool]:
    rng = np.random.default_rng(20)
    return [found for _ in range(reps) for found in once(rng)]


def row(design: Design, wrappers: int, reps: int) -> str:
    """One line of the first table."""
    rng = np.random.default_rng(20)
    runs = [rejections(design.drawn(rng)[1][:, :wrappers], design.seeds, rng) for _ in range(reps)]
    found = {name: np.concatenate([run[name] for run in runs]) for name in runs[0]}
    rates = [shown(float(found[name].mean()), found[name].size) if name in found else "" for name in TESTS]
    return "| " + " | ".join([design.name, str(wrappers), *rates]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=1000, help="repetitions of each setting (1000)")
    parser.add_argument("--quick", action="store_true", help="20 repetitions, to see that it runs")
    parser.add_argument("--run", type=Path, help="the folder of a finished run, to resample its replies too")
    parser.add_argument("--parser", default="normalized", help="the parser that reads them (normalized)")
    options = parser.parse_args()
    reps = 20 if options.quick else options.reps
    measures = ("correct", "parsed") if options.run else ()
    populations = {measure: varying(replies(options.run, options.parser, measure)) for measure in measures}
    start = time.perf_counter()
    print("| no effect | wrappers | " + " | ".join(TESTS) + " |\n" + "|---" * (len(TESTS) + 2) + "|", flush=True)
    for design, wrappers in product(nulls(populations), (WRAPPERS, 2)):
        print(row(design, wrappers, reps), flush=True)
    print("\n| claim | rate |\n|---|---|", flush=True)
    for name, once in claims(populations):
        outcomes = tried(once, reps)
        print(f"| {name} | {shown(float(np.mean(outcomes)), len(outcomes))} |", flush=True)
    print(f"\n{reps} repetitions, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
