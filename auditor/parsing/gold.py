"""The shortest reply that fulfils a contract with a given value."""

from __future__ import annotations

import json
from typing import Any

from auditor.parsing import schema, strictjson
from auditor.parsing.contracts import answer_path
from auditor.records import AnswerSpace, Contract

_EMPTY: dict[str, Any] = {
    "string": "", "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}, "null": None,
}  # fmt: skip


def gold_reply(contract: Contract, value: str, space: AnswerSpace) -> str:
    """The reply that the strict parser reads as `value`: `B`, `{"answer": "B"}`, `answer: B`, a block of it.

    For a schema of the user's own: the smallest object with the value at the answer's path, other required
    properties filled with empty values of their type; a number or boolean is unquoted where the schema wants that.
    """
    line = f"{contract.field}: {value}"
    match contract.kind:
        case "json":
            return _json(contract, value, space)
        case "block":
            return f"{contract.begin}\n{line}\n{contract.end}"
        case "text":
            return value
        case _:
            return line


def _json(contract: Contract, value: str, space: AnswerSpace) -> str:
    if space.type == "json" and contract.answer_path is None:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    if contract.schema is None:
        return f"{{{json.dumps(contract.field, ensure_ascii=False)}: {value if space.type == 'json' else quoted}}}"
    forms = [quoted, value] if space.type in ("number", "boolean") else [value if space.type == "json" else quoted]
    replies = [_object(contract, form) for form in forms]
    return next((reply for reply in replies if schema.fits(reply, contract.schema)), replies[0])


def _object(contract: Contract, literal: str) -> str:
    try:
        leaf = strictjson.plain(literal)
    except ValueError:
        leaf = literal
    path = strictjson.pointer(answer_path(contract))
    return strictjson.dumps(_filled(contract.schema or {}, path, leaf))


def _filled(part: Any, path: list[str], leaf: Any) -> Any:
    """The smallest instance of a schema with `leaf` at `path`."""
    if not path:
        return leaf
    part = part if isinstance(part, dict) else {}
    if part.get("type") == "array" and path[0].isdecimal():
        return [_filled(part.get("items"), path[1:], leaf)]
    properties = part.get("properties") if isinstance(part.get("properties"), dict) else {}
    required = part.get("required") if isinstance(part.get("required"), list) else []
    value = {key: _empty(properties.get(key)) for key in required if isinstance(key, str)}
    return value | {path[0]: _filled(properties.get(path[0]), path[1:], leaf)}


def _empty(part: Any) -> Any:
    """A small instance of a property that is required but is not the answer."""
    if not isinstance(part, dict):
        return ""
    for key in ("const", "default"):
        if key in part:
            return part[key]
    if part.get("enum"):
        return part["enum"][0]
    properties = part.get("properties") or {}
    if part.get("type") == "object":
        return {key: _empty(properties.get(key)) for key in part.get("required", ())}
    kind = part.get("type", "string")
    return _EMPTY.get(kind[0] if isinstance(kind, list) and kind else kind, "")
