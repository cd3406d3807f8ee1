"""Enforcement x contract x answer space -> what decoding is held to, in no server's language. Pure."""

from __future__ import annotations

import json
from typing import Any

from auditor.records import AnswerSpace, Constraint, Contract, Enforcement, Part


def applies(enforce: Enforcement, contract: Contract) -> bool:
    """Whether an arm has cells for a contract: JSON can be enforced only where the prompt asks for JSON."""
    return enforce in ("none", "grammar") or contract.kind == "json"


def constraint(enforce: Enforcement, contract: Contract, space: AnswerSpace) -> Constraint | None:
    """What replies are held to; None in the arm `none`.

    The schema is the user's own, or the portable one: a flat object with one required key. A grammar generates what the
    strict parser reads, apart from free text, which it bounds. Its JSON is that of the schema where there is one.
    """
    if enforce == "none":
        return None
    if enforce == "json_object" or (contract.kind == "json" and space.type == "json" and contract.schema is None):
        return Constraint("json_object")
    if enforce == "json_schema" or contract.schema is not None:
        return Constraint(enforce, schema=contract.schema or portable_schema(contract.field, space))
    return Constraint("grammar", grammar=grammar(contract, space))


def portable_schema(field: str, space: AnswerSpace) -> dict[str, Any]:
    """What every server understands: no pattern, no bounds, nothing optional."""
    leaf: dict[str, Any] = {"type": "string"}
    if space.type == "number":
        leaf = {"type": "number"}
    elif values := _values(space):
        leaf = {"type": "string", "enum": list(values)}
    return {"type": "object", "properties": {field: leaf}, "required": [field], "additionalProperties": False}


def grammar(contract: Contract, space: AnswerSpace) -> tuple[Part, ...]:
    """The replies that fulfil a contract, as a sequence of parts."""
    line = (Part("text", (f"{contract.field}: ",)), _value(space))
    match contract.kind:
        case "json":
            key = json.dumps(contract.field, ensure_ascii=False)
            return (Part("text", (f"{{{key}: ",)), _quoted(space), Part("text", ("}",)))
        case "block":
            return (Part("text", (f"{contract.begin}\n",)), *line, Part("text", (f"\n{contract.end}",)))
        case "final_line":
            return (Part("lines"), *line)
        case "fields":
            return line
        case _:
            return (_value(space),)


def _value(space: AnswerSpace) -> Part:
    if values := _values(space):
        return Part("one_of", values)
    return Part("number") if space.type == "number" else Part("line")


def _quoted(space: AnswerSpace) -> Part:
    if values := _values(space):
        return Part("one_of", tuple(json.dumps(value, ensure_ascii=False) for value in values))
    return Part("number") if space.type == "number" else Part("string")


def _values(space: AnswerSpace) -> tuple[str, ...]:
    return ("true", "false") if space.type == "boolean" else space.labels
