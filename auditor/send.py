"""Async fan-out: bounded workers over lazy requests, retries, a clear end when an endpoint is down."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import tenacity
from msgspec import Struct

from auditor.errors import EndpointDown, RequestRefused
from auditor.pacing import Budget, Pace, Slot
from auditor.records import Attempt, Fault, Generation, Reply, Request

Commit = Callable[[Generation], Awaitable[None]]
"""Returns when the generation is safe; only then does its worker take the next request."""
Abandon = Callable[[Generation], None]
"""Told of what was asked and not answered when the run ended: its attempts count."""


class Endpoint(Protocol):
    """What a lane asks."""

    base_url: str

    async def attempt(self, request: Request) -> tuple[Reply | Fault, Attempt]:
        """Ask once."""


class Retry(Struct, frozen=True):
    """How long one generation is tried, and how long an endpoint that does not answer at all is waited for."""

    tries: int = 8
    seconds: float = 600.0
    first_wait: float = 0.5
    longest_wait: float = 60.0
    never_answered: float = 8.0
    """Seconds of faults after which an endpoint that never answered counts as down."""
    gone: float = 60.0
    """Seconds without any HTTP reply after which one that had answered counts as down."""


def free(_: Request) -> float:
    """What a request costs where nothing costs anything."""
    return 0.0


class Lane(Struct, frozen=True):
    """The requests of one model, the endpoint they go to and at what pace."""

    model: str
    endpoint: Endpoint
    requests: Iterator[Request]
    pace: Pace
    answered_before: bool = False
    """Whether the model answered in an earlier part of this run: what it refuses now is then no reason to end it."""
    most: Callable[[Request], float] = free
    """What a request can cost at most, in USD; what it did cost where a reply does not say."""
    key_variable: str = ""
    """Where the key comes from."""
    probed: bool = False
    """Whether preflight's calls were answered: a first round of refusals may then be a few odd items."""


@dataclass(slots=True)
class Meter:
    """What the progress line shows; written by the workers, read by whoever draws it."""

    total: int
    done: int = 0
    answered: int = 0
    missing: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    started: float = field(default_factory=time.monotonic)
    waits: dict[int, tuple[float, str]] = field(default_factory=dict)
    """Worker -> (when it goes on, monotonic seconds; what it waits for)."""

    def count(self, generation: Generation) -> None:
        """Add one finished generation."""
        self.done += 1
        if (cost := generation.cost_usd) is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost
        if generation.reply is None:
            self.missing += 1
        else:
            self.answered += 1
            self.prompt_tokens += generation.reply.prompt_tokens or 0
            self.completion_tokens += generation.reply.completion_tokens or 0


async def send(
    lanes: list[Lane],
    commit: Commit,
    meter: Meter,
    retry: Retry = Retry(),  # noqa: B008
    budget: Budget | None = None,
    abandon: Abandon = lambda _: None,
) -> None:
    """Ask everything, or as much as the budget allows (`budget.over` says what ended it). Raises EndpointDown when a
    lane's endpoint is gone, RequestRefused when every request of a model would be refused; what was committed until
    then is kept."""
    budget = budget or Budget(None, 0.0, None)
    try:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                lane.pace.deadline = budget.deadline
                crew = _Crew(lane, commit, abandon, meter, retry, budget, lane.answered_before, int(lane.pace.limit))
                for _ in range(lane.pace.workers):
                    group.create_task(crew.work())
    except BaseExceptionGroup as failures:
        raise _first(failures) from None


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


