"""What the hostile server says when it is well: completions, refusals and lists in the words of four dialects."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

Body = dict[str, Any]
Dialect = Literal["openai", "openrouter", "vllm", "llamacpp"]
JSON = {"Content-Type": "application/json"}
CONSTRAINTS = ("response_format", "structured_outputs", "grammar", "json_schema")
"""The fields that hold a reply to a form."""


class Wire(msgspec.Struct, frozen=True):
    """One HTTP reply as it goes out: `sent` bytes of the body (None: all), after `wait` seconds, and how it ends."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = msgspec.field(default_factory=lambda: JSON)
    sent: int | None = None
    end: Literal["keep", "close", "reset"] = "keep"
    wait: float = 0.0


class Said(msgspec.Struct, frozen=True):
    """What the model says to one request. Anything with `text` and `finish_reason` does as well."""

    text: str | None
    finish_reason: str = "stop"
    reasoning: str | None = None


def dumps(value: Any) -> bytes:
    """JSON, compact."""
    return msgspec.json.encode(value)


def words(messages: Iterable[Body]) -> int:
    """A token is a word."""
    return sum(len(message["content"].split()) for message in messages)


def completion(dialect: Dialect, request: Body, said: Any) -> Body:
    """A chat completion in a dialect's shape, with a token for each word."""
    reasoning = getattr(said, "reasoning", None)
    prompt, thought, visible = words(request["messages"]), _count(reasoning), _count(said.text)
    message: Body = {"role": "assistant", "content": said.text}
    choice: Body = {"index": 0, "message": message, "finish_reason": said.finish_reason, "logprobs": None}
    usage: Body = {
        "prompt_tokens": prompt,
        "completion_tokens": visible + thought,
        "total_tokens": prompt + visible + thought,
    }
    told: Body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [choice],
        "usage": usage,
    }
    match dialect:
        case "openai":  # reasoning is counted, never shown
            message["refusal"] = None
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
            told["system_fingerprint"] = "fp_1"
        case "openrouter":
            message["reasoning"] = reasoning
            choice["native_finish_reason"] = said.finish_reason
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
            usage["cost"] = (prompt + 2 * (visible + thought)) * 1e-6
            told["provider"] = "Acme"
        case "vllm":
            message["reasoning"] = reasoning
        case "llamacpp":
            if reasoning is not None:
                message["reasoning_content"] = reasoning
            told["system_fingerprint"] = "b9999-abcdef0"
            told["timings"] = {"prompt_n": prompt, "predicted_n": visible + thought}
    return told


def _count(text: str | None) -> int:
    return len((text or "").split())


# Refusals ------------------------------------------------------------------------------------------------------

_TYPES: dict[Dialect, dict[int, str]] = {
    "openai": {429: "requests", 500: "server_error", 503: "service_unavailable"},
    "openrouter": {},
    "vllm": {400: "BadRequestError", 404: "NotFoundError"},
    "llamacpp": {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        503: "unavailable_error",
    },
}
_OTHER_TYPE: dict[Dialect, str] = {
    "openai": "invalid_request_error",
    "openrouter": "",
    "vllm": "InternalServerError",
    "llamacpp": "server_error",
}


def refusal(dialect: Dialect, status: int, message: str, code: str | None = None, param: str | None = None) -> Wire:
    """An error in a dialect's shape. `code` (a word) and `param` go where the dialect has room for them."""
    kind = _TYPES[dialect].get(status, _OTHER_TYPE[dialect])
    match dialect:
        case "openai":
            error: Body = {"message": message, "type": kind, "param": param, "code": code}
        case "openrouter":
            error = {"message": message, "code": status}
        case "vllm":
            error = {"message": message, "type": kind, "param": param, "code": status}
        case "llamacpp":
            error = {"code": status, "message": message, "type": kind}
    return Wire(status, dumps({"error": error}))


def wrong_key(dialect: Dialect) -> Wire:
    """401."""
    if dialect == "vllm":
        return Wire(401, dumps({"error": "Unauthorized"}))
    texts = {"openai": "Incorrect API key provided.", "openrouter": "No auth credentials found"}
    return refusal(dialect, 401, texts.get(dialect, "Invalid API Key"), "invalid_api_key")


def wrong_model(dialect: Dialect, name: str) -> Wire:
    """404, also where a real server answers whatever the name is (llama.cpp)."""
    return refusal(dialect, 404, f"The model `{name}` does not exist.", "model_not_found", "model")


def no_parameter(dialect: Dialect, name: str, value: Any) -> Wire:
    """A reasoning model wants the token limit under its other name, and of the rest no value but its own."""
    if name == "max_tokens":
        why = f"'{name}' is not supported with this model. Use 'max_completion_tokens' instead."
        return refusal(dialect, 400, f"Unsupported parameter: {why}", "unsupported_parameter", name)
    why = f"'{name}' does not support {value} with this model. Only the default (1) value is supported."
    return refusal(dialect, 400, f"Unsupported value: {why}", "unsupported_value", name)


