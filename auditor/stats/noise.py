"""The sampling noise of wrappers' means over shared items, as every statistic of the range draws it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import FloatArray, IntArray, Rng, grouped, same_length

SERIAL = 2**18
"""Multiplications in a matrix product: for more, BLAS starts threads, which on busy cores cost more than they save."""


def unit_of(y: FloatArray, clusters: npt.ArrayLike | None) -> IntArray:
    """For each item of `y` (F, N) the position of its unit, (N,): itself, or its cluster, `clusters` (N,) being ids.

    ValueError unless there is one cluster id per item.
    """
    if clusters is None:
        return np.arange(y.shape[1])
    _, position = grouped(clusters)
    same_length(clusters=position, items=y.T)
    return position


def unusable(y: FloatArray, units: int) -> str | None:
    """Why item means `y` (F, N) in `units` units have no range with an error, or None where they do."""
    if len(y) < 2:
        return "fewer than two wrappers"
    if not np.isfinite(y).all():
        return "an item was not measured under every wrapper"
    return "fewer than two items or clusters" if units < 2 else None


def unit_sums(items: FloatArray, unit: IntArray) -> FloatArray:
    """Sums of `items` (K, N) over the units, (K, units); `unit` (N,) is each item's by position."""
    return np.array([np.bincount(unit, row) for row in items])


def unit_errors(y: FloatArray, unit: IntArray) -> FloatArray:
    """What each unit adds to each wrapper's error, (units, F): its columns' inner products are the covariance."""
    centred = y - y.mean(axis=1, keepdims=True)
    sums = unit_sums(centred, unit)
    units = sums.shape[1]
    scaled: FloatArray = sums * (math.sqrt(units / (units - 1)) / y.shape[1])
    return scaled.T


def normal_noise(errors: FloatArray, rng: Rng, draws: int) -> FloatArray:
    """Draws (B, F) of the wrappers' sampling noise from `unit_errors`.

    G_b[f] = sqrt(N/(N-1))/N sum_i xi_bi (Y[f,i] - m_f) with xi ~ N(0, 1) shared by all wrappers (by all items of a
    cluster). Given Y that is a centred normal in F dimensions, so it is drawn there: F numbers a draw, not N. The draws
    of a wrapper lie side by side in memory, for what is done to one wrapper or pair at a time.
    """
    # R'R is the covariance even where wrappers are identical, which a Cholesky factor would refuse
    factor = np.asarray(np.linalg.qr(errors, mode="r"))
    normal = np.random.default_rng(rng).standard_normal((len(factor), draws))
    parts = np.array_split(normal, 1 + normal.size * errors.shape[1] // SERIAL, axis=1)
    return np.hstack([factor.T @ part for part in parts]).T
