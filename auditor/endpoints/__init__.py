"""Model name -> an endpoint that can be asked. One literal table says how the providers differ."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from auditor.endpoints import llamacpp, openai
from auditor.endpoints.classify import classify
from auditor.endpoints.transport import NetworkError, Transport, one_line
from auditor.errors import UsageError, unknown
from auditor.records import Attempt, Fault, Reply, Request

REQUEST_TIMEOUT = 600.0
_ENCODER = msgspec.json.Encoder()


class Provider(Struct, frozen=True):
    """How a provider differs: its dialect, where it is, which variables hold its key and URL."""

    parameters: Callable[[Request, str], dict[str, Any]]
    key_variable: str
    key_needed: bool = False
    url_variable: str | None = None
    base_url: str | None = None
    summary: str = ""


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        openai.parameters,
        "OPENAI_API_KEY",
        key_needed=True,
        url_variable="OPENAI_BASE_URL",
        base_url="https://api.openai.com/v1",
        summary="OpenAI; OPENAI_API_KEY, OPENAI_BASE_URL",
    ),
    "compat": Provider(
        openai.parameters,
        "AUDITOR_API_KEY",
        summary="any OpenAI-compatible server: compat/<id>@http://host:8000/v1; AUDITOR_API_KEY if it wants one",
    ),
    "llamacpp": Provider(
        llamacpp.parameters,
        "LLAMACPP_API_KEY",
        base_url="http://127.0.0.1:8080/v1",
        summary="a running llama.cpp server, by default at http://127.0.0.1:8080/v1",
    ),
    "local": Provider(
        llamacpp.parameters,
        "",
        summary="a model this machine runs: local/smollm2-135m-instruct, or local/<path>.gguf",
    ),
}


class Endpoint:
    """One model at one base URL. Its key is sent and nowhere else: not in a repr, a record or a message."""

    def __init__(self, provider: Provider, model_id: str, base_url: str, key: str | None, transport: Transport) -> None:
        self.model_id = model_id
        self.base_url = base_url
        self._provider = provider
        self._key = key
        self._transport = transport
        self._url = f"{base_url}/chat/completions"
        self._headers = {"Content-Type": "application/json", **self.auth}

    def __repr__(self) -> str:
        return f"Endpoint({self.model_id!r}, {self.base_url!r}, key={'set' if self._key else 'none'})"

    @property
    def auth(self) -> Mapping[str, str]:
        """The headers that carry the key."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def sent(self, request: Request) -> bytes:
        """The body as sent, JSON, without messages and seed."""
        told = self._provider.parameters(request, self.model_id)
        return _ENCODER.encode({name: value for name, value in told.items() if name not in ("seed", "messages")})

    async def attempt(self, request: Request) -> tuple[Reply | Fault, Attempt]:
        """Ask once."""
        told = self._provider.parameters(request, self.model_id)
        told["messages"] = request.messages
        started, clock = time.time(), time.perf_counter()
        status, body = None, b""
        answer: Reply | Fault
        try:
            http = await self._transport.post(self._url, self._headers, _ENCODER.encode(told), REQUEST_TIMEOUT)
            http = msgspec.structs.replace(http, body=self._without_key(http.body))
            status, body, answer = http.status, http.body, classify(http)
        except NetworkError as error:
            answer = Fault(error.kind, str(error), retryable=True)
        latency = (time.perf_counter() - clock) * 1000
        if isinstance(answer, Reply):
            return answer, Attempt(started, latency, status, None, body)
        answer = msgspec.structs.replace(answer, message=self._without_key(answer.message.encode()).decode())
        return answer, Attempt(started, latency, status, answer.kind, body)

    async def close(self) -> None:
        """Give the connections back."""
        await self._transport.close()

    def _without_key(self, body: bytes) -> bytes:
        """Also where a server writes `\\/` for a slash, as JSON allows."""
        if self._key is None or not _is_secret(self._key):
            return body
        key = self._key.encode()
        return body.replace(key, b"[key]").replace(key.replace(b"/", b"\\/"), b"[key]")


def _is_secret(key: str) -> bool:
    """Masking a placeholder such as `EMPTY`, `none` or `x` would rewrite the answers it occurs in."""
    return len(key) >= 12 or (len(key) >= 6 and not key.isalpha())


def resolve(provider: str, base_url: str | None, environment: Mapping[str, str] = os.environ) -> tuple[str, str | None]:
    """(base URL, key) of a provider, from the name, the environment or the default, in that order.

    Raises UsageError where a URL or a key is needed and missing.
    """
    if provider not in PROVIDERS:
        raise unknown("provider", provider, PROVIDERS, "see: auditor list models")
    known = PROVIDERS[provider]
    url = base_url or environment.get(known.url_variable or "") or known.base_url
    if url is None:
        raise UsageError(f"{provider} needs a base URL", f"write {provider}/<model>@http://host:8000/v1")
    return _checked(provider, url.strip()), _key(provider, known, environment)


def _checked(provider: str, url: str) -> str:
    """A message never shows a URL that carries a password."""
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:  # a port or an IPv6 address that is none
        raise UsageError(f"the base URL of {provider} is not http(s)://host[:port]/path") from None
    if "@" in parts.netloc:
        raise UsageError(f"the base URL of {provider} carries a password", "put the key in the environment instead")
    if wrong:
        raise UsageError(f"base URL {one_line(url)!r} of {provider} is not http(s)://host[:port]/path")
    if parts.query or parts.fragment:
        raise UsageError(f"the base URL of {provider} has a query", "it ends where /chat/completions begins")
    return url.rstrip("/")


def _key(provider: str, known: Provider, environment: Mapping[str, str]) -> str | None:
    """A key read from a file often ends with a newline; any other character that no header can carry is refused."""
    key = environment.get(known.key_variable, "").strip()
    if not key and known.key_needed:
        raise UsageError(
            f"{provider} needs a key and {known.key_variable} is not set", f"export {known.key_variable}=..."
        )
    if not all("!" <= character <= "~" for character in key):
        raise UsageError(f"{known.key_variable} holds a space or a character outside ASCII", "is it the key alone?")
    return key or None
