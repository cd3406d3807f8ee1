"""OpenRouter: the OpenAI chat dialect with routing, which must not move between requests; its list of prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.endpoints import openai
from auditor.records import Price, Request

ATTRIBUTION = {"HTTP-Referer": "https://pypi.org/project/format-auditor/", "X-OpenRouter-Title": "auditor"}

_ROUTING = {"require_parameters": True, "allow_fallbacks": False}
"""Unasked, a provider that lacks a parameter ignores it, and the next request may go to another provider."""


def parameters(request: Request, model_id: str) -> dict[str, Any]:
    """The body of a chat completion without its messages. What the study says of `provider` goes over our routing."""
    told = openai.parameters(request, model_id)
    return told | {"provider": _ROUTING | _table(request.extra_body.get("provider"))}


def pinned(body: Mapping[str, Any]) -> bool:
    """Whether a study's extra fields already say which provider answers."""
    routing = _table(body.get("provider"))
    return bool(routing.get("only") or routing.get("order"))


def price(model: Any) -> Price | None:
    """What an entry of the model list costs: USD strings per token there, USD per million tokens here. Where a long
    prompt costs more, the highest price. None where it is not told, or varies (a router's price is -1)."""
    pricing = _table(_table(model).get("pricing"))
    base = [_usd(pricing.get(name)) for name in ("prompt", "completion")]
    if None in base:
        return None
    overrides = pricing.get("overrides")
    tables = [pricing, *(_table(one) for one in (overrides if isinstance(overrides, list) else []))]
    prompt, completion, request = (
        max(_usd(table.get(name)) or 0.0 for table in tables) for name in ("prompt", "completion", "request")
    )
    return Price(prompt * 1e6, completion * 1e6, request)


def tag(endpoints: Any, provider: str) -> str | None:
    """The slug of a provider in the list of a model's endpoints: what `provider.only` takes."""
    listed = _table(_table(endpoints).get("data")).get("endpoints")
    for one in listed if isinstance(listed, list) else []:
        if _table(one).get("provider_name") == provider and isinstance(found := _table(one).get("tag"), str):
            return found
    return None


def _usd(text: Any) -> float | None:
    try:
        amount = float(text)
    except (TypeError, ValueError):
        return None
    return amount if 0 <= amount < 1e6 else None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
