"""`auditor serve`: a local endpoint for other programs, on loopback only."""

from __future__ import annotations

from auditor.audit import Say
from auditor.endpoints import local
from auditor.errors import UsageError
from auditor.study import parse_model


def serve(model: str, port: int, slots: int, *, say: Say, tell: Say) -> None:
    """Start, print the --models value and how other programs reach it, and wait. Raises UsageError."""
    spec = parse_model(model)
    if spec.provider != "local":
        raise UsageError(f"{model!r} is not a model this machine can run", "local/<name>, or local/<path>.gguf")
    weights = local.weights(spec.id, say)
    with local.LocalServer(weights, spec.alias, slots=slots, port=port, key="") as server:
        tell(f"llamacpp/{spec.alias}@{server.base_url}")
        say(f"use it as: auditor run --models llamacpp/{spec.alias}@{server.base_url}")
        say(f'OpenAI clients: base_url="{server.base_url}", model="{spec.alias}", any api_key; Ctrl-C ends it')
        server.wait()
