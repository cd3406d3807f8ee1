"""Seeds against each other: the majority vote per item, and how often seeds disagree (FSI paper, section 4).

Both read tallies: one row per (group, distinct prediction) with its count, where unparseable is one more prediction.
For votes a group is an item of one cell; for disagreement it is a (task, model, wrapper, item).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import BoolArray, FloatArray, IntArray, grouped, same_length


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


def vote_scores(group: npt.ArrayLike, count: npt.ArrayLike, correct: npt.ArrayLike) -> VoteScores:
    """The majority vote's score of every group in tally columns (R,).

    Predictions that tie at the top score the share of them that is correct. Groups without votes are absent.
    """
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
