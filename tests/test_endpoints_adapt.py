"""Refused parameters: which refusals change what is sent, which do not, and that asking ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Answer, Body, Loopback

from auditor.endpoints import Endpoint, Place
from auditor.endpoints.adapt import adaptation, adapted, folded
from auditor.endpoints.transport import AiohttpTransport
from auditor.records import Adaptation, Attempt, Constraint, Fault, Message, Reply, Request

TOLD = {
    "model": "m",
    "max_tokens": 24,
    "temperature": 0.7,
    "top_p": 0.9,
    "stop": ["\n"],
    "seed": 3,
    "stream": False,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "response_format": {"type": "json_object"},
}
USER = (Message("user", "Which?"),)
SYSTEM = (Message("system", "Be brief."), Message("user", "Which?"))


def refusal(message: object, param: str | None = None, code: object = None) -> bytes:
    """An error body as OpenAI writes it."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return json.dumps({"error": error}).encode()


def found(body: bytes, messages: tuple[Message, ...] = USER, **told: Any) -> tuple[str, str, str] | None:
    """(parameter, requested, sent) of an adaptation."""
    one = adaptation(body, TOLD | told, messages)
    return None if one is None else (one.parameter, one.requested, one.sent)


# One refusal ---------------------------------------------------------------------------------------------------

OPENAI_LIMIT = refusal(
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "max_tokens",
    "unsupported_parameter",
)
OPENAI_TEMPERATURE = refusal(
    "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.",
    "temperature",
    "unsupported_value",
)
ALSO_OPENAI_LIMIT = refusal(
    "Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead.",
    "max_completion_tokens",
    "unsupported_parameter",
)
UNKNOWN_LIMIT = refusal("Unrecognized request argument supplied: max_completion_tokens")


def test_the_limit_is_renamed_where_openai_wants_its_new_name() -> None:
    """`max_tokens` becomes `max_completion_tokens`; the value is kept, and the server's words say why."""
    one = adaptation(OPENAI_LIMIT, TOLD, USER)
    assert one is not None
    assert (one.parameter, one.requested, one.sent) == ("max_tokens", "24", "as max_completion_tokens")
    assert "Use 'max_completion_tokens' instead" in one.why
    sent = adapted(dict(TOLD), {one.parameter: one})
    assert "max_tokens" not in sent
    assert sent["max_completion_tokens"] == 24


@pytest.mark.parametrize("body", [ALSO_OPENAI_LIMIT, UNKNOWN_LIMIT])
def test_a_server_that_knows_only_the_old_name_is_told_that(body: bytes) -> None:
    """`max_completion_tokens` of a study becomes `max_tokens`, its value kept."""
    told = {"model": "m", "max_completion_tokens": 50}
    one = adaptation(body, told, USER)
    assert one is not None
    assert (one.parameter, one.requested, one.sent) == ("max_completion_tokens", "50", "as max_tokens")
    assert adapted(dict(told), {one.parameter: one}) == {"model": "m", "max_tokens": 50}


def test_of_two_limits_the_one_that_is_not_refused_keeps_its_value() -> None:
    """A study's extra fields go over ours."""
    told = {"model": "m", "max_tokens": 24, "max_completion_tokens": 50}
    words = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    one = adaptation(refusal(words, "max_tokens", "invalid_parameter_combination"), told, USER)
    assert one is not None
    assert adapted(dict(told), {one.parameter: one}) == {"model": "m", "max_completion_tokens": 50}


