"""The values that stages hand each other: frozen, typed, without behaviour beyond a derived property.

Two groups: what is asked (Item, Task, Wrapper, Request) and what came back (Reply, Fault, Attempt, Generation,
Outcome); what is reported is in `figures`. `Row` is one generation as JSON Lines at the border.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

AnswerType = Literal["choice", "boolean", "number", "label", "text", "json"]
ContractKind = Literal["text", "json", "fields", "block", "final_line"]
OutcomeKind = Literal["parsed", "ambiguous", "unparseable", "missing"]
Status = Literal["answered", "missing"]
Role = Literal["system", "user", "assistant"]
Enforcement = Literal["none", "json_object", "json_schema", "grammar"]
Verdict = Literal["enforced", "ignored", "refused", "fails_open", "unknown"]
"""What a canary says of enforcement; `fails_open`: it holds, but what cannot be compiled is dropped without a word."""

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


class FieldRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How one field of a JSON answer is compared: where it is (a JSON pointer), and `exact` (equal JSON), `text` (case
    and white space folded) or `number` (at most `tolerance` apart)."""

    pointer: str
    kind: Literal["exact", "text", "number"]
    tolerance: float = 0.0


class Contract(Struct, frozen=True, forbid_unknown_fields=True):
    """What a reply must look like. `field` names the answer (json, fields, block, final_line); `begin` and `end`
    delimit a block; a json contract may carry the user's own `schema` (loaded) and where the answer is in it, or which
    fields of it are compared. Unset, `compare` is in no JSON, so that contracts without it keep their digests."""

    kind: ContractKind
    field: str = "answer"
    begin: str = ""
    end: str = ""
    schema: dict[str, Any] | None = None
    answer_path: str | None = None
    compare: tuple[FieldRule, ...] | UnsetType = UNSET


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


class ParserStep(Struct, frozen=True):
    """One step of a parser, and what it is told (a pattern, words of a language), where it can be told something."""

    name: str
    options: dict[str, Any] = {}


class Parser(Struct, frozen=True):
    """An ordered list of named steps, as a file in `parsers/` gives it."""

    name: str
    version: int
    summary: str
    steps: tuple[ParserStep, ...]
    examples: tuple[ParserExample, ...]
    path: str
    digest: str


class Arm(Struct, frozen=True):
    """What decoding is held to, and how long: `none`, `json_schema`, or with several limits `none@24`, `none@256`."""

    name: str
    enforce: Enforcement
    max_tokens: int


class Part(Struct, frozen=True):
    """One piece of a grammar: `text` (these characters), `one_of` (any of these), `number` (canonical), `line` (free,
    to the end of the line), `string` (a JSON string), `lines` (a few free lines, or none)."""

    kind: Literal["text", "one_of", "number", "line", "string", "lines"]
    texts: tuple[str, ...] = ()


class Constraint(Struct, frozen=True):
    """What decoding is held to. A `schema`, or the parts of a `grammar`; a `json_object` has neither."""

    kind: Literal["json_object", "json_schema", "grammar"]
    schema: dict[str, Any] | None = None
    grammar: tuple[Part, ...] = ()


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
    constraint: Constraint | None = None

    @property
    def identity(self) -> tuple[str, str, str, str, str, int]:
        """What makes a generation the same one in a later run."""
        return (self.model, self.task, self.item, self.wrapper, self.arm, self.seed)


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """USD per million prompt and completion tokens, and per request."""

    prompt: float
    completion: float
    request: float = 0.0

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """What one reply costs, in USD."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6 + self.request


class EndpointOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """How a gateway wants to be asked. Each value names the environment variable that holds the real one: of a
    header, of a query parameter, and of the one header that carries the key instead of `Authorization: Bearer`."""

    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    auth_header: dict[str, str] = {}


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
    cost_usd: float | None = None
    """What the endpoint charged all the same."""


class Attempt(Struct, frozen=True):
    """One HTTP request: when (Unix seconds), how long, what status, what went wrong, the raw body."""

    started: float
    latency_ms: float
    http_status: int | None
    fault: str | None
    body: bytes
    sent: bytes = b"{}"
    """The body as sent, JSON, without messages and seed."""
    server: str = ""
    """The base URL it went to."""
    cost_usd: float | None = None
    """What the endpoint charged, or what its price makes of its token counts; None where neither is known."""
    exhausted_for: float | None = None
    """Seconds until the endpoint takes requests again, where its rate-limit headers say that none are left."""


class Adaptation(Struct, frozen=True):
    """A parameter that an endpoint refused and that was therefore sent otherwise: requested, sent, in whose words."""

    parameter: str
    requested: str
    sent: str
    why: str


class Canary(Struct, frozen=True):
    """What an endpoint did when prompt and constraint disagreed: the verdict, and what it said."""

    enforce: Enforcement
    verdict: Verdict
    said: str
    held: str = ""
    """The digest of the study's constraints that it was asked with."""


class Findings(Struct, frozen=True):
    """What preflight found out about one model at one server. `seed`: whether the seed decides the reply; `routing`
    goes into every body's `provider`."""

    model: str
    server: str
    provider: str
    build: str | None = None
    adaptations: tuple[Adaptation, ...] = ()
    routing: dict[str, Any] = {}
    upstream: Literal["", "any"] = ""
    """`any` where a router may send every request to another provider."""
    seed: Literal["honoured", "ignored", "unclear", "not checked"] = "not checked"
    seed_said: str = ""
    padding: bool | None = None
    """Whether padding reaches the model; None where it was not found out."""
    latency_ms: float | None = None
    """Of the calls that were answered, on average."""
    canaries: tuple[Canary, ...] = ()


class Generation(Struct, frozen=True):
    """What became of a request: a reply, or missing with the last fault; every attempt beside it."""

    request: Request
    reply: Reply | None
    fault: Fault | None
    attempts: tuple[Attempt, ...]

    @property
    def sent(self) -> bytes:
        """The body as sent in the end, JSON, without messages and seed."""
        return self.attempts[-1].sent if self.attempts else b"{}"

    @property
    def cost_usd(self) -> float | None:
        """What its attempts cost together; None where none is known."""
        costs = [attempt.cost_usd for attempt in self.attempts if attempt.cost_usd is not None]
        return sum(costs) if costs else None

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


SEEDS_A_WORD = 62
"""How many seeds a set of seeds holds as the bits of a whole number."""


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
