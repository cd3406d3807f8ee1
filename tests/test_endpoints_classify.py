"""What a reply means: a completion, or which fault; a failure is never an answer."""

from __future__ import annotations

import datetime
import email.utils
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.endpoints.classify import classify, error_text, exhausted_for, retry_after
from auditor.endpoints.transport import HttpReply
from auditor.records import Fault, Reply


def http(body: object, status: int = 200, **headers: str) -> HttpReply:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpReply(status, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def completion(message: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "B"}, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], **changes}


def ended(finish_reason: str | None, message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason, **choice}]}


def reply(body: object) -> Reply:
    answer = classify(http(body))
    assert isinstance(answer, Reply)
    return answer


def fault(answer: Reply | Fault) -> Fault:
    assert isinstance(answer, Fault)
    return answer


# Answers -------------------------------------------------------------------------------------------------------


def test_everything_a_completion_tells_is_kept() -> None:
    """Text, finish reasons, tokens, cost, provider, model and fingerprint arrive as sent."""
    body = {
        "model": "m-2",
        "provider": "Acme",
        "system_fingerprint": "fp_9",
        "choices": [
            {
                "message": {"content": "B", "reasoning": "since", "refusal": None},
                "finish_reason": "length",
                "native_finish_reason": "MAX_TOKENS",
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "completion_tokens_details": {"reasoning_tokens": 4},
            "cost": 0.00125,
        },
    }
    assert reply(body) == Reply(
        text="B",
        finish_reason="length",
        reasoning="since",
        native_finish_reason="MAX_TOKENS",
        prompt_tokens=12,
        completion_tokens=5,
        reasoning_tokens=4,
        cost_usd=0.00125,
        provider="Acme",
        model_returned="m-2",
        system_fingerprint="fp_9",
    )


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_never_merged_into_the_answer(field: str) -> None:
    """Null content with reasoning under either name is a reply without text."""
    answer = reply(ended("length", {"content": None, field: "so B"}))
    assert (answer.text, answer.reasoning, answer.finish_reason) == (None, "so B", "length")


def test_a_refusal_and_a_tool_call_are_replies_without_text() -> None:
    """A refusal keeps its words, a tool call its JSON; neither has text."""
    refused = reply(ended("stop", {"content": None, "refusal": "I cannot"}))
    assert (refused.text, refused.refusal) == (None, "I cannot")
    call = {"id": "1", "type": "function", "function": {"name": "answer", "arguments": '{"answer":"B"}'}}
    called = reply(ended("tool_calls", {"content": None, "tool_calls": [call]}))
    assert called.text is None
    assert json.loads(called.tool_calls or "") == [call]
    assert reply(ended("stop", {"content": "B", "tool_calls": []})).tool_calls is None


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([{"type": "text", "text": "B"}], "B"),
        ([{"text": "B"}], "B"),
        ([{"type": "text", "text": "an"}, {"type": "text", "text": "swer"}], "answer"),
        ([{"type": "thinking", "text": "maybe A"}, {"type": "text", "text": "B"}], "B"),
        ([{"type": "text", "text": None}, {"type": "text", "text": "B"}], "B"),
        ([{"type": "refusal", "refusal": "no"}], None),
        (["B", 3], None),
        ([], None),
    ],
)
def test_of_content_in_parts_only_text_is_the_answer(parts: list[Any], text: str | None) -> None:
    """Text parts are joined; thinking, nulls and anything else are not text."""
    assert reply(ended("stop", {"content": parts})).text == text


@pytest.mark.parametrize("content", ["", " ", None])
def test_an_empty_answer_with_a_finish_reason_is_an_answer(content: str | None) -> None:
    """A model that stopped without a word has answered; how its silence is read is the parsers' business."""
    assert reply(ended("stop", {"content": content})).text == content


