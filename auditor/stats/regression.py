"""How much of accuracy is parseability: weighted least squares over cells (FSI paper, section 4)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from auditor.stats.arrays import TIE, FloatArray, IntArray, floats, same_length

Status = Literal["ok", "missing_values", "too_few_cells", "constant_parseability", "collinear", "exact_fit"]

MIN_DF = 3
NEGLIGIBLE = 1e-10
"""A residual this small beside its variable is rounding: one generation among millions moves a cell more."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The slope of accuracy on parseability, fixed effects taken out; `se` is descriptive (cells share items)."""

    beta: float
    se: float
    df: int
    t: float
    p: float
    partial_r2: float


@dataclass(frozen=True, slots=True)
class Regression:
    """`fit` is None unless `status` is ok. `pearson_r` and `tautology_slope` (sum A / sum P, the slope to expect
    when parsing alone moves accuracy) are unweighted over cells, and None where they are undefined."""

    status: Status
    reason: str | None
    cells: int
    fit: Fit | None
    pearson_r: float | None
    tautology_slope: float | None


def accuracy_on_parseability(
    accuracy: npt.ArrayLike,
    parseability: npt.ArrayLike,
    factors: Sequence[Sequence[Hashable]],
    weights: npt.ArrayLike | None = None,
) -> Regression:
    """WLS of A (C,) on P (C,) with fixed effects, one sequence of C labels per factor (model, task, wrapper).

    `weights` (C,) are generations per cell, equal when absent; cells of weight 0 are left out. Missing cells may make
    the effects rank-deficient: degrees of freedom are then counted from the rank.
    """
    a, p = floats(accuracy), floats(parseability)
    w = np.ones(len(a)) if weights is None else floats(weights)
    labels = [_codes(factor) for factor in factors]
    same_length(accuracy=a, parseability=p, weights=w, **{f"factor {i}": factor for i, factor in enumerate(labels)})
    if not np.isfinite(np.concatenate([a, p, w])).all():
        return Regression("missing_values", "a cell has no accuracy or parseability", len(a), None, None, None)
    if (w < 0).any():
        raise ValueError("a weight is negative")
    used = w > 0
    a, p, w = a[used], p[used], w[used]
    fit, status, reason = _fit(a, p, w, [factor[used] for factor in labels])
    return Regression(status, reason, len(a), fit, pearson_r(a, p), tautology_slope(a, p))


def pearson_r(x: FloatArray, y: FloatArray) -> float | None:
    """The correlation of two columns (C,); None below three points or when one does not vary."""
    if len(x) < 3 or np.ptp(x) <= TIE or np.ptp(y) <= TIE:
        return None
    x, y = x - x.mean(), y - y.mean()
    return max(-1.0, min(1.0, float(x @ y) / math.sqrt(float(x @ x) * float(y @ y))))


def tautology_slope(accuracy: FloatArray, parseability: FloatArray) -> float | None:
    """sum A / sum P over cells (C,); None when nothing parsed."""
    total = math.fsum(parseability)
    return math.fsum(accuracy) / total if total > 0 else None


def _fit(a: FloatArray, p: FloatArray, w: FloatArray, factors: list[IntArray]) -> tuple[Fit | None, Status, str | None]:
    root = np.sqrt(w / w.max()) if len(w) else w
    basis = _column_space(_fixed_effects(factors, len(a)) * root[:, None])
    df = len(a) - basis.shape[1] - 1
    if df < MIN_DF:
        return None, "too_few_cells", f"{len(a)} cells leave {max(df, 0)} degrees of freedom; {MIN_DF} are needed"
    if np.ptp(p) <= TIE:
        return None, "constant_parseability", "every cell has the same parseability"
    a_rest, p_rest = _residual(a * root, basis), _residual(p * root, basis)
    if _negligible(p_rest, p * root):
        return None, "collinear", "model, task and wrapper explain parseability completely"
    beta = float(p_rest @ a_rest) / float(p_rest @ p_rest)
    rest = a_rest - beta * p_rest
    if _negligible(rest, a * root):
        return None, "exact_fit", "the fit leaves no residual, so the slope has no error to judge it by"
    return _summary(beta, a_rest, p_rest, rest, df), "ok", None


def _summary(beta: float, a_rest: FloatArray, p_rest: FloatArray, rest: FloatArray, df: int) -> Fit:
    rss = float(rest @ rest)
    se = math.sqrt(rss / df / float(p_rest @ p_rest))
    t = beta / se
    return Fit(beta, se, df, t, 2 * float(stdtr(df, -abs(t))), 1 - rss / float(a_rest @ a_rest))


def _codes(labels: Sequence[Hashable]) -> IntArray:
    codes: dict[Hashable, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels], np.int64)


def _fixed_effects(factors: list[IntArray], cells: int) -> FloatArray:
    """Intercept and one indicator per level but the first, (C, K); a factor with one level adds nothing."""
    columns = [np.ones(cells)]
    for factor in factors:
        columns += [(factor == level).astype(np.float64) for level in np.unique(factor)[1:]]
    return np.column_stack(columns)


def _column_space(design: FloatArray) -> FloatArray:
    """An orthonormal basis (C, rank) of the design's columns."""
    u, s, _ = np.linalg.svd(design, full_matrices=False)
    rank = int((s > s.max(initial=0.0) * max(design.shape) * np.finfo(np.float64).eps).sum())
    return np.asarray(u[:, :rank], dtype=np.float64)


def _residual(y: FloatArray, basis: FloatArray) -> FloatArray:
    return y - basis @ (basis.T @ y)


def _negligible(rest: FloatArray, whole: FloatArray) -> bool:
    return float(np.linalg.norm(rest)) <= NEGLIGIBLE * float(np.linalg.norm(whole))
