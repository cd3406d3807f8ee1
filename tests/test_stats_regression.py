"""Weighted least squares of accuracy on parseability."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from scipy.stats import pearsonr

from auditor.stats.arrays import FloatArray
from auditor.stats.regression import Regression, accuracy_on_parseability

Cells = tuple[FloatArray, FloatArray, list[list[int]], FloatArray]


def random_cells(seed: int, shape: tuple[int, int, int], missing: int = 0) -> Cells:
    """Cells of a full (model, task, wrapper) grid, `missing` of them left out at random, unequal weights."""
    rng = np.random.default_rng(seed)
    index = np.indices(shape).reshape(3, -1)
    index = index[:, np.sort(rng.permutation(index.shape[1])[missing:])]
    count = index.shape[1]
    p = rng.random(count)
    a = 0.6 * p + 0.1 * rng.random(count) + 0.05 * index.sum(axis=0)
    return a, p, [list(map(int, row)) for row in index], rng.integers(1, 1000, count).astype(float)


def effects(factors: list[list[int]]) -> FloatArray:
    """Intercept and one indicator per level but the last of each factor."""
    columns = [[1.0] * len(factors[0])]
    columns += [[float(x == level) for x in factor] for factor in factors for level in sorted(set(factor))[:-1]]
    return np.array(columns).T


@pytest.mark.parametrize(
    ("seed", "shape", "missing"),
    [(0, (4, 7, 5), 0), (1, (4, 7, 5), 31), (2, (1, 6, 5), 0), (3, (3, 1, 5), 2), (4, (2, 2, 3), 1), (5, (4, 4, 1), 0)],
)
def test_statsmodels_agrees(seed: int, shape: tuple[int, int, int], missing: int) -> None:
    """Beta, SE, df, t and p are those of statsmodels' WLS, with unequal weights, missing cells, one-level factors."""
    a, p, factors, weights = random_cells(seed, shape, missing)
    found = accuracy_on_parseability(a, p, factors, weights).fit
    reference = sm.WLS(a, np.column_stack([p, effects(factors)]), weights=weights).fit()
    without = sm.WLS(a, effects(factors), weights=weights).fit()
    assert found is not None
    assert found.df == reference.df_resid
    assert found.beta == pytest.approx(reference.params[0], rel=1e-9, abs=1e-9)
    assert found.se == pytest.approx(reference.bse[0], rel=1e-9, abs=1e-9)
    assert found.t == pytest.approx(reference.tvalues[0], rel=1e-9, abs=1e-9)
    assert found.p == pytest.approx(reference.pvalues[0], rel=1e-9, abs=1e-12)
    assert found.partial_r2 == pytest.approx(1 - reference.ssr / without.ssr, rel=1e-9, abs=1e-9)


def test_disconnected_cells_count_their_true_rank() -> None:
    """Two models that share no task and no wrapper have two redundant effects; df is counted from the rank."""
    rng = np.random.default_rng(8)
    model = [0] * 9 + [1] * 9
    task = [*np.repeat([0, 1, 2], 3), *np.repeat([3, 4, 5], 3)]
    wrapper = [*np.tile([0, 1, 2], 3), *np.tile([3, 4, 5], 3)]
    a, p = rng.random(18), rng.random(18)
    found = accuracy_on_parseability(a, p, [model, task, wrapper]).fit
    block = effects([task[:9], wrapper[:9]])
    reference = sm.OLS(a, np.column_stack([p, np.kron(np.eye(2), block)])).fit()
    assert found is not None
    # two blocks of (1 + 2 + 2) effects and the slope
    assert found.df == 18 - 10 - 1 == reference.df_resid
    assert found.se == pytest.approx(reference.bse[0], rel=1e-9)


def test_pearson_and_tautology_slope() -> None:
    """r is scipy's over unweighted cells, the tautology slope sum A / sum P."""
    a, p, factors, weights = random_cells(6, (3, 3, 3))
    found = accuracy_on_parseability(a, p, factors, weights)
    assert found.pearson_r == pytest.approx(float(pearsonr(a, p)[0]), abs=1e-12)
    assert found.tautology_slope == pytest.approx(a.sum() / p.sum(), abs=1e-12)


