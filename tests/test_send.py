"""Sending: everything is asked once, retried within bounds, committed before the next, and ended clearly."""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Answer, Body, Loopback

from auditor import send as send_module
from auditor.endpoints import PROVIDERS
from auditor.endpoints import Endpoint as RealEndpoint
from auditor.endpoints.transport import CONNECT_TIMEOUT, TRANSPORTS, AiohttpTransport
from auditor.errors import ConflictError, EndpointDown, EndpointError, RequestRefused
from auditor.records import Attempt, Fault, Generation, Message, Reply, Request
from auditor.send import Lane, Meter, Retry, send

T = TypeVar("T")
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

    def __init__(self, answer: Callable[[int, int], Reply | Fault], seconds: float = 0.0) -> None:
        self._answer = answer
        self._seconds = seconds
        self.asked: Counter[int] = Counter()

    async def attempt(self, request: Request) -> tuple[Reply | Fault, Attempt]:
        item = int(request.item)
        self.asked[item] += 1
        answer = self._answer(item, self.asked[item])
        await asyncio.sleep(self._seconds)
        kind = answer.kind if isinstance(answer, Fault) else None
        return answer, Attempt(0.0, 1.0, None if answer in (NETWORK, TIMEOUT) else 200, kind, b"")

    def sent(self, request: Request) -> bytes:
        return b"{}"


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
    lanes = [Lane("m", Scripted(answer, seconds), requests(count), workers, **lane)]
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


# Time that passes at once --------------------------------------------------------------------------------------


class _Clock:
    now = 0.0


class _Leaping(selectors.DefaultSelector):
    """Nothing is ever waited for: the clock leaps to when the next timer is due."""

    def __init__(self, clock: _Clock) -> None:
        self.clock = clock
        super().__init__()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.clock.now += timeout or 0.0
        return super().select(0)