def test_a_temperature_that_openai_refuses_is_left_out() -> None:
    """The model's own applies, and the record has what was asked for."""
    one = adaptation(OPENAI_TEMPERATURE, TOLD, USER)
    assert one is not None
    assert (one.parameter, one.requested, one.sent) == ("temperature", "0.7", "left out")
    assert "temperature" not in adapted(dict(TOLD), {one.parameter: one})
    assert adapted(dict(TOLD), {one.parameter: one})["top_p"] == 0.9


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            json.dumps(
                {"detail": [{"loc": ["body", "min_p"], "msg": "Extra inputs are not permitted", "input": 0.0}]}
            ).encode(),
            ("min_p", "0.0", "left out"),
        ),
        (
            refusal(
                "[{'type': 'extra_forbidden', 'loc': ('body', 'top_k'), 'msg': 'Extra inputs are not permitted', "
                "'input': -1}]",
                code=400,
            ),
            ("top_k", "-1", "left out"),
        ),
        (
            json.dumps(
                {
                    "object": "error",
                    "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"],
                                            "msg": "Extra inputs are not permitted", "input": 3}]},
                    "type": "invalid_request_error",
                    "code": None,
                }
            ).encode(),
            ("seed", "3", "left out"),
        ),
        (refusal("Unrecognized request argument supplied: seed"), ("seed", "3", "left out")),
        (refusal("seed is not supported by this model", "seed"), ("seed", "3", "left out")),
        (refusal("Unsupported parameter: 'stop' is not supported with this model.", "stop", "unsupported_parameter"),
         ("stop", '["\\n"]', "left out")),
        (refusal("`temperature` and `top_p` cannot both be told: top_p is not allowed", "top_p"),
         ("top_p", "0.9", "left out")),
        (b"unknown field `repetition_penalty`, expected one of `model`, `messages`",
         ("repetition_penalty", "1.0", "left out")),
        (b'{"error": "unexpected keyword argument: min_p"}', ("min_p", "0.0", "left out")),
        (
            json.dumps(
                {"error": {"message": "Provider returned error", "code": 400,
                           "metadata": {"raw": OPENAI_LIMIT.decode(), "provider_name": "OpenAI"}}}
            ).encode(),
            ("max_tokens", "24", "as max_completion_tokens"),
        ),
    ],
    ids=["fastapi", "vllm", "mistral", "argument", "seed", "stop", "named", "plain text", "error text", "openrouter"],
)  # fmt: skip
def test_a_refused_parameter_is_found_in_the_words_of_many_servers(body: bytes, expected: tuple[str, str, str]) -> None:
    """By `param`, or by its name in the message; nested in OpenRouter's `metadata.raw` too."""
    assert found(body) == expected


@pytest.mark.parametrize(
    "words",
    [
        "System role not supported",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "This model does not support system messages.",
        "Value error, System prompt is not supported",
        "Unable to render the chat template: System role not supported at row 1, column 61",
    ],
)
def test_a_refused_system_role_is_folded_into_the_users_turn(words: str) -> None:
    """In the words of the chat templates of vLLM and llama.cpp; only where a system message was sent."""
    for body in (refusal(words, code=400), words.encode(), json.dumps({"detail": words}).encode()):
        assert found(body, SYSTEM) == ("system", "a system message", "folded into the user's")
        assert found(body, USER) is None


def test_openais_words_for_a_refused_system_role_are_known() -> None:
    """The first reasoning models took no system message."""
    words = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
    assert found(refusal(words, "messages[0].role", "unsupported_value"), SYSTEM) is not None


OTHER = {
    "context, vllm": refusal(
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4976 in the messages, "
        "24 in the completion). Please reduce the length of the messages or completion.",
        code=400,
    ),
    "context, vllm's limit": refusal(
        "'max_tokens' or 'max_completion_tokens' is too large: 24. This model's maximum context length is 4096 tokens "
        "and your request has 4090 input tokens (24 > 4096 - 4090).",
        code=400,
    ),
    "context, openai": refusal(
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        "messages",
        "context_length_exceeded",
    ),
    "context, llama.cpp": refusal(
        "the request exceeds the available context size. try increasing the context size or enable context shift", None,
        400,
    ),
    "limit too large": refusal(
        "max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided "
        "50000.",
        "max_tokens",
        "invalid_value",
    ),
    "schema": refusal(
        "Invalid schema for response_format 'reply': In context=('properties', 'y'), 'additionalProperties' is "
        "required to be supplied and to be false.",
        "response_format",
        "invalid_request_error",
    ),
    "format": refusal("'response_format' of type 'json_schema' is not supported with this model.", "response_format"),
    "format unnamed": refusal("The provided JSON schema contains features not supported by xgrammar.", code=400),
    "grammar": refusal("Failed to transform regex into a grammar: unsupported escape", code=400),
    "json": refusal("'messages' must contain the word 'json' in some form, to use 'response_format' of type "
                    "'json_object'.", "messages"),
    "out of range, vllm": refusal("temperature must be in [0, 2], got 3.0.", code=400),
    "top_p, vllm": refusal("top_p must be in (0, 1], got 0.", code=400),
    "n": refusal("n must be 1 when using greedy sampling, got 2.", code=400),
    "empty": b"",
    "html": b"<html><body>400 Bad Request</body></html>",
    "list": b"[]",
    "null": b'{"error": null}',
    "number": b"400",
    "model": refusal("The model `m` does not exist", "model", "model_not_found"),
}  # fmt: skip


