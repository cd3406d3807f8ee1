"""How the hostile server treats a request that holds its reply to a form: a tiny enforcer, or none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import jsonschema_rs
from hostile_dialects import CONSTRAINTS

Treatment = Literal["enforce", "ignore", "refuse", "fails_open"]


@dataclass(frozen=True)
class Holding:
    """`treatment`, or one for each request field, of constraints: `enforce` them (400 for what cannot be compiled),
    `ignore` them, `refuse` them with a 400, or `fails_open` (what cannot be compiled is dropped without a word).

    What cannot be compiled is any constraint whose JSON matches the pattern `uncompilable`. `conforming` are the
    replies to choose from where a regex or a grammar must hold: the first that fits.
    """

    treatment: Treatment | Mapping[str, Treatment] = "enforce"
    uncompilable: str | None = None
    conforming: Sequence[str] = ()

    def of(self, field: str) -> Treatment:
        """How a request field is treated; one that is not named is ignored, as unknown fields are."""
        if isinstance(self.treatment, str):
            return self.treatment
        return self.treatment.get(field, "ignore")

    def judged(self, field: str, value: Any) -> Literal["hold", "free", "refuse"]:
        """What becomes of one constraint."""
        treatment = self.of(field)
        if treatment in ("ignore", "refuse"):
            return "free" if treatment == "ignore" else "refuse"
        if self.uncompilable is None or not re.search(self.uncompilable, json.dumps(value)):
            return "hold"
        return "refuse" if treatment == "enforce" else "free"


def asked(request: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The constraint of a request: its field and value."""
    for field in CONSTRAINTS:
        value = request.get(field)
        if value is not None and value != {"type": "text"}:
            return field, value
    return None


def held(field: str, value: Any, text: str, conforming: Sequence[str]) -> str:
    """The text itself where it conforms, else one that does. Raises LookupError where none of `conforming` does."""
    match field:
        case "response_format":
            if value["type"] == "json_object":
                return _object(text)
            return _instance(value["json_schema"]["schema"], text)
        case "json_schema":
            return _instance(value, text)
        case "grammar":
            return _matching(regex_of(value), text, conforming)
        case _:
            return _structured(value, text, conforming)


def _structured(value: Mapping[str, Any], text: str, conforming: Sequence[str]) -> str:
    if "json" in value:
        return _instance(value["json"], text)
    if "choice" in value:
        return text if text in value["choice"] else str(value["choice"][0])
    if "regex" in value:
        return _matching(value["regex"], text, conforming)
    return _object(text)


def _object(text: str) -> str:
    return text if isinstance(_value(text), dict) else json.dumps({"answer": text})


def _instance(schema: Mapping[str, Any], text: str) -> str:
    value = _value(text)
    if value is not None and _validator(json.dumps(schema)).is_valid(value):
        return text
    return json.dumps(example(schema))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(schema))


def example(schema: Mapping[str, Any]) -> Any:
    """An instance of a simple schema: the first enum value, the first of several types, every property."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {name: example(one) for name, one in schema.get("properties", {}).items()}
        case "array":
            return [example(schema.get("items", {"type": "string"}))]
        case "boolean":
            return True
        case "integer" | "number":
            return 1
        case "null":
            return None
        case _:
            return "x"


def _matching(pattern: str, text: str, conforming: Sequence[str]) -> str:
    fits = next((one for one in (text, *conforming) if re.fullmatch(pattern, one)), None)
    if fits is None:
        raise LookupError(f"no conforming reply was given for {pattern!r}")
    return fits


_GBNF = re.compile(r'"((?:\\.|[^"\\])*)"|(\[(?:\\.|[^\]\\])*\])|\s+|([^"\[\s]+)')
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@lru_cache(maxsize=256)
def regex_of(grammar: str) -> str:
    """A GBNF grammar with a root rule alone, as a regular expression."""
    name, _, rule = grammar.partition("::=")
    if name.strip() != "root" or "::=" in rule:
        raise LookupError(f"only a root rule is understood: {grammar!r}")
    return _GBNF.sub(_piece, rule)


def _piece(match: re.Match[str]) -> str:
    literal, characters, rest = match.groups()
    if literal is not None:
        plain = _ESCAPED.sub(_unescaped, literal)
        return f"(?:{re.escape(plain)})"
    return characters or rest or ""


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])