@pytest.mark.parametrize(
    "changes",
    [
        {"usage": None},
        {"usage": "none"},
        {"usage": {"prompt_tokens": "12", "completion_tokens": -1, "cost": "free"}},
        {"usage": {"prompt_tokens": 2**63, "completion_tokens_details": [1]}},
        {"model": 7, "provider": {"name": "Acme"}, "system_fingerprint": ["fp"]},
        {"error": None},
        {"error": {}},
    ],
)
def test_odd_fields_beside_an_answer_do_not_cost_the_answer(changes: dict[str, Any]) -> None:
    """What stands beside the answer and has another shape than documented counts as absent."""
    answer = reply(completion(**changes))
    assert answer.text == "B"
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cost_usd, answer.provider) == (None,) * 4


def test_a_whole_number_written_as_a_float_is_a_count() -> None:
    """`12.0` tokens are 12 tokens."""
    assert reply(completion(usage={"prompt_tokens": 12.0})).prompt_tokens == 12


# Failures inside a 200 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "retryable", "fatal"),
    [
        ({"code": 502, "message": "Provider returned error"}, "server_error", True, False),
        ({"code": "502", "message": "Provider returned error"}, "server_error", True, False),
        ({"code": 429, "message": "slow down"}, "rate_limit", True, False),
        ({"code": 400, "message": "context too long"}, "bad_request", False, False),
        ({"code": 401, "message": "no key"}, "unauthorized", False, True),
        ({"code": 429, "type": "insufficient_quota", "message": "quota"}, "quota", False, True),
        ({"code": "insufficient_quota", "message": "quota"}, "quota", False, True),
        ({"code": "upstream", "message": "m"}, "error_in_body", True, False),
        ({"code": 9, "message": "m"}, "error_in_body", True, False),
        ({"code": "9" * 5000, "message": "m"}, "error_in_body", True, False),
        ("overloaded", "error_in_body", True, False),
        (["overloaded"], "error_in_body", True, False),
    ],
)
@pytest.mark.parametrize("beside", [{"choices": None}, completion()])
def test_an_error_inside_a_200_is_a_fault(
    error: object, kind: str, retryable: bool, fatal: bool, beside: dict[str, Any]
) -> None:
    """It is treated as the status it names, transient where it names none, also with an answer beside it."""
    answer = fault(classify(http({**beside, "error": error})))
    assert (answer.kind, answer.retryable, answer.fatal) == (kind, retryable, fatal)
    assert answer.message.startswith("error inside a 200: ")


def test_a_partial_answer_with_finish_reason_error_is_a_fault() -> None:
    """The provider's words are kept, the partial text is not an answer."""
    body = ended("error", {"content": "The answer is"}, error={"code": 502, "message": "upstream died"})
    answer = fault(classify(http(body)))
    assert answer == Fault("provider_error", "the provider failed mid-answer: upstream died", retryable=True)
    assert fault(classify(http(ended("error", {"content": "B"})))).retryable
    assert fault(classify(http(ended("stop", {"content": "B"}, error={"message": "cut"})))).kind == "provider_error"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"choices": None}, "no_choices"),
        ({"choices": []}, "no_choices"),
        ({}, "no_choices"),
        ({"choices": [{"finish_reason": "stop"}]}, "no_choices"),
        ({"object": "error", "message": "bad"}, "no_choices"),
        (ended(None, {"content": None}), "no_content"),
        (ended("", {"content": ""}), "no_content"),
        (ended(None, {}), "no_content"),
        (b"<html><body>Bad gateway</body></html>", "not_a_completion"),
        (b'{"choices": [{"message": {"content": "B"', "not_a_completion"),
        (b"", "not_a_completion"),
        (b"null", "not_a_completion"),
        (b'"B"', "not_a_completion"),
        (b"[]", "not_a_completion"),
        (b'data: {"choices": []}\n\n', "not_a_completion"),
        (b'{"choices": [{"message": {"content": "\xff"}}]}', "not_a_completion"),
        (b'{"choices": [{"message": {"content": 5}}]}', "not_a_completion"),
        (b'{"x":' + b"[" * 100_000 + b"}", "not_a_completion"),
    ],
)
def test_a_200_without_a_completion_is_tried_again(body: object, kind: str) -> None:
    """HTML, broken JSON, no choices, and a model that said nothing for no reason are transient."""
    answer = fault(classify(http(body)))
    assert (answer.kind, answer.retryable, answer.fatal) == (kind, True, False)


