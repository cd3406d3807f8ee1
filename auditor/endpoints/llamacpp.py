"""llama.cpp's server: the OpenAI chat dialect with its own sampling defaults switched off, and its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx
import msgspec

from auditor.endpoints import openai
from auditor.endpoints.classify import error_text, status_fault
from auditor.endpoints.transport import CONNECT_TIMEOUT, one_line, proxy_for
from auditor.errors import EndpointDown, RequestRefused
from auditor.records import Message, Request

T = TypeVar("T")
_TIMEOUT = httpx.Timeout(60, connect=CONNECT_TIMEOUT)
_HINT = "llamacpp/ is for llama.cpp's own server with the right key; name any other one compat/<model>@<url>"

_NEUTRAL = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "cache_prompt": False}
"""The server would apply top_k 40 and min_p 0.05 unasked; a prompt cache makes results depend on what came before."""


def parameters(request: Request, model_id: str) -> dict[str, Any]:
    """The body of a chat completion without its messages."""
    return _NEUTRAL | openai.parameters(request, model_id)


class Tokenizer:
    """Counts tokens with the server's own tokenizer and chat template. Raises EndpointDown, RequestRefused."""

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        self._root = base_url.removesuffix("/v1")
        self._client = httpx.Client(
            base_url=self._root, headers=dict(headers), trust_env=False, proxy=proxy_for(self._root), timeout=_TIMEOUT
        )

    def count(self, text: str) -> int:
        """Tokens of a text on its own."""
        return len(self._post("/tokenize", {"content": text}, "tokens", list))

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation as the model sees it."""
        prompt = self._post("/apply-template", {"messages": msgspec.to_builtins(messages)}, "prompt", str)
        return len(
            self._post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True}, "tokens", list)
        )

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _post(self, path: str, body: dict[str, Any], field: str, kind: type[T]) -> T:
        where = f"the tokenizer at {self._root}{path}"
        try:
            reply = self._client.post(path, json=body)
        except httpx.HTTPError as error:
            said = one_line(str(error)) or type(error).__name__
            raise EndpointDown(f"{where} does not answer: {said}", "is llama.cpp's server running there?") from error
        if reply.status_code != 200:
            fault = status_fault(reply.status_code, error_text(reply.content), {})
            kind_of_error = EndpointDown if fault.retryable else RequestRefused
            raise kind_of_error(f"{where}: {fault.message}", _HINT)
        try:
            value = reply.json()[field]
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            value = None
        if not isinstance(value, kind):
            raise RequestRefused(f"{where}: the reply has no {field}", _HINT)
        return value
