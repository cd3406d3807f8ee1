"""Groups of items within a task (subjects) -> how far wrappers lie apart in each. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from auditor.figures import GroupRow
from auditor.measure import FloatArray, IntArray, Items, Measured, common
from auditor.stats import noise, sensitivity

DRAWS = 2000
"""For a noise floor with an error of 1 %: there may be dozens of groups in every family."""


def rows(measured: Measured, groups: Mapping[int, str], seed: int) -> list[GroupRow]:
    """The groups of each family whose items have two or more; `groups` are those of items that have one."""
    found = []
    for (model, task, arm), cells in measured.families().items() if groups else ():
        rates = common(cells)
        names = np.array([groups.get(item, "") for item in rates.items.tolist()] if rates else [])
        told = [name for name in np.unique(names).tolist() if name]
        if rates is not None and len(told) > 1:
            where = (model, task, arm, measured.parser)
            found += [_row(where, name, len(cells), rates, names == name, seed) for name in told]
    return found


def _row(
    where: tuple[str, str, str, str], group: str, wrappers: int, rates: Items, here: FloatArray, seed: int
) -> GroupRow:
    units = rates.units[here]
    psi, psi_floor = _range(rates.parsed[:, here], units, seed)
    fsi, fsi_floor, mean = None, None, None
    if rates.correct is not None:
        correct = rates.correct[:, here]
        fsi, fsi_floor, mean = *_range(correct, units, seed), float(correct.mean())
    return GroupRow(*where, group, len(units), wrappers, mean, fsi, fsi_floor, psi, psi_floor)


def _range(rates: FloatArray, units: IntArray, seed: int) -> tuple[float | None, float | None]:
    """The range over wrappers and its noise floor, None where there is none."""
    unit = noise.unit_of(rates, units)
    found = sensitivity.fsi(rates.mean(axis=1)).value
    if found is None or unit.max() == 0:
        return found, None
    draws = noise.normal_noise(noise.unit_errors(rates, unit), seed, DRAWS)
    return found, float(np.ptp(draws, axis=1).mean())
