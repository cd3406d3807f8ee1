"""The progress line: done, rate, time left, tokens, retries and what it waits for. Reads a Meter, changes nothing."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from auditor.estimate import duration, short
from auditor.send import Meter

_PLAIN_EVERY = 15.0
"""Seconds between lines where standard error is no terminal."""


def line(meter: Meter, now: float) -> str:
    """`312/600  4.1/s  1m10s left  9.2k + 912 tokens  4 retries  2 missing  3 waiting: network, resumes in 12 s`.

    Tokens are of prompts and of completions; `now` is in monotonic seconds.
    """
    rate = meter.done / max(now - meter.started, 1e-9)
    parts = [f"{meter.done:,}/{meter.total:,}"]
    if meter.done:
        parts.append(f"{rate:.1f}/s" if rate < 100 else f"{rate:,.0f}/s")
        parts.append(f"{duration((meter.total - meter.done) / rate)} left")
    parts.append(f"{short(meter.prompt_tokens)} + {short(meter.completion_tokens)} tokens")
    if meter.cost_usd is not None and meter.cost_usd > 0:
        parts.append(f"${meter.cost_usd:,.4f}" if meter.cost_usd < 1 else f"${meter.cost_usd:,.2f}")
    if meter.retries:
        parts.append(f"{meter.retries:,} retries")
    if meter.missing:
        parts.append(f"{meter.missing:,} missing")
    if waits := _waits(meter, now):
        parts.append(waits)
    return "  ".join(parts)


@contextmanager
def shown(meter: Meter, console: Console) -> Iterator[None]:
    """Keep the line on a terminal; write one now and then elsewhere."""
    if console.is_terminal:
        with Live(get_renderable=lambda: _bar(meter), console=console, refresh_per_second=4, transient=True):
            yield
        return
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(_PLAIN_EVERY):
            console.print(line(meter, time.monotonic()), highlight=False, markup=False, soft_wrap=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def _bar(meter: Meter) -> Text:
    width = 16
    full = int(width * meter.done / max(meter.total, 1))
    return Text.assemble(
        ("━" * full, "cyan"),
        ("━" * (width - full), "dim"),
        " ",
        line(meter, time.monotonic()),
        no_wrap=True,
        overflow="ellipsis",
    )


def _waits(meter: Meter, now: float) -> str:
    """How many workers wait for what most wait for, and when the first goes on. A copy: they write while this reads."""
    waits = list(meter.waits.values())
    if not waits:
        return ""
    kind, count = Counter(kind for _, kind in waits).most_common(1)[0]
    soonest = max(0.0, min(until for until, what in waits if what == kind) - now)
    return f"{count} waiting: {kind.replace('_', ' ')}, resumes in {soonest:.0f} s"