@pytest.mark.parametrize("body", OTHER.values(), ids=OTHER)
def test_a_refusal_of_something_else_changes_nothing(body: bytes) -> None:
    """A prompt that is too long, a schema, a value out of range: what is asked for is what is sent, or nothing is."""
    assert found(body) is None
    assert found(body, SYSTEM) is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            refusal(
                "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3.0 instead.",
                "temperature",
                "decimal_above_max_value",
            ),
            id="openai out of range",
        ),
        pytest.param(
            refusal(
                "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length "
                "5 instead.",
                "stop",
                "array_above_max_length",
            ),
            id="openai too many stops",
        ),
        pytest.param(
            refusal(
                "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
                "max_tokens",
                "integer_below_min_value",
            ),
            id="openai limit too small",
        ),
    ],
)
def test_openais_words_for_a_wrong_value_are_no_refusal_of_the_parameter(body: bytes) -> None:
    """The user's value is at fault, and that is to be told, not dropped."""
    assert found(body) is None


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("bytedance-seed/seed-1.6 does not support response_format json_schema", id="model"),
        pytest.param("reasoning mode is not supported; retry or stop", id="prose"),
    ],
)
def test_a_word_of_prose_is_no_parameter(message: str) -> None:
    """A model may be called seed, and a sentence may say stop."""
    assert found(refusal(message)) is None


def test_an_echo_of_the_request_is_no_refusal_of_what_it_holds() -> None:
    """pydantic repeats the body it refuses, roles and parameters among it."""
    told = {"messages": msgspec.to_builtins(SYSTEM), **TOLD}
    errors = [
        {"type": "value_error", "loc": ("body",), "msg": "Value error, the 'json_schema' field must be provided."}
    ]
    body = refusal(str([{**errors[0], "input": told}]), code=400)
    assert found(body, SYSTEM) is None


@settings(deadline=None)  # a busy machine is no defect
@given(
    st.binary(max_size=40)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["seed", "not supported", "x"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "param", "code", "detail", "metadata", "raw"]), inner
            )
        ),
        max_leaves=12,
    ).map(lambda tree: json.dumps(tree).encode())
)
def test_no_body_raises_and_only_what_was_sent_is_adapted(body: bytes) -> None:
    """Whatever a server answers; never the model, the format or `stream`."""
    one = adaptation(body, TOLD, SYSTEM)
    if one is not None:
        assert one.parameter in TOLD.keys() - {"model", "stream", "response_format"}
        assert "\n" not in one.why
        sent = adapted(dict(TOLD), {one.parameter: one})
        assert one.parameter not in sent
        assert {"model", "stream", "response_format"} <= sent.keys()


def test_what_decoding_is_held_to_is_never_left_out() -> None:
    """An endpoint that does not enforce must be seen not to."""
    for name in ("response_format", "structured_outputs", "grammar", "json_schema", "model", "stream"):
        words = f"Unsupported parameter: '{name}' is not supported with this model."
        assert adaptation(refusal(words, name, "unsupported_parameter"), TOLD | {name: "x"}, SYSTEM) is None


# Folding -------------------------------------------------------------------------------------------------------


def test_system_messages_open_the_first_users_turn() -> None:
    """With a blank line between; later turns stay as they are."""
    told = (
        Message("system", "Be brief."),
        Message("system", "Be kind."),
        Message("user", "One?"),
        Message("assistant", "1"),
        Message("user", "Two?"),
    )
    assert folded(told) == (
        Message("user", "Be brief.\n\nBe kind.\n\nOne?"),
        Message("assistant", "1"),
        Message("user", "Two?"),
    )
    assert folded(USER) == USER
    assert folded((Message("system", "Alone."),)) == (Message("system", "Alone."),)


# Through an endpoint -------------------------------------------------------------------------------------------


def request(**changes: Any) -> Request:
    base = msgspec.structs.replace(samples.request(), messages=SYSTEM, max_tokens=24)
    return msgspec.structs.replace(base, **changes)


Tried = list[tuple[Reply | Fault, Attempt]]


