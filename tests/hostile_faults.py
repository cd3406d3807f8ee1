"""The faults a hostile server injects, each as what goes over the wire, and when it injects them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
from hostile_dialects import JSON, Body, Dialect, Wire, dumps, refusal

OK = "ok"
"""In a script: answer this one truthfully. None leaves it to chance."""
Script = Sequence[str | None] | Callable[[Body], str | None]


@dataclass(frozen=True)
class Scene:
    """What a fault is made of: `good` gives the completion that would have been sent."""

    dialect: Dialect
    good: Callable[[], Body]
    wrong: Callable[[str], str]
    hang: float


def tempting(text: str) -> str:
    """A wrong answer that reads as well as the right one: another letter, truth value or number in its last place."""
    for pattern, other in _OTHERS:
        places = list(re.finditer(pattern, text))
        if places:
            last = places[-1]
            return text[: last.start()] + other(last[0]) + text[last.end() :]
    return "A"


_OTHERS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"\b[A-Z]\b", lambda letter: "A" if letter == "Z" else chr(ord(letter) + 1)),
    (r"\b(true|false)\b", lambda value: "false" if value == "true" else "true"),
    (r"\b\d+\b", lambda number: str(int(number) + 1)),
)


# On the wire ---------------------------------------------------------------------------------------------------


def _slow_down(**headers: str) -> Callable[[Scene], Wire]:
    """A 429; underscores in header names are dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def fault(scene: Scene) -> Wire:
        wire = refusal(scene.dialect, 429, "Rate limit reached, please try again later.", "rate_limit_exceeded")
        return msgspec.structs.replace(wire, headers=JSON | named)

    return fault


def _status(status: int, message: str) -> Callable[[Scene], Wire]:
    return lambda scene: refusal(scene.dialect, status, message)


def _page(status: int) -> Callable[[Scene], Wire]:
    page = f"<html><head><title>{status}</title></head><body><h1>A gateway's page</h1></body></html>".encode()
    return lambda scene: Wire(status, page, {"Content-Type": "text/html"})


def _broken_off(end: str, share: float) -> Callable[[Scene], Wire]:
    """The reply up to a share of its body, then the end of the connection."""

    def fault(scene: Scene) -> Wire:
        body = dumps(scene.good())
        return Wire(body=body, sent=int(len(body) * share), end="reset" if end == "reset" else "close")

    return fault


def _broken_json(scene: Scene) -> Wire:
    body = dumps(scene.good())
    return Wire(body=body[: len(body) * 2 // 3])


def _beside(**error: object) -> Callable[[Scene], Wire]:
    return lambda scene: Wire(body=dumps({"error": error}))


def _partial(scene: Scene) -> Wire:
    told = scene.good()
    choice = told["choices"][0]
    choice["message"]["content"] = scene.wrong(choice["message"]["content"] or "")
    choice["finish_reason"] = "error"
    choice["error"] = {"code": 502, "message": "Upstream connection lost", "metadata": {"provider_name": "Acme"}}
    return Wire(body=dumps(told))


def _without(change: Callable[[Body], None]) -> Callable[[Scene], Wire]:
    def fault(scene: Scene) -> Wire:
        told = scene.good()
        change(told)
        return Wire(body=dumps(told))

    return fault


def _no_content(told: Body) -> None:
    choice = told["choices"][0]
    choice["finish_reason"] = None
    choice["message"] = {"role": "assistant", "content": None}


_RAW = json.dumps({"error": {"message": "upstream died", "type": "server_error"}})

WIRES: dict[str, Callable[[Scene], Wire]] = {
    "429": _slow_down(),
    "429-seconds": _slow_down(Retry_After="1"),
    "429-fraction": _slow_down(Retry_After="0.05"),
    "429-ms": _slow_down(retry_after_ms="20"),
    "429-ratelimit": _slow_down(
        x_ratelimit_limit_requests="500",
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="20ms",
    ),
    "408": _status(408, "Request timed out"),
    "500": _status(500, "Internal server error"),
    "502": _page(502),
    "503": _status(503, "No capacity"),
    "504": _page(504),
    "524": _page(524),
    "529": _status(529, "Provider overloaded"),
    "reset": lambda scene: Wire(sent=0, end="reset"),
    "closed": lambda scene: Wire(sent=0, end="close"),
    "reset-in-body": _broken_off("reset", 0.5),
    "truncated": _broken_off("close", 0.9),
    "hang": lambda scene: Wire(sent=0, end="reset", wait=scene.hang),
    "html": _page(200),
    "broken-json": _broken_json,
    "empty": lambda scene: Wire(),
    "error-502": _beside(
        code=502, message="Provider returned error", metadata={"raw": _RAW, "provider_name": "Acme"}
    ),
    "error-bare": _beside(message="The upstream failed"),
    "partial": _partial,
    "choices-null": _without(lambda told: told.update(choices=None)),
    "choices-empty": _without(lambda told: told.update(choices=[])),
    "message-null": _without(lambda told: told["choices"][0].update(message=None)),
    "content-null": _without(_no_content),
    # What no retry mends; for scripts.
    "quota": lambda scene: Wire(
        429, dumps({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota",
                              "param": None, "code": "insufficient_quota"}})
    ),
    "402": _status(402, "Insufficient credits"),
    "403": _status(403, "Forbidden"),
}  # fmt: skip
"""Every fault by its name. A `sent` of 0 means that no byte of the reply goes out, not even its head."""

MIXED = tuple(name for name in WIRES if name not in ("429-seconds", "quota", "402", "403"))
"""What chance picks from: whatever passes, and soon (a second's wait would hold up everything behind it)."""


# When ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faults:
    """At `rate`, each attempt meets one of `kinds`, decided by `seed`, the request and how often it was asked, so
    that it does not depend on order or speed. No request fails more than `most` times in a row by chance.

    `script` goes first: names for the next requests, or what a request meets. `hang` in seconds, then the connection
    is reset. `wrong` makes the text of a partial reply of the right one.
    """

    rate: float = 0.0
    seed: int = 0
    kinds: Sequence[str] = MIXED
    most: int = 5
    script: Script = ()
    hang: float = 2.0
    wrong: Callable[[str], str] = tempting

    def __post_init__(self) -> None:
        check(self.kinds)
        check(() if callable(self.script) else self.script)

    def chance(self, identity: str, asked: int) -> str | None:
        """What a request meets when it is asked for the `asked`th time."""
        if not self.rate:
            return None
        drawn = hashlib.blake2b(f"{self.seed} {identity} {asked}".encode(), digest_size=12).digest()
        if int.from_bytes(drawn[:6], "big") / 2**48 >= self.rate:
            return None
        return self.kinds[int.from_bytes(drawn[6:], "big") % len(self.kinds)]


def check(names: Iterable[str | None]) -> None:
    """Raises LookupError for a name that no fault has."""
    for name in names:
        if name not in (None, OK) and name not in WIRES:
            raise LookupError(f"no such fault: {name!r} (there are {', '.join(WIRES)})")
