"""Study: everything a run is told, frozen. Read from TOML, overridden by options, filled with defaults at the edge."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from auditor.errors import FileError, UsageError, unknown
from auditor.records import AnswerType

Pad = Literal["chars", "item", "tokens", "none"]
Transport = Literal["aiohttp", "httpx"]

EMBEDDED = "local/smollm2-135m-instruct"
BUNDLED_TASKS = ("categories", "comparisons", "arithmetic", "groups", "lookup")

_DEFAULTS: dict[str, Any] = {
    "models": (EMBEDDED,),
    "tasks": BUNDLED_TASKS,
    "wrappers": ("all",),
    "parsers": ("strict", "paper", "normalized"),
    "seeds": 5,
    "items": 200,
    "max_tokens": "auto",
    "temperature": 0.7,
    "pad": "chars",
    "shots": 0,
    "concurrency": 16,
    "transport": "aiohttp",
}
_LOCAL_DEFAULTS = {"seeds": 2, "items": 10, "concurrency": 8}
"""What a model on this machine gets instead, so that a first audit ends in minutes."""

_NAMES = "a list of names"
_MUST = {
    "models": _NAMES,
    "tasks": _NAMES,
    "wrappers": _NAMES,
    "parsers": _NAMES,
    "seeds": "a whole number",
    "items": "a whole number",
    "max_tokens": "a whole number or auto",
    "temperature": "a number",
    "top_p": "a number",
    "pad": "chars, item, tokens or none",
    "shots": "a whole number",
    "stop": "a list of texts",
    "concurrency": "a whole number",
    "transport": "aiohttp or httpx",
    "seed": "a whole number",
    "name": "text",
}
"""What each option must be, in the words of an error."""
_TASK_MUST = {
    "columns": "a table of names",
    "answer_type": ", ".join(get_args(AnswerType)[:-1]) + f" or {get_args(AnswerType)[-1]}",
}
_OWN_FIELDS = frozenset(
    {"model", "messages", "prompt", "max_tokens", "temperature", "top_p", "stop", "seed", "stream", "n"}
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


class ModelSpec(Struct, frozen=True):
    """`[alias=]provider/id[@base_url]`: `alias` is the model's name in the study, `id` what the endpoint calls it."""

    alias: str
    provider: str
    id: str
    base_url: str | None = None


class TaskOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """How a task file is read: our column name -> the file's, and the type of its answers where it is not inferred."""

    columns: dict[str, str] = {}
    answer_type: AnswerType | None = None


