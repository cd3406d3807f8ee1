"""Several servers used together: the least busy is asked, a dead one is passed over, and none is forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import pytest
from samples import request

from auditor import endpoints
from auditor.endpoints import Endpoint, Place, Pool
from auditor.endpoints.transport import HttpReply, NetworkError
from auditor.records import Attempt, Fault, Reply

T = TypeVar("T")
OK = HttpReply(200, {}, b'{"choices": [{"message": {"content": "B"}, "finish_reason": "stop"}]}')


class Server:
    """A transport that counts what it is asked, and answers when it is let."""

    def __init__(self, reply: HttpReply | None = OK, held: bool = False) -> None:
        self.reply = reply
        self.asked = 0
        self.closed = 0
        self.gate = asyncio.Event()
        if not held:
            self.gate.set()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> HttpReply:
        self.asked += 1
        await self.gate.wait()
        if self.reply is None:
            raise NetworkError("network", "gone")
        return self.reply

    async def close(self) -> None:
        self.closed += 1


def pool(*servers: Server) -> Pool:
    return Pool([Endpoint(Place("vllm", "m", f"http://gpu{i}/v1"), server) for i, server in enumerate(servers)])


def servers_of(tried: list[tuple[Reply | Fault, Attempt]]) -> list[str]:
    return [attempt.server for _, attempt in tried]


def within(work: Coroutine[Any, Any, T], seconds: float = 5.0) -> T:
    """Run it; a request that waits for a server that is held would wait for ever."""
    return asyncio.run(asyncio.wait_for(work, seconds))


class Clock:
    """The time module as endpoints see it: monotonic time moves only when a test moves it."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(endpoints, "time", clock)
    return clock


def test_the_least_busy_is_asked() -> None:
    """Six requests at once are two for each of three; one that is slow gets no more than the others let it."""

    async def all_of_them() -> tuple[list[int], list[int], str]:
        three = [Server(held=True) for _ in range(3)]
        used = pool(*three)
        tasks = [asyncio.create_task(used.attempt(request(seed=seed))) for seed in range(6)]
        await asyncio.sleep(0)
        at_once = [server.asked for server in three]
        three[1].gate.set()
        await asyncio.sleep(0.01)
        answer, attempt = await used.attempt(request())
        assert isinstance(answer, Reply)
        for server in three:
            server.gate.set()
        await asyncio.gather(*tasks)
        return at_once, [server.asked for server in three], attempt.server

    assert within(all_of_them()) == ([2, 2, 2], [2, 3, 2], "http://gpu1/v1")


def test_a_pool_is_named_after_all_of_its_servers() -> None:
    """What a message calls it."""
    assert pool(Server(), Server()).base_url == "http://gpu0/v1 and http://gpu1/v1"


@pytest.mark.parametrize("dead", [None, HttpReply(502, {}, b""), HttpReply(503, {}, b"")])
def test_a_dead_server_is_passed_over_for_a_while(dead: HttpReply | None, moved: Clock) -> None:
    """Its quick failures do not draw every request: one in two seconds, then in four; once it answers, it is back."""

    async def all_of_them() -> None:
        broken, whole = Server(dead), Server()
        used = pool(broken, whole)
        tried = [await used.attempt(request(seed=seed)) for seed in range(5)]
        assert servers_of(tried) == ["http://gpu0/v1"] + ["http://gpu1/v1"] * 4
        assert [isinstance(answer, Fault) for answer, _ in tried] == [True, False, False, False, False]
        moved.now += 2.1
        whole.gate.clear()  # it is busy with one, so the other is asked again
        busy = asyncio.create_task(used.attempt(request()))
        await asyncio.sleep(0)
        again = asyncio.create_task(used.attempt(request()))
        await asyncio.sleep(0)
        assert (broken.asked, whole.asked) == (2, 5)
        whole.gate.set()
        await asyncio.gather(busy, again)
        moved.now += 2.1  # now it is passed over for four seconds
        whole.gate.clear()
        tasks = [asyncio.create_task(used.attempt(request())) for _ in range(3)]
        await asyncio.sleep(0)
        assert (broken.asked, whole.asked) == (2, 8)
        whole.gate.set()
        await asyncio.gather(*tasks)
        moved.now += 2.0
        broken.reply = OK
        whole.gate.clear()
        tasks = [asyncio.create_task(used.attempt(request())) for _ in range(4)]
        await asyncio.sleep(0.01)
        assert broken.asked == 5
        whole.gate.set()
        await asyncio.gather(*tasks)
        assert servers_of([await used.attempt(request())]) == ["http://gpu0/v1"]

    within(all_of_them())


def test_a_server_that_fails_again_and_again_is_still_asked_once_a_minute(moved: Clock) -> None:
    """The time it is passed over is bounded."""

    async def all_of_them() -> int:
        broken = Server(None)
        used = pool(broken, Server(held=True))
        await used.attempt(request())
        busy = asyncio.create_task(used.attempt(request()))
        await asyncio.sleep(0)
        for _ in range(12):
            moved.now += 61.0
            await used.attempt(request())
        busy.cancel()
        return broken.asked

    assert within(all_of_them()) == 13


def test_no_number_of_failures_is_too_many() -> None:
    """Many workers meet a dead server thousands of times."""

    async def all_of_them() -> None:
        used = pool(Server(None))
        for _ in range(1100):
            await used.attempt(request())

    within(all_of_them())


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_server_that_answers_is_not_dead(status: int) -> None:
    """A refusal or a rate limit says that it is there."""

    async def all_of_them() -> list[str]:
        used = pool(Server(HttpReply(status, {}, b"")), Server())
        return servers_of([await used.attempt(request()) for _ in range(3)])

    assert within(all_of_them()) == ["http://gpu0/v1"] * 3


def test_where_all_are_dead_one_is_asked_all_the_same() -> None:
    """The sender is told of the failure and decides; they take turns."""

    async def all_of_them() -> tuple[list[tuple[Reply | Fault, Attempt]], list[int]]:
        both = Server(None), Server(None)
        used = pool(*both)
        return [await used.attempt(request(seed=seed)) for seed in range(6)], [server.asked for server in both]

    tried, asked = within(all_of_them())
    assert {answer.kind for answer, _ in tried if isinstance(answer, Fault)} == {"network"}
    assert asked == [3, 3]


def test_a_request_that_is_given_up_no_longer_counts_as_busy() -> None:
    """A cancelled one frees its server."""

    async def all_of_them() -> list[int]:
        used = pool(Server(held=True), Server(held=True))
        tasks = [asyncio.create_task(used.attempt(request())) for _ in range(4)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [endpoint.in_flight for endpoint in used.endpoints]

    assert within(all_of_them()) == [0, 0]


def test_closing_closes_all() -> None:
    """Each server's connections, once."""

    async def all_of_them() -> list[int]:
        servers = [Server(), Server(None), Server()]
        await pool(*servers).close()
        return [server.closed for server in servers]

    assert within(all_of_them()) == [1, 1, 1]


def test_each_server_adapts_for_itself() -> None:
    """What one refuses is still sent to the other."""

    async def all_of_them() -> list[list[str]]:
        words = b'{"error": {"message": "seed is not supported", "param": "seed"}}'
        used = pool(Server(HttpReply(400, {}, words)), Server())
        await used.attempt(request())
        return [list(endpoint.adaptations) for endpoint in used.endpoints]

    assert within(all_of_them()) == [["seed"], []]
