"""Measured cells -> what is said across them: regression, wins, seeds and votes, rankings, token spread. Pure.

Arms are never mixed: each has rows of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import structs

from auditor.figures import (
    CellRow,
    MajorityVoteRow,
    RankingRow,
    RegressionRow,
    SeedDisagreementRow,
    SeedNoiseRow,
    SensitivityRow,
    TokenSpread,
    WinsRow,
)
from auditor.measure import GIVEN, Cell, Family, FloatArray, Measured, single_seeds
from auditor.stats import regression, seeds, spread, votes, wins

# Regression ----------------------------------------------------------------------------------------------------


def regressions(measured: Measured) -> list[RegressionRow]:
    """The paper's regression of accuracy on parseability, and that of accuracy among parsed replies."""
    return [_regression(measured.parser, arm, cells) for arm, cells in measured.arms().items()]


def _regression(parser: str, arm: str, cells: Sequence[Cell]) -> RegressionRow:
    known = [cell for cell in cells if cell.accuracy is not None and cell.parseability is not None]
    accuracy, parseability = np.array([(cell.accuracy, cell.parseability) for cell in known], float).reshape(-1, 2).T
    if any(cell.n is None for cell in known):
        status = "no_weights: n, by which cells are weighed, is not known of every cell"
        r, slope = regression.pearson_r(accuracy, parseability), regression.tautology_slope(accuracy, parseability)
        return RegressionRow(parser, arm, status, len(known), pearson_r=r, tautology_slope=slope, parsed_status=status)
    n = np.array([cell.n or 0 for cell in known], float)
    whole = regression.accuracy_on_parseability(accuracy, parseability, _factors(known), n)
    # of what was not parsed nothing is known: weight 0
    among = np.divide(accuracy, parseability, out=np.zeros(len(known)), where=parseability > 0)
    parsed = regression.accuracy_on_parseability(among, parseability, _factors(known), n * parseability)
    row = RegressionRow(
        parser=parser,
        arm=arm,
        status=_status(whole),
        cells=whole.cells,
        pearson_r=whole.pearson_r,
        tautology_slope=whole.tautology_slope,
        parsed_status=_status(parsed),
    )
    if fit := whole.fit:
        row = structs.replace(row, beta=fit.beta, se=fit.se, df=fit.df, p=fit.p, partial_r2=fit.partial_r2)
    if fit := parsed.fit:
        row = structs.replace(row, parsed_slope=fit.beta, parsed_se=fit.se, parsed_df=fit.df, parsed_p=fit.p)
    return row


def _factors(cells: Sequence[Cell]) -> list[list[str]]:
    return [[getattr(cell.key, name) for cell in cells] for name in ("model", "task", "wrapper")]


def _status(found: regression.Regression) -> str:
    return found.status if found.reason is None else f"{found.status}: {found.reason}"


# Wins ----------------------------------------------------------------------------------------------------------


def win_counts(measured: Measured, contenders: Mapping[Family, Sequence[str]]) -> list[WinsRow]:
    """How often each wrapper is best, and how often it is among the `contenders`, by (model, task, arm): those that
    cannot be told from the best."""
    rows = []
    for arm, every in measured.arms().items():
        cells = [cell for cell in every if cell.accuracy is not None]
        names = list(dict.fromkeys(cell.key.wrapper for cell in cells))
        pairs = list(dict.fromkeys((cell.key.model, cell.key.task) for cell in cells))
        counted = wins.wins(
            [pairs.index((cell.key.model, cell.key.task)) for cell in cells],
            [names.index(cell.key.wrapper) for cell in cells],
            [cell.accuracy or 0.0 for cell in cells],
            len(names),
        )
        sets = [found for (_, _, where), found in contenders.items() if where == arm and found]
        for name, count in zip(names, counted.wins, strict=True):
            among = sum(name in found for found in sets) if sets else None
            rows.append(WinsRow(measured.parser, arm, name, count, counted.pairs, among))
    return rows


# Seeds ---------------------------------------------------------------------------------------------------------


def vote_accuracy(measured: Measured, cell: Cell) -> float | None:
    """Mean over items of the majority vote's score. Rows scored elsewhere name no value to vote with."""
    if cell.votes is None or cell.correct is None or (measured.parser == GIVEN and _several_seeds(cell)):
        return None
    return float(votes.vote_scores(cell.votes.item, cell.votes.count, cell.votes.correct).score.mean())


def _several_seeds(cell: Cell) -> bool:
    return cell.items is not None and (cell.n or 0) > len(cell.items)


def seed_disagreement(measured: Measured) -> list[SeedDisagreementRow]:
    """How many items are answered otherwise under another seed."""
    rows = []
    for arm, cells in measured.arms().items():
        said = [cell.votes for cell in cells if cell.votes is not None and measured.parser != GIVEN]
        found = [votes.seed_disagreement(one.item, one.count) for one in said]
        groups = sum(one.groups for one in found)
        differing = sum((one.share or 0.0) * one.groups for one in found)
        rows.append(SeedDisagreementRow(measured.parser, arm, differing / groups if groups else None, groups))
    return rows


def majority_vote(parser: str, cells: Sequence[CellRow]) -> list[MajorityVoteRow]:
    """What voting over seeds changes."""
    changes: dict[str, list[float]] = {cell.arm: [] for cell in cells if cell.parser == parser}
    for cell in cells:
        if cell.parser == parser and cell.majority_vote_accuracy is not None and cell.accuracy is not None:
            changes[cell.arm].append(cell.majority_vote_accuracy - cell.accuracy)
    return [
        MajorityVoteRow(parser, arm, float(np.mean(found)), float(np.max(np.abs(found))), len(found))
        if found
        else MajorityVoteRow(parser, arm, None, None, 0)
        for arm, found in changes.items()
    ]


def seed_noise(measured: Measured) -> list[SeedNoiseRow]:
    """A/A: how far apart runs are that differ in nothing but the seed, pair by pair on the items that both answered."""
    rows = []
    for arm, cells in measured.arms().items():
        found = [one for cell in cells if (one := single_seeds(cell)) is not None]
        gaps = [(one, seeds.gaps(one.answered, one.parsed)) for one in found]
        told, parsed = [one for one, gap in gaps if gap.pairs], [gap for _, gap in gaps if gap.pairs]
        right = [seeds.gaps(one.answered, one.correct) for one in told if one.correct is not None]
        known = bool(told) and len(right) == len(told)
        rows.append(
            SeedNoiseRow(
                parser=measured.parser,
                arm=arm,
                cells=len(told),
                seeds=min((len(one.answered) for one in told), default=None),
                accuracy_difference=seeds.mean(right) if known else None,
                accuracy_range=seeds.largest(right) if known else None,
                accuracy_excess=seeds.excess(right) if known else None,
                parseability_difference=seeds.mean(parsed),
                parseability_range=seeds.largest(parsed),
                parseability_excess=seeds.excess(parsed),
            )
        )
    return rows


# Prompts and places --------------------------------------------------------------------------------------------


def token_spread(spreads: FloatArray, rows: Sequence[SensitivityRow]) -> TokenSpread:
    """Token spreads (G,), and FSI over the matched subset under the first parser."""
    found = spread.summarize(spreads)
    matched = [row.fsi_matched for row in rows if row.parser == (rows[0].parser if rows else "")]
    known = [value for value in matched if value is not None]
    complete = bool(known) and len(known) == len(matched)
    return TokenSpread(found.median, found.share_within, found.groups, float(np.mean(known)) if complete else None)


def rankings(measured: Measured) -> list[RankingRow]:
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
