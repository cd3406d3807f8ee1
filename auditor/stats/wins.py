"""How often each wrapper is the best one of a (model, task) pair (FSI paper, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import TIE, floats, grouped, same_length


@dataclass(frozen=True, slots=True)
class Wins:
    """Wins of wrappers 0..F-1; they sum to `pairs`, the pairs in which at least two wrappers compete."""

    wins: tuple[float, ...]
    pairs: int


def wins(pair: npt.ArrayLike, wrapper: npt.ArrayLike, accuracy: npt.ArrayLike, wrappers: int) -> Wins:
    """Wins from cells (C,): index of the (model, task) pair, index of the wrapper below `wrappers`, accuracy.

    Wrappers that tie at the top share the win equally. A pair with one wrapper is no contest and counts for none.
    """
    pairs, names, rates = np.asarray(pair, np.int64), np.asarray(wrapper, np.int64), floats(accuracy)
    same_length(pair=pairs, wrapper=names, accuracy=rates)
    if not np.isfinite(rates).all():
        raise ValueError("a cell has no accuracy")
    if names.min(initial=0) < 0 or names.max(initial=0) >= max(wrappers, 1):
        raise ValueError(f"a wrapper index is not in 0..{wrappers - 1}")
    ids, position = grouped(pairs)
    top = np.full(len(ids), -np.inf)
    np.maximum.at(top, position, rates)
    contest = np.bincount(position, minlength=len(ids)) > 1
    winner = (rates >= top[position] - TIE) & contest[position]
    tied = np.bincount(position, winner, len(ids))[position]
    shares = np.bincount(names[winner], 1 / tied[winner], wrappers)
    return Wins(tuple(float(share) for share in shares), int(contest.sum()))
