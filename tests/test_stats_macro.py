"""Macro averages over tasks: Student's interval, the one for ranges, and the hierarchical bootstrap."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditor.stats.arrays import FloatArray, Interval
from auditor.stats.bootstrap import MacroMean
from auditor.stats.inversion import RangeEstimate, range_inversion
from auditor.stats.macro import fixed_tasks, hierarchical_means, macro_range, macro_t, resampled_ranges


def estimate(adjusted: float, least: float, most: float, interval: Interval | None = None) -> RangeEstimate:
    """A task's estimate; its plug-in range and floor do not matter here."""
    return RangeEstimate(0.5, 0.1, adjusted, interval, least, most, 200)


def matrices(seed: int, tasks: int = 3, wrappers: int = 3, items: int = 12) -> list[FloatArray]:
    """Item means of five seeds, one matrix (1, F, N) a task."""
    rng = np.random.default_rng(seed)
    chance = rng.random((tasks, 1, wrappers, 1)) * 0.5 + rng.random((tasks, 1, 1, items)) * 0.5
    return list(rng.binomial(5, chance) / 5)


def test_students_interval_by_hand() -> None:
    """-.01, .05, .02: mean .02, sd .03, and the 97.5 % quantile of t with 2 degrees of freedom is 4.302653."""
    half = 4.302652729911275 * 0.03 / math.sqrt(3)
    found = macro_t([-0.01, 0.05, 0.02])
    assert found.mean == pytest.approx(0.02)
    assert found.interval == pytest.approx((0.02 - half, 0.02 + half))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20).filter(lambda values: len(set(values)) > 1))
def test_students_interval_is_scipys(values: list[int]) -> None:
    """The interval is scipy's, at any number of tasks and any level."""
    rates = [value / 100 for value in values]
    expected = stats.t.interval(0.9, len(rates) - 1, np.mean(rates), stats.sem(rates))
    assert macro_t(rates, confidence=0.9).interval == pytest.approx(expected, abs=1e-12)


def test_students_interval_needs_a_spread() -> None:
    """No task, a missing value, one task, and equal tasks have no interval and say why."""
    assert macro_t([]) == MacroMean(None, None, 0, "no task was measured")
    assert macro_t([0.1, float("nan")]) == MacroMean(None, None, 2, "a task has no value")
    assert macro_t([0.1]) == MacroMean(0.1, None, 1, "one task has no spread")
    assert macro_t([0.5, 0.5]) == MacroMean(0.5, None, 2, "tasks that do not differ have no spread")


def test_the_interval_of_ranges_reaches_as_far_as_the_bias_can() -> None:
    """The mean is that of the signed estimates; the ends are those of `least` and `most`, which are not skewed here."""
    tasks = [estimate(0.02, -0.03, 0.05), estimate(0.06, 0.05, 0.09), estimate(-0.02, -0.11, 0.07)]
    found = macro_range(tasks)
    low, high = macro_t([-0.03, 0.05, -0.11]).interval, macro_t([0.05, 0.07, 0.09]).interval
    middle = macro_t([0.02, 0.06, -0.02]).interval
    assert low is not None
    assert high is not None
    assert middle is not None
    assert found.mean == pytest.approx(0.06 / 3)
    assert low[0] < middle[0]
    assert found.interval == pytest.approx((low[0], max(high[1], middle[1])))


def test_the_end_on_the_side_of_the_longer_tail_moves_out() -> None:
    """0, 0, 0, .4: mean .1, sd .2, adjusted skewness 2; Johnson's shift is 2 (1 + 2 t^2) .2 / 24, upward alone."""
    quantile = float(stats.t.ppf(0.975, 3))
    found = macro_range([estimate(value, value, value) for value in (0.0, 0.0, 0.0, 0.4)])
    half = quantile * 0.2 / 2
    assert found.interval == pytest.approx((0.1 - half, 0.1 + half + 2 * (1 + 2 * quantile**2) * 0.2 / 24))


def test_the_interval_of_ranges_is_never_shorter_than_students() -> None:
    """Where the cautious estimates happen to agree better, the signed ones' own interval stays."""
    tasks = [estimate(0.0, 0.02, 0.05), estimate(0.1, 0.02, 0.05)]
    assert macro_range(tasks).interval == macro_t([0.0, 0.1]).interval


