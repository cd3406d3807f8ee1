"""Users' JSON Schemas: compiled once, never fetched from anywhere."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NoReturn

import jsonschema_rs
import msgspec


def fits(value_json: str, schema: dict[str, Any]) -> bool | None:
    """Whether a JSON text satisfies a schema; None when the schema itself cannot be used."""
    validator = _validator(msgspec.json.encode(schema))
    if validator is None:
        return None
    try:
        return bool(validator.is_valid(json.loads(value_json)))
    except (ValueError, RecursionError, jsonschema_rs.ValidationError):
        return False


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(json.loads(schema), retriever=_offline)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return None


def _offline(uri: str) -> NoReturn:
    # A schema from a task file must not make the parser open a connection.
    raise ValueError(f"{uri} is not part of the schema")
