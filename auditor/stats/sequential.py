"""Evidence that may be looked at after every item: wealth from bets against a limit of a difference.

Source: Waudby-Smith and Ramdas (2024), betting for bounded means; Ville's inequality for stopping at any time.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import TIE, FloatArray, floats

Hypothesis = Literal["at most", "at least"]


def wealth(differences: npt.ArrayLike, limit: float, bets: npt.ArrayLike, hypothesis: Hypothesis) -> FloatArray:
    """What 1 has become after each of the `differences` (N,), each in [-1, 1], (N,).

    Bets are against the hypothesis that their mean is `at most`, or `at least`, the `limit`; the wealth is the mean
    over `bets` (B,), fractions of what is held: mean_b prod_i (1 + b s (D_i - limit)), s = 1 against `at most` and -1
    against `at least`. Under the hypothesis it ever reaches 1 / alpha with probability alpha at most. ValueError for a
    bet that could lose more than everything.
    """
    sign = 1.0 if hypothesis == "at most" else -1.0
    d, b = floats(differences), floats(bets)
    if (np.abs(d) > 1 + TIE).any():
        raise ValueError("a difference is not in [-1, 1]")
    if (b < 0).any() or (b * (1 + sign * limit) > 1 + TIE).any():
        raise ValueError(f"a bet could lose more than everything at a limit of {limit:g}")
    grown: FloatArray = np.cumprod(1 + b[:, None] * sign * (d - limit), axis=1).mean(axis=0)
    return grown
