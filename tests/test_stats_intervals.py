"""Intervals of one rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, t
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from auditor.stats.intervals import RateInterval, best_provable, cell_interval, clopper_pearson, wilson

COUNTS = [(0, 1), (1, 1), (0, 20), (1, 20), (7, 20), (19, 20), (20, 20), (48, 50), (173, 200), (1399, 1400)]


@pytest.mark.parametrize(("successes", "n"), COUNTS)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_statsmodels_agrees(successes: int, n: int, confidence: float) -> None:
    """Wilson and Clopper-Pearson on whole counts are those of statsmodels."""
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        found = ours(successes, n, confidence=confidence)
        assert found.rate == successes / n
        assert found.interval == pytest.approx(
            proportion_confint(successes, n, alpha=1 - confidence, method=method), abs=1e-9
        )


def test_fractional_successes_are_beta_quantiles() -> None:
    """37.4 of 50 uses Beta(37.4, 13.6) and Beta(38.4, 12.6)."""
    found = clopper_pearson(37.4, 50)
    expected = (beta.ppf(0.025, 37.4, 13.6), beta.ppf(0.975, 38.4, 12.6))
    assert found.interval == pytest.approx(expected, abs=1e-9)


def test_one_sided_bounds_spend_the_whole_error_on_one_end() -> None:
    """A one-sided 95 % bound is an end of the two-sided 90 % interval, and the other end is open."""
    both = clopper_pearson(37.4, 50, confidence=0.9).interval
    assert both is not None
    assert clopper_pearson(37.4, 50, side="lower").interval == pytest.approx((both[0], 1.0), abs=1e-12)
    assert clopper_pearson(37.4, 50, side="upper").interval == pytest.approx((0.0, both[1]), abs=1e-12)


def test_best_provable() -> None:
    """50 items without a failure prove 0.942, and that is Clopper-Pearson's lower bound for 50 of 50."""
    assert best_provable(50) == pytest.approx(0.05 ** (1 / 50))
    assert best_provable(50) == pytest.approx(0.942, abs=5e-4)
    perfect = clopper_pearson(50, 50, side="lower").interval
    assert perfect is not None
    assert perfect[0] == pytest.approx(best_provable(50), abs=1e-12)
    assert best_provable(0) is None


def test_a_cell_counts_items_and_not_generations() -> None:
    """Ten items of five seeds with means .2 and .8 are 5 of 10, not 25 of 50."""
    means = [0.2] * 5 + [0.8] * 5
    assert cell_interval(means) == clopper_pearson(5, 10)
    assert cell_interval(means).n == 10


def test_a_sum_that_misses_a_whole_number_by_rounding_is_whole() -> None:
    """Means that sum to all items but for rounding have the upper end 1."""
    assert clopper_pearson(7 - 1e-13, 7) == clopper_pearson(7, 7)
    assert clopper_pearson(-1e-13, 7) == clopper_pearson(0, 7)


def test_no_items_give_a_reason() -> None:
    """Without items there is no rate and no interval."""
    nothing = RateInterval(None, None, 0, "no item was measured")
    assert [wilson(0, 0), clopper_pearson(0, 0), cell_interval([])] == [nothing] * 3
    assert cell_interval([0.5, np.nan]) == RateInterval(None, None, 2, "an item has no answered seed")


@pytest.mark.parametrize("successes", [-1, 5.5, float("nan"), float("inf")])
def test_successes_that_cannot_be_are_refused(successes: float) -> None:
    """Fewer than none or more than all is the caller's mistake."""
    with pytest.raises(ValueError, match="successes"):
        clopper_pearson(successes, 5)