def no_system(dialect: Dialect) -> Wire:
    """The chat template raised; llama.cpp calls that an error of its own."""
    if dialect != "llamacpp":
        return refusal(dialect, 400, "System role not supported", "unsupported_value", "messages")
    message = (
        "\n------------\nWhile executing CallExpression at line 1\nError: Jinja Exception: System role not supported"
    )
    return refusal(dialect, 500, message)


def too_long(dialect: Dialect, limit: int, prompt: int, most: int) -> Wire:
    """The prompt and what may be answered do not fit."""
    if dialect == "llamacpp":
        message = "the request exceeds the available context size, try increasing it"
        told = {"code": 400, "message": message, "type": "exceed_context_size_error"}
        return Wire(400, dumps({"error": told | {"n_prompt_tokens": prompt, "n_ctx": limit}}))
    message = (
        f"This model's maximum context length is {limit} tokens. However, you requested {prompt + most} tokens "
        f"({prompt} in the messages, {most} in the completion). Please reduce the length of the messages or completion."
    )
    return refusal(dialect, 400, message, "context_length_exceeded", "messages")


def no_constraint(dialect: Dialect, field: str) -> Wire:
    """The server cannot hold a reply to this."""
    match dialect:
        case "openai":
            message = f"Invalid parameter: '{field}' of this type is not supported with this model."
            return refusal(dialect, 400, message, None, field)
        case "openrouter":
            return refusal(dialect, 404, f"No endpoints found that support {field}.")
        case "vllm":
            message = "The provided JSON schema contains features not supported by xgrammar."
            return refusal(dialect, 400, "Failed to transform regex into a grammar" if field == "regex" else message)
        case "llamacpp":
            return refusal(dialect, 400, "Failed to initialize samplers: failed to parse grammar")


# What is asked beside completions ----------------------------------------------------------------------------------


def aside(dialect: Dialect, model: str, context: int | None, path: str, told: Body) -> Wire:
    """Any path but the completions', without `/api` and `/v1`; `told` is the body of a POST."""
    room = context or 32_768
    found = _models(dialect, model, room) if path == "/models" else _own(dialect, model, room, path, told)
    return refusal(dialect, 404, "Not Found") if found is None else Wire(200, dumps(found))


def _own(dialect: Dialect, model: str, room: int, path: str, told: Body) -> Body | None:
    match dialect, path:
        case _, "/health":
            return {"status": "ok"}
        case "openrouter", "/key":
            return {"data": {"label": "sk-...", "usage": 1.5, "limit": 10.0, "limit_remaining": 8.5}}
        case "openrouter", _ if path == f"/models/{model}/endpoints":
            served = {"name": f"Acme | {model}", "provider_name": "Acme", "tag": "acme/fp8", "context_length": room}
            return {"data": {"id": model, "endpoints": [served]}}
        case "vllm", "/version":
            return {"version": "0.30.0"}
        case "vllm", "/tokenize":
            text = told["prompt"] if "prompt" in told else _rendered(told["messages"])
            tokens = _tokens(text)
            return {"tokens": tokens, "count": len(tokens), "max_model_len": room}
        case "llamacpp", "/tokenize":
            return {"tokens": _tokens(told["content"])}
        case "llamacpp", "/apply-template":
            return {"prompt": _rendered(told["messages"])}
        case "llamacpp", "/props":
            settings = {"n_ctx": room}
            return {"default_generation_settings": settings, "build_info": "b9999-abcdef0", "chat_template": "plain"}
    return None


def _models(dialect: Dialect, model: str, room: int) -> Body:
    entry: Body = {"id": model, "object": "model", "created": 1, "owned_by": dialect}
    match dialect:
        case "openrouter":
            long = {"min_prompt_tokens": 1000, "prompt": "0.000002", "completion": "0.000004"}
            price = {"prompt": "0.000001", "completion": "0.000002", "request": "0", "overrides": [long]}
            entry |= {"pricing": price, "context_length": room, "supported_parameters": ["seed", "response_format"]}
        case "vllm":
            entry["max_model_len"] = room
        case "llamacpp":
            entry["meta"] = {"n_ctx_train": room}
    return {"object": "list", "data": [entry]}


def _rendered(messages: Iterable[Body]) -> str:
    """The chat template: two words around each turn."""
    return " ".join(itertools.chain(*((f"<{one['role']}>", one["content"], "</>") for one in messages)))


def _tokens(text: str) -> list[int]:
    return [sum(word.encode()) for word in text.split()]
