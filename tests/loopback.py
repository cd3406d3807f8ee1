"""A server on loopback that speaks the chat dialect and knows the truth behind its answers.

In a test it runs in a thread; `python tests/loopback.py` serves a fixed answer from its own process, for the bench.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the server says to one request: a chat completion with this text, or a status and a raw body."""

    text: str | None = None
    status: int = 200
    body: bytes | None = None
    finish_reason: str = "stop"
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    """Close the connection without a reply."""
    delay: float = 0.0


def completion(request: Body, text: str | None, finish_reason: str = "stop") -> Body:
    """A chat completion in the documented shape. One token per word, as far as usage goes."""
    prompt = sum(len(message["content"].split()) for message in request["messages"])
    tokens = len((text or "").split())
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish_reason,
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens},
        "system_fingerprint": "fp_1",
    }


def draw(request: Body) -> float:
    """A number in [0, 1) that depends on the prompt and the seed alone: the same request is answered the same."""
    told = json.dumps([request["messages"], request.get("seed")], sort_keys=True)
    return int.from_bytes(hashlib.sha256(told.encode()).digest()[:6], "big") / 2**48


class Loopback:
    """The server, in a thread of its own. `requests` are the bodies it saw, `headers` what came with them."""

    def __init__(self, answer: Callable[[Body], Answer], latency: float = 0.0) -> None:
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.most_in_flight = 0
        self._answer = answer
        self._latency = latency
        self._in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Loopback:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> str:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            return await self._reply(request)
        finally:
            self._in_flight -= 1

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        answer = self._answer(body)
        await asyncio.sleep(self._latency + answer.delay)
        if answer.drop:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        content = answer.body
        if content is None:
            content = json.dumps(completion(body, answer.text, answer.finish_reason)).encode()
        headers = {"Content-Type": "application/json", **answer.headers}
        return web.Response(status=answer.status, body=content, headers=headers)


def _serve() -> None:
    """Serve one fixed answer without latency until standard input ends; prints the URL."""
    with Loopback(lambda _: Answer("A")) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve()
