"""Presets, files and options -> Study: options over the file, the file over its preset, defaults under all of them."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from auditor.errors import FileError, UsageError, unknown
from auditor.records import AnswerType, EndpointOptions, Price
from auditor.study import FUNCTION, MUST, PRESETS, Study, TaskOptions, wrong

T = TypeVar("T")

_LOCAL_DEFAULTS: dict[str, Any] = {"seeds": 2, "items": 10, "concurrency": 8}
"""What a model on this machine gets instead, so that a first audit ends in minutes."""

_TASK_MUST = {
    "columns": "a table of names",
    "answer_type": ", ".join(get_args(AnswerType)[:-1]) + f" or {get_args(AnswerType)[-1]}",
}
_ENDPOINT_MUST = {
    "headers": "a table: header name = environment variable",
    "query": "a table: parameter = environment variable",
    "auth_header": "a table of one: header name = environment variable",
}
_PRICE_MUST = dict.fromkeys(("prompt", "completion"), "USD per million tokens, 0 or more") | {
    "request": "USD per request, 0 or more"
}
_PARTS = {"body": "bodies", "price": "prices", "endpoint": "endpoints"}
"""What may stand below a model in a file -> the study's field that holds it."""


def build(options: Mapping[str, Any], source: str | None = None) -> tuple[Study, tuple[str, ...]]:
    """Preset or file `source`, overridden by `options` that are not None, filled with defaults.

    Returns the study and what to tell the user about defaults. Raises UsageError for an option and FileError for a
    file that cannot be, whichever says it.
    """
    told = _read(source)
    try:
        _refuse_functions(_convert(told).parsers)
    except UsageError as error:
        raise _in_file(Path(str(source)), "", error) from error
    given = {key: value for key, value in options.items() if value is not None}
    if "prices" in given:
        given["prices"] = told.get("prices", {}) | given["prices"]
    told |= given
    study = _convert(told)
    idle = tuple(f'[models."{name}"] of the study is about none of the models that are asked' for name in _idle(study))
    if any(spec.provider != "local" for spec in study.specs):
        return study, idle
    smaller = {key: value for key, value in _LOCAL_DEFAULTS.items() if key not in told}
    return _convert(smaller | told), (*idle, *_said(smaller))


def _refuse_functions(parsers: Sequence[str]) -> None:
    for name in parsers:
        if name.startswith(FUNCTION):
            raise UsageError(f"--parsers {name!r}: code runs only if the command line names it", f"--parsers {name}")


def _idle(study: Study) -> list[str]:
    """Models that have settings and are not asked."""
    named = {
        key
        for spec, text in zip(study.specs, study.models, strict=True)
        for key in (text, spec.alias, f"{spec.provider}/{spec.id}")
    }
    return sorted({*study.bodies, *study.endpoints} - named)


def read_prices(path: Path) -> dict[str, Price]:
    """A file of prices: a table per model as `--models` names it. Raises FileError."""
    tree = _toml(path)
    if not tree:
        raise FileError(path, "no prices", '["openai/gpt-4.1-mini"] and below it prompt = 0.4, completion = 1.6')
    return {name: _price(path, f'"{name}"', table) for name, table in tree.items()}


def _said(smaller: Mapping[str, Any]) -> tuple[str, ...]:
    keys = [key for key in ("items", "seeds") if key in smaller]
    if not keys:
        return ()
    usual_study = Study()
    size = " ".join(f"--{key} {smaller[key]}" for key in keys)
    usual = " ".join(f"--{key} {getattr(usual_study, key)}" for key in keys)
    return (f"a model on this machine is asked less by default ({size}), to end in minutes; a full audit: {usual}",)


def _convert(told: Mapping[str, Any]) -> Study:
    try:
        return msgspec.convert(told, Study)
    except msgspec.ValidationError as error:
        raise _complaint(error, told, MUST) from error


def _complaint(error: msgspec.ValidationError, told: Mapping[str, Any], must: Mapping[str, str]) -> UsageError:
    field = re.search(r"\$\.(\w+)", str(error))
    if field is not None:
        if must is MUST:
            return wrong(field[1], told[field[1]])
        if must is _ENDPOINT_MUST:  # it may hold a key that somebody pasted
            return UsageError(f"{field[1]}: must be {must[field[1]]}")
        return UsageError(f"{field[1]} {told[field[1]]!r}: must be {must[field[1]]}")
    name = re.findall(r"`(.+?)`", str(error))[-1]
    if "missing" in str(error):
        return UsageError(f"{name}: there is none", f"it must be {must[name]}")
    return unknown("option", name, must)


