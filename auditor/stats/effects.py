"""Does the wrapper change anything at all? Tests of one (model, task), and Holm's correction over several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from auditor.stats.arrays import TIE, FloatArray, IntArray, Rng, floats
from auditor.stats.noise import SERIAL, unit_of, unit_sums

ENUMERABLE = 20_000
TABLE = 5040
"""The orders of seven wrappers: up to here a gather from the table of all orders is several times faster."""
NEAR = 1e-9
"""Ranges of counts over items and seeds that differ by less are equal: summing many items rounds."""
SEEDS = 64
"""Item means with a denominator up to here are turned into counts."""
EXACT = 53
"""Bits of a whole number in a float64."""
BATCH = 20
"""Matrix products made at once: few enough to stay in a cache."""


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """The range over wrappers and its `floor`, the mean range over relabellings: what is left without an effect.

    `p` is the share of relabellings whose range is at least as large, over all of them (`exact`) or over
    `relabellings` random ones and the observed one. Ranges of few items tie, which makes it reject too seldom: `mid_p`
    counts ties half. It rejects about as often as it says, without a guarantee.
    """

    range: float | None
    floor: float | None
    p: float | None
    mid_p: float | None
    relabellings: int
    exact: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CochranQ:
    """Cochran's Q with its chi-square p; `varying` counts the items on which the wrappers differ, which carry it."""

    q: float | None
    df: int
    p: float | None
    varying: int
    reason: str | None = None


def permutation_test(
    scores: npt.ArrayLike, rng: Rng, *, clusters: npt.ArrayLike | None = None, relabellings: int = 10_000
) -> PermutationTest:
    """Test of no wrapper effect from scores (F, N, S), or item means (F, N): wrapper labels are permuted within item.

    An item's seeds move together, as their mean; a seed without a score is NaN and leaves that mean. Items of one of
    the `clusters` (N,) move together too. The orders are enumerated where there are at most 20,000 that differ. Random
    relabellings are products of two sets of random orders, about 100 each for 10,000: any two of them are independent,
    so that p and floor have the Monte Carlo error of as many drawn one by one.
    Source: Fisher's randomization test, blocks as units; p as Phipson and Smyth (2010) for random relabellings.
    """
    y = _item_means(np.asarray(scores, np.float64))
    reason = _untestable(y)
    if reason is not None:
        return PermutationTest(None, None, None, None, 0, False, reason)
    units = _unit_sums(y, clusters)
    # a unit on which the wrappers agree adds the same to all of them under every order
    units = units[np.ptp(units, axis=1) > TIE]
    sums = _all_sums(units)
    exact = sums is not None
    if sums is None:
        sums = _random_sums(units, np.random.default_rng(rng), relabellings)
    ranges = np.ptp(sums, axis=0) / y.shape[1]
    observed = float(np.ptp(y.mean(axis=1)))
    extreme, own = int((ranges >= observed - NEAR).sum()), int(not exact)
    beyond = int((ranges > observed + NEAR).sum())
    count = len(ranges) + own
    p, mid_p = (extreme + own) / count, (beyond + extreme + own) / (2 * count)
    # where nothing varies there is one range, which is no reason to halve it
    return PermutationTest(observed, float(ranges.mean()), p, mid_p if len(units) else p, len(ranges), exact)


def cochran_q(successes: npt.ArrayLike) -> CochranQ:
    """Cochran's Q (1950) of 0/1 results (F, N), one seed: equal success rates of F wrappers on the same items.

    The chi-square holds from about 24 results on varying items (F times `varying`); below, the permutation test does.
    ValueError for a value that is not 0 or 1.
    """
    x = floats(successes, ndim=2)
    reason = _untestable(x)
    if reason is not None:
        return CochranQ(None, max(len(x) - 1, 0), None, 0, reason)
    if not ((x == 0) | (x == 1)).all():
        raise ValueError("Cochran's Q needs results that are 0 or 1: one seed, no means")
    wrappers, per_item, per_wrapper = len(x), x.sum(axis=0), x.sum(axis=1)
    within = float((per_item * (wrappers - per_item)).sum())
    varying = int(((per_item > 0) & (per_item < wrappers)).sum())
    if varying == 0:
        return CochranQ(None, wrappers - 1, None, 0, "no item varies over the wrappers")
    between = wrappers * float((per_wrapper**2).sum()) - float(per_wrapper.sum()) ** 2
    q = (wrappers - 1) * between / within
    return CochranQ(q, wrappers - 1, float(chdtrc(wrappers - 1, q)), varying)


