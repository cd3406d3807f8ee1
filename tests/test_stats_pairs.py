"""McNemar's test and the paired bootstrap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar  # type: ignore[import-untyped]

from auditor.stats import resample
from auditor.stats.arrays import FloatArray
from auditor.stats.pairs import Difference, McNemar, difference, differences, discordant, mcnemar

XML, JSON = "11101011", "10001000"


def skewed(seed: int, items: int = 40) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    return rng.exponential(1.0, items), rng.random(items)


def test_the_worked_example() -> None:
    """xml against json for m0: four items to none, exact p 1/8, mid-p 1/16."""
    b, c = discordant([float(bit) for bit in XML], [float(bit) for bit in JSON])
    assert mcnemar(b, c) == McNemar(4, 0, 0.125, 0.0625)


def test_mid_p_by_hand() -> None:
    """b = 1, c = 3: exact p 2 (1 + 4) / 16, mid-p 2 (1 + 4 / 2) / 16."""
    assert mcnemar(1, 3) == McNemar(1, 3, 0.625, 0.375)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_equal_counts_are_no_evidence(n: int) -> None:
    """As many for the one as for the other, or no discordant item at all, give p = 1."""
    found = mcnemar(n, n)
    assert (found.p, found.mid_p) == pytest.approx((1.0, 1.0), abs=1e-12)


@given(st.integers(0, 400), st.integers(0, 400))
def test_statsmodels_and_the_binomial_agree(b: int, c: int) -> None:
    """The exact p is statsmodels', the mid-p the exact p less the probability of what was observed."""
    found = mcnemar(b, c)
    assert found.p == pytest.approx(statsmodels_mcnemar([[7, b], [c, 9]], exact=True).pvalue, abs=1e-9)
    if b != c:
        assert found.mid_p == pytest.approx(found.p - stats.binom.pmf(b, b + c, 0.5), abs=1e-9)
    assert mcnemar(c, b) == McNemar(c, b, found.p, found.mid_p)


def test_the_level_of_mcnemar() -> None:
    """Without a difference the exact test rejects at most 5 % and the mid-p 3 to 7 % of 3000 runs."""
    rng, exact, mid = np.random.default_rng(1), 0, 0
    for _ in range(3000):
        b = int(rng.binomial(30, 0.5))
        found = mcnemar(b, 30 - b)
        exact += found.p <= 0.05
        mid += found.mid_p <= 0.05
    assert exact <= 150
    assert 90 <= mid <= 210


@pytest.mark.parametrize("values", [[0.5, 1.0], [np.nan, 1.0]])
def test_discordant_refuses_means(values: list[float]) -> None:
    """McNemar's test is for single results, not for means or holes."""
    with pytest.raises(ValueError, match="0 or 1"):
        discordant(values, [0.0, 1.0])


def test_negative_counts_are_refused() -> None:
    """Counts of items are not negative."""
    with pytest.raises(ValueError, match="-1 and 3"):
        mcnemar(-1, 3)


@pytest.mark.parametrize("seed", range(5))
def test_scipys_bootstrap_agrees_exactly(seed: int) -> None:
    """On the same resamples, percentile and BCa intervals of a skewed difference are scipy's to 1e-9."""
    first, second = skewed(seed)
    found = difference(first, second, seed, resamples=2000)
    for method, interval in (("percentile", found.percentile), ("BCa", found.bca)):
        expected = stats.bootstrap(
            (first - second,), np.mean, method=method, n_resamples=2000, random_state=np.random.default_rng(seed)
        ).confidence_interval
        assert interval == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert found.mean == pytest.approx((first - second).mean(), abs=1e-12)
    assert found.percentile != pytest.approx(found.bca, abs=1e-3)


