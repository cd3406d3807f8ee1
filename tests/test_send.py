"""Sending: everything is asked once, retried within bounds, committed before the next, and ended clearly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from clock import Clock, leaping
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Answer, Body, Loopback

from auditor import pacing
from auditor import send as send_module
from auditor.endpoints import Endpoint as RealEndpoint
from auditor.endpoints import Place
from auditor.endpoints.network import CONNECT_TIMEOUT
from auditor.endpoints.transport import TRANSPORTS, AiohttpTransport
from auditor.errors import ConflictError, EndpointDown, EndpointError, RequestRefused
from auditor.pacing import Budget, Pace
from auditor.records import Attempt, Fault, Generation, Message, Reply, Request
from auditor.send import Lane, Meter, Retry, send

BEGIN = Clock().now
QUICK = Retry(first_wait=0.002, longest_wait=0.01, never_answered=0.3, gone=0.3)
ANSWER = Reply("B", "stop", prompt_tokens=10, completion_tokens=2)
NETWORK = Fault("network", "refused", retryable=True)
TIMEOUT = Fault("timeout", "no complete reply", retryable=True)
BUSY = Fault("rate_limit", "HTTP 429: slow down", retryable=True)
BROKEN = Fault("server_error", "HTTP 500: boom", retryable=True)
TOO_LONG = Fault("bad_request", "HTTP 400: too long", retryable=False)
NO_KEY = Fault("unauthorized", "HTTP 401: no key", retryable=False, fatal=True)


def asking(seconds: float) -> Fault:
    return Fault("rate_limit", "HTTP 429: slow down", retryable=True, retry_after=seconds)


def request(number: int) -> Request:
    message = (Message("user", f"question {number}"),)
    return Request("m", "t", str(number), "plain", "none", number, "d", "p", message, 24, 0.7, 1.0)


def requests(count: int) -> Iterator[Request]:
    return map(request, range(count))


class Scripted:
    """An endpoint that says what `answer(item, try)` says, after so many seconds."""

    base_url = "http://scripted/v1"

    def __init__(
        self,
        answer: Callable[[int, int], Reply | Fault],
        seconds: float = 0.0,
        cost: float | None = None,
        exhausted_for: float | None = None,
    ) -> None:
        self._answer = answer
        self._seconds = seconds
        self._cost = cost
        self._exhausted_for = exhausted_for
        self.asked: Counter[int] = Counter()

    async def attempt(self, request: Request) -> tuple[Reply | Fault, Attempt]:
        item = int(request.item)
        self.asked[item] += 1
        answer = self._answer(item, self.asked[item])
        await asyncio.sleep(self._seconds)
        kind = answer.kind if isinstance(answer, Fault) else None
        status = None if answer in (NETWORK, TIMEOUT) else 200
        exhausted = self._exhausted_for
        return answer, Attempt(0.0, 1.0, status, kind, b"", cost_usd=self._cost, exhausted_for=exhausted)


class Kept(list[Generation]):
    """Commits into memory."""

    async def commit(self, generation: Generation) -> None:
        await asyncio.sleep(0)
        self.append(generation)

    @property
    def missing(self) -> list[Generation]:
        return [one for one in self if one.status == "missing"]


def sent(
    answer: Callable[[int, int], Reply | Fault],
    count: int,
    *,
    workers: int = 1,
    retry: Retry = QUICK,
    seconds: float = 0.0,
    **lane: Any,
) -> Kept:
    """What was committed. Where sending raises, `kept` on the error holds it."""
    kept = Kept()
    lanes = [Lane("m", Scripted(answer, seconds), requests(count), Pace(workers), **lane)]
    try:
        asyncio.run(send(lanes, kept.commit, Meter(count), retry))
    except EndpointError as error:
        error.kept = kept  # type: ignore[attr-defined]
        raise
    return kept


def ends_with(kind: type[EndpointError], *arguments: Any, **options: Any) -> tuple[EndpointError, Kept]:
    """The error that sending ends with, and what was committed before."""
    with pytest.raises(kind) as caught:
        sent(*arguments, **options)
    return caught.value, caught.value.kept  # type: ignore[attr-defined]


@pytest.fixture
def clock() -> Iterator[Clock]:
    """A world where waiting takes no time."""
    with leaping(send_module, pacing) as clock:
        yield clock


# Everything is asked -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", list(TRANSPORTS))
def test_everything_is_answered_once(transport: str) -> None:
    """Each request is asked once, its own answer committed once, by no more workers at a time than allowed."""
    kept, meter = Kept(), Meter(60)
    with Loopback(lambda body: Answer(f"re {body['messages'][0]['content']}"), latency=0.005) as server:

        async def run() -> None:
            endpoint = RealEndpoint(Place("compat", "m", server.url), TRANSPORTS[transport]())
            await send([Lane("m", endpoint, requests(60), Pace(7))], kept.commit, meter)
            await endpoint.close()

        asyncio.run(run())
        assert sorted(body["seed"] for body in server.requests) == list(range(60))
        assert 2 <= server.most_in_flight <= 7
    assert Counter(one.request.item for one in kept) == Counter(str(i) for i in range(60))
    assert all(one.reply and one.reply.text == f"re question {one.request.item}" for one in kept)
    assert all(len(one.attempts) == 1 and b"max_tokens" in one.sent for one in kept)
    assert (meter.done, meter.answered, meter.missing, meter.retries) == (60, 60, 0, 0)


def test_two_lanes_do_not_share_requests() -> None:
    """Each model gets its own requests, each with its own workers."""
    kept = Kept()
    first, second = Scripted(lambda *_: ANSWER), Scripted(lambda *_: TOO_LONG)
    lanes = [Lane("a", first, requests(5), Pace(3)), Lane("b", second, requests(2), Pace(3))]
    asyncio.run(send(lanes, kept.commit, Meter(7), QUICK))
    assert (first.asked, second.asked) == (Counter(range(5)), Counter(range(2)))
    assert (len(kept), len(kept.missing)) == (7, 2)


def test_no_requests_is_nothing_to_do() -> None:
    """An empty lane and no lane end at once."""
    assert sent(lambda *_: ANSWER, 0, workers=3) == []
    asyncio.run(send([], Kept().commit, Meter(0)))


def test_requests_are_taken_lazily() -> None:
    """The plan is never ahead of what is committed by more than the workers."""
    ahead: list[int] = []
    kept = Kept()

    def pulled() -> Iterator[Request]:
        for number, one in enumerate(requests(40), 1):
            ahead.append(number - len(kept))
            yield one

    lane = Lane("m", Scripted(lambda *_: ANSWER), pulled(), Pace(4))
    asyncio.run(send([lane], kept.commit, Meter(40), QUICK))
    assert len(kept) == 40
    assert max(ahead) == 4


def test_a_worker_waits_for_its_commit() -> None:
    """While the journal is busy nobody asks for more."""
    endpoint = Scripted(lambda *_: ANSWER)

    async def run() -> tuple[int, int]:
        free = asyncio.Event()

        async def commit(_: Generation) -> None:
            await free.wait()

        sending = asyncio.create_task(send([Lane("m", endpoint, requests(20), Pace(3))], commit, Meter(20), QUICK))
        await asyncio.sleep(0.05)
        before = endpoint.asked.total()
        free.set()
        await sending
        return before, endpoint.asked.total()

    assert asyncio.run(run()) == (3, 20)


def test_a_failing_commit_ends_the_run_with_its_error() -> None:
    """A journal that cannot be written to stops the spending."""
    endpoint = Scripted(lambda *_: ANSWER)
    failure = ConflictError("disk full")

    async def commit(generation: Generation) -> None:
        if generation.request.item == "5":
            raise failure

    with pytest.raises(ConflictError) as caught:
        asyncio.run(send([Lane("m", endpoint, requests(100), Pace(3))], commit, Meter(100), QUICK))
    assert caught.value is failure
    assert endpoint.asked.total() <= 12


def test_a_failing_plan_ends_the_run_with_its_error() -> None:
    """So does an iterator that raises."""

    def plan() -> Iterator[Request]:
        yield request(0)
        raise ConflictError("its prompt changed")

    with pytest.raises(ConflictError, match="its prompt changed"):
        asyncio.run(send([Lane("m", Scripted(lambda *_: ANSWER), plan(), Pace(3))], Kept().commit, Meter(9), QUICK))


def test_cancellation_leaves_no_task_and_keeps_what_was_committed() -> None:
    """Ctrl-C cancels the main task: every worker ends, waiting or not, and nothing is committed afterwards."""
    kept, meter, started = Kept(), Meter(1000), asyncio.Event()
    endpoint = Scripted(lambda item, _: BUSY if item % 10 == 9 else ANSWER, seconds=0.001)
    patient = Retry(first_wait=5)

    async def commit(generation: Generation) -> None:
        await kept.commit(generation)
        if len(kept) == 15:
            started.set()

    async def run() -> int:
        sending = asyncio.create_task(send([Lane("m", endpoint, requests(1000), Pace(4))], commit, meter, patient))
        await started.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        count = len(kept)
        await asyncio.sleep(0.02)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert len(kept) == count
        return count

    count = asyncio.run(run())
    assert 15 <= count < 1000
    assert len({one.request.item for one in kept}) == count
    assert endpoint.asked.total() <= count + 4
    assert meter.waits == {}


# Tries ---------------------------------------------------------------------------------------------------------


def test_a_fault_is_tried_again_until_it_is_answered() -> None:
    """Every try is in the record, in order, and the meter counts the retries."""
    script: list[Fault | Reply] = [NETWORK, BROKEN, BUSY, ANSWER]
    kept, meter = Kept(), Meter(1)
    lane = Lane("m", Scripted(lambda _, tried: script[tried - 1]), requests(1), Pace(1))
    asyncio.run(send([lane], kept.commit, meter, QUICK))
    assert kept[0].reply == ANSWER
    assert kept[0].fault is None
    assert [one.fault for one in kept[0].attempts] == ["network", "server_error", "rate_limit", None]
    assert (meter.retries, meter.answered, meter.missing) == (3, 1, 0)
    assert (meter.prompt_tokens, meter.completion_tokens) == (10, 2)


@pytest.mark.parametrize("tries", [1, 3])
def test_after_so_many_tries_a_generation_is_missing(tries: int) -> None:
    """It keeps its last fault and all its attempts, and the run goes on."""
    retry = Retry(tries=tries, first_wait=0.001)
    kept = sent(lambda item, tried: BROKEN if item == 1 else ANSWER, 3, retry=retry)
    assert [one.status for one in kept] == ["answered", "missing", "answered"]
    assert (kept[1].reply, kept[1].fault, len(kept[1].attempts)) == (None, BROKEN, tries)


def test_what_will_never_work_is_asked_once() -> None:
    """A request that is refused for itself is missing; the others are asked."""
    kept = sent(lambda item, _: TOO_LONG if item % 2 else ANSWER, 10, workers=2)
    assert [len(one.attempts) for one in kept] == [1] * 10
    assert {one.request.item for one in kept.missing} == {"1", "3", "5", "7", "9"}
    assert {one.fault for one in kept.missing} == {TOO_LONG}


def test_the_second_request_does_not_come_before_it_was_asked_for() -> None:
    """Retry-After is waited for over the wire, and the line can say so meanwhile."""
    times: list[float] = []
    meter = Meter(1)
    waits: list[str] = []

    def answer(_: Body) -> Answer:
        times.append(time.monotonic())
        return Answer("B") if len(times) > 1 else Answer(status=429, body=b"{}", headers={"Retry-After": "0.3"})

    async def run(url: str) -> None:
        endpoint = RealEndpoint(Place("compat", "m", url), AiohttpTransport())
        sending = asyncio.create_task(send([Lane("m", endpoint, requests(1), Pace(1))], Kept().commit, meter))
        await asyncio.sleep(0.2)
        waits.extend(kind for _, kind in meter.waits.values())
        await sending
        await endpoint.close()

    with Loopback(answer) as server:
        asyncio.run(run(server.url))
    assert 0.3 <= times[1] - times[0] < 1.5
    assert waits == ["rate_limit"]
    assert meter.waits == {}


def test_eight_tries_back_off(clock: Clock) -> None:
    """By default: 8 tries, waits that double from half a second, each shortened at random by at most half."""
    kept = sent(lambda item, tried: BROKEN if item == 1 else ANSWER, 2, retry=Retry())
    assert len(kept[1].attempts) == 8
    assert 127 * 0.5 / 2 <= clock.now - BEGIN <= 127 * 0.5


def test_a_short_retry_after_does_not_make_it_more_eager(clock: Clock) -> None:
    """`Retry-After: 0` is no invitation to spend eight tries in a second."""
    sent(lambda item, tried: asking(0) if item == 1 else ANSWER, 2, retry=Retry())
    assert clock.now - BEGIN >= 127 * 0.5 / 2


def test_ten_minutes_count_from_the_first_request(clock: Clock) -> None:
    """What the first try took is part of the time, and no wait goes past the end of it."""
    kept = sent(lambda item, tried: BROKEN if item == 1 else ANSWER, 3, retry=Retry(), seconds=290)
    assert [len(one.attempts) for one in kept] == [1, 3, 1]
    kept = sent(lambda item, tried: BROKEN if item == 1 else ANSWER, 3, retry=Retry(), seconds=601)
    assert [len(one.attempts) for one in kept] == [1, 1, 1]


def test_a_wait_beyond_what_is_left_is_given_up_not_slept(clock: Clock) -> None:
    """400 s asked for when 300 are left: missing at once; the next request starts when the endpoint takes it again."""
    script, when = [asking(300), asking(400)], list[float]()

    async def commit(_: Generation) -> None:
        when.append(clock.now - BEGIN)

    endpoint = Scripted(lambda item, tried: script[tried - 1] if item == 1 else ANSWER)
    asyncio.run(send([Lane("m", endpoint, requests(3), Pace(1))], commit, Meter(3)))
    assert endpoint.asked == {0: 1, 1: 2, 2: 1}
    assert when == pytest.approx([0, 300, 700], abs=0.6)


def test_a_wait_beyond_any_generations_time_ends_the_run(clock: Clock) -> None:
    """Going on would only ask a closed counter for every item: the hour is named, nothing is slept, all is kept."""
    error, kept = ends_with(EndpointDown, lambda item, _: asking(3600) if item else ANSWER, 500, retry=Retry())
    assert error.message == "m at http://scripted/v1 asks to wait for 3,600 s: HTTP 429: slow down"
    assert [one.status for one in kept] == ["answered", "missing"]
    assert clock.now - BEGIN < 1


# Ends ----------------------------------------------------------------------------------------------------------


def test_a_refused_key_ends_the_run_at_once() -> None:
    """One refusal that all would meet: no worker asks again, the attempt is on record, the advice is about the key."""
    error, kept = ends_with(RequestRefused, lambda *_: NO_KEY, 500, workers=4)
    assert error.message == "m at http://scripted/v1: HTTP 401: no key"
    assert "key" in error.hint
    assert 1 <= len(kept.missing) == len(kept) <= 4


def test_a_key_refused_in_the_middle_ends_the_run() -> None:
    """Credit can end after a thousand answers."""
    error, kept = ends_with(
        RequestRefused,
        lambda item, _: Fault("payment", "HTTP 402", retryable=False, fatal=True) if item == 7 else ANSWER,
        500,
    )
    assert (len(kept), len(kept.missing)) == (8, 1)
    assert "credit" in error.hint


def test_a_first_round_of_refusals_ends_the_run() -> None:
    """Where nothing was answered, as many refusals as workers tell enough."""
    error, kept = ends_with(RequestRefused, lambda *_: TOO_LONG, 500, workers=4)
    assert error.message == "m at http://scripted/v1 answered nothing: HTTP 400: too long"
    assert error.hint == "the endpoint does not take these parameters"
    assert 4 <= len(kept) <= 7


def test_refusals_of_a_model_that_answered_before_do_not_end_the_run() -> None:
    """When a run is resumed for what is missing, that the same items are refused again is no news."""
    kept = sent(lambda *_: TOO_LONG, 9, workers=2, answered_before=True)
    assert len(kept.missing) == 9


def test_where_nothing_listens_it_is_said_soon() -> None:
    """Over real sockets: EndpointDown within the patience, naming model, address and cause."""
    retry = Retry(first_wait=0.05, longest_wait=0.1, never_answered=0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"

    async def run() -> None:
        endpoint = RealEndpoint(Place("compat", "m", url), AiohttpTransport())
        try:
            await send([Lane("m", endpoint, requests(50), Pace(4))], Kept().commit, Meter(50), retry)
        finally:
            await endpoint.close()

    began = time.monotonic()
    with pytest.raises(EndpointDown) as caught:
        asyncio.run(run())
    assert 0.3 <= time.monotonic() - began < 2
    assert caught.value.message.startswith(f"nothing answers for m at {url}: ")
    assert "is the server running" in caught.value.hint


@pytest.mark.parametrize("workers", [1, 16])
@pytest.mark.parametrize(
    ("fault", "seconds", "latest"),
    [
        (NETWORK, 0.0, 8.1),
        (NETWORK, CONNECT_TIMEOUT, 14.0),
        (BROKEN, 0.0, 8.1),
        (Fault("no_choices", "", retryable=True), 0.0, 8.1),
    ],
    ids=["refused", "unreachable", "broken", "no completion"],
)
def test_an_endpoint_that_never_answers_is_told_of_within_15_seconds(
    clock: Clock, fault: Fault, seconds: float, latest: float, workers: int
) -> None:
    """By default, whatever the jitter: nobody listening, packets lost, or every reply a failure."""
    for _ in range(20):
        began = clock.now
        ends_with(EndpointDown, lambda *_: fault, 500, workers=workers, retry=Retry(), seconds=seconds)
        assert 8 <= clock.now - began < latest


def test_a_few_faults_at_the_start_are_not_the_end(clock: Clock) -> None:
    """A server that stumbles for its first seconds is waited for."""
    kept = sent(lambda _, tried: BROKEN if tried <= 3 else ANSWER, 40, workers=4, retry=Retry())
    assert (len(kept), len(kept.missing)) == (40, 0)


def test_an_endpoint_that_asks_to_be_waited_for_at_the_start_is_waited_for(clock: Clock) -> None:
    """A rate limit that was used up before the run does not make an endpoint down."""
    kept = sent(lambda _, tried: asking(20) if tried <= 2 else ANSWER, 8, workers=4, retry=Retry())
    assert (len(kept), len(kept.missing)) == (8, 0)


@pytest.mark.parametrize("fault", [NETWORK, BROKEN])
@pytest.mark.parametrize("answers", [0, 1])
def test_one_fault_after_a_long_time_is_not_the_end(clock: Clock, fault: Fault, answers: int) -> None:
    """Patience counts from the first fault, not from the last answer: a slow server may drop one request."""
    kept = sent(lambda item, tried: fault if tried <= (item == answers) else ANSWER, 3, retry=Retry(), seconds=120)
    assert [one.status for one in kept] == ["answered"] * 3


def test_an_endpoint_gone_in_the_middle_ends_the_run(clock: Clock) -> None:
    """A minute of silence after an answer: EndpointDown, and what was answered is kept."""
    error, kept = ends_with(EndpointDown, lambda item, _: ANSWER if item < 5 else NETWORK, 500, retry=Retry())
    assert [one.status for one in kept[:5]] == ["answered"] * 5
    assert {one.status for one in kept[5:]} == {"missing"}
    assert 60 <= clock.now - BEGIN < 65
    assert error.message.startswith("nothing answers for m at http://scripted/v1: ")
    assert "run the same command again" in error.hint


def test_an_endpoint_that_comes_back_within_the_minute_goes_on(clock: Clock) -> None:
    """A server may be restarted under a run."""
    kept = sent(
        lambda item, _: NETWORK if 20 < clock.now - BEGIN < 50 else ANSWER, 60, workers=3, retry=Retry(), seconds=1
    )
    assert len(kept) == 60
    assert not kept.missing


def test_a_dropped_connection_now_and_then_is_not_the_end(clock: Clock) -> None:
    """Each reply ends a silence, whatever it says: drops minutes apart do not add up."""
    kept = sent(lambda item, tried: NETWORK if tried == 1 and item % 10 == 1 else ANSWER, 60, retry=Retry(), seconds=15)
    assert not kept.missing
    script: list[Reply | Fault] = [NETWORK, BROKEN, NETWORK, ANSWER]
    kept = sent(lambda item, tried: script[tried - 1] if item else ANSWER, 3, retry=Retry(), seconds=50)
    assert not kept.missing


def test_silence_of_any_kind_counts(clock: Clock) -> None:
    """A wedged server that accepts and never replies ends the run too, not after every item's ten minutes."""
    _, kept = ends_with(
        EndpointDown, lambda item, _: ANSWER if item < 5 else TIMEOUT, 500, workers=2, retry=Retry(), seconds=600
    )
    assert len(kept) < 12