async def settle(endpoint: Endpoint, asked: Request, most: int = 10) -> Tried:
    """Ask as long as the fault is an adaptation, as a sender would."""
    tried = [await endpoint.attempt(asked)]
    while isinstance(fault := tried[-1][0], Fault) and fault.kind == "adapted" and len(tried) < most:
        tried.append(await endpoint.attempt(asked))
    return tried


def asking(
    answer: Callable[[Body], Answer], *asked: Request, known: tuple[Adaptation, ...] = (), latency: float = 0.0
) -> tuple[list[Tried], Endpoint, list[Body]]:
    """All requests at once."""
    with Loopback(answer, latency) as server:

        async def all_of_them() -> tuple[list[Tried], Endpoint]:
            endpoint = Endpoint(Place("compat", "m", server.url), AiohttpTransport(), adaptations=known)
            try:
                return await asyncio.gather(*(settle(endpoint, one) for one in asked)), endpoint
            finally:
                await endpoint.close()

        return *asyncio.run(all_of_them()), server.requests


def reasoning_model(body: Body) -> Answer:
    """OpenAI's: no `max_tokens`, no temperature but its own."""
    if "max_tokens" in body:
        return Answer(status=400, body=OPENAI_LIMIT)
    return Answer(status=400, body=OPENAI_TEMPERATURE) if "temperature" in body else Answer("B")


def test_each_refused_parameter_costs_one_request_and_is_then_known() -> None:
    """Two refusals, an answer; the next request is answered at once."""
    with Loopback(reasoning_model) as server:

        async def one_after_the_other() -> tuple[Tried, Tried, Endpoint]:
            endpoint = Endpoint(Place("compat", "m", server.url), AiohttpTransport())
            try:
                return await settle(endpoint, request()), await settle(endpoint, request(seed=1)), endpoint
            finally:
                await endpoint.close()

        first, second, endpoint = asyncio.run(one_after_the_other())
        bodies = server.requests
    assert [tried.fault for _, tried in first] == ["adapted", "adapted", None]
    assert [tried.http_status for _, tried in first] == [400, 400, 200]
    assert [tried.fault for _, tried in second] == [None]
    assert list(endpoint.adaptations) == ["max_tokens", "temperature"]
    assert [sorted(body.keys() & {"max_tokens", "max_completion_tokens", "temperature"}) for body in bodies] == [
        ["max_tokens", "temperature"],
        ["max_completion_tokens", "temperature"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]
    assert bodies[-1]["max_completion_tokens"] == 24
    assert json.loads(first[-1][1].sent) == {
        "model": "m",
        "top_p": 1.0,
        "stream": False,
        "max_completion_tokens": 24,
    }


def test_an_adapted_fault_asks_to_be_asked_again_at_once() -> None:
    """Retryable without a wait, and not fatal; its words are the server's."""
    (tried,), _, _ = asking(reasoning_model, request())
    fault = tried[0][0]
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable, fault.fatal, fault.retry_after) == ("adapted", True, False, 0.0)
    assert "max_completion_tokens" in fault.message


def test_what_an_earlier_run_found_is_sent_from_the_start() -> None:
    """Adaptations handed over cost nothing."""
    known = (
        Adaptation("max_tokens", "24", "as max_completion_tokens", "said before"),
        Adaptation("temperature", "0.7", "left out", "said before"),
        Adaptation("system", "a system message", "folded into the user's", "said before"),
    )
    (tried,), endpoint, bodies = asking(reasoning_model, request(), known=known)
    assert [one.fault for _, one in tried] == [None]
    assert tuple(endpoint.adaptations.values()) == known
    assert bodies[0]["messages"] == [{"role": "user", "content": "Be brief.\n\nWhich?"}]


def test_each_of_many_concurrent_requests_meets_a_refusal_at_most_once() -> None:
    """Sixteen that were on their way each see one refusal per parameter, whatever the order, and all are answered."""
    all_tried, endpoint, bodies = asking(reasoning_model, *(request(seed=seed) for seed in range(16)), latency=0.02)
    for tried in all_tried:
        assert isinstance(tried[-1][0], Reply)
        assert [one.fault for _, one in tried[:-1]] == ["adapted"] * (len(tried) - 1)
        assert len(tried) <= 3
    assert len(bodies) <= 16 * 3
    assert list(endpoint.adaptations) == ["max_tokens", "temperature"]
    assert {body.get("max_completion_tokens") for body in bodies if "max_tokens" not in body} == {24}


