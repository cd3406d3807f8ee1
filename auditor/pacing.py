"""How many requests of a lane may be in flight, when the next may start, and what may still be spent."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from msgspec import Struct

FIRST = 16
"""Requests in flight at the start, where nobody says how many."""
CEILING = 256
_GROW, _CUT = 1.25, 0.8
_PAYS = 1.1
"""A growth by a quarter must bring this much more throughput to be kept."""
_HOLD, _LONGEST_HOLD = 8, 128
"""Windows after a growth that did not pay before the next one is tried; twice as many each time."""


class Slot(Struct, frozen=True):
    """A request's place among those in flight: since when, and how many tokens were booked for it."""

    entered: float
    booked: float = 0.0


class Pace:
    """The slots of one lane. `adaptive`: grows by a quarter while throughput grows with it, shrinks by a fifth when
    the endpoint is overloaded, and after that grows by single slots. Times are monotonic seconds."""

    def __init__(self, concurrency: int | None, rpm: int | None = None, tpm: int | None = None) -> None:
        """`concurrency` None is adaptive."""
        self.adaptive = concurrency is None
        self.limit = float(concurrency or FIRST)
        self.in_flight = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._requests = None if rpm is None else _Rate(rpm / 60)
        self._tokens = None if tpm is None else _Rate(tpm / 60)
        self._mean_tokens = 0.0
        self._closed_until = 0.0
        self.deadline: float | None = None
        """When nobody waits any longer: who is let in after it has to look at the time."""
        self._last_cut = 0.0
        self._cautious = False
        self._window = _Window()
        self._best = 0.0
        self._hold = 0
        self._next_hold = _HOLD

    @property
    def workers(self) -> int:
        """How many workers can be of use."""
        return CEILING if self.adaptive else int(self.limit)

    async def enter(self, waiting: Callable[[float, str], None] | None = None) -> Slot:
        """Take a slot when there is one and the endpoint may be asked. `waiting` is told until when (monotonic
        seconds) and for what the start is put off."""
        if self.in_flight < int(self.limit):
            self.in_flight += 1
        else:
            await self._turn()
        try:
            booked = await self._until_open(waiting)
        except BaseException:
            self._free()
            raise
        return Slot(time.monotonic(), booked)

    async def _turn(self) -> None:
        """Wait for a slot; who gives one back hands it over."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._free()
            raise

    async def _until_open(self, waiting: Callable[[float, str], None] | None) -> float:
        """Returns the tokens that were booked."""
        while (until := self._closed_until) > time.monotonic():
            if waiting:
                waiting(until, "rate_limit")
            if not await self._sleep(until):
                return 0.0
        booked = self._mean_tokens
        for rate, amount, name in ((self._requests, 1.0, "--rpm"), (self._tokens, booked, "--tpm")):
            if rate is None:
                continue
            start = rate.book(amount, time.monotonic())
            if start > time.monotonic():
                if waiting:
                    waiting(start, name)
                if not await self._sleep(start):
                    break
        return booked

    async def _sleep(self, until: float) -> bool:
        """Whether it was until then, and not until the deadline."""
        end = until if self.deadline is None else min(until, self.deadline)
        if (delay := end - time.monotonic()) > 0:
            await asyncio.sleep(delay)
        return end == until

    def leave(self, slot: Slot, *, overloaded: bool, closed_for: float | None, tokens: int | None) -> None:
        """Give the slot back, with what became of the request. `closed_for`: seconds until the endpoint takes others;
        `tokens`: what it used, None where it was not answered."""
        now = time.monotonic()
        if closed_for:
            self._closed_until = max(self._closed_until, now + closed_for)
        if tokens is not None:
            if self._tokens is not None:
                self._tokens.settle(tokens - slot.booked)
            self._mean_tokens += 0.05 * (tokens - self._mean_tokens) if self._mean_tokens else tokens
        if self.adaptive:
            if overloaded:
                self._cut(slot.entered, now)
            elif tokens is not None:
                self._answered(now)
        self._free()

    def _free(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiters and self.in_flight < int(self.limit):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self.in_flight += 1
                waiter.set_result(None)

    def _cut(self, entered: float, now: float) -> None:
        """Once per round trip: what started before the last cut says nothing of the new limit."""
        if entered >= self._last_cut:
            self.limit = max(1.0, self.limit * _CUT)
            self._last_cut, self._cautious = now, True
            self._window = _Window(now)

    def _answered(self, now: float) -> None:
        """Judge once per window: as many answers as there are slots, all of which were in use."""
        if self.in_flight < int(self.limit):
            self._window = _Window(now)
            return
        self._window.answers += 1
        if self._window.answers < max(self.limit, FIRST):
            return
        rate = self._window.rate(now)
        self._window = _Window(now)
        if self._cautious:
            self.limit = min(CEILING, self.limit + 1)
        elif self._hold > 0:
            self._hold -= 1
            self._best += 0.3 * (rate - self._best) if self._best else rate
            if self._hold == 0:
                self.limit = min(CEILING, self.limit * _GROW)
        elif rate >= self._best * _PAYS:
            self._best = rate
            self.limit = min(CEILING, self.limit * _GROW)
        else:
            self.limit = max(float(FIRST), self.limit / _GROW)
            self._hold, self._best = self._next_hold, 0.0
            self._next_hold = min(_LONGEST_HOLD, 2 * self._next_hold)


class _Window:
    """Answers since some moment."""

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self.answers = 0

    def rate(self, now: float) -> float:
        return self.answers / max(now - self.start, 1e-9)


class _Rate:
    """So much a minute, with a burst of a second's worth."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._next = 0.0

    def book(self, amount: float, now: float) -> float:
        """When so much may start; later ones start after it."""
        self._next = max(self._next, now - 1.0)
        start, self._next = max(now, self._next), self._next + amount / self._per_second
        return start

    def settle(self, more: float) -> None:
        """It was so much more, or less, than booked."""
        self._next += more / self._per_second


class Budget:
    """Money and time that a run may use. A request starts only where what it can cost at most still fits."""

    def __init__(self, max_cost: float | None, spent: float, seconds: float | None) -> None:
        """`spent` is what earlier parts of the run cost, in USD."""
        self.spent = spent
        self.max_cost = max_cost
        self.over: str | None = None
        """What ended the run, once something has."""
        self._held = 0.0
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self._changed = asyncio.Event()

    @property
    def late(self) -> bool:
        """Whether the time is up; `over` says so then."""
        up = self.deadline is not None and time.monotonic() >= self.deadline
        if up and self.over is None:
            self.over = "the time is up"
        return up

    async def take(self, most: float) -> bool:
        """Whether a request that costs at most this may start. Waits while the ones in flight hold what it needs."""
        while True:
            if self.late or self.over is not None:
                return False
            if self.max_cost is None or self.spent + self._held + most <= self.max_cost:
                self._held += most
                return True
            if self._held <= 1e-12:
                self.over = f"the next request could cost ${most:.4f}"
                return False
            self._changed.clear()
            await self._changed.wait()

    def charge(self, cost: float | None) -> None:
        """One attempt of a request that `take` let through has cost this; None: nobody says."""
        self.spent += cost or 0.0

    def covers_another(self) -> bool:
        """Whether a request may be tried again, after attempts that were charged and gave no answer."""
        if self.max_cost is not None and self.spent + self._held > self.max_cost + 1e-12:
            self.over = "attempts that failed were charged"
            return False
        return not self.late

    def release(self, most: float) -> None:
        """A request that `take` let through has ended."""
        self._held = max(0.0, self._held - most)
        self._changed.set()
