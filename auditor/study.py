"""Study: everything a run is told, frozen, and what its values can be. `settings` builds one from files and options."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct

from auditor.errors import UsageError
from auditor.records import AnswerType, Arm, EndpointOptions, Enforcement, Price

T = TypeVar("T")
Pad = Literal["chars", "item", "tokens", "none"]
Transport = Literal["aiohttp", "httpx", "openai"]

EMBEDDED = "local/smollm2-135m-instruct"
BUNDLED_TASKS = ("categories", "comparisons", "arithmetic", "groups", "lookup")

_OWN_FIELDS = frozenset(
    {"model", "messages", "prompt", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "seed"}
    | {"stream", "n", "response_format", "structured_outputs", "grammar", "json_schema"}
)
"""What a body may not say: it would send something else than the study records."""

PRESETS: dict[str, dict[str, Any]] = {
    "fsi": {
        "name": "fsi",
        "tasks": ("boolq", "piqa", "arc_challenge", "hellaswag", "winogrande", "commonsense_qa", "gsm8k"),
        "wrappers": ("all",),
        "items": 200,
        "seeds": 5,
        "max_tokens": 24,
        "temperature": 0.7,
        "pad": "chars",
    }
}
"""`fsi`: the FSI paper's design (section 5). The paper does not state its temperature; 0.7 is our choice."""


_SECRET = re.compile(r"api[_-]?key|authorization|password|secret|(access|auth|bearer)[_-]?token", re.IGNORECASE)

FUNCTION = "python:"
"""What the name of a parser starts with that is a function of the user's own."""

_MATTERS = ("models", "tasks", "wrappers", "parsers", "seeds", "items", "max_tokens", "temperature", "top_p", "pad",
            "shots", "stop", "enforce", "seed", "bodies", "task_options")  # fmt: skip
"""What can change a number. Where, how fast, at what price and under which name cannot."""


class ModelSpec(Struct, frozen=True):
    """`[alias=]provider/id[@base_url]`: `alias` is the model's name in the study, `id` what the endpoint calls it."""

    alias: str
    provider: str
    id: str
    base_urls: tuple[str, ...] = ()
    """Several servers of one model are used together."""


class TaskOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """How a task file is read: our column name -> the file's, and the type of its answers where it is not inferred."""

    columns: dict[str, str] = {}
    answer_type: AnswerType | None = None


