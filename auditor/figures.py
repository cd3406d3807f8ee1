"""What is reported: the summary and its rows, frozen, in the order of `summary.json`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from auditor.records import Adaptation, Canary, Message

Interval = tuple[float, float]

MISSING_MARK = 0.01
"""A cell that lacks a larger share of its generations was not measured: it is marked, its run exits 3."""


class RunInfo(Struct, frozen=True):
    """Which run this is."""

    name: str
    created: str
    auditor_version: str
    study_digest: str
    seed: int


class Counts(Struct, frozen=True):
    """Totals over the whole run. `attempts` is every completion POST; `planned` and `answered` are generations."""

    planned: int
    answered: int
    missing: int
    attempts: int
    retries: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None = None
    """Settled by what endpoints say, else by prices; of every attempt and call."""
    preflight_calls: int = 0
    """Attempts that were no generation's."""
    reused: int = 0
    """Answers taken from an earlier run."""


class CellRow(Struct, frozen=True):
    """One (model, task, wrapper, arm) under one parser. Rates are over `n` answered generations; unparseable and
    ambiguous count as not parsed and as incorrect; `missing` is outside `n`. `n` is None where an imported table of
    cells does not say it: then there are rates and no counts."""

    model: str
    task: str
    wrapper: str
    arm: str
    parser: str
    n: int | None
    items: int | None
    parsed: float | None
    correct: float | None
    accuracy: float | None
    accuracy_ci: Interval | None
    accuracy_parsed: float | None
    parseability: float | None
    parseability_ci: Interval | None
    missing: int
    prompt_tokens_mean: float | None
    completion_tokens_mean: float | None
    truncated: int | None
    majority_vote_accuracy: float | None
    reasons: dict[str, int]

    @property
    def lossy(self) -> bool:
        """Whether too much of it is missing to call it measured."""
        return self.missing > MISSING_MARK * ((self.n or 0) + self.missing)


class FieldRow(Struct, frozen=True):
    """One compared field of a cell under one parser, over `n` answered generations whose gold answer has the field.
    Of a reply that cannot be read every field is wrong."""

    model: str
    task: str
    wrapper: str
    arm: str
    parser: str
    field: str
    n: int
    correct: int
    accuracy: float | None
    accuracy_ci: Interval | None


class SensitivityRow(Struct, frozen=True):
    """One (model, task, arm) under one parser, over its `wrappers` (F of them)."""

    model: str
    task: str
    arm: str
    parser: str
    wrappers: tuple[str, ...]
    fsi: float | None
    psi: float | None
    nfsi: float | None
    accuracy_min: float | None
    accuracy_max: float | None
    accuracy_mean: float | None
    best_wrappers: tuple[str, ...]
    worst_wrappers: tuple[str, ...]
    fsi_matched: float | None = None
    """FSI over generations whose token spread is at most 5 %."""
    psi_matched: float | None = None
    fsi_floor: float | None = None
    """The FSI that noise alone would be expected to show."""
    fsi_star: float | None = None
    """FSI adjusted for noise, signed: below 0 where it is less than noise. Show max(0, fsi_star). Like floor, interval,
    bounds and tests it is over the items that every wrapper answered, so it may differ from FSI by those as well."""
    fsi_ci: Interval | None = None
    fsi_bounds_simultaneous: Interval | None = None
    p_wrapper_effect: float | None = None
    """Of the permutation test; `p_holm` is adjusted over the tasks of the model."""
    p_wrapper_effect_mid: float | None = None
    """The same with ties counted half: the other rejects too seldom where ranges of few items tie."""
    p_holm: float | None = None
    p_cochran_q: float | None = None
    p_cochran_q_holm: float | None = None
    psi_floor: float | None = None
    psi_star: float | None = None
    psi_ci: Interval | None = None
    psi_bounds_simultaneous: Interval | None = None
    not_separable: tuple[str, ...] = ()
    """The wrappers that cannot be told from the best at 95 %."""
    p_best: dict[str, float] = {}
    """Wrapper -> its share of draws in which it is best; ties share."""
    fsi_detectable: float | None = None
    """The smallest FSI, wrappers equally spaced, that 80 % of such runs would find at 5 %."""
    items_for_lower_floor: int | None = None
    """Items that bring the floor to 0.02, seeds being the same."""
    format_part: float | None = None
    """What of the range is replies that could not be read, over items and seeds that the best and the worst wrapper
    both answered; `content_part` is other answers. They add up to the range where nothing is missing."""
    content_part: float | None = None
    format_truncated: float | None = None
    """What of the format part the token limit cut; the rest did not fulfil the contract."""
    format_noncompliant: float | None = None


