"""The progress line: what it says of a meter, and how it is written."""

from __future__ import annotations

import io
import time
from typing import Any

import msgspec
import pytest
from rich.console import Console
from samples import answered, missing, request

from auditor import progress
from auditor.progress import line, shown
from auditor.send import Meter


def meter(**changes: Any) -> Meter:
    return Meter(**{"total": 600, "started": 100.0, **changes})


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        ({}, 100.0, "0/600  0 + 0 tokens"),
        (
            {"done": 300, "answered": 300, "prompt_tokens": 31_204, "completion_tokens": 9_120},
            175.0,
            "300/600  4.0/s  1m15s left  31.2k + 9.1k tokens",
        ),
        (
            {"total": 140_000, "done": 14_000, "retries": 1_234, "missing": 2},
            110.0,
            "14,000/140,000  1,400/s  1m30s left  0 + 0 tokens  1,234 retries  2 missing",
        ),
        (
            {"done": 1, "waits": {1: (112.0, "rate_limit"), 2: (130.0, "rate_limit"), 3: (105.0, "network")}},
            100.5,
            "1/600  2.0/s  5m00s left  0 + 0 tokens  2 waiting: rate limit, resumes in 12 s",
        ),
        (
            {"done": 600, "waits": {1: (90.0, "unavailable")}},
            200.0,
            "600/600  6.0/s  0s left  0 + 0 tokens  1 waiting: unavailable, resumes in 0 s",
        ),
    ],
)
def test_the_line_of_a_meter(changes: dict[str, Any], now: float, expected: str) -> None:
    """Done, rate, time left, tokens; retries, missing and waits only where there are any."""
    assert line(meter(**changes), now) == expected


def test_the_line_before_any_time_has_passed() -> None:
    """No division by zero at the very start."""
    assert line(meter(done=1), 100.0).startswith("1/600  ")


def test_cost_appears_where_there_is_any() -> None:
    """To a hundredth of a cent below a dollar, in cents above; a free model's line says nothing of money."""
    assert line(meter(done=300, answered=300, cost_usd=0.01234), 175.0) == (
        "300/600  4.0/s  1m15s left  0 + 0 tokens  $0.0123"
    )
    assert "  $1,234.50" in line(meter(done=300, cost_usd=1234.5, retries=2), 175.0)
    assert line(meter(done=300, cost_usd=1.0, retries=2), 175.0).endswith("0 + 0 tokens  $1.00  2 retries")
    for nothing in (None, 0.0):
        assert "$" not in line(meter(done=300, cost_usd=nothing), 175.0)


def test_the_meter_adds_what_every_attempt_cost() -> None:
    """Of answered and of missing generations; None until somebody says a cost."""
    found = meter()
    before = found.cost_usd
    found.count(answered(request(), "B"))
    assert (before, found.cost_usd) == (None, None)
    told = missing(request(seed=1), tries=2)
    paid = tuple(msgspec.structs.replace(attempt, cost_usd=0.25) for attempt in told.attempts)
    found.count(msgspec.structs.replace(told, attempts=paid))
    assert found.cost_usd == 0.5
    assert (found.done, found.answered, found.missing) == (2, 1, 1)
    assert (found.prompt_tokens, found.completion_tokens) == (10, 3)


@pytest.mark.parametrize("what", ["rate_limit", "--rpm", "--tpm"])
def test_it_says_what_is_waited_for(what: str) -> None:
    """A rate limit of the endpoint or of the user, and when the first goes on."""
    waits = {1: (140.0, what), 2: (130.4, what), 3: (101.0, "network")}
    assert line(meter(done=1, waits=waits), 100.5).endswith(f"  2 waiting: {what.replace('_', ' ')}, resumes in 30 s")


def test_one_rate_limit_is_counted_once() -> None:
    """Who was refused and who waits for the same limit are told of together."""
    waits = {1: (110.0, "rate_limit"), 2: (112.0, "rate_limit")}
    assert line(meter(waits=waits), 100.0).endswith("  2 waiting: rate limit, resumes in 10 s")


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(progress, "_PLAIN_EVERY", 0.01)


@pytest.mark.usefixtures("_often")
def test_elsewhere_than_on_a_terminal_it_writes_whole_plain_lines() -> None:
    """No escape codes, no line folded at 80 columns, and nothing more after the end."""
    out = io.StringIO()
    many = meter(total=140_000, done=70_000, retries=1_000, missing=9_999, prompt_tokens=10**9, completion_tokens=10**8)
    many.waits[1] = (time.monotonic() + 60, "rate_limit")
    with shown(many, Console(file=out, width=40)):
        late = time.monotonic() + 10
        while out.getvalue().count("\n") < 2 and time.monotonic() < late:
            time.sleep(0.01)
    written = out.getvalue()
    time.sleep(0.05)
    assert out.getvalue() == written
    assert "\x1b" not in written
    assert "\r" not in written
    assert written.endswith("\n")
    lines = written.splitlines()
    assert len(lines) >= 2
    assert all(one.startswith("70,000/140,000  ") and one.endswith(" s") for one in lines)


def test_a_run_that_ends_early_writes_no_line() -> None:
    """What takes less than the interval is not reported on, nor held up."""
    out = io.StringIO()
    began = time.monotonic()
    with shown(meter(), Console(file=out)):
        pass
    assert out.getvalue() == ""
    assert time.monotonic() - began < 1


@pytest.mark.usefixtures("_often")
def test_an_error_passes_through_and_ends_the_lines() -> None:
    """An interrupted run is not held up by its own progress line."""
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt), shown(meter(), Console(file=out)):
        raise KeyboardInterrupt
    written = out.getvalue()
    time.sleep(0.05)
    assert out.getvalue() == written


def test_on_a_terminal_the_line_stays_in_place_and_goes_at_the_end() -> None:
    """It shows the same words beside a bar, and leaves the screen as it was."""
    out = io.StringIO()
    half = meter(done=300)
    half.started = time.monotonic() - 75
    with shown(half, Console(file=out, force_terminal=True, width=120)):
        time.sleep(0.05)
    written = out.getvalue()
    assert "━" * 8 in written
    assert "300/600  4.0/s  1m15s left" in written
    assert written.rstrip().endswith("\x1b[2K")
