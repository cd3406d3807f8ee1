"""What range over the wrappers a design could have seen, and how many items a lower noise floor takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import TIE, FloatArray, Rng, floats, same_length
from auditor.stats.contrasts import critical, half_widths, pair_errors, rule_of_three
from auditor.stats.effects import random_orders

WHOLE = 1e-9
"""A number of items this close above a whole one, relatively, is that one."""
TINY = 1e-200
"""Nothing beside a difference of rates, and no zero to divide by."""


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest true range that would have been found with the power asked for; `units` are items or clusters.

    `spaced`: the wrappers' true means lie at equal distances; `one_bad`: all are tied but one, which is lower. None
    with a reason where not even a range of 1 would do.
    """

    spaced: float | None
    one_bad: float | None
    units: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ItemsNeeded:
    """How many items bring the noise down to a target, others being equal."""

    items: int | None
    reason: str | None = None


def detectable(
    errors: npt.ArrayLike, noise: npt.ArrayLike, rng: Rng, *, power: float = 0.8, level: float = 0.05
) -> Detectable:
    """The smallest true ranges that the max-t test finds, its lower bound of the range being above 0.

    `errors` (units, F) and `noise` (B, F) are those of `noise.unit_errors` and `noise.normal_noise`; each draw gives
    the places of the pattern to the wrappers at random. A pair found the wrong way round does not count. The noise is
    the one measured; where rates come near 0 or 1 it is less. The permutation test of the range finds about the same.
    """
    e, draws = floats(errors, ndim=2), floats(noise, ndim=2)
    same_length(errors=e.T, noise=draws.T)
    wrappers, units = e.shape[1], len(e)
    if wrappers < 2 or units < 2:
        few = "wrappers" if wrappers < 2 else "items or clusters"
        return Detectable(None, None, units, f"fewer than two {few}")
    half = _half_widths(e, draws, 1 - level)
    places = np.ascontiguousarray(random_orders(wrappers, (len(draws),), np.random.default_rng(rng)).T)
    patterns = (np.linspace(0, 1, wrappers), np.minimum(np.arange(wrappers), 1.0))
    found = [_smallest(pattern.take(places), draws.T, half, power) for pattern in patterns]
    spaced, one_bad = (value if value <= 1 else None for value in found)
    reason = "too few items or clusters to find a range of 1" if None in (spaced, one_bad) else None
    return Detectable(spaced, one_bad, units, reason)


def items_needed(measured: float, items: int, target: float) -> ItemsNeeded:
    """How many items bring a noise floor, or a detectable range, of `measured` at `items` items down to `target`.

    Both fall as 1 / sqrt(items). For clustered items the answer is in items of clusters as large as these.
    """
    if items < 1 or measured < 0 or target <= 0:
        raise ValueError(f"a noise of {measured} at {items} items cannot be brought to {target}")
    if measured <= TIE:
        return ItemsNeeded(None, "no noise was measured")
    needed = items * (measured / target) ** 2
    return ItemsNeeded(math.ceil(needed * (1 - WHOLE)))


def _half_widths(errors: FloatArray, noise: FloatArray, confidence: float) -> FloatArray:
    """How far apart each pair of wrappers must be measured, (pairs,)."""
    se, rare = pair_errors(errors), rule_of_three(len(errors), confidence)
    # a constant pair's half-width grows with its difference: D > (1 + D) rare
    constant = rare / (1 - rare) if rare < 1 else math.inf
    return half_widths(critical(noise, se, len(errors), confidence), se, constant)


def _smallest(pattern: FloatArray, noise: FloatArray, half: FloatArray, power: float) -> float:
    """The range r at which the share `power` of the draws r * pattern + noise, (F, B), has a pair beyond its `half`."""
    needed = np.full(noise.shape[1], np.inf)
    for (first, second), width in zip(combinations(range(len(noise)), 2), half, strict=True):
        error = noise[first] - noise[second]
        effect = pattern[first] - pattern[second]
        # a pair without an effect is beyond at any r, by noise alone and either way, or at none
        effect += np.copysign(TINY, error)
        np.minimum(needed, (np.copysign(width, effect) - error) / effect, out=needed)
    return float(np.quantile(needed.clip(min=0), power, method="higher"))