def test_ten_minutes_of_nothing_but_failures_end_the_run(clock: Clock) -> None:
    """A server that replies, and never with an answer, does not get the rest of the plan at eight tries each."""
    error, kept = ends_with(EndpointDown, lambda item, _: ANSWER if item < 5 else BROKEN, 5000, retry=Retry())
    assert "answers with failures only" in error.message
    assert 600 <= clock.now - BEGIN < 700
    assert len(kept) < 30


def test_answers_in_between_keep_a_run_alive(clock: Clock) -> None:
    """An endpoint that fails every other item for hours is still worth asking."""
    kept = sent(lambda item, _: BROKEN if item % 2 else ANSWER, 60, retry=Retry())
    assert (len(kept), len(kept.missing)) == (60, 30)
    assert clock.now - BEGIN > 900


def test_the_first_failure_is_the_one_that_is_told() -> None:
    """What other workers meet while the run ends does not hide it."""

    async def commit(generation: Generation) -> None:
        try:
            await asyncio.sleep(0 if generation.request.item == "0" else 1)
        except asyncio.CancelledError:
            raise ValueError("second") from None
        raise ConflictError("first")

    with pytest.raises(ConflictError, match="first"):
        asyncio.run(send([Lane("m", Scripted(lambda *_: ANSWER), requests(9), Pace(3))], commit, Meter(9), QUICK))


