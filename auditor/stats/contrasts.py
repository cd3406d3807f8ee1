"""Max-t bounds of many contrasts of means at once, as `simultaneous.range_bounds` has them for pairs of wrappers.

With k the quantile of the largest |noise| / se over all contrasts, all bounds D -+ k se hold together, whatever ties.
The contrasts may come in portions: `enlarge` keeps the largest so far, one number a draw.
"""

from __future__ import annotations

import math

import numpy as np

from auditor.stats.arrays import TIE, FloatArray


def enlarge(largest: FloatArray, noise: FloatArray, se: FloatArray) -> None:
    """Raise `largest` (B,), in place, to the largest |t| of the contrasts, noise (B, K) and se (K,), that vary."""
    varies = se > TIE
    if varies.any():
        np.maximum(largest, (np.abs(noise[:, varies]) / se[varies]).max(axis=1), out=largest)


def half_widths(k: float, se: FloatArray, constant: FloatArray | float) -> FloatArray:
    """k se (K,), and `constant` for contrasts that are the same in all units: their se is ignorance, not certainty."""
    return np.where(se <= TIE, constant, k * se)


def rule_of_three(units: int, confidence: float) -> float:
    """The largest rate of what none of `units` units showed: 3 / units at 95 %."""
    return 3 * math.log1p(-confidence) / math.log(0.05) / units
