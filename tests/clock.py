"""A world where waiting takes no time: `asyncio.run` on a clock that leaps to when the next timer is due."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


@dataclass
class Clock:
    """What time it is, in seconds. It begins late enough for a second's burst to be in the past."""

    now: float = 1000.0


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        super().__init__()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits, and for nothing that will ever come")
        self.clock.now += timeout
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        super().__init__(_Selector(clock))

    def time(self) -> float:
        return self.clock.now


@contextmanager
def leaping(*modules: ModuleType) -> Iterator[Clock]:
    """`asyncio.run` leaps, and the `time` of these modules agrees with it. Where everybody waits it raises."""
    clock = Clock()

    def run(main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=lambda: _Loop(clock)) as runner:
            return runner.run(main)

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now))
        patch.setattr(asyncio, "run", run)
        yield clock