@dataclass(slots=True)
class _Crew:
    """The workers of one lane, and what they know together about its endpoint. Times are monotonic seconds."""

    lane: Lane
    commit: Commit
    abandon: Abandon
    meter: Meter
    retry: Retry
    budget: Budget
    answered: bool
    first_round: int
    """How many may be given up while nothing was answered."""
    given_up: int = 0
    lost: int = 0
    """Generations given up since the last HTTP reply."""
    refused: bool = False
    """Whether every other request would meet what one has met: none is started any more."""
    silent_since: float | None = None
    """The first network fault after the last HTTP reply, whatever it said."""
    failing_since: float | None = None
    """The first retryable fault after the last answer."""

    async def work(self) -> None:
        """Ask, commit, judge, until the lane has no more requests or the budget no more room. The budget first: who
        waits for money must not hold a slot that another needs to try again."""
        for request in self.lane.requests:
            most = self.lane.most(request)
            if not await self.budget.take(most):
                return
            try:
                slot = await self._enter()
                if self.refused or self.budget.late:
                    self._leave(slot, None, None)
                    return
                generation = await self._ask(request, slot)
            finally:
                self.budget.release(most)
            await self.commit(generation)
            self.meter.count(generation)
            if generation.fault is not None:
                self._judge(generation.fault, generation.attempts[-1])

    async def _ask(self, request: Request, slot: Slot) -> Generation:
        """One generation, tried until it is answered or given up."""
        began = time.monotonic()
        attempts: list[Attempt] = []
        try:
            answer = await self._attempt(request, attempts, slot)
            if isinstance(answer, Fault) and answer.retryable:
                answer = await self._again(request, attempts, answer, began)
        except asyncio.CancelledError:
            if attempts:
                stopped = Fault("interrupted", "the run was stopped", retryable=True)
                self.abandon(Generation(request, None, stopped, tuple(attempts)))
            raise
        reply, fault = (None, answer) if isinstance(answer, Fault) else (answer, None)
        return Generation(request, reply, fault, tuple(attempts))

    async def _enter(self) -> Slot:
        worker = id(asyncio.current_task())

        def waiting(until: float, what: str) -> None:
            self.meter.waits[worker] = (until, what)

        try:
            return await self.lane.pace.enter(waiting)
        finally:
            self.meter.waits.pop(worker, None)

    async def _attempt(self, request: Request, attempts: list[Attempt], slot: Slot) -> Reply | Fault:
        """Ask once, in a slot that is held already."""
        answer: Reply | Fault | None = None
        attempt: Attempt | None = None
        started = time.time()
        try:
            answer, attempt = await self.lane.endpoint.attempt(request)
        except asyncio.CancelledError:
            attempts.append(Attempt(started, (time.time() - started) * 1000, None, "interrupted", b""))
            raise
        finally:
            self._leave(slot, answer, attempt)
        unknown = isinstance(answer, Reply) and attempt.cost_usd is None
        self.budget.charge(self.lane.most(request) if unknown else attempt.cost_usd)
        attempts.append(attempt)
        self._notice(answer, attempt)
        return answer

    def _leave(self, slot: Slot, answer: Reply | Fault | None, attempt: Attempt | None) -> None:
        """Give the slot back; a rate limit is for every request of the lane."""
        kind, asked, tokens = "", None, None
        if isinstance(answer, Fault):
            kind, asked = answer.kind, answer.retry_after if answer.kind == "rate_limit" else None
        elif answer is not None:
            tokens = (answer.prompt_tokens or 0) + (answer.completion_tokens or 0)
        waits = (attempt.exhausted_for if attempt else None, asked)
        known = [seconds for seconds in waits if seconds is not None and seconds < self.retry.seconds]
        overloaded = kind in ("rate_limit", "overloaded")
        self.lane.pace.leave(slot, overloaded=overloaded, closed_for=max(known, default=None), tokens=tokens)

    def _notice(self, answer: Reply | Fault, attempt: Attempt) -> None:
        """What this says of the endpoint."""
        now = time.monotonic()
        self.refused |= isinstance(answer, Fault) and answer.fatal
        if attempt.http_status is not None:
            self.silent_since, self.lost = None, 0
        elif self.silent_since is None:
            self.silent_since = now
        if isinstance(answer, Reply):
            self.answered = True
        if isinstance(answer, Reply) or not answer.retryable:
            self.failing_since = None
        elif self.failing_since is None:
            self.failing_since = now

    async def _again(self, request: Request, attempts: list[Attempt], first: Fault, began: float) -> Reply | Fault:
        """The tries after the first, which stays free of tenacity's cost: here it is only handed over."""
        worker = id(asyncio.current_task())

        async def once() -> Reply | Fault:
            if self.meter.waits.pop(worker, None) is None:
                return first
            self.meter.retries += 1
            return await self._attempt(request, attempts, await self._enter())

        def fault(state: tenacity.RetryCallState) -> Fault:
            return state.outcome.result() if state.outcome else first

        def wait(state: tenacity.RetryCallState) -> float:
            patience = self._until(fault(state), attempts[-1]) - time.monotonic()
            seconds = _wait(fault(state), state.attempt_number, max(0.0, patience), self.retry)
            self.meter.waits[worker] = (time.monotonic() + seconds, fault(state).kind)
            return seconds

        def stop(state: tenacity.RetryCallState) -> bool:
            now = time.monotonic()
            spent = now - began + state.upcoming_sleep >= self.retry.seconds
            if not self.budget.covers_another():
                return True
            return spent or state.attempt_number >= self.retry.tries or now >= self._until(fault(state), attempts[-1])

        tries = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_result(lambda answer: isinstance(answer, Fault) and answer.retryable),
            wait=wait,
            stop=stop,
            retry_error_callback=fault,
        )
        try:
            answer: Reply | Fault = await tries(once)
            return answer
        finally:
            self.meter.waits.pop(worker, None)

    def _until(self, fault: Fault, last: Attempt) -> float:
        """When the endpoint counts as down unless something better comes. One that asks to be waited for, or has
        answered before, is given the time of a whole generation; one that never answered is told of soon."""
        retry, known = self.retry, self.answered or self.lane.probed
        if last.http_status is None:
            since, patience = self.silent_since, retry.gone if known else retry.never_answered
        else:
            asked = fault.retry_after is not None or fault.kind == "rate_limit"
            since, patience = self.failing_since, retry.seconds if known or asked else retry.never_answered
        return math.inf if since is None else since + patience

    def _judge(self, fault: Fault, last: Attempt) -> None:
        """Raise where what was given up says that the others would fare no better: a fault that all would meet, an
        endpoint that is down or asks for longer than anything is tried, a first round in which nothing was answered."""
        where = f"{self.lane.model} at {self.lane.endpoint.base_url}"
        if fault.fatal:
            raise RequestRefused(f"{where}: {fault.message}", _advice(fault, self.lane.key_variable))
        if self.budget.over is not None:  # it was not tried as often as it could have been
            return
        if fault.retry_after is not None and fault.retry_after >= self.retry.seconds:
            raise EndpointDown(f"{where} asks to wait for {fault.retry_after:,.0f} s: {fault.message}", _RESUME)
        self.lost += last.http_status is None
        # One request that hangs says nothing of an endpoint that answers others; the next one does.
        odd = fault.kind == "timeout" and self.lost == 1 and (self.answered or self.lane.probed)
        if fault.retryable and not odd and time.monotonic() >= self._until(fault, last):
            raise _down(where, fault, last)
        if self.answered:
            return
        self.given_up += 1
        if self.given_up >= (max(_ODD_ITEMS, self.first_round) if self.lane.probed else self.first_round):
            message = f"{where} answered nothing: {fault.message}"
            raise (
                EndpointDown(message, _RESUME)
                if fault.retryable
                else RequestRefused(message, _advice(fault, self.lane.key_variable))
            )


