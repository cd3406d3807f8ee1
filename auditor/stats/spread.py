"""Token spread: how unequal in length the prompts of one item are over the wrappers (FSI paper, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import TIE, BoolArray, FloatArray, IntArray, floats, grouped, same_length

MATCHED = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class TokenSpreads:
    """(max - min) / mean prompt tokens of each group, (G,), groups in ascending order."""

    group: IntArray
    spread: FloatArray

    @property
    def matched(self) -> BoolArray:
        """Which groups belong to the matched subset: spread <= 5 %, (G,)."""
        return within(self.spread)


@dataclass(frozen=True, slots=True)
class SpreadSummary:
    """Median spread and share of groups within 5 %."""

    median: float | None
    share_within: float | None
    groups: int
    reason: str | None = None


def token_spreads(group: npt.ArrayLike, tokens: npt.ArrayLike) -> TokenSpreads:
    """Spreads from generations (M,): index of the (task, model, item, seed) group, prompt tokens of one wrapper.

    Groups with one wrapper, or whose tokens are all 0 (an endpoint that does not count), have no spread and are absent.
    """
    rows, values = np.asarray(group, np.int64), floats(tokens)
    same_length(group=rows, tokens=values)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("a token count is negative or missing")
    ids, position = grouped(rows)
    low, high = np.full(len(ids), np.inf), np.zeros(len(ids))
    np.minimum.at(low, position, values)
    np.maximum.at(high, position, values)
    sizes = np.bincount(position, minlength=len(ids))
    known = (sizes > 1) & (high > 0)
    mean = np.bincount(position, values, len(ids))[known] / sizes[known]
    return TokenSpreads(ids[known], (high[known] - low[known]) / mean)


def within(spreads: FloatArray, limit: float = MATCHED) -> BoolArray:
    """Which spreads are at most `limit`; token counts are integers, so a spread that misses by rounding is equal."""
    return spreads <= limit + TIE


def summarize(spreads: FloatArray) -> SpreadSummary:
    """Median and share within 5 % over groups (G,) (FSI paper: median 4.1 %, 61.2 % within)."""
    if len(spreads) == 0:
        return SpreadSummary(None, None, 0, "no group has token counts under two wrappers")
    return SpreadSummary(float(np.median(spreads)), float(within(spreads).mean()), len(spreads))
