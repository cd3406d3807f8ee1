"""Model name -> where it is asked and with which key. One literal table says how the providers differ."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from msgspec import Struct

from auditor.endpoints import llamacpp, openai, openrouter, vllm
from auditor.endpoints.transport import one_line
from auditor.errors import UsageError, unknown
from auditor.records import EndpointOptions, Enforcement, Price, Request

_FREE = Price(0.0, 0.0)


class Provider(Struct, frozen=True):
    """How a provider differs: its dialect, where it is, which variables hold its key and URL, what it can enforce.

    `price` is what its models cost where nobody says it: nothing on a server of one's own, unknown elsewhere.
    """

    parameters: Callable[[Request, str], dict[str, Any]]
    enforces: frozenset[Enforcement]
    key_variable: str
    key_needed: bool = False
    url_variable: str | None = None
    base_url: str | None = None
    headers: dict[str, str] = {}
    price: Price | None = None
    summary: str = ""


_JSON: frozenset[Enforcement] = frozenset({"none", "json_object", "json_schema"})
_ALL: frozenset[Enforcement] = _JSON | {"grammar"}

PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        openai.parameters,
        _JSON,
        "OPENAI_API_KEY",
        key_needed=True,
        url_variable="OPENAI_BASE_URL",
        base_url="https://api.openai.com/v1",
        summary="OpenAI; OPENAI_API_KEY, OPENAI_BASE_URL",
    ),
    "openrouter": Provider(
        openrouter.parameters,
        _JSON,
        "OPENROUTER_API_KEY",
        key_needed=True,
        base_url="https://openrouter.ai/api/v1",
        headers=openrouter.ATTRIBUTION,
        summary="OpenRouter, one upstream provider without fallbacks; OPENROUTER_API_KEY",
    ),
    "vllm": Provider(
        vllm.parameters,
        _ALL,
        "VLLM_API_KEY",
        url_variable="VLLM_BASE_URL",
        base_url="http://127.0.0.1:8000/v1",
        price=_FREE,
        summary="a running vLLM server; VLLM_BASE_URL, VLLM_API_KEY, by default at http://127.0.0.1:8000/v1",
    ),
    "llamacpp": Provider(
        llamacpp.parameters,
        _ALL,
        "LLAMACPP_API_KEY",
        base_url="http://127.0.0.1:8080/v1",
        price=_FREE,
        summary="a running llama.cpp server, by default at http://127.0.0.1:8080/v1",
    ),
    "compat": Provider(
        openai.parameters,
        _JSON,
        "AUDITOR_API_KEY",
        summary="any OpenAI-compatible server: compat/<id>@http://host:8000/v1; AUDITOR_API_KEY if it wants one",
    ),
    "local": Provider(
        llamacpp.parameters,
        _ALL,
        "",
        price=_FREE,
        summary="a model this machine runs: local/smollm2-135m-instruct, or local/<path>.gguf",
    ),
}


class Place(Struct, frozen=True):
    """Where one model is asked. What is secret is sent and nowhere else: not in a repr, a record or a message."""

    provider: str
    model_id: str
    base_url: str
    key: str | None = None
    secret_headers: dict[str, str] = {}
    query: dict[str, str] = {}
    key_header: str = "Authorization"
    key_variable: str = ""
    """Which variable holds the key: what to look at where it is refused."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("provider", self.provider), ("model_id", self.model_id), ("base_url", self.base_url)]

    def __repr__(self) -> str:
        return f"Place({self.provider!r}, {self.model_id!r}, {self.base_url!r}, key={'set' if self.key else 'none'})"

    @property
    def dialect(self) -> Provider:
        """How its provider differs."""
        return PROVIDERS[self.provider]

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries, the key among it."""
        key = {}
        if self.key and self.key_header.lower() not in map(str.lower, self.secret_headers):
            bearer = "Bearer " if self.key_header.lower() == "authorization" else ""
            key = {self.key_header: f"{bearer}{self.key}"}
        return {**self.dialect.headers, **self.secret_headers, **key}

    @property
    def url(self) -> str:
        """Where completions are asked for."""
        return self.at("/chat/completions")

    def at(self, path: str) -> str:
        """The address of a path below the base URL."""
        return f"{self.base_url}{path}" + (f"?{urlencode(self.query)}" if self.query else "")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown, as it is and as a URL has it, the longest first: one may hold another."""
        values = {*self.secret_headers.values(), *self.query.values()}
        found = {value for value in values if len(value) >= _LONG}
        if self.key and _is_secret(self.key):
            found.add(self.key)
        found |= {quote_plus(value) for value in found}
        return tuple(sorted(found, key=len, reverse=True))


