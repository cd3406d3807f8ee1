"""Wins per wrapper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auditor.stats.arrays import FloatArray
from auditor.stats.wins import Wins, wins

TABLE = arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.integers(0, 4))


def of_table(table: FloatArray) -> Wins:
    """Wins of a complete (pair, wrapper) table of accuracies."""
    pair, wrapper = np.indices(table.shape)
    return wins(pair.ravel(), wrapper.ravel(), table.ravel(), table.shape[1])


def test_wins_by_hand() -> None:
    """A clear win, a tie of two and a tie of three: 1 + 1/3, 1/2 + 1/3, 1/2 + 1/3."""
    found = of_table(np.array([[0.9, 0.1, 0.2], [0.1, 0.5, 0.5], [0.4, 0.4, 0.4]]))
    assert found.wins == pytest.approx((4 / 3, 5 / 6, 5 / 6))
    assert found.pairs == 3


def test_a_tie_but_for_rounding_is_a_tie() -> None:
    """0.1 + 0.2 does not beat 0.3."""
    assert of_table(np.array([[0.1 + 0.2, 0.3]])).wins == (0.5, 0.5)


def test_missing_cells() -> None:
    """A pair without one wrapper is decided among the rest; a pair with one wrapper is no contest."""
    found = wins([0, 0, 1], [0, 2, 1], [0.2, 0.6, 0.9], 3)
    assert found == Wins((0.0, 0.0, 1.0), 1)


def test_no_cells() -> None:
    """Without cells nobody wins, and no pair is counted."""
    assert wins([], [], [], 2) == Wins((0.0, 0.0), 0)


@pytest.mark.parametrize(
    ("wrapper", "accuracy", "message"),
    [([0, 2], [1, 1], "0..1"), ([0, -1], [1, 1], "0..1"), ([0, 1], [1, np.nan], "no")],
)
def test_a_cell_that_cannot_be_is_refused(wrapper: list[int], accuracy: list[float], message: str) -> None:
    """Unknown wrappers and missing accuracies are the caller's mistake."""
    with pytest.raises(ValueError, match=message):
        wins([0, 0], wrapper, accuracy, 2)


@given(TABLE)
def test_laws(table: FloatArray) -> None:
    """Wins sum to the pairs, equal a plain loop, and follow the wrappers when these are reordered."""
    found = of_table(table / 4)
    loop = np.zeros(table.shape[1])
    for row in table:
        tied = np.flatnonzero(row == row.max())
        loop[tied] += 1 / len(tied)
    assert found.wins == pytest.approx(loop)
    assert sum(found.wins) == pytest.approx(found.pairs)
    assert of_table(table[:, ::-1] / 4).wins == pytest.approx(found.wins[::-1])
