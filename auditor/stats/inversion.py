"""Range inversion: how much of a range over wrappers is noise, what is left of it, and an interval that covers.

The plug-in range R = max_f m_f - min_f m_f is biased up: at no effect it is the noise floor, not 0. Here the size of
the wrapper effect is the one under which the observed range would be expected, the wrappers keeping their relative
positions, and its interval are the sizes under which the observed range would not be surprising.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from auditor.stats.arrays import TIE, FloatArray, Interval, Rng, floats
from auditor.stats.noise import normal_noise, unit_errors, unit_of, unusable
from auditor.stats.simultaneous import range_bounds

FEW = 10
"""A rate with fewer successes or fewer failures than this is not normal enough for normal noise."""

TIED = 2.5
"""Wrappers within this many standard errors of the best (or worst) may be tied with it."""

HALVINGS = 40


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
    draws: int = 2000,
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
      interval to the set (`_few`). Without it, a rare failure of one wrapper was covered in 86 to 91 %.
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
    floor, tied = float(_ranges(noise).mean()), _tied(means, errors)
    if observed <= TIE:
        interval = range_bounds(y, generator, clusters=clusters, draws=draws, confidence=confidence).interval
    else:
        interval = _inverted(means, tied, noise, floor, confidence)
    return RangeEstimate(
        observed,
        floor,
        _adjusted(means, noise, observed, floor),
        _union(interval, _few(means, np.sqrt((errors**2).sum(axis=0)), units, confidence)),
        observed - _inflation(tied, noise),
        observed - _inflation(means, noise),
        units,
    )


def _adjusted(means: FloatArray, noise: FloatArray, observed: float, floor: float) -> float:
    if observed <= floor:
        return observed - floor
    u = _direction(means)
    return _first(lambda s: float(_ranges(s * u + noise).mean()) >= observed)


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


def _inflation(means: FloatArray, noise: FloatArray) -> float:
    """By how much noise is expected to widen the range of true rates `means`."""
    return float(_ranges(means[:, None] + noise).mean() - np.ptp(means))


def _inverted(means: FloatArray, tied: FloatArray, noise: FloatArray, floor: float, confidence: float) -> Interval:
    """q_p(s) <= R is the same as: at least the share p of the draws lies at R or below. Shares fall as s grows."""
    observed, tail = float(np.ptp(means)), (1 - confidence) / 2

    def lowest(rates: FloatArray, level: float, share: float) -> float:
        u = _direction(rates)
        return _first(lambda s: float((_ranges(s * u + noise) <= level).mean()) <= share)

    low = min(lowest(rates, observed, 1 - tail) for rates in (means, tied) if np.ptp(rates) > TIE)
    return low, lowest(means, max(observed, floor), tail)


def _first(reached: Callable[[float], bool]) -> float:
    """The least s in [0, 1] from which on `reached` holds, by bisection; 1 where it never does."""
    if reached(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _direction(means: FloatArray) -> FloatArray:
    """The wrappers' positions scaled to a range of 1, (F, 1)."""
    scaled: FloatArray = ((means - means.mean()) / np.ptp(means))[:, None]
    return scaled


def _ranges(values: FloatArray) -> FloatArray:
    ranges: FloatArray = values.max(axis=0) - values.min(axis=0)
    return ranges


def _few(means: FloatArray, se: FloatArray, units: int, confidence: float) -> Interval | None:
    """Bounds of the range over the pairs with a wrapper of few events, None where there is none.

    Each rate gets Wilson's interval with the effective sample size p(1-p)/se^2 (Korn and Graubard 1998), `units`
    where it does not vary; a difference gets D - hypot(p - l_p, u_q - q), D + hypot(u_p - p, q - l_q) (Newcombe 1998,
    method 10). `means` and `se` are (F,).
    """
    variance = means * (1 - means)
    size = np.divide(variance, se**2, out=np.full(len(means), float(units)), where=se > TIE)
    few = np.minimum(means, 1 - means) * size < FEW
    if not few.any():
        return None
    low, high = _wilson(means, size, float(ndtri((1 + confidence) / 2)))
    better, worse = np.nonzero((means[:, None] >= means) & (few[:, None] | few) & ~np.eye(len(means), dtype=bool))
    difference = means[better] - means[worse]
    down = np.hypot(means[better] - low[better], high[worse] - means[worse])
    up = np.hypot(high[better] - means[better], means[worse] - low[worse])
    return max(0.0, float((difference - down).max())), min(1.0, float((difference + up).max()))


def _wilson(rates: FloatArray, size: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
    centre = (rates + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * np.sqrt(rates * (1 - rates) / size + (z / (2 * size)) ** 2)
    return np.minimum(rates, centre - half), np.maximum(rates, centre + half)


def _union(one: Interval | None, other: Interval | None) -> Interval | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])
