"""Simultaneous bounds of the range over wrappers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t

from auditor.stats.arrays import FloatArray
from auditor.stats.simultaneous import RangeBounds, range_bounds


def matrix(seed: int, wrappers: int = 4, items: int = 60) -> FloatArray:
    """Means of five seeds, items shared by the wrappers."""
    rng = np.random.default_rng(seed)
    chance = np.clip(rng.random(items) + 0.2 * rng.standard_normal((wrappers, items)), 0, 1)
    return np.asarray(rng.binomial(5, chance) / 5, np.float64)


def by_multipliers(y: FloatArray, unit: list[int], seed: int, draws: int) -> tuple[float, float, float]:
    """Critical value and bounds by the definition: one normal multiplier per unit, the same for every wrapper, and
    Student's quantile for the normal one."""
    count, units = y.shape[1], len(set(unit))
    means = y.mean(axis=1)
    xi = np.random.default_rng(seed).standard_normal((draws, units))[:, unit]
    noise = np.sqrt(units / (units - 1)) / count * xi @ (y - means[:, None]).T
    largest, contrasts = np.zeros(draws), []
    for f in range(len(y)):
        for g in range(f):
            sums = np.bincount(unit, y[f] - y[g] - (means[f] - means[g]))
            se = np.sqrt(units / (units - 1) * (sums**2).sum()) / count
            largest = np.maximum(largest, abs(noise[:, f] - noise[:, g]) / se)
            contrasts.append((abs(means[f] - means[g]), se))
    k = float(t.ppf(norm.cdf(np.quantile(largest, 0.95)), units - 1))
    low, high = max(d - k * se for d, se in contrasts), max(d + k * se for d, se in contrasts)
    return k, max(0.0, low), min(1.0, high)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_multiplier_definition_agrees(clustered: bool) -> None:
    """Drawing in F dimensions gives the critical value and bounds of the item multipliers, clustered or not."""
    y = matrix(1)
    clusters = [i // 3 if clustered else i for i in range(60)]
    found = range_bounds(y, 2, clusters=clusters, draws=100_000)
    k, low, high = by_multipliers(y, clusters, 3, 100_000)
    assert found.units == (20 if clustered else 60)
    assert found.critical == pytest.approx(k, abs=0.03)
    assert found.interval == pytest.approx((low, high), abs=0.003)


def test_two_wrappers_are_one_contrast() -> None:
    """With two wrappers the bounds are |D| -+ t se of the paired differences, t Student's quantile."""
    y = np.zeros((2, 100))
    y[0, :40], y[1, 30:45] = 1, 1
    difference = y[0] - y[1]
    se = difference.std(ddof=1) / 10
    found = range_bounds(y, 4, draws=200_000)
    quantile = t.ppf(0.975, 99)
    assert found.critical == pytest.approx(quantile, abs=0.02)
    assert found.interval == pytest.approx((0.25 - quantile * se, 0.25 + quantile * se), abs=0.001)


def test_singleton_clusters_change_nothing() -> None:
    """A cluster per item, by any ids, is no cluster."""
    y = matrix(5)
    assert range_bounds(y, 0) == range_bounds(y, 0, clusters=np.arange(60) * 7 - 3)


def test_copies_in_clusters_are_not_evidence() -> None:
    """Every item four times over, clustered, gives the bounds of the items once."""
    y = matrix(6)
    once = range_bounds(y, 0, draws=1000)
    copied = range_bounds(np.repeat(y, 4, axis=1), 0, clusters=np.repeat(np.arange(60), 4), draws=1000)
    assert once.interval is not None
    assert copied.interval == pytest.approx(once.interval, abs=1e-12)
    assert copied.units == 60


def test_same_seed_same_bytes() -> None:
    """A seed and a generator from it agree; another seed does not."""
    y = matrix(7)
    assert range_bounds(y, 1) == range_bounds(y, np.random.default_rng(1))
    assert range_bounds(y, 1) != range_bounds(y, 2)


def test_wrappers_without_any_difference_get_the_rule_of_three() -> None:
    """All replies parsed under all wrappers: PSI 0 with the upper bound 3/N, not a claim of certainty."""
    found = range_bounds(np.ones((5, 200)), 0)
    assert found.interval == pytest.approx((0.0, 3 / 200), abs=1e-12)
    assert (found.critical, found.constant_pairs, found.units) == (None, 10, 200)
    assert range_bounds(np.ones((5, 2)), 0).interval == (0.0, 1.0)


def test_a_constant_difference_gets_twice_the_rule_of_three() -> None:
    """Nothing parsed under one wrapper, all under the other: an unseen item may lie 2 away, so 1 - 6/N is proven."""
    found = range_bounds([[1] * 100, [0] * 100], 0)
    assert found.interval == pytest.approx((0.94, 1.0))
    assert (found.critical, found.constant_pairs) == (None, 1)


def test_a_constant_pair_beside_others() -> None:
    """Two identical wrappers do not disturb the quantile of the pairs that vary."""
    y = matrix(8, wrappers=2)
    pair = range_bounds(y, 3, draws=200_000)
    found = range_bounds(np.vstack([y, y[1]]), 3, draws=200_000)
    assert found.constant_pairs == 1
    assert found.critical == pytest.approx(pair.critical, abs=0.02)


@pytest.mark.parametrize(
    ("y", "units", "reason"),
    [
        (np.zeros((0, 0)), 0, "fewer than two wrappers"),
        (np.zeros((1, 5)), 5, "fewer than two wrappers"),
        (np.zeros((2, 0)), 0, "fewer than two items or clusters"),
        (np.zeros((2, 1)), 1, "fewer than two items or clusters"),
        (np.array([[0, 1], [1, np.nan]]), 2, "an item was not measured under every wrapper"),
        (np.array([[0, 1], [1, np.inf]]), 2, "an item was not measured under every wrapper"),
    ],
)
def test_what_cannot_be_bounded_gives_a_reason(y: FloatArray, units: int, reason: str) -> None:
    """Too few wrappers or items, or a hole in the matrix, give None and say why."""
    assert range_bounds(y, 0) == RangeBounds(None, None, 0, units, reason)


def test_one_cluster_is_one_unit() -> None:
    """Items that all share a passage are one observation."""
    assert range_bounds(matrix(9), 0, clusters=[4] * 60).reason == "fewer than two items or clusters"


def test_clusters_that_do_not_fit_are_refused() -> None:
    """One cluster id per item."""
    with pytest.raises(ValueError, match="clusters 3, items 60"):
        range_bounds(matrix(9), 0, clusters=[0, 1, 2])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(2, 30), st.integers(1, 4))