class ModelRow(Struct, frozen=True):
    """Macro averages of one model over its tasks under one parser, with the paper's bootstrap over tasks."""

    model: str
    arm: str
    parser: str
    tasks: int
    fsi: float | None
    fsi_ci_paper: Interval | None
    psi: float | None
    psi_ci_paper: Interval | None
    nfsi: float | None
    nfsi_ci_paper: Interval | None
    fsi_matched: float | None = None
    fsi_star: float | None = None
    """Mean over tasks of signed FSI*; its interval is for more tasks of their kind, and may leave [0, 1]."""
    fsi_star_ci: Interval | None = None
    psi_star: float | None = None
    psi_star_ci: Interval | None = None
    fsi_star_ci_fixed: Interval | None = None
    """For exactly these tasks, over items alone."""
    psi_star_ci_fixed: Interval | None = None
    fsi_ci_hierarchical: Interval | None = None
    """Percentile bootstrap over tasks and items, the FSI paper's future work; not calibrated."""
    psi_ci_hierarchical: Interval | None = None
    accuracy: float | None = None
    """Mean over tasks of the mean over wrappers."""
    parseability: float | None = None
    """Likewise."""
    rank: int | None = None
    """Place by that accuracy under this parser among the models of the arm, from 1; ties share the better one."""


class ReversalRow(Struct, frozen=True):
    """Two models of an arm under one parser whose order changes with the wrapper: `model_a` is ahead under the wrappers
    `ahead` and behind under `behind`, by mean accuracy over `tasks` on the `items` that all models answered under all
    wrappers. `surely_*` holds together at 95 % over all pairs and wrappers; `certified` if there are both."""

    arm: str
    parser: str
    model_a: str
    model_b: str
    tasks: int
    items: int
    ahead: tuple[str, ...]
    behind: tuple[str, ...]
    surely_ahead: tuple[str, ...]
    surely_behind: tuple[str, ...]
    certified: bool


class ComparisonRow(Struct, frozen=True):
    """Accuracy of one side less that of the other, on the items that both answered, averaged over items, then `tasks`.
    Sides are two wrappers of one model, or two models over the `wrappers` that both have. The interval is the 95 %
    paired bootstrap over items (percentiles), tasks fixed. With one seed (or seeds that all agree) and one wrapper a
    side, `only_a` and `only_b` are the items that one side alone has right, over all tasks, and `p_mcnemar` is
    exact."""

    arm: str
    parser: str
    model_a: str
    wrappers_a: tuple[str, ...]
    model_b: str
    wrappers_b: tuple[str, ...]
    tasks: int
    items: int
    difference: float | None
    difference_ci: Interval | None
    only_a: int | None = None
    only_b: int | None = None
    p_mcnemar: float | None = None


class GroupRow(Struct, frozen=True):
    """One group of items (a subject) within a task, under the wrappers of the family: how far they lie apart, and how
    far noise alone would put them. Over items that every wrapper answered, seeds averaged within an item first."""

    model: str
    task: str
    arm: str
    parser: str
    group: str
    items: int
    wrappers: int
    accuracy_mean: float | None
    fsi: float | None
    fsi_floor: float | None
    psi: float | None
    psi_floor: float | None


class OrderChangeRow(Struct, frozen=True):
    """Two models of an arm whose order by mean accuracy is opposite under two parsers; an apparent change, no test.
    `model_a` is ahead under `parser_a`, `model_b` under `parser_b`; accuracies are those of (model_a, model_b)."""

    arm: str
    parser_a: str
    parser_b: str
    model_a: str
    model_b: str
    accuracies_a: tuple[float, float]
    """Under `parser_a`."""
    accuracies_b: tuple[float, float]
    """Under `parser_b`."""


