"""A chat server that fails in every way real ones do, while what it answers in the end is known.

In a test it runs in a thread; `python tests/hostile.py --faults 0.15 --allow 50` serves from its own process, for
benches: it prints its URL, serves until standard input ends, and prints what it counted as one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import importlib
import json
import socket
import struct
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import hostile_dialects as words
import msgspec
from aiohttp import web
from hostile_dialects import Body, Dialect, Said, Wire
from hostile_faults import OK, WIRES, Faults, Scene, check
from hostile_held import Holding, asked, held
from hostile_situation import Situation

__all__ = ["Body", "Counts", "Dialect", "Faults", "Holding", "Hostile", "Said", "Situation", "Wire", "identity"]

PAUSE = 0.02
"""Seconds between the bytes of a broken reply and the end of its connection: the client reads them first."""
_decode = msgspec.json.Decoder().decode


class Answer(Protocol):
    """What the truth says: a `Said`, a `loopback.Answer`, or the like. `reasoning` is optional."""

    @property
    def text(self) -> str | None: ...
    @property
    def finish_reason(self) -> str: ...


@dataclass
class Counts:
    """What a server saw: completion POSTs, how many of them were answered, refused for good, over the limit, or met a
    fault, by its name; how many were open at once, let in or not. `asked` is how often, `in_a_row` the failures since
    the last answer, by a request's identity; failures are faults and 429s over the limit.
    Their sum is `posts`, unless a client left while it waited."""

    posts: int = 0
    answered: int = 0
    refused: int = 0
    over_limit: int = 0
    most_in_flight: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    asked: dict[str, int] = field(default_factory=dict)
    in_a_row: dict[str, int] = field(default_factory=dict)
    most_in_a_row: int = 0

    def summary(self) -> dict[str, Any]:
        """Without the tables by request: how many differed, and how often the most stubborn was asked."""
        asked = self.asked.copy()
        return {
            "posts": self.posts,
            "answered": self.answered,
            "refused": self.refused,
            "over_limit": self.over_limit,
            "faulty": sum(self.faults.copy().values()),
            "most_in_flight": self.most_in_flight,
            "distinct": len(asked),
            "most_asked": max(asked.values(), default=0),
            "most_in_a_row": self.most_in_a_row,
            "faults": dict(sorted(self.faults.copy().items())),
        }


def identity(body: Body) -> str:
    """Which request this is, however often it is asked: model, prompt, seed, and what its reply is held to."""
    told = [body.get("model"), body.get("messages"), body.get("seed"), asked(body)]
    return hashlib.blake2b(words.dumps(told), digest_size=12).hexdigest()


class Hostile:
    """The server, in a thread of its own. `counts` can be read at any time; `requests` only has bodies where `keep`.

    What `truth` raises (and a constraint no reply was given for) is raised again when the server is left.
    """

    def __init__(
        self,
        truth: Callable[[Body], Answer],
        faults: Faults | None = None,
        situation: Situation | None = None,
        *,
        keep: bool = False,
    ) -> None:
        self.counts = Counts()
        self.requests: list[Body] = []
        self.url = ""
        self._truth = truth
        self._faults = faults or Faults()
        self._situation = situation or Situation()
        self._script: deque[str | None] = deque(() if callable(self._faults.script) else self._faults.script)
        self._keep = keep
        self._in_flight = 0
        self._let_in = 0
        self._broken: Exception | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def inject(self, *names: str | None) -> None:
        """Let the next requests meet these faults, after those of the script."""
        check(names)
        self._script.extend(names)

    def __enter__(self) -> Hostile:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, raised: object, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        if self._broken is not None and raised is None:
            raise self._broken

    async def _start(self) -> str:
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await self._site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    # One request ---------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.removeprefix("/api").removeprefix("/v1")
        if request.method != "POST" or path != "/chat/completions":
            told = _decode(await request.read()) if request.method == "POST" else {}
            return await self._send(request, self._aside(request, path, told))
        if self._situation.gone_after is not None and self.counts.posts >= self._situation.gone_after:
            return await self._vanish()
        self.counts.posts += 1
        self._in_flight += 1
        self.counts.most_in_flight = max(self.counts.most_in_flight, self._in_flight)
        try:
            return await self._send(request, await self._judged(request))
        finally:
            self._in_flight -= 1

    async def _judged(self, request: web.BaseRequest) -> Wire:
        raw = await request.read()
        if not self._situation.knows(request.headers):
            self.counts.refused += 1
            return words.wrong_key(self._situation.dialect)
        try:
            body = _decode(raw)
            who = identity(body)
        except (msgspec.DecodeError, AttributeError):
            self.counts.refused += 1
            return words.refusal(self._situation.dialect, 400, "The body is no JSON object.")
        if self._keep:
            self.requests.append(body)
        self.counts.asked[who] = self.counts.asked.get(who, 0) + 1
        if self._situation.allow is not None and self._let_in >= self._situation.allow:
            self.counts.over_limit += 1
            self._failed(who)
            return self._situation.over()
        return await self._inside(body, who)

    async def _inside(self, body: Body, who: str) -> Wire:
        """A hang holds its place as well."""
        self._let_in += 1
        try:
            if self._situation.latency:
                await asyncio.sleep(self._situation.latency)
            wire = self._met(body, who)
            if wire.wait:
                await asyncio.sleep(wire.wait)
            return wire
        finally:
            self._let_in -= 1

    def _met(self, body: Body, who: str) -> Wire:
        """What a request meets that was let in: a fault, a refusal, or the truth."""
        name = self._fault(body, who)
        try:
            if name is not None:
                self.counts.faults[name] += 1
                self._failed(who)
                return WIRES[name](self._scene(body))
            self.counts.in_a_row.pop(who, None)
            wire = self._situation.refusal(body)
            if wire is not None:
                self.counts.refused += 1
                return wire
            wire = Wire(body=words.dumps(self._told(body)))
        except Exception as error:  # the truth is the caller's: this must not look like one more fault
            self._broken = self._broken or error
            return words.refusal(self._situation.dialect, 400, f"the test's own error: {error!r}")
        self.counts.answered += 1
        return wire

    def _failed(self, who: str) -> None:
        self.counts.in_a_row[who] = self.counts.in_a_row.get(who, 0) + 1
        self.counts.most_in_a_row = max(self.counts.most_in_a_row, self.counts.in_a_row[who])

    def _fault(self, body: Body, who: str) -> str | None:
        name = self._faults.script(body) if callable(self._faults.script) else None
        if name is None and self._script:
            name = self._script.popleft()
        if name is None and self.counts.in_a_row.get(who, 0) < self._faults.most:
            name = self._faults.chance(who, self.counts.asked[who])
        return None if name == OK else name

    def _scene(self, body: Body) -> Scene:
        return Scene(self._situation.dialect, lambda: self._told(body), self._faults.wrong, self._faults.hang)

    def _told(self, body: Body) -> Body:
        """The completion that answers a request, held to its constraint where this server does so."""
        if self._situation.ignores_seed:
            body = {**body, "seed": self.counts.posts}
        answer: Any = self._truth(body)
        told = words.completion(self._situation.dialect, body, answer)
        if (constraint := asked(body)) and self._situation.holding.judged(*constraint) == "hold":
            text = held(*constraint, answer.text or "", self._situation.holding.conforming)
            told["choices"][0]["message"]["content"] = text
        return told

    def _aside(self, request: web.BaseRequest, path: str, told: Body) -> Wire:
        """Model lists, tokenizers and the like never fail, except for a wrong key."""
        situation = self._situation
        if not situation.knows(request.headers):
            return words.wrong_key(situation.dialect)
        return words.aside(situation.dialect, situation.model or "any", situation.context, path, told)

    # The wire ------------------------------------------------------------------------------------------------------

    async def _send(self, request: web.BaseRequest, wire: Wire) -> web.StreamResponse:
        if wire.end == "keep":
            return web.Response(status=wire.status, body=wire.body, headers=wire.headers)
        transport = request.transport
        if transport is not None and wire.sent:
            transport.write(_head(wire) + wire.body[: wire.sent])
            await asyncio.sleep(PAUSE)
        _end(transport, wire.end)
        return web.Response()

    async def _vanish(self) -> web.StreamResponse:
        """From now on nothing listens, and every open connection is reset."""
        with contextlib.suppress(RuntimeError):  # the site is stopped by the first that comes too late
            await self._site.stop()
        for connection in list(self._server.connections):
            _end(connection.transport, "reset")
        return web.Response()


def _head(wire: Wire) -> bytes:
    lines = [f"HTTP/1.1 {wire.status} OK", *(f"{name}: {value}" for name, value in wire.headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(wire.body)}", "", ""]).encode()


def _end(transport: asyncio.BaseTransport | None, how: str) -> None:
    """A close is a FIN; a reset is a RST, which a socket sends that may not linger."""
    if transport is None or transport.is_closing():
        return
    own = transport.get_extra_info("socket")
    if how == "reset" and own is not None:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort() if isinstance(transport, asyncio.Transport) else transport.close()


# A process -----------------------------------------------------------------------------------------------------


def _truth(name: str) -> Callable[[Body], Answer]:
    """`module:function`, found beside this file too, or a text that answers everything."""
    module, colon, function = name.partition(":")
    if not colon:
        return lambda _: Said(name)
    sys.path.insert(0, str(Path(__file__).parent))
    found: Callable[[Body], Answer] = getattr(importlib.import_module(module), function)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", default="B", help="a text, or module:function")
    parser.add_argument("--faults", type=float, default=0.0, help="share of attempts that fail")
    parser.add_argument("--kinds", help=f"which faults, with commas: {', '.join(WIRES)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=5, help="failures in a row of one request")
    parser.add_argument("--hang", type=float, default=2.0, help="seconds")
    parser.add_argument("--dialect", default="openai", choices=["openai", "openrouter", "vllm", "llamacpp"])
    parser.add_argument("--model")
    parser.add_argument("--key")
    parser.add_argument("--refuses", default="", help="parameters, with commas; system for a system message")
    parser.add_argument("--context", type=int, help="words")
    parser.add_argument("--allow", type=int, help="requests in flight")
    parser.add_argument("--retry-after", type=float)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--gone-after", type=int, help="completion requests")
    return parser.parse_args()


def main() -> None:
    """Serve until standard input ends."""
    told = _options()
    kinds = {"kinds": told.kinds.split(",")} if told.kinds else {}
    faults = Faults(told.faults, told.seed, most=told.most, hang=told.hang, **kinds)
    situation = Situation(
        dialect=told.dialect,
        model=told.model,
        key=told.key,
        refuses=frozenset(filter(None, told.refuses.split(","))),
        context=told.context,
        allow=told.allow,
        retry_after=told.retry_after,
        latency=told.latency,
        gone_after=told.gone_after,
    )
    with Hostile(_truth(told.truth), faults, situation) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    print(json.dumps(server.counts.summary()), flush=True)


if __name__ == "__main__":
    main()
