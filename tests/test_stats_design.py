"""Power, and items for a noise floor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from auditor.stats.arrays import FloatArray
from auditor.stats.contrasts import quantile
from auditor.stats.design import Detectable, ItemsNeeded, detectable, items_needed
from auditor.stats.effects import permutation_test, random_orders
from auditor.stats.noise import normal_noise, unit_errors, unit_of
from auditor.stats.simultaneous import range_bounds


def of_items(y: FloatArray, seed: int = 0, draws: int = 10_000, power: float = 0.8) -> Detectable:
    errors = unit_errors(y, unit_of(y, None))
    return detectable(errors, normal_noise(errors, seed, draws), seed, power=power)


def answers(rng: np.random.Generator, effects: FloatArray, items: int = 100) -> FloatArray:
    """Single results; `effects` are added to each item's own rate."""
    return np.asarray(rng.random((len(effects), items)) < rng.uniform(0.3, 0.7, items) + effects[:, None], np.float64)


def test_two_wrappers_are_the_textbook_formula() -> None:
    """With two wrappers both patterns are one difference, found with 80 % at t + 0.842 standard errors."""
    y = answers(np.random.default_rng(1), np.zeros(2))
    found = of_items(y, draws=200_000)
    expected = (student.ppf(0.975, 99) + norm.ppf(0.8)) * (y[0] - y[1]).std(ddof=1) / 10
    assert found.spaced == pytest.approx(expected, rel=0.01)
    assert found.one_bad == pytest.approx(expected, rel=0.01)
    assert (found.units, found.reason) == (100, None)


@pytest.mark.parametrize("pattern", ["spaced", "one_bad"])
def test_other_draws_find_it_as_often(pattern: str) -> None:
    """At the range said to be found with 20 %, max-t by its definition on other draws finds it in 19.5 to 20.5 %."""
    rng = np.random.default_rng(6)
    y = answers(rng, np.zeros(5))
    found = getattr(of_items(y, draws=200_000, power=0.2), pattern)
    noise = rng.multivariate_normal(np.zeros(5), np.cov(y) / 100, 200_000)
    shape = np.linspace(0, 1, 5) if pattern == "spaced" else np.array([0.0, 1, 1, 1, 1])
    effects = rng.permuted(np.tile(shape, (200_000, 1)), axis=1)
    means = noise + found * effects
    pairs = [(f, g, (y[f] - y[g]).std(ddof=1) / 10) for f in range(5) for g in range(f)]
    largest = np.max([abs(noise[:, f] - noise[:, g]) / se for f, g, se in pairs], axis=0)
    k = student.ppf(norm.cdf(np.quantile(largest, 0.95)), 99)
    seen = np.zeros(200_000, np.bool_)
    for f, g, se in pairs:
        wrong_way = (means[:, f] - means[:, g]) * (effects[:, f] - effects[:, g]) < 0
        seen |= (abs(means[:, f] - means[:, g]) / se > k) & ~wrong_way
    assert seen.mean() == pytest.approx(0.2, abs=0.005)


@pytest.mark.parametrize("wrappers", [2, 3, 5, 8])
def test_the_share_of_the_draws_is_reached_there_and_not_before(wrappers: int) -> None:
    """Of the very draws, 80 % have a pair apart at the range said, the right way or one without an effect; fewer below.

    One wrapper is a copy of another, so that a constant pair is among them."""
    y = answers(np.random.default_rng(wrappers), np.zeros(wrappers))
    y[-1] = y[0] if wrappers > 2 else y[-1]
    errors = unit_errors(y, unit_of(y, None))
    noise, first, second = normal_noise(errors, 0, 999), *np.triu_indices(wrappers, 1)
    places = random_orders(wrappers, (999,), np.random.default_rng(3))
    se = np.sqrt(((errors[:, first] - errors[:, second]) ** 2).sum(axis=0))
    t = np.abs(noise[:, first] - noise[:, second])[:, se > 0] / se[se > 0]
    half = np.where(se > 0, quantile(t.max(axis=1), len(errors) - 1, 0.95) * se, 0.03 / 0.97)
    found = detectable(errors, noise, 3)

    def share(pattern: FloatArray, size: float) -> float:
        effect = pattern[places][:, first] - pattern[places][:, second]
        apart = size * effect + noise[:, first] - noise[:, second]
        return float(((np.abs(apart) > half) & (apart * effect >= 0)).any(axis=1).mean())

    steps = np.arange(wrappers, dtype=np.float64)
    for pattern, size in ((steps / (wrappers - 1), found.spaced), (np.minimum(steps, 1), found.one_bad)):
        assert size is not None
        assert share(pattern, size - 1e-9) < 0.8 <= share(pattern, size + 1e-9)