# What was in flight --------------------------------------------------------------------------------------------


class Told(list[Generation]):
    """Commits that are queued at once, as the journal's are, and what was abandoned beside them."""

    def __init__(self) -> None:
        self.abandoned: list[Generation] = []

    async def commit(self, generation: Generation) -> None:
        self.append(generation)
        await asyncio.sleep(0)

    def attempts(self) -> Counter[int]:
        """Item -> attempts that are on record."""
        found: Counter[int] = Counter()
        for one in (*self, *self.abandoned):
            found[int(one.request.item)] += len(one.attempts)
        return found


def test_what_is_in_flight_when_an_endpoint_ends_the_run_is_told(clock: Clock) -> None:
    """A refused key while three others wait for their replies and one waits for its second try."""
    told = Told()
    slow = {0: 0.0, 1: 50.0, 2: 50.0, 3: 0.0}

    class Uneven(Scripted):
        async def attempt(self, request: Request) -> tuple[Reply | Fault, Attempt]:
            await asyncio.sleep(slow.get(int(request.item), 10.0))
            return await super().attempt(request)

    answers: dict[int, Reply | Fault] = {0: BROKEN, 3: ANSWER}
    endpoint = Uneven(lambda item, _: answers.get(item, NO_KEY))
    lane = Lane("m", endpoint, requests(100), Pace(4), answered_before=True)
    retry = Retry(first_wait=30, longest_wait=30)
    with pytest.raises(RequestRefused):
        asyncio.run(send([lane], told.commit, Meter(100), retry, abandon=told.abandoned.append))
    assert [one.request.item for one in told] == ["3", "4"]
    found = {int(one.request.item): one for one in told.abandoned}
    assert sorted(found) == [0, 1, 2]
    assert [[a.fault for a in found[i].attempts] for i in (0, 1, 2)] == [
        ["server_error"],
        ["interrupted"],
        ["interrupted"],
    ]
    assert {one.status for one in told.abandoned} == {"missing"}
    assert {one.fault.kind for one in told.abandoned if one.fault} == {"interrupted"}
    assert found[1].attempts[0].latency_ms == pytest.approx(10_000)


