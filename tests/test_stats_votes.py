"""Majority vote and seed disagreement."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.stats.votes import SeedDisagreement, seed_disagreement, vote_scores

# generations of up to 8 groups: (group, prediction code); code 0 is the right one
GENERATIONS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("counts", "correct", "score"),
    [
        ([3, 2], [True, False], 1.0),
        ([2, 3], [True, False], 0.0),
        ([2, 2, 1], [True, False, False], 0.5),
        ([2, 2, 1], [False, False, True], 0.0),
        ([1, 1, 1], [False, True, False], 1 / 3),
        ([1, 1], [True, True], 1.0),
        ([5], [True], 1.0),
        ([0, 1], [True, False], 0.0),
    ],
)
def test_votes_by_hand(counts: list[int], correct: list[bool], score: float) -> None:
    """The most frequent prediction decides; a tie scores the share of the tied that is correct."""
    found = vote_scores([4] * len(counts), counts, correct)
    assert (found.group.tolist(), found.score.tolist()) == ([4], [score])


def test_an_item_without_votes_has_no_score() -> None:
    """No answered seed is None, and absent from the vectorized result."""
    found = vote_scores([0, 1], [0, 2], [True, True])
    assert (found.group.tolist(), found.score.tolist()) == ([1], [1.0])
    assert vote_scores([], [], []).score.tolist() == []


def test_disagreement_by_hand() -> None:
    """Of three groups with two seeds one disagrees; the group with one seed does not count."""
    assert seed_disagreement([0, 1, 1, 2, 3], [5, 3, 2, 2, 1]) == SeedDisagreement(1 / 3, 3)


def test_disagreement_needs_two_seeds() -> None:
    """A run with one seed has no share, and neither has an empty one."""
    assert seed_disagreement([0, 1], [1, 1]) == SeedDisagreement(None, 0, "no group has two seeds")
    assert seed_disagreement([], []) == SeedDisagreement(None, 0, "no group has two seeds")


def test_a_prediction_nobody_made_is_no_disagreement() -> None:
    """A row with count 0 is not a distinct prediction."""
    assert seed_disagreement([0, 0], [2, 0]) == SeedDisagreement(0.0, 1)


def test_columns_that_do_not_fit_are_refused() -> None:
    """Unequal lengths are named."""
    with pytest.raises(ValueError, match="count 1"):
        vote_scores([0, 1], [1], [True, False])


def vote(counts: Counter[int]) -> float:
    """The vote of one group by itself."""
    top = [code for code, count in counts.items() if count == max(counts.values())]
    return sum(code == 0 for code in top) / len(top)


@given(GENERATIONS, st.integers(0, 2**32 - 1))
def test_vectorized_is_the_simple_loop(rows: list[tuple[int, int]], seed: int) -> None:
    """Vote scores and disagreement equal counting each group by itself, in whatever order the rows come."""
    groups = sorted({group for group, _ in rows})
    simple = [Counter(code for other, code in rows if other == group) for group in groups]
    told = [(group, code, count) for group, by in zip(groups, simple, strict=True) for code, count in by.items()]
    group, code, count = np.random.default_rng(seed).permutation(np.array(told)).T
    found = vote_scores(group, count, code == 0)
    assert found.group.tolist() == groups
    assert found.score.tolist() == [vote(by) for by in simple]
    several = [by for by in simple if by.total() >= 2]
    disagreement = seed_disagreement(group, count)
    assert disagreement.groups == len(several)
    if several:
        assert disagreement.share == sum(len(by) > 1 for by in several) / len(several)
