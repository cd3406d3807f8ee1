"""What every recorded reply of four servers must come out as, in one table."""

from __future__ import annotations

import msgspec
import pytest
from exchanges import COMPLETIONS
from exchanges_aside import ASIDE

from auditor.endpoints.classify import classify, exhausted_for
from auditor.endpoints.openrouter import price, tag
from auditor.records import Fault, Reply


def says(text: str | None, finish: str | None = "stop", **more: object) -> dict[str, object]:
    """An answer: what must be in the Reply; token counts and costs are compared where they are named."""
    return {"text": text, "finish_reason": finish, "reasoning": None, "refusal": None, **more}


def passes(kind: str, retry_after: float | None = None, **more: object) -> dict[str, object]:
    """A fault that is tried again."""
    return {"kind": kind, "retryable": True, "fatal": False, "retry_after": retry_after, **more}


def stays(kind: str, *, fatal: bool = False) -> dict[str, object]:
    """A fault of this request, or (fatal) of every request of the model."""
    return {"kind": kind, "retryable": False, "fatal": fatal, "retry_after": None}


EXPECTED: dict[str, dict[str, object]] = {
    "openai/answer": says("B", prompt_tokens=41, completion_tokens=3, system_fingerprint="fp_a1b2c3"),
    "openai/reasoning_used_the_limit": says("", "length", completion_tokens=64, reasoning_tokens=64),
    "openai/reasoning_then_answer": says("B", completion_tokens=203, reasoning_tokens=200),
    "openai/refusal": says(None, refusal="I can't help with that."),
    "openai/content_filter": says("The first", "content_filter"),
    "openai/content_filter_without_text": says(None, "content_filter"),
    "openai/max_tokens_refused": stays("bad_request"),
    "openai/temperature_refused": stays("bad_request"),
    "openai/schema_refused": stays("bad_request"),
    "openai/wrong_key": stays("unauthorized", fatal=True),
    "openai/wrong_model": stays("not_found", fatal=True),
    "openai/insufficient_quota": stays("quota", fatal=True),
    "openai/rate_limit_in_ms": passes("rate_limit", 1.843),
    "openai/rate_limit_in_seconds": passes("rate_limit", 2.0),
    "openai/rate_limit_by_headers_alone": passes("rate_limit"),
    "openai/server_error": passes("server_error"),
    "openai/server_busy": passes("unavailable", 0.5),
    "openrouter/answer": says(
        "B", native_finish_reason="STOP", provider="Acme", cost_usd=0.0000123, model_returned="maker/model-8b"
    ),
    "openrouter/answer_after_white_space": says("B", provider="Acme"),
    "openrouter/answer_with_reasoning": says("B", reasoning="An apple grows on a tree.", reasoning_tokens=5),
    "openrouter/length": says("The", "length", native_finish_reason="MAX_TOKENS"),
    "openrouter/partial_then_error": passes("provider_error", cost_usd=0.0000123),
    "openrouter/partial_without_a_reason": passes("provider_error"),
    "openrouter/error_502_in_200": passes("server_error"),
    "openrouter/error_429_in_200": passes("rate_limit", 3.0),
    "openrouter/error_400_in_200": stays("bad_request"),
    "openrouter/error_without_code_in_200": passes("error_in_body"),
    "openrouter/choices_null": passes("no_choices"),
    "openrouter/cold_start": passes("no_content"),
    "openrouter/wrong_model": stays("bad_request"),
    "openrouter/temperature_refused": stays("bad_request"),
    "openrouter/wrong_key": stays("unauthorized", fatal=True),
    "openrouter/no_credit": stays("payment", fatal=True),
    "openrouter/moderation": stays("forbidden"),
    "openrouter/no_endpoint_for_model": stays("not_found", fatal=True),
    "openrouter/no_endpoint_for_parameters": stays("bad_request"),
    "openrouter/no_endpoint_by_constraint": stays("bad_request"),
    "openrouter/timeout": passes("timeout"),
    "openrouter/too_large": stays("too_large"),
    "openrouter/rate_limit": passes("rate_limit"),
    "openrouter/provider_down": passes("server_error"),
    "openrouter/no_provider_now": passes("unavailable", 60.0),
    "openrouter/gateway_timeout": passes("server_error"),
    "openrouter/edge_timeout": passes("server_error"),
    "openrouter/overloaded": passes("overloaded"),
    "vllm/answer": says("B", prompt_tokens=41, completion_tokens=3, tool_calls=None),
    "vllm/answer_with_reasoning": says("B", reasoning="An apple grows on a tree."),
    "vllm/answer_in_reasoning": says(None, reasoning='{"answer": "B"}'),
    "vllm/older_reasoning": says(None, "length", reasoning="An apple"),
    "vllm/white_space_to_the_limit": says('{"answer":' + " \n" * 20, "length"),
    "vllm/repetition": says("so so so so", "repetition"),
    "vllm/aborted": passes("provider_error"),
    "vllm/temperature_range": stays("bad_request"),
    "vllm/n_with_greedy": stays("bad_request"),
    "vllm/context_length": stays("bad_request"),
    "vllm/schema_refused": stays("bad_request"),
    "vllm/regex_refused": stays("bad_request"),
    "vllm/several_constraints": stays("bad_request"),
    "vllm/schema_missing": stays("bad_request"),
    "vllm/system_refused": stays("bad_request"),
    "vllm/older_error": stays("bad_request"),
    "vllm/wrong_key": stays("unauthorized", fatal=True),
    "vllm/wrong_model": stays("not_found", fatal=True),
    "vllm/unprocessable": stays("bad_request"),
    "vllm/engine_died": passes("server_error"),
    "vllm/not_implemented": stays("refused"),
    "llamacpp/answer": says("B", prompt_tokens=41, completion_tokens=3, system_fingerprint="b9999-abcdef0"),
    "llamacpp/answer_with_reasoning": says("B", reasoning="An apple grows."),
    "llamacpp/reasoning_used_the_limit": says("", "length", reasoning="An apple"),
    "llamacpp/loading": passes("unavailable", 1.0),
    "llamacpp/context_length": stays("bad_request"),
    "llamacpp/grammar_refused": stays("bad_request"),
    "llamacpp/pattern_refused": stays("bad_request"),
    "llamacpp/wrong_key": stays("unauthorized", fatal=True),
    "llamacpp/wrong_path": stays("not_found", fatal=True),
    "llamacpp/n_refused": stays("bad_request"),
    "llamacpp/system_refused": stays("bad_request"),
    "llamacpp/roles_refused": stays("bad_request"),
    "llamacpp/server_error": passes("server_error"),
    "llamacpp/not_supported": stays("refused"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_recorded_reply_comes_out_as_it_must(name: str) -> None:
    """An answer with its words and counts, or a fault with what to do about it."""
    expected = EXPECTED[name]
    answer = classify(COMPLETIONS[name].http)
    assert isinstance(answer, Fault if "kind" in expected else Reply)
    told = msgspec.structs.asdict(answer)
    assert {field: told[field] for field in expected} == expected


def test_every_recorded_completion_is_in_the_table() -> None:
    """A reply that is added needs an expectation."""
    assert EXPECTED.keys() == COMPLETIONS.keys()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai/temperature_refused", "does not support 0 with this model"),
        ("openrouter/error_502_in_200", "upstream worker died"),
        ("openrouter/error_400_in_200", "maximum context length is 8192 tokens"),
        ("openrouter/temperature_refused", "temperature is not supported"),
        ("openrouter/partial_then_error", "Upstream connection lost"),
        ("openrouter/moderation", "Input was flagged"),
        ("openrouter/edge_timeout", "524: A timeout occurred"),
        ("vllm/wrong_key", "Unauthorized"),
        ("vllm/unprocessable", "Field required"),
        ("vllm/older_error", "n must be 1"),
        ("llamacpp/system_refused", "System role not supported"),
    ],
)
def test_a_fault_keeps_the_words_that_tell_what_to_do(name: str, words: str) -> None:
    """They are found in an error's message, its detail, its page, or the provider's own JSON inside JSON."""
    answer = classify(COMPLETIONS[name].http)
    assert isinstance(answer, Fault)
    assert words in answer.message


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("openai/answer", None), ("openai/rate_limit_in_ms", 360.0), ("openai/rate_limit_by_headers_alone", 360.0)],
)
def test_rate_limit_headers_say_when_to_come_back(name: str, seconds: float | None) -> None:
    """Only where none are left, whatever the status."""
    assert exhausted_for(COMPLETIONS[name].headers) == seconds


def test_openrouter_resets_at_a_time_in_unix_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds from now until then."""
    monkeypatch.setattr("time.time", lambda: 1790000000.0)
    assert exhausted_for(COMPLETIONS["openrouter/rate_limit"].headers) == 60.0


def test_the_recorded_price_list_is_understood() -> None:
    """USD per million tokens; the long prompt's price where there is one; none for a router."""
    listed = msgspec.json.decode(ASIDE["openrouter/models"].body)["data"]
    prices = [found and (found.prompt, found.completion, found.request) for found in map(price, listed)]
    assert prices == [pytest.approx((0.02, 0.05, 0.0)), (0.0, 0.0, 0.0), pytest.approx((2.5, 15.0, 0.0)), None]


def test_a_provider_is_pinned_by_its_tag_in_the_recorded_list() -> None:
    """`Acme` is `acme/fp8`; who is not listed has none."""
    listed = msgspec.json.decode(ASIDE["openrouter/endpoints"].body)
    assert (tag(listed, "Acme"), tag(listed, "Bolt"), tag(listed, "Cube")) == ("acme/fp8", "bolt", None)