def _wait(fault: Fault, tried: int, patience: float, retry: Retry) -> float:
    """Exponential with jitter (none of them wakes together), within the patience; never before the time asked for. What
    was refused for a parameter is asked at once without it."""
    if fault.kind == "adapted":
        return 0.0
    longest = min(retry.longest_wait, retry.first_wait * 2.0 ** (tried - 1))
    own = min(random.uniform(longest / 2, longest), patience)
    return own if fault.retry_after is None else max(own, fault.retry_after + random.uniform(0, 0.25))


_ODD_ITEMS = 64
"""Refusals in a row at the start after which no item counts as odd."""
_RESUME = "nothing is lost: run the same command again when it is back"


def _down(where: str, fault: Fault, last: Attempt) -> EndpointDown:
    if last.http_status is None:
        hint = f"is the server running, and is the address right? {_RESUME}"
        return EndpointDown(f"nothing answers for {where}: {fault.message}", hint)
    return EndpointDown(f"{where} answers with failures only: {fault.message}", _RESUME)


def _advice(fault: Fault, key_variable: str) -> str:
    match fault.kind:
        case "unauthorized" | "forbidden":
            return f"the key was refused: check {key_variable or 'the variable that holds it'}"
        case "payment" | "quota":
            return "the account has no credit left; run the same command again when it has"
        case "not_found":
            return "check the model's name, and that the base URL ends where /chat/completions begins (often /v1)"
        case "bad_request":
            return "the endpoint does not take these parameters"
        case "certificate":
            return "SSL_CERT_FILE=<file> names the certificates to trust, for example of your company's proxy"
        case "redirect":
            return "redirects are not followed, since they would carry the key elsewhere: name the address itself"
        case _:
            return ""
