"""Tests of a wrapper effect, and Holm's correction."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import cochrans_q  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from auditor.stats import effects
from auditor.stats.arrays import FloatArray
from auditor.stats.effects import CochranQ, PermutationTest, cochran_q, holm, permutation_test

MICRO_T0, MICRO_T1 = ("1000", "1000", "1110"), ("1001", "1000", "1011")


def bits(rows: tuple[str, ...]) -> FloatArray:
    return np.array([[float(bit) for bit in row] for row in rows])


def binary(rng: np.random.Generator, wrappers: int, items: int) -> FloatArray:
    """Results without a wrapper effect on items of differing difficulty."""
    return np.asarray(rng.random((wrappers, items)) < rng.uniform(0.1, 0.9, items), np.float64)


def by_scipy(y: FloatArray) -> tuple[float, float]:
    """Mean range and p over all relabellings within item, from scipy."""

    def span(*rows: FloatArray, axis: int = -1) -> FloatArray:
        return np.asarray(np.ptp(np.stack([row.mean(axis=axis) for row in rows]), axis=0))

    found = stats.permutation_test(
        tuple(y), span, permutation_type="samples", alternative="greater", n_resamples=np.inf, vectorized=True
    )
    return float(found.null_distribution.mean()), float(found.pvalue)


def test_the_worked_example() -> None:
    """m0/t0: all 1296 relabellings give a mean range of 1/3 and reach the observed 1/2 in 1/3 of the cases."""
    found = permutation_test(bits(MICRO_T0), 0)
    assert found.range == 0.5
    assert found.floor == pytest.approx(1 / 3, abs=1e-12)
    assert found.p == pytest.approx(1 / 3, abs=1e-12)
    # two of the four items are answered alike by all; the others have one right wrapper of three
    assert (found.relabellings, found.exact) == (9, True)


def test_all_relabellings_counted_one_by_one() -> None:
    """Enumerating distinct orders gives what all (3!)^3 relabellings give."""
    y = np.array([[0.2, 0.4, 1.0], [0.2, 0.0, 0.6], [0.8, 0.4, 0.0]])
    ranges = []
    for orders in itertools.product(itertools.permutations(range(3)), repeat=3):
        means = [np.mean([y[orders[item][f], item] for item in range(3)]) for f in range(3)]
        ranges.append(max(means) - min(means))
    found = permutation_test(y, 0)
    assert found.floor == pytest.approx(np.mean(ranges), abs=1e-12)
    assert found.p == pytest.approx(np.mean(np.array(ranges) >= np.ptp(y.mean(axis=1)) - 1e-9), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_scipy_agrees_exactly(seed: int) -> None:
    """On random item means, four items and three wrappers, scipy's exact test has the same p and mean."""
    y = np.random.default_rng(seed).integers(0, 6, (3, 4)) / 5
    found = permutation_test(y, 0)
    assert found.exact
    assert (found.floor, found.p) == pytest.approx(by_scipy(y), abs=1e-9)


