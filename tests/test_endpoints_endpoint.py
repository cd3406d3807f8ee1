"""One endpoint: what is sent, what is recorded, and that what is secret shows nowhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from loopback import Answer, Body, Loopback

from auditor.endpoints import Endpoint, Place
from auditor.endpoints.transport import AiohttpTransport, HttpReply, NetworkError
from auditor.records import Attempt, Fault, Message, Price, Reply, Request

KEY = "sk-or/v1+0123456789abcdef"


def request(**changes: Any) -> Request:
    base = Request(
        model="m",
        task="t",
        item="1",
        wrapper="json",
        arm="none",
        seed=3,
        digest="d",
        prompt="p",
        messages=(Message("system", "Be brief."), Message("user", "Which?")),
        max_tokens=24,
        temperature=0.7,
        top_p=0.9,
    )
    return msgspec.structs.replace(base, **changes)


class Canned:
    """A transport that gives one reply, or fails with one message."""

    def __init__(self, reply: HttpReply | NetworkError) -> None:
        self._reply = reply
        self.body = b""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        self.body = body
        if isinstance(self._reply, NetworkError):
            raise self._reply
        return self._reply

    async def close(self) -> None:
        return


def attempt(
    reply: HttpReply | NetworkError, key: str | None = KEY, provider: str = "compat"
) -> tuple[Reply | Fault, Attempt]:
    endpoint = Endpoint(Place(provider, "m", "http://x/v1", key), Canned(reply))
    return asyncio.run(endpoint.attempt(request()))


def over_the_wire(
    answer: Callable[[Body], Answer], asked: Request, key: str | None = KEY, provider: str = "compat"
) -> tuple[Reply | Fault, Attempt, Loopback]:
    with Loopback(answer) as server:

        async def once() -> tuple[Reply | Fault, Attempt]:
            endpoint = Endpoint(Place(provider, "m", server.url, key), AiohttpTransport())
            try:
                return await endpoint.attempt(asked)
            finally:
                await endpoint.close()

        return *asyncio.run(once()), server


# What is sent --------------------------------------------------------------------------------------------------


def test_a_request_arrives_with_its_key_messages_and_every_parameter() -> None:
    """Nothing is left to the server's defaults, and the key travels as Authorization."""
    answer, tried, server = over_the_wire(lambda _: Answer("B"), request(stop=("\n\n",)))
    assert server.requests == [
        {
            "model": "m",
            "max_tokens": 24,
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 3,
            "stream": False,
            "stop": ["\n\n"],
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which?"}],
        }
    ]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert isinstance(answer, Reply)
    assert (answer.text, answer.system_fingerprint) == ("B", "fp_1")
    assert (tried.http_status, tried.fault) == (200, None)
    assert tried.latency_ms > 0
    assert json.loads(tried.body)["choices"][0]["message"]["content"] == "B"


def test_without_a_key_no_authorization_is_sent() -> None:
    """An open server gets no header it did not ask for."""
    _, _, server = over_the_wire(lambda _: Answer("B"), request(), key=None)
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("provider", ["llamacpp", "local"])
def test_llamacpps_own_sampling_is_switched_off(provider: str) -> None:
    """Its unasked top_k, min_p, penalty and prompt cache are sent as neutral; a study's own value wins."""
    _, _, server = over_the_wire(lambda _: Answer("B"), request(extra_body={"top_k": 7}), provider=provider)
    sent = server.requests[0]
    assert (sent["top_k"], sent["min_p"], sent["repeat_penalty"], sent["cache_prompt"]) == (7, 0.0, 1.0, False)
    assert (sent["temperature"], sent["top_p"], sent["seed"], sent["max_tokens"]) == (0.7, 0.9, 3, 24)


def test_extra_fields_go_over_ours_but_not_over_seed_stream_and_messages() -> None:
    """A study may rename a limit or pin a provider; what makes generations differ stays ours."""
    extra = {"provider": {"only": ["a"]}, "temperature": 1, "seed": 9, "stream": True, "messages": []}
    _, _, server = over_the_wire(lambda _: Answer("B"), request(extra_body=extra))
    sent = server.requests[0]
    assert (sent["provider"], sent["temperature"]) == ({"only": ["a"]}, 1)
    assert (sent["seed"], sent["stream"], len(sent["messages"])) == (3, False, 2)


