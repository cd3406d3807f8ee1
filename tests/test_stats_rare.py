"""Ranges of wrappers that hardly ever fail: by hand, and that their bounds hold."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]

from auditor.stats.noise import unit_errors
from auditor.stats.rare import rare_bounds, rare_differences, union


def failing(units: int, *failures: int) -> np.ndarray:
    """Wrappers of which each fails on its last items."""
    return np.array([[1.0] * (units - count) + [0.0] * count for count in failures])


def test_two_wrappers_have_newcombes_interval() -> None:
    """2 and 6 failures of 100: statsmodels' square-and-add interval of two proportions. Binomial rates have the items'
    number as their effective size, but for the sample variance's divisor."""
    y = failing(100, 2, 6)
    low, high = rare_differences(y.mean(axis=1), unit_errors(y, np.arange(100)), 0.95)
    expected = confint_proportions_2indep(98, 100, 94, 100, method="newcomb", compare="diff")
    assert (low[0, 1], high[0, 1]) == pytest.approx(expected, abs=2e-3)
    assert (low[1, 0], high[1, 0]) == pytest.approx((-high[0, 1], -low[0, 1]))
    assert np.isnan(np.diag(low)).all()


def test_many_events_have_none() -> None:
    """Where no wrapper has fewer than ten successes or failures there is nothing to add."""
    y = failing(100, 20, 60)
    assert rare_bounds(y.mean(axis=1), unit_errors(y, np.arange(100)), 0.95) is None


def test_constant_pairs_may_be_left_to_the_rule_of_three() -> None:
    """Wrappers that never fail count, or do not."""
    y = failing(50, 0, 0)
    errors = unit_errors(y, np.arange(50))
    assert rare_bounds(y.mean(axis=1), errors, 0.95, constant=False) is None
    found = rare_bounds(y.mean(axis=1), errors, 0.95)
    assert found is not None
    assert found[0] == 0
    assert found[1] == pytest.approx(1.959963985**2 / (50 + 1.959963985**2))


def test_a_handful_of_failures_is_covered() -> None:
    """One of three wrappers fails on 2 % of 200 items, the others never: at least 93 of 100 intervals hold it."""
    rng, held = np.random.default_rng(4), 0
    for _ in range(400):
        y = np.ones((3, 200))
        y[2] = rng.random(200) > 0.02
        bounds = rare_bounds(y.mean(axis=1), unit_errors(y, np.arange(200)), 0.95)
        held += bounds is not None and bounds[0] <= 0.02 <= bounds[1]
    assert held >= 372


def test_the_union_of_intervals() -> None:
    """The lower of the lower ends, the higher of the higher; one of them where there is no other."""
    assert union((0.1, 0.3), (0.2, 0.5)) == (0.1, 0.5)
    assert union(None, (0.2, 0.5)) == union((0.2, 0.5), None) == (0.2, 0.5)
    assert union(None, None) is None
