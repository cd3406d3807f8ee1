"""Range inversion: noise floor, adjusted range and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import foldnorm

from auditor.stats.arrays import FloatArray
from auditor.stats.inversion import RangeEstimate, range_inversion
from auditor.stats.noise import normal_noise, unit_errors
from auditor.stats.simultaneous import range_bounds

Z = 1.959963984540054


def matrix(seed: int, effect: float = 0.1, wrappers: int = 4, items: int = 60) -> FloatArray:
    """Means of five seeds, items shared by the wrappers, rates equally spaced over `effect`."""
    rng = np.random.default_rng(seed)
    item = rng.uniform(0.2, 0.7, items) + 0.15 * rng.standard_normal((wrappers, items))
    chance = np.clip(item + effect * np.linspace(0, 1, wrappers)[:, None], 0, 1)
    return np.asarray(rng.binomial(5, chance) / 5, np.float64)


def multipliers(y: FloatArray, unit: list[int], seed: int, draws: int) -> FloatArray:
    """Noise (B, F) by the definition: one normal multiplier per unit, the same for every wrapper."""
    units = len(set(unit))
    xi = np.random.default_rng(seed).standard_normal((draws, units))[:, unit]
    noise: FloatArray = math.sqrt(units / (units - 1)) / y.shape[1] * xi @ (y - y.mean(axis=1, keepdims=True)).T
    return noise


def tied(y: FloatArray, noise: FloatArray) -> list[float]:
    """The means with every wrapper within 2.5 standard errors of the best or worst moved there, to the nearer one."""
    m = [float(mean) for mean in y.mean(axis=1)]
    best, worst = max(m), min(m)

    def near(f: int, end: float) -> bool:
        return abs(m[f] - end) <= 2.5 * float((noise[:, f] - noise[:, m.index(end)]).std()) + 1e-12

    if near(m.index(worst), best):
        return [0.0] * len(m)
    moved = list(m)
    for f, mean in enumerate(m):
        ends = [end for end in (best, worst) if near(f, end)]
        moved[f] = min(ends, key=lambda end: abs(mean - end), default=mean)
    return moved


def by_definition(y: FloatArray, noise: FloatArray) -> tuple[float, float, float, float]:
    """Floor, adjusted range and interval ends: the equations as they are written."""
    m = y.mean(axis=1)
    observed, moved = float(np.ptp(m)), np.array(tied(y, noise))

    def solved(rates: FloatArray, function: Callable[[FloatArray], float], level: float) -> float:
        def excess(s: float) -> float:
            return function(np.ptp(s * (rates - rates.mean()) / np.ptp(rates) + noise, axis=1)) - level

        return 0.0 if excess(0) >= 0 else float(brentq(excess, 0, 1))

    floor = float(np.ptp(noise, axis=1).mean())
    lows = [solved(rates, lambda r: float(np.quantile(r, 0.975)), observed) for rates in (m, moved) if np.ptp(rates)]
    high = solved(m, lambda r: float(np.quantile(r, 0.025)), max(observed, floor))
    adjusted = observed - floor if observed <= floor else solved(m, lambda r: float(r.mean()), observed)
    return floor, adjusted, min(lows), high


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize(("seed", "effect"), [(1, 0.1), (2, 0.4), (3, 0.0)])
def test_the_definition_agrees(seed: int, effect: float, clustered: bool) -> None:
    """Bisection over draws in F dimensions solves the equations over item multipliers, clustered or not."""
    y = matrix(seed, effect)
    unit = [i // 2 if clustered else i for i in range(60)]
    floor, adjusted, low, high = by_definition(y, multipliers(y, unit, 4, 30_000))
    found = range_inversion(y, 5, clusters=unit, draws=30_000)
    assert found.units == (30 if clustered else 60)
    assert found.observed == pytest.approx(np.ptp(y.mean(axis=1)), abs=1e-15)
    assert found.floor == pytest.approx(floor, abs=0.001)
    assert found.adjusted == pytest.approx(adjusted, abs=0.003)
    assert found.interval == pytest.approx((low, high), abs=0.003)


@pytest.mark.parametrize("wrappers", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("effect", [0.0, 0.05, 0.3])
def test_the_same_draws_solve_the_same_equations(wrappers: int, effect: float) -> None:
    """From the very draws the adjusted range is right to eight digits, the ends, where shares are passed, to six."""
    y = matrix(wrappers, effect, wrappers=wrappers)
    if wrappers > 2:
        # an exact tie, which noise alone parts
        y[1] = y[0, ::-1]
    half = normal_noise(unit_errors(y, np.arange(60)), 3, 2000)
    noise, m = np.vstack([half, -half]), y.mean(axis=1)
    found, (floor, adjusted, *_) = range_inversion(y, 3, draws=4000), by_definition(y, noise)
    assert (found.floor, found.adjusted) == pytest.approx((floor, adjusted), abs=1e-8)

    def share(rates: FloatArray, s: float, level: float) -> float:
        return float((np.ptp(max(s, 0) * (rates - rates.mean()) / np.ptp(rates) + noise, axis=1) <= level).mean())

    assert found.interval is not None
    low, high = found.interval
    shapes = [rates for rates in (m, np.array(tied(y, noise))) if np.ptp(rates)]
    assert min(share(rates, low + 1e-6, np.ptp(m)) for rates in shapes) <= 0.975
    assert low == 0 or min(share(rates, low - 1e-6, np.ptp(m)) for rates in shapes) > 0.975
    level = max(float(np.ptp(m)), floor)
    assert share(m, high + 1e-6, level) <= 0.025 < share(m, high - 1e-6, level)


def test_two_wrappers_are_a_folded_normal() -> None:
    """The range of two wrappers is |N(s, se)|, whose mean and quantiles are known."""
    y = np.zeros((2, 100))
    y[0, :40], y[1, 30:55] = 1, 1
    se = (y[0] - y[1]).std(ddof=1) / 10
    found = range_inversion(y, 6, draws=200_000)

    def solved(level: float) -> float:
        return float(brentq(lambda s: foldnorm.cdf(0.15, s / se, scale=se) - level, 0, 1))

    assert found.floor == pytest.approx(se * math.sqrt(2 / math.pi), abs=0.0005)
    assert found.adjusted == pytest.approx(brentq(lambda s: foldnorm.mean(s / se, scale=se) - 0.15, 0, 1), abs=0.0005)
    assert found.interval == pytest.approx((solved(0.975), solved(0.025)), abs=0.001)


def test_far_apart_nothing_is_subtracted() -> None:
    """Where noise cannot change which wrapper is best and worst the range is unbiased, and is left as it is."""
    y = matrix(7, 0.0, wrappers=3, items=400) * np.array([[1.0], [0.5], [0.1]])
    found = range_inversion(y, 0)
    assert found.adjusted == pytest.approx(found.observed, abs=1e-9)
    assert (found.least, found.most) == pytest.approx((found.observed, found.observed), abs=1e-12)


def test_a_range_below_the_floor_is_signed_and_proves_nothing() -> None:
    """Below the floor the estimate is negative and the interval ends where it does for a range at the floor."""
    y = matrix(8, 0.0)
    order = y.mean(axis=1).argsort()
    # the best wrapper gives up answers until the four are nearly tied
    while np.ptp(y.mean(axis=1)) > 0.01:
        best = y.mean(axis=1).argmax()
        y[best, y[best].argmax()] -= 0.2
    found = range_inversion(y, 0, draws=30_000)
    assert order.size == 4
    assert found.observed is not None
    assert found.floor is not None
    assert found.interval is not None
    assert 0 < found.observed < found.floor / 2
    assert found.adjusted == found.observed - found.floor
    assert found.least == pytest.approx(found.adjusted, abs=1e-12)
    assert found.interval[0] == 0
    *_, high = by_definition(y, multipliers(y, list(range(60)), 1, 30_000))
    assert found.interval[1] == pytest.approx(high, abs=0.003)
    assert found.interval[1] > found.floor


def test_what_noise_adds_at_ties() -> None:
    """`least` subtracts the inflation of wrappers put where they may be tied, `most` that of the wrappers observed."""
    y = matrix(9, 0.0, wrappers=5, items=200)
    y[4] *= 0.3
    means, noise = y.mean(axis=1), multipliers(y, list(range(200)), 2, 30_000)
    tied = np.array([means.max()] * 4 + [means[4]])
    found = range_inversion(y, 3, draws=30_000)
    observed = np.ptp(means)
    assert found.least == pytest.approx(observed - (np.ptp(tied + noise, axis=1).mean() - np.ptp(tied)), abs=0.001)
    assert found.most == pytest.approx(observed - (np.ptp(means + noise, axis=1).mean() - observed), abs=0.001)
    assert found.least is not None
    assert found.most is not None
    assert found.least < found.most < observed


def score_ends(rate: float, size: float) -> tuple[float, float]:
    """Wilson's interval as the roots of (rate - p)^2 = z^2 p (1 - p) / size."""
    k = Z * Z / size
    low, high = sorted(np.roots([1 + k, -(2 * rate + k), rate * rate]).real)
    return float(low), float(high)


