"""The hostile server itself: each fault looks on the wire as it says, by chance and by script."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest
from hostile import Body, Counts, Dialect, Faults, Holding, Hostile, Said, Situation, identity
from hostile_faults import MIXED, WIRES, tempting
from hostile_held import asked, example, held, regex_of


def right(_: Body) -> Said:
    return Said('{"answer": "B"}', reasoning="An apple grows.")


def body(text: str = "Which is a fruit?", seed: int = 0, **more: Any) -> Body:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "seed": seed, "max_tokens": 24, **more}


def ask(server: Hostile, told: Body | None = None, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False, verify=False, timeout=5.0) as client:
        return client.post(f"{server.url}/chat/completions", json=told or body(), headers=headers)


def raw(server: Hostile, told: Body | None = None) -> tuple[bytes, str]:
    """Everything that comes over a bare socket, and how it ends: `closed` or `reset`."""
    content = json.dumps(told or body()).encode()
    address = urlsplit(server.url)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    came = b""
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=5) as connection:
        connection.sendall(head.encode() + content)
        try:
            while chunk := connection.recv(65536):
                came += chunk
        except ConnectionResetError:
            return came, "reset"
    return came, "closed"


# Faults on the wire --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status", "headers"),
    [
        ("429", 429, {"retry-after": None, "retry-after-ms": None, "x-ratelimit-remaining-requests": None}),
        ("429-seconds", 429, {"retry-after": "1"}),
        ("429-fraction", 429, {"retry-after": "0.05"}),
        ("429-ms", 429, {"retry-after-ms": "20", "retry-after": None}),
        ("429-ratelimit", 429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}),
        ("408", 408, {"content-type": "application/json"}),
        ("500", 500, {"content-type": "application/json"}),
        ("502", 502, {"content-type": "text/html"}),
        ("503", 503, {"content-type": "application/json"}),
        ("504", 504, {"content-type": "text/html"}),
        ("524", 524, {"content-type": "text/html"}),
        ("529", 529, {"content-type": "application/json"}),
        ("html", 200, {"content-type": "text/html"}),
        ("402", 402, {}),
        ("403", 403, {}),
    ],
)
def test_a_status_and_its_headers(name: str, status: int, headers: dict[str, str | None]) -> None:
    """The status, the headers that are there and those that are not; the next request is answered."""
    with Hostile(right, Faults(script=[name])) as server:
        reply, then = ask(server), ask(server)
    assert reply.status_code == status
    assert {header: reply.headers.get(header) for header in headers} == headers
    assert then.status_code == 200


def test_the_bodies_of_a_200_that_is_no_answer() -> None:
    """Each is what its name says, with status 200."""
    names = ["error-502", "error-bare", "partial", "choices-null", "choices-empty", "message-null", "content-null"]
    with Hostile(right, Faults(script=names)) as server:
        replies = [ask(server) for _ in names]
    assert {reply.status_code for reply in replies} == {200}
    upstream, bare, partial, null, empty, no_message, no_content = [reply.json() for reply in replies]
    assert upstream["error"]["code"] == 502
    assert json.loads(upstream["error"]["metadata"]["raw"])["error"]["message"] == "upstream died"
    assert "code" not in bare["error"]
    choice = partial["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("error", '{"answer": "C"}')
    assert choice["error"]["code"] == 502
    assert (null["choices"], empty["choices"]) == (None, [])
    assert no_message["choices"][0]["message"] is None
    assert no_content["choices"][0]["message"]["content"] is None
    assert no_content["choices"][0]["finish_reason"] is None


def test_broken_json_and_an_empty_body() -> None:
    """Both arrive whole, as far as HTTP goes."""
    with Hostile(right, Faults(script=["broken-json", "empty"])) as server:
        broken, empty = ask(server), ask(server)
    assert broken.content.startswith(b'{"id":')
    with pytest.raises(ValueError, match=r"delimiter|Unterminated|Expecting"):
        broken.json()
    assert (empty.status_code, empty.content) == (200, b"")


def test_a_connection_that_ends_before_any_byte() -> None:
    """By a reset, by a close."""
    with Hostile(right, Faults(script=["reset", "closed"])) as server:
        assert raw(server) == (b"", "reset")
        assert raw(server) == (b"", "closed")


@pytest.mark.parametrize(("name", "end", "share"), [("reset-in-body", "reset", 0.5), ("truncated", "closed", 0.9)])
def test_a_connection_that_ends_in_the_body(name: str, end: str, share: float) -> None:
    """Content-Length tells of more than comes."""
    with Hostile(right, Faults(script=[name])) as server:
        came, how = raw(server)
    head, _, content = came.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert (len(content), how) == (int(length * share), end)


def test_clients_see_broken_connections_as_network_errors() -> None:
    """httpx and aiohttp alike."""

    async def through_aiohttp(url: str) -> None:
        async with aiohttp.ClientSession() as session, session.post(f"{url}/chat/completions", json=body()) as reply:
            await reply.read()

    for name in ("reset", "closed", "reset-in-body", "truncated"):
        with Hostile(right, Faults(script=[name, name])) as server:
            with pytest.raises(httpx.TransportError):
                ask(server)
            with pytest.raises((aiohttp.ClientError, ConnectionResetError)):
                asyncio.run(through_aiohttp(server.url))


def test_a_hang_lasts_and_then_resets() -> None:
    """No byte for so long; a client that leaves earlier gives its place back."""
    with Hostile(right, Faults(script=["hang"], hang=0.2)) as server:
        began = time.monotonic()
        assert raw(server) == (b"", "reset")
        assert 0.2 <= time.monotonic() - began < 2
    with Hostile(right, Faults(script=["hang"], hang=30), Situation(allow=1)) as server:
        with httpx.Client(trust_env=False, timeout=0.1) as client, pytest.raises(httpx.ReadTimeout):
            client.post(f"{server.url}/chat/completions", json=body())
        deadline = time.monotonic() + 5
        while ask(server).status_code == 429 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert ask(server).status_code == 200


def test_every_fault_fails_in_every_dialect() -> None:
    """None of them is a completion with words, a message and a finish reason that is no error."""
    dialects: list[Dialect] = ["openai", "openrouter", "vllm", "llamacpp"]
    for dialect in dialects:
        with Hostile(right, Faults(script=list(WIRES), hang=0.01), Situation(dialect)) as server:
            for name in WIRES:
                assert not _answered(server), name
            assert _answered(server)
            assert server.counts.faults == dict.fromkeys(WIRES, 1)


def _answered(server: Hostile) -> bool:
    try:
        reply = ask(server)
        choice = reply.json()["choices"][0]
        fine = choice["message"]["content"] and choice["finish_reason"] != "error"
        return reply.status_code == 200 and bool(fine)
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return False


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("B", "C"),
        ('{"answer": "B"}', '{"answer": "C"}'),
        ("An apple grows on a tree.\nanswer: Z", "An apple grows on a tree.\nanswer: A"),
        ("answer: true", "answer: false"),
        ("answer: 18", "answer: 19"),
        ("none", "A"),
    ],
)
def test_a_partial_reply_reads_like_an_answer(text: str, wrong: str) -> None:
    """In the same form, but wrong."""
    assert tempting(text) == wrong


# When ----------------------------------------------------------------------------------------------------------


def test_chance_depends_on_the_request_and_how_often_it_was_asked() -> None:
    """The same in any order and on any server with the seed; another seed is another order of faults."""
    requests = [body(f"Case {i}", seed) for i in range(20) for seed in range(3)]
    faults = Faults(0.3, seed=1, kinds=("500", "429"))

    def seen(order: list[Body], faults: Faults) -> dict[str, list[int]]:
        told: dict[str, list[int]] = {}
        with Hostile(right, faults) as server, httpx.Client(trust_env=False) as client:
            for one in order + order:
                status = client.post(f"{server.url}/chat/completions", json=one).status_code
                told.setdefault(identity(one), []).append(status)
        return told

    first = seen(requests, faults)
    assert seen(requests[::-1], faults) == first
    assert seen(requests, Faults(0.3, seed=2, kinds=("500", "429"))) != first
    failed = sum(status != 200 for statuses in first.values() for status in statuses)
    assert 20 <= failed <= 52  # of 120, at 0.3: within three standard deviations
    assert any(statuses[0] != 200 and statuses[1] == 200 for statuses in first.values())


def test_no_request_fails_more_often_in_a_row_than_it_may() -> None:
    """At rate 1 every sixth try is answered, and then it begins again."""
    with Hostile(right, Faults(1.0, kinds=("500",), most=5)) as server:
        statuses = [ask(server).status_code for _ in range(12)]
    assert statuses == [500, 500, 500, 500, 500, 200] * 2
    assert server.counts.most_in_a_row == 5


def test_arms_and_models_are_requests_of_their_own() -> None:
    """One may fail while another with the same prompt and seed does not use up its tries."""
    json_arm: Body = {"response_format": {"type": "json_object"}}
    assert len({identity(body()), identity(body(**json_arm)), identity(body() | {"model": "n"})}) == 3
    assert identity(body()) == identity(body(temperature=1.0))


def test_a_script_goes_first_and_can_be_added_to() -> None:
    """`ok` is answered, None is left to chance, and what is injected comes next."""
    with Hostile(right, Faults(1.0, kinds=("503",), script=["500", "ok", None])) as server:
        server.inject("529")
        assert [ask(server).status_code for _ in range(5)] == [500, 200, 503, 529, 503]
        with pytest.raises(LookupError, match="no such fault: '777'"):
            server.inject("777")
    with pytest.raises(LookupError, match="'oops'"):
        Faults(kinds=["oops"])


def test_a_script_can_be_a_function_of_the_request() -> None:
    """Only what it names fails."""
    with Hostile(right, Faults(script=lambda told: "500" if told["seed"] == 1 else None)) as server:
        assert [ask(server, body(seed=seed)).status_code for seed in range(3)] == [200, 500, 200]


def test_everything_is_answered_in_the_end_under_mixed_faults() -> None:
    """A client that tries eight times gets each of 300 answers, and the counts add up."""
    with Hostile(right, Faults(0.5, seed=3, hang=0.01)) as server:
        tries = asyncio.run(_patiently(server.url, 300))
    counts = server.counts.summary()
    assert max(tries) <= 6
    assert (counts["answered"], counts["distinct"]) == (300, 300)
    assert counts["posts"] == sum(tries) == counts["answered"] + counts["faulty"]
    assert counts["faulty"] == sum(counts["faults"].values()) > 200
    assert set(counts["faults"]) <= set(MIXED)


async def _patiently(url: str, requests: int) -> list[int]:
    """How often each request was tried until it was answered."""
    gate = asyncio.Semaphore(32)
    async with aiohttp.ClientSession() as session:

        async def one(seed: int) -> int:
            async with gate:
                for tried in range(1, 20):
                    if await _tried(session, url, seed):
                        return tried
            raise AssertionError("never answered")

        return await asyncio.gather(*map(one, range(requests)))


async def _tried(session: aiohttp.ClientSession, url: str, seed: int) -> bool:
    try:
        async with session.post(f"{url}/chat/completions", json=body(seed=seed)) as reply:
            told = await reply.json(content_type=None)
            return reply.status == 200 and told["choices"][0]["message"]["content"] == '{"answer": "B"}'
    except (aiohttp.ClientError, ConnectionError, ValueError, LookupError, TypeError):
        return False


# What stays ----------------------------------------------------------------------------------------------------


def test_more_at_once_than_allowed_are_refused_without_delay() -> None:
    """Three are let in and take their time, five are sent away with a Retry-After."""
    situation = Situation(allow=3, retry_after=0.5, latency=0.5)
    with Hostile(right, situation=situation) as server, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda seed: ask(server, body(seed=seed)), range(8)))
    statuses = sorted(reply.status_code for reply in replies)
    assert statuses == [200] * 3 + [429] * 5
    refused = [reply for reply in replies if reply.status_code == 429]
    assert {reply.headers["retry-after"] for reply in refused} == {"0.5"}
    assert max(reply.elapsed.total_seconds() for reply in refused) < 0.45
    assert (server.counts.over_limit, server.counts.answered) == (5, 3)


def test_latency_does_not_depend_on_load() -> None:
    """Twenty at once take as long as one."""
    with Hostile(right, situation=Situation(latency=0.2)) as server, ThreadPoolExecutor(20) as pool:
        began = time.monotonic()
        replies = list(pool.map(lambda seed: ask(server, body(seed=seed)), range(20)))
        took = time.monotonic() - began
    assert min(reply.elapsed.total_seconds() for reply in replies) >= 0.2
    assert took < 2
    assert server.counts.most_in_flight > 5


def test_a_server_that_is_gone_stays_gone() -> None:
    """The third request meets a reset, the fourth nobody."""
    with Hostile(right, situation=Situation(gone_after=2)) as server:
        assert [ask(server).status_code, ask(server).status_code] == [200, 200]
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            ask(server)
        with pytest.raises(httpx.ConnectError):
            ask(server)
    assert server.counts.posts == 2


def test_a_wrong_key_and_a_wrong_model() -> None:
    """401 and 404, also where lists are asked."""
    with Hostile(right, situation=Situation(model="m", key="secret")) as server:
        key: dict[str, Any] = {"Authorization": "Bearer secret"}
        assert ask(server).status_code == 401
        assert ask(server, **key).status_code == 200
        assert ask(server, body() | {"model": "n"}, **key).status_code == 404
        assert httpx.get(f"{server.url}/models", trust_env=False).status_code == 401


def test_a_reasoning_model_refuses_parameters() -> None:
    """max_tokens by its other name, temperature altogether; without them it answers."""
    with Hostile(right, situation=Situation(refuses=frozenset({"max_tokens", "temperature"}))) as server:
        limit = ask(server).json()["error"]
        told = body(temperature=0)
        told["max_completion_tokens"] = told.pop("max_tokens")
        heat = ask(server, told).json()["error"]
        del told["temperature"]
        assert ask(server, told).status_code == 200
    assert (limit["code"], limit["param"]) == ("unsupported_parameter", "max_tokens")
    assert (heat["code"], heat["param"]) == ("unsupported_value", "temperature")
    assert "does not support 0 with this model" in heat["message"]


@pytest.mark.parametrize(("dialect", "status"), [("vllm", 400), ("llamacpp", 500)])
def test_a_chat_template_refuses_a_system_role(dialect: Dialect, status: int) -> None:
    """vLLM calls it the client's mistake, llama.cpp its own."""
    with Hostile(right, situation=Situation(dialect, refuses=frozenset({"system"}))) as server:
        told = body()
        assert ask(server, told).status_code == 200
        told["messages"] = [{"role": "system", "content": "Be brief."}, *told["messages"]]
        reply = ask(server, told)
    assert reply.status_code == status
    assert "System role not supported" in reply.json()["error"]["message"]


