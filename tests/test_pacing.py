"""Pace and budget: slots, limits a minute, what is learned from throughput and refusals, and what may be spent."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from clock import Clock, leaping
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor import pacing
from auditor.pacing import CEILING, FIRST, Budget, Pace


@pytest.fixture
def clock() -> Iterator[Clock]:
    with leaping(pacing) as clock:
        yield clock


class Server:
    """`busy` served at once, the rest in a queue; beyond `refuses` in flight a request is refused. A second each."""

    def __init__(self, clock: Clock, busy: int, refuses: int = 10**9) -> None:
        self._clock = clock
        self._slots = asyncio.Semaphore(busy)
        self._refuses = refuses
        self._random = random.Random(1)
        self.in_flight = self.most_in_flight = self.answered = self.refused = 0

    async def ask(self) -> bool:
        """Whether it was answered."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.in_flight > self._refuses:
                self.refused += 1
                await asyncio.sleep(0.05)
                return False
            async with self._slots:
                await asyncio.sleep(self._random.uniform(0.8, 1.2))
            self.answered += 1
            return True
        finally:
            self.in_flight -= 1


def served(clock: Clock, pace: Pace, server: Server, seconds: float, each: Callable[[], None] = lambda: None) -> float:
    """Answers a second over so many seconds of a lane that never ends. `each` is called at every answer."""
    began = clock.now

    async def work() -> None:
        while True:
            entered = await pace.enter()
            ok = await server.ask()
            pace.leave(entered, overloaded=not ok, closed_for=None, tokens=10 if ok else None)
            each()
            if not ok:
                await asyncio.sleep(0.5)

    async def run() -> None:
        tasks = [asyncio.create_task(work()) for _ in range(pace.workers)]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
    return server.answered / (clock.now - began)


# Slots ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_a_fixed_pace_keeps_its_limit(clock: Clock, limit: int) -> None:
    """All slots are used and never one more, whatever the throughput and whatever is refused."""
    server = Server(clock, 40, refuses=30)
    pace = Pace(limit)
    served(clock, pace, server, 30)
    assert (server.most_in_flight, pace.limit, pace.workers, pace.adaptive) == (limit, limit, limit, False)


visits = st.lists(
    st.tuples(
        st.integers(0, 6),  # when it comes
        st.integers(0, 4),  # how long it stays
        st.one_of(st.none(), st.tuples(st.integers(0, 8), st.integers(0, 4))),  # when and how late it is cancelled
    ),
    max_size=14,
)


@given(visits, st.integers(1, 4), st.one_of(st.none(), st.integers(30, 90)))
@settings(max_examples=150, deadline=None)
def test_nobody_is_forgotten(
    schedule: list[tuple[int, int, tuple[int, int] | None]], limit: int, rpm: int | None
) -> None:
    """Whoever leaves or is cancelled, before, in or after its turn: every slot comes back, everybody else gets one."""
    with leaping(pacing):
        pace, had, most = Pace(limit, rpm), set[int](), [0]

        async def visit(number: int, comes: int, stays: int) -> None:
            await asyncio.sleep(comes)
            entered = await pace.enter()
            had.add(number)
            most[0] = max(most[0], pace.in_flight)
            try:
                await asyncio.sleep(stays)
            finally:
                pace.leave(entered, overloaded=False, closed_for=None, tokens=None)

        cancelling: list[asyncio.Task[None]] = []

        async def cancel(task: asyncio.Task[None], when: int, steps: int) -> None:
            await asyncio.sleep(when)
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()

        async def run() -> None:
            tasks = [asyncio.create_task(visit(i, comes, stays)) for i, (comes, stays, _) in enumerate(schedule)]
            for task, (_, _, cancelled) in zip(tasks, schedule, strict=True):
                if cancelled is not None:
                    cancelling.append(asyncio.create_task(cancel(task, *cancelled)))
            await asyncio.gather(*tasks, *cancelling, return_exceptions=True)

        asyncio.run(run())
    assert pace.in_flight == 0
    assert most[0] <= limit
    assert {i for i, (_, _, cancelled) in enumerate(schedule) if cancelled is None} <= had


