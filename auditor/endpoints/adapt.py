"""A refused parameter -> what is sent instead, once per endpoint and in the open."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from auditor.endpoints.transport import one_line
from auditor.records import Adaptation, Message

_OPTIONAL = ("temperature", "top_p", "seed", "stop", "top_k", "min_p", "repeat_penalty", "repetition_penalty",
             "presence_penalty", "frequency_penalty", "cache_prompt")  # fmt: skip
"""What a request can go without: the model's own value applies."""
LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names of the token limit, each with the other."""
_UNSUPPORTED = re.compile(
    r"unsupported|not supported|does not support|not compatible|unrecognized|unknown|unexpected|not allowed|"
    r"not permitted|use .?\w+.? instead|only the default",
    re.IGNORECASE,
)
_NO_SYSTEM = re.compile(
    r"system.{0,40}(role|message|prompt)|only user.{0,40}role|roles must alternate|not support .system.", re.I | re.S
)
_ECHO = re.compile(r"""['"]input['"]: ?.*""", re.S)
"""What follows is the request itself, as pydantic repeats it."""


def adaptation(body: bytes, told: Mapping[str, Any], messages: tuple[Message, ...]) -> Adaptation | None:
    """What a refusal (the body of a 400 or 422) says to send otherwise; None where it is about something else.

    `told` is the body as it was sent, without messages. What decoding is held to is never adapted.
    """
    message, code, named = _read(body)
    message = _ECHO.sub("", message)
    why = one_line(message, 200)
    if any(turn.role == "system" for turn in messages) and _NO_SYSTEM.search(message):
        return Adaptation("system", "a system message", "folded into the user's", why)
    if not (_UNSUPPORTED.search(message) or code in ("unsupported_parameter", "unsupported_value")):
        return None
    parameter = named if named in told else _mentioned(message, told)
    if parameter in LIMITS:
        return Adaptation(parameter, _literal(told[parameter]), f"as {LIMITS[parameter]}", why)
    if parameter in _OPTIONAL:
        return Adaptation(parameter, _literal(told[parameter]), "left out", why)
    return None


def adapted(told: dict[str, Any], adaptations: Mapping[str, Adaptation]) -> dict[str, Any]:
    """A body as it is sent in the end."""
    for parameter in adaptations:
        if parameter in told:
            value = told.pop(parameter)
            if parameter in LIMITS:
                told.setdefault(LIMITS[parameter], value)
    return told


def folded(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The system messages at the start of the first user's turn, a blank line between."""
    system = [turn.content for turn in messages if turn.role == "system"]
    rest = [turn for turn in messages if turn.role != "system"]
    first = next((index for index, turn in enumerate(rest) if turn.role == "user"), None)
    if not system or first is None:
        return messages
    rest[first] = Message("user", "\n\n".join([*system, rest[first].content]))
    return tuple(rest)


def _read(body: bytes) -> tuple[str, str, str]:
    """(message, code, parameter) of an error body."""
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body[:2000].decode("utf-8", "replace"), "", ""
    error = tree.get("error", tree) if isinstance(tree, dict) else tree
    if not isinstance(error, dict):
        return str(error), "", ""
    raw = error["metadata"].get("raw") if isinstance(error.get("metadata"), dict) else None
    parts = [error.get("message"), error.get("detail"), raw]
    message = " ".join(part if isinstance(part, str) else str(part) for part in parts if part)
    return message, str(error.get("code") or ""), str(error.get("param") or "")


def _mentioned(message: str, told: Mapping[str, Any]) -> str:
    """The first of our parameters that a message names as one: a word of prose such as `stop` needs marks around it."""
    places = {name: re.search(_naming(name), message) for name in (*LIMITS, *_OPTIONAL)}
    found = {name: match.start() for name, match in places.items() if match and name in told}
    return min(found, key=lambda name: found[name], default="")


def _naming(name: str) -> str:
    if "_" in name:
        return rf"(?<!\w){name}(?!\w)"
    return rf"""^{name}\b|['"`]{name}['"`]|(parameter|argument|field)s? {name}\b|: {name}(?![\w-])|\b{name}:"""


def _literal(value: Any) -> str:
    return msgspec.json.encode(value).decode()
