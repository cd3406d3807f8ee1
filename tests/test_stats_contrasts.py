"""Max-t bounds in portions."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.stats.contrasts import enlarge, half_widths, rule_of_three


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
