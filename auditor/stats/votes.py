"""Seeds against each other: the majority vote per item, and how often seeds disagree (FSI paper, section 4).

Both read tallies: one row per (group, distinct prediction) with its count, where unparseable is one more prediction.
For votes a group is an item of one cell; for disagreement it is a (task, model, wrapper, item).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import BoolArray, FloatArray, IntArray, grouped, same_length


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Rows (R,): `count` seeds of `group` gave one and the same prediction, which is `correct` or not."""

    group: IntArray
    count: IntArray
    correct: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class VoteScores:
    """The majority vote's score in [0, 1] of each group that has votes, (G,), groups in ascending order."""

    group: IntArray
    score: FloatArray


@dataclass(frozen=True, slots=True)
class SeedDisagreement:
    """Share of groups with more than one distinct prediction, among the `groups` with at least two seeds."""

    share: float | None
    groups: int
    reason: str | None = None


def tally(group: npt.ArrayLike, prediction: npt.ArrayLike, correct: npt.ArrayLike) -> Tally:
    """Counts of generations (M,) by group and prediction code; `correct` follows from those two."""
    group, prediction = np.asarray(group, np.int64), np.asarray(prediction, np.int64)
    right = np.asarray(correct, np.bool_)
    same_length(group=group, prediction=prediction, correct=right)
    order = np.lexsort((prediction, group))
    group, prediction, right = group[order], prediction[order], right[order]
    new = np.ones(len(group), np.bool_)
    new[1:] = (group[1:] != group[:-1]) | (prediction[1:] != prediction[:-1])
    first = np.flatnonzero(new)
    return Tally(group[first], np.diff(first, append=len(group)), right[first])


def vote_score(counts: Sequence[int], correct: Sequence[bool]) -> float | None:
    """Score of one item's majority vote over `counts` per distinct prediction; None without votes.

    Predictions that tie at the top score their expected correctness: the share of them that is correct.
    """
    if len(counts) != len(correct):
        raise ValueError(f"columns differ in length: counts {len(counts)}, correct {len(correct)}")
    top = max(counts, default=0)
    if top <= 0:
        return None
    modal = [right for count, right in zip(counts, correct, strict=True) if count == top]
    return sum(modal) / len(modal)


def vote_scores(group: npt.ArrayLike, count: npt.ArrayLike, correct: npt.ArrayLike) -> VoteScores:
    """`vote_score` of every group in tally columns (R,); groups without votes are absent from the result."""
    group, count, right = _voted(group, count, correct)
    ids, position = grouped(group)
    top = np.zeros(len(ids), np.int64)
    np.maximum.at(top, position, count)
    modal = count == top[position]
    tied = np.bincount(position, modal, len(ids))
    return VoteScores(ids, np.bincount(position, modal & right, len(ids)) / tied)


def seed_disagreement(group: npt.ArrayLike, count: npt.ArrayLike) -> SeedDisagreement:
    """How often seeds disagree, from tally columns (R,) (FSI paper, section 4: 42.3 % of groups)."""
    group, count, _ = _voted(group, count, np.zeros(np.shape(count), np.bool_))
    ids, position = grouped(group)
    seeds = np.bincount(position, count, len(ids))
    distinct = np.bincount(position, minlength=len(ids))
    groups = int((seeds >= 2).sum())
    if groups == 0:
        return SeedDisagreement(None, 0, "no group has two seeds")
    return SeedDisagreement(int((distinct > 1).sum()) / groups, groups)


def _voted(group: npt.ArrayLike, count: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[IntArray, IntArray, BoolArray]:
    """The rows that somebody voted for."""
    ids, votes = np.asarray(group, np.int64), np.asarray(count, np.int64)
    right = np.asarray(correct, np.bool_)
    same_length(group=ids, count=votes, correct=right)
    voted = votes > 0
    return ids[voted], votes[voted], right[voted]
