"""Resampled means: drawn one by one, in pieces, and from their normal limit."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.stats import resample
from auditor.stats.noise import unit_sums
from auditor.stats.resample import resampled_means


def test_sums_of_units_by_hand() -> None:
    """Items 0 and 2 are one unit, item 1 the other."""
    found = unit_sums(np.array([[1.0, 2.0, 4.0], [0.5, 0.0, 0.5]]), np.array([0, 1, 0]))
    assert found.tolist() == [[5.0, 2.0], [1.0, 0.0]]


def test_every_resample_is_one_of_those_that_can_be() -> None:
    """Two units of one and three items: the means are 1, 0 or 1/4, as often as drawing two of two gives them."""
    found = resampled_means(np.array([[1.0, 0.0]]), np.array([1.0, 3.0]), np.random.default_rng(0), 20_000)[:, 0]
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == [0.0, 0.25, 1.0]
    assert counts / 20_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.015)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_normal_limit_is_near(clustered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 3,000 units both ways have the same means, covariances and quantiles, within Monte Carlo error."""
    rng = np.random.default_rng(1)
    item = rng.random(3000)
    sums = np.array([rng.random(3000) < item, rng.random(3000) < 0.7 * item], float)
    sizes = rng.integers(1, 4, 3000).astype(float) if clustered else np.ones(3000)
    counted = resampled_means(sums, sizes, np.random.default_rng(2), 10_000)
    monkeypatch.setattr(resample, "MANY", 3000)
    drawn = resampled_means(sums, sizes, np.random.default_rng(3), 10_000)
    assert drawn.mean(axis=0) == pytest.approx(counted.mean(axis=0), abs=4 * counted.std() / 100)
    assert np.cov(drawn.T) == pytest.approx(np.cov(counted.T), rel=0.08)
    spread = counted.std(axis=0)
    for level in (0.025, 0.5, 0.975):
        assert (np.abs(np.quantile(drawn, level, axis=0) - np.quantile(counted, level, axis=0)) < 0.1 * spread).all()


def test_a_hole_stays_in_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statistic that is not known leaves the others as they are, either way."""
    sums = np.array([[1.0, 0.0, 1.0, 1.0], [np.nan, 1.0, 0.0, 1.0]])
    for many in (5000, 4):
        monkeypatch.setattr(resample, "MANY", many)
        both = resampled_means(sums, np.ones(4), np.random.default_rng(4), 50)
        assert np.isfinite(both[:, 0]).all()
        assert np.isnan(both[:, 1]).any()
