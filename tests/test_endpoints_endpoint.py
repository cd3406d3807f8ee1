"""Endpoints: where a provider is and with which key, what is sent, and that the key shows nowhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from loopback import Answer, Body, Loopback

from auditor.endpoints import PROVIDERS, Endpoint, resolve
from auditor.endpoints.transport import AiohttpTransport, HttpReply, NetworkError
from auditor.errors import UsageError
from auditor.records import Attempt, Fault, Message, Reply, Request

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
    endpoint = Endpoint(PROVIDERS[provider], "m", "http://x/v1", key, Canned(reply))
    return asyncio.run(endpoint.attempt(request()))


def over_the_wire(
    answer: Callable[[Body], Answer], asked: Request, key: str | None = KEY, provider: str = "compat"
) -> tuple[Reply | Fault, Attempt, Loopback]:
    with Loopback(answer) as server:

        async def once() -> tuple[Reply | Fault, Attempt]:
            endpoint = Endpoint(PROVIDERS[provider], "m", server.url, key, AiohttpTransport())
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
    """Equal for all requests of a model, so that it is stored once."""
    endpoint = Endpoint(PROVIDERS["llamacpp"], "m", "http://x/v1", KEY, Canned(NetworkError("network", "")))
    sent = endpoint.sent(request(extra_body={"messages": ["x"]}))
    assert json.loads(sent) == {
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
    assert KEY.encode() not in sent
    assert sent == endpoint.sent(request(seed=4, extra_body={"messages": ["x"]}))


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
        HttpReply(302, {"location": f"http://elsewhere/?key={KEY}"}, b""),
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


def test_a_repr_says_only_whether_there_is_a_key() -> None:
    """Neither repr nor str of an endpoint holds it."""
    endpoint = Endpoint(PROVIDERS["openai"], "m", "http://x/v1", KEY, AiohttpTransport())
    assert repr(endpoint) == str(endpoint) == "Endpoint('m', 'http://x/v1', key=set)"
    assert "key=none" in repr(Endpoint(PROVIDERS["openai"], "m", "http://x/v1", None, AiohttpTransport()))


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


# Where a provider is -------------------------------------------------------------------------------------------


def test_the_name_goes_over_the_environment_and_that_over_the_default() -> None:
    """`@base_url`, then the provider's variable, then its default; slashes and spaces at the end go."""
    environment = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": " http://proxy:1/v1/ "}
    assert resolve("openai", "http://named:2/v1/", environment) == ("http://named:2/v1", "sk-1")
    assert resolve("openai", None, environment) == ("http://proxy:1/v1", "sk-1")
    assert resolve("openai", None, {"OPENAI_API_KEY": "sk-1"}) == ("https://api.openai.com/v1", "sk-1")
    assert resolve("openai", None, {**environment, "OPENAI_BASE_URL": ""})[0] == "https://api.openai.com/v1"
    assert resolve("llamacpp", None, {}) == ("http://127.0.0.1:8080/v1", None)
    assert resolve("compat", "https://[::1]:8000/v1", {}) == ("https://[::1]:8000/v1", None)


def test_openais_key_goes_to_no_other_provider() -> None:
    """A key in the environment is for its provider alone."""
    environment = {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": "http://theirs/v1"}
    assert resolve("compat", "http://mine/v1", environment) == ("http://mine/v1", None)
    assert resolve("llamacpp", None, environment) == ("http://127.0.0.1:8080/v1", None)
    assert resolve("compat", "http://mine/v1", {**environment, "AUDITOR_API_KEY": "k2"})[1] == "k2"


@pytest.mark.parametrize(
    ("provider", "url", "environment", "message", "hint"),
    [
        ("openai", None, {}, "openai needs a key and OPENAI_API_KEY is not set", "export OPENAI_API_KEY=..."),
        ("openai", None, {"OPENAI_API_KEY": " \n"}, "openai needs a key and OPENAI_API_KEY is not set", "export"),
        ("compat", None, {}, "compat needs a base URL", "compat/<model>@http://host:8000/v1"),
        ("compact", None, {}, "unknown provider 'compact'", "did you mean compat"),
        ("llamcpp", None, {}, "unknown provider 'llamcpp'", "did you mean llamacpp"),
        ("zzz", None, {}, "unknown provider 'zzz'", "known: compat"),
        ("compat", "ftp://host/v1", {}, "'ftp://host/v1' of compat is not http(s)://", ""),
        ("compat", "host:8000/v1", {}, "'host:8000/v1' of compat is not http(s)://", ""),
        ("compat", "http:///v1", {}, "'http:///v1' of compat is not http(s)://", ""),
        ("compat", "http://[::1/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://host:port/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://host:99999/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://u:hunter2@host/v1", {}, "the base URL of compat carries a password", "environment"),
        ("compat", "ftp://u:hunter2@host/v1", {}, "the base URL of compat carries a password", "environment"),
        ("compat", "http://u:hunter2@host:x/v1", {}, "of compat is not http(s)://", ""),
        ("compat", "http://host/v1?key=hunter2", {}, "the base URL of compat has a query", "/chat/completions"),
        ("openai", None, {"OPENAI_API_KEY": "sk-hunter2 # mine"}, "OPENAI_API_KEY holds a space", "the key alone"),
        ("openai", None, {"OPENAI_API_KEY": "sk-hunter2\nx"}, "OPENAI_API_KEY holds a space", "the key alone"),
        ("openai", None, {"OPENAI_API_KEY": "“sk-hunter2”"}, "OPENAI_API_KEY holds a space or a character", ""),
    ],
)
def test_what_cannot_be_is_said_in_one_line_without_secrets(
    provider: str, url: str | None, environment: dict[str, str], message: str, hint: str
) -> None:
    """The provider, the variable or the URL at fault, what to do, and never a password or a key."""
    with pytest.raises(UsageError) as caught:
        resolve(provider, url, environment)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "hunter2" not in caught.value.message + caught.value.hint
    assert "\n" not in caught.value.message


def test_a_key_may_end_with_a_newline() -> None:
    """As it does when it was read from a file."""
    assert resolve("openai", None, {"OPENAI_API_KEY": "sk-1\n"})[1] == "sk-1"