def masked(body: bytes, secrets: tuple[str, ...]) -> bytes:
    """Without them; also where a server writes `\\/` for a slash, as JSON allows."""
    for secret in map(str.encode, secrets):
        body = body.replace(secret, b"[key]").replace(secret.replace(b"/", b"\\/"), b"[key]")
    return body


_LONG = 16
"""Shorter header and query values are dates, regions or versions: masking them would rewrite answers."""


def _is_secret(value: str) -> bool:
    """Masking a placeholder such as `EMPTY`, `none` or `x` would rewrite the answers it occurs in."""
    return len(value) >= 12 or (len(value) >= 6 and not value.isalpha())


def places(
    provider: str,
    model_id: str,
    base_urls: tuple[str, ...] = (),
    options: EndpointOptions = EndpointOptions(),  # noqa: B008
    environment: Mapping[str, str] = os.environ,
    *,
    asking: bool = True,
) -> tuple[Place, ...]:
    """Where a model is, one place per base URL: from the name, the environment (several with a space or a comma
    between them) or the provider's default, in that order.

    Raises UsageError where a URL is missing, and where it is to be asked also for a key or a variable of `options`.
    """
    if provider not in PROVIDERS:
        raise unknown("provider", provider, PROVIDERS, "see: auditor list models")
    known = PROVIDERS[provider]
    told = environment.get(known.url_variable or "", "")
    urls = base_urls or tuple(filter(None, re.split(r"[\s,]+", told))) or ((known.base_url,) if known.base_url else ())
    if not urls:
        raise UsageError(f"{provider} needs a base URL", f"write {provider}/<model>@http://host:8000/v1")
    if not asking:
        return tuple(Place(provider, model_id, _checked(provider, url)) for url in urls)
    header, variable, key = "Authorization", known.key_variable, None
    for header, variable in options.auth_header.items():  # noqa: B007  (there is at most one)
        key = _variable(variable, environment)
    if key is None:
        key = _key(provider, known, environment, needed=known.key_needed and not options.headers)
    headers = {name: _variable(one, environment) for name, one in options.headers.items()}
    query = {name: _variable(one, environment) for name, one in options.query.items()}
    return tuple(
        Place(provider, model_id, _checked(provider, url), key, headers, query, header, variable) for url in urls
    )


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
        hint = "it ends where /chat/completions begins; a study file's [endpoint] takes a query"
        raise UsageError(f"the base URL of {provider} has a query", hint)
    return url.rstrip("/")


def _key(provider: str, known: Provider, environment: Mapping[str, str], needed: bool) -> str | None:
    key = _clean(known.key_variable, environment)
    if not key and needed:
        raise UsageError(
            f"{provider} needs a key and {known.key_variable} is not set", f"export {known.key_variable}=..."
        )
    return key or None


def _variable(name: str, environment: Mapping[str, str]) -> str:
    value = _clean(name, environment)
    if not value:
        raise UsageError(f"the study's endpoint wants the variable {name}, which is not set", f"export {name}=...")
    return value


def _clean(variable: str, environment: Mapping[str, str]) -> str:
    """A key read from a file often ends with a newline; any other character that no header can carry is refused."""
    value = environment.get(variable, "").strip()
    if not all("!" <= character <= "~" for character in value):
        raise UsageError(f"{variable} holds a space or a character outside ASCII", "is it the key alone?")
    return value