@pytest.mark.parametrize("table", [effects.TABLE, 1])
def test_random_relabellings_agree_with_scipys_exact_ones(table: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either way of drawing orders comes within four Monte Carlo errors of all 46,656 relabellings."""
    monkeypatch.setattr(effects, "TABLE", table)
    y = np.random.default_rng(3).random((3, 6))
    found, (floor, p) = permutation_test(y, 0, relabellings=20_000), by_scipy(y)
    assert (found.exact, found.relabellings) == (False, 20_000)
    assert found.p == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 20_000))
    assert found.floor == pytest.approx(floor, abs=0.003)


def one_by_one(y: FloatArray, clusters: list[int], count: int) -> FloatArray:
    """Ranges (count,) of relabellings drawn one by one, as the test is described: no counts, no packing."""
    rng, units = np.random.default_rng(99), [y[:, np.array(clusters) == one].sum(axis=1) for one in set(clusters)]
    sums = np.zeros((count, len(y)))
    for unit in units:
        sums += rng.permuted(np.tile(unit, (count, 1)), axis=1)
    ranges: FloatArray = np.ptp(sums, axis=1) / y.shape[1]
    return ranges


def item_means(rng: np.random.Generator, wrappers: int, kind: str) -> FloatArray:
    """Item means (F, 40) with a small effect: of five seeds, of one to five seeds, or of any value."""
    seeds = rng.integers(1, 6, (wrappers, 40)) if kind == "unequal" else 5
    rates = rng.uniform(0.2, 0.8, 40) - np.linspace(0, 0.1, wrappers)[:, None]
    return np.asarray(rng.binomial(seeds, rates) / seeds if kind != "any" else rates + 0.1 * rng.random(rates.shape))


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("kind", ["five", "unequal", "any"])
@pytest.mark.parametrize("wrappers", [2, 3, 5, 8, 12])
def test_relabellings_one_by_one_agree(wrappers: int, kind: str, clustered: bool) -> None:
    """p and floor lie within four Monte Carlo errors of those of relabellings drawn independently."""
    y = item_means(np.random.default_rng(wrappers), wrappers, kind)
    clusters = [i // 2 if clustered else i for i in range(40)]
    found, ranges = permutation_test(y, 1, clusters=clusters, relabellings=4000), one_by_one(y, clusters, 4000)
    p = float((ranges >= np.ptp(y.mean(axis=1)) - 1e-9).mean())
    assert (found.exact, found.relabellings) == (False, 4000)
    assert found.p == pytest.approx(p, abs=4 * np.sqrt(2 * p * (1 - p) / 4000) + 1 / 4000)
    assert found.floor == pytest.approx(ranges.mean(), abs=4 * np.sqrt(2 / 4000) * ranges.std())


@pytest.mark.parametrize("wrappers", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("kind", ["five", "unequal"])
def test_packing_changes_nothing(wrappers: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts packed into words and means in a word each give the same ranges under the same orders, ties included."""
    y = item_means(np.random.default_rng(wrappers), wrappers, kind)
    packed = permutation_test(y, 1, relabellings=1000)
    monkeypatch.setattr(effects, "SEEDS", 1)
    loose = permutation_test(y, 1, relabellings=1000)
    assert (packed.exact, packed.p) == (False, loose.p)
    assert packed.floor == pytest.approx(loose.floor, abs=1e-12)


def test_random_relabellings_of_counts_agree_with_scipys_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ranges tie often, as those of five items of one seed do, p counts the ties as scipy does."""
    monkeypatch.setattr(effects, "ENUMERABLE", 1)
    y = bits(("11011", "01010", "00010"))
    found, (floor, p) = permutation_test(y, 0, relabellings=40_000), by_scipy(y)
    assert not found.exact
    assert found.p == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 40_000))
    assert found.floor == pytest.approx(floor, abs=0.003)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100, 199])
def test_as_many_relabellings_as_asked_for(count: int) -> None:
    """Any number of relabellings is drawn, and counted in p beside the observed one."""
    found = permutation_test(np.random.default_rng(9).random((3, 40)), 0, relabellings=count)
    assert found.relabellings == count
    assert found.p is not None
    assert (found.p * (count + 1)) == pytest.approx(round(found.p * (count + 1)), abs=1e-9)


@pytest.mark.parametrize(("wrappers", "seeds"), [(2, 5), (5, 1)])
def test_the_monte_carlo_error_is_that_of_independent_draws(wrappers: int, seeds: int) -> None:
    """Over 400 seeds p is spread as a binomial share of 400 draws is, to a fifth, and so is the floor as their mean."""
    rng = np.random.default_rng(11)
    y = rng.binomial(seeds, rng.uniform(0.3, 0.7, 30) - np.linspace(0, 0.1, wrappers)[:, None]) / seeds
    runs = [permutation_test(y, seed, relabellings=400) for seed in range(400)]
    ranges = one_by_one(y, list(range(30)), 40_000)
    p = float((ranges >= np.ptp(y.mean(axis=1)) - 1e-9).mean())
    assert 0.02 < p < 0.98
    assert np.std([run.p or 0 for run in runs]) == pytest.approx(np.sqrt(p * (1 - p) / 400), rel=0.2)
    assert np.std([run.floor or 0 for run in runs]) == pytest.approx(ranges.std() / 20, rel=0.2)


# the expected range of two and of five standard normals
@pytest.mark.parametrize(("wrappers", "span"), [(2, 1.1283792), (5, 2.3259289)])
def test_many_items_reach_the_normal_limit(wrappers: int, span: float) -> None:
    """With 5000 items the floor is that of Hoeffding's limit: wrappers' sums of variance sum_i v_i F / (F - 1)."""
    rng = np.random.default_rng(12)
    y = rng.binomial(5, rng.uniform(0.2, 0.8, 5000) * np.ones((wrappers, 1))) / 5
    limit = span * np.sqrt(y.var(axis=0, ddof=1).sum()) / 5000
    # three Monte Carlo errors, the range's coefficient of variation being at most 0.76
    assert permutation_test(y, 0).floor == pytest.approx(limit, rel=0.023)


def test_seeds_move_together() -> None:
    """Scores per seed give what their item means give, and an unanswered seed leaves its item's mean."""
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 2, (4, 30, 5)).astype(np.float64)
    assert permutation_test(scores, 1) == permutation_test(scores.mean(axis=2), 1)
    scores[2, 7, 1:] = np.nan
    means = scores.copy()
    means[2, 7] = scores[2, 7, 0]
    assert permutation_test(scores, 1) == permutation_test(means.mean(axis=2), 1)


