"""Token spread."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.stats.spread import SpreadSummary, summarize, within


@pytest.mark.parametrize("base", [1, 7, 11, 13, 97, 1000])
def test_exactly_five_percent_is_within(base: int) -> None:
    """(39, 40, 41) times any number spreads exactly 5 % and belongs to the matched subset; two tokens more do not."""
    widths, mean = np.array([2 * base, 2 * base + 2]), 40 * base
    assert within(widths / mean).tolist() == [True, False]


def test_a_spread_that_rounds_past_the_limit_is_within() -> None:
    """(0.1 + 0.05) / 3 is 5 % and a last digit more."""
    assert (0.1 + 0.05) / 3 > 0.05
    assert within(np.array([(0.1 + 0.05) / 3, 0.0500001])).tolist() == [True, False]


def test_summary() -> None:
    """Median and share of four groups, three of them within 5 %."""
    assert summarize(np.array([0.0, 0.02, 0.04, 0.5])) == SpreadSummary(0.03, 0.75, 4)


def test_summary_of_nothing_gives_a_reason() -> None:
    """No group is None with a reason."""
    assert summarize(np.array([])) == SpreadSummary(None, None, 0, "no group has token counts under two wrappers")