def test_nothing_is_abandoned_by_a_run_that_ends_by_itself() -> None:
    """What was never asked has no attempts and is not told of."""
    told = Told()
    lane = Lane("m", Scripted(lambda item, _: TOO_LONG if item % 2 else ANSWER), requests(9), Pace(4))
    asyncio.run(send([lane], told.commit, Meter(9), QUICK, abandon=told.abandoned.append))
    assert (len(told), told.abandoned) == (9, [])


@given(
    st.lists(st.sampled_from([BROKEN, BUSY, TOO_LONG, ANSWER, NETWORK]), min_size=1, max_size=9),
    st.integers(1, 5),
    st.floats(0, 30),
    st.integers(0, 60),
)
@settings(max_examples=150, deadline=None)
def test_attempts_are_exact_whenever_a_run_is_stopped(
    script: list[Fault | Reply], workers: int, stop: float, refused: int
) -> None:
    """What the endpoint saw is what is on record, when the loop is cancelled and when a refusal ends the run."""
    told = Told()
    with leaping(send_module, pacing):
        endpoint = Scripted(
            lambda item, tried: NO_KEY if item == refused else script[(item + 3 * tried) % len(script)], seconds=0.7
        )
        lane = Lane("m", endpoint, requests(40), Pace(workers), answered_before=True)

        async def run() -> None:
            sending = send([lane], told.commit, Meter(40), Retry(), abandon=told.abandoned.append)
            with contextlib.suppress(TimeoutError, EndpointError):
                await asyncio.wait_for(sending, stop)

        asyncio.run(run())
    assert told.attempts() == endpoint.asked
    assert not {one.request.item for one in told} & {one.request.item for one in told.abandoned}


