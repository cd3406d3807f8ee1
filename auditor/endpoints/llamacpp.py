"""llama.cpp's server: the OpenAI chat dialect with its own sampling defaults switched off, and grammars as GBNF."""

from __future__ import annotations

from typing import Any

from auditor.endpoints import grammars, openai
from auditor.records import Constraint, Request

_NEUTRAL = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "cache_prompt": False}
"""The server would apply top_k 40 and min_p 0.05 unasked; a prompt cache makes results depend on what came before."""


def parameters(request: Request, model_id: str) -> dict[str, Any]:
    """The body of a chat completion without its messages."""
    return _NEUTRAL | openai.sampling(request, model_id) | _held(request.constraint)


def _held(constraint: Constraint | None) -> dict[str, Any]:
    """`response_format` for JSON, as other servers take it; `grammar` and `json_schema` only llama.cpp takes."""
    if constraint is None or constraint.kind != "grammar":
        return openai.held(constraint)
    if constraint.schema is not None:
        return {"json_schema": constraint.schema}
    return {"grammar": grammars.gbnf(constraint.grammar)}