def test_the_scale_of_weights_and_the_names_of_levels_do_not_matter() -> None:
    """Generations or thousands of them, numbers or names: the same fit."""
    a, p, factors, weights = random_cells(7, (3, 4, 5))
    named = [[f"level {label}" for label in factor] for factor in factors]
    one = accuracy_on_parseability(a, p, factors, weights).fit
    other = accuracy_on_parseability(a, p, named, weights * 1000).fit
    assert one is not None
    assert other is not None
    assert other.beta == pytest.approx(one.beta, rel=1e-12)
    assert other.p == pytest.approx(one.p, rel=1e-9)


def test_a_cell_without_generations_is_left_out() -> None:
    """Weight 0 drops the cell from the fit, from r and from the count."""
    a, p, factors, weights = random_cells(9, (3, 3, 4))
    weights[0] = 0
    dropped = accuracy_on_parseability(a, p, factors, weights)
    absent = accuracy_on_parseability(a[1:], p[1:], [factor[1:] for factor in factors], weights[1:])
    assert dropped.cells == absent.cells == 35
    assert dropped.pearson_r == absent.pearson_r
    assert dropped.fit is not None
    assert absent.fit is not None
    assert dropped.fit.df == absent.fit.df
    assert dropped.fit.se == pytest.approx(absent.fit.se, rel=1e-12)


def refused(a: FloatArray, p: FloatArray, factors: list[list[int]]) -> Regression:
    found = accuracy_on_parseability(a, p, factors)
    assert found.fit is None
    assert found.reason
    return found


def test_few_cells_are_refused() -> None:
    """Two degrees of freedom are not enough, three are; no cell at all is no error."""
    a, p, factors, _ = random_cells(10, (1, 1, 5))
    assert refused(a[:4], p[:4], [[0] * 4]).status == "too_few_cells"
    assert accuracy_on_parseability(a, p, [[0] * 5]).status == "ok"
    assert refused(a, p, factors).status == "too_few_cells"
    empty = refused(np.array([]), np.array([]), [[], [], []])
    assert (empty.status, empty.cells, empty.pearson_r, empty.tautology_slope) == ("too_few_cells", 0, None, None)


def test_constant_parseability_is_refused() -> None:
    """Where everything parses there is no slope and no r, but the tautology slope is mean A."""
    a, _, factors, _ = random_cells(11, (3, 3, 3))
    found = refused(a, np.ones(27), factors)
    assert (found.status, found.pearson_r) == ("constant_parseability", None)
    assert found.tautology_slope == pytest.approx(a.mean())


def test_parseability_explained_by_the_effects_is_refused() -> None:
    """P that is a sum of a model part and a wrapper part leaves nothing to regress on."""
    a, _, factors, _ = random_cells(12, (3, 3, 3))
    found = refused(a, np.array(factors[0]) / 7 + np.array(factors[2]) / 11, factors)
    assert found.status == "collinear"


def test_a_residual_of_rounding_is_refused() -> None:
    """A = 0.3 P + effects fits exactly and gets no standard error, and so does A that is 0 everywhere."""
    _, p, factors, _ = random_cells(13, (3, 3, 3))
    assert refused(0.3 * p + np.array(factors[1]) / 7, p, factors).status == "exact_fit"
    assert refused(np.zeros(27), p, factors).status == "exact_fit"


def test_one_generation_among_millions_is_no_rounding() -> None:
    """Cells of a million generations, one of which failed to parse, are fitted."""
    a, _, factors, weights = random_cells(14, (3, 3, 3))
    p = np.ones(27)
    p[5] -= 1e-6
    assert accuracy_on_parseability(a, p, factors, weights).status == "ok"


def test_nothing_parsed_has_no_tautology_slope() -> None:
    """With sum P = 0 the slope is undefined."""
    assert accuracy_on_parseability(np.zeros(5), np.zeros(5), [[0] * 5]).tautology_slope is None


def test_missing_values_are_named() -> None:
    """A cell without parseability gives a status, not NaN."""
    assert refused(np.ones(6), np.array([1, 1, 1, 1, 1, np.nan]), [[0] * 6]).status == "missing_values"


def test_columns_that_do_not_fit_are_refused() -> None:
    """Unequal lengths and negative weights are the caller's mistake."""
    with pytest.raises(ValueError, match="parseability 2"):
        accuracy_on_parseability([1, 1, 1], [1, 1], [])
    with pytest.raises(ValueError, match="negative"):
        accuracy_on_parseability([1, 1], [1, 1], [], [1, -1])