def test_a_cluster_is_relabelled_as_one() -> None:
    """Every item three times over, clustered, gives the test of the items once; without clusters p is smaller."""
    y = np.random.default_rng(5).random((3, 8))
    once = permutation_test(y, 0)
    copied = permutation_test(np.repeat(y, 3, axis=1), 0, clusters=np.repeat(np.arange(8), 3))
    assert (copied.p, copied.floor) == pytest.approx((once.p, once.floor), abs=1e-12)
    loose = permutation_test(np.repeat(y, 3, axis=1), 0)
    assert once.floor is not None
    assert loose.floor is not None
    assert loose.floor < 0.7 * once.floor


def test_no_item_varies() -> None:
    """Where all wrappers agree on every item, every relabelling gives range 0: p is 1 and the floor 0."""
    assert permutation_test([[1, 0, 1]] * 4, 0) == PermutationTest(0.0, 0.0, 1.0, 1.0, 1, True)


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (np.zeros((1, 5)), "fewer than two wrappers"),
        (np.zeros((0, 0)), "fewer than two wrappers"),
        (np.zeros((3, 0)), "no item was measured"),
        (np.array([[0, 1], [1, np.nan]]), "an item was not measured under every wrapper"),
    ],
)
def test_what_cannot_be_tested_gives_a_reason(y: FloatArray, reason: str) -> None:
    """One wrapper, no items or a hole give None and say why, in either test."""
    assert permutation_test(y, 0) == PermutationTest(None, None, None, None, 0, False, reason)
    assert cochran_q(y) == CochranQ(None, max(len(y) - 1, 0), None, 0, reason)
    assert permutation_test(np.repeat(y[..., None], 2, axis=2), 0).reason == reason


def test_same_seed_same_bytes() -> None:
    """A seed and a generator from it agree; another seed does not."""
    y = np.random.default_rng(6).random((5, 40))
    assert permutation_test(y, 1) == permutation_test(y, np.random.default_rng(1))
    assert permutation_test(y, 1) != permutation_test(y, 2)


def test_the_level_holds_without_an_effect() -> None:
    """With no effect the permutation test and Cochran's Q reject in 3 to 7 % of 1000 runs at 5 %."""
    rng, permuted, cochran = np.random.default_rng(7), 0, 0
    for _ in range(1000):
        y = binary(rng, 4, 60)
        permuted += (permutation_test(y, rng, relabellings=199).p or 0) <= 0.05
        cochran += (cochran_q(y).p or 0) <= 0.05
    assert 30 <= permuted <= 70
    assert 30 <= cochran <= 70


def test_an_effect_is_found() -> None:
    """One wrapper 0.2 below four others is found among 100 items of five seeds at the smallest p there is."""
    rng = np.random.default_rng(8)
    y = rng.binomial(5, rng.uniform(0.3, 0.8, 100) - np.array([0, 0, 0, 0, 0.2])[:, None]) / 5
    assert permutation_test(y, 0).p == 1 / 10_001


