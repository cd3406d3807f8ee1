"""Range inversion: how much of a range over wrappers is noise, what is left of it, and an interval that covers.

The plug-in range R = max_f m_f - min_f m_f is biased up: at no effect it is the noise floor, not 0. Here the size of
the wrapper effect is the one under which the observed range would be expected, the wrappers keeping their relative
positions, and its interval are the sizes under which the observed range would not be surprising.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import TIE, FloatArray, Interval, Rng, floats
from auditor.stats.noise import normal_noise, unit_errors, unit_of, unusable
from auditor.stats.rare import rare_bounds, union
from auditor.stats.simultaneous import range_bounds

TIED = 2.5
"""Wrappers within this many standard errors of the best (or worst) may be tied with it."""

HALVINGS = 24
"""Ends of intervals are right to 6e-8."""
CLOSE = 1e-9
"""The adjusted range has been found when it moves by no more."""


@dataclass(frozen=True, slots=True)
class RangeEstimate:
    """A range over wrappers, of accuracies (FSI) or parseabilities (PSI), and what is known of the true one.

    `observed` is the plug-in range, `floor` what noise alone would be expected to show, `adjusted` the estimate:
    signed, for averages over tasks; show max(0, adjusted). Its bias is within a third of the floor, either way, and
    does not average out over tasks: `least` and `most` are estimates of the same that err downward and upward on
    average. `units` are items, or clusters.
    """

    observed: float | None
    floor: float | None
    adjusted: float | None
    interval: Interval | None
    least: float | None
    most: float | None
    units: int
    reason: str | None = None


def range_inversion(
    items: npt.ArrayLike,
    rng: Rng,
    *,
    clusters: npt.ArrayLike | None = None,
    draws: int = 10_000,
    confidence: float = 0.95,
) -> RangeEstimate:
    """Noise floor, adjusted range and interval from item means over seeds, `items` (F, N) in [0, 1], complete: every
    item under every wrapper. `clusters` (N,) are ids of items that belong together. ValueError where they do not fit.

    With a = m - mean(m), u = a / R, G the draws of `normal_noise` and range_b(s) = range(s u + G_b): the floor is
    E0 = mean_b range_b(0); the adjusted range is R - E0 up to the floor and the s with mean_b range_b(s) = R above
    it; the interval holds the s with quantiles q.025(s) <= R <= q.975(s) of range_b(s), from 0 if R <= q.975(0).
    The draws are half of `draws` and their negatives, which makes the expected range at least s, hence adjusted <= R.
    `most` subtracts from R the inflation expected at the observed means (bootstrap bias correction: too little, since
    those are already inflated), `least` that at means where all wrappers that may be tied are (moment selection,
    Andrews and Soares 2010: too much where they are not).

    The interval differs from that in four cases, each time outward:

    - The upper end is sought at max(R, E0): a range below the floor is luck, and would else prove that no effect
      exists, down to [0, 0].
    - Where wrappers may be tied with the best or worst, the lower end is also sought with these tied, u from those
      means: three tied at the top and two at the bottom were else covered in 90 %.
    - A wrapper with fewer than ten (effective) successes or failures is not normal. Its pairs add their square-and-add
      interval to the set (`rare`). Without it, a rare failure of one wrapper was covered in 86 to 91 %.
    - R = 0 has no direction u and takes the max-t bounds; where no pair of wrappers varies there is no noise, and
      those bounds are the rule of three.
    """
    y = floats(items, ndim=2)
    unit = unit_of(y, clusters)
    units = int(unit.max(initial=-1)) + 1
    reason = unusable(y, units)
    if reason is not None:
        return RangeEstimate(None, None, None, None, None, None, units, reason)
    errors, means = unit_errors(y, unit), y.mean(axis=1)
    observed = float(np.ptp(means))
    if np.ptp(errors, axis=1).max() <= TIE:
        bounds = range_bounds(y, rng, clusters=clusters, draws=2, confidence=confidence)
        return RangeEstimate(observed, 0.0, observed, bounds.interval, observed, observed, units)
    generator = np.random.default_rng(rng)
    half = normal_noise(errors, generator, (draws + 1) // 2).T
    # one row per wrapper: a range is then a maximum over a few long rows
    noise = np.ascontiguousarray(np.hstack([half, -half]))
    tied = _tied(means, errors)
    floor, inflated, tied_inflated = (_mean_range(rates, noise) for rates in (np.zeros_like(means), means, tied))
    if observed <= TIE:
        interval = range_bounds(y, generator, clusters=clusters, draws=draws, confidence=confidence).interval
    else:
        interval = _inverted(means, tied, noise, floor, confidence)
    return RangeEstimate(
        observed,
        floor,
        _adjusted(means, noise, floor, inflated),
        union(interval, rare_bounds(means, errors, confidence)),
        observed - (tied_inflated - float(np.ptp(tied))),
        observed - (inflated - observed),
        units,
    )


def _adjusted(means: FloatArray, noise: FloatArray, floor: float, inflated: float) -> float:
    """By false position (Illinois) between s = 0 and s = R, where the mean range is `floor` and `inflated`.

    The squares of s and of the mean range are interpolated: noise and effect add up about as variances do.
    """
    observed = float(np.ptp(means))
    if observed <= floor:
        return observed - floor
    if inflated <= observed:
        return observed
    u, s, side = _direction(means), 0.0, 0
    low, below, high, above = 0.0, floor**2 - observed**2, observed**2, inflated**2 - observed**2
    for _ in range(HALVINGS):
        before, s = s, math.sqrt((low * above - high * below) / (above - below))
        if abs(s - before) <= CLOSE:
            break
        gap = _mean_range(s * u, noise) ** 2 - observed**2
        if gap < 0:
            low, below, above, side = s * s, gap, above / 2 if side < 0 else above, -1
        else:
            high, above, below, side = s * s, gap, below / 2 if side > 0 else below, 1
    return s


def _tied(means: FloatArray, errors: FloatArray) -> FloatArray:
    """`means` with the wrappers that may be tied with the best or worst put there: where noise inflates most."""
    best, worst = int(means.argmax()), int(means.argmin())
    below, above = means[best] - means, means - means[worst]
    near_best, near_worst = (
        gap <= TIED * np.sqrt(((errors - errors[:, [end]]) ** 2).sum(axis=0))
        for gap, end in ((below, best), (above, worst))
    )
    if near_best[worst]:
        return np.zeros_like(means)
    upper = near_best & (~near_worst | (below <= above))
    return np.where(upper, means[best], np.where(near_worst, means[worst], means))


def _inverted(means: FloatArray, tied: FloatArray, noise: FloatArray, floor: float, confidence: float) -> Interval:
    """q_p(s) <= R is the same as: at least the share p of the draws lies at R or below. Shares fall as s grows."""
    observed, tail = float(np.ptp(means)), (1 - confidence) / 2
    last = _last(means, noise, observed)
    low = _leaving(last, 1 - tail)
    if np.ptp(tied) > TIE:
        low = min(low, _leaving(_last(tied, noise, observed), 1 - tail))
    return low, _leaving(last if observed >= floor else _last(means, noise, floor), tail)


def _last(rates: FloatArray, noise: FloatArray, level: float) -> FloatArray:
    """For each draw b the s up to which range(s u + G_b) <= `level`, (B,): where the first pair of wrappers passes it.

    The s from which it holds are minus those of the draw -G_b, as range(-s u - G_b) is the same range.
    """
    u, last = _direction(rates), np.full(noise.shape[1], np.inf)
    for better, worse in combinations(np.argsort(-u).tolist(), 2):
        error, effect = noise[better] - noise[worse], float(u[better] - u[worse])
        if effect > TIE:
            np.minimum(last, (level - error) / effect, out=last)
        else:
            last[np.abs(error) > level] = -np.inf
    return last


def _leaving(last: FloatArray, share: float) -> float:
    """The least s in [0, 1] from which on at most this share of the draws is at the level or below, by bisection."""
    first = -np.roll(last, len(last) // 2)

    def left(s: float) -> bool:
        return int(np.count_nonzero((first <= s) & (s <= last))) <= share * len(last)

    if left(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if left(middle) else (middle, high)
    return high


def _direction(means: FloatArray) -> FloatArray:
    """The wrappers' positions scaled to a range of 1, (F,)."""
    scaled: FloatArray = (means - means.mean()) / np.ptp(means)
    return scaled


def _mean_range(rates: FloatArray, noise: FloatArray) -> float:
    values = rates[:, None] + noise
    return float((values.max(axis=0) - values.min(axis=0)).mean())