class _Leap(asyncio.SelectorEventLoop):
    def __init__(self, clock: _Clock) -> None:
        self.clock = clock
        super().__init__(_Leaping(clock))

    def time(self) -> float:
        return self.clock.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """`asyncio.run` in a world where waiting takes no time, and `time.monotonic` of `send` agrees."""
    clock = _Clock()
    monkeypatch.setattr(send_module, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def run(main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=lambda: _Leap(clock)) as runner:
            return runner.run(main)

    monkeypatch.setattr(asyncio, "run", run)
    return clock


# Everything is asked -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", list(TRANSPORTS))
def test_everything_is_answered_once(transport: str) -> None:
    """Each request is asked once, its own answer committed once, by no more workers at a time than allowed."""
    kept, meter = Kept(), Meter(60)
    with Loopback(lambda body: Answer(f"re {body['messages'][0]['content']}"), latency=0.005) as server:

        async def run() -> None:
            endpoint = RealEndpoint(PROVIDERS["compat"], "m", server.url, None, TRANSPORTS[transport]())
            await send([Lane("m", endpoint, requests(60), 7)], kept.commit, meter)
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
    lanes = [Lane("a", first, requests(5), 3), Lane("b", second, requests(2), 3)]
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

    lane = Lane("m", Scripted(lambda *_: ANSWER), pulled(), 4)
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

        sending = asyncio.create_task(send([Lane("m", endpoint, requests(20), 3)], commit, Meter(20), QUICK))
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
        asyncio.run(send([Lane("m", endpoint, requests(100), 3)], commit, Meter(100), QUICK))
    assert caught.value is failure
    assert endpoint.asked.total() <= 12


def test_a_failing_plan_ends_the_run_with_its_error() -> None:
    """So does an iterator that raises."""

    def plan() -> Iterator[Request]:
        yield request(0)
        raise ConflictError("its prompt changed")

    with pytest.raises(ConflictError, match="its prompt changed"):
        asyncio.run(send([Lane("m", Scripted(lambda *_: ANSWER), plan(), 3)], Kept().commit, Meter(9), QUICK))


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
        sending = asyncio.create_task(send([Lane("m", endpoint, requests(1000), 4)], commit, meter, patient))
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
    lane = Lane("m", Scripted(lambda _, tried: script[tried - 1]), requests(1), 1)
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
        endpoint = RealEndpoint(PROVIDERS["compat"], "m", url, None, AiohttpTransport())
        sending = asyncio.create_task(send([Lane("m", endpoint, requests(1), 1)], Kept().commit, meter))
        await asyncio.sleep(0.2)
        waits.extend(kind for _, kind in meter.waits.values())
        await sending
        await endpoint.close()

    with Loopback(answer) as server:
        asyncio.run(run(server.url))
    assert 0.3 <= times[1] - times[0] < 1.5
    assert waits == ["rate_limit"]
    assert meter.waits == {}


def test_eight_tries_back_off(clock: _Clock) -> None:
    """By default: 8 tries, waits that double from half a second, each shortened at random by at most half."""
    kept = sent(lambda item, tried: BROKEN if item == 1 else ANSWER, 2, retry=Retry())
    assert len(kept[1].attempts) == 8
    assert 127 * 0.5 / 2 <= clock.now <= 127 * 0.5


def test_a_short_retry_after_does_not_make_it_more_eager(clock: _Clock) -> None:
    """`Retry-After: 0` is no invitation to spend eight tries in a second."""
    sent(lambda item, tried: asking(0) if item == 1 else ANSWER, 2, retry=Retry())
    assert clock.now >= 127 * 0.5 / 2


def test_ten_minutes_count_from_the_first_request(clock: _Clock) -> None:
    """What the first try took is part of the time, and no wait goes past the end of it."""
    kept = sent(lambda item, tried: BROKEN if item == 1 else ANSWER, 3, retry=Retry(), seconds=290)
    assert [len(one.attempts) for one in kept] == [1, 3, 1]
    kept = sent(lambda item, tried: BROKEN if item == 1 else ANSWER, 3, retry=Retry(), seconds=601)
    assert [len(one.attempts) for one in kept] == [1, 1, 1]


def test_a_wait_beyond_what_is_left_is_given_up_not_slept(clock: _Clock) -> None:
    """400 s asked for when 300 are left: missing at once, and the run goes on."""
    script = [asking(300), asking(400)]
    kept = sent(lambda item, tried: script[tried - 1] if item == 1 else ANSWER, 3, retry=Retry())
    assert [(one.status, len(one.attempts)) for one in kept] == [("answered", 1), ("missing", 2), ("answered", 1)]
    assert 300 <= clock.now < 301


def test_a_wait_beyond_any_generations_time_ends_the_run(clock: _Clock) -> None:
    """Going on would only ask a closed counter for every item: the hour is named, nothing is slept, all is kept."""
    error, kept = ends_with(EndpointDown, lambda item, _: asking(3600) if item else ANSWER, 500, retry=Retry())
    assert error.message == "m at http://scripted/v1 asks to wait for 3,600 s: HTTP 429: slow down"
    assert [one.status for one in kept] == ["answered", "missing"]
    assert clock.now < 1


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
        endpoint = RealEndpoint(PROVIDERS["compat"], "m", url, None, AiohttpTransport())
        try:
            await send([Lane("m", endpoint, requests(50), 4)], Kept().commit, Meter(50), retry)
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
    clock: _Clock, fault: Fault, seconds: float, latest: float, workers: int
) -> None:
    """By default, whatever the jitter: nobody listening, packets lost, or every reply a failure."""
    for _ in range(20):
        began = clock.now
        ends_with(EndpointDown, lambda *_: fault, 500, workers=workers, retry=Retry(), seconds=seconds)
        assert 8 <= clock.now - began < latest


def test_a_few_faults_at_the_start_are_not_the_end(clock: _Clock) -> None:
    """A server that stumbles for its first seconds is waited for."""
    kept = sent(lambda _, tried: BROKEN if tried <= 3 else ANSWER, 40, workers=4, retry=Retry())
    assert (len(kept), len(kept.missing)) == (40, 0)