def test_one_task_has_its_own_interval() -> None:
    """One task says nothing about others."""
    assert macro_range([estimate(0.02, 0, 0.05, (0.0, 0.06))]) == MacroMean(0.02, (0.0, 0.06), 1)


def test_tasks_that_do_not_differ_keep_their_uncertainty() -> None:
    """Everything parsed in all tasks: 0 with the mean of the rules of three, not an interval without width."""
    found = macro_range([range_inversion(np.ones((3, items)), 0) for items in (100, 300)])
    assert found.mean == 0
    assert found.interval == pytest.approx((0.0, 0.02))


def test_a_task_without_estimate_leaves_the_mean_open() -> None:
    """The reason of the task is the reason of the mean; no task is a reason too."""
    tasks = [range_inversion(np.ones((wrappers, 10)), 0) for wrappers in (2, 1)]
    assert macro_range(tasks) == MacroMean(None, None, 2, "fewer than two wrappers")
    assert macro_range([]) == MacroMean(None, None, 0, "no task was measured")


def exact_draws(tasks: list[FloatArray]) -> list[float]:
    """Every equally likely hierarchical resample: tasks, then items within each task drawn."""
    count = len(tasks)
    resamples = [
        [float(np.ptp(task[:, list(items)].mean(axis=1))) for items in itertools.product(range(2), repeat=2)]
        for task in tasks
    ]
    return [
        float(np.mean(ranges))
        for chosen in itertools.product(range(count), repeat=count)
        for ranges in itertools.product(*(resamples[task] for task in chosen))
    ]


def test_percentiles_of_the_exact_hierarchical_bootstrap() -> None:
    """With two tasks of two items the ends are quantiles of the 64 equally likely resamples."""
    tasks = [np.array([[0.9, 0.1], [0.2, 0.3]]), np.array([[0.3, 0.6], [0.35, 0.5]])]
    draws = exact_draws(tasks)
    assert len(draws) == 64
    (found,) = hierarchical_means([task[None] for task in tasks], 1, resamples=50_000, confidence=0.77)
    assert found.mean == pytest.approx((0.25 + 0.025) / 2)
    assert found.interval == pytest.approx(np.quantile(draws, [0.115, 0.885], method="inverted_cdf"), abs=1e-12)


def by_loops(tasks: list[FloatArray], units: list[list[int]], seed: int, resamples: int) -> FloatArray:
    """The hierarchical bootstrap one draw at a time, item by item."""
    rng, means = np.random.default_rng(seed), []
    for _ in range(resamples):
        ranges = []
        for task in rng.integers(0, len(tasks), len(tasks)):
            ids = sorted(set(units[task]))
            picked = [i for unit in rng.choice(ids, len(ids)) for i, own in enumerate(units[task]) if own == unit]
            ranges.append(np.ptp(tasks[task][0][:, picked].mean(axis=1)))
        means.append(np.mean(ranges))
    return np.asarray(np.quantile(means, [0.025, 0.975]))


@pytest.mark.parametrize("clusters", [None, [0, 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7]])
def test_the_loop_agrees(clusters: list[int] | None) -> None:
    """Drawing counts gives the percentiles of drawing tasks and items, or unequal clusters, one by one."""
    tasks = matrices(2)
    units = [clusters or list(range(12))] * 3
    (found,) = hierarchical_means(tasks, 3, clusters=None if clusters is None else [clusters] * 3, resamples=40_000)
    assert found.interval == pytest.approx(by_loops(tasks, units, 4, 4000), abs=0.015)


def test_hierarchical_rows_share_the_resamples() -> None:
    """A shifted copy of a statistic gets the same ranges, and a row is what it is alone."""
    tasks = matrices(5)
    (alone,) = hierarchical_means(tasks, 0, resamples=500)
    both = hierarchical_means([np.concatenate([task, task / 2 + 0.1]) for task in tasks], 0, resamples=500)
    assert alone.interval is not None
    assert both[0].interval == pytest.approx(alone.interval, abs=1e-12)
    assert both[1].interval == pytest.approx([end / 2 for end in alone.interval], abs=1e-12)


