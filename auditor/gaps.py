"""What a reader must know of a summary: which values are null, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.figures import Caveat, CellRow, GroupRow, ModelRow, RegressionRow, SeedNoiseRow, SensitivityRow
from auditor.stats.macro import HIERARCHICAL_COVERAGE

MANY_TASKS = 50
"""From here on what bias a task's FSI* has left is no longer small beside the error of their mean."""


EXCESS, CELLS = 1.5, 10
"""From here on seeds move many items at once. Where items are independent one run in 80 of ten cells and two seeds
comes to it by chance, of 25 cells one in 3,000."""


def _named(section: str, names: str) -> tuple[str, ...]:
    return tuple(f"{section}.{name}" for name in names.split())


_SPREAD = (*_named("spreads", "mean sd_sample sd_population lowest highest spread gain"), "gains.gain")
_RANGES = (
    *_named("sensitivity", "fsi psi nfsi accuracy_min accuracy_max accuracy_mean"),
    *_named("models", "fsi fsi_ci_paper psi psi_ci_paper nfsi nfsi_ci_paper"),
    *_SPREAD,
)
_SPLIT = _named("sensitivity", "content_part format_part format_truncated format_noncompliant")
_EVIDENCE = (
    *_named("sensitivity", "fsi_floor fsi_star fsi_ci fsi_bounds_simultaneous fsi_detectable items_for_lower_floor"),
    *_named("sensitivity", "psi_floor psi_star psi_ci psi_bounds_simultaneous p_wrapper_effect p_holm"),
    *_named("sensitivity", "p_wrapper_effect_mid p_cochran_q p_cochran_q_holm"),
    *_named("models", "fsi_star fsi_star_ci fsi_star_ci_fixed psi_star psi_star_ci psi_star_ci_fixed"),
    *_named("models", "fsi_ci_hierarchical psi_ci_hierarchical"),
    "wins.not_separable",
)
_FIT = _named("regression", "beta se df p partial_r2")
_PARSED_FIT = _named("regression", "parsed_slope parsed_se parsed_df parsed_p")


def caveats(
    cells: Sequence[CellRow],
    rows: Sequence[SensitivityRow],
    models: Sequence[ModelRow],
    regression: Sequence[RegressionRow] = (),
    groups: Sequence[GroupRow] = (),
    noise: Sequence[SeedNoiseRow] = (),
) -> list[Caveat]:
    """The caveats of everything but comparisons, orders, arms and fields, which have their own."""
    return [
        *_missing(cells),
        *_unanswered(cells),
        *_unknown_accuracy(cells),
        *_unknown_parseability(cells),
        *_unknown_n(cells),
        *_no_items(cells),
        *_unread(cells),
        *_single_wrapper(rows),
        *_different_wrappers(rows),
        *_single_task(models),
        *_many_tasks(models),
        *_no_evidence(rows),
        *_no_cochran(rows),
        *_no_power(rows),
        *_hierarchical(models),
        *_no_regression(regression),
        *_no_votes(cells),
        *_one_seed(cells),
        *_no_split(rows),
        *_no_finish(rows),
        *_shared_seeds(noise),
        *_no_excess(noise),
        *_no_replies(cells),
        *_no_tokens(cells),
        *_no_matched(cells, rows),
        *_small_groups(groups),
    ]


def _missing(cells: Sequence[CellRow]) -> list[Caveat]:
    marked = {
        (cell.model, cell.task, cell.wrapper, cell.arm): f"{cell.missing} of {cell.missing + (cell.n or 0)}"
        for cell in cells
        if cell.lossy
    }
    return [
        Caveat("missing", f"{', '.join(key[:3])}{_arm(key[3])}: {share} generations are missing")
        for key, share in marked.items()
    ]


def _unanswered(cells: Sequence[CellRow]) -> list[Caveat]:
    empty = dict.fromkeys((cell.model, cell.task, cell.wrapper, cell.arm) for cell in cells if cell.n == 0)
    if not empty:
        return []
    named = "; ".join(f"{', '.join(key[:3])}{_arm(key[3])}" for key in list(empty)[:3]) + (
        "; ..." if len(empty) > 3 else ""
    )
    rates = "items parsed correct accuracy accuracy_ci accuracy_parsed parseability parseability_ci"
    fields = (*_named("cells", rates), *_RANGES, *_SPLIT, *_EVIDENCE)
    return [
        Caveat(
            "unanswered",
            f"nothing was answered, so that ranges over wrappers are not known: {named}{', ...' * (len(empty) > 3)}",
            fields,
        )
    ]


def _arm(name: str) -> str:
    return "" if name == "none" else f" ({name})"


