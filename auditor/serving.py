"""`auditor serve`: a model for other programs, on loopback only, by llama.cpp or by vLLM."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from auditor.audit import Say
from auditor.endpoints import local, vllm_server
from auditor.errors import UsageError
from auditor.study import ModelSpec, parse_model

_HINT = "local/<name>, local/<path>.gguf, or vllm/<path or id>"


def serve(model: str, port: int, slots: int, *, say: Say, tell: Say, arguments: Sequence[str] = ()) -> None:
    """Start, print the --models value and how other programs reach it, and wait. Raises UsageError, EndpointDown.

    `slots` is llama.cpp's, `arguments` are vLLM's own.
    """
    spec = parse_model(model)
    if spec.provider not in ("local", "vllm") or spec.base_urls:
        raise UsageError(f"{model!r} is not a model this machine can run", _HINT)
    if spec.provider == "vllm":
        _vllm(spec, port, arguments, say, tell)
    elif arguments:
        raise UsageError(f"{model!r} takes no arguments after --: {arguments[0]!r}", "vllm/<path or id> does")
    else:
        _llamacpp(spec, port, slots, say, tell)


def _llamacpp(spec: ModelSpec, port: int, slots: int, say: Say, tell: Say) -> None:
    weights = local.weights(spec.id, say)
    with local.LocalServer(weights, spec.alias, slots=slots, port=port, key="") as server:
        _announce("llamacpp", spec.alias, server.base_url, say, tell)
        server.wait()


def _vllm(spec: ModelSpec, port: int, arguments: Sequence[str], say: Say, tell: Say) -> None:
    name = _name(spec)
    vllm_server.command("", spec.id, name, port, arguments)  # what cannot be is told before minutes of loading
    vllm_server.interpreter()
    say(f"starting vLLM with {spec.id}: a large model loads for minutes")
    with _ended_by_signals(), vllm_server.VllmServer(spec.id, name, port=port, arguments=arguments) as server:
        _announce("vllm", name, server.base_url, say, tell)
        server.wait()


def _name(spec: ModelSpec) -> str:
    """What the server calls the model: its alias, a folder's name, or its id."""
    if spec.alias != spec.id:
        return spec.alias
    folder = Path(spec.id)
    return folder.resolve().name if folder.is_dir() else spec.id


def _announce(provider: str, name: str, base_url: str, say: Say, tell: Say) -> None:
    value = f"{provider}/{name}@{base_url}"
    tell(value)
    say(f"use it as: auditor run --models {value}")
    asked = provider == "vllm" and os.environ.get(vllm_server.KEY)
    key = f"the api_key that {vllm_server.KEY} holds" if asked else "any api_key"
    say(f'OpenAI clients: base_url="{base_url}", model="{name}", {key}; Ctrl-C ends it')


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """vLLM outlives its parent: a closed terminal and a plain `kill` must end it too, as Ctrl-C does."""
    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _stop(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
