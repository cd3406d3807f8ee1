"""Measured cells -> the rows of the summary, through the statistics. Pure; everything random comes from one seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from auditor import arms, evidence, fields, order, ranges
from auditor.evidence import Evidence
from auditor.figures import (
    Caveat,
    CellRow,
    Check,
    Counts,
    EndpointRow,
    MajorityVoteRow,
    ModelRow,
    RankingRow,
    RegressionRow,
    RunInfo,
    SeedDisagreementRow,
    SensitivityRow,
    Summary,
    TokenSpread,
    WinsRow,
)
from auditor.measure import GIVEN, Cell, Measured, on_subset
from auditor.records import Findings
from auditor.stats import bootstrap, intervals, regression, sensitivity, spread, votes, wins
from auditor.stats.inversion import RangeEstimate

SCHEMA = 1
_SPREAD = (
    *(f"spreads.{name}" for name in ("mean", "sd_sample", "sd_population", "lowest", "highest", "spread", "gain")),
    "gains.gain",
    "gains.best_wrappers",
)

Matched = Mapping[int, tuple[int, int, int | None]]
Upstream = tuple[str, str, str | None, str | None, str | None, int]
"""(model, server, provider, model returned, fingerprint, replies)."""
Split = Callable[[int, int], tuple[int, float, float, float]]
"""(best cell, worst cell) -> pairs that both answered, and their sums: content, cut by the limit, not compliant."""


Weighed = Mapping[evidence.Key, Evidence]
_NOTHING = RangeEstimate(None, None, None, None, None, None, 0)


class Reading(Struct, frozen=True):
    """All that one parser contributes: its cells, why replies gave no value, the matched subset's counts, how two
    cells differ pair by pair, and what of JSON answers is right field by field."""

    measured: Measured
    reasons: dict[int, dict[str, int]]
    matched: dict[int, tuple[int, int, int | None]]
    split: Split = lambda best, worst: (0, 0.0, 0.0, 0.0)
    by_field: fields.ByField = {}


def summarize(
    run: RunInfo,
    counts: Counts,
    preflight: Sequence[Check],
    readings: Sequence[Reading],
    spreads: Sequence[tuple[float, float, float]],
    caveats: Sequence[Caveat],
    findings: Sequence[Findings] = (),
    upstreams: Sequence[Upstream] = (),
) -> Summary:
    """The whole of `summary.json`."""
    weighed = {reading.measured.parser: _weighed(reading, run.seed) for reading in readings}
    sensitivity_rows = [row for reading in readings for row in _sensitivity(reading, weighed[reading.measured.parser])]
    cells = [row for reading in readings for row in _cells(reading)]
    scores = [row for name in _parsers(readings) for row in _models(name, sensitivity_rows, weighed[name], run.seed)]
    model_rows = order.placed(scores, cells)
    enforced = [row for reading in readings for row in arms.enforcement(reading.measured, findings)]
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
        regression=tuple(_regression(reading.measured) for reading in readings),
        wins=tuple(row for reading in readings for row in _wins(reading.measured)),
        seed_disagreement=tuple(_seed_disagreement(reading.measured) for reading in readings),
        majority_vote=tuple(_majority_vote(reading.measured.parser, cells) for reading in readings),
        token_spread=_token_spread(spreads, sensitivity_rows),
        rankings=tuple(row for reading in readings for row in _rankings(reading.measured)),
        warnings=(
            *caveats,
            *_caveats(cells, sensitivity_rows, model_rows),
            *arms.caveats(enforced),
            *order.caveats(model_rows),
            *fields.caveats(by_field),
            *ranges.caveats(spread_rows, gain_rows, first_rows),
            *evidence.caveats(sensitivity_rows),
        ),
        endpoints=tuple(_endpoint(found, upstreams) for found in findings),
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
    vote = _vote_accuracies(reading.measured)
    return [_cell(reading, cell, vote.get(cell.id)) for cell in reading.measured.cells]


def _cell(reading: Reading, cell: Cell, vote: float | None) -> CellRow:
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
        accuracy_ci=None if cell.item_correct is None else intervals.cell_interval(cell.item_correct).interval,
        accuracy_parsed=cell.accuracy_parsed,
        parseability=cell.parseability,
        parseability_ci=None if cell.item_parsed is None else intervals.cell_interval(cell.item_parsed).interval,
        missing=cell.missing,
        prompt_tokens_mean=cell.prompt_tokens_mean,
        completion_tokens_mean=cell.completion_tokens_mean,
        truncated=cell.truncated,
        majority_vote_accuracy=vote,
        reasons=reading.reasons.get(cell.id, {}),
    )


def _vote_accuracies(measured: Measured) -> dict[int, float]:
    """Cell id -> mean over items of the majority vote's score. Rows scored elsewhere name no value to vote with."""
    columns = measured.votes
    if not len(columns.group) or (measured.parser == GIVEN and _several_seeds(measured)):
        return {}
    scores = votes.vote_scores(columns.group, columns.count, columns.correct)
    cell_of_group = np.zeros(len(scores.group), np.int64)
    cell_of_group[columns.group] = columns.cell
    ids, position = np.unique(cell_of_group, return_inverse=True)
    means = np.bincount(position, scores.score) / np.bincount(position)
    known = {cell.id for cell in measured.cells if cell.correct is not None}
    return {int(id_): float(mean) for id_, mean in zip(ids, means, strict=True) if id_ in known}