def test_few_failures_are_not_normal() -> None:
    """One failure in 200 of one wrapper: the upper end is Wilson's, 0.028, where normal noise would say 0.015."""
    y = np.ones((3, 200))
    y[1, 17] = 0
    low, _ = score_ends(0.995, 199)
    found = range_inversion(y, 0)
    assert found.interval == pytest.approx((0.0, 1 - low), abs=1e-9)
    assert 1 - low == pytest.approx(0.0278, abs=0.0002)


def test_few_successes_are_not_normal_either() -> None:
    """A collapsed wrapper that was right once: the lower end falls by square-and-add of both wrappers' intervals."""
    y = np.ones((2, 200))
    y[1, 1:] = 0
    _, high = score_ends(0.005, 199)
    low, _ = score_ends(1, 200)
    found = range_inversion(y, 0)
    assert found.interval is not None
    assert found.interval[0] == pytest.approx(0.995 - math.hypot(1 - low, high - 0.005), abs=1e-9)


def test_seeds_that_agree_count_once() -> None:
    """Failures of single seeds are better evidence than one item failing under all seeds, and give less width."""
    once, spread = np.ones((2, 200)), np.ones((2, 200))
    once[1, 0], spread[1, :5] = 0, 0.8
    whole, parts = (range_inversion(y, 0).interval for y in (once, spread))
    assert whole is not None
    assert parts is not None
    assert parts[1] < whole[1]


