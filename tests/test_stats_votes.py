"""Majority vote and seed disagreement."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.stats.votes import SeedDisagreement, seed_disagreement, tally, vote_score, vote_scores

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
    assert vote_score(counts, correct) == score
    found = vote_scores([4] * len(counts), counts, correct)
    assert (found.group.tolist(), found.score.tolist()) == ([4], [score])


def test_an_item_without_votes_has_no_score() -> None:
    """No answered seed is None, and absent from the vectorized result."""
    assert vote_score([], []) is None
    assert vote_score([0, 0], [True, False]) is None
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
    with pytest.raises(ValueError, match="correct 1"):
        vote_score([1, 2], [True])


@given(GENERATIONS)
def test_vectorized_is_the_simple_loop(rows: list[tuple[int, int]]) -> None:
    """Tally, vote scores and disagreement equal counting each group by itself."""
    groups = sorted({group for group, _ in rows})
    simple = [Counter(code for other, code in rows if other == group) for group in groups]
    counted = tally([g for g, _ in rows], [code for _, code in rows], [code == 0 for _, code in rows])
    found = vote_scores(counted.group, counted.count, counted.correct)
    assert found.group.tolist() == groups
    expected = [vote_score(list(c.values()), [code == 0 for code in c]) for c in simple]
    assert found.score.tolist() == expected
    several = [c for c in simple if c.total() >= 2]
    disagreement = seed_disagreement(counted.group, counted.count)
    assert disagreement.groups == len(several)
    if several:
        assert disagreement.share == sum(len(c) > 1 for c in several) / len(several)


@given(GENERATIONS, st.integers(0, 2**32 - 1))
def test_order_does_not_matter(rows: list[tuple[int, int]], seed: int) -> None:
    """Shuffled tallies give the same scores."""
    group, code = np.array(rows).T
    counted = tally(group, code, code == 0)
    order = np.random.default_rng(seed).permutation(len(counted.group))
    plain = vote_scores(counted.group, counted.count, counted.correct)
    shuffled = vote_scores(counted.group[order], counted.count[order], counted.correct[order])
    assert plain.group.tolist() == shuffled.group.tolist()
    assert plain.score.tolist() == shuffled.score.tolist()
    assert ((plain.score >= 0) & (plain.score <= 1)).all()