def test_what_is_recorded_as_sent_has_no_messages_seed_or_key() -> None:
    """Equal for all requests of a model, so that it is stored once; there also where nothing answered."""

    def sent(**changes: Any) -> bytes:
        endpoint = Endpoint(Place("llamacpp", "m", "http://x/v1", KEY), Canned(NetworkError("network", "")))
        return asyncio.run(endpoint.attempt(request(extra_body={"messages": ["x"]}, **changes)))[1].sent

    assert json.loads(sent()) == {
        "model": "m",
        "max_tokens": 24,
        "temperature": 0.7,
        "top_p": 0.9,
        "stream": False,
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "cache_prompt": False,
    }
    assert KEY.encode() not in sent()
    assert sent() == sent(seed=4, messages=(Message("user", "Other?"),))
    assert sent() != sent(max_tokens=25)


def test_routing_found_out_at_the_start_is_sent_below_what_the_study_says() -> None:
    """A provider found by preflight goes into the body; a field the study sets wins over it."""
    canned = Canned(HttpReply(200, {}, b"{}"))
    endpoint = Endpoint(Place("openrouter", "m", "http://x/v1", KEY), canned)
    endpoint.routing = {"only": ["found"], "quantizations": ["fp8"]}
    asyncio.run(endpoint.attempt(request(extra_body={"provider": {"only": ["told"]}})))
    assert json.loads(canned.body)["provider"] == {
        "only": ["told"],
        "quantizations": ["fp8"],
        "require_parameters": True,
        "allow_fallbacks": False,
    }


# What is recorded beside the answer ----------------------------------------------------------------------------


def test_an_attempt_says_where_it_went_and_when_the_endpoint_takes_more() -> None:
    """The base URL without the path, and the seconds its rate-limit headers give where nothing is left."""
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}
    _, tried = attempt(HttpReply(429, headers, b""))
    assert (tried.server, tried.exhausted_for) == ("http://x/v1", 90.0)
    assert attempt(HttpReply(429, {}, b""))[1].exhausted_for is None
    assert attempt(NetworkError("network", "gone"))[1].exhausted_for is None


def costing(price: Price | None, usage: dict[str, Any], finish_reason: str = "stop") -> float | None:
    body = {"choices": [{"message": {"content": "B"}, "finish_reason": finish_reason}], "usage": usage}
    canned = Canned(HttpReply(200, {}, json.dumps(body).encode()))
    endpoint = Endpoint(Place("compat", "m", "http://x/v1"), canned, price=price)
    return asyncio.run(endpoint.attempt(request()))[1].cost_usd


def test_an_attempt_costs_what_the_endpoint_charged_or_what_the_price_makes_of_its_tokens() -> None:
    """Two USD per million prompt tokens, ten per million others, a cent a request; unknown without counts or price."""
    price = Price(2.0, 10.0, 0.01)
    counts = {"prompt_tokens": 1000, "completion_tokens": 100}
    assert costing(price, counts) == pytest.approx(0.002 + 0.001 + 0.01)
    assert costing(price, {**counts, "cost": 0.5}) == 0.5
    assert costing(None, {**counts, "cost": 0.5}) == 0.5
    assert costing(None, counts) is None
    assert costing(price, {"prompt_tokens": 1000}) is None
    assert costing(Price(0.0, 0.0), counts) == 0.0


def test_a_fault_costs_only_what_the_endpoint_says_it_charged() -> None:
    """A provider that failed mid-answer may charge; our own price says nothing of it."""
    counts = {"prompt_tokens": 1000, "completion_tokens": 100}
    assert costing(Price(2.0, 10.0), {**counts, "cost": 0.25}, finish_reason="error") == 0.25
    assert costing(Price(2.0, 10.0), counts, finish_reason="error") is None


# Faults --------------------------------------------------------------------------------------------------------


def test_a_network_error_is_a_retryable_fault_without_status() -> None:
    """No reply: kind and message of the wire, no body."""
    answer, tried = attempt(NetworkError("timeout", "no complete reply within 600 s"))
    assert answer == Fault("timeout", "no complete reply within 600 s", retryable=True)
    assert (tried.http_status, tried.fault, tried.body) == (None, "timeout", b"")


def test_a_fault_keeps_the_raw_body() -> None:
    """What the server said is in the record as it came."""
    answer, tried = attempt(HttpReply(500, {}, b"<h1>boom</h1>"))
    assert isinstance(answer, Fault)
    assert (tried.http_status, tried.fault, tried.body) == (500, answer.kind, b"<h1>boom</h1>")


