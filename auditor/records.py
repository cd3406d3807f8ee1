"""The values that stages hand each other: frozen, typed, without behaviour beyond a derived property.

Three groups: what is asked (Item, Task, Wrapper, Request), what came back (Reply, Fault, Attempt, Generation,
Outcome) and what is reported (Summary and its rows). `Row` is one generation as JSON Lines at the border.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

AnswerType = Literal["choice", "boolean", "number", "label", "text", "json"]
ContractKind = Literal["text", "json", "fields", "block", "final_line"]
OutcomeKind = Literal["parsed", "ambiguous", "unparseable", "missing"]
Status = Literal["answered", "missing"]
Role = Literal["system", "user", "assistant"]

Reason = Literal[
    "empty",
    "truncated",
    "truncated_in_reasoning",
    "refusal",
    "content_filter",
    "tool_call",
    "content_in_reasoning",
    "code_fence",
    "extra_text",
    "invalid_json",
    "missing_key",
    "extra_key",
    "wrong_type",
    "not_in_choices",
    "block_missing",
    "field_missing",
    "duplicate_field",
    "conflicting_answers",
    "placeholder_echo",
    "no_answer",
    "not_canonical",
    "parser_error",
    "given",
]
"""Why a reply gave no value. Closed: each parser gives the first that stopped it. `given`: scored elsewhere."""


# What is asked -------------------------------------------------------------------------------------------------


class AnswerSpace(Struct, frozen=True):
    """What an answer can be. `labels` are what a reply names (A, B, ... or a closed set of labels); `texts` stand
    beside them in the same order (option texts), or are empty where the labels say it all."""

    type: AnswerType
    labels: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


class Item(Struct, frozen=True):
    """One question. `gold` is canonical (see `parsing.canonical`), None where it is not known. `parts` are what a
    wrapper joins with its separator before the question; `columns` are the source's other columns as text."""

    id: str
    question: str
    space: AnswerSpace
    gold: str | None = None
    group: str | None = None
    cluster: str | None = None
    parts: tuple[str, ...] = ()
    columns: dict[str, str] = {}


class Task(Struct, frozen=True):
    """A named list of items; `examples` are set aside for `--shots`; `source` says where it came from."""

    name: str
    items: tuple[Item, ...]
    examples: tuple[Item, ...] = ()
    source: str = ""


class Message(Struct, frozen=True):
    """One turn of a conversation, as a wrapper file writes it or as it is sent."""

    role: Role
    content: str


class Contract(Struct, frozen=True, forbid_unknown_fields=True):
    """What a reply must look like. `field` names the answer (json, fields, block, final_line); `begin` and `end`
    delimit a block; a json contract may carry the user's own `schema` (loaded) and where the answer is in it."""

    kind: ContractKind
    field: str = "answer"
    begin: str = ""
    end: str = ""
    schema: dict[str, Any] | None = None
    answer_path: str | None = None