def holm(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's step-down adjusted p-values (1979), in the order given; None stays None and counts for no test."""
    tested = [(p, place) for place, p in enumerate(ps) if p is not None]
    if not all(0 <= p <= 1 for p, _ in tested):
        raise ValueError("a p-value is not in [0, 1]")
    adjusted: list[float | None] = [None] * len(ps)
    largest = 0.0
    for rank, (p, place) in enumerate(sorted(tested)):
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        adjusted[place] = largest
    return tuple(adjusted)


def _item_means(scores: FloatArray) -> FloatArray:
    if scores.ndim != 3:
        return floats(scores, ndim=2)
    known = np.isfinite(scores)
    seeds = known.sum(axis=2)
    total = np.where(known, scores, 0.0).sum(axis=2)
    means: FloatArray = np.divide(total, seeds, out=np.full(seeds.shape, np.nan), where=seeds > 0)
    return means


def _untestable(y: FloatArray) -> str | None:
    if len(y) < 2:
        return "fewer than two wrappers"
    if y.shape[1] == 0:
        return "no item was measured"
    return None if np.isfinite(y).all() else "an item was not measured under every wrapper"


def _unit_sums(y: FloatArray, clusters: npt.ArrayLike | None) -> FloatArray:
    """Sums (units, F) over the items of each unit."""
    return y.T if clusters is None else unit_sums(y, unit_of(y, clusters)).T


def _all_sums(units: FloatArray) -> FloatArray | None:
    """The wrappers' sums (F, B) under every combination of the units' distinct orders; None where they are too many."""
    if math.prod(_distinct(row) for row in units[: ENUMERABLE.bit_length()]) > ENUMERABLE:
        return None
    sums = np.zeros((1, units.shape[1]))
    for row in units:
        orders = np.array(_orders(sorted(row.tolist())))
        sums = (sums[:, None] + orders).reshape(-1, units.shape[1])
    return sums.T


def _distinct(row: FloatArray) -> int:
    """How many distinct orders a unit's values have; all are equally likely, however many of them are equal."""
    equal = math.prod(math.factorial(count) for count in Counter(row.tolist()).values())
    return math.factorial(len(row)) // equal


def _orders(values: list[float]) -> list[tuple[float, ...]]:
    if not values:
        return [()]
    firsts = [place for place, value in enumerate(values) if value not in values[:place]]
    return [(values[i], *rest) for i in firsts for rest in _orders(values[:i] + values[i + 1 :])]


def _random_sums(units: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:
    """The wrappers' sums (F, count), but for a constant, each unit's values in a random order of their own.

    Draw (i, j) puts a unit's values into its order i, then j: given the orders of one draw, those of any other are
    uniform. All draws of a unit are one matrix product, of its values in orders i and weights in orders j, and the
    weights are powers of 2, which pack the sums of several wrappers into one number.
    """
    wrappers = units.shape[1]
    values, scale, bits = _counts(units - units.min(axis=1, keepdims=True))
    words = _words(wrappers, bits)
    first = math.isqrt(max(count - 1, 0)) + 1
    second = -(-count // first)
    packed = np.zeros((len(words), first, second))
    for part in _parts(values, SERIAL // (first * second)):
        products, group = part.shape[:2]
        left = _placed(part, random_orders(wrappers, (products, first, group), rng))
        places = random_orders(wrappers, (products, second, group), rng).reshape(products, second, -1)
        for word, weights in zip(packed, words, strict=True):
            word += np.matmul(left, weights.take(places).transpose(0, 2, 1)).sum(axis=0)
    return _unpacked(packed.reshape(len(words), -1)[:, :count], wrappers, bits) / scale


def random_orders(wrappers: int, shape: tuple[int, ...], rng: np.random.Generator) -> IntArray:
    """Random orders (*shape, F) of the numbers below F, `wrappers`."""
    if math.factorial(wrappers) > TABLE:
        return rng.permuted(np.broadcast_to(np.arange(wrappers), (*shape, wrappers)), axis=-1)
    return _table(wrappers).take(rng.integers(0, math.factorial(wrappers), shape, np.uint16), axis=0)


@cache
def _table(wrappers: int) -> IntArray:
    return np.array(list(permutations(range(wrappers))))


def _counts(values: FloatArray) -> tuple[FloatArray, int, int]:
    """`values` (units, F) times their common denominator, it, and the bits of a sum; as they are without one."""
    scale = _denominator(values)
    if scale is not None:
        counts = np.rint(values * scale)
        bits = int(counts.max(axis=1).sum()).bit_length()
        if bits <= EXACT:
            return counts, scale, bits
    return values, 1, EXACT


def _denominator(values: FloatArray) -> int | None:
    scale, rest = 1, values.ravel()
    while True:
        rest = rest[np.abs(rest * scale - np.rint(rest * scale)) > NEAR]
        if rest.size == 0:
            return scale
        factors = np.arange(2, SEEDS + 1)
        multiples = rest[0] * scale * factors
        fits = np.abs(multiples - np.rint(multiples)) <= NEAR
        if not fits.any():
            return None
        scale *= int(factors[fits.argmax()])


def _words(wrappers: int, bits: int) -> FloatArray:
    """Weights (words, F) of the wrappers in the words that have room for them."""
    word, place = np.divmod(np.arange(wrappers), EXACT // bits)
    weights = np.zeros((int(word[-1]) + 1, wrappers))
    weights[word, np.arange(wrappers)] = 2.0 ** (bits * place)
    return weights


def _unpacked(words: FloatArray, wrappers: int, bits: int) -> FloatArray:
    each = EXACT // bits
    if each == 1:
        return words
    whole = words.astype(np.int64)
    return np.array([(whole[f // each] >> bits * (f % each)) & ((1 << bits) - 1) for f in range(wrappers)], np.float64)


def _parts(values: FloatArray, inner: int) -> list[FloatArray]:
    """`values` (units, F) in batches (products, group, F) of products over `inner` of them, filled up with zeros."""
    units, wrappers = values.shape
    group = min(max(1, inner // wrappers), units)
    filled = np.pad(values, ((0, -units % group), (0, 0))).reshape(-1, group, wrappers)
    return [filled[start : start + BATCH] for start in range(0, len(filled), BATCH)]


def _placed(part: FloatArray, orders: IntArray) -> FloatArray:
    """The values (products, group, F) in `orders` (products, draws, group, F), as (products, draws, group * F)."""
    products, draws, group, wrappers = orders.shape
    start = np.repeat(wrappers * np.arange(products * group), wrappers).reshape(products, 1, -1)
    taken: FloatArray = part.ravel().take(orders.reshape(products, draws, -1) + start)
    return taken
