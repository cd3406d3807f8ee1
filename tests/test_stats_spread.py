"""Token spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.stats.spread import SpreadSummary, summarize, token_spreads, within

GROUPS = st.lists(st.lists(st.integers(1, 10_000), min_size=2, max_size=6), min_size=1, max_size=8)


def test_groups_by_hand() -> None:
    """Group 3 spreads 20/110, group 7 not at all; rows may come in any order."""
    found = token_spreads([7, 3, 3, 7, 3], [50, 100, 120, 50, 110])
    assert found.group.tolist() == [3, 7]
    assert found.spread.tolist() == pytest.approx([20 / 110, 0.0])
    assert found.matched.tolist() == [False, True]


@pytest.mark.parametrize("base", [1, 7, 11, 13, 97, 1000])
def test_exactly_five_percent_is_within(base: int) -> None:
    """(39, 40, 41) times any number spreads exactly 5 % and belongs to the matched subset; one token more does not."""
    tokens = [39 * base, 40 * base, 41 * base]
    assert token_spreads([0, 0, 0], tokens).matched.tolist() == [True]
    assert token_spreads([0, 0, 0], [tokens[0] - 1, tokens[1], tokens[2] + 1]).matched.tolist() == [False]


def test_a_spread_that_rounds_past_the_limit_is_within() -> None:
    """(0.1 + 0.05) / 3 is 5 % and a last digit more."""
    assert (0.1 + 0.05) / 3 > 0.05
    assert within(np.array([(0.1 + 0.05) / 3, 0.0500001])).tolist() == [True, False]


def test_groups_without_a_spread_are_absent() -> None:
    """One wrapper, or an endpoint that counts no tokens, has no spread: not 0, not NaN."""
    found = token_spreads([0, 1, 1, 2, 2], [10, 0, 0, 10, 10])
    assert (found.group.tolist(), found.spread.tolist()) == ([2], [0.0])
    assert token_spreads([], []).spread.tolist() == []


def test_summary() -> None:
    """Median and share of four groups, three of them within 5 %."""
    assert summarize(np.array([0.0, 0.02, 0.04, 0.5])) == SpreadSummary(0.03, 0.75, 4)


def test_summary_of_nothing_gives_a_reason() -> None:
    """No group is None with a reason."""
    assert summarize(np.array([])) == SpreadSummary(None, None, 0, "no group has token counts under two wrappers")


@pytest.mark.parametrize("tokens", [[1, -1], [1, np.nan]])
def test_a_token_count_that_cannot_be_is_refused(tokens: list[float]) -> None:
    """Negative or missing counts are the caller's mistake."""
    with pytest.raises(ValueError, match="token count"):
        token_spreads([0, 0], tokens)


@given(GROUPS)
def test_vectorized_is_the_simple_formula(groups: list[list[int]]) -> None:
    """Each spread is (max - min) / mean of its group, and the verdict that of whole-number arithmetic."""
    rows = [(index, value) for index, group in enumerate(groups) for value in group]
    found = token_spreads([index for index, _ in rows], [value for _, value in rows])
    assert found.spread.tolist() == pytest.approx([(max(g) - min(g)) / (sum(g) / len(g)) for g in groups])
    exact = [20 * len(g) * (max(g) - min(g)) <= sum(g) for g in groups]
    assert within(found.spread).tolist() == exact
    assert (found.spread >= 0).all()