def _in_file(path: Path, where: str, error: UsageError) -> FileError:
    """An option's error in the words of a file: `seeds`, not `--seeds`."""
    key = re.sub(r"^--[\w-]+", lambda option: option[0][2:].replace("-", "_"), error.message)
    return FileError(path, where + key, error.hint)


# Files ---------------------------------------------------------------------------------------------------------


def _read(source: str | None) -> dict[str, Any]:
    if source is None:
        return {}
    if source in PRESETS:
        return dict(PRESETS[source])
    path = Path(source)
    if path.suffix != ".toml":
        raise unknown("study", source, PRESETS, "a path to a .toml file works too")
    tree = _toml(path)
    preset = tree.pop("preset", None)
    if preset is not None and (not isinstance(preset, str) or preset not in PRESETS):
        raise FileError(path, unknown("preset", str(preset), PRESETS).message, f"known: {', '.join(PRESETS)}")
    return (PRESETS[preset] if preset else {}) | _flatten(path, tree)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise FileError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise FileError(path, "not UTF-8", "save the file as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"not TOML: {error}", _toml_hint(str(error))) from error
    except RecursionError as error:
        raise FileError(path, "not TOML: nested too deeply") from error


def _toml_hint(said: str) -> str:
    if "twice" in said and "'models'" in said:
        return 'beside [models."..."] tables there is no list models = [...]: each table names a model'
    return (
        'a name with / or . needs quotes: ["openai/gpt-4.1-mini"]' if "key/value" in said or "Expected" in said else ""
    )


def _flatten(path: Path, tree: dict[str, Any]) -> dict[str, Any]:
    """`[models."x".body]` and `[tasks."y".columns]` beside the plain lists `models = [...]`, `tasks = [...]`."""
    if odd := sorted({*_PARTS.values(), "task_options"} & set(tree)):
        hint = 'write [models."name".body], .price or .endpoint, or [tasks."name".columns]'
        raise FileError(path, f"unknown option {odd[0]!r}", hint)
    told = dict(tree)
    if isinstance(models := tree.get("models"), dict):
        told |= {field: {} for field in _PARTS.values()}
        told["models"] = list(models)
        for name, table in models.items():
            for field, value in _model(path, name, table).items():
                told[field][name] = value
    if "endpoint" in tree:
        told["endpoint"] = _endpoint(path, "endpoint", tree["endpoint"])
    if isinstance(tasks := tree.get("tasks"), dict):
        told["tasks"] = list(tasks)
        told["task_options"] = {
            name: _struct(path, f'tasks."{name}"', table, TaskOptions, _TASK_MUST)
            for name, table in tasks.items()
            if table != {}
        }
    return told


def _model(path: Path, name: str, table: object) -> dict[str, Any]:
    where = f'models."{name}"'
    if not isinstance(table, dict) or set(table) - set(_PARTS) or not isinstance(table.get("body", {}), dict):
        hint = f'write [{where}.body] and below it what to send, for example provider = {{only = ["..."]}}'
        raise FileError(path, f"{where}: only the tables body, price and endpoint can stand here", hint)
    found: dict[str, Any] = {"bodies": table["body"]} if "body" in table else {}
    if "price" in table:
        found["prices"] = _price(path, f"{where}.price", table["price"])
    if "endpoint" in table:
        found["endpoints"] = _endpoint(path, f"{where}.endpoint", table["endpoint"])
    return found


def _price(path: Path, where: str, table: object) -> Price:
    price = _struct(path, where, table, Price, _PRICE_MUST)
    for field, needed in _PRICE_MUST.items():
        value = getattr(price, field)
        if not 0 <= value < math.inf:
            raise FileError(path, f"{where}: {field} {value:g}: must be {needed}")
    return price


def _endpoint(path: Path, where: str, table: object) -> EndpointOptions:
    options = _struct(path, where, table, EndpointOptions, _ENDPOINT_MUST)
    if len(options.auth_header) > 1:
        raise FileError(path, f"{where}: auth_header names {len(options.auth_header)} headers, one carries the key")
    for field in _ENDPOINT_MUST:
        for name, variable in getattr(options, field).items():
            if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):
                hint = "the value is never in the file: name the environment variable that holds it, in capitals"
                raise FileError(path, f"{where}: {field}.{name} does not name an environment variable", hint)
            if not re.fullmatch(r"[\w.~-]+", name):
                raise FileError(path, f"{where}: {field} has a name that none can have: {name!r}")
    return options


def _struct(path: Path, where: str, table: object, kind: type[T], must: Mapping[str, str]) -> T:
    if not isinstance(table, dict):
        shown = "" if must is _ENDPOINT_MUST else f" {table!r}"
        raise FileError(path, f"{where}{shown}: must be a table", f"it may have {', '.join(must)}")
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise _in_file(path, f"{where}: ", _complaint(error, table, must)) from error
