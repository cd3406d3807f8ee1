"""vLLM's server: the OpenAI chat dialect, the model's own sampling defaults switched off, and grammars as regex."""

from __future__ import annotations

from typing import Any

from auditor.endpoints import grammars, openai
from auditor.records import Constraint, Request

_NEUTRAL = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Unasked, the server takes what the model's generation_config.json says."""


def parameters(request: Request, model_id: str) -> dict[str, Any]:
    """The body of a chat completion without its messages."""
    return _NEUTRAL | openai.sampling(request, model_id) | _held(request.constraint)


def _held(constraint: Constraint | None) -> dict[str, Any]:
    """`response_format` for JSON, as other servers take it; what only vLLM can is in `structured_outputs`."""
    if constraint is None or constraint.kind != "grammar":
        return openai.held(constraint)
    if constraint.schema is not None:
        return {"structured_outputs": {"json": constraint.schema}}
    return {"structured_outputs": {"regex": grammars.regex(constraint.grammar)}}
