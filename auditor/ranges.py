"""How accuracy is spread over wrappers, and which model a wrapper puts first: the delimiter paper's tables. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from auditor.figures import Caveat, CellRow, FirstRow, GainRow, SpreadRow
from auditor.stats import sensitivity
from auditor.stats.arrays import TIE

Key = TypeVar("Key", bound=Hashable)
Rates = Mapping[str, float]
"""Wrapper -> accuracy."""


def spreads(cells: Sequence[CellRow]) -> list[SpreadRow]:
    """One row for each (model, task, arm) under each parser (delimiter paper, Tables 1 and 5 to 7)."""
    groups = _grouped(cells, lambda cell: (cell.model, cell.task, cell.arm, cell.parser))
    return [_spread(key, group) for key, group in groups.items()]


def gains(cells: Sequence[CellRow]) -> list[GainRow]:
    """One row for each (model, arm) under each parser (delimiter paper, Table 3)."""
    groups = _grouped(cells, lambda cell: (cell.model, cell.arm, cell.parser))
    return [_gain(key, group) for key, group in groups.items()]


def firsts(cells: Sequence[CellRow]) -> list[FirstRow]:
    """One row for each (task, arm) under each parser in which at least two models have a wrapper in common."""
    groups = _grouped(cells, lambda cell: (cell.task, cell.arm, cell.parser))
    found = [_first(key, group) for key, group in groups.items()]
    return [row for row in found if row is not None]


def caveats(spreads: Sequence[SpreadRow], gains: Sequence[GainRow], firsts: Sequence[FirstRow]) -> list[Caveat]:
    """Why a gain is not there where spreads are, and what a comparison of models leaves out."""
    found = []
    flat = {(row.model, row.arm, row.parser) for row in spreads if row.spread is None}
    if any(row.gain is None and (row.model, row.arm, row.parser) not in flat for row in gains):
        message = "the gain of one wrapper, averaged over tasks, needs the same wrappers in each of them"
        found.append(Caveat("no_gain", message, ("gains.gain", "gains.best_wrappers")))
    if not firsts and len({row.model for row in gains}) > 1:
        message = "which model a wrapper puts first needs at least two with a task, an arm and a wrapper in common"
        found.append(Caveat("no_firsts", message, ("firsts",)))
    found += [
        Caveat("firsts_left_out", f"{row.task}: not every model has {', '.join(row.left_out)}: compared under the rest")
        for row in firsts
        if row.left_out
    ]
    return found


def _grouped(cells: Sequence[CellRow], key: Callable[[CellRow], Key]) -> dict[Key, list[CellRow]]:
    groups: dict[Key, list[CellRow]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def _rates(cells: Sequence[CellRow]) -> dict[str, float]:
    """All of them, or none where one is not known: a mean over the rest would be another mean."""
    rates = {cell.wrapper: cell.accuracy for cell in cells if cell.accuracy is not None}
    return rates if len(rates) == len(cells) else {}


def _spread(key: tuple[str, str, str, str], cells: Sequence[CellRow]) -> SpreadRow:
    model, task, arm, parser = key
    rates = _rates(cells)
    names, values = list(rates), list(rates.values())
    found = sensitivity.fsi(values)
    several = found.value is not None
    return SpreadRow(
        model=model,
        task=task,
        arm=arm,
        parser=parser,
        wrappers=len(cells),
        mean=found.mean,
        sd_sample=statistics.stdev(values) if several else None,
        sd_population=statistics.pstdev(values) if several else None,
        lowest=found.low,
        highest=found.high,
        spread=found.value,
        worst_wrappers=tuple(names[index] for index in found.worst),
        best_wrappers=tuple(names[index] for index in found.best),
        gain=found.high - found.mean if several and found.high is not None and found.mean is not None else None,
    )


def _gain(key: tuple[str, str, str], cells: Sequence[CellRow]) -> GainRow:
    tasks = [_rates(group) for group in _grouped(cells, lambda cell: cell.task).values()]
    names = list(tasks[0])
    if len(names) < 2 or any(rates.keys() != tasks[0].keys() for rates in tasks):
        return GainRow(*key, len(tasks), (), None)
    above = {name: math.fsum(rates[name] - _mean(rates) for rates in tasks) / len(tasks) for name in names}
    most = max(above.values())
    return GainRow(*key, len(tasks), tuple(name for name in names if above[name] >= most - TIE), most)


def _mean(rates: Rates) -> float:
    return math.fsum(rates.values()) / len(rates)


def _first(key: tuple[str, str, str], cells: Sequence[CellRow]) -> FirstRow | None:
    models = {model: _known(group) for model, group in _grouped(cells, lambda cell: cell.model).items()}
    models = {model: rates for model, rates in models.items() if rates}
    every = dict.fromkeys(name for rates in models.values() for name in rates)
    shared = [name for name in every if all(name in rates for rates in models.values())]
    if len(models) < 2 or not shared:
        return None
    by_wrapper = {name: _top({model: rates[name] for model, rates in models.items()}) for name in shared}
    led = {model for first in by_wrapper.values() for model in first}
    task, arm, parser = key
    return FirstRow(
        task=task,
        arm=arm,
        parser=parser,
        models=tuple(models),
        by_wrapper=by_wrapper,
        never=tuple(model for model in models if model not in led),
        never_apart=_outrun({model: [rates[name] for name in shared] for model, rates in models.items()}),
        left_out=tuple(name for name in every if name not in shared),
    )


def _known(cells: Sequence[CellRow]) -> dict[str, float]:
    return {cell.wrapper: cell.accuracy for cell in cells if cell.accuracy is not None}


def _top(rates: Rates) -> tuple[str, ...]:
    most = max(rates.values())
    return tuple(model for model, rate in rates.items() if rate >= most - TIE)


def _outrun(models: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The models whose best is below what another has at its worst."""
    return tuple(
        model
        for model, rates in models.items()
        if any(max(rates) < min(others) - TIE for other, others in models.items() if other != model)
    )
