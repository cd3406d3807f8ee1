"""Measured cells -> the rows of the summary, through the statistics. Pure; everything random comes from one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from auditor import across, arms, comparisons, evidence, fields, gaps, groups, order, ranges
from auditor.evidence import Evidence, OverTasks
from auditor.figures import (
    Caveat,
    CellRow,
    Check,
    Counts,
    EndpointRow,
    Interval,
    ModelRow,
    RunInfo,
    SensitivityRow,
    Summary,
)
from auditor.measure import NO_SPREADS, Cell, Family, FloatArray, Measured, Spreads, Subset, on_subset, split, subsets
from auditor.records import Findings
from auditor.stats import bootstrap, intervals, sensitivity, spread
from auditor.stats.inversion import RangeEstimate

SCHEMA = 1
Upstream = tuple[str, str, str | None, str | None, str | None, int]
"""(model, server, provider, model returned, fingerprint, replies)."""
Weighed = Mapping[Family, Evidence]
_NOTHING = RangeEstimate(None, None, None, None, None, None, 0)


class Reading(Struct, frozen=True):
    """All that one parser contributes: its cells, why replies gave no value, and what of JSON answers is right field by
    field."""

    measured: Measured
    reasons: dict[int, dict[str, int]] = {}
    by_field: fields.ByField = {}


def summarize(
    run: RunInfo,
    counts: Counts,
    preflight: Sequence[Check],
    readings: Sequence[Reading],
    caveats: Sequence[Caveat],
    findings: Sequence[Findings] = (),
    upstreams: Sequence[Upstream] = (),
    spreads: Spreads = NO_SPREADS,
    subjects: Mapping[int, str] = MappingProxyType({}),
) -> Summary:
    """The whole of `summary.json`. `subjects` are the groups of items that have one."""
    measured = [reading.measured for reading in readings]
    weighed = {one.parser: _weighed(one, run.seed) for one in measured}
    sensitivity_rows = [row for one in measured for row in _sensitivity(one, weighed[one.parser], spreads)]
    cells = [row for reading in readings for row in _cells(reading)]
    model_rows = order.placed(_models(sensitivity_rows, weighed, run.seed), cells)
    enforced = [row for reading in readings for row in arms.enforcement(reading.measured, findings)]
    compared = comparisons.comparisons(measured, run.seed)
    aa = [row for one in measured for row in across.seed_noise(one)]
    fits = [row for one in measured for row in across.regressions(one)]
    grouped = [row for one in measured for row in groups.rows(one, subjects, run.seed)]
    by_field = [row for reading in readings for row in fields.rows(reading.measured, reading.by_field)]
    spread_rows, gain_rows, first_rows = ranges.spreads(cells), ranges.gains(cells), ranges.firsts(cells)
    return Summary(
        schema=SCHEMA,
        run=run,
        counts=counts,
        preflight=tuple(preflight),
        parsers=tuple(_parsers(readings)),
        cells=tuple(cells),
        sensitivity=tuple(sensitivity_rows),
        models=tuple(model_rows),
        regression=tuple(fits),
        wins=tuple(row for one in measured for row in across.win_counts(one, _contenders(weighed[one.parser]))),
        seed_disagreement=tuple(row for one in measured for row in across.seed_disagreement(one)),
        majority_vote=tuple(row for one in measured for row in across.majority_vote(one.parser, cells)),
        token_spread=across.token_spread(spreads.spread, sensitivity_rows),
        rankings=tuple(row for one in measured for row in across.rankings(one)),
        warnings=(
            *caveats,
            *gaps.caveats(cells, sensitivity_rows, model_rows, fits, grouped, aa),
            *arms.caveats(enforced),
            *order.caveats(model_rows),
            *fields.caveats(by_field),
            *ranges.caveats(spread_rows, gain_rows, first_rows),
            *comparisons.caveats(compared),
        ),
        endpoints=tuple(_endpoint(found, upstreams) for found in findings),
        seed_noise=tuple(aa),
        reversals=tuple(row for one in measured for row in order.reversals(one, run.seed)),
        comparisons=tuple(compared),
        groups=tuple(grouped),
        enforcement=tuple(enforced),
        order_changes=tuple(order.order_changes(model_rows, cells)),
        fields=tuple(by_field),
        spreads=tuple(spread_rows),
        gains=tuple(gain_rows),
        firsts=tuple(first_rows),
    )


def _parsers(readings: Sequence[Reading]) -> list[str]:
    return [reading.measured.parser for reading in readings]


# Cells ---------------------------------------------------------------------------------------------------------


def _cells(reading: Reading) -> list[CellRow]:
    return [_cell(reading, cell) for cell in reading.measured.cells]


def _cell(reading: Reading, cell: Cell) -> CellRow:
    return CellRow(
        model=cell.key.model,
        task=cell.key.task,
        wrapper=cell.key.wrapper,
        arm=cell.key.arm,
        parser=reading.measured.parser,
        n=cell.n,
        items=None if cell.items is None else len(cell.items),
        parsed=cell.parsed,
        correct=cell.correct,
        accuracy=cell.accuracy,
        accuracy_ci=_interval(cell, cell.item_correct),
        accuracy_parsed=cell.accuracy_parsed,
        parseability=cell.parseability,
        parseability_ci=_interval(cell, cell.item_parsed),
        missing=cell.missing,
        prompt_tokens_mean=cell.prompt_tokens_mean,
        completion_tokens_mean=cell.completion_tokens_mean,
        truncated=cell.truncated,
        majority_vote_accuracy=across.vote_accuracy(reading.measured, cell),
        reasons=reading.reasons.get(cell.id, {}),
    )


def _interval(cell: Cell, rates: FloatArray | None) -> Interval | None:
    return None if rates is None else intervals.cell_interval(rates, clusters=cell.units).interval


# Sensitivity ---------------------------------------------------------------------------------------------------


def _weighed(measured: Measured, seed: int) -> Weighed:
    return {family: evidence.weigh(cells, seed) for family, cells in measured.families().items()}


def _sensitivity(measured: Measured, weighed: Weighed, spreads: Spreads) -> list[SensitivityRow]:
    holm = evidence.adjusted({key: one.p for key, one in weighed.items()})
    q_holm = evidence.adjusted({key: one.p_cochran for key, one in weighed.items()})
    matched = subsets(spreads, spread.within(spreads.spread), measured)
    return [
        _family(measured.parser, key, cells, weighed[key], (holm[key], q_holm[key]), matched.get(key))
        for key, cells in measured.families().items()
    ]


def _contenders(weighed: Weighed) -> dict[Family, tuple[str, ...]]:
    return {key: one.contenders for key, one in weighed.items()}


def _family(
    parser: str,
    family: Family,
    cells: list[Cell],
    weighed: Evidence,
    holm: tuple[float | None, float | None],
    matched: Subset | None,
) -> SensitivityRow:
    model, task, arm = family
    fsi, psi = weighed.fsi or _NOTHING, weighed.psi or _NOTHING
    names = tuple(cell.key.wrapper for cell in cells)
    rates = _rates([cell.accuracy for cell in cells])
    accuracy = sensitivity.fsi(rates)
    parseability = sensitivity.psi(_rates([cell.parseability for cell in cells]))
    n, content, cut, odd, told = 0, 0, 0, 0, False
    if accuracy.value is not None:
        n, content, cut, odd = split(cells[accuracy.best[0]], cells[accuracy.worst[0]])
        told = None not in (cells[accuracy.best[0]].truncated, cells[accuracy.worst[0]].truncated)
    subset = [on_subset(cell, matched) for cell in cells]
    return SensitivityRow(
        model=model,
        task=task,
        arm=arm,
        parser=parser,
        wrappers=names,
        fsi=accuracy.value,
        psi=parseability.value,
        nfsi=sensitivity.nfsi(rates),
        accuracy_min=accuracy.low,
        accuracy_max=accuracy.high,
        accuracy_mean=accuracy.mean,
        best_wrappers=tuple(names[index] for index in accuracy.best),
        worst_wrappers=tuple(names[index] for index in accuracy.worst),
        fsi_matched=sensitivity.fsi(_rates([cell.accuracy if cell else None for cell in subset])).value,
        psi_matched=sensitivity.psi(_rates([cell.parseability if cell else None for cell in subset])).value,
        fsi_floor=fsi.floor,
        fsi_star=fsi.adjusted,
        fsi_ci=fsi.interval,
        fsi_bounds_simultaneous=weighed.fsi_bounds,
        p_wrapper_effect=weighed.p,
        p_wrapper_effect_mid=weighed.mid_p,
        p_holm=holm[0],
        p_cochran_q=weighed.p_cochran,
        p_cochran_q_holm=holm[1],
        psi_floor=psi.floor,
        psi_star=psi.adjusted,
        psi_ci=psi.interval,
        psi_bounds_simultaneous=weighed.psi_bounds,
        not_separable=weighed.contenders,
        p_best=weighed.chances,
        fsi_detectable=weighed.detectable,
        items_for_lower_floor=weighed.items_needed,
        format_part=(cut + odd) / n if n else None,
        content_part=content / n if n else None,
        format_truncated=cut / n if n and told else None,
        format_noncompliant=odd / n if n and told else None,
    )


def _rates(rates: list[float | None]) -> list[float]:
    """All of them, or none where one is not known: a range over the rest would be another range."""
    return [rate for rate in rates if rate is not None] if None not in rates else []


def _models(rows: Sequence[SensitivityRow], weighed: Mapping[str, Weighed], seed: int) -> list[ModelRow]:
    groups: dict[tuple[str, str, str], list[SensitivityRow]] = {}
    for row in rows:
        groups.setdefault((row.parser, row.model, row.arm), []).append(row)
    families = [[weighed[row.parser][row.model, row.task, row.arm] for row in tasks] for tasks in groups.values()]
    return [
        _model(tasks, *found, seed)
        for tasks, found in zip(groups.values(), evidence.over_tasks(families, seed), strict=True)
    ]


def _model(tasks: list[SensitivityRow], fsi_star: OverTasks, psi_star: OverTasks, seed: int) -> ModelRow:
    fsi, psi, nfsi, matched = (
        _macro([getattr(task, name) for task in tasks], seed) for name in ("fsi", "psi", "nfsi", "fsi_matched")
    )
    return ModelRow(
        model=tasks[0].model,
        arm=tasks[0].arm,
        parser=tasks[0].parser,
        tasks=len(tasks),
        fsi=fsi.mean,
        fsi_ci_paper=fsi.interval,
        psi=psi.mean,
        psi_ci_paper=psi.interval,
        nfsi=nfsi.mean,
        nfsi_ci_paper=nfsi.interval,
        fsi_matched=matched.mean,
        fsi_star=fsi_star.mean,
        fsi_star_ci=fsi_star.sampled,
        psi_star=psi_star.mean,
        psi_star_ci=psi_star.sampled,
        fsi_star_ci_fixed=fsi_star.fixed,
        psi_star_ci_fixed=psi_star.fixed,
        fsi_ci_hierarchical=fsi_star.hierarchical,
        psi_ci_hierarchical=psi_star.hierarchical,
    )


def _macro(values: list[float | None], seed: int) -> bootstrap.MacroMean:
    """The same seed for each statistic gives the same resampled tasks, so that they stay paired."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return bootstrap.MacroMean(None, None, len(values), "a task has no value")
    return bootstrap.macro_means([known], seed)[0]


# Endpoints -------------------------------------------------------------------------------------------------------


def _endpoint(found: Findings, upstreams: Sequence[Upstream]) -> EndpointRow:
    ours = [row[2:] for row in upstreams if row[:2] == (found.model, found.server)]
    counted: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for provider, model, _, replies in ours:
        for name, counts in zip((provider, model), counted, strict=True):
            if name is not None:
                counts[name] = counts.get(name, 0) + replies
    return EndpointRow(
        model=found.model,
        server=found.server,
        provider=found.provider,
        build=found.build,
        seed=f"{found.seed}: {found.seed_said}" if found.seed_said else found.seed,
        adaptations=found.adaptations,
        canaries=found.canaries,
        routing=found.routing,
        upstreams=counted[0],
        models_returned=counted[1],
        fingerprints=len({row[2] for row in ours} - {None}),
    )