class Study(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run is told. Raises UsageError for a value that cannot be.

    `seeds` is a count K: seeds 0..K-1 are sent. `items` are drawn per task by `seed`, all if there are fewer. Several
    `max_tokens` are a factor, as `enforce` is: each pair is an arm. `bodies` (extra request fields), `prices` and
    `endpoints` (how a gateway wants to be asked; `endpoint` for all models) stand under a model as it is written in
    `models`; `task_options` say how a task's file is read. `timeout` is in seconds, `max_cost` in USD.
    """

    models: tuple[str, ...] = (EMBEDDED,)
    tasks: tuple[str, ...] = BUNDLED_TASKS
    wrappers: tuple[str, ...] = ("all",)
    parsers: tuple[str, ...] = ("strict", "paper", "normalized")
    seeds: int = 5
    items: int = 200
    max_tokens: int | Literal["auto"] | tuple[int, ...] = "auto"
    temperature: float = 0.7
    top_p: float = 1.0
    pad: Pad = "chars"
    shots: int = 0
    stop: tuple[str, ...] = ()
    enforce: tuple[Enforcement, ...] = ("none",)
    concurrency: int | Literal["auto"] = "auto"
    rpm: int | None = None
    tpm: int | None = None
    timeout: float = 300.0
    max_cost: float | None = None
    max_minutes: float | None = None
    preflight: bool = True
    strict_preflight: bool = False
    transport: Transport = "aiohttp"
    seed: int = 0
    name: str = ""
    bodies: dict[str, dict[str, Any]] = {}
    prices: dict[str, Price] = {}
    endpoint: EndpointOptions = EndpointOptions()
    endpoints: dict[str, EndpointOptions] = {}
    task_options: dict[str, TaskOptions] = {}

    def __post_init__(self) -> None:
        for field, allowed in (("pad", get_args(Pad)), ("transport", get_args(Transport))):
            if getattr(self, field) not in allowed:
                raise wrong(field, getattr(self, field))
        for field in ("max_tokens", "concurrency"):
            if isinstance(value := getattr(self, field), str) and value != "auto":
                raise wrong(field, value)
        if isinstance(self.enforce, str):
            raise wrong("enforce", self.enforce)
        for value in self.enforce:
            if value not in get_args(Enforcement):
                raise wrong("enforce", value)
        self._check_numbers()
        self._check_names()
        for model, body in self.bodies.items():
            if taken := sorted(_OWN_FIELDS & set(body)):
                raise UsageError(f"the body of {model!r} sets {taken[0]}, which is the study's to set")
            if secret := next((name for name in body if _SECRET.search(name)), None):
                hint = "a key is never in a study: export the provider's variable, or write [endpoint]"
                raise UsageError(f"the body of {model!r} sets {secret}", hint)

    def _check_numbers(self) -> None:
        for field, least in (("seeds", 1), ("items", 1), ("shots", 0), ("rpm", 1), ("tpm", 1), ("concurrency", 1)):
            value = getattr(self, field)
            if value is not None and value != "auto":
                _at_least(field, value, least)
        if self.max_tokens != "auto":
            for limit in self.limits:
                _at_least("max_tokens", limit, 1)
        for field in ("timeout", "max_cost", "max_minutes"):
            _positive(field, getattr(self, field))
        _within("temperature", self.temperature, 0.0, 2.0)
        _within("top_p", self.top_p, 0.0, 1.0)

    def _check_names(self) -> None:
        for field in ("models", "tasks", "wrappers", "parsers", "enforce"):
            named = getattr(self, field)
            if isinstance(named, str):
                raise wrong(field, named)
            if not named:
                raise UsageError(f"--{field}: none named")
            _once(field, named)
        if isinstance(self.max_tokens, tuple):
            if not self.max_tokens:
                raise UsageError("--max-tokens: none named")
            _once("max-tokens", self.max_tokens)
        if self.name and not re.fullmatch(r"[\w.+-]+", self.name):
            raise UsageError(f"--name {self.name!r}: use letters, digits, _ . + -")
        aliases = [spec.alias for spec in self.specs]
        if twice := {alias for alias in aliases if aliases.count(alias) > 1}:
            hint = "give one another name: --models a=...,b=..."
            raise UsageError(f"two models are called {sorted(twice)[0]!r}", hint)

    @property
    def limits(self) -> tuple[int, ...]:
        """The completion limits asked for; none where they are to be found out."""
        if self.max_tokens == "auto":
            return ()
        return self.max_tokens if isinstance(self.max_tokens, tuple) else (self.max_tokens,)

    def arms(self, limits: tuple[int, ...]) -> tuple[Arm, ...]:
        """Every enforcement at every limit; with one limit an arm is called as its enforcement."""
        several = len(limits) > 1
        return tuple(
            Arm(f"{enforce}@{limit}" if several else enforce, enforce, limit)
            for enforce in self.enforce
            for limit in limits
        )

    @property
    def specs(self) -> tuple[ModelSpec, ...]:
        """The models, read; no two have one alias."""
        return tuple(parse_model(text) for text in self.models)

    @property
    def extra_bodies(self) -> dict[str, dict[str, Any]]:
        """Alias -> extra request fields."""
        pairs = zip(self.specs, self.models, strict=True)
        return {spec.alias: self.about(self.bodies, spec, text) or {} for spec, text in pairs}

    def about(self, table: dict[str, T], spec: ModelSpec, text: str) -> T | None:
        """What a table of `bodies`, `prices` or `endpoints` says of a model: as it was written, by its name in the
        study, or by provider and id."""
        return next((table[key] for key in (text, spec.alias, f"{spec.provider}/{spec.id}") if key in table), None)

    @property
    def title(self) -> str:
        """What the run is called: the study's name, or its models'."""
        aliases = [re.sub(r"[^\w.-]+", "-", spec.alias) for spec in self.specs]
        return self.name or (aliases[0] if len(aliases) == 1 else f"{aliases[0]}+{len(aliases) - 1}")

    @property
    def digest(self) -> str:
        """Over what can change a number; URL, concurrency, transport and name cannot."""
        told = {field: msgspec.to_builtins(getattr(self, field)) for field in _MATTERS}
        told["models"] = [[spec.alias, spec.provider, spec.id] for spec in self.specs]
        # A body stands under a model's whole text, which has the URL in it.
        told["bodies"] = list(self.extra_bodies.values())
        told["temperature"], told["top_p"] = float(self.temperature), float(self.top_p)
        return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()


def parse_model(text: str) -> ModelSpec:
    """Read `[alias=]provider/id[@base_url[@base_url...]]`; a local file is called by its stem. Raises UsageError."""
    match = re.fullmatch(r"(?:([\w.+-]+)=)?([a-z]+)/(.+?)(?:@(https?://.+))?", text)
    if match is None:
        raise UsageError(f"model {text!r} is not provider/id", f"for example openai/gpt-4.1-mini, or {EMBEDDED}")
    alias, provider, id_, url = match.groups()
    if re.search(r"@(\w+://|[\w.-]+:\d+(/|$))", id_):
        raise UsageError(f"model {text!r}: a base URL begins with http:// or https://")
    if provider == "local":
        if url is not None:
            hint = f"a server that already runs: llamacpp/{id_}@{url}"
            raise UsageError(f"model {text!r}: a local model is started here and has no base URL", hint)
        return ModelSpec(alias or (Path(id_).stem if id_.endswith(".gguf") else id_), provider, id_)
    urls = tuple(one.rstrip("/") for one in re.split(r"@(?=https?://)", url)) if url else ()
    _once(f"models: {text!r}", urls)
    return ModelSpec(alias or id_, provider, id_, urls)


NAMES = "a list of names"
MUST = {
    "models": NAMES,
    "tasks": NAMES,
    "wrappers": NAMES,
    "parsers": NAMES,
    "seeds": "a whole number",
    "items": "a whole number",
    "max_tokens": "a whole number, several of them, or auto",
    "temperature": "a number",
    "top_p": "a number",
    "pad": "chars, item, tokens or none",
    "shots": "a whole number",
    "stop": "a list of texts",
    "enforce": "a list of none, json_object, json_schema or grammar",
    "concurrency": "a whole number or auto",
    "rpm": "a whole number",
    "tpm": "a whole number",
    "timeout": "seconds",
    "max_cost": "an amount in USD",
    "max_minutes": "a number of minutes",
    "preflight": "true or false",
    "strict_preflight": "true or false",
    "transport": "aiohttp, httpx or openai",
    "seed": "a whole number",
    "name": "text",
}
"""What each option must be, in the words of an error."""


def wrong(field: str, value: object) -> UsageError:
    """An option that is not what it must be."""
    needed = MUST.get(field, "a table")
    hint = f'write {field} = ["..."]' if needed == NAMES else ""
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
    return UsageError(f"--{field.replace('_', '-')} {shown!r}: must be {needed}", hint)


def _once(field: str, named: tuple[object, ...]) -> None:
    if twice := [name for name in named if named.count(name) > 1]:
        raise UsageError(f"--{field}: {twice[0]!r} is named twice")


def _positive(field: str, value: float | None) -> None:
    """`--max-cost 0` would mean to ask nothing."""
    if value is not None and not 0 < value < math.inf:
        raise UsageError(f"--{field.replace('_', '-')} {value:g}: must be above 0")


def _at_least(field: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"--{field.replace('_', '-')} {value}: must be at least {least}")


def _within(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(f"--{field.replace('_', '-')} {value:g}: must be between {low:g} and {high:g}")