def test_laws(seed: int, wrappers: int, items: int, levels: int) -> None:
    """Bounds lie in [0, 1] around the range itself, and more confidence widens them."""
    y = np.random.default_rng(seed).integers(0, levels, (wrappers, items)) / max(levels - 1, 1)
    observed = np.ptp(y.mean(axis=1))
    narrow, wide = (range_bounds(y, 0, draws=200, confidence=level).interval for level in (0.8, 0.95))
    assert narrow is not None
    assert wide is not None
    assert 0 <= wide[0] <= narrow[0] <= observed + 1e-12
    assert observed - 1e-12 <= narrow[1] <= wide[1] <= 1


@pytest.mark.parametrize("effects", [(0, 0, 0, 0, 0), (0.2, 0.2, 0.2, 0.2, 0)])
def test_coverage(effects: tuple[float, ...]) -> None:
    """Ties and one bad wrapper among 200 items are covered in about 95 % of 400 runs or more."""
    rng, truth, covered = np.random.default_rng(11), max(effects), 0
    for _ in range(400):
        item = rng.uniform(0.1, 0.7, 200)
        y = rng.binomial(5, item + np.array(effects)[:, None]) / 5
        interval = range_bounds(y, rng, draws=500).interval
        covered += interval is not None and interval[0] <= truth <= interval[1]
    # three standard errors of a 95 % coverage below it
    assert covered >= 400 * (0.95 - 3 * np.sqrt(0.95 * 0.05 / 400))


def test_coverage_where_nothing_ever_fails_but_one_wrapper_now_and_then() -> None:
    """A wrapper that fails in 1 of 100 items beside perfect ones is covered by the rule of three or the quantile."""
    rng, covered = np.random.default_rng(12), 0
    for _ in range(400):
        y = np.ones((5, 200))
        y[4] = rng.random(200) >= 0.01
        interval = range_bounds(y, rng, draws=500).interval
        covered += interval is not None and interval[0] <= 0.01 <= interval[1]
    assert covered >= 380