def test_an_endpoint_that_asks_to_be_waited_for_at_the_start_is_waited_for(clock: _Clock) -> None:
    """A rate limit that was used up before the run does not make an endpoint down."""
    kept = sent(lambda _, tried: asking(20) if tried <= 2 else ANSWER, 8, workers=4, retry=Retry())
    assert (len(kept), len(kept.missing)) == (8, 0)


@pytest.mark.parametrize("fault", [NETWORK, BROKEN])
@pytest.mark.parametrize("answers", [0, 1])
def test_one_fault_after_a_long_time_is_not_the_end(clock: _Clock, fault: Fault, answers: int) -> None:
    """Patience counts from the first fault, not from the last answer: a slow server may drop one request."""
    kept = sent(lambda item, tried: fault if tried <= (item == answers) else ANSWER, 3, retry=Retry(), seconds=120)
    assert [one.status for one in kept] == ["answered"] * 3


def test_an_endpoint_gone_in_the_middle_ends_the_run(clock: _Clock) -> None:
    """A minute of silence after an answer: EndpointDown, and what was answered is kept."""
    error, kept = ends_with(EndpointDown, lambda item, _: ANSWER if item < 5 else NETWORK, 500, retry=Retry())
    assert [one.status for one in kept[:5]] == ["answered"] * 5
    assert {one.status for one in kept[5:]} == {"missing"}
    assert 60 <= clock.now < 65
    assert error.message.startswith("nothing answers for m at http://scripted/v1: ")
    assert "run the same command again" in error.hint


def test_an_endpoint_that_comes_back_within_the_minute_goes_on(clock: _Clock) -> None:
    """A server may be restarted under a run."""
    kept = sent(lambda item, _: NETWORK if 20 < clock.now < 50 else ANSWER, 60, workers=3, retry=Retry(), seconds=1)
    assert len(kept) == 60
    assert not kept.missing


def test_a_dropped_connection_now_and_then_is_not_the_end(clock: _Clock) -> None:
    """Each reply ends a silence, whatever it says: drops minutes apart do not add up."""
    kept = sent(lambda item, tried: NETWORK if tried == 1 and item % 10 == 1 else ANSWER, 60, retry=Retry(), seconds=15)
    assert not kept.missing
    script: list[Reply | Fault] = [NETWORK, BROKEN, NETWORK, ANSWER]
    kept = sent(lambda item, tried: script[tried - 1] if item else ANSWER, 3, retry=Retry(), seconds=50)
    assert not kept.missing


def test_silence_of_any_kind_counts(clock: _Clock) -> None:
    """A wedged server that accepts and never replies ends the run too, not after every item's ten minutes."""
    _, kept = ends_with(
        EndpointDown, lambda item, _: ANSWER if item < 5 else TIMEOUT, 500, workers=2, retry=Retry(), seconds=600
    )
    assert len(kept) < 12


def test_ten_minutes_of_nothing_but_failures_end_the_run(clock: _Clock) -> None:
    """A server that replies, and never with an answer, does not get the rest of the plan at eight tries each."""
    error, kept = ends_with(EndpointDown, lambda item, _: ANSWER if item < 5 else BROKEN, 5000, retry=Retry())
    assert "answers with failures only" in error.message
    assert 600 <= clock.now < 700
    assert len(kept) < 30


def test_answers_in_between_keep_a_run_alive(clock: _Clock) -> None:
    """An endpoint that fails every other item for hours is still worth asking."""
    kept = sent(lambda item, _: BROKEN if item % 2 else ANSWER, 60, retry=Retry())
    assert (len(kept), len(kept.missing)) == (60, 30)
    assert clock.now > 900


def test_the_first_failure_is_the_one_that_is_told() -> None:
    """What other workers meet while the run ends does not hide it."""

    async def commit(generation: Generation) -> None:
        try:
            await asyncio.sleep(0 if generation.request.item == "0" else 1)
        except asyncio.CancelledError:
            raise ValueError("second") from None
        raise ConflictError("first")

    with pytest.raises(ConflictError, match="first"):
        asyncio.run(send([Lane("m", Scripted(lambda *_: ANSWER), requests(9), 3)], commit, Meter(9), QUICK))


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