# The key shows nowhere -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        HttpReply(401, {}, b'{"error": {"message": "Incorrect API key provided: %b"}}' % KEY.encode()),
        HttpReply(401, {}, b'{"error": {"message": "bad\\n%b"}}' % KEY.replace("/", "\\/").encode()),
        HttpReply(500, {}, b"<pre>Authorization: Bearer %b</pre>" % KEY.encode()),
        HttpReply(200, {}, b"you said %b" % KEY.encode()),
        HttpReply(200, {}, b'{"error": {"message": "%b", "code": 502}}' % KEY.encode()),
        HttpReply(200, {}, b'{"choices": [{"message": {"content": "%b"}, "finish_reason": "stop"}]}' % KEY.encode()),
        pytest.param(
            HttpReply(302, {"location": f"http://elsewhere/?key={KEY}"}, b""),
        ),
        NetworkError("network", f"Illegal header value b'Bearer {KEY}'"),
    ],
)
def test_an_echoed_key_is_masked(reply: HttpReply | NetworkError) -> None:
    """In the stored body, the message and the text, however the server sends it back."""
    answer, tried = attempt(reply)
    for shown in (repr(answer), repr(tried)):
        assert KEY not in shown
        assert KEY.replace("/", "\\/") not in shown
        assert KEY not in shown.replace("\\\\/", "/").replace("\\/", "/")
    assert "[key]" in repr((answer, tried))


@pytest.mark.parametrize("secret", ["h-0123456789abcdef", "q/0123+456789=abcdef"])
def test_an_echoed_header_or_query_value_is_masked(secret: str) -> None:
    """What a gateway wants beside the key is as secret as the key."""
    for place in (
        Place("compat", "m", "http://x/v1", secret_headers={"X-Team": secret}),
        Place("compat", "m", "http://x/v1", query={"code": secret}),
    ):
        for reply in (HttpReply(401, {}, f"no: {secret}".encode()), NetworkError("network", f"no: {secret}")):
            shown = repr(asyncio.run(Endpoint(place, Canned(reply)).attempt(request())))
            assert secret not in shown
            assert "no: [key]" in shown


def test_a_query_value_is_masked_as_it_stands_in_the_url() -> None:
    """A server that names the address it was asked at names the value with %XX."""
    place = Place("compat", "m", "http://x/v1", query={"code": "q/0123+456789=abcdef"})
    echo = HttpReply(404, {}, b"no such path: " + place.url.encode())
    shown = repr(asyncio.run(Endpoint(place, Canned(echo)).attempt(request())))
    assert "456789" not in shown


def test_of_two_secrets_where_one_holds_the_other_nothing_is_left() -> None:
    """The longest is masked first, so that no end of it stays behind."""
    long, short = "sk-0123456789-more-of-it", "sk-0123456789"
    place = Place("compat", "m", "http://x/v1", short, {"X-Long": long})
    answer, tried = asyncio.run(Endpoint(place, Canned(HttpReply(401, {}, long.encode()))).attempt(request()))
    assert tried.body == b"[key]"
    assert "more-of-it" not in repr(answer)


def test_a_repr_says_only_whether_there_is_a_key() -> None:
    """Neither repr nor str of an endpoint holds it."""
    endpoint = Endpoint(Place("openai", "m", "http://x/v1", KEY), AiohttpTransport())
    assert repr(endpoint) == str(endpoint) == "Endpoint(Place('openai', 'm', 'http://x/v1', key=set))"
    assert "key=none" in repr(Endpoint(Place("openai", "m", "http://x/v1"), AiohttpTransport()))


@pytest.mark.parametrize("key", ["EMPTY", "none", "x", "test", "B", "ollama"])
def test_a_placeholder_key_does_not_rewrite_answers(key: str) -> None:
    """A word that stands in for a key occurs in answers; masking it would change what is measured."""
    body = json.dumps({"choices": [{"message": {"content": f"B, {key}"}, "finish_reason": "stop"}]}).encode()
    answer, tried = attempt(HttpReply(200, {}, body), key=key)
    assert isinstance(answer, Reply)
    assert answer.text == f"B, {key}"
    assert tried.body == body


@pytest.mark.parametrize("key", ["sk-test", "abc123", "averylongword"])
def test_a_short_key_is_still_masked(key: str) -> None:
    """Six characters that are no word, or twelve of any kind, count as a secret."""
    answer, tried = attempt(HttpReply(401, {}, f"no: {key}".encode()), key=key)
    assert key not in repr((answer, tried))