def test_hierarchical_same_seed_same_bytes() -> None:
    """A seed and a generator from it agree; another seed does not."""
    tasks = matrices(6)
    assert hierarchical_means(tasks, 1, resamples=300) == hierarchical_means(
        tasks, np.random.default_rng(1), resamples=300
    )
    assert hierarchical_means(tasks, 1, resamples=300) != hierarchical_means(tasks, 2, resamples=300)


def test_few_resamples_may_miss_a_task() -> None:
    """One resample of many tasks leaves some undrawn, which is no error."""
    (found,) = hierarchical_means(matrices(7, tasks=6), 0, resamples=1)
    assert found.interval is not None
    assert found.interval[0] == found.interval[1]


def test_pieces_of_a_resample_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting in pieces draws the same numbers as counting at once."""
    (task,) = matrices(8, tasks=1)
    whole = resampled_ranges(task, np.arange(12), 0, 50)
    monkeypatch.setattr("auditor.stats.resample.CELLS", 12 * 7)
    assert whole.shape == (50, 1)
    assert resampled_ranges(task, np.arange(12), 0, 50) == pytest.approx(whole, abs=1e-12)


def test_what_cannot_be_resampled_gives_a_reason() -> None:
    """One task has a mean without interval; a hole, one wrapper or no items leave None; no task leaves nothing."""
    (alone,) = hierarchical_means(matrices(9, tasks=1), 0)
    assert (alone.interval, alone.reason) == (None, "one task cannot be resampled")
    whole = matrices(10, tasks=2)
    hole = [np.concatenate([task, task]) for task in whole]
    hole[0][1, 0, 0] = np.nan
    first, second = hierarchical_means(hole, 0, resamples=200)
    assert first.interval is not None
    assert second == MacroMean(None, None, 2, "an item was not measured under every wrapper")
    (one,) = hierarchical_means([np.ones((1, 1, 5))] * 2, 0)
    (none,) = hierarchical_means([np.ones((1, 2, 0))] * 2, 0)
    assert one == MacroMean(None, None, 2, "fewer than two wrappers")
    assert none == MacroMean(None, None, 2, "fewer than two items or clusters")
    assert hierarchical_means([], 0) == ()


def test_shapes_that_do_not_fit_are_refused() -> None:
    """Tasks carry the same statistics, and clusters come for every task."""
    with pytest.raises(ValueError, match="number of statistics"):
        hierarchical_means([np.ones((1, 2, 4)), np.ones((2, 2, 4))], 0)
    with pytest.raises(ValueError, match="1 clusterings for 2 tasks"):
        hierarchical_means([np.ones((1, 2, 4))] * 2, 0, clusters=[None])


@pytest.mark.parametrize("effects", [(0, 0, 0, 0, 0), (0.2, 0.2, 0.2, 0.2, 0)])
def test_coverage(effects: tuple[float, ...]) -> None:
    """Twenty tasks alike, no effect or one bad wrapper: at least 40 of 44 runs, and more than by Student's interval."""
    rng, truth, held, student = np.random.default_rng(11), max(effects), 0, 0
    for _ in range(44):
        chance = rng.uniform(0.1, 0.7, (20, 1, 200)) + np.array(effects)[:, None]
        found = [range_inversion(task, rng, draws=200) for task in rng.binomial(5, chance) / 5]
        adjusted = np.array([one.adjusted for one in found], np.float64)
        interval, alone = macro_range(found).interval, macro_t(adjusted).interval
        held += interval is not None and interval[0] <= truth <= interval[1]
        student += alone is not None and alone[0] <= truth <= alone[1]
    assert held >= 40
    assert student < held


# Exactly these tasks -------------------------------------------------------------------------------------------


def test_the_interval_for_exactly_these_tasks_by_hand() -> None:
    """Estimates .10 and .06, least .08 and .05, most .13 and .07: from the mean of least less hypot(.06, .04) / 2 to
    the mean of most plus hypot(.08, .03) / 2."""
    found = fixed_tasks([estimate(0.10, 0.08, 0.13, (0.04, 0.18)), estimate(0.06, 0.05, 0.07, (0.02, 0.09))])
    assert (found.tasks, found.reason) == (2, None)
    assert found.mean == pytest.approx(0.08)
    assert found.interval == pytest.approx((0.065 - math.sqrt(0.0052) / 2, 0.10 + math.sqrt(0.0073) / 2))