@given(st.integers(1, 300), st.floats(0, 1), st.sampled_from([wilson, clopper_pearson]))
def test_laws(n: int, share: float, ours: object) -> None:
    """The interval holds the rate, stays in [0, 1] and mirrors when failures and successes trade places."""
    assert callable(ours)
    found, mirrored = ours(share * n, n), ours(n - share * n, n)
    assert 0 <= found.interval[0] <= found.rate <= found.interval[1] <= 1
    assert mirrored.interval == pytest.approx((1 - found.interval[1], 1 - found.interval[0]), abs=1e-6)


@given(st.integers(1, 300), st.floats(0, 0.99))
def test_more_successes_never_lower_the_bound(n: int, share: float) -> None:
    """Both ends grow with the successes, whole or not."""
    less, more = clopper_pearson(share * n, n).interval, clopper_pearson(share * n + 0.01 * n, n).interval
    assert less is not None
    assert more is not None
    assert less[0] <= more[0]
    assert less[1] <= more[1]


@pytest.mark.parametrize("concentration", [0.3, 4.0, np.inf])
@pytest.mark.parametrize("rate", [0.5, 0.9, 0.98])
def test_coverage_over_items_with_five_seeds(rate: float, concentration: float) -> None:
    """Means of five seeds over 50 items are covered at least 95 % of the time, however unlike the items are."""
    rng = np.random.default_rng(20)
    shape = (4000, 50)
    chance = np.full(shape, rate)
    if np.isfinite(concentration):
        chance = rng.beta(concentration * rate, concentration * (1 - rate), shape)
    totals, runs = np.unique(rng.binomial(5, chance).sum(axis=1), return_counts=True)
    two_sided = [clopper_pearson(total / 5, 50).interval for total in totals]
    one_sided = [clopper_pearson(total / 5, 50, side="lower").interval for total in totals]
    assert sum(r for r, i in zip(runs, two_sided, strict=True) if i and i[0] <= rate <= i[1]) >= 0.95 * 4000
    assert sum(r for r, i in zip(runs, one_sided, strict=True) if i and i[0] <= rate) >= 0.95 * 4000


# Items that belong together ------------------------------------------------------------------------------------


def exact(rate: float, size: float, tail: float = 0.025) -> tuple[float, float]:
    """Clopper and Pearson's interval of a rate over `size` items, whole or not."""
    right = rate * size
    return float(beta.ppf(tail, right, size - right + 1)), float(beta.ppf(1 - tail, right + 1, size - right))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_clusters_of_one_item_are_items(fifths: list[int]) -> None:
    """Every item in a cluster of its own, whatever it is called: Clopper and Pearson's interval."""
    means, names = [count / 5 for count in fifths], [-7 * i for i in range(len(fifths))]
    found, items = cell_interval(means, clusters=names), cell_interval(means)
    assert found.n == items.n
    assert found.rate == pytest.approx(items.rate)
    assert found.interval == pytest.approx(items.interval, abs=1e-9)


@pytest.mark.parametrize("copies", [2, 4, 10])
@pytest.mark.parametrize("right", [1, 20, 37])
def test_copies_of_an_item_say_what_it_says(copies: int, right: int) -> None:
    """k copies of 50 items in clusters of k have the variance of the items but for k (50 - 1) / (50 k - 1), and count
    for 50 items times that and the squared ratio of Student's quantiles."""
    means = np.repeat([1.0] * right + [0.0] * (50 - right), copies)
    found = cell_interval(means, clusters=np.repeat(np.arange(50), copies))
    ratio = t.ppf(0.975, 50 * copies - 1) / t.ppf(0.975, 49)
    size = 50 * copies * (50 - 1) / (50 * copies - 1) * ratio**2
    assert 45 < size < 50
    assert (found.rate, found.n) == pytest.approx((right / 50, 50 * copies))
    assert found.interval == pytest.approx(exact(right / 50, size), abs=1e-9)