# Rate limits ---------------------------------------------------------------------------------------------------


def test_what_was_refused_for_a_parameter_is_asked_again_at_once(clock: Clock) -> None:
    """Without it, and without a wait that a failure has."""
    fault = Fault("adapted", "HTTP 400: no seed", retryable=True, retry_after=0.0)
    kept = sent(lambda _, tried: fault if tried == 1 else ANSWER, 5, workers=2, retry=Retry())
    assert [[a.fault for a in one.attempts] for one in kept] == [["adapted", None]] * 5
    assert clock.now == BEGIN


@pytest.mark.parametrize("kind", ["retry-after", "headers"])
def test_a_rate_limit_is_for_every_request_of_the_lane(clock: Clock, kind: str) -> None:
    """While one was told to wait for 30 s, or the headers of an answer say that none are left, nobody else asks."""
    starts: list[float] = []

    def answer(item: int, tried: int) -> Reply | Fault:
        starts.append(clock.now - BEGIN)
        return asking(30) if kind == "retry-after" and item == 0 and tried == 1 else ANSWER

    endpoint = Scripted(answer, exhausted_for=30 if kind == "headers" else None)
    meter = Meter(4)
    asyncio.run(send([Lane("m", endpoint, requests(4), Pace(1))], Kept().commit, meter, Retry()))
    gaps = [later - at for at, later in pairwise(starts)]
    assert gaps[0] == pytest.approx(30, abs=0.6)
    assert gaps[1:] == pytest.approx([30.0] * 2 if kind == "headers" else [0.0] * 3, abs=0.6)
    assert meter.waits == {}


