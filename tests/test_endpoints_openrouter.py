"""OpenRouter: routing that does not move, and prices as its list of models tells them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from samples import request

from auditor.endpoints.openrouter import parameters, pinned, price, tag
from auditor.records import Constraint, Price


def body(constraint: Constraint | None = None, **extra: Any) -> dict[str, Any]:
    return parameters(msgspec.structs.replace(request(), constraint=constraint, extra_body=extra), "acme/m")


# What is sent --------------------------------------------------------------------------------------------------


def test_routing_stays_with_providers_that_know_every_parameter() -> None:
    """Unasked, a parameter may be ignored and the next request may go elsewhere."""
    assert body() == {
        "model": "acme/m",
        "max_tokens": 64,
        "temperature": 0.7,
        "top_p": 1.0,
        "seed": 0,
        "stream": False,
        "provider": {"require_parameters": True, "allow_fallbacks": False},
    }


def test_what_a_study_says_of_routing_is_kept_and_goes_over_ours() -> None:
    """Field by field; what is no table of fields is no routing."""
    routing = {"only": ["deepinfra/fp8"], "quantizations": ["fp8"], "allow_fallbacks": True}
    assert body(provider=routing, top_k=4)["provider"] == {
        "only": ["deepinfra/fp8"],
        "quantizations": ["fp8"],
        "require_parameters": True,
        "allow_fallbacks": True,
    }
    assert body(provider={"require_parameters": False})["provider"] == {
        "require_parameters": False,
        "allow_fallbacks": False,
    }
    assert body(provider="acme")["provider"] == {"require_parameters": True, "allow_fallbacks": False}
    assert body(top_k=4)["top_k"] == 4
    assert routing == {"only": ["deepinfra/fp8"], "quantizations": ["fp8"], "allow_fallbacks": True}


def test_a_schema_is_told_as_openai_takes_it() -> None:
    """`response_format`, beside the routing."""
    schema = {"type": "object"}
    told = body(Constraint("json_schema", schema=schema))
    assert told["response_format"]["json_schema"] == {"name": "reply", "schema": schema, "strict": True}
    assert told["provider"]["require_parameters"] is True


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, False),
        ({"provider": {}}, False),
        ({"provider": {"sort": "price"}}, False),
        ({"provider": {"only": []}}, False),
        ({"provider": {"only": ["a"]}}, True),
        ({"provider": {"order": ["a", "b"]}}, True),
        ({"provider": "a"}, False),
    ],
)
def test_pinned_is_who_answers_not_how(extra: dict[str, Any], expected: bool) -> None:
    """`only` or `order` names a provider; a sort, or nothing in the list, does not."""
    assert pinned(extra) is expected


# Prices --------------------------------------------------------------------------------------------------------


def listed(**pricing: Any) -> dict[str, Any]:
    return {"id": "acme/m", "pricing": pricing}


def about(found: Price | None) -> tuple[float, float, float] | None:
    return None if found is None else (found.prompt, found.completion, found.request)


def test_dollars_per_token_become_dollars_per_million() -> None:
    """The list has strings; the price of a request stays one of a request."""
    entry = listed(prompt="0.00000015", completion="0.0000006", request="0.01", image="0.2", internal_reasoning="0")
    assert about(price(entry)) == pytest.approx((0.15, 0.6, 0.01))
    assert about(price(listed(prompt="0.000003", completion="0.000015"))) == pytest.approx((3.0, 15.0, 0.0))
    assert price(listed(prompt="0", completion="0")) == Price(0.0, 0.0)
    assert about(price(listed(prompt=0.000001, completion=0.000002))) == pytest.approx((1.0, 2.0, 0.0))


def test_where_a_long_prompt_costs_more_the_highest_price_counts() -> None:
    """Each part on its own, over all overrides; none makes it cheaper."""
    overrides = [
        {"min_prompt_tokens": 200000, "prompt": "0.0000025", "completion": "0.000015"},
        {"utc": "00:00-06:00", "prompt": "0.0000005", "request": "0.001"},
        "not a table",
    ]
    entry = listed(prompt="0.00000125", completion="0.00001", overrides=overrides)
    assert about(price(entry)) == pytest.approx((2.5, 15.0, 0.001))


@pytest.mark.parametrize(
    "entry",
    [
        listed(prompt="-1", completion="-1"),
        listed(prompt="0.000001", completion="-1"),
        listed(prompt="0.000001"),
        listed(completion="0.000001"),
        listed(prompt="cheap", completion="0.000001"),
        listed(prompt="nan", completion="0.000001"),
        listed(prompt="inf", completion="0.000001"),
        listed(prompt=None, completion="0.000001"),
        listed(prompt=["0.1"], completion="0.000001"),
        {"id": "acme/m"},
        {"pricing": "free"},
        "acme/m",
        None,
    ],
)
def test_a_price_that_varies_or_is_not_told_is_none(entry: Any) -> None:
    """A router says -1; nothing else is taken for free either."""
    assert price(entry) is None


@pytest.mark.parametrize("overrides", [None, {}, "x", [None], [{"prompt": "-1"}], [{"completion": "nan"}]])
def test_overrides_that_say_nothing_leave_the_price(overrides: Any) -> None:
    """Whatever stands there."""
    assert about(price(listed(prompt="0.000001", completion="0.000002", overrides=overrides))) == pytest.approx(
        (1.0, 2.0, 0.0)
    )


# Who answered --------------------------------------------------------------------------------------------------


def test_the_slug_of_a_provider_is_found_by_its_name() -> None:
    """The list of a model's endpoints has the display name that replies carry and the tag that routing takes."""
    endpoints = {
        "data": {
            "id": "acme/m",
            "endpoints": [
                {"name": "DeepInfra | acme/m", "provider_name": "DeepInfra", "tag": "deepinfra/fp8"},
                {"name": "Together | acme/m", "provider_name": "Together", "tag": "together"},
            ],
        }
    }
    assert tag(endpoints, "Together") == "together"
    assert tag(endpoints, "DeepInfra") == "deepinfra/fp8"
    assert tag(endpoints, "together") is None


@pytest.mark.parametrize(
    "endpoints",
    [
        None,
        [],
        {},
        {"data": []},
        {"data": {"endpoints": None}},
        {"data": {"endpoints": [None, {"provider_name": "A"}]}},
        {"data": {"endpoints": [{"provider_name": "A", "tag": 3}]}},
    ],
)
def test_a_list_that_does_not_say_it_gives_none(endpoints: Any) -> None:
    """Whatever a server sends."""
    assert tag(endpoints, "A") is None