def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resampling a few rows at a time gives the same resamples."""
    whole = difference(*skewed(1), 3, resamples=1000)
    monkeypatch.setattr(resample, "CELLS", 300)
    found = difference(*skewed(1), 3, resamples=1000)
    for one, other in ((found.percentile, whole.percentile), (found.bca, whole.bca)):
        assert one == pytest.approx(other, abs=1e-12)


def test_clusters_are_resampled_whole() -> None:
    """Items four times over, clustered, give the intervals of the items once; unclustered ones are half as wide."""
    first, second = skewed(2)
    once = difference(first, second, 0, resamples=2000)
    four, other = np.repeat(first, 4), np.repeat(second, 4)
    copied = difference(four, other, 0, clusters=np.repeat(np.arange(40), 4) * 3 - 7, resamples=2000)
    assert copied.units == 40
    assert copied.bca == pytest.approx(once.bca, abs=1e-9)
    assert copied.percentile == pytest.approx(once.percentile, abs=1e-9)
    loose = difference(four, other, 0, resamples=2000)
    widths = [found.percentile[1] - found.percentile[0] for found in (once, loose) if found.percentile]
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.1)


def test_unequal_clusters_by_hand() -> None:
    """Two clusters, 1 item of 1 and 3 items of 0: the mean over items is 1/4, resamples have 0, 1/4 or 1."""
    found = difference([1, 0, 0, 0], [0, 0, 0, 0], 0, clusters=[5, 9, 9, 9])
    assert (found.mean, found.percentile, found.units) == (0.25, (0.0, 1.0), 2)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([], [], Difference(None, None, None, 0, "no item was measured")),
        ([1, np.nan], [0, 0], Difference(None, None, None, 2, "an item was not measured in both")),
        ([np.inf, 1], [np.inf, 0], Difference(None, None, None, 2, "an item was not measured in both")),
        ([1], [0], Difference(1.0, None, None, 1, "fewer than two items or clusters")),
        ([1, 1], [0, 0], Difference(1.0, None, None, 2, "the difference is the same in all items or clusters")),
    ],
)
def test_what_has_no_interval_gives_a_reason(first: list[float], second: list[float], expected: Difference) -> None:
    """No items, a hole, one item or no variation: no interval, and why."""
    assert difference(first, second, 0) == expected


def test_columns_that_do_not_fit_are_refused() -> None:
    """Both columns and the clusters have one value per item."""
    with pytest.raises(ValueError, match="first 2, second 1"):
        difference([1, 0], [1], 0)
    with pytest.raises(ValueError, match="clusters 1"):
        difference([1, 0], [1, 1], 0, clusters=[0])


def test_same_seed_same_bytes() -> None:
    """A seed and a generator from it agree; another seed does not."""
    assert difference(*skewed(3), 1) == difference(*skewed(3), np.random.default_rng(1))
    assert difference(*skewed(3), 1) != difference(*skewed(3), 2)


def test_several_pairs_and_tasks_share_the_resamples() -> None:
    """A pair and its opposite mirror each other; one task is the plain difference; two tasks average theirs."""
    first, second = skewed(4)
    items = np.array([first - second, second - first])
    one, other = differences([items], 0, resamples=2000)
    assert one == difference(first, second, 0, resamples=2000)
    assert one.percentile is not None
    assert other.percentile == pytest.approx((-one.percentile[1], -one.percentile[0]), abs=1e-12)
    (both, _) = differences([items, items + 0.5], 0, resamples=2000)
    assert both.mean == pytest.approx((first - second).mean() + 0.25)
    assert both.units == 80


def test_tasks_are_fixed_and_their_items_sampled() -> None:
    """Two tasks of 50 items: the interval is as wide as the variances of their means, each a quarter, make it; what
    lies between the tasks adds nothing."""
    rng = np.random.default_rng(8)
    tasks = [rng.normal(0, 1, (1, 50)), rng.normal(5, 2, (1, 50))]
    (found,) = differences(tasks, 0)
    se = math.sqrt(sum(task.var() / 50 for task in tasks)) / 2
    assert found.percentile is not None
    assert found.percentile[1] - found.percentile[0] == pytest.approx(2 * 1.96 * se, rel=0.05)
    assert found.bca == pytest.approx(found.percentile, abs=0.2 * se)


def test_a_task_that_does_not_vary_leaves_the_others_interval() -> None:
    """A constant task halves the mean and the interval of the other one; constant tasks alone have none."""
    items = np.random.default_rng(9).normal(0, 1, (1, 30))
    (alone,), (beside,) = differences([items], 0), differences([items, np.zeros((1, 30))], 0)
    assert alone.percentile is not None
    assert beside.percentile is not None
    assert [end / 2 for end in alone.percentile] == pytest.approx(beside.percentile)
    (nothing,) = differences([np.zeros((1, 30))] * 2, 0)
    assert (nothing.mean, nothing.percentile) == (0.0, None)
    assert differences([], 0) == ()


def test_coverage() -> None:
    """Of 400 intervals of each kind at 95 %, on 80 items of five seeds, 92 to 98 % hold the true difference."""
    rng, held = np.random.default_rng(4), np.zeros(2)
    for _ in range(400):
        item = rng.uniform(0.2, 0.8, 80)
        found = difference(rng.binomial(5, item + 0.1) / 5, rng.binomial(5, item) / 5, rng, resamples=600)
        held += [
            interval is not None and interval[0] <= 0.1 <= interval[1] for interval in (found.percentile, found.bca)
        ]
    assert (held >= 368).all()
    assert (held <= 392).all()