def test_requests_a_minute_are_kept_with_retries(clock: Clock) -> None:
    """60 a minute are 60 attempts, whoever makes them, and the meter says what is waited for meanwhile."""
    starts: list[float] = []
    told: set[str] = set()
    meter = Meter(30)

    def answer(item: int, tried: int) -> Reply | Fault:
        starts.append(clock.now)
        told.update(what for _, what in meter.waits.values())
        return BROKEN if tried == 1 else ANSWER

    lane = Lane("m", Scripted(answer), requests(30), Pace(8, 60), answered_before=True)
    asyncio.run(send([lane], Kept().commit, meter, Retry()))
    assert len(starts) == 60
    assert all(starts[j] - starts[i] >= j - i - 1 - 1e-6 for i in range(60) for j in range(i, 60))
    assert told <= {"--rpm", "server_error"}
    assert "--rpm" in told


# Budget --------------------------------------------------------------------------------------------------------


def bought(
    answer: Callable[[int, int], Reply | Fault],
    budget: Budget,
    pace: Pace,
    cost: float | None = 0.125,
    seconds: float = 1.0,
) -> tuple[Told, Scripted, Meter]:
    told, meter = Told(), Meter(100)
    endpoint = Scripted(answer, seconds, cost)
    lane = Lane("m", endpoint, requests(100), pace, most=lambda _: 0.25)
    asyncio.run(send([lane], told.commit, meter, Retry(), budget, told.abandoned.append))
    return told, endpoint, meter