class RegressionRow(Struct, frozen=True):
    """WLS of accuracy on parseability over the cells of an arm, fixed effects for model, task and wrapper; `status` is
    `ok` or says why there is nothing to print. `se` is descriptive: cells share items and models."""

    parser: str
    arm: str
    status: str
    cells: int
    beta: float | None = None
    se: float | None = None
    df: int | None = None
    p: float | None = None
    partial_r2: float | None = None
    pearson_r: float | None = None
    tautology_slope: float | None = None
    """Sum of accuracies over sum of parseabilities: the beta to expect where wrappers only break parsing."""
    parsed_status: str = ""
    parsed_slope: float | None = None
    """The same regression of accuracy among parsed replies, weighted by their number: about 0 where wrappers only break
    parsing."""
    parsed_se: float | None = None
    parsed_df: int | None = None
    parsed_p: float | None = None


class WinsRow(Struct, frozen=True):
    """In how many of the `pairs` of model and task a wrapper is best (ties are shared), and in how many it cannot be
    told from the best at 95 %."""

    parser: str
    arm: str
    wrapper: str
    wins: float
    pairs: int
    not_separable: int | None = None


class SeedDisagreementRow(Struct, frozen=True):
    """Share of (task, model, wrapper, item) groups with more than one distinct prediction over their seeds;
    unparseable is one value. `groups` counts those with at least two seeds."""

    parser: str
    arm: str
    share: float | None
    groups: int


class SeedNoiseRow(Struct, frozen=True):
    """A/A: rates of one cell with one seed against the same with another, on the items that both answered. `difference`
    is the mean over `cells` of the mean absolute difference of two seeds, `range` the largest one in any cell; `seeds`
    is how many each has at least. `excess` is the root mean square of differences over their standard errors: about 1
    where items are answered independently, more where a seed moves many items at once, so that intervals over items
    are too short."""

    parser: str
    arm: str
    cells: int
    seeds: int | None
    accuracy_difference: float | None
    accuracy_range: float | None
    accuracy_excess: float | None
    parseability_difference: float | None
    parseability_range: float | None
    parseability_excess: float | None


class MajorityVoteRow(Struct, frozen=True):
    """Majority vote over seeds against the mean over seeds, per cell: the mean change, and the largest either way.
    With two seeds every split vote is a tie, which scores as the mean does."""

    parser: str
    arm: str
    mean_change: float | None
    largest_change: float | None
    cells: int


class TokenSpread(Struct, frozen=True):
    """(max - min) / mean prompt tokens over wrappers, per (task, model, item, seed); `groups` of them."""

    median: float | None
    share_within_5pct: float | None
    groups: int
    fsi_matched: float | None


class RankingRow(Struct, frozen=True):
    """Models in order of mean accuracy over tasks under one wrapper."""

    parser: str
    arm: str
    wrapper: str
    models: tuple[str, ...]
    accuracies: tuple[float, ...]


class SpreadRow(Struct, frozen=True):
    """Accuracy of one (model, task, arm) under one parser over its `wrappers` (F of them), all weighing the same."""

    model: str
    task: str
    arm: str
    parser: str
    wrappers: int
    mean: float | None
    sd_sample: float | None
    """Standard deviation over wrappers, divided by F - 1."""
    sd_population: float | None
    """Divided by F."""
    lowest: float | None
    highest: float | None
    spread: float | None
    """Highest minus lowest; the FSI."""
    worst_wrappers: tuple[str, ...]
    best_wrappers: tuple[str, ...]
    gain: float | None
    """Highest minus mean."""


class GainRow(Struct, frozen=True):
    """What the best single wrapper of one (model, arm) gains over the mean wrapper under one parser, averaged over
    tasks. It is one wrapper for all tasks, so the gain is at most the mean of their own."""

    model: str
    arm: str
    parser: str
    tasks: int
    best_wrappers: tuple[str, ...]
    gain: float | None