class WrapperExample(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply and what the strict parser must say of it: the value, or None for not parsed."""

    reply: str
    answer_type: AnswerType = "choice"
    choices: tuple[str, ...] = ()
    strict: str | None = None


class Wrapper(Struct, frozen=True):
    """A prompt template with its contract. `digest` is over everything that reaches a model or a parser."""

    name: str
    version: int
    set: str
    summary: str
    source: str
    messages: tuple[Message, ...]
    contract: Contract
    examples: tuple[WrapperExample, ...]
    example: str
    """How one worked example looks under `--shots`."""
    separator: str
    """What stands between two worked examples, and between an item's parts."""
    path: str
    digest: str


class ParserExample(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply and what the parser must say of it."""

    reply: str
    contract: ContractKind = "text"
    answer_type: AnswerType = "choice"
    choices: tuple[str, ...] | dict[str, str] = ()
    finish_reason: str | None = "stop"
    parsed: str | None = None
    reason: Reason | None = None
    ambiguous: tuple[str, ...] = ()
    needed: tuple[str, ...] | None = None


class Parser(Struct, frozen=True):
    """An ordered list of named steps, as a file in `parsers/` gives it."""

    name: str
    version: int
    summary: str
    steps: tuple[str, ...]
    examples: tuple[ParserExample, ...]
    path: str
    digest: str


class Request(Struct, frozen=True):
    """One generation to ask for. Identity: (model, task, item, wrapper, arm, seed). `digest` is over the body as
    requested; adapted parameters, URL, key and concurrency are not in it. `prompt` is the digest of the messages."""

    model: str
    task: str
    item: str
    wrapper: str
    arm: str
    seed: int
    digest: str
    prompt: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float
    top_p: float
    stop: tuple[str, ...] = ()
    shots: int = 0
    api: Literal["chat", "completions"] = "chat"
    extra_body: dict[str, Any] = {}

    @property
    def identity(self) -> tuple[str, str, str, str, str, int]:
        """What makes a generation the same one in a later run."""
        return (self.model, self.task, self.item, self.wrapper, self.arm, self.seed)


# What came back ------------------------------------------------------------------------------------------------


class Reply(Struct, frozen=True):
    """A model's answer, before any parsing of its text. Reasoning is never merged into `text`."""

    text: str | None
    finish_reason: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: str | None = None
    native_finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    provider: str | None = None
    model_returned: str | None = None
    system_fingerprint: str | None = None


class Fault(Struct, frozen=True):
    """Why an attempt gave no answer. `kind` is a short stable word (`network`, `timeout`, `rate_limit`, ...);
    `fatal` says that every other request of the model would meet the same."""

    kind: str
    message: str
    retryable: bool
    fatal: bool = False
    retry_after: float | None = None
    """Seconds the endpoint asked for."""


class Attempt(Struct, frozen=True):
    """One HTTP request: when (Unix seconds), how long, what status, what went wrong, the raw body."""

    started: float
    latency_ms: float
    http_status: int | None
    fault: str | None
    body: bytes


class Generation(Struct, frozen=True):
    """What became of a request: a reply, or missing with the last fault; every attempt beside it."""

    request: Request
    reply: Reply | None
    fault: Fault | None
    attempts: tuple[Attempt, ...]
    sent: bytes
    """The body as sent in the end, JSON, without the messages."""

    @property
    def status(self) -> Status:
        """Missing means that no answer exists; it is never scored."""
        return "answered" if self.reply is not None else "missing"


class Outcome(Struct, frozen=True):
    """One generation read by one parser."""

    outcome: OutcomeKind
    value: str | None = None
    candidates: tuple[str, ...] = ()
    reason: Reason | None = None
    needed: tuple[str, ...] = ()


class CellKey(Struct, frozen=True):
    """Which cell a number belongs to."""

    model: str
    task: str
    wrapper: str
    arm: str


class CellTotal(Struct, frozen=True):
    """One cell, whatever the parser: counts, mean tokens of answered generations, how many the limit cut."""

    cell: int
    answered: int
    missing: int
    items: int
    prompt_tokens_mean: float | None
    completion_tokens_mean: float | None
    truncated: int | None
    """How many ended at the token limit; None where no finish reason is known."""
    given: int
    """How many were scored elsewhere and carry no text."""


class Row(Struct, frozen=True):
    """One generation as JSON Lines (`import`, `parse`, `export`). Scored elsewhere: `parsed` and `correct` without
    `text`. `choices` as a list are labels, as an object label -> text."""

    model: str
    task: str
    item: str
    wrapper: str
    seed: int = 0
    text: str | None = None
    answer_type: AnswerType | None = None
    choices: tuple[str, ...] | dict[str, str] | None = None
    gold: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    status: Status = "answered"
    parsed: bool | None = None
    correct: bool | None = None
    arm: str = "none"
    group: str | None = None
    cluster: str | None = None
    extra: dict[str, Any] = {}


# What is reported ----------------------------------------------------------------------------------------------

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


class CellRow(Struct, frozen=True):
    """One (model, task, wrapper, arm) under one parser. Rates are over `n` answered generations; unparseable and
    ambiguous count as not parsed and as incorrect; `missing` is outside `n`."""

    model: str
    task: str
    wrapper: str
    arm: str
    parser: str
    n: int
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
        return self.missing > MISSING_MARK * (self.n + self.missing)


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
    fsi_star: float | None = None
    fsi_ci: Interval | None = None
    fsi_bounds_simultaneous: Interval | None = None
    p_wrapper_effect: float | None = None
    format_part: float | None = None
    content_part: float | None = None


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
    fsi_star_ci: Interval | None = None


class RegressionRow(Struct, frozen=True):
    """WLS of accuracy on parseability over cells, fixed effects for model, task and wrapper; `status` is `ok` or
    says why there is nothing to print."""

    parser: str
    status: str
    cells: int
    beta: float | None = None
    se: float | None = None
    df: int | None = None
    p: float | None = None
    partial_r2: float | None = None
    pearson_r: float | None = None
    tautology_slope: float | None = None


class WinsRow(Struct, frozen=True):
    """How many (model, task) pairs a wrapper is best in; ties are shared."""

    parser: str
    wrapper: str
    wins: float


class SeedDisagreementRow(Struct, frozen=True):
    """Share of (task, model, wrapper, item) groups with more than one distinct prediction over their seeds;
    unparseable is one value. `groups` counts those with at least two seeds."""

    parser: str
    share: float | None
    groups: int


class MajorityVoteRow(Struct, frozen=True):
    """Majority vote over seeds against the mean over seeds, per cell: mean and largest absolute change."""

    parser: str
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