@pytest.mark.parametrize("workers", [1, 4, 50])
def test_a_run_ends_where_the_next_request_might_cost_too_much(clock: Clock, workers: int) -> None:
    """$2, at most $0.25 each and $0.125 in the end: fifteen are asked, all of them kept, and the rest is unsent."""
    budget = Budget(2.0, 0.0, None)
    told, endpoint, meter = bought(lambda *_: ANSWER, budget, Pace(workers))
    assert (len(told), endpoint.asked.total(), told.abandoned) == (15, 15, [])
    assert (budget.spent, meter.cost_usd, meter.answered) == (1.875, 1.875, 15)
    assert budget.over == "the next request could cost $0.2500"


def test_what_was_spent_before_counts(clock: Clock) -> None:
    """A resumed run has what is left of the money."""
    budget = Budget(2.0, 1.5, None)
    assert len(bought(lambda *_: ANSWER, budget, Pace(2))[0]) == 3
    assert budget.spent == 1.875


def test_the_time_ends_a_run_cleanly(clock: Clock) -> None:
    """At the end of the time replies in flight are kept and nothing more is asked."""
    budget = Budget(None, 0.0, 9.5)
    told, endpoint, _ = bought(lambda *_: ANSWER, budget, Pace(3))
    assert (len(told), endpoint.asked.total(), told.abandoned) == (30, 30, [])
    assert budget.over == "the time is up"
    assert clock.now - BEGIN == pytest.approx(10)


