"""Models in order: who comes first under each parser, and under each wrapper. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import structs

from auditor.figures import Caveat, CellRow, ModelRow, OrderChangeRow, ReversalRow
from auditor.measure import Cell, Measured, common
from auditor.stats import best
from auditor.stats.arrays import TIE

Held = dict[tuple[str, str, str], dict[tuple[str, str], CellRow]]
"""(model, arm, parser) -> (task, wrapper) -> cell."""


def placed(models: Sequence[ModelRow], cells: Sequence[CellRow]) -> list[ModelRow]:
    """The rows with their mean accuracy and parseability over tasks of the means over wrappers, and with their places
    by that accuracy among the models of their arm; models that tie share the better place."""
    held = _held(cells)
    rows = [_with_means(row, held.get((row.model, row.arm, row.parser), {})) for row in models]
    peers: dict[tuple[str, str], list[ModelRow]] = {}
    for row in rows:
        peers.setdefault((row.arm, row.parser), []).append(row)
    scores = {key: _comparable(group, held, [key[1]]) for key, group in peers.items()}
    return [structs.replace(row, rank=_place(row.model, scores[row.arm, row.parser])) for row in rows]


def order_changes(models: Sequence[ModelRow], cells: Sequence[CellRow]) -> list[OrderChangeRow]:
    """Every two models of an arm whose order under two parsers is opposite; `models` as `placed` gives them."""
    held = _held(cells)
    parsers = list(dict.fromkeys(row.parser for row in models))
    changes = []
    for arm in dict.fromkeys(row.arm for row in models):
        for first, second in combinations(parsers, 2):
            both = [
                _comparable([row for row in models if (row.arm, row.parser) == (arm, parser)], held, [first, second])
                for parser in (first, second)
            ]
            changes += [OrderChangeRow(arm, first, second, *change) for change in _turned(*both)]
    return changes


def caveats(rows: Sequence[ModelRow]) -> list[Caveat]:
    """Why a model has no mean or no place."""
    found = []
    nameless = [f"{_label(row)} ({row.parser})" for row in rows if row.accuracy is None or row.parseability is None]
    if nameless:
        message = f"a mean over tasks and wrappers needs every cell's rate, and one is not known of {_few(nameless)}"
        found.append(Caveat("no_model_mean", message, ("models.accuracy", "models.parseability")))
    models: dict[str, set[str]] = {}
    for row in rows:
        models.setdefault(row.arm, set()).add(row.model)
    apart = [f"{_label(row)} ({row.parser})" for row in rows if row.rank is None and len(models[row.arm]) > 1]
    if apart:
        message = f"a place needs the accuracy of every task and wrapper that other models have: not of {_few(apart)}"
        found.append(Caveat("not_ranked", message, ("models.rank", "order_changes")))
    if any(len(names) == 1 for names in models.values()):
        message = "one model has no place and no order: that needs at least two in an arm"
        found.append(Caveat("one_model", message, ("models.rank", "order_changes", "firsts")))
    return found


def _held(cells: Sequence[CellRow]) -> Held:
    held: Held = {}
    for cell in cells:
        held.setdefault((cell.model, cell.arm, cell.parser), {})[cell.task, cell.wrapper] = cell
    return held


def _with_means(row: ModelRow, cells: Mapping[tuple[str, str], CellRow]) -> ModelRow:
    return structs.replace(
        row,
        accuracy=_macro(cells.values(), lambda cell: cell.accuracy),
        parseability=_macro(cells.values(), lambda cell: cell.parseability),
    )


def _macro(cells: Collection[CellRow], rate: Callable[[CellRow], float | None]) -> float | None:
    """Mean over tasks of the mean over wrappers; None where a rate is not known."""
    tasks: dict[str, list[float]] = {}
    for cell in cells:
        value = rate(cell)
        if value is None:
            return None
        tasks.setdefault(cell.task, []).append(value)
    return float(np.mean([np.mean(rates) for rates in tasks.values()])) if tasks else None


def _comparable(peers: Sequence[ModelRow], held: Held, parsers: Sequence[str]) -> dict[str, float]:
    """Model -> accuracy, of those that have all tasks and wrappers that any of them has, under each of `parsers`."""
    cells = {row.model: [set(held.get((row.model, row.arm, parser), ())) for parser in parsers] for row in peers}
    every = {key for sets in cells.values() for keys in sets for key in keys}
    return {
        row.model: row.accuracy
        for row in peers
        if row.accuracy is not None and all(keys == every for keys in cells[row.model])
    }


def _place(model: str, scores: Mapping[str, float]) -> int | None:
    if model not in scores or len(scores) < 2:
        return None
    return 1 + sum(other > scores[model] + TIE for other in scores.values())


def _turned(
    first: Mapping[str, float], second: Mapping[str, float]
) -> list[tuple[str, str, tuple[float, float], tuple[float, float]]]:
    """(ahead under the first, ahead under the second, their accuracies under the first, and under the second)."""
    found = []
    for pair in combinations([model for model in first if model in second], 2):
        a, b = sorted(pair, key=lambda model: -first[model])
        if first[a] > first[b] + TIE and second[b] > second[a] + TIE:
            found.append((a, b, (first[a], first[b]), (second[a], second[b])))
    return found


def _label(row: ModelRow) -> str:
    return row.model if row.arm == "none" else f"{row.model}, {row.arm}"


def _few(names: Sequence[str]) -> str:
    rest = len(names) - 3
    return "; ".join(names[:3]) + (f" and {rest} more" if rest > 0 else "")


def reversals(measured: Measured, seed: int) -> list[ReversalRow]:
    """The pairs of models of each arm that change places between wrappers, over the tasks and wrappers that all its
    models have."""
    return [row for arm, cells in measured.arms().items() for row in _reversals(measured.parser, arm, cells, seed)]


def _reversals(parser: str, arm: str, every_cell: Sequence[Cell], seed: int) -> Iterator[ReversalRow]:
    cells = {(c.key.model, c.key.task, c.key.wrapper): c for c in every_cell}
    models, asked, every = (list(dict.fromkeys(key[place] for key in cells)) for place in range(3))
    tasks = [task for task in asked if all(any((m, task, name) in cells for name in every) for m in models)]
    wrappers = [name for name in every if all((m, t, name) in cells for m in models for t in tasks)]
    if len(models) < 2 or len(wrappers) < 2 or not tasks:
        return
    rates = [common([cells[m, task, w] for m in models for w in wrappers]) for task in tasks]
    items = [one.correct.reshape(len(models), len(wrappers), -1) for one in rates if one and one.correct is not None]
    if len(items) < len(tasks):
        return
    found = best.reversals(items, seed, clusters=[one.units for one in rates if one])
    for pair in found.orders or ():
        if pair.apparent:
            yield ReversalRow(
                arm=arm,
                parser=parser,
                model_a=models[pair.first],
                model_b=models[pair.second],
                tasks=len(tasks),
                items=sum(one.shape[2] for one in items),
                ahead=tuple(wrappers[place] for place in pair.ahead),
                behind=tuple(wrappers[place] for place in pair.behind),
                surely_ahead=tuple(wrappers[place] for place in pair.surely_ahead),
                surely_behind=tuple(wrappers[place] for place in pair.surely_behind),
                certified=pair.certified,
            )