def test_deep_nesting_is_never_an_exception() -> None:
    """What can just be decoded need not be encodable; neither may raise."""
    for depth in range(850, 1010):
        deep = b"[" * depth + b"]" * depth
        classify(HttpReply(200, {}, b'{"choices":[{"message":{"content":"B","tool_calls":' + deep + b"}}]}"))
        assert fault(classify(HttpReply(500, {}, b'{"error":' + deep + b"}"))).kind == "server_error"


# Statuses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "fatal"),
    [
        (201, "refused", False, False),
        (301, "redirect", False, True),
        (307, "redirect", False, True),
        (400, "bad_request", False, False),
        (401, "unauthorized", False, True),
        (402, "payment", False, True),
        (403, "forbidden", False, False),
        (404, "not_found", False, True),
        (408, "timeout", True, False),
        (409, "conflict", True, False),
        (413, "too_large", False, False),
        (422, "bad_request", False, False),
        (429, "rate_limit", True, False),
        (500, "server_error", True, False),
        (502, "server_error", True, False),
        (503, "unavailable", True, False),
        (504, "server_error", True, False),
        (524, "server_error", True, False),
        (529, "overloaded", True, False),
    ],
)
@pytest.mark.parametrize("body", [{"error": {"message": "why"}}, completion(), b"<html>", b""])
def test_a_status_decides_whatever_the_body_is(
    status: int, kind: str, retryable: bool, fatal: bool, body: object
) -> None:
    """A completion under another status than 200 is no answer."""
    answer = fault(classify(http(body, status)))
    assert (answer.kind, answer.retryable, answer.fatal) == (kind, retryable, fatal)
    assert answer.message.startswith(f"HTTP {status}")


@pytest.mark.parametrize(
    "error",
    [
        {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": None},
        {"message": "You exceeded your current quota", "code": "insufficient_quota"},
        {"message": "insufficient_quota: add credit"},
    ],
)
def test_an_exhausted_quota_is_not_tried_again(error: dict[str, Any]) -> None:
    """A 429 with insufficient_quota ends the run, whatever Retry-After says."""
    answer = fault(classify(http({"error": error}, 429, retry_after="1")))
    assert (answer.kind, answer.retryable, answer.fatal) == ("quota", False, True)


def test_a_redirect_says_where_it_leads() -> None:
    """The user sees the address to name instead."""
    answer = fault(classify(http(b"", 308, location="https://b.example/v1")))
    assert answer.message == "HTTP 308: redirects to https://b.example/v1"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": {"message": "no such model", "code": 404}}', "no such model"),
        (b'{"error": "no such model"}', "no such model"),
        (b'{"object": "error", "message": "too long", "code": 400}', "too long"),
        (b'{"error": null, "message": "m"}', "m"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"detail": [{"loc": ["body"], "msg": "missing"}]}', '[{"loc":["body"],"msg":"missing"}]'),
        (
            b'{"error": {"message": "Provider returned error", "metadata": {"raw": "{\\"e\\": 1}"}}}',
            'Provider returned error: {"e": 1}',
        ),
        (b"<h1>Bad\n gateway</h1>", "<h1>Bad gateway</h1>"),
        (b'{"error": {"message": "red \\u001b[31m\\u0007text\\r\\nnext"}}', "red [31m text next"),
        (b"\x1b]0;title\x07plain", "]0;title plain"),
        (b"", ""),
    ],
)
def test_an_error_is_told_in_one_clean_line(body: bytes, text: str) -> None:
    """OpenAI's, vLLM's, FastAPI's and OpenRouter's shapes give their words, without control characters."""
    assert error_text(body) == text


def test_an_error_is_told_in_at_most_300_characters() -> None:
    """A page of error is cut."""
    assert len(error_text(json.dumps({"error": {"message": "long " * 1000}}).encode())) <= 300