def test_a_prompt_that_is_too_long() -> None:
    """Words of the prompt and tokens of the reply together; at the limit it is answered."""
    with Hostile(right, situation=Situation("vllm", context=30)) as server:
        assert ask(server, body("w " * 6)).status_code == 200
        error = ask(server, body("w " * 7)).json()["error"]
    assert error["message"].startswith("This model's maximum context length is 30 tokens. However, you requested 31")


def test_a_seed_that_is_ignored() -> None:
    """The same request is answered differently each time, where the truth depends on the seed."""
    with Hostile(lambda told: Said(f"seed {told['seed']}"), situation=Situation(ignores_seed=True)) as server:
        texts = {ask(server).json()["choices"][0]["message"]["content"] for _ in range(3)}
    assert len(texts) == 3


def test_what_goes_wrong_in_the_truth_is_raised_where_the_server_is_left() -> None:
    """A mistake in a test must not pass for one more fault."""
    with pytest.raises(ZeroDivisionError), Hostile(lambda told: Said(str(1 // 0))) as server:
        assert ask(server).status_code == 400


# Constraints ---------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string", "enum": ["zebra", "giraffe"]}},
    "required": ["animal"],
    "additionalProperties": False,
}
FORMAT: Body = {"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}}
REGEX: Body = {"structured_outputs": {"regex": "(zebra|giraffe)"}}
GRAMMAR: Body = {"grammar": 'root ::= ("zebra" | "giraffe")'}


def text(reply: httpx.Response) -> Any:
    return reply.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (FORMAT, '{"animal": "zebra"}'),
        ({"json_schema": SCHEMA}, '{"animal": "zebra"}'),
        ({"structured_outputs": {"json": SCHEMA}}, '{"animal": "zebra"}'),
        ({"structured_outputs": {"choice": ["b", "a"]}}, "b"),
        (REGEX, "giraffe"),
        (GRAMMAR, "giraffe"),
        ({"response_format": {"type": "json_object"}}, '{"answer": "banana"}'),
        ({"response_format": {"type": "text"}}, "banana"),
    ],
)
def test_constraints_are_enforced(told: Body, expected: str) -> None:
    """Against what the model would say."""
    holding = Holding(conforming=["no", "giraffe"])
    with Hostile(lambda _: Said("banana"), situation=Situation(holding=holding)) as server:
        assert text(ask(server, body(**told))) == expected


def test_a_reply_that_conforms_is_left_alone() -> None:
    """The truth stays the truth under enforcement."""
    with Hostile(lambda _: Said('{"animal": "giraffe"}')) as server:
        assert text(ask(server, body(**FORMAT))) == '{"animal": "giraffe"}'


def test_constraints_are_ignored_refused_or_fail_open() -> None:
    """One request each, and each its own way."""
    pattern = {"structured_outputs": {"regex": "[0-9]+|banana"}}

    def reply(holding: Holding, told: Body, dialect: Dialect = "vllm") -> httpx.Response:
        with Hostile(lambda _: Said("banana"), situation=Situation(dialect, holding=holding)) as server:
            return ask(server, body(**told))

    assert text(reply(Holding("ignore"), FORMAT)) == "banana"
    assert reply(Holding("refuse"), FORMAT).status_code == 400
    assert reply(Holding("refuse"), {}).status_code == 200
    assert reply(Holding("refuse"), FORMAT, "openrouter").status_code == 404
    assert "failed to parse grammar" in reply(Holding("refuse"), GRAMMAR, "llamacpp").text
    open_one = Holding("fails_open", uncompilable="giraffe", conforming=["zebra"])
    assert text(reply(open_one, REGEX)) == "banana"
    assert text(reply(open_one, {"structured_outputs": {"choice": ["zebra"]}})) == "zebra"
    assert reply(Holding("enforce", uncompilable=r"\[0-9\]"), pattern).status_code == 400
    fields = Holding({"response_format": "enforce"}, conforming=["zebra"])
    assert text(reply(fields, FORMAT)) == '{"animal": "zebra"}'
    assert text(reply(fields, REGEX)) == "banana"


def test_a_grammar_nobody_gave_a_reply_for_is_the_tests_mistake() -> None:
    """It is raised, not made up."""
    with pytest.raises(LookupError, match="no conforming reply"), Hostile(right) as server:
        ask(server, body(**GRAMMAR))


@pytest.mark.parametrize(
    ("grammar", "regex", "fits"),
    [
        ('root ::= "answer: " ("A" | "B")', r"(?:answer:\ )((?:A)|(?:B))", "answer: B"),
        (r'root ::= "{\"a\": \"" [^"\\\n]{0,200} "\"}"', r'(?:\{"a":\ ")[^"\\\n]{0,200}(?:"\})', '{"a": "x y"}'),
        (r'root ::= ([^\n]{1,200} "\n"){0,6} "-"? [1-9]', "([^\\n]{1,200}(?:\\\n)){0,6}(?:\\-)?[1-9]", "so\n-3"),
    ],
)
def test_a_root_rule_is_read_as_a_regular_expression(grammar: str, regex: str, fits: str) -> None:
    """Literals, classes, groups and repetitions."""
    assert regex_of(grammar) == regex
    assert held("grammar", grammar, fits, ()) == fits


def test_examples_of_schemas() -> None:
    """The first value of an enum, the first of several types, every property."""
    schema = {"properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "array"}, "c": {"const": None}}}
    assert example(schema) == {"a": 1, "b": ["x"], "c": None}
    assert example({"type": "boolean"}) is True
    assert asked({"response_format": None}) is None


# Dialects ------------------------------------------------------------------------------------------------------


def test_completions_differ_as_the_dialects_do() -> None:
    """Where reasoning is, who says the price, who says the build."""

    def told(dialect: Dialect) -> Any:
        with Hostile(right, situation=Situation(dialect)) as server:
            return ask(server).json()

    openai, router, vllm, llama = told("openai"), told("openrouter"), told("vllm"), told("llamacpp")
    messages = [one["choices"][0]["message"] for one in (openai, router, vllm, llama)]
    assert [one.get("reasoning") for one in messages] == [None, "An apple grows.", "An apple grows.", None]
    assert messages[3]["reasoning_content"] == "An apple grows."
    assert openai["usage"]["completion_tokens_details"]["reasoning_tokens"] == 3
    assert (router["provider"], router["choices"][0]["native_finish_reason"]) == ("Acme", "stop")
    assert router["usage"]["cost"] == pytest.approx((4 + 2 * 5) * 1e-6)  # 4 words asked, 2 answered, 3 thought
    assert vllm["usage"] == {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9}
    assert (llama["system_fingerprint"], llama["timings"]["predicted_n"]) == ("b9999-abcdef0", 5)


def test_what_is_asked_beside_completions() -> None:
    """Lists, prices, tokenizers, templates and versions, each where its dialect has it, and never counted."""

    def replies(dialect: Dialect, *asked: tuple[str, Body | None]) -> list[Any]:
        with Hostile(right, Faults(1.0), Situation(dialect, model="a/b", context=99)) as server:
            root = server.url.removesuffix("/v1")
            with httpx.Client(trust_env=False) as client:
                found = [
                    client.post(root + path, json=told) if told else client.get(root + path) for path, told in asked
                ]
        assert server.counts == Counts()
        return [reply.json() if reply.status_code == 200 else reply.status_code for reply in found]

    turns = {"messages": [{"role": "user", "content": "one two"}]}
    assert replies("openai", ("/v1/models", None), ("/props", None), ("/tokenize", turns))[1:] == [404, 404]
    models, own, key = replies(
        "openrouter", ("/api/v1/models", None), ("/api/v1/models/a/b/endpoints", None), ("/api/v1/key", None)
    )
    assert models["data"][0]["pricing"]["prompt"] == "0.000001"
    assert own["data"]["endpoints"][0]["tag"] == "acme/fp8"
    assert key["data"]["limit_remaining"] == 8.5
    models, version, count, prompt = replies(
        "vllm", ("/v1/models", None), ("/version", None), ("/tokenize", turns), ("/tokenize", {"prompt": "a b c"})
    )
    assert (models["data"][0]["max_model_len"], version) == (99, {"version": "0.30.0"})
    assert (count["count"], prompt["count"], count["max_model_len"]) == (4, 3, 99)
    props, filled, tokens = replies(
        "llamacpp", ("/props", None), ("/apply-template", turns), ("/tokenize", {"content": "a b c"})
    )
    assert (props["build_info"], props["default_generation_settings"]["n_ctx"]) == ("b9999-abcdef0", 99)
    assert (filled["prompt"], len(tokens["tokens"])) == ("<user> one two </>", 3)


def test_bodies_are_kept_only_where_asked() -> None:
    """A bench of many thousands must not grow."""
    with Hostile(right) as without, Hostile(right, keep=True) as keeping:
        ask(without)
        ask(keeping)
    assert (without.requests, keeping.requests) == ([], [body()])


# A process -----------------------------------------------------------------------------------------------------


def test_a_process_of_its_own_prints_where_it_is_and_what_it_counted() -> None:
    """The URL first, one line of JSON after standard input ends."""
    file = Path(__file__).with_name("hostile.py")
    options = ["--truth", "simulated:reply", "--faults", "1", "--kinds", "500", "--most", "1", "--dialect", "vllm"]
    with subprocess.Popen(
        [sys.executable, str(file), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        told = body("Reply with only the final answer.")
        with httpx.Client(trust_env=False) as client:
            statuses = [client.post(f"{url}/chat/completions", json=told).status_code for _ in range(2)]
        counted, _ = process.communicate("")
    assert statuses == [500, 200]
    counts = json.loads(counted)
    assert (counts["posts"], counts["answered"], counts["faults"]) == (2, 1, {"500": 1})
