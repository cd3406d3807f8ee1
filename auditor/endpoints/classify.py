"""HTTP reply -> Reply or Fault, before any text is parsed. A failure must never become an answer."""

from __future__ import annotations

import datetime
import email.utils
import json
import math
import re
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
_BROKEN_OFF = ("error", "abort")
_CLIENTS_MISTAKE = re.compile(r"jinja exception|only one completion choice", re.IGNORECASE)
"""What llama.cpp answers with a 500 and will answer again."""
_NO_SUCH_ROUTE = re.compile(r"no endpoints found that|constraint_filtered", re.IGNORECASE)
"""OpenRouter's 404 for parameters that no provider takes: the model is there."""


def classify(reply: HttpReply) -> Reply | Fault:
    """A completion, or why there is none. Never raises."""
    if reply.status != 200:
        return status_fault(reply.status, error_text(reply.body), reply.headers, error_code(reply.body))
    try:
        completion = _DECODER.decode(reply.body if b"\\ud" not in reply.body else _whole(reply.body))
    except _UNREADABLE:
        return _transient("not_a_completion", f"status 200, but the body is no completion: {_start(reply.body)}")
    answer = _completion(completion, reply)
    if isinstance(answer, Fault) and completion.usage:
        return msgspec.structs.replace(answer, cost_usd=_amount(_table(completion.usage).get("cost")))
    return answer


def _whole(body: bytes) -> bytes:
    """Half of a surrogate pair, which a model may write, is no character: a question mark stands for it."""
    try:
        return json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return body


def _completion(completion: _Completion, reply: HttpReply) -> Reply | Fault:
    if completion.error:
        return _error_in_body(completion.error, reply)
    choice = completion.choices[0] if completion.choices else _Choice()
    if choice.error:
        fault = _coded(choice.error, reply)
        why = f"the provider failed mid-answer: {_message(choice.error)}"
        if fault is not None and (fault.kind == "rate_limit" or not fault.retryable):
            return msgspec.structs.replace(fault, message=why)
        return _transient("provider_error", why)
    if choice.finish_reason in _BROKEN_OFF:
        return _transient("provider_error", f"the provider broke off mid-answer ({choice.finish_reason})")
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
    if (status == 404 and _NO_SUCH_ROUTE.search(f"{message} {code}")) or (
        status == 500 and _CLIENTS_MISTAKE.search(message)
    ):
        return Fault("bad_request", said, retryable=False)
    if status == 501:
        return Fault("refused", said, retryable=False)
    if status == 429 and "insufficient_quota" in f"{code} {message}":
        return Fault("quota", said, retryable=False, fatal=True)
    if status in _RETRYABLE or status >= 500:
        wait = retry_after(headers)
        if status == 503 and wait is None and "loading" in message.lower():  # llama.cpp while it reads its weights
            wait = 1.0
        return Fault(kind, said, retryable=True, retry_after=wait)
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


def exhausted_for(headers: Mapping[str, str]) -> float | None:
    """Seconds until requests are taken again, where `x-ratelimit-remaining-*` says that none are left.

    The reset is a duration (`6m0s`, `12ms`), for OpenRouter a time in Unix milliseconds.
    """
    waits = [
        _duration(headers.get(f"x-ratelimit-reset{what}", ""))
        for what in ("-requests", "-tokens", "")
        if headers.get(f"x-ratelimit-remaining{what}") == "0"
    ]
    known = [seconds for seconds in waits if seconds is not None]
    return max(known) if known else None


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _duration(text: str) -> float | None:
    if re.fullmatch(r"\d{12,14}", text):
        return max(0.0, int(text) / 1000 - time.time())
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d))+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h|d)", text))


def error_text(body: bytes) -> str:
    """What an error body says, in one line of at most 300 characters."""
    try:
        tree = msgspec.json.decode(body)
    except _UNREADABLE:
        return _start(body)
    return _message(tree.get("error") or tree) if isinstance(tree, dict) else _start(body)


def error_code(body: bytes) -> str:
    """`error.code`, `error.type` and `error.availability.code` of an error body, or nothing."""
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
    fault = _coded(error, reply)
    if fault is None:
        return _transient("error_in_body", f"error inside a 200: {_message(error)}")
    return msgspec.structs.replace(fault, message=f"error inside a 200: {fault.message}")


def _coded(error: Any, reply: HttpReply) -> Fault | None:
    """What the status means that an error's code repeats; None where it has none."""
    status = next((code for code in range(400, 600) if _table(error).get("code") in (code, str(code))), 0)
    if not status and "insufficient_quota" in _code(error):
        status = 429
    return status_fault(status, _message(error), reply.headers, _code(error)) if status else None


def _code(error: Any) -> str:
    told = _table(error)
    why = _table(told.get("availability")).get("code", "")
    return f"{told.get('code', '')} {told.get('type', '')} {why}"


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
