"""Replies to a chat completion in the shapes that four servers document, made up."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from auditor.endpoints.transport import HttpReply


@dataclass(frozen=True)
class Exchange:
    """One reply: header names in lower case, the body as it came."""

    name: str
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def http(self) -> HttpReply:
        """As a transport hands it on."""
        return HttpReply(self.status, self.headers, self.body)


def exchange(name: str, status: int, body: Any, **headers: str) -> Exchange:
    """A body that is not bytes is sent as JSON; underscores in header names are dashes."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "application/json" if not isinstance(body, bytes) else "text/html; charset=UTF-8"
    return Exchange(name, status, raw, {"content-type": kind} | {k.replace("_", "-"): v for k, v in headers.items()})


# OpenAI --------------------------------------------------------------------------------------------------------


def _openai_error(message: str, kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _openai_reply(
    content: str | None, finish: str, completion: int, reasoning: int = 0, **message: Any
) -> dict[str, Any]:
    return {
        "id": "chatcmpl-A1",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "thinker-5-2026-06-01",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": content,
                    "refusal": None,
                    "annotations": [],
                    **message,
                },
                "finish_reason": finish,
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 41,
            "completion_tokens": completion,
            "total_tokens": 41 + completion,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_a1b2c3",
    }


_PLENTY = {
    "x_ratelimit_limit_requests": "500",
    "x_ratelimit_limit_tokens": "200000",
    "x_ratelimit_remaining_requests": "499",
    "x_ratelimit_remaining_tokens": "199950",
    "x_ratelimit_reset_requests": "120ms",
    "x_ratelimit_reset_tokens": "15ms",
}
_NONE_LEFT = _PLENTY | {"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "6m0s"}
_SLOW_DOWN = _openai_error("Rate limit reached for requests per minute.", "requests", "rate_limit_exceeded")

OPENAI = (
    exchange("answer", 200, _openai_reply("B", "stop", 3), **_PLENTY),
    exchange("reasoning_used_the_limit", 200, _openai_reply("", "length", 64, 64), **_PLENTY),
    exchange("reasoning_then_answer", 200, _openai_reply("B", "stop", 203, 200)),
    exchange("refusal", 200, _openai_reply(None, "stop", 9, refusal="I can't help with that.")),
    exchange("content_filter", 200, _openai_reply("The first", "content_filter", 2)),
    exchange("content_filter_without_text", 200, _openai_reply(None, "content_filter", 0)),
    exchange(
        "max_tokens_refused",
        400,
        _openai_error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "invalid_request_error",
            "unsupported_parameter",
            "max_tokens",
        ),
    ),
    exchange(
        "temperature_refused",
        400,
        _openai_error(
            "Unsupported value: 'temperature' does not support 0 with this model. "
            "Only the default (1) value is supported.",
            "invalid_request_error",
            "unsupported_value",
            "temperature",
        ),
    ),
    exchange(
        "schema_refused",
        400,
        _openai_error(
            "Invalid schema for response_format 'reply': In context=('properties', 'answer'), "
            "'additionalProperties' is required to be supplied and to be false.",
            "invalid_request_error",
            None,
            "response_format",
        ),
    ),
    exchange("wrong_key", 401, _openai_error("Incorrect API key.", "invalid_request_error", "invalid_api_key")),
    exchange("wrong_model", 404, _openai_error("No such model.", "invalid_request_error", "model_not_found")),
    exchange(
        "insufficient_quota",
        429,
        _openai_error("You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
        retry_after="1",
    ),
    exchange("rate_limit_in_ms", 429, _SLOW_DOWN, retry_after_ms="1843", retry_after="2", **_NONE_LEFT),
    exchange("rate_limit_in_seconds", 429, _SLOW_DOWN, retry_after="2"),
    exchange("rate_limit_by_headers_alone", 429, _SLOW_DOWN, **_NONE_LEFT),
    exchange("server_error", 500, _openai_error("The server had an error.", "server_error", None)),
    exchange("server_busy", 503, _openai_error("Overloaded.", "service_unavailable", None), retry_after="0.5"),
)


# OpenRouter ----------------------------------------------------------------------------------------------------


def _router_error(code: int | str, message: str, **metadata: Any) -> dict[str, Any]:
    error: dict[str, Any] = {"message": message, "code": code}
    return {"error": error | ({"metadata": metadata} if metadata else {}), "user_id": "user_1"}


def _router_reply(content: str | None, finish: str | None, native: str | None, **choice: Any) -> dict[str, Any]:
    return {
        "id": "gen-1790000000-A1",
        "provider": "Acme",
        "model": "maker/model-8b",
        "object": "chat.completion",
        "created": 1790000000,
        "choices": [
            {
                "logprobs": None,
                "finish_reason": finish,
                "native_finish_reason": native,
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None, "reasoning": None},
                **choice,
            }
        ],
        "usage": {
            "prompt_tokens": 41,
            "completion_tokens": 7,
            "total_tokens": 48,
            "cost": 0.0000123,
            "is_byok": False,
            "cost_details": {"upstream_inference_cost": None},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }


_RAW = json.dumps({"error": {"message": "upstream worker died", "code": "internal_error"}})
_RAW_TEMPERATURE = json.dumps({"error": {"message": "temperature is not supported with this model"}})
_RAW_CONTEXT = json.dumps({"message": "maximum context length is 8192 tokens"})
_CUT_OFF = {"code": 502, "message": "Upstream connection lost", "metadata": {"error_type": "provider_unavailable"}}
_MODERATED = {
    "reasons": ["violence"],
    "flagged_input": "the first words...the last",
    "provider_name": "Acme",
    "model_slug": "maker/model-8b",
}
_THOUGHT = {
    "message": {
        "role": "assistant",
        "content": "B",
        "reasoning": "An apple grows on a tree.",
        "reasoning_details": [{"type": "reasoning.text", "text": "An apple grows on a tree.", "format": "unknown"}],
    }
}

OPENROUTER = (
    exchange("answer", 200, _router_reply("B", "stop", "STOP")),
    exchange(
        "answer_after_white_space", 200, b"\n         \n" + json.dumps(_router_reply("B", "stop", "stop")).encode()
    ),
    exchange("answer_with_reasoning", 200, _router_reply(None, "stop", "end_turn", **_THOUGHT)),
    exchange("length", 200, _router_reply("The", "length", "MAX_TOKENS")),
    exchange("partial_then_error", 200, _router_reply("The answer is A", "error", "error", error=_CUT_OFF)),
    exchange("partial_without_a_reason", 200, _router_reply("The answer is A", "error", None)),
    exchange("error_502_in_200", 200, _router_error(502, "Provider returned error", raw=_RAW, provider_name="Acme")),
    exchange(
        "error_429_in_200",
        200,
        _router_error(429, "Rate limit exceeded", error_type="rate_limit_exceeded", provider_code="rate_limited"),
        retry_after="3",
    ),
    exchange(
        "error_400_in_200",
        200,
        _router_error(400, "Provider returned error", raw=_RAW_CONTEXT, error_type="context_length_exceeded"),
    ),
    exchange("error_without_code_in_200", 200, {"error": {"message": "Something went wrong"}}),
    exchange("choices_null", 200, _router_reply("", None, None) | {"choices": None}),
    exchange("cold_start", 200, _router_reply("", None, None)),
    exchange("wrong_model", 400, _router_error(400, "maker/model-9b is not a valid model ID")),
    exchange("temperature_refused", 400, _router_error(400, "Provider returned error", raw=_RAW_TEMPERATURE)),
    exchange("wrong_key", 401, _router_error(401, "No auth credentials found")),
    exchange("no_credit", 402, _router_error(402, "Insufficient credits")),
    exchange("moderation", 403, _router_error(403, "Input was flagged", **_MODERATED)),
    exchange("no_endpoint_for_model", 404, _router_error(404, "No endpoints found for maker/model-9b.")),
    exchange(
        "no_endpoint_for_parameters",
        404,
        _router_error(404, "No endpoints found that support the requested parameters"),
    ),
    exchange(
        "no_endpoint_by_constraint",
        404,
        {
            "error": {
                "message": "No endpoints found that support the requested parameters",
                "code": 404,
                "availability": {"code": "constraint_filtered", "excluded_by": ["require_parameters"]},
            }
        },
    ),
    exchange("timeout", 408, _router_error(408, "Request timed out")),
    exchange("too_large", 413, _router_error(413, "Payload too large", error_type="payload_too_large")),
    exchange(
        "rate_limit",
        429,
        _router_error(429, "Rate limit exceeded: free-models-per-min."),
        x_ratelimit_limit="20",
        x_ratelimit_remaining="0",
        x_ratelimit_reset="1790000060000",
    ),
    exchange("provider_down", 502, _router_error(502, "Provider returned error", error_type="provider_unavailable")),
    exchange("no_provider_now", 503, _router_error(503, "No instances available"), retry_after="60"),
    exchange("gateway_timeout", 504, _router_error(504, "Timed out")),
    exchange("edge_timeout", 524, b"<!DOCTYPE html><html><head><title>524: A timeout occurred</title></head></html>"),
    exchange("overloaded", 529, _router_error(529, "Provider overloaded", error_type="provider_overloaded")),
)


# vLLM ----------------------------------------------------------------------------------------------------------


def _vllm_error(status: int, kind: str, message: str, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def _bad(name: str, message: str, param: str | None = None) -> Exchange:
    return exchange(name, 400, _vllm_error(400, "BadRequestError", message, param))


def _vllm_reply(content: str | None, finish: str, **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-A1",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "maker/model-8b",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": content,
                    "refusal": None,
                    "function_call": None,
                    "tool_calls": [],
                    "reasoning": None,
                    **message,
                },
                "logprobs": None,
                "finish_reason": finish,
                "stop_reason": None,
                "token_ids": None,
            }
        ],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": {"prompt_tokens": 41, "total_tokens": 44, "completion_tokens": 3, "prompt_tokens_details": None},
        "prompt_logprobs": None,
        "kv_transfer_params": None,
    }