def test_clusters_of_unequal_size_by_hand() -> None:
    """Clusters 1 1 1, 0 0 and 1 0 1 of eight items, mean 5/8: their sums are off by 9/8, -10/8 and 1/8, squares 182/64;
    items are off by 120/64. In the ratio 8/7 x 120/64 to 3/2 x 182/64 that is 8 x .5024 items before Student."""
    means, clusters = [1, 0, 1, 0, 1, 1, 0, 1], [5, 3, 5, 3, 5, 9, 9, 9]
    size = 8 * (8 / 7 * 120 / 64) / (3 / 2 * 182 / 64) * (t.ppf(0.975, 7) / t.ppf(0.975, 2)) ** 2
    assert cell_interval(means, clusters=clusters).interval == pytest.approx(exact(5 / 8, size), abs=1e-9)


def test_all_right_or_all_wrong_counts_clusters() -> None:
    """60 items in 12 clusters without a failure prove what 12 items prove; one cluster is one item."""
    clusters = np.repeat(np.arange(12), 5)
    for rate in (0, 1):
        found = cell_interval([rate] * 60, clusters=clusters)
        assert (found.rate, found.n) == (rate, 60)
        assert found.interval == pytest.approx(clopper_pearson(12 * rate, 12).interval, abs=1e-12)
    assert cell_interval([1.0] * 60, clusters=[0] * 60).interval == pytest.approx((0.025, 1))
    assert cell_interval([1.0, 0.0], clusters=[4, 4]).interval == pytest.approx(exact(0.5, 1), abs=1e-9)


def test_clusters_without_a_difference_are_not_more_than_their_items() -> None:
    """Each of 20 clusters has one right and one wrong: the sums do not vary at all, and they count as 20 items; where
    they vary less than items would, all 40 count and no more."""
    clusters = np.repeat(np.arange(20), 2)
    assert cell_interval([1, 0] * 20, clusters=clusters).interval == pytest.approx(exact(0.5, 20), abs=1e-9)
    nearly = [1, 1, 0, 0, *[1, 0] * 18]
    assert cell_interval(nearly, clusters=clusters).interval == pytest.approx(exact(0.5, 40), abs=1e-9)


def test_one_sided_bounds_of_clusters() -> None:
    """The whole error is on one end, so that it lies within the two-sided interval, and the other end is open."""
    rng = np.random.default_rng(2)
    means, clusters = np.repeat(rng.random(20) < 0.6, 3) * 1.0, np.repeat(np.arange(20), 3)
    both = cell_interval(means, clusters=clusters).interval
    low, high = (cell_interval(means, clusters=clusters, side=side).interval for side in ("lower", "upper"))
    assert both is not None
    assert low is not None
    assert high is not None
    assert (low[1], high[0]) == (1.0, 0.0)
    assert both[0] < low[0] < means.mean() < high[1] < both[1]
    perfect = cell_interval([1.0] * 60, clusters=clusters, side="lower").interval
    assert perfect == pytest.approx((best_provable(20), 1.0))


def test_clusters_do_not_mend_what_is_missing() -> None:
    """A hole and no item have the reasons that they have without clusters."""
    assert cell_interval([0.5, np.nan], clusters=[1, 1]).reason == "an item has no answered seed"
    assert cell_interval([], clusters=[]) == RateInterval(None, None, 0, "no item was measured")


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_coverage_of_items_that_are_alike(rate: float) -> None:
    """40 passages of one to nine items that are right together more often than not: held in at least 93 % of 600 runs,
    where items that are taken to be independent are not."""
    rng, held, untold = np.random.default_rng(9), 0, 0
    for _ in range(600):
        clusters = np.repeat(np.arange(40), rng.integers(1, 10, 40))
        means = (rng.random(len(clusters)) < rng.beta(rate, 1 - rate, 40)[clusters]) * 1.0
        told, items = cell_interval(means, clusters=clusters).interval, cell_interval(means).interval
        held += told is not None and told[0] <= rate <= told[1]
        untold += items is not None and items[0] <= rate <= items[1]
    assert held >= 0.93 * 600
    assert untold < 0.85 * 600