# Retry-After ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 99 Foo 2015 99:99:99 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 +99999999999999"}, None),
    ],
)
def test_retry_after_in_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Fractions, milliseconds and past dates count; garbage, negative and infinite values do not."""
    assert retry_after(headers) == seconds


@pytest.fixture
def far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "EST+5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_away")
@pytest.mark.parametrize("zone", ["GMT", "-0000", "+0000"])
def test_retry_after_as_a_date_in_the_future(zone: str) -> None:
    """The seconds until then, UTC whatever the machine's zone is."""
    when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=100)
    date = email.utils.format_datetime(when, usegmt=True).replace("GMT", zone)
    seconds = retry_after({"retry-after": date})
    assert seconds is not None
    assert 98 <= seconds <= 100


def test_what_the_endpoint_asks_for_reaches_the_fault() -> None:
    """A 503 and an error inside a 200 carry it as a 429 does; a refusal does not."""
    assert fault(classify(http(b"", 503, retry_after="1.5"))).retry_after == 1.5
    assert fault(classify(http({"error": {"code": 429}}, retry_after_ms="20"))).retry_after == 0.02
    assert fault(classify(http(b"", 400, retry_after="1.5"))).retry_after is None


# What is left of a rate limit ----------------------------------------------------------------------------------


def limits(what: str, remaining: str, reset: str) -> dict[str, str]:
    return {f"x-ratelimit-remaining{what}": remaining, f"x-ratelimit-reset{what}": reset}


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("12ms", 0.012),
        ("1h2m", 3720.0),
        ("2m59.56s", 179.56),
        ("1d", 86400.0),
        ("0s", 0.0),
        ("7.66s", 7.66),
        ("60", None),
        ("", None),
        ("soon", None),
        ("-1s", None),
        ("1s ", None),
        ("1w", None),
        ("Mon, 30 Nov 2026 07:00:00 GMT", None),
    ],
)
@pytest.mark.parametrize("what", ["-requests", "-tokens", ""])
def test_where_nothing_is_left_the_reset_says_for_how_long(what: str, reset: str, expected: float | None) -> None:
    """Durations as OpenAI writes them, worked out by hand; what is none of them says nothing."""
    found = exhausted_for(limits(what, "0", reset))
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("remaining", ["1", "59", "149984", "00x", ""])
def test_while_something_is_left_nothing_is_exhausted(remaining: str) -> None:
    """A reset is told with every reply; it counts where `remaining` is 0."""
    assert exhausted_for(limits("-requests", remaining, "6m0s")) is None
    assert exhausted_for({"x-ratelimit-reset-requests": "6m0s"}) is None
    assert exhausted_for({"x-ratelimit-remaining-requests": "0"}) is None
    assert exhausted_for({}) is None


def test_of_several_limits_the_longest_counts() -> None:
    """Only among those that are used up."""
    used = limits("-requests", "0", "1s") | limits("-tokens", "0", "6m0s")
    assert exhausted_for(used) == 360.0
    assert exhausted_for(used | limits("-tokens", "12", "6m0s")) == 1.0
    assert exhausted_for(used | limits("-tokens", "0", "soon")) == 1.0


def test_openrouters_reset_is_a_time_in_unix_milliseconds() -> None:
    """Seconds from now; a time that is over is no wait."""
    in_a_minute = str(int((time.time() + 60) * 1000))
    found = exhausted_for(limits("", "0", in_a_minute))
    assert found is not None
    assert 58 < found <= 60
    assert exhausted_for(limits("", "0", "1700000000000")) == 0.0


@given(st.text() | st.from_regex(r"(\d+(\.\d+)?(ms|s|m|h|d))+", fullmatch=True) | st.from_regex(r"[0-9]{12,14}"))
def test_any_reset_is_a_time_or_nothing(reset: str) -> None:
    """No header raises."""
    seconds = exhausted_for(limits("-tokens", "0", reset))
    assert seconds is None or seconds >= 0


# What a fault costs, and a server that still loads -------------------------------------------------------------