@pytest.mark.parametrize("extra", [{}, {"max_completion_tokens": 24}])
def test_a_server_that_takes_neither_name_of_the_limit_is_not_asked_for_ever(extra: dict[str, Any]) -> None:
    """One renaming, then the refusal stands."""

    def neither(body: Body) -> Answer:
        if "max_tokens" in body:
            return Answer(status=400, body=OPENAI_LIMIT)
        return Answer(status=400, body=ALSO_OPENAI_LIMIT)

    (tried,), _, bodies = asking(neither, request(extra_body=extra))
    assert [one.fault for _, one in tried] == ["adapted", "bad_request"]
    assert len(bodies) == 2


def test_many_concurrent_requests_to_a_server_that_takes_neither_name_all_end() -> None:
    """Each within two tries."""

    def neither(body: Body) -> Answer:
        return Answer(status=400, body=OPENAI_LIMIT if "max_tokens" in body else ALSO_OPENAI_LIMIT)

    all_tried, _, _ = asking(neither, *(request(seed=seed) for seed in range(16)), latency=0.02)
    assert {tried[-1][1].fault for tried in all_tried} == {"bad_request"}
    assert max(len(tried) for tried in all_tried) <= 2


def test_a_server_that_refuses_everything_one_by_one_is_asked_once_for_each() -> None:
    """What can be left out is left out in turn; then the limit is renamed; then the refusal stands."""
    names = ("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens")

    def fussy(body: Body) -> Answer:
        name = next(name for name in names if name in body)
        return Answer(status=422, body=refusal(f"unknown parameter {name}", name))

    (tried,), endpoint, _ = asking(fussy, request())
    assert [one.fault for _, one in tried] == ["adapted"] * 4 + ["bad_request"]
    assert list(endpoint.adaptations) == ["temperature", "top_p", "seed", "max_tokens"]


def test_a_refused_seed_is_left_out_of_the_body_and_of_nothing_else() -> None:
    """The request keeps its identity; the server no longer sees its seed."""

    def seedless(body: Body) -> Answer:
        return Answer(status=400, body=refusal("seed is not supported", "seed")) if "seed" in body else Answer("B")

    (tried,), _, bodies = asking(seedless, request(seed=5))
    assert [one.fault for _, one in tried] == ["adapted", None]
    assert "seed" not in bodies[1]
    assert {**bodies[1], "seed": 5} == bodies[0]


def test_a_template_without_a_system_role_gets_it_in_the_users_turn() -> None:
    """Refused once, folded from then on."""

    def gemma(body: Body) -> Answer:
        if body["messages"][0]["role"] == "system":
            return Answer(status=400, body=refusal("System role not supported", code=400))
        return Answer("B")

    (tried,), endpoint, bodies = asking(gemma, request())
    assert [one.fault for _, one in tried] == ["adapted", None]
    assert bodies[1]["messages"] == [{"role": "user", "content": "Be brief.\n\nWhich?"}]
    assert list(endpoint.adaptations) == ["system"]
    assert "messages" not in json.loads(tried[-1][1].sent)


@pytest.mark.parametrize(
    ("messages", "faults"),
    [(SYSTEM, ["adapted", "bad_request"]), ((Message("system", "Alone."),), ["bad_request"])],
)
def test_a_template_that_refuses_the_folded_messages_too_is_not_asked_for_ever(
    messages: tuple[Message, ...], faults: list[str]
) -> None:
    """One folding, where there is a turn to fold into; then the refusal stands."""

    def never(body: Body) -> Answer:
        return Answer(status=400, body=refusal("Conversation roles must alternate user/assistant/...", code=400))

    (tried,), _, _ = asking(never, request(messages=messages))
    assert [one.fault for _, one in tried] == faults


def test_a_refusal_of_what_decoding_is_held_to_is_told_as_it_is() -> None:
    """Nothing is adapted and nothing asked again."""

    def plain(body: Body) -> Answer:
        return Answer(status=400, body=OTHER["schema"]) if "response_format" in body else Answer("B")

    (tried,), endpoint, bodies = asking(plain, request(constraint=Constraint("json_object")))
    fault = tried[0][0]
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.retryable) == ("bad_request", False)
    assert endpoint.adaptations == {}
    assert len(bodies) == 1