def test_singleton_clusters_change_nothing() -> None:
    """A cluster per item, by any ids, is no cluster."""
    y = matrix(10)
    assert range_inversion(y, 0) == range_inversion(y, 0, clusters=np.arange(60) * 7 - 3)


def test_copies_in_clusters_are_not_evidence() -> None:
    """Every item four times over, clustered, gives what the items once give."""
    y = matrix(11)
    once = range_inversion(y, 0)
    copied = range_inversion(np.repeat(y, 4, axis=1), 0, clusters=np.repeat(np.arange(60), 4))
    assert once.interval is not None
    assert copied.interval == pytest.approx(once.interval, abs=1e-9)
    assert (copied.floor, copied.adjusted, copied.units) == pytest.approx((once.floor, once.adjusted, 60), abs=1e-9)


def test_same_seed_same_bytes() -> None:
    """A seed and a generator from it agree; another seed does not."""
    y = matrix(12)
    assert range_inversion(y, 1) == range_inversion(y, np.random.default_rng(1))
    assert range_inversion(y, 1) != range_inversion(y, 2)


def test_without_any_difference_there_is_no_noise() -> None:
    """All parsed under all wrappers: PSI 0, floor 0, and the rule of three as upper end."""
    for y in (np.ones((5, 200)), np.tile(matrix(13, wrappers=1, items=200), (5, 1))):
        found = range_inversion(y, 0)
        assert found.interval == pytest.approx((0.0, 3 / 200), abs=1e-12)
        assert (found.observed, found.floor, found.adjusted, found.least, found.most) == (0, 0, 0, 0, 0)


def test_a_constant_difference_is_itself() -> None:
    """Nothing parsed under one wrapper, all under the other: PSI 1 without noise, from 1 - 6/N."""
    found = range_inversion([[1] * 100, [0] * 100], 0)
    assert found == RangeEstimate(1.0, 0.0, 1.0, found.interval, 1.0, 1.0, 100)
    assert found.interval == pytest.approx((0.94, 1.0))