def test_cochrans_q_of_the_worked_example() -> None:
    """m0's eight items under three wrappers: Q 6.5, df 2, p .0387742078."""
    found = cochran_q(np.hstack([bits(MICRO_T0), bits(MICRO_T1)]))
    assert (found.q, found.df, found.varying) == (6.5, 2, 4)
    assert found.p == pytest.approx(0.0387742078, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_statsmodels_q_agrees(seed: int) -> None:
    """Q and p are statsmodels' on random results."""
    rng = np.random.default_rng(seed)
    x = binary(rng, int(rng.integers(2, 7)), 40)
    expected = cochrans_q(x.T)
    found = cochran_q(x)
    assert (found.q, found.df, found.p) == pytest.approx((expected.statistic, expected.df, expected.pvalue), abs=1e-9)


def test_q_without_a_varying_item() -> None:
    """Q is 0/0 where all wrappers agree on every item."""
    assert cochran_q([[1, 0, 1]] * 3) == CochranQ(None, 2, None, 0, "no item varies over the wrappers")


def test_q_of_means_is_refused() -> None:
    """Cochran's Q is for single results, not for means over seeds."""
    with pytest.raises(ValueError, match="0 or 1"):
        cochran_q([[0.2, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_statsmodels_holm(seed: int) -> None:
    """Adjusted p-values are statsmodels', in the order given, ties and values near 1 included."""
    ps = [*(np.random.default_rng(seed).integers(0, 50, 12) / 400).tolist(), 0.9, 1.0]
    assert holm(ps) == pytest.approx(tuple(multipletests(ps, method="holm")[1]), abs=1e-12)


@given(st.lists(st.none() | st.floats(0, 1), max_size=12))
def test_laws_of_holm(ps: list[float | None]) -> None:
    """None stays; no p falls or passes 1; the order of the values is kept; one test is left alone."""
    found = holm(ps)
    assert [p is None for p in found] == [p is None for p in ps]
    both = [(p, q) for p, q in zip(ps, found, strict=True) if p is not None and q is not None]
    assert all(p <= q <= 1 for p, q in both)
    assert [q for _, q in sorted(both)] == sorted(q for _, q in both)
    assert len(both) != 1 or both[0][0] == both[0][1]


def test_holm_by_hand() -> None:
    """Of .01, .04 and .03: 3 x .01, then 2 x .03, which .04 may not undercut; None stays and counts for nothing."""
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx((0.03, None, 0.06, 0.06))
    assert holm([None, 0.2]) == (None, 0.2)
    assert holm([]) == ()


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_holm_refuses_what_is_no_p(p: float) -> None:
    """A p-value lies in [0, 1]."""
    with pytest.raises(ValueError, match="p-value"):
        holm([0.5, p])


@pytest.mark.parametrize("wrappers", [2, 3])
def test_mid_p_counts_ties_half(wrappers: int) -> None:
    """Over all relabellings by hand: the share beyond the observed range and half of the share that equals it."""
    y = (np.random.default_rng(wrappers).random((wrappers, 6)) < 0.5) * 1.0
    observed = np.ptp(y.mean(axis=1))
    ranges = [
        np.ptp([sum(y[order[f], i] for i, order in enumerate(orders)) / 6 for f in range(wrappers)])
        for orders in itertools.product(itertools.permutations(range(wrappers)), repeat=6)
    ]
    beyond, equal = (np.mean(np.array(ranges) > observed + 1e-9), np.mean(np.isclose(ranges, observed)))
    found = permutation_test(y, 0)
    assert found.exact
    assert (found.p, found.mid_p) == pytest.approx((beyond + equal, beyond + equal / 2))


def test_the_level_of_mid_p() -> None:
    """At one seed and 50 items, where the exact test is careful, it rejects in 3 to 7 % of 1000 runs."""
    rng, rejected = np.random.default_rng(9), 0
    for run in range(1000):
        item = rng.uniform(0.2, 0.8, 50)
        rejected += (permutation_test((rng.random((2, 50)) < item) * 1.0, run, relabellings=999).mid_p or 1) <= 0.05
    assert 30 <= rejected <= 70