def test_a_failure_that_was_charged_says_how_much() -> None:
    """`usage.cost` beside an error, of a provider that failed mid-answer or said so in the body."""
    message = {"content": "B, bec"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "cost": 0.00021}
    assert fault(classify(http(ended("error", message) | {"usage": usage}))).cost_usd == 0.00021
    assert fault(classify(http({"error": {"code": 502, "message": "x"}, "usage": usage}))).cost_usd == 0.00021
    assert fault(classify(http(ended(None, {"content": ""}) | {"usage": usage}))).cost_usd == 0.00021


@pytest.mark.parametrize("usage", [None, {}, {"cost": None}, {"cost": "0.1"}, {"cost": -1}, "free", [1], 3])
def test_a_failure_that_says_no_cost_has_none(usage: object) -> None:
    """Whatever stands in `usage`; and an HTTP error has no usage."""
    assert fault(classify(http(ended("error", {"content": "B"}) | {"usage": usage}))).cost_usd is None
    assert fault(classify(http({"error": {"message": "x"}, "usage": {"cost": 1}}, 500))).cost_usd is None


def test_a_server_that_loads_its_weights_is_asked_again_in_a_second() -> None:
    """llama.cpp says so with a 503, and its own wish goes over ours; no other failure is waited for so."""
    loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    told = fault(classify(http(loading, 503)))
    assert (told.kind, told.retryable, told.fatal, told.retry_after) == ("unavailable", True, False, 1.0)
    assert fault(classify(http(loading, 503, retry_after="7"))).retry_after == 7.0
    assert fault(classify(http(loading))).retry_after == 1.0
    assert fault(classify(http(loading, 500))).retry_after is None
    assert fault(classify(http({"error": {"message": "Service unavailable"}}, 503))).retry_after is None


# Laws ----------------------------------------------------------------------------------------------------------

keys = st.sampled_from(
    ["choices", "message", "content", "error", "code", "type", "usage", "finish_reason", "text", "metadata", "raw"]
)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)
bodies = (
    st.binary(max_size=60)
    | trees.map(lambda tree: json.dumps(tree).encode())
    | st.builds(
        lambda message, reason, error, usage: json.dumps(
            {"choices": [{"message": message, "finish_reason": reason}], "error": error, "usage": usage}
        ).encode(),
        trees,
        st.sampled_from(["stop", "error", "length", None]),
        trees,
        trees,
    )
)
statuses = st.sampled_from([200, 200, 200, 400, 401, 429, 500]) | st.integers(100, 999)


@given(bodies, statuses, st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "location"]), st.text()))
def test_classify_never_raises_and_a_failure_is_never_a_reply(
    body: bytes, status: int, headers: dict[str, str]
) -> None:
    """Whatever the server sends: a Reply needs status 200, no error, a message, and words or an end."""
    answer = classify(HttpReply(status, headers, body))
    if isinstance(answer, Fault):
        assert answer.kind
        assert "\n" not in answer.message
        assert answer.retry_after is None or answer.retry_after >= 0
        assert not (answer.fatal and answer.retryable)
        return
    tree = json.loads(body)
    assert status == 200
    assert not tree.get("error")
    assert tree["choices"][0]["finish_reason"] != "error"
    assert tree["choices"][0]["message"] is not None
    assert answer.text or answer.reasoning or answer.refusal or answer.tool_calls or answer.finish_reason


@given(st.text())
def test_any_retry_after_is_a_time_or_nothing(value: str) -> None:
    """No header raises."""
    seconds = retry_after({"retry-after": value, "retry-after-ms": value})
    assert seconds is None or 0 <= seconds < float("inf")


def test_half_of_a_surrogate_pair_does_not_cost_the_reply() -> None:
    """A model may write one; it is no character, and what stands around it is kept."""
    body = b'{"choices": [{"message": {"content": "so \\ud83d far, \\ud83d\\ude00"}, "finish_reason": "stop"}]}'
    answer = classify(HttpReply(200, {}, body))
    assert isinstance(answer, Reply)
    assert answer.text == "so ? far, \U0001f600"
