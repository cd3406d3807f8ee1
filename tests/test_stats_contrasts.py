"""Max-t bounds in portions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.stats.contrasts import critical, enlarge, half_widths, pair_errors, rule_of_three
from auditor.stats.noise import normal_noise, unit_errors


def test_portions_give_the_largest_of_all() -> None:
    """Two portions by hand: |2| / 1, |-3| / 2 and |4| / 1 in the first draw, 0 / 1, 4 / 2 and -1 / 1 in the second."""
    largest = np.zeros(2)
    enlarge(largest, np.array([[2.0, -3.0], [0.0, 4.0]]), np.array([1.0, 2.0]))
    assert largest.tolist() == [2.0, 2.0]
    enlarge(largest, np.array([[4.0], [-1.0]]), np.array([1.0]))
    assert largest.tolist() == [4.0, 2.0]


def test_a_contrast_that_never_varies_is_left_out() -> None:
    """Without a standard error there is no t, whether beside others or alone, and the half-width is the other one."""
    largest = np.zeros(1)
    enlarge(largest, np.array([[1e-17, 3.0]]), np.array([0.0, 2.0]))
    enlarge(largest, np.array([[5.0]]), np.array([0.0]))
    assert largest.tolist() == [1.5]
    assert half_widths(2.0, np.array([0.0, 0.1]), np.array([0.03, 0.04])).tolist() == [0.03, 0.2]


def test_rule_of_three() -> None:
    """3 / units at 95 %; with more confidence in proportion to its logarithm, 3 ln(.01) / ln(.05) at 99 %."""
    assert rule_of_three(60, 0.95) == pytest.approx(0.05)
    assert rule_of_three(60, 0.99) == pytest.approx(0.05 * np.log(0.01) / np.log(0.05))


def test_errors_of_pairs_are_those_of_paired_differences() -> None:
    """The standard error of a difference is that of the items' differences; 0 for a wrapper and its copy."""
    y = np.random.default_rng(0).random((4, 30))
    y[3] = y[1]
    se = pair_errors(unit_errors(y, np.arange(30)))
    pairs = zip(*np.triu_indices(4, 1), strict=True)
    assert se == pytest.approx([(y[f] - y[g]).std(ddof=1) / np.sqrt(30) for f, g in pairs], abs=1e-15)
    assert se[4] == 0


@pytest.mark.parametrize("wrappers", [2, 3, 5, 8])
def test_the_quantile_over_pairs_is_by_definition(wrappers: int) -> None:
    """The largest |t| over all pairs that vary, as it is written, however the draws lie in memory."""
    y = np.random.default_rng(wrappers).random((wrappers, 40))
    y[-1] = y[0]
    errors = unit_errors(y, np.arange(40))
    noise, se = normal_noise(errors, 1, 500), pair_errors(errors)
    largest = [
        max(
            (abs(draw[f] - draw[g]) / e for f, g, e in zip(*np.triu_indices(wrappers, 1), se, strict=True) if e > 0),
            default=0,
        )
        for draw in noise
    ]
    for draws in (noise, np.ascontiguousarray(noise)):
        assert critical(draws, se, 10**9, 0.9) == pytest.approx(np.quantile(largest, 0.9), rel=1e-4)


@pytest.mark.parametrize("units", [3, 10, 50])
def test_one_contrast_has_students_quantile(units: int) -> None:
    """Standard errors are estimates: with two wrappers the quantile is that of t with units - 1 degrees of freedom."""
    errors = unit_errors(np.random.default_rng(5).random((2, units)), np.arange(units))
    k = critical(normal_noise(errors, 6, 100_000), pair_errors(errors), units, 0.95)
    assert k == pytest.approx(stats.t.ppf(0.975, units - 1), rel=0.02)
