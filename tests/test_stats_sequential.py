"""Wealth against a limit: the recursion, what it refuses, and that it is not won by chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.stats.sequential import Hypothesis, wealth


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=30), st.floats(0.01, 0.5))
def test_each_step_multiplies_each_bet(differences: list[int], limit: float) -> None:
    """One bet at a time, one difference at a time."""
    for hypothesis, sign in (("at most", 1), ("at least", -1)):
        bets = [0.1 / (1 + sign * limit), 0.5 / (1 + sign * limit)]
        held, expected = [1.0, 1.0], []
        for difference in differences:
            held = [have * (1 + bet * sign * (difference - limit)) for have, bet in zip(held, bets, strict=True)]
            expected.append(sum(held) / 2)
        found = wealth(differences, limit, bets, hypothesis)  # type: ignore[arg-type]
        assert found.tolist() == pytest.approx(expected, abs=1e-9)
        assert (found >= 0).all()


@pytest.mark.parametrize(("hypothesis", "bet"), [("at most", 0.95), ("at least", 1.2)])
def test_a_bet_that_could_lose_more_than_everything_is_refused(hypothesis: Hypothesis, bet: float) -> None:
    """At a limit of 0.1 no more than 1 / 1.1 against `at most`, and 1 / 0.9 against `at least`."""
    with pytest.raises(ValueError, match="more than everything"):
        wealth([0.0], 0.1, [bet], hypothesis)
    with pytest.raises(ValueError, match="not in"):
        wealth([1.5], 0.1, [0.1], hypothesis)


@pytest.mark.parametrize("hypothesis", ["at most", "at least"])
def test_looking_after_every_item_wins_by_chance_in_5_percent_at_most(hypothesis: Hypothesis) -> None:
    """Differences of mean 0.1 exactly, 300 of them, 1000 runs: wealth ever reaches 20 in 5 % of runs at most."""
    rng, won = np.random.default_rng(6), 0
    sign = 1 if hypothesis == "at most" else -1
    bets = np.geomspace(0.02, 0.95, 16) / (1 + sign * 0.1)
    for _ in range(1000):
        differences = rng.choice([-1, 0, 1], 300, p=[0.1, 0.7, 0.2])
        won += wealth(differences, 0.1, bets, hypothesis).max() >= 20
    assert won <= 50