VLLM = (
    exchange("answer", 200, _vllm_reply("B", "stop")),
    exchange("answer_with_reasoning", 200, _vllm_reply("B", "stop", reasoning="An apple grows on a tree.")),
    exchange("answer_in_reasoning", 200, _vllm_reply(None, "stop", reasoning='{"answer": "B"}')),
    exchange("older_reasoning", 200, _vllm_reply(None, "length", reasoning_content="An apple")),
    exchange("white_space_to_the_limit", 200, _vllm_reply('{"answer":' + " \n" * 20, "length")),
    exchange("repetition", 200, _vllm_reply("so so so so", "repetition")),
    exchange("aborted", 200, _vllm_reply("The answer is A", "abort")),
    _bad("temperature_range", "temperature must be in [0, 2], got 3.0.", "temperature"),
    _bad("n_with_greedy", "n must be 1 when using greedy sampling, got 2.", "n"),
    _bad(
        "context_length",
        "This model's maximum context length is 2048 tokens. However, you requested 2100 tokens "
        "(2036 in the messages, 64 in the completion).",
    ),
    _bad("schema_refused", "The provided JSON schema contains features not supported by xgrammar."),
    _bad("regex_refused", "Failed to transform regex into a grammar"),
    _bad(
        "several_constraints", "You can only use one kind of structured outputs constraint but multiple are specified"
    ),
    _bad(
        "schema_missing",
        "When response_format type is 'json_schema', the 'json_schema' field must be provided.",
        "response_format",
    ),
    _bad("system_refused", "System role not supported"),
    exchange(
        "older_error",
        400,
        {"object": "error", "message": "n must be 1", "type": "BadRequestError", "param": None, "code": 400},
    ),
    exchange("wrong_key", 401, {"error": "Unauthorized"}),
    exchange("wrong_model", 404, _vllm_error(404, "NotFoundError", "The model `m` does not exist.", "model")),
    exchange(
        "unprocessable", 422, {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required"}]}
    ),
    exchange("engine_died", 500, _vllm_error(500, "InternalServerError", "EngineCore encountered an issue.")),
    exchange("not_implemented", 501, _vllm_error(501, "NotImplementedError", "This model has no chat template.")),
)


# llama.cpp -----------------------------------------------------------------------------------------------------


def llama_error(status: int, kind: str, message: str, **more: Any) -> dict[str, Any]:
    """llama.cpp's shape."""
    return {"error": {"code": status, "message": message, "type": kind, **more}}


def _llama_reply(content: str, finish: str, **message: Any) -> dict[str, Any]:
    return {
        "choices": [
            {"finish_reason": finish, "index": 0, "message": {"role": "assistant", "content": content, **message}}
        ],
        "created": 1790000000,
        "model": "model.gguf",
        "system_fingerprint": "b9999-abcdef0",
        "object": "chat.completion",
        "usage": {"completion_tokens": 3, "prompt_tokens": 41, "total_tokens": 44},
        "id": "chatcmpl-A1",
        "timings": {"prompt_n": 41, "prompt_ms": 20.1, "predicted_n": 3, "predicted_ms": 60.3},
    }


_TEMPLATE = (
    "\n------------\nWhile executing CallExpression at line 1, column 9 in source:\n ^\nError: Jinja Exception: "
)

LLAMACPP = (
    exchange("answer", 200, _llama_reply("B", "stop")),
    exchange("answer_with_reasoning", 200, _llama_reply("B", "stop", reasoning_content="An apple grows.")),
    exchange("reasoning_used_the_limit", 200, _llama_reply("", "length", reasoning_content="An apple")),
    exchange("loading", 503, llama_error(503, "unavailable_error", "Loading model")),
    exchange(
        "context_length",
        400,
        llama_error(
            400,
            "exceed_context_size_error",
            "the request exceeds the available context size, try increasing it",
            n_prompt_tokens=5000,
            n_ctx=4096,
        ),
    ),
    exchange(
        "grammar_refused",
        400,
        llama_error(400, "invalid_request_error", "Failed to initialize samplers: failed to parse grammar"),
    ),
    exchange(
        "pattern_refused",
        400,
        llama_error(400, "invalid_request_error", "Pattern must start with '^' and end with '$'"),
    ),
    exchange("wrong_key", 401, llama_error(401, "authentication_error", "Invalid API Key")),
    exchange("wrong_path", 404, llama_error(404, "not_found_error", "File Not Found")),
    exchange("n_refused", 500, llama_error(500, "server_error", "Only one completion choice is allowed")),
    exchange("system_refused", 500, llama_error(500, "server_error", f"{_TEMPLATE}System role not supported")),
    exchange(
        "roles_refused",
        500,
        llama_error(500, "server_error", f"{_TEMPLATE}Conversation roles must alternate user/assistant/..."),
    ),
    exchange("server_error", 500, llama_error(500, "server_error", "Compute error.")),
    exchange("not_supported", 501, llama_error(501, "not_supported_error", "This server does not support this.")),
)

COMPLETIONS = {
    f"{dialect}/{one.name}": one
    for dialect, group in (("openai", OPENAI), ("openrouter", OPENROUTER), ("vllm", VLLM), ("llamacpp", LLAMACPP))
    for one in group
}
"""Replies to a chat completion, by dialect and name."""
