"""HTTP reply -> Reply or Fault, before any text is parsed. A failure must never become an answer."""

from __future__ import annotations

import datetime
import email.utils
import math
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from auditor.endpoints.transport import HttpReply, one_line
from auditor.records import Fault, Reply


class _Message(msgspec.Struct):
    """What an answer hangs on is typed; what stands beside it may be anything and then counts as absent."""

    content: str | list[Any] | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    refusal: Any = None
    tool_calls: Any = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    finish_reason: str | None = None
    native_finish_reason: Any = None
    error: Any = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    model: Any = None
    provider: Any = None
    system_fingerprint: Any = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Completion)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_KINDS = {
    400: "bad_request",
    401: "unauthorized",
    402: "payment",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    422: "bad_request",
    429: "rate_limit",
    503: "unavailable",
    529: "overloaded",
}
_RETRYABLE = frozenset({408, 409, 429})
_FATAL = frozenset({401, 402, 404})


def classify(reply: HttpReply) -> Reply | Fault:
    """A completion, or why there is none. Never raises."""
    if reply.status != 200:
        return status_fault(reply.status, error_text(reply.body), reply.headers, error_code(reply.body))
    try:
        completion = _DECODER.decode(reply.body)
    except _UNREADABLE:
        return _transient("not_a_completion", f"status 200, but the body is no completion: {_start(reply.body)}")
    if completion.error:
        return _error_in_body(completion.error, reply)
    choice = completion.choices[0] if completion.choices else _Choice()
    if choice.error or choice.finish_reason == "error":
        why = _message(choice.error) if choice.error else "no reason given"
        return _transient("provider_error", f"the provider failed mid-answer: {why}")
    if choice.message is None:
        return _transient("no_choices", f"status 200, but no choices: {_start(reply.body)}")
    return _reply(completion, choice, choice.message)


def status_fault(status: int, message: str, headers: Mapping[str, str], code: str = "") -> Fault:
    """What an HTTP status other than 200 means. An exhausted quota arrives as a 429 and never recovers."""
    if 300 <= status < 400:
        where = one_line(headers.get("location", ""))
        return Fault("redirect", f"HTTP {status}: redirects to {where or 'nowhere'}", retryable=False, fatal=True)
    kind = _KINDS.get(status, "server_error" if status >= 500 else "refused")
    said = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    if status == 429 and "insufficient_quota" in f"{code} {message}":
        return Fault("quota", said, retryable=False, fatal=True)
    if status in _RETRYABLE or status >= 500:
        return Fault(kind, said, retryable=True, retry_after=retry_after(headers))
    return Fault(kind, said, retryable=False, fatal=status in _FATAL)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the endpoint asks for: `retry-after-ms`, else `Retry-After` as (fractional) seconds or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value)
        if 0 <= seconds < math.inf:
            return seconds
    return None


def error_text(body: bytes) -> str:
    """What an error body says, in one line of at most 300 characters."""
    try:
        tree = msgspec.json.decode(body)
    except _UNREADABLE:
        return _start(body)
    return _message(tree.get("error") or tree) if isinstance(tree, dict) else _start(body)


def error_code(body: bytes) -> str:
    """`error.code` and `error.type` of an error body, or nothing."""
    try:
        tree = msgspec.json.decode(body)
    except _UNREADABLE:
        return ""
    return _code(_table(tree).get("error"))


def _reply(completion: _Completion, choice: _Choice, message: _Message) -> Reply | Fault:
    usage = _table(completion.usage)
    reply = Reply(
        text=_text(message.content),
        finish_reason=choice.finish_reason or None,
        reasoning=_string(message.reasoning) or _string(message.reasoning_content),
        refusal=_string(message.refusal),
        tool_calls=_json(message.tool_calls) if message.tool_calls else None,
        native_finish_reason=_string(choice.native_finish_reason),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        reasoning_tokens=_count(_table(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        cost_usd=_amount(usage.get("cost")),
        provider=_string(completion.provider),
        model_returned=_string(completion.model),
        system_fingerprint=_string(completion.system_fingerprint),
    )
    said = reply.text or reply.reasoning or reply.refusal or reply.tool_calls
    if not said and reply.finish_reason is None:
        return _transient("no_content", "status 200, but the model said nothing and nothing says why it ended")
    return reply


def _text(content: str | list[Any] | None) -> str | None:
    """Some servers answer in parts; only text parts are an answer (others are reasoning or a refusal)."""
    if not isinstance(content, list):
        return content
    parts = [part.get("text") for part in map(_table, content) if part.get("type") in (None, "text", "output_text")]
    texts = [text for text in parts if isinstance(text, str)]
    return "".join(texts) if texts else None


def _error_in_body(error: Any, reply: HttpReply) -> Fault:
    status = next((code for code in range(400, 600) if _table(error).get("code") in (code, str(code))), 0)
    if not status and "insufficient_quota" in _code(error):
        status = 429
    if not status:
        return _transient("error_in_body", f"error inside a 200: {_message(error)}")
    fault = status_fault(status, _message(error), reply.headers, _code(error))
    return msgspec.structs.replace(fault, message=f"error inside a 200: {fault.message}")


def _code(error: Any) -> str:
    told = _table(error)
    return f"{told.get('code', '')} {told.get('type', '')}"


def _message(error: Any) -> str:
    """OpenRouter says "Provider returned error" and keeps the provider's own words in `metadata.raw`."""
    told = _table(error)
    text = told.get("message") or told.get("detail") or error
    raw = _table(told.get("metadata")).get("raw")
    words = [part if isinstance(part, str) else _json(part) for part in (text, raw) if part]
    return one_line(": ".join(words))


def _transient(kind: str, message: str) -> Fault:
    return Fault(kind, message, retryable=True)


def _start(body: bytes) -> str:
    return one_line(body[:400].decode("utf-8", "replace"), 120)


def _until(date: str) -> float:
    """Seconds from now; a date without a zone is UTC."""
    try:
        when = email.utils.parsedate_to_datetime(date)
        if when.tzinfo is None:
            when = when.replace(tzinfo=datetime.UTC)
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, OverflowError, TypeError, IndexError):
        return math.nan


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "(nested too deeply)"


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    """A count as the store can hold it."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**63 else None


def _amount(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < math.inf else None
