"""Run a study of prompt templates and judge it: from cells to the numbers that verdict.py holds against rules."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from auditor import audit, prepare
from auditor.errors import UsageError
from auditor.figures import Interval
from auditor.folders import default_folder
from auditor.measure import Cell, Measured, by_seed, common, measure
from auditor.records import CellKey
from auditor.report.value import Report
from auditor.stats import intervals, simultaneous
from auditor.store import Store
from auditor.study import Study
from auditor.verdict import Claim, Measure, Rules, Verdict, judge

FloatArray = npt.NDArray[np.float64]


def gate(
    study: Study,
    rules: Rules,
    out: Path | None = None,
    *,
    say: audit.Say = audit.quiet,
    progress: audit.Progress = audit.no_progress,
    confirm: audit.Confirm = audit.go_on,
) -> tuple[Verdict, Report]:
    """Run the templates of `study.wrappers` on its cases with its one parser, and judge. Raises UsageError."""
    check(rules, study)
    prepared = prepare.prepare(study)
    if len(prepared.readers) != 1:
        names = ", ".join(parser.name for parser, _ in prepared.readers)
        raise UsageError(f"a gate reads with one parser, and {study.parsers[0]} holds {names}", "leave one in the file")
    if rules.max_fsi is not None and len(prepared.wrappers) < 2:
        raise UsageError(
            "--max-fsi needs at least two wrappers: one has no range", "name another template to compare with"
        )
    if (rules.min_accuracy, rules.max_fsi) != (None, None):
        _check_gold(prepared)
    cases = sum(len(task.items) for task in prepared.tasks)
    for line in provable(rules.claim, cases, len(prepared.wrappers)):
        say(line)
    report = audit.run(study, out or _folder(study, prepared), say=say, progress=progress, confirm=confirm)
    return verdict(report.path, rules, prepared), report


def verdict(run: Path, rules: Rules, prepared: prepare.Prepared) -> Verdict:
    """Judge what a run holds of a study: an earlier one may have put other templates into the same folder."""
    parser = prepared.readers[0][0].name
    with Store(run, writable=False) as store:
        id_ = store.parsers()[parser]
        cells = {key: cell for key, cell in store.cells().items() if _is_of(cell, prepared)}
        measured = measure(parser, cells, store.totals(), store.tallies(id_), {}, store.clusters())
        found = measures(measured)
        return judge(rules, [*found, *_unmeasured(prepared, found)], parser)


def _is_of(cell: CellKey, prepared: prepare.Prepared) -> bool:
    study = prepared.study
    return (
        cell.model in {spec.alias for spec in study.specs}
        and cell.task in {task.name for task in prepared.tasks}
        and cell.wrapper in {wrapper.name for wrapper in prepared.wrappers}
        and cell.arm.partition("@")[0] in study.enforce
    )


def _unmeasured(prepared: prepare.Prepared, found: Sequence[Measure]) -> list[Measure]:
    """Arms that a model refused: they were asked for, and nothing is known of them."""
    seen = {one.model for one in found}
    wanted = [_named(spec.alias, enforce) for spec in prepared.study.specs for enforce in prepared.study.enforce]
    missing = [name for name in wanted if not any(one == name or one.startswith(f"{name[:-1]}@") for one in seen)]
    names = " / ".join(wrapper.name for wrapper in prepared.wrappers)
    kinds: tuple[Literal["parseability", "accuracy", "fsi"], ...] = ("parseability", "accuracy", "fsi")
    return [Measure(kind, f"{name}, refused", names, None, 0, 0, 0) for name in missing for kind in kinds]


def _named(model: str, arm: str) -> str:
    return model if arm == "none" else f"{model} ({arm})"


def check(rules: Rules, study: Study) -> None:
    """Rules and a study that can be judged. Raises UsageError."""
    limits = {
        "--min-parseability": rules.min_parseability,
        "--min-accuracy": rules.min_accuracy,
        "--max-fsi": rules.max_fsi,
    }
    if not any(limit is not None for limit in limits.values()):
        raise UsageError("the gate has no rule", f"give at least one of {', '.join(limits)}")
    for option, limit in limits.items():
        if limit is not None and not 0 <= limit <= 1:
            raise UsageError(f"{option} {limit:g}: must be between 0 and 1")
    if len(study.parsers) != 1:
        raise UsageError(f"a gate reads with one parser, not {len(study.parsers)}", "--parser strict")


def provable(claim: Claim, cases: int, wrappers: int) -> list[str]:
    """The tightest thresholds that a design can prove, to be said before it spends anything."""
    if claim == "suite":
        return [f"{cases} cases, all judged as they are: one case moves a rate by {1 / cases:.3f}"]
    best = intervals.best_provable(cases)
    lines = [
        f"{cases} cases, all parsed: parseability >= {best:.3f} at best; all correct: accuracy >= {best:.3f} at best"
    ]
    if wrappers > 1:
        bounds = simultaneous.range_bounds(np.ones((wrappers, cases)), 0).interval
        lines += (
            [f"{cases} cases, all alike under {wrappers} wrappers: FSI <= {bounds[1]:.3f} at best"] if bounds else []
        )
    return lines


def measures(measured: Measured) -> list[Measure]:
    """What can be judged: parseability and accuracy per (model and arm, wrapper), FSI per model and arm, pooled over
    all cases."""
    groups: dict[str, dict[str, list[Cell]]] = {}
    for cell in measured.cells:
        name = _named(cell.key.model, cell.key.arm)
        groups.setdefault(name, {}).setdefault(cell.key.wrapper, []).append(cell)
    found = []
    for model, wrappers in groups.items():
        for wrapper, cells in wrappers.items():
            found.append(_rate("parseability", model, wrapper, cells))
            found.append(_rate("accuracy", model, wrapper, cells))
        if len(wrappers) > 1 or len(groups) == 1:
            found.append(_fsi(model, wrappers))
    return found


def _rate(name: str, model: str, wrapper: str, cells: list[Cell]) -> Measure:
    counts = [cell.parsed if name == "parseability" else cell.correct for cell in cells]
    means = [cell.item_parsed if name == "parseability" else cell.item_correct for cell in cells]
    n, missing, items = sum(c.n or 0 for c in cells), sum(c.missing for c in cells), _items(cells)
    known = [count for count in counts if count is not None]
    if not n or len(known) < len(counts):
        return Measure(name, model, wrapper, None, n, items, missing)  # type: ignore[arg-type]
    per_item = np.concatenate([mean for mean in means if mean is not None])
    clusters = np.concatenate([cell.units for cell in cells if cell.units is not None])
    low = intervals.cell_interval(per_item, clusters=clusters, side="lower").interval
    high = intervals.cell_interval(per_item, clusters=clusters, side="upper").interval
    return Measure(
        name=name,  # type: ignore[arg-type]
        model=model,
        wrapper=wrapper,
        value=sum(known) / n,
        n=n,
        items=items,
        missing=missing,
        low=low[0] if low else None,
        high=high[1] if high else None,
        worst=sum(known) / (n + missing),
        best=(sum(known) + missing) / (n + missing),
        seeds=_over_seeds([_seed_rates(name, cells)]),
    )


def _fsi(model: str, wrappers: dict[str, list[Cell]]) -> Measure:
    name = " / ".join(wrappers)
    rates = [_rate("accuracy", model, wrapper, cells) for wrapper, cells in wrappers.items()]
    n, missing, items = sum(r.n for r in rates), sum(r.missing for r in rates), min(r.items for r in rates)
    values = [rate.value for rate in rates if rate.value is not None]
    if len(values) < len(rates) or len(rates) < 2:
        return Measure("fsi", model, name, None, n, items, missing)
    worst = [rate.worst or 0.0 for rate in rates]
    best = [rate.best or 0.0 for rate in rates]
    bounds = _bounds(list(wrappers.values()))
    return Measure(
        name="fsi",
        model=model,
        wrapper=name,
        value=max(values) - min(values),
        n=n,
        items=items,
        missing=missing,
        low=bounds[0] if bounds else None,
        high=bounds[1] if bounds else None,
        worst=max(0.0, max(worst) - min(best)),
        best=max(best) - min(worst),
        seeds=_over_seeds([_seed_rates("accuracy", cells) for cells in wrappers.values()]),
    )


def _bounds(wrappers: list[list[Cell]]) -> Interval | None:
    """Simultaneous bounds of the range over wrappers, from the cases that every wrapper answered."""
    tables = [{cell.key.task: cell for cell in cells} for cells in wrappers]
    tasks = sorted(set.intersection(*(set(table) for table in tables)))
    shared = [one for task in tasks if (one := common([table[task] for table in tables])) is not None]
    known = [(one.correct, one.units) for one in shared if one.correct is not None and len(one.items)]
    if not known:
        return None
    rates, clusters = np.hstack([rates for rates, _ in known]), np.concatenate([units for _, units in known])
    return simultaneous.range_bounds(rates, 0, clusters=clusters, confidence=0.95).interval


def _items(cells: list[Cell]) -> int:
    return sum(len(cell.items) for cell in cells if cell.items is not None)


def _seed_rates(name: str, cells: list[Cell]) -> dict[int, float]:
    """Seed -> the rate over these cells with that seed alone."""
    sums: dict[int, list[int]] = {}
    for _, seed, n, parsed, correct in by_seed(cells):
        total = sums.setdefault(seed, [0, 0])
        total[0] += (parsed if name == "parseability" else correct) or 0
        total[1] += n
    return {seed: hits / n for seed, (hits, n) in sums.items()}


def _over_seeds(rates: list[dict[int, float]]) -> Interval | None:
    """Smallest and largest value over single seeds: of the one rate, or of the range over several."""
    seeds = set.intersection(*(set(one) for one in rates)) if rates else set()
    if len(seeds) < 2:
        return None
    values = [
        max(one[s] for one in rates) - min(one[s] for one in rates) if len(rates) > 1 else rates[0][s] for s in seeds
    ]
    return min(values), max(values)


def _check_gold(prepared: prepare.Prepared) -> None:
    for task in prepared.tasks:
        for item in task.items:
            if item.gold is None:
                raise UsageError(f"task {task.name!r}, item {item.id!r} has no answer to judge accuracy by")


def _folder(study: Study, prepared: prepare.Prepared) -> Path:
    """A changed template or case gets a folder of its own, so that editing and gating again just works."""
    items = [item.id + item.question + (item.gold or "") for task in prepared.tasks for item in task.items]
    told = [study.digest, *(wrapper.digest for wrapper in prepared.wrappers), *items]
    mark = hashlib.sha256("\0".join(told).encode())
    return default_folder(f"gate-{prepared.wrappers[0].name}-{mark.hexdigest()[:8]}")