def _several_seeds(measured: Measured) -> bool:
    return bool((np.bincount(measured.votes.group, measured.votes.count) > 1).any())


# Sensitivity ---------------------------------------------------------------------------------------------------


def _weighed(reading: Reading, seed: int) -> Weighed:
    return {family: evidence.weigh(cells, seed) for family, cells in reading.measured.families().items()}


def _sensitivity(reading: Reading, weighed: Weighed) -> list[SensitivityRow]:
    holm = evidence.adjusted({key: one.p for key, one in weighed.items()})
    return [_family(reading, key, cells, weighed[key], holm[key]) for key, cells in reading.measured.families().items()]


def _family(
    reading: Reading, family: evidence.Key, cells: list[Cell], weighed: Evidence, holm: float | None
) -> SensitivityRow:
    model, task, arm = family
    fsi, psi = weighed.fsi or _NOTHING, weighed.psi or _NOTHING
    parser, matched = reading.measured.parser, reading.matched
    names = tuple(cell.key.wrapper for cell in cells)
    rates = _rates([cell.accuracy for cell in cells])
    accuracy = sensitivity.fsi(rates)
    parseability = sensitivity.psi(_rates([cell.parseability for cell in cells]))
    n, content, cut, odd = 0, 0.0, 0.0, 0.0
    if accuracy.value is not None:
        n, content, cut, odd = reading.split(cells[accuracy.best[0]].id, cells[accuracy.worst[0]].id)
    subset = [on_subset(cell, matched.get(cell.id)) for cell in cells]
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
        p_holm=holm,
        p_cochran_q=weighed.p_cochran,
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
        format_truncated=cut / n if n else None,
        format_noncompliant=odd / n if n else None,
    )


def _rates(rates: list[float | None]) -> list[float]:
    """All of them, or none where one is not known: a range over the rest would be another range."""
    return [rate for rate in rates if rate is not None] if None not in rates else []


def _models(parser: str, rows: Sequence[SensitivityRow], weighed: Weighed, seed: int) -> list[ModelRow]:
    groups: dict[tuple[str, str], list[SensitivityRow]] = {}
    for row in rows:
        if row.parser == parser:
            groups.setdefault((row.model, row.arm), []).append(row)
    return [_model(parser, model, arm, tasks, weighed, seed) for (model, arm), tasks in groups.items()]