def _unknown_accuracy(cells: Sequence[CellRow]) -> list[Caveat]:
    where = {(cell.task, cell.parser) for cell in cells if cell.accuracy is None and cell.parseability is not None}
    return [
        Caveat("no_gold", f"{task}: not every item has a gold answer, so accuracy and FSI are not known ({parser})",
               ("cells.accuracy", *_named("cells", "correct accuracy_ci accuracy_parsed"), "models.accuracy", *_RANGES,
                *_SPLIT, *_EVIDENCE))
        for task, parser in sorted(where)
    ]  # fmt: skip


def _unknown_parseability(cells: Sequence[CellRow]) -> list[Caveat]:
    if not any(cell.parseability is None and cell.accuracy is not None for cell in cells):
        return []
    message = "the imported cells say nothing of parseability"
    fields = (
        *_named("cells", "parsed parseability accuracy_parsed"),
        *("sensitivity.psi", *_named("models", "psi psi_ci_paper parseability")),
        *(*_FIT, "regression.pearson_r", "regression.tautology_slope"),
    )
    return [Caveat("no_parseability", message, fields)]


def _unknown_n(cells: Sequence[CellRow]) -> list[Caveat]:
    if all(cell.n is not None for cell in cells):
        return []
    message = "the imported cells do not say n: there are no counts, no weights for a regression, no comparison of arms"
    return [Caveat("no_n", message, (*_named("cells", "n parsed correct"), *_FIT, *_PARSED_FIT, "enforcement"))]


def _no_items(cells: Sequence[CellRow]) -> list[Caveat]:
    if not any(cell.items is None and cell.accuracy is not None for cell in cells):
        return []
    message = "a table of cells has no items: intervals, bounds and tests need them, and reply lengths need replies"
    told = _named("cells", "items accuracy_ci parseability_ci completion_tokens_mean truncated")
    return [Caveat("no_items", message, (*told, *_EVIDENCE, *_named("seed_noise", _SEED_NOISE)))]


def _unread(cells: Sequence[CellRow]) -> list[Caveat]:
    if not any(cell.n and cell.parsed == 0 for cell in cells):
        return []
    message = "where nothing was parsed, accuracy among parsed replies is not known"
    return [Caveat("nothing_parsed", message, ("cells.accuracy_parsed",))]


def _no_replies(cells: Sequence[CellRow]) -> list[Caveat]:
    if not any(cell.n and None in (cell.completion_tokens_mean, cell.truncated) for cell in cells):
        return []
    message = "how long replies were, or why they ended, was not recorded: rows scored elsewhere have no replies"
    return [Caveat("no_replies", message, _named("cells", "completion_tokens_mean truncated"))]


