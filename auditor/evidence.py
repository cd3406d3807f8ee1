"""What of a range over wrappers is more than noise, on the items that every wrapper answered. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, structs

from auditor.figures import Caveat, Interval, SensitivityRow
from auditor.measure import Cell, FloatArray
from auditor.stats import best, design, effects, inversion, macro, noise, simultaneous
from auditor.stats.bootstrap import MacroMean
from auditor.stats.inversion import RangeEstimate

DRAWS = 10_000
LOWER_FLOOR = 0.02
"""The noise floor for which the number of items is said."""

Key = tuple[str, str, str]
"""(model, task, arm)."""


class Evidence(Struct, frozen=True):
    """One (model, task, arm) under one parser. `fsi` and `psi` are None where the cells have no items, and have a
    reason where these are not enough. `p` is of the permutation test, `p_cochran` of Cochran's Q where every item has
    one seed; `detectable` is the smallest range, wrappers equally spaced, that 80 % of such runs would find."""

    items: int = 0
    fsi: RangeEstimate | None = None
    psi: RangeEstimate | None = None
    fsi_bounds: Interval | None = None
    psi_bounds: Interval | None = None
    p: float | None = None
    p_cochran: float | None = None
    chances: dict[str, float] = {}
    contenders: tuple[str, ...] = ()
    detectable: float | None = None
    items_needed: int | None = None


def weigh(cells: Sequence[Cell], seed: int) -> Evidence:
    """The evidence of one family of cells."""
    found = _common(cells)
    if found is None:
        return Evidence()
    correct, parsed = found
    psi = inversion.range_inversion(parsed, seed)
    one = Evidence(parsed.shape[1], psi=psi, psi_bounds=_bounds(parsed, seed))
    if correct is None:
        return one
    fsi = inversion.range_inversion(correct, seed)
    one = structs.replace(one, fsi=fsi, fsi_bounds=_bounds(correct, seed))
    return one if fsi.reason else _tested(one, correct, [cell.key.wrapper for cell in cells], seed)


def _bounds(rates: FloatArray, seed: int) -> Interval | None:
    return simultaneous.range_bounds(rates, seed, draws=DRAWS).interval


def _common(cells: Sequence[Cell]) -> tuple[FloatArray | None, FloatArray] | None:
    """Rates of the items that every wrapper answered, (F, N): correct (None without gold) and parsed."""
    if any(cell.items is None or cell.item_parsed is None for cell in cells):
        return None
    common = cells[0].items
    for cell in cells[1:]:
        common = np.intersect1d(common, cell.items)  # type: ignore[arg-type]
    places = [np.isin(cell.items, common) for cell in cells]  # type: ignore[arg-type]
    parsed = np.array([cell.item_parsed[place] for cell, place in zip(cells, places, strict=True)])  # type: ignore[index]
    if any(cell.item_correct is None for cell in cells):
        return None, parsed
    correct = [cell.item_correct[place] for cell, place in zip(cells, places, strict=True)]  # type: ignore[index]
    return np.array(correct), parsed


def _tested(one: Evidence, correct: FloatArray, names: Sequence[str], seed: int) -> Evidence:
    errors = noise.unit_errors(correct, np.arange(correct.shape[1]))
    draws = noise.normal_noise(errors, seed, DRAWS)
    ranked = best.best(correct.mean(axis=1), errors, draws)
    binary = bool(np.isin(correct, (0.0, 1.0)).all())
    floor = one.fsi.floor if one.fsi else None
    return structs.replace(
        one,
        p=effects.permutation_test(correct, seed, relabellings=DRAWS).p,
        p_cochran=effects.cochran_q(correct).p if binary else None,
        chances=dict(zip(names, ranked.chance, strict=True)) if ranked.chance else {},
        contenders=tuple(names[place] for place in ranked.contenders or ()),
        detectable=design.detectable(errors, draws, seed).spaced,
        items_needed=design.items_needed(floor, one.items, LOWER_FLOOR).items if floor else None,
    )


def adjusted(ps: Mapping[Key, float | None]) -> dict[Key, float | None]:
    """Holm's adjustment of the tests of one parser, over the tasks of each model and arm."""
    found: dict[Key, float | None] = {}
    for group in {(model, arm) for model, _, arm in ps}:
        keys = [key for key in ps if (key[0], key[2]) == group]
        found |= dict(zip(keys, effects.holm([ps[key] for key in keys]), strict=True))
    return found


def over_tasks(estimates: Sequence[RangeEstimate | None]) -> MacroMean:
    """The mean over tasks of signed adjusted ranges, with the interval for more tasks of their kind."""
    known = [one for one in estimates if one is not None]
    if len(known) < len(estimates):
        return MacroMean(None, None, len(estimates), "a task has no items")
    return macro.macro_range(known)


def caveats(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    """Why the evidence is not there, and what a reader must know of it."""
    found = []
    lacking = [row for row in rows if row.fsi is not None and row.fsi_star is None]
    if lacking:
        where = ", ".join(sorted({f"{row.model}, {row.task}" for row in lacking})[:3])
        message = f"noise floor, FSI* and tests need two items or more that every wrapper answered ({where})"
        found.append(Caveat("no_evidence", message, _FIELDS))
    if any(row.p_cochran_q is None and row.p_wrapper_effect is not None for row in rows):
        message = "Cochran's Q is for one seed, or for seeds that all agree"
        found.append(Caveat("no_cochran_q", message, ("sensitivity.p_cochran_q",)))
    return found


_FIELDS = (
    *(f"sensitivity.{name}" for name in ("fsi_floor", "fsi_star", "fsi_ci", "psi_floor", "psi_star", "psi_ci")),
    *(f"sensitivity.{name}" for name in ("p_wrapper_effect", "p_holm", "fsi_detectable", "items_for_lower_floor")),
    *(f"models.{name}" for name in ("fsi_star", "fsi_star_ci", "psi_star", "psi_star_ci")),
)
