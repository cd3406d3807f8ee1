"""FSI, PSI and nFSI."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.stats.sensitivity import Range, fsi, nfsi, psi

RATES = st.lists(st.integers(0, 1000).map(lambda correct: correct / 1000), min_size=2, max_size=30)


def test_fsi_by_hand() -> None:
    """0.2, 0.9 and 0.4 range over 0.7 with mean 0.5."""
    found = fsi([0.2, 0.9, 0.4])
    assert (found.low, found.high, found.best, found.worst, found.reason) == (0.2, 0.9, (1,), (0,), None)
    assert found.value == pytest.approx(0.7)
    assert found.mean == pytest.approx(0.5)
    assert nfsi([0.2, 0.9, 0.4]) == pytest.approx(0.7 / 0.500001)


def test_ties_within_rounding_are_ties() -> None:
    """0.1 + 0.2 and 0.3 share the top, or the bottom."""
    assert fsi([0.1 + 0.2, 0.3, 0.0]).best == (0, 1)
    assert fsi([0.1 + 0.2, 0.3, 0.9]).worst == (0, 1)


def test_rates_that_are_all_zero_have_a_range_of_zero() -> None:
    """Nothing correct under any wrapper is measured, so FSI and nFSI are 0 and all wrappers tie."""
    found = fsi([0.0, 0.0])
    assert (found.value, found.relative, found.best, found.worst) == (0.0, 0.0, (0, 1), (0, 1))


def test_one_wrapper_has_no_range() -> None:
    """A single rate gives no FSI and no nFSI, but its own minimum, maximum and mean."""
    assert fsi([0.25]) == Range(None, 0.25, 0.25, 0.25, (0,), (0,), "one wrapper has no range")
    assert nfsi([0.25]) is None


@pytest.mark.parametrize(
    ("rates", "reason"), [([], "no wrapper was measured"), ([0.5, float("nan")], "a wrapper has no rate")]
)
def test_rates_that_are_not_there_give_a_reason(rates: list[float], reason: str) -> None:
    """Without a rate for every wrapper everything is None."""
    assert psi(rates) == Range(None, None, None, None, (), (), reason)


def test_a_matrix_is_refused() -> None:
    """Rates are one-dimensional."""
    with pytest.raises(ValueError, match="1 dimension"):
        fsi([[0.5, 0.6]])


@given(RATES)
def test_laws(rates: list[float]) -> None:
    """The range lies in [0, 1], and neither it nor nFSI depends on the order of the wrappers."""
    found = fsi(rates)
    shuffled = fsi(sorted(rates))
    assert found.value is not None
    assert 0 <= found.value <= 1
    assert (found.value, found.low, found.high, found.relative) == (
        shuffled.value,
        shuffled.low,
        shuffled.high,
        shuffled.relative,
    )
    assert {rates[i] for i in found.best} == {max(rates)}
    assert {rates[i] for i in found.worst} == {min(rates)}
