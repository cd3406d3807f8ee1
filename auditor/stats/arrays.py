"""The array types that the statistics share, and the checks at their door."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Interval = tuple[float, float]
Rng = np.random.Generator | int
"""A generator, which is advanced, or a seed, which makes a fresh one."""

TIE = 1e-12
"""Rates are ratios of counts: two that differ by less are equal but for rounding."""


def floats(values: npt.ArrayLike, ndim: int = 1) -> FloatArray:
    """`values` as float64; ValueError when it does not have `ndim` dimensions."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim:
        raise ValueError(f"expected {ndim} dimension(s), got shape {array.shape}")
    return array


def same_length(**columns: npt.NDArray[np.generic]) -> None:
    """ValueError, naming the columns, unless all are equally long."""
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise ValueError(f"columns differ in length: {lengths}")


def grouped(group: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """The distinct group ids in ascending order (G,), and for each row the position of its id (R,)."""
    ids, position = np.unique(np.asarray(group, dtype=np.int64), return_inverse=True)
    return ids, position.astype(np.int64)
