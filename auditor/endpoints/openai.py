"""The OpenAI chat dialect, as OpenAI and most other servers speak it."""

from __future__ import annotations

from typing import Any

from auditor.records import Request


def parameters(request: Request, model_id: str) -> dict[str, Any]:
    """The body of a chat completion without its messages. Every sampling parameter is sent explicitly.

    A study's extra fields go over these, except over the seed, which is part of what a generation is, and `stream`.
    """
    told: dict[str, Any] = {
        "model": model_id,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    if request.stop:
        told["stop"] = request.stop
    return told | request.extra_body | {"seed": request.seed, "stream": False}