def _single_wrapper(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    if not any(len(row.wrappers) == 1 for row in rows):
        return []
    message = "with one wrapper there is no range over wrappers: FSI and PSI need at least two"
    return [Caveat("one_wrapper", message, (*_RANGES, *_SPLIT, *_EVIDENCE))]


def _different_wrappers(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    counts = sorted({len(row.wrappers) for row in rows if len(row.wrappers) > 1})
    if len(counts) < 2:
        return []
    said = ", ".join(str(count) for count in counts)
    return [Caveat("different_f", f"ranges are over different numbers of wrappers ({said}): FSI grows with F")]


def _single_task(models: Sequence[ModelRow]) -> list[Caveat]:
    if not any(row.tasks == 1 and row.fsi is not None for row in models):
        return []
    message = "the paper's intervals resample tasks, and one task cannot be resampled"
    told = "fsi_ci_paper psi_ci_paper nfsi_ci_paper fsi_ci_hierarchical psi_ci_hierarchical"
    return [Caveat("one_task", message, _named("models", told))]


def _many_tasks(models: Sequence[ModelRow]) -> list[Caveat]:
    if not any(row.tasks >= MANY_TASKS and row.fsi_star_ci for row in models):
        return []
    message = "with so many tasks the upper end of FSI*'s interval is not safe: simulated coverage is 85 % at 60 tasks"
    return [Caveat("many_tasks", message)]


def _no_evidence(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    lacking = [row for row in rows if (row.fsi is not None and row.fsi_star is None) or row.psi_star is None]
    if not lacking:
        return []
    where = ", ".join(sorted({f"{row.model}, {row.task}" for row in lacking})[:3])
    message = f"noise floor, FSI* and tests need two items (or passages) or more that every wrapper answered ({where})"
    return [Caveat("no_evidence", message, _EVIDENCE)]


def _no_cochran(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    if not any(row.p_cochran_q is None and row.p_wrapper_effect is not None for row in rows):
        return []
    message = "Cochran's Q is for one seed, or seeds that all agree; for items that no passage joins, and that vary"
    return [Caveat("no_cochran_q", message, _named("sensitivity", "p_cochran_q p_cochran_q_holm"))]


def _no_power(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    known = [row for row in rows if row.fsi_floor is not None]
    found = []
    if any(row.fsi_detectable is None for row in known):
        message = "so few items that not even a range of 1 would be found in four of five runs"
        found.append(Caveat("no_power", message, ("sensitivity.fsi_detectable",)))
    if any(row.items_for_lower_floor is None for row in known):
        message = "where no item is answered otherwise than the others there is no noise to lower"
        found.append(Caveat("no_noise", message, ("sensitivity.items_for_lower_floor",)))
    return found


def _hierarchical(models: Sequence[ModelRow]) -> list[Caveat]:
    shown = any(row.fsi_ci_hierarchical or row.psi_ci_hierarchical for row in models)
    return [Caveat("hierarchical", HIERARCHICAL_COVERAGE)] if shown else []


def _no_regression(rows: Sequence[RegressionRow]) -> list[Caveat]:
    found = [
        Caveat("no_regression", f"{row.parser}{_arm(row.arm)}: {row.status}", _FIT) for row in rows if row.beta is None
    ]
    found += [
        Caveat(
            "no_parsed_regression",
            f"{row.parser}{_arm(row.arm)}, among parsed replies: {row.parsed_status or row.status}",
            _PARSED_FIT,
        )
        for row in rows
        if row.parsed_slope is None
    ]
    if any(row.tautology_slope is None for row in rows):
        found.append(
            Caveat("no_tautology", "where nothing was parsed there is no slope", ("regression.tautology_slope",))
        )
    if any(row.pearson_r is None for row in rows):
        message = "a correlation needs three cells or more, whose accuracy and parseability vary"
        found.append(Caveat("no_correlation", message, ("regression.pearson_r",)))
    return found


def _no_finish(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    if not any(row.format_part is not None and row.format_truncated is None for row in rows):
        return []
    message = (
        "why replies ended was not recorded, so what the token limit cut is not told from what was not as asked for"
    )
    return [Caveat("no_finish", message, _named("sensitivity", "format_truncated format_noncompliant"))]


def _shared_seeds(rows: Sequence[SeedNoiseRow]) -> list[Caveat]:
    many = [row for row in rows if row.cells >= CELLS]
    worst = max((max(row.accuracy_excess or 0.0, row.parseability_excess or 0.0) for row in many), default=0.0)
    if worst < EXCESS:
        return []
    message = (
        f"seeds differ {worst:.1f} times as much as replies that are independent of each other would: one seed goes to "
        "every item, and a server that keeps to it draws alike for all of them. Intervals and tests over items are "
        "then too sure; more seeds help, more items do not"
    )
    return [Caveat("shared_seeds", message)]


def _no_excess(rows: Sequence[SeedNoiseRow]) -> list[Caveat]:
    if not any(row.cells and None in (row.accuracy_excess, row.parseability_excess) for row in rows):
        return []
    message = "where no seed changes a reply's outcome, or but one item is there, seeds cannot move many items at once"
    return [Caveat("no_excess", message, _named("seed_noise", "accuracy_excess parseability_excess"))]


def _no_split(rows: Sequence[SensitivityRow]) -> list[Caveat]:
    if not any(row.format_part is None and row.fsi is not None for row in rows):
        return []
    message = "what a range is made of is seen pair by pair, on replies that the best and the worst wrapper both have"
    return [Caveat("no_split", message, _SPLIT)]


def _one_seed(cells: Sequence[CellRow]) -> list[Caveat]:
    if any(cell.items and (cell.n or 0) > cell.items for cell in cells) or not any(cell.items for cell in cells):
        return []
    message = "with one seed an item, what another seed would change cannot be seen: --seeds 2 or more"
    return [Caveat("one_seed", message, ("seed_disagreement.share", *_named("seed_noise", _SEED_NOISE)))]


_SEED_NOISE = (
    "accuracy_difference accuracy_range accuracy_excess parseability_difference parseability_range parseability_excess "
    "seeds"
)


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
    fields = ("cells.prompt_tokens_mean", "token_spread", *_MATCHED)
    return [Caveat("no_tokens", message, fields)]


def _no_matched(cells: Sequence[CellRow], rows: Sequence[SensitivityRow]) -> list[Caveat]:
    known = all(cell.prompt_tokens_mean is not None for cell in cells if cell.n != 0)
    if not known or all(row.fsi_matched is not None or row.fsi is None for row in rows):
        return []
    message = (
        "for some tasks no item has a token spread of at most 5 % over all wrappers: their matched subset is empty"
    )
    return [Caveat("no_matched", message, (*_MATCHED, "token_spread.fsi_matched"))]


_MATCHED = ("sensitivity.fsi_matched", "sensitivity.psi_matched", "models.fsi_matched")


def _small_groups(groups: Sequence[GroupRow]) -> list[Caveat]:
    if not any(row.psi_floor is None for row in groups):
        return []
    message = "a group of one item (or passage), or under one wrapper, has no noise floor"
    return [Caveat("small_group", message, _named("groups", "fsi psi fsi_floor psi_floor"))]
