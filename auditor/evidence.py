"""What of a range over wrappers is more than noise, on the items that every wrapper answered. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, structs

from auditor.figures import Interval
from auditor.measure import Cell, Family, FloatArray, IntArray, Items, common
from auditor.stats import best, design, effects, inversion, macro, noise, simultaneous
from auditor.stats.inversion import RangeEstimate

DRAWS = 10_000
LOWER_FLOOR = 0.02
"""The noise floor for which the number of items is said."""


class Evidence(Struct, frozen=True):
    """One (model, task, arm) under one parser. `fsi` and `psi` are None where the cells have no items, and have a
    reason where these are not enough. `p` and `mid_p` are of the permutation test, `p_cochran` of Cochran's Q where
    every item has one seed; `detectable` is the smallest range, wrappers equally spaced, that 80 % of such runs would
    find."""

    rates: Items | None = None
    fsi: RangeEstimate | None = None
    psi: RangeEstimate | None = None
    fsi_bounds: Interval | None = None
    psi_bounds: Interval | None = None
    p: float | None = None
    mid_p: float | None = None
    p_cochran: float | None = None
    chances: dict[str, float] = {}
    contenders: tuple[str, ...] = ()
    detectable: float | None = None
    items_needed: int | None = None


def weigh(cells: Sequence[Cell], seed: int) -> Evidence:
    """The evidence of one family of cells."""
    rates = common(cells)
    if rates is None:
        return Evidence()
    psi = inversion.range_inversion(rates.parsed, seed, clusters=rates.units)
    one = Evidence(rates, psi=psi, psi_bounds=_bounds(rates.parsed, rates.units, seed))
    if rates.correct is None:
        return one
    fsi = inversion.range_inversion(rates.correct, seed, clusters=rates.units)
    one = structs.replace(one, fsi=fsi, fsi_bounds=_bounds(rates.correct, rates.units, seed))
    return one if fsi.reason else _tested(one, rates, rates.correct, [cell.key.wrapper for cell in cells], seed)


def _bounds(rates: FloatArray, units: IntArray, seed: int) -> Interval | None:
    return simultaneous.range_bounds(rates, seed, clusters=units, draws=DRAWS).interval


def _tested(one: Evidence, rates: Items, correct: FloatArray, names: Sequence[str], seed: int) -> Evidence:
    errors = noise.unit_errors(correct, noise.unit_of(correct, rates.units))
    draws = noise.normal_noise(errors, seed, DRAWS)
    ranked = best.best(correct.mean(axis=1), errors, draws)
    single = bool(np.isin(correct, (0.0, 1.0)).all()) and not rates.clustered
    permuted = effects.permutation_test(correct, seed, clusters=rates.units, relabellings=DRAWS)
    floor = one.fsi.floor if one.fsi else None
    return structs.replace(
        one,
        p=permuted.p,
        mid_p=permuted.mid_p,
        p_cochran=effects.cochran_q(correct).p if single else None,
        chances=dict(zip(names, ranked.chance, strict=True)) if ranked.chance else {},
        contenders=tuple(names[place] for place in ranked.contenders or ()),
        detectable=design.detectable(errors, draws, seed).spaced,
        items_needed=design.items_needed(floor, len(rates.items), LOWER_FLOOR).items if floor else None,
    )


def adjusted(ps: Mapping[Family, float | None]) -> dict[Family, float | None]:
    """Holm's adjustment of the tests of one parser, over the tasks of each model and arm."""
    found: dict[Family, float | None] = {}
    for group in {(model, arm) for model, _, arm in ps}:
        keys = [key for key in ps if (key[0], key[2]) == group]
        found |= dict(zip(keys, effects.holm([ps[key] for key in keys]), strict=True))
    return found


class OverTasks(Struct, frozen=True):
    """A range's mean over tasks, and its intervals: `sampled` for more tasks of their kind, `fixed` for exactly these,
    `hierarchical` by the bootstrap over tasks and items, which is not calibrated."""

    mean: float | None = None
    sampled: Interval | None = None
    fixed: Interval | None = None
    hierarchical: Interval | None = None


def over_tasks(families: Sequence[Sequence[Evidence]], seed: int) -> list[tuple[OverTasks, OverTasks]]:
    """FSI and PSI over the tasks of each of many models, whose `families` have the evidence of one task each."""
    resampled = _resampled(families, seed)
    return [
        (_over_tasks([one.fsi for one in family], fsi), _over_tasks([one.psi for one in family], psi))
        for family, (fsi, psi) in zip(families, resampled, strict=True)
    ]


def _over_tasks(estimates: Sequence[RangeEstimate | None], hierarchical: Interval | None) -> OverTasks:
    known = [one for one in estimates if one is not None]
    if len(known) < len(estimates):
        return OverTasks()
    sampled = macro.macro_range(known)
    return OverTasks(sampled.mean, sampled.interval, macro.fixed_tasks(known).interval, hierarchical)


def _resampled(families: Sequence[Sequence[Evidence]], seed: int) -> list[tuple[Interval | None, Interval | None]]:
    """Hierarchical intervals of FSI and PSI. Models with equal numbers of items share their resamples, which takes the
    time of one."""
    alike: dict[tuple[object, ...], list[tuple[int, int, list[FloatArray]]]] = {}
    units: dict[tuple[object, ...], list[IntArray]] = {}
    for place, family in enumerate(families):
        rates = [one.rates for one in family if one.rates is not None]
        if len(rates) < len(family):
            continue
        key = tuple((one.parsed.shape, one.units.tobytes()) for one in rates)
        units[key] = [one.units for one in rates]
        alike.setdefault(key, []).append((place, 1, [one.parsed for one in rates]))
        if (correct := [one.correct for one in rates if one.correct is not None]) and len(correct) == len(rates):
            alike[key].append((place, 0, correct))
    found: list[list[Interval | None]] = [[None, None] for _ in families]
    for alike_key, rows in alike.items():
        tasks = [np.stack(task) for task in zip(*(matrices for _, _, matrices in rows), strict=True)]
        means = macro.hierarchical_means(tasks, seed, clusters=units[alike_key])
        for (place, kind, _), mean in zip(rows, means, strict=True):
            found[place][kind] = mean.interval
    return [(fsi, psi) for fsi, psi in found]