def test_without_costs_a_budget_ends_nothing(clock: Clock) -> None:
    """Where nobody says what a reply cost, it counts as what it can cost at most; the record says nothing."""
    budget = Budget(25.0, 0.0, None)
    told, _, meter = bought(lambda *_: ANSWER, budget, Pace(4), cost=None)
    assert (len(told), budget.over, meter.cost_usd, budget.spent) == (100, None, None, 25.0)


def test_a_request_that_is_tried_again_holds_its_money_meanwhile(clock: Clock) -> None:
    """$0.375 let one request in; nobody takes its money while it waits for its second try."""
    told, endpoint, _ = bought(
        lambda item, tried: BROKEN if item == 0 and tried == 1 else ANSWER, Budget(0.375, 0.0, None), Pace(2), cost=0.0
    )
    assert len(told) == 100
    assert endpoint.asked[0] == 2


def test_nobody_waits_for_ever_where_the_pace_adapts(clock: Clock) -> None:
    """The same with more workers than slots."""
    told, _, _ = bought(
        lambda item, tried: BROKEN if item == 0 and tried == 1 else ANSWER, Budget(0.375, 0.0, None), Pace(None), 0.0
    )
    assert len(told) == 100


def test_failures_that_are_charged_do_not_exceed_the_budget(clock: Clock) -> None:
    """Every try may cost its most: $1 is never exceeded."""
    budget = Budget(1.0, 0.0, None)
    charged = Fault("upstream_error", "HTTP 200: error inside", retryable=True, cost_usd=0.25)
    bought(lambda _, tried: charged if tried < 4 else ANSWER, budget, Pace(4), cost=0.25)
    assert budget.spent <= 1.0


# A law ---------------------------------------------------------------------------------------------------------

steps = st.lists(st.sampled_from([BROKEN, BUSY, TOO_LONG, ANSWER]), min_size=1, max_size=5)


@given(st.lists(steps, max_size=12), st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_every_generation_is_committed_once_with_the_tries_it_took(
    scripts: list[list[Fault | Reply]], workers: int, tries: int
) -> None:
    """Whatever each request meets: the tries go to the first answer or refusal, or to the limit, and are all kept."""
    retry = Retry(tries=tries, first_wait=0.0, never_answered=99)
    kept = sent(
        lambda item, tried: scripts[item][min(tried, len(scripts[item])) - 1],
        len(scripts),
        workers=workers,
        retry=retry,
        answered_before=True,
    )
    assert sorted(int(one.request.item) for one in kept) == list(range(len(scripts)))
    for one in kept:
        script = scripts[int(one.request.item)]
        met = (script + script[-1:] * tries)[:tries]
        end = next((i for i, what in enumerate(met) if isinstance(what, Reply) or not what.retryable), tries - 1)
        assert [a.fault for a in one.attempts] == [w.kind if isinstance(w, Fault) else None for w in met[: end + 1]]
        assert (one.reply or one.fault) == met[end]


def test_one_request_that_hangs_does_not_end_a_run_that_answers(clock: Clock) -> None:
    """The others are answered and it is missing; a second one that hangs would say that the endpoint is gone."""
    retry = Retry(gone=60.0, seconds=100.0)
    kept = sent(lambda item, _: TIMEOUT if item == 5 else ANSWER, 30, workers=4, retry=retry, answered_before=True)
    assert [int(one.request.item) for one in kept.missing] == [5]
    assert len(kept) == 30
    with pytest.raises(EndpointDown):
        sent(lambda item, _: TIMEOUT if item >= 5 else ANSWER, 30, workers=4, retry=retry, answered_before=True)