def test_a_turn_that_comes_with_a_cancellation_goes_to_the_next(clock: Clock) -> None:
    """Who is cancelled when a slot was just handed over hands it on."""
    pace = Pace(1)

    async def run() -> None:
        entered = await pace.enter()
        first, second = asyncio.create_task(pace.enter()), asyncio.create_task(pace.enter())
        await asyncio.sleep(1)
        pace.leave(entered, overloaded=False, closed_for=None, tokens=None)
        first.cancel()
        await second
        assert first.cancelled()

    asyncio.run(run())
    assert pace.in_flight == 1


def test_turns_are_in_order(clock: Clock) -> None:
    """Who waits longest goes next."""
    pace, order = Pace(1), list[int]()

    async def visit(number: int) -> None:
        entered = await pace.enter()
        order.append(number)
        await asyncio.sleep(1)
        pace.leave(entered, overloaded=False, closed_for=None, tokens=None)

    async def run() -> None:
        await asyncio.gather(*(visit(i) for i in range(6)))

    asyncio.run(run())
    assert order == list(range(6))


# Adapting ------------------------------------------------------------------------------------------------------


def test_a_refusal_cuts_by_a_fifth_once_a_round_trip(clock: Clock) -> None:
    """Sixteen refusals of requests that started together are one cut; one that started later is another."""
    pace = Pace(None)

    async def run() -> None:
        first = [await pace.enter() for _ in range(16)]
        clock.now += 1
        for entered in first:
            pace.leave(entered, overloaded=True, closed_for=None, tokens=None)
        assert pace.limit == pytest.approx(12.8)
        clock.now += 1
        later = await pace.enter()
        clock.now += 1
        pace.leave(later, overloaded=True, closed_for=None, tokens=None)
        assert pace.limit == pytest.approx(10.24)

    asyncio.run(run())


def test_refusals_leave_one_slot(clock: Clock) -> None:
    """However often it is refused, one request may be in flight."""
    pace = Pace(None)

    async def run() -> None:
        for _ in range(100):
            entered = await pace.enter()
            clock.now += 1
            pace.leave(entered, overloaded=True, closed_for=None, tokens=None)

    asyncio.run(run())
    assert (pace.limit, pace.in_flight) == (1.0, 0)


def test_it_grows_while_that_pays(clock: Clock) -> None:
    """A server that serves whatever comes is asked by several times as many as at the start within a minute."""
    pace, limits = Pace(None), list[float]()
    assert (pace.adaptive, pace.limit, pace.workers) == (True, FIRST, CEILING)
    served(clock, pace, Server(clock, 10**6), 60, lambda: limits.append(pace.limit))
    assert max(limits) >= 8 * FIRST


AFTER_THE_HOLD = "after the hold it shrinks again, whatever the throughput, instead of trying to grow"


