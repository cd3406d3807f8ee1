"""Token spread: how unequal in length the prompts of one item are over the wrappers, (max - min) / mean of their
tokens (FSI paper, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from auditor.stats.arrays import TIE, BoolArray, FloatArray

MATCHED = 0.05


@dataclass(frozen=True, slots=True)
class SpreadSummary:
    """Median spread and share of groups within 5 %."""

    median: float | None
    share_within: float | None
    groups: int
    reason: str | None = None


def within(spreads: FloatArray, limit: float = MATCHED) -> BoolArray:
    """Which spreads are at most `limit`; token counts are integers, so a spread that misses by rounding is equal."""
    return spreads <= limit + TIE


def summarize(spreads: FloatArray) -> SpreadSummary:
    """Median and share within 5 % over groups (G,) (FSI paper: median 4.1 %, 61.2 % within)."""
    if len(spreads) == 0:
        return SpreadSummary(None, None, 0, "no group has token counts under two wrappers")
    return SpreadSummary(float(np.median(spreads)), float(within(spreads).mean()), len(spreads))
