"""Which wrapper is best, and whether two models change places between wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import TIE, BoolArray, FloatArray, IntArray, Rng, floats, same_length
from auditor.stats.contrasts import critical, enlarge, half_widths, pair_errors, quantile, rule_of_three
from auditor.stats.noise import normal_noise, unit_errors, unit_of, unusable
from auditor.stats.rare import rare_differences


@dataclass(frozen=True, slots=True)
class Best:
    """`chance` of each wrapper, (F,), of the highest mean when the noise is drawn anew; ties share, the sum is 1.

    `contenders` index the wrappers that cannot be told from the best: all that are truly best are among them with
    the confidence asked for.
    """

    chance: tuple[float, ...] | None
    contenders: tuple[int, ...] | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Two models over the wrappers: under which ones the first is ahead or behind, as measured and for sure.

    All are indices of wrappers; a tie is in neither. What is sure holds for all pairs and wrappers at once.
    """

    first: int
    second: int
    ahead: tuple[int, ...]
    behind: tuple[int, ...]
    surely_ahead: tuple[int, ...]
    surely_behind: tuple[int, ...]

    @property
    def apparent(self) -> bool:
        """Whether each model is measured ahead under some wrapper."""
        return bool(self.ahead and self.behind)

    @property
    def certified(self) -> bool:
        """Whether each model is surely ahead under some wrapper: a reversal that is no noise."""
        return bool(self.surely_ahead and self.surely_behind)


@dataclass(frozen=True, slots=True)
class Reversals:
    """One `Order` per pair of models, and the max-t quantile, which is 0 when no contrast varies."""

    orders: tuple[Order, ...] | None
    critical: float | None
    reason: str | None = None


def best(means: npt.ArrayLike, errors: npt.ArrayLike, noise: npt.ArrayLike, *, confidence: float = 0.95) -> Best:
    """P(best), and the wrappers that cannot be told from the best, from means (F,) over shared items.

    `errors` (units, F) and `noise` (B, F) are those of `noise.unit_errors` and `noise.normal_noise`. A wrapper is out
    only where another one has a max-t lower bound above it. The bounds are over all pairs, so no tie costs confidence.
    P(best) is a bootstrap probability, no posterior: truly tied wrappers get equal chances only on average.
    """
    m, e, draws = floats(means), floats(errors, ndim=2), floats(noise, ndim=2)
    same_length(means=m, errors=e.T, noise=draws.T)
    reason = unusable(m[:, None], len(e))
    if reason is not None:
        return Best(None, None, reason)
    return Best(_chances(m[:, None] + draws.T), _contenders(m, e, draws, confidence))


def reversals(
    tasks: Sequence[npt.ArrayLike],
    rng: Rng,
    *,
    clusters: Sequence[npt.ArrayLike] | None = None,
    draws: int = 10_000,
    confidence: float = 0.95,
) -> Reversals:
    """Whether models change places between wrappers in the mean over tasks of their means over items.

    `tasks` are item means (M, F, N_t) of M models under F wrappers, complete, one array a task, `clusters` their ids
    (N_t,). Tasks are fixed, items sampled; all models and wrappers share an item's (or cluster's) multiplier. The
    bounds are simultaneous over all pairs of models and all wrappers. A contrast that is the same in all items of each
    task gets the rule of three, as in `simultaneous.range_bounds`, as if all that is unseen were in the smallest task.
    """
    ys = [floats(task, ndim=3) for task in tasks]
    if len({y.shape[:2] for y in ys}) > 1:
        raise ValueError(f"tasks differ in models or wrappers: {', '.join(str(y.shape) for y in ys)}")
    rows = [y.reshape(y.shape[0] * y.shape[1], y.shape[2]) for y in ys]
    ids = [None] * len(ys) if clusters is None else clusters
    units = [unit_of(y, cluster) for y, cluster in zip(rows, ids, strict=True)]
    reason = _incomparable(ys, units)
    if reason is not None:
        return Reversals(None, None, reason)
    shape = ys[0].shape[:2]
    errors = np.vstack([unit_errors(y, unit) for y, unit in zip(rows, units, strict=True)]) / len(ys)
    noise = normal_noise(errors, rng, draws).reshape(-1, *shape)
    means = np.stack([y.mean(axis=2) for y in ys])
    rare = rule_of_three(min(int(unit.max()) + 1 for unit in units), confidence) / len(ys)
    return _reversals(means, errors.reshape(-1, *shape), noise, rare, confidence)


def _reversals(means: FloatArray, errors: FloatArray, noise: FloatArray, rare: float, confidence: float) -> Reversals:
    """From means (T, M, F), errors (units, M, F) and noise (B, M, F), one pair of models at a time."""
    pairs = list(combinations(range(means.shape[1]), 2))
    standard = [np.sqrt(((errors[:, a] - errors[:, b]) ** 2).sum(axis=0)) for a, b in pairs]
    largest = np.zeros(len(noise))
    for (a, b), se in zip(pairs, standard, strict=True):
        enlarge(largest, noise[:, a] - noise[:, b], se)
    k = quantile(largest, len(errors) - len(means), confidence)
    orders = []
    for (a, b), se in zip(pairs, standard, strict=True):
        difference = means[:, a] - means[:, b]
        half = half_widths(k, se, (1 + np.abs(difference).max(axis=0)) * rare)
        orders.append(_order(a, b, difference.mean(axis=0), half))
    return Reversals(tuple(orders), k)


def _order(first: int, second: int, difference: FloatArray, half: FloatArray) -> Order:
    return Order(
        first,
        second,
        _indices(difference > TIE),
        _indices(difference < -TIE),
        _indices(difference > half),
        _indices(difference < -half),
    )


def _incomparable(ys: Sequence[FloatArray], units: Sequence[IntArray]) -> str | None:
    if not ys:
        return "no task was measured"
    if len(ys[0]) < 2:
        return "fewer than two models"
    if ys[0].shape[1] < 2:
        return "fewer than two wrappers"
    if not all(np.isfinite(y).all() for y in ys):
        return "an item was not measured by every model under every wrapper"
    return "a task has fewer than two items or clusters" if any(unit.max(initial=0) < 1 for unit in units) else None


def _chances(values: FloatArray) -> tuple[float, ...]:
    """From means (F, B), one row a wrapper."""
    top = values >= values.max(axis=0) - TIE
    shares = (top / top.sum(axis=0)).mean(axis=1)
    return tuple(float(share) for share in shares)


def _contenders(means: FloatArray, errors: FloatArray, noise: FloatArray, confidence: float) -> tuple[int, ...]:
    first, second = np.triu_indices(len(means), 1)
    difference, se = means[first] - means[second], pair_errors(errors)
    constant = (1 + np.abs(difference)) * rule_of_three(len(errors), confidence)
    half = half_widths(critical(noise, se, len(errors), confidence), se, constant)
    # where one of the two has few events, its own bound must agree
    low, high = (ends[first, second] for ends in rare_differences(means, errors, confidence))
    ahead, behind = (difference > half) & ~(low <= 0), (difference < -half) & ~(high >= 0)
    beaten = {*second[ahead].tolist(), *first[behind].tolist()}
    return tuple(wrapper for wrapper in range(len(means)) if wrapper not in beaten)


def _indices(mask: BoolArray) -> tuple[int, ...]:
    return tuple(int(index) for index in np.flatnonzero(mask))
