"""Speed of each statistic on the arrays of 140,000 generations: `python tests/bench/bench_stats.py`.

4 models x 7 tasks x 5 wrappers x 200 items x 5 seeds under one parser. Prints one line per function: the best of
three runs for the whole design, and how many calls that is.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from auditor.stats.bootstrap import macro_means
from auditor.stats.intervals import cell_interval, wilson
from auditor.stats.regression import accuracy_on_parseability
from auditor.stats.sensitivity import fsi, psi
from auditor.stats.simultaneous import range_bounds
from auditor.stats.spread import summarize, token_spreads
from auditor.stats.votes import seed_disagreement, tally, vote_scores
from auditor.stats.wins import wins

MODELS, TASKS, WRAPPERS, ITEMS, SEEDS = SHAPE = (4, 7, 5, 200, 5)
PAIRS, CELLS = MODELS * TASKS, MODELS * TASKS * WRAPPERS


def best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 5, SHAPE)
    right, parsed = code == 0, code < 4
    model, task, wrapper, item, seed = np.indices(SHAPE)
    group = np.ravel_multi_index((model, task, wrapper, item), SHAPE[:4]).ravel()
    spread_group = np.ravel_multi_index((model, task, item, seed), (MODELS, TASKS, ITEMS, SEEDS)).ravel()
    tokens = rng.integers(100, 120, SHAPE).ravel()
    counted = tally(group, code.ravel(), right.ravel())
    means = right.mean(axis=4).reshape(PAIRS, WRAPPERS, ITEMS)
    accuracy, parseability = right.mean(axis=(3, 4)), parsed.mean(axis=(3, 4))
    pairs = accuracy.reshape(PAIRS, WRAPPERS)
    factors = [list(map(int, index.ravel())) for index in np.indices(SHAPE[:3])]
    pair = np.repeat(np.arange(PAIRS), WRAPPERS)
    rows = rng.random((3, TASKS))
    work: list[tuple[str, int, Callable[[], object]]] = [
        ("fsi, psi, nfsi", PAIRS, lambda: [(fsi(row).relative, psi(row)) for row in pairs]),
        ("macro_means (3 x 7, 10,000)", MODELS, lambda: [macro_means(rows, 0) for _ in range(MODELS)]),
        (
            "accuracy_on_parseability",
            1,
            lambda: accuracy_on_parseability(accuracy.ravel(), parseability.ravel(), factors),
        ),
        ("tally", 1, lambda: tally(group, code.ravel(), right.ravel())),
        ("vote_scores", 1, lambda: vote_scores(counted.group, counted.count, counted.correct)),
        ("seed_disagreement", 1, lambda: seed_disagreement(counted.group, counted.count)),
        ("wins", 1, lambda: wins(pair, factors[2], accuracy.ravel(), WRAPPERS)),
        ("token_spreads + summarize", 1, lambda: summarize(token_spreads(spread_group, tokens).spread)),
        ("wilson", CELLS, lambda: [wilson(150, ITEMS) for _ in range(CELLS)]),
        ("cell_interval", CELLS, lambda: [cell_interval(row) for row in means.reshape(CELLS, ITEMS)]),
        ("range_bounds (10,000)", PAIRS, lambda: [range_bounds(y, 0) for y in means]),
    ]
    print(f"{'function':<30}{'calls':>7}{'ms':>10}")
    total = 0.0
    for name, calls, function in work:
        seconds = best(function)
        total += seconds
        print(f"{name:<30}{calls:>7}{1000 * seconds:>10.1f}")
    print(f"{'all, one parser':<37}{1000 * total:>10.1f}")


if __name__ == "__main__":
    main()
