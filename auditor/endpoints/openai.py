"""The OpenAI chat dialect, as OpenAI and most other servers speak it."""

from __future__ import annotations

from typing import Any

from auditor.records import Constraint, Request


def parameters(request: Request, model_id: str) -> dict[str, Any]:
    """The body of a chat completion without its messages. Every sampling parameter is sent explicitly.

    A study's extra fields go over these, except over the seed, which is part of what a generation is, and `stream`.
    """
    return sampling(request, model_id) | held(request.constraint)


def sampling(request: Request, model_id: str) -> dict[str, Any]:
    """The same without what decoding is held to, which not every server is told in these words."""
    told: dict[str, Any] = {
        "model": model_id,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    if request.stop:
        told["stop"] = request.stop
    return told | request.extra_body | {"seed": request.seed, "stream": False}


def held(constraint: Constraint | None) -> dict[str, Any]:
    """`response_format`, where decoding is held to JSON."""
    if constraint is None:
        return {}
    if constraint.schema is None:
        return {"response_format": {"type": "json_object"}}
    schema = {"name": "reply", "schema": constraint.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
