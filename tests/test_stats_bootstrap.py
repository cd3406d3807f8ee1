"""The paper's percentile bootstrap over tasks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.stats.bootstrap import MacroMean, macro_means

VALUES = (0.1, 0.4, 0.9, 0.3)


def test_percentiles_of_the_exact_bootstrap() -> None:
    """With four tasks the interval ends are quantiles of the 256 equally likely resamples, up to simulation error."""
    exact = np.array([np.mean(draw) for draw in itertools.product(VALUES, repeat=4)])
    (found,) = macro_means([VALUES], 1, resamples=200_000)
    assert found.mean == pytest.approx(0.425)
    assert found.interval == pytest.approx(np.quantile(exact, [0.025, 0.975], method="inverted_cdf"), abs=0.0251)


def test_confidence_moves_the_ends() -> None:
    """A 50 % interval lies inside the 95 % one of the same draws."""
    wide, narrow = (macro_means([VALUES], 1, confidence=level)[0].interval for level in (0.95, 0.5))
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_same_seed_same_bytes() -> None:
    """A seed and a generator from it give the same interval; another seed gives another."""
    rows = [np.linspace(0.0, 1.0, 7) ** 2]
    assert macro_means(rows, 5) == macro_means(rows, np.random.default_rng(5))
    assert macro_means(rows, 5) != macro_means(rows, 6)


def test_statistics_share_the_resamples() -> None:
    """A shifted copy of a statistic gets the shifted interval, exactly."""
    plain, shifted = macro_means([VALUES, [value + 1 for value in VALUES]], 3)
    assert plain.interval is not None
    assert shifted.interval == pytest.approx([end + 1 for end in plain.interval], abs=1e-12)


def test_each_row_is_what_it_is_alone() -> None:
    """A row's result does not depend on the rows beside it."""
    rows = np.random.default_rng(0).random((3, 7))
    assert macro_means(rows, 2) == tuple(macro_means([row], 2)[0] for row in rows)


def test_one_task_has_a_mean_and_no_interval() -> None:
    """A bootstrap over one task would claim an interval of no width."""
    assert macro_means([[0.3]], 0) == (MacroMean(0.3, None, 1, "one task cannot be resampled"),)


def test_what_is_not_there_gives_a_reason() -> None:
    """No task, or a task without a value, leaves that row's mean None; other rows are not touched."""
    assert macro_means(np.empty((1, 0)), 0) == (MacroMean(None, None, 0, "no task was measured"),)
    missing, whole = macro_means([[0.5, float("nan")], [0.5, 0.5]], 0)
    assert missing == MacroMean(None, None, 2, "a task has no value")
    assert whole == MacroMean(0.5, (0.5, 0.5), 2)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_the_interval_stays_inside_the_tasks(values: list[float]) -> None:
    """Ends are ordered and never leave the range of the values."""
    (found,) = macro_means([values], 0, resamples=200)
    assert found.interval is not None
    assert min(values) <= found.interval[0] <= found.interval[1] <= max(values)