def test_a_negative_estimate_is_as_far_from_its_ends_as_0_is() -> None:
    """-.02 with [0, .03] has .03 above, and below as much, since 0 is where its end is clipped; the mean stays
    signed."""
    found = fixed_tasks([estimate(-0.02, -0.03, 0.01, (0.0, 0.03)), estimate(0.06, 0.05, 0.07, (0.02, 0.10))])
    assert found.mean == pytest.approx(0.02)
    assert found.interval == pytest.approx((0.01 - math.hypot(0.03, 0.04) / 2, 0.04 + math.hypot(0.03, 0.04) / 2))


def test_the_estimate_itself_is_never_left_out() -> None:
    """Where least and most happen to lie on one side of the estimates, the ends are told from the mean of these."""
    above, below = (fixed_tasks([estimate(0.1, at, at, (0.08, 0.12))] * 2).interval for at in (0.2, 0.05))
    half = 0.02 / math.sqrt(2)
    assert above == pytest.approx((0.1 - half, 0.2 + half))
    assert below == pytest.approx((0.05 - half, 0.1 + half))


@given(st.integers(1, 50))
def test_equal_tasks_average_their_errors(tasks: int) -> None:
    """T tasks alike are known sqrt(T) times as well, as items are."""
    found = fixed_tasks([estimate(0.1, 0.1, 0.1, (0.04, 0.18))] * tasks)
    assert found.interval == pytest.approx((0.1 - 0.06 / math.sqrt(tasks), 0.1 + 0.08 / math.sqrt(tasks)))


def test_one_task_alone_keeps_its_interval() -> None:
    """One task of exactly one: its own ends, moved by what `least` and `most` are off."""
    assert fixed_tasks([estimate(0.1, 0.1, 0.1, (0.04, 0.18))]).interval == pytest.approx((0.04, 0.18))
    assert fixed_tasks([estimate(0.1, 0.09, 0.12, (0.04, 0.18))]).interval == pytest.approx((0.03, 0.20))


def test_tasks_that_differ_are_known_better_than_their_kind() -> None:
    """.1 and .5, each known well: of these two tasks the mean is sure, of all such tasks it is not."""
    tasks = [estimate(0.1, 0.1, 0.1, (0.08, 0.12)), estimate(0.5, 0.5, 0.5, (0.48, 0.52))]
    sampled, fixed = macro_range(tasks).interval, fixed_tasks(tasks).interval
    assert sampled is not None
    assert fixed == pytest.approx((0.3 - 0.02 / math.sqrt(2), 0.3 + 0.02 / math.sqrt(2)))
    assert sampled[0] < -1
    assert sampled[1] > 1


def test_what_one_task_lacks_these_tasks_lack() -> None:
    """A reason is passed on; a task with an estimate and no interval leaves a mean without one; no task is a reason."""
    one = range_inversion(np.ones((1, 10)), 0)
    assert fixed_tasks([estimate(0.1, 0.1, 0.1, (0.0, 0.2)), one]) == MacroMean(None, None, 2, one.reason)
    assert fixed_tasks([estimate(0.1, 0.1, 0.1, (0.0, 0.2)), estimate(0.3, 0.3, 0.3)]) == MacroMean(0.2, None, 2)
    assert fixed_tasks([]) == MacroMean(None, None, 0, "no task was measured")


@pytest.mark.parametrize("pattern", [(0.0, 1 / 3, 2 / 3, 1.0), (1.0, 1.0, 1.0, 0.0)])
def test_coverage_of_exactly_these_tasks(pattern: tuple[float, ...]) -> None:
    """Seven tasks whose ranges differ, .1 on average, four wrappers spaced equally or one of them bad, 100 items: the
    mean true range of the tasks drawn is held in at least 92 % of 150 runs."""
    rng, held = np.random.default_rng(12), 0
    for _ in range(150):
        ranges = 0.3 * rng.beta(1.5, 3, 7)
        chance = rng.uniform(0.1, 0.7, (7, 1, 100)) + ranges[:, None, None] * np.array(pattern)[:, None]
        found = [range_inversion(task, rng, draws=200) for task in rng.binomial(5, chance) / 5]
        interval = fixed_tasks(found).interval
        held += interval is not None and interval[0] <= ranges.mean() <= interval[1]
    assert held >= 0.92 * 150