def test_it_stays_where_that_paid(clock: Clock) -> None:
    """A server that serves whatever comes is asked as much as anybody is, and that does not end by itself."""
    pace, limits = Pace(None), list[float]()
    served(clock, pace, Server(clock, 10**6), 300, lambda: limits.append(pace.limit))
    assert min(limits[len(limits) // 2 :]) >= 0.6 * CEILING


def test_it_stops_where_the_server_is_saturated(clock: Clock) -> None:
    """A server that serves 40 at once: at least 80 % of what it can, in flight not much more than it serves."""
    server, pace, limits = Server(clock, 40), Pace(None), list[float]()
    rate = served(clock, pace, server, 300, lambda: limits.append(pace.limit))
    assert rate >= 0.8 * 40
    assert 32 <= statistics.median(limits[len(limits) // 3 :]) <= 80


def test_it_does_not_grow_far_beyond_saturation(clock: Clock) -> None:
    """A server that serves 40 at once never has a hundred in flight."""
    server = Server(clock, 40)
    served(clock, Pace(None), server, 300)
    assert 40 < server.most_in_flight < 100


def test_a_server_that_refuses_beyond_fifty_is_used_nearly_as_well_as_by_fifty(clock: Clock) -> None:
    """At least 80 % of the throughput of `--concurrency 50`, from the first second on."""
    fixed = served(clock, Pace(50), Server(clock, 10**6, refuses=50), 200)
    server = Server(clock, 10**6, refuses=50)
    adaptive = served(clock, Pace(None), server, 200)
    assert adaptive >= 0.8 * fixed
    assert server.refused < 0.05 * server.answered


# A minute's worth ----------------------------------------------------------------------------------------------


def starts(pace: Pace, count: int, clock: Clock, lasts: Callable[[int], float], tokens: int = 0) -> list[float]:
    """When each of so many requests started, all of which are there from the beginning."""
    found: list[float] = []

    async def visit(number: int) -> None:
        entered = await pace.enter()
        found.append(entered.entered)
        await asyncio.sleep(lasts(number))
        pace.leave(entered, overloaded=False, closed_for=None, tokens=tokens)

    async def run() -> None:
        await asyncio.gather(*(visit(i) for i in range(count)))

    asyncio.run(run())
    return found


@given(st.integers(1, 2000), st.integers(1, 60), st.lists(st.floats(0, 5), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_requests_a_minute_are_kept(rpm: int, concurrency: int, lasts: list[float]) -> None:
    """In any window of t seconds no more than t seconds' worth and the burst of one second start, and one request."""
    with leaping(pacing) as clock:
        found = starts(Pace(concurrency, rpm), 60, clock, lambda i: lasts[i % len(lasts)])
    for first in range(len(found)):
        for last in range(first, len(found)):
            window = found[last] - found[first]
            assert last - first + 1 <= rpm / 60 * (window + 1) + 1 + 1e-6


def test_requests_a_minute_are_used(clock: Clock) -> None:
    """60 a minute: two at once, the burst and the first, then one a second."""
    found = starts(Pace(10, 60), 10, clock, lambda _: 0.0)
    assert [at - found[0] for at in found] == pytest.approx([0, 0, 1, 2, 3, 4, 5, 6, 7, 8])


def test_tokens_a_minute_are_kept(clock: Clock) -> None:
    """600 tokens a minute, 100 a request: what the first ones use is learned, then one starts in ten seconds."""
    found = starts(Pace(4, tpm=600), 40, clock, lambda _: 1.0, tokens=100)
    assert all(100 * (j - i) <= 10 * (found[j] - found[i] + 1) + 400 for i in range(40) for j in range(i, 40))
    assert [later - at for at, later in pairwise(found[-10:])] == pytest.approx([10.0] * 9)


def test_what_was_not_booked_is_paid_back(clock: Clock) -> None:
    """Four requests of 100 tokens that started before anything was known: at 10 a second the fifth waits for them."""
    found = starts(Pace(4, tpm=600), 8, clock, lambda _: 1.0, tokens=100)
    assert found[4] - found[0] >= 38


def test_a_closed_endpoint_is_asked_by_nobody(clock: Clock) -> None:
    """Whoever comes or waits starts after the longest time asked for, and is told until when and why."""
    pace, told, found = Pace(3), list[tuple[float, str]](), list[float]()

    async def visit() -> None:
        entered = await pace.enter(lambda until, why: told.append((until, why)))
        found.append(entered.entered)
        pace.leave(entered, overloaded=False, closed_for=None, tokens=None)

    async def run() -> None:
        pace.leave(await pace.enter(), overloaded=True, closed_for=30.0, tokens=None)
        await asyncio.gather(*(visit() for _ in range(9)))

    before = clock.now
    asyncio.run(run())
    assert all(30.0 <= at - before < 30.1 for at in found)
    assert len(found) == 9
    assert set(told) == {(before + 30.0, "rate_limit")}


def test_a_longer_closing_while_others_wait_counts(clock: Clock) -> None:
    """Who waits for 10 s waits on when somebody is told 40, and a shorter time takes nothing back."""
    pace = Pace(3)

    async def run() -> float:
        first, second, third = [await pace.enter() for _ in range(3)]
        pace.leave(first, overloaded=True, closed_for=10.0, tokens=None)
        waiting = asyncio.create_task(pace.enter())
        await asyncio.sleep(5)
        pace.leave(second, overloaded=True, closed_for=35.0, tokens=None)
        pace.leave(third, overloaded=True, closed_for=1.0, tokens=None)
        return (await waiting).entered - first.entered

    assert asyncio.run(run()) == pytest.approx(40)


# Budget --------------------------------------------------------------------------------------------------------


def test_a_request_waits_while_others_hold_what_it_needs(clock: Clock) -> None:
    """Two of $0.40 fit into $1; the third starts when one of them has cost less."""
    budget = Budget(1.0, 0.0, None)

    async def run() -> list[object]:
        seen: list[object] = [await budget.take(0.4), await budget.take(0.4)]
        third = asyncio.create_task(budget.take(0.4))
        await asyncio.sleep(1)
        seen.append(third.done())
        budget.charge(0.1)
        budget.release(0.4)
        seen.append(await third)
        return seen

    assert asyncio.run(run()) == [True, True, False, True]
    assert (budget.spent, budget.over) == (0.1, None)


def test_the_end_of_the_money_is_said(clock: Clock) -> None:
    """When nothing is in flight and the next does not fit, it is over for everybody, with what it could cost."""
    budget = Budget(1.0, 0.7, None)

    async def run() -> list[bool]:
        first = await budget.take(0.3)
        waiting = [asyncio.create_task(budget.take(0.2)) for _ in range(3)]
        await asyncio.sleep(1)
        budget.charge(0.3)
        budget.release(0.3)
        return [first, *await asyncio.gather(*waiting), await budget.take(0.0)]

    assert asyncio.run(run()) == [True, False, False, False, False]
    assert budget.over == "the next request could cost $0.2000"
    assert budget.spent == pytest.approx(1.0)


def test_without_a_limit_money_is_counted_and_never_waited_for(clock: Clock) -> None:
    """A cost that nobody says is nothing."""
    budget = Budget(None, 1.0, None)

    async def run() -> bool:
        took = [await budget.take(1e9) for _ in range(5)]
        budget.charge(None)
        budget.release(1e9)
        budget.charge(2.5)
        budget.release(1e9)
        return all(took)

    assert asyncio.run(run())
    assert (budget.spent, budget.over) == (3.5, None)


def test_the_time_ends(clock: Clock) -> None:
    """Before the deadline everything starts, from it on nothing does."""
    budget = Budget(None, 0.0, 60.0)

    async def run() -> list[bool]:
        seen = [await budget.take(0.0)]
        await asyncio.sleep(59)
        seen.append(await budget.take(0.0))
        await asyncio.sleep(1.5)
        return [*seen, await budget.take(0.0)]

    assert asyncio.run(run()) == [True, True, False]
    assert budget.over == "the time is up"


purchases = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 40), st.floats(0, 1)), max_size=14)


@given(purchases, st.integers(1, 100), st.integers(0, 100))
@settings(max_examples=150, deadline=None)
def test_what_is_spent_and_held_never_exceeds_the_most(
    schedule: list[tuple[int, int, int, float]], most: int, spent: int
) -> None:
    """In whatever order requests of whatever cost come and end: the money holds, and everybody is told yes or no."""
    with leaping(pacing):
        budget, held, told = Budget(float(most), float(min(spent, most)), None), [0.0], list[bool]()

        async def buy(comes: int, lasts: int, cost: int, share: float) -> None:
            await asyncio.sleep(comes)
            took = await budget.take(float(cost))
            told.append(took)
            if not took:
                return
            held[0] += cost
            assert budget.spent + held[0] <= most + 1e-9
            await asyncio.sleep(lasts)
            held[0] -= cost
            budget.charge(cost * share)
            budget.release(float(cost))
            assert budget.spent + held[0] <= most + 1e-9

        async def run() -> None:
            await asyncio.gather(*(buy(*one) for one in schedule))

        asyncio.run(run())
    assert len(told) == len(schedule)
    assert (budget.over is None) == all(told)