def test_an_exact_tie_has_no_direction() -> None:
    """Wrappers that differ on items but tie get the max-t bounds and minus the floor."""
    y = np.array([[1, 0] * 50, [0, 1] * 50], np.float64)
    found, bounds = range_inversion(y, 0), range_bounds(y, 0).interval
    assert found.observed == 0
    assert found.floor is not None
    assert found.adjusted == -found.floor
    assert bounds is not None
    assert found.interval == pytest.approx(bounds, abs=0.01)


@pytest.mark.parametrize(
    ("y", "units", "reason"),
    [
        (np.zeros((0, 0)), 0, "fewer than two wrappers"),
        (np.zeros((1, 5)), 5, "fewer than two wrappers"),
        (np.zeros((2, 1)), 1, "fewer than two items or clusters"),
        (np.array([[0, 1], [1, np.nan]]), 2, "an item was not measured under every wrapper"),
    ],
)
def test_what_cannot_be_estimated_gives_a_reason(y: FloatArray, units: int, reason: str) -> None:
    """Too few wrappers or items, or a hole in the matrix, give None and say why."""
    assert range_inversion(y, 0) == RangeEstimate(None, None, None, None, None, None, units, reason)


def test_clusters_that_do_not_fit_are_refused() -> None:
    """One cluster id per item."""
    with pytest.raises(ValueError, match="clusters 3, items 60"):
        range_inversion(matrix(14), 0, clusters=[0, 1, 2])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(2, 30), st.integers(1, 4))
def test_laws(seed: int, wrappers: int, items: int, levels: int) -> None:
    """The estimate is at most the range and lies in its interval, which lies in [0, 1] and grows with confidence."""
    y = np.random.default_rng(seed).integers(0, levels, (wrappers, items)) / max(levels - 1, 1)
    found = range_inversion(y, 0, draws=400)
    narrow, wide = range_inversion(y, 0, draws=400, confidence=0.8).interval, found.interval
    assert found.observed is not None
    assert found.adjusted is not None
    assert found.least is not None
    assert found.most is not None
    assert narrow is not None
    assert wide is not None
    assert max(found.adjusted, found.least, found.most) <= found.observed + 1e-9
    assert 0 <= wide[0] <= narrow[0] <= narrow[1] <= wide[1] <= 1
    assert wide[0] - 1e-9 <= max(0.0, found.adjusted) <= wide[1] + 1e-9


def covered(truth: float, draw: Callable[[np.random.Generator], FloatArray], runs: int = 300) -> float:
    rng = np.random.default_rng(15)
    intervals = [range_inversion(draw(rng), rng, draws=400).interval for _ in range(runs)]
    return sum(one is not None and one[0] <= truth <= one[1] for one in intervals) / runs


@pytest.mark.parametrize("effects", [(0, 0, 0, 0, 0), (0, 0.01, 0.02, 0.03, 0.04), (0.2, 0.2, 0.2, 0, 0)])
def test_coverage_of_accuracies(effects: tuple[float, ...]) -> None:
    """No effect, a small one, and ties at both ends among 200 items are covered in at least 92 %."""

    def draw(rng: np.random.Generator) -> FloatArray:
        chance = rng.uniform(0.1, 0.7, 200) + np.array(effects)[:, None]
        return np.asarray(rng.binomial(5, chance) / 5)

    assert covered(max(effects), draw) >= 0.92


@pytest.mark.parametrize("rate", [0.017, 0.983])
def test_coverage_of_rare_events(rate: float) -> None:
    """A wrapper that fails, or parses, in 1.7 % of 200 replies beside perfect ones: normal noise covers 86 %."""

    def draw(rng: np.random.Generator) -> FloatArray:
        y = np.ones((5, 200))
        y[4] = rng.random(200) >= rate
        return y

    assert covered(rate, draw) >= 0.92


def test_coverage_of_small_differences_near_the_ceiling() -> None:
    """Parseabilities from .995 down to .975, failures clustered in hard items, are covered in at least 92 %."""

    def draw(rng: np.random.Generator) -> FloatArray:
        # E expit(d + 2 z) is .995, .990, ... for these d, by quadrature
        hardness = np.array([7.174, 6.404, 5.936, 5.593, 5.32])[:, None] + 2 * rng.standard_normal(200)
        return np.asarray(rng.binomial(5, expit(hardness)) / 5)

    assert covered(0.02, draw) >= 0.92