def _model(parser: str, model: str, arm: str, tasks: list[SensitivityRow], weighed: Weighed, seed: int) -> ModelRow:
    found = [weighed[model, task.task, arm] for task in tasks]
    fsi_star, psi_star = (evidence.over_tasks([getattr(one, name) for one in found]) for name in ("fsi", "psi"))
    fsi, psi, nfsi, matched = (
        _macro([getattr(task, name) for task in tasks], seed) for name in ("fsi", "psi", "nfsi", "fsi_matched")
    )
    return ModelRow(
        model=model,
        arm=arm,
        parser=parser,
        tasks=len(tasks),
        fsi=fsi.mean,
        fsi_ci_paper=fsi.interval,
        psi=psi.mean,
        psi_ci_paper=psi.interval,
        nfsi=nfsi.mean,
        nfsi_ci_paper=nfsi.interval,
        fsi_matched=matched.mean,
        fsi_star=fsi_star.mean,
        fsi_star_ci=fsi_star.interval,
        psi_star=psi_star.mean,
        psi_star_ci=psi_star.interval,
    )


def _macro(values: list[float | None], seed: int) -> bootstrap.MacroMean:
    """The same seed for each statistic gives the same resampled tasks, so that they stay paired."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return bootstrap.MacroMean(None, None, len(values), "a task has no value")
    return bootstrap.macro_means([known], seed)[0]


# Across cells --------------------------------------------------------------------------------------------------


def _regression(measured: Measured) -> RegressionRow:
    cells = [cell for cell in measured.cells if cell.accuracy is not None and cell.parseability is not None]
    rates = np.array([(cell.accuracy, cell.parseability) for cell in cells], float).reshape(-1, 2)
    if any(cell.n is None for cell in cells):
        status = "no_weights: n, by which cells are weighed, is not known of every cell"
        r, slope = regression.pearson_r(*rates.T), regression.tautology_slope(*rates.T)
        return RegressionRow(measured.parser, status, len(cells), pearson_r=r, tautology_slope=slope)
    result = regression.accuracy_on_parseability(
        rates[:, 0],
        rates[:, 1],
        [
            [f"{cell.key.model}\0{cell.key.arm}" for cell in cells],
            [cell.key.task for cell in cells],
            [cell.key.wrapper for cell in cells],
        ],
        [float(cell.n or 0) for cell in cells],
    )
    status = result.status if result.reason is None else f"{result.status}: {result.reason}"
    row = RegressionRow(
        measured.parser, status, result.cells, pearson_r=result.pearson_r, tautology_slope=result.tautology_slope
    )
    fit = result.fit
    if fit is None:
        return row
    return RegressionRow(
        measured.parser,
        status,
        result.cells,
        fit.beta,
        fit.se,
        fit.df,
        fit.p,
        fit.partial_r2,
        result.pearson_r,
        result.tautology_slope,
    )


def _wins(measured: Measured) -> list[WinsRow]:
    cells = [cell for cell in measured.cells if cell.accuracy is not None]
    if not cells:
        return []
    names = list(dict.fromkeys(cell.key.wrapper for cell in cells))
    pairs = list(dict.fromkeys((cell.key.model, cell.key.task, cell.key.arm) for cell in cells))
    counted = wins.wins(
        [pairs.index((cell.key.model, cell.key.task, cell.key.arm)) for cell in cells],
        [names.index(cell.key.wrapper) for cell in cells],
        [cell.accuracy or 0.0 for cell in cells],
        len(names),
    )
    return [WinsRow(measured.parser, name, count) for name, count in zip(names, counted.wins, strict=True)]


def _seed_disagreement(measured: Measured) -> SeedDisagreementRow:
    if measured.parser == GIVEN or not len(measured.votes.group):
        return SeedDisagreementRow(measured.parser, None, 0)
    found = votes.seed_disagreement(measured.votes.group, measured.votes.count)
    return SeedDisagreementRow(measured.parser, found.share, found.groups)


def _majority_vote(parser: str, cells: Sequence[CellRow]) -> MajorityVoteRow:
    changes = [
        cell.majority_vote_accuracy - cell.accuracy
        for cell in cells
        if cell.parser == parser and cell.majority_vote_accuracy is not None and cell.accuracy is not None
    ]
    if not changes:
        return MajorityVoteRow(parser, None, None, 0)
    return MajorityVoteRow(parser, float(np.mean(changes)), float(np.max(np.abs(changes))), len(changes))


def _token_spread(spreads: Sequence[tuple[float, float, float]], rows: Sequence[SensitivityRow]) -> TokenSpread:
    columns = np.array(spreads, dtype=float).reshape(-1, 3)
    found = spread.summarize((columns[:, 1] - columns[:, 0]) / np.where(columns[:, 2] > 0, columns[:, 2], 1.0))
    matched = [row.fsi_matched for row in rows if row.parser == (rows[0].parser if rows else "")]
    known = [value for value in matched if value is not None]
    complete = bool(known) and len(known) == len(matched)
    return TokenSpread(found.median, found.share_within, found.groups, float(np.mean(known)) if complete else None)


def _rankings(measured: Measured) -> list[RankingRow]:
    """Models by mean accuracy over tasks, under each wrapper, where all of them have all its tasks."""
    table: dict[tuple[str, str], dict[str, dict[str, float | None]]] = {}
    for cell in measured.cells:
        model = table.setdefault((cell.key.arm, cell.key.wrapper), {}).setdefault(cell.key.model, {})
        model[cell.key.task] = cell.accuracy
    rows = []
    for (arm, wrapper), models in table.items():
        tasks = [set(accuracies) for accuracies in models.values()]
        known = all(value is not None for accuracies in models.values() for value in accuracies.values())
        if len(models) < 2 or not known or any(one != tasks[0] for one in tasks):
            continue
        means = {model: float(np.mean([value or 0.0 for value in by.values()])) for model, by in models.items()}
        order = sorted(means, key=lambda model: (-means[model], model))
        rows.append(RankingRow(measured.parser, arm, wrapper, tuple(order), tuple(means[name] for name in order)))
    return rows


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


# What a reader must know ---------------------------------------------------------------------------------------


def _caveats(cells: Sequence[CellRow], rows: Sequence[SensitivityRow], models: Sequence[ModelRow]) -> list[Caveat]:
    return [
        *_missing(cells),
        *_unknown_accuracy(cells),
        *_unknown_parseability(cells),
        *_unknown_n(cells),
        *_no_items(cells),
        *_single_wrapper(rows),
        *_different_wrappers(rows),
        *_single_task(models),
        *_no_votes(cells),
        *_no_split(rows),
        *_no_tokens(cells),
        *_no_matched(cells, rows),
    ]


def _missing(cells: Sequence[CellRow]) -> list[Caveat]:
    marked = {
        (cell.model, cell.task, cell.wrapper, cell.arm): f"{cell.missing} of {cell.missing + (cell.n or 0)}"
        for cell in cells
        if cell.lossy
    }
    return [
        Caveat("missing", f"{', '.join(key[:3])}{_arm(key[3])}: {share} generations are missing", ("cells.accuracy",))
        for key, share in marked.items()
    ]


def _arm(name: str) -> str:
    return "" if name == "none" else f" ({name})"


def _unknown_accuracy(cells: Sequence[CellRow]) -> list[Caveat]:
    where = {(cell.task, cell.parser) for cell in cells if cell.accuracy is None and cell.parseability is not None}
    return [
        Caveat("no_gold", f"{task}: not every item has a gold answer, so accuracy and FSI are not known ({parser})",
               ("cells.accuracy", "sensitivity.fsi", "models.accuracy", *_SPREAD))
        for task, parser in sorted(where)
    ]  # fmt: skip


def _unknown_parseability(cells: Sequence[CellRow]) -> list[Caveat]:
    if not any(cell.parseability is None and cell.accuracy is not None for cell in cells):
        return []
    message = "the imported cells say nothing of parseability"
    fields = (
        "cells.parseability",
        "cells.accuracy_parsed",
        "sensitivity.psi",
        "models.parseability",
        "regression.beta",
        "regression.pearson_r",
        "regression.tautology_slope",
    )
    return [Caveat("no_parseability", message, fields)]


def _unknown_n(cells: Sequence[CellRow]) -> list[Caveat]:
    if all(cell.n is not None for cell in cells):
        return []
    message = "the imported cells do not say n: there are no counts, no weights for a regression, no comparison of arms"
    fields = ("cells.n", "cells.parsed", "cells.correct", "regression.beta", "regression.se", "regression.p")
    return [Caveat("no_n", message, (*fields, "regression.partial_r2", "regression.df", "enforcement"))]


def _no_items(cells: Sequence[CellRow]) -> list[Caveat]:
    if not any(cell.items is None and cell.accuracy is not None for cell in cells):
        return []
    message = "a table of cells has no items: intervals, bounds and tests need them, and reply lengths need replies"
    fields = ("items", "accuracy_ci", "parseability_ci", "completion_tokens_mean", "truncated")
    told = (*(f"cells.{name}" for name in fields), "sensitivity.fsi_bounds_simultaneous")
    return [Caveat("no_items", message, told)]


def _single_wrapper(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    if not any(len(row.wrappers) == 1 for row in rows):
        return []
    message = "with one wrapper there is no range over wrappers: FSI and PSI need at least two"
    return [Caveat("one_wrapper", message, ("sensitivity.fsi", "sensitivity.psi", "sensitivity.nfsi", *_SPREAD))]


def _different_wrappers(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    counts = sorted({len(row.wrappers) for row in rows if len(row.wrappers) > 1})
    if len(counts) < 2:
        return []
    said = ", ".join(str(count) for count in counts)
    return [Caveat("different_f", f"ranges are over different numbers of wrappers ({said}): FSI grows with F")]


def _single_task(models: Sequence[ModelRow]) -> list[Caveat]:
    if not any(row.tasks == 1 and row.fsi is not None for row in models):
        return []
    message = "the paper's interval resamples tasks, and one task cannot be resampled"
    return [Caveat("one_task", message, ("models.fsi_ci_paper", "models.psi_ci_paper", "models.nfsi_ci_paper"))]


def _no_split(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    if not any(row.format_part is None and row.fsi is not None for row in rows):
        return []
    message = "what a range is made of is seen pair by pair, on replies that the best and the worst wrapper both have"
    parts = ("format_part", "content_part", "format_truncated", "format_noncompliant")
    return [Caveat("no_split", message, tuple(f"sensitivity.{part}" for part in parts))]


def _no_votes(cells: Sequence[CellRow]) -> list[Caveat]:
    if not any(cell.majority_vote_accuracy is None and cell.accuracy is not None for cell in cells):
        return []
    message = "rows or cells scored elsewhere name no value to vote with"
    fields = ("majority_vote.mean_change", "majority_vote.largest_change", "seed_disagreement.share")
    return [Caveat("no_votes", message, ("cells.majority_vote_accuracy", *fields))]


def _no_tokens(cells: Sequence[CellRow]) -> list[Caveat]:
    if all(cell.prompt_tokens_mean is not None for cell in cells if cell.n != 0):
        return []
    message = "prompt tokens are not known, so there is no token spread and no matched subset"
    fields = ("cells.prompt_tokens_mean", "token_spread", "sensitivity.fsi_matched", "sensitivity.psi_matched")
    return [Caveat("no_tokens", message, fields)]


def _no_matched(cells: Sequence[CellRow], rows: Sequence[SensitivityRow]) -> list[Caveat]:
    known = all(cell.prompt_tokens_mean is not None for cell in cells if cell.n != 0)
    if not known or all(row.fsi_matched is not None or row.fsi is None for row in rows):
        return []
    message = (
        "for some tasks no item has a token spread of at most 5 % over all wrappers: their matched subset is empty"
    )
    fields = ("sensitivity.fsi_matched", "sensitivity.psi_matched", "models.fsi_matched", "token_spread.fsi_matched")
    return [Caveat("no_matched", message, fields)]