class Study(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run is told. Raises UsageError for a value that cannot be.

    `seeds` is a count K: seeds 0..K-1 are sent. `items` are drawn per task by `seed`, all if there are fewer.
    `bodies` are extra request fields per model, `task_options` how task files are read, both by name in the study.
    """

    models: tuple[str, ...] = _DEFAULTS["models"]
    tasks: tuple[str, ...] = _DEFAULTS["tasks"]
    wrappers: tuple[str, ...] = _DEFAULTS["wrappers"]
    parsers: tuple[str, ...] = _DEFAULTS["parsers"]
    seeds: int = _DEFAULTS["seeds"]
    items: int = _DEFAULTS["items"]
    max_tokens: int | Literal["auto"] = _DEFAULTS["max_tokens"]
    temperature: float = _DEFAULTS["temperature"]
    top_p: float = 1.0
    pad: Pad = _DEFAULTS["pad"]
    shots: int = _DEFAULTS["shots"]
    stop: tuple[str, ...] = ()
    concurrency: int = _DEFAULTS["concurrency"]
    transport: Transport = _DEFAULTS["transport"]
    seed: int = 0
    name: str = ""
    bodies: dict[str, dict[str, Any]] = {}
    task_options: dict[str, TaskOptions] = {}

    def __post_init__(self) -> None:
        for field, allowed in (("pad", get_args(Pad)), ("transport", get_args(Transport))):
            if getattr(self, field) not in allowed:
                raise _wrong(field, getattr(self, field))
        for field, least in (("seeds", 1), ("items", 1), ("shots", 0), ("concurrency", 1)):
            _at_least(field, getattr(self, field), least)
        if self.max_tokens != "auto":
            _at_least("max_tokens", self.max_tokens, 1)
        _within("temperature", self.temperature, 0.0, 2.0)
        _within("top_p", self.top_p, 0.0, 1.0)
        for field in ("models", "tasks", "wrappers", "parsers"):
            named = getattr(self, field)
            if isinstance(named, str):
                raise _wrong(field, named)
            if not named:
                raise UsageError(f"--{field}: none named")
            if twice := {name for name in named if named.count(name) > 1}:
                raise UsageError(f"--{field}: {sorted(twice)[0]!r} is named twice")
        if self.name and not re.fullmatch(r"[\w.+-]+", self.name):
            raise UsageError(f"--name {self.name!r}: use letters, digits, _ . + -")
        aliases = [spec.alias for spec in self.specs]
        if twice := {alias for alias in aliases if aliases.count(alias) > 1}:
            hint = "give one another name: --models a=...,b=..."
            raise UsageError(f"two models are called {sorted(twice)[0]!r}", hint)
        for model, body in self.bodies.items():
            if taken := sorted(_OWN_FIELDS & set(body)):
                raise UsageError(f"the body of {model!r} sets {taken[0]}, which is the study's to set")

    @property
    def specs(self) -> tuple[ModelSpec, ...]:
        """The models, read; no two have one alias."""
        return tuple(parse_model(text) for text in self.models)

    @property
    def extra_bodies(self) -> dict[str, dict[str, Any]]:
        """Alias -> extra request fields: what `bodies` says by the model as it was written, URL and all."""
        return {spec.alias: self.bodies.get(text, {}) for spec, text in zip(self.specs, self.models, strict=True)}

    @property
    def title(self) -> str:
        """What the run is called: the study's name, or its models'."""
        aliases = [re.sub(r"[^\w.-]+", "-", spec.alias) for spec in self.specs]
        return self.name or (aliases[0] if len(aliases) == 1 else f"{aliases[0]}+{len(aliases) - 1}")

    @property
    def digest(self) -> str:
        """Over what can change a number; URL, concurrency, transport and name cannot."""
        told = msgspec.to_builtins(self)
        for field in ("concurrency", "transport", "name"):
            del told[field]
        told["models"] = [[spec.alias, spec.provider, spec.id] for spec in self.specs]
        # A body stands under a model's whole text, which has the URL in it.
        told["bodies"] = list(self.extra_bodies.values())
        told["temperature"], told["top_p"] = float(self.temperature), float(self.top_p)
        return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()


def parse_model(text: str) -> ModelSpec:
    """Read `[alias=]provider/id[@base_url]`; a local file is called by its stem. Raises UsageError."""
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
    return ModelSpec(alias or id_, provider, id_, url.rstrip("/") if url else None)


def build(options: Mapping[str, Any], source: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """Preset or file `source`, overridden by `options` that are not None, filled with defaults.

    Returns the study and what to tell the user about defaults. Raises UsageError for an option and FileError for a
    file that cannot be, whichever says it.
    """
    told = _read(source)
    try:
        _convert(told)
    except UsageError as error:
        raise _in_file(Path(str(source)), "", error) from error
    told |= {key: value for key, value in options.items() if value is not None}
    study = _convert(told)
    if any(spec.provider != "local" for spec in study.specs):
        return study, ()
    smaller = {key: value for key, value in _LOCAL_DEFAULTS.items() if key not in told}
    return _convert(smaller | told), _said(smaller)


def _said(smaller: Mapping[str, Any]) -> tuple[str, ...]:
    keys = [key for key in ("items", "seeds") if key in smaller]
    if not keys:
        return ()
    size = " ".join(f"--{key} {smaller[key]}" for key in keys)
    usual = " ".join(f"--{key} {_DEFAULTS[key]}" for key in keys)
    return (f"a model on this machine is asked less by default ({size}), to end in minutes; a full audit: {usual}",)


def _convert(told: Mapping[str, Any]) -> Study:
    try:
        return msgspec.convert({**_DEFAULTS, **told}, Study)
    except msgspec.ValidationError as error:
        raise _complaint(error, told, _MUST) from error


def _complaint(error: msgspec.ValidationError, told: Mapping[str, Any], must: Mapping[str, str]) -> UsageError:
    field = re.search(r"\$\.(\w+)", str(error))
    if field is None:
        return unknown("option", re.findall(r"`(.+?)`", str(error))[-1], must)
    return _wrong(field[1], told[field[1]], must)


def _wrong(field: str, value: object, must: Mapping[str, str] = _MUST) -> UsageError:
    needed = must.get(field, "a table")
    hint = f'write {field} = ["..."]' if needed == _NAMES else ""
    return UsageError(f"--{field.replace('_', '-')} {value!r}: must be {needed}", hint)


def _in_file(path: Path, where: str, error: UsageError) -> FileError:
    """An option's error in the words of a file: `seeds`, not `--seeds`."""
    key = re.sub(r"^--[\w-]+", lambda option: option[0][2:].replace("-", "_"), error.message)
    return FileError(path, where + key, error.hint)


def _read(source: str | None) -> dict[str, Any]:
    if source is None:
        return {}
    if source in PRESETS:
        return dict(PRESETS[source])
    path = Path(source)
    if path.suffix != ".toml":
        raise unknown("study", source, PRESETS, "a path to a .toml file works too")
    try:
        tree = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise FileError(path, error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"not TOML: {error}") from error
    except RecursionError as error:
        raise FileError(path, "not TOML: nested too deeply") from error
    return _flatten(path, tree)


def _flatten(path: Path, tree: dict[str, Any]) -> dict[str, Any]:
    """`[models."x".body]` and `[tasks."y".columns]` beside the plain lists `models = [...]`, `tasks = [...]`."""
    if odd := sorted({"bodies", "task_options"} & set(tree)):
        hint = 'write [models."name".body] or [tasks."name".columns]'
        raise FileError(path, f"unknown option {odd[0]!r}", hint)
    told = dict(tree)
    if isinstance(models := tree.get("models"), dict):
        told["models"] = list(models)
        told["bodies"] = {name: _body(path, name, table) for name, table in models.items() if table != {}}
    if isinstance(tasks := tree.get("tasks"), dict):
        told["tasks"] = list(tasks)
        told["task_options"] = {name: _task_options(path, name, table) for name, table in tasks.items() if table != {}}
    return told


def _body(path: Path, name: str, table: object) -> dict[str, Any]:
    if not isinstance(table, dict) or set(table) != {"body"} or not isinstance(table["body"], dict):
        hint = f'write [models."{name}".body] and below it what to send, for example provider = {{order = ["..."]}}'
        raise FileError(path, f'models."{name}": only a table body can stand here', hint)
    return table["body"]


def _task_options(path: Path, name: str, table: object) -> TaskOptions:
    where = f'tasks."{name}"'
    if not isinstance(table, dict):
        raise FileError(path, f"{where} {table!r}: must be a table", "it may have columns and answer_type")
    try:
        return msgspec.convert(table, TaskOptions)
    except msgspec.ValidationError as error:
        raise _in_file(path, f"{where}: ", _complaint(error, table, _TASK_MUST)) from error


def _at_least(field: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"--{field.replace('_', '-')} {value}: must be at least {least}")


def _within(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(f"--{field.replace('_', '-')} {value:g}: must be between {low:g} and {high:g}")
