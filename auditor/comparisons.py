"""Two wrappers, or two models, on the items that both answered: by how much one is better. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from auditor.figures import Caveat, ComparisonRow
from auditor.measure import Cell, FloatArray, IntArray, Measured, common
from auditor.stats import pairs

Cells = dict[tuple[str, str], Cell]
"""(task, wrapper) -> cell, of one model and arm."""


class Side(Struct, frozen=True):
    """One side of a comparison."""

    model: str
    wrappers: tuple[str, ...]
    cells: Cells


class Task(Struct, frozen=True):
    """Both sides on one task, (W, N) each: rates per item under each of a side's W wrappers."""

    first: FloatArray
    second: FloatArray
    units: IntArray

    @property
    def difference(self) -> FloatArray:
        """Per item, (N,)."""
        gap: FloatArray = self.first.mean(axis=0) - self.second.mean(axis=0)
        return gap

    @property
    def single(self) -> bool:
        """Whether each side has one answer an item, and no passage joins items."""
        answers = len(self.first) == 1 and bool(np.isin([self.first, self.second], (0.0, 1.0)).all())
        return answers and len(np.unique(self.units)) == len(self.units)


class Pair(Struct, frozen=True):
    """Two sides to compare."""

    parser: str
    arm: str
    first: Side
    second: Side
    tasks: tuple[Task, ...]


def comparisons(measured: Sequence[Measured], seed: int) -> list[ComparisonRow]:
    """Every wrapper of a model against the first one, and every two models of an arm over the wrappers that both have.

    Pairs with equal numbers of items share their resamples, which takes the time of one.
    """
    found = [pair for one in measured for pair in _pairs(one)]
    alike: dict[tuple[bytes, ...], list[int]] = {}
    for place, pair in enumerate(found):
        alike.setdefault(tuple(task.units.tobytes() for task in pair.tasks), []).append(place)
    rows: dict[int, ComparisonRow] = {}
    for places in alike.values():
        sides = zip(*(found[place].tasks for place in places), strict=True)
        units = [task.units for task in found[places[0]].tasks]
        items = [np.array([task.difference for task in same]) for same in sides]
        for place, said in zip(places, pairs.differences(items, seed, clusters=units), strict=True):
            rows[place] = _row(found[place], said)
    return [rows[place] for place in sorted(rows)]


def _pairs(measured: Measured) -> Iterator[Pair]:
    for arm, cells in measured.arms().items():
        models: dict[str, Cells] = {}
        for cell in cells:
            models.setdefault(cell.key.model, {})[cell.key.task, cell.key.wrapper] = cell
        for first, second in _sides(models):
            tasks = list(_tasks(first, second))
            if tasks:
                yield Pair(measured.parser, arm, first, second, tuple(tasks))


def _sides(models: dict[str, Cells]) -> Iterator[tuple[Side, Side]]:
    for model, cells in models.items():
        base, *others = dict.fromkeys(wrapper for _, wrapper in cells)
        yield from ((Side(model, (other,), cells), Side(model, (base,), cells)) for other in others)
    names = list(models)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            shared = tuple(dict.fromkeys(wrapper for task, wrapper in models[one] if (task, wrapper) in models[other]))
            if shared:
                yield Side(one, shared, models[one]), Side(other, shared, models[other])


def _tasks(first: Side, second: Side) -> Iterator[Task]:
    """The tasks that have all wrappers of both sides, and a gold answer to every item."""
    for task in dict.fromkeys(task for task, _ in first.cells):
        keys = [[(task, wrapper) for wrapper in side.wrappers] for side in (first, second)]
        if not all(key in side.cells for side, known in zip((first, second), keys, strict=True) for key in known):
            continue
        rates = common([side.cells[key] for side, known in zip((first, second), keys, strict=True) for key in known])
        if rates is not None and rates.correct is not None and len(rates.items):
            one, other = np.split(rates.correct, 2)
            yield Task(one, other, rates.units)


def _row(pair: Pair, said: pairs.Difference) -> ComparisonRow:
    single = all(task.single for task in pair.tasks)
    b, c = np.sum([pairs.discordant(t.first[0], t.second[0]) for t in pair.tasks], axis=0) if single else (None, None)
    return ComparisonRow(
        arm=pair.arm,
        parser=pair.parser,
        model_a=pair.first.model,
        wrappers_a=pair.first.wrappers,
        model_b=pair.second.model,
        wrappers_b=pair.second.wrappers,
        tasks=len(pair.tasks),
        items=sum(len(task.units) for task in pair.tasks),
        difference=said.mean,
        difference_ci=said.percentile,
        only_a=None if b is None else int(b),
        only_b=None if c is None else int(c),
        p_mcnemar=None if b is None or c is None else pairs.mcnemar(int(b), int(c)).p,
    )


def caveats(rows: Sequence[ComparisonRow]) -> list[Caveat]:
    """Why a comparison lacks a number."""
    found = []
    if any(row.difference_ci is None for row in rows):
        message = "two sides that differ by the same on every item have no interval over items"
        found.append(Caveat("no_comparison", message, ("comparisons.difference_ci",)))
    if any(row.p_mcnemar is None for row in rows):
        message = "McNemar's test is for two wrappers with one seed, and for items that no passage joins"
        found.append(Caveat("no_mcnemar", message, _MCNEMAR))
    return found


_MCNEMAR = ("comparisons.only_a", "comparisons.only_b", "comparisons.p_mcnemar")