@pytest.mark.parametrize("pattern", ["spaced", "one_bad"])
def test_the_power_is_what_it_says(pattern: str) -> None:
    """What is said to be found with 80 % max-t finds in 73 to 87 % of 400 runs, the permutation test in 69 to 87 %."""
    rng, wrappers = np.random.default_rng(2), 4
    ranges = [getattr(of_items(answers(rng, np.zeros(wrappers)), run), pattern) for run in range(20)]
    shapes = {"spaced": np.linspace(-0.5, 0.5, wrappers), "one_bad": np.array([-0.75, 0.25, 0.25, 0.25])}
    bounded, permuted = 0, 0
    for _ in range(400):
        y = answers(rng, float(np.mean(ranges)) * shapes[pattern])
        bounded += (range_bounds(y, rng, draws=400).interval or (0, 0))[0] > 0
        permuted += (permutation_test(y, rng, relabellings=199).p or 1) <= 0.05
    assert 292 <= bounded <= 348
    assert 276 <= permuted <= 348


def test_more_power_and_fewer_items_take_a_larger_range() -> None:
    """90 % need more than 80 %, and a quarter of the items, copied, doubles the range."""
    y = answers(np.random.default_rng(3), np.zeros(5))
    more, found = of_items(y, power=0.9), of_items(y)
    four = of_items(np.tile(y, 4))
    assert found.spaced is not None
    assert more.spaced is not None
    assert more.spaced > found.spaced
    # the degrees of freedom, 99 or 399, are all that differs from one half
    assert four.spaced == pytest.approx(found.spaced / 2, rel=0.03)


def test_wrappers_without_any_difference_get_the_rule_of_three() -> None:
    """All parsed everywhere: a range is seen once it exceeds (3 / N) / (1 - 3 / N), whichever wrappers differ."""
    found = of_items(np.ones((3, 203)))
    assert found.spaced == pytest.approx(3 / 200, abs=1e-12)
    assert found.one_bad == pytest.approx(3 / 200, abs=1e-12)


@pytest.mark.parametrize("items", [2, 3, 5])
def test_too_few_items_see_nothing(items: int) -> None:
    """Where even a range of 1 would go unseen, there is no number and a reason."""
    found = of_items(np.ones((3, items)))
    assert found == Detectable(None, None, items, "too few items or clusters to find a range of 1")


def test_what_has_no_power_gives_a_reason() -> None:
    """One wrapper or one item give None and say why; arrays of different wrappers are refused."""
    assert detectable(np.zeros((5, 1)), np.zeros((9, 1)), 0) == Detectable(None, None, 5, "fewer than two wrappers")
    few = "fewer than two items or clusters"
    assert detectable(np.zeros((1, 2)), np.zeros((9, 2)), 0) == Detectable(None, None, 1, few)
    with pytest.raises(ValueError, match="errors 3, noise 2"):
        detectable(np.zeros((5, 3)), np.zeros((9, 2)), 0)


def test_same_seed_same_bytes() -> None:
    """The same seeds give the same numbers."""
    y = answers(np.random.default_rng(4), np.zeros(5))
    assert of_items(y, 1) == of_items(y, 1)
    assert of_items(y, 1) != of_items(y, 2)


def test_items_by_hand() -> None:
    """A floor of .034 at 200 items is halved by 800, and .05 at 100 comes to .03 with 278."""
    assert items_needed(0.034, 200, 0.017) == ItemsNeeded(800)
    assert items_needed(0.05, 100, 0.03) == ItemsNeeded(278)
    assert items_needed(0.02, 200, 0.04) == ItemsNeeded(50)


def test_no_noise_says_nothing_about_items() -> None:
    """Where no noise was measured, its scale is unknown."""
    assert items_needed(0.0, 200, 0.01) == ItemsNeeded(None, "no noise was measured")


@pytest.mark.parametrize(("measured", "items", "target"), [(0.1, 200, 0.0), (-0.1, 200, 0.1), (0.1, 0, 0.1)])
def test_what_cannot_be_brought_down_is_refused(measured: float, items: int, target: float) -> None:
    """A target above 0, a noise that is not negative, at least one item."""
    with pytest.raises(ValueError, match="cannot be brought"):
        items_needed(measured, items, target)


@given(st.floats(0.001, 1), st.integers(1, 10_000), st.floats(0.001, 1))
def test_items_are_the_smallest_number_that_does(measured: float, items: int, target: float) -> None:
    """With them the noise is at most the target, with one fewer it is above it."""
    needed = items_needed(measured, items, target).items
    assert needed is not None
    assert measured * np.sqrt(items / needed) <= target * (1 + 1e-8)
    assert needed == 1 or measured * np.sqrt(items / (needed - 1)) > target * (1 - 1e-8)