class FirstRow(Struct, frozen=True):
    """Which of the `models` of a (task, arm) each wrapper puts first under one parser, all of them under that wrapper;
    `left_out` are wrappers that not all of them have. Apparent: chance is not ruled out."""

    task: str
    arm: str
    parser: str
    models: tuple[str, ...]
    by_wrapper: dict[str, tuple[str, ...]]
    """Wrapper -> the first model; several where they tie."""
    never: tuple[str, ...]
    """The models that no wrapper puts first; none where any model can be put first."""
    never_apart: tuple[str, ...]
    """Those that would not be first even if each model had a wrapper chosen for it: their best is below another's
    worst."""
    left_out: tuple[str, ...] = ()


class EnforcementRow(Struct, frozen=True):
    """One model and arm under one parser against the arm without enforcement at the same limit, over the wrappers that
    both have. Rates are means over cells, PSI and FSI means over tasks, differences with minus without, their
    intervals 95 % over items."""

    model: str
    arm: str
    parser: str
    label: Literal["verified", "claimed", "ignored", "refused"]
    """`verified`: a canary proved it on every server; `claimed`: nobody proved it."""
    canary: str
    wrappers: tuple[str, ...]
    tasks: int
    n: int
    n_without: int
    parseability: float | None
    parseability_without: float | None
    parseability_change_ci: Interval | None
    accuracy: float | None
    accuracy_without: float | None
    accuracy_change_ci: Interval | None
    psi: float | None
    psi_without: float | None
    fsi: float | None
    fsi_without: float | None


class EndpointRow(Struct, frozen=True):
    """What is known of one model at one server: preflight's findings, and who answered in the end."""

    model: str
    server: str
    provider: str
    build: str | None
    seed: str
    adaptations: tuple[Adaptation, ...]
    canaries: tuple[Canary, ...]
    routing: dict[str, Any]
    upstreams: dict[str, int]
    """Upstream provider -> replies."""
    models_returned: dict[str, int]
    fingerprints: int
    """How many distinct system fingerprints replies carried."""


class Check(Struct, frozen=True):
    """One preflight finding."""

    check: str
    status: Literal["ok", "warning", "error", "skipped"]
    message: str


class Caveat(Struct, frozen=True):
    """Something a reader must know; `field` names the summary fields that are null because of it."""

    code: str
    message: str
    fields: tuple[str, ...] = ()


class Summary(Struct, frozen=True):
    """Everything `summary.json` holds."""

    schema: int
    run: RunInfo
    counts: Counts
    preflight: tuple[Check, ...]
    parsers: tuple[str, ...]
    cells: tuple[CellRow, ...]
    sensitivity: tuple[SensitivityRow, ...]
    models: tuple[ModelRow, ...]
    regression: tuple[RegressionRow, ...]
    wins: tuple[WinsRow, ...]
    seed_disagreement: tuple[SeedDisagreementRow, ...]
    majority_vote: tuple[MajorityVoteRow, ...]
    token_spread: TokenSpread
    rankings: tuple[RankingRow, ...]
    warnings: tuple[Caveat, ...]
    endpoints: tuple[EndpointRow, ...] = ()
    enforcement: tuple[EnforcementRow, ...] = ()
    order_changes: tuple[OrderChangeRow, ...] = ()
    fields: tuple[FieldRow, ...] = ()
    spreads: tuple[SpreadRow, ...] = ()
    gains: tuple[GainRow, ...] = ()
    firsts: tuple[FirstRow, ...] = ()
    seed_noise: tuple[SeedNoiseRow, ...] = ()
    reversals: tuple[ReversalRow, ...] = ()
    comparisons: tuple[ComparisonRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()


class ReplyExample(Struct, frozen=True):
    """A real prompt and reply, shown in the report for one reason."""

    parser: str
    reason: str
    model: str
    task: str
    item: str
    wrapper: str
    seed: int
    prompt: tuple[Message, ...]
    text: str | None
    gold: str | None
    finish_reason: str | None
    count: int = field(default=1)
    """How many replies of the run share the reason."""
