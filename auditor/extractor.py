"""A function of the user's own as a parser, `python:package.module:function`, in a process of its own and in time.

It is imported only because a command line (or Python code) names it; nothing that is read from a file ever is.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import secrets
import subprocess
import sys
import threading
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

from auditor import extractor_child
from auditor.errors import UsageError
from auditor.parsing import Reader
from auditor.parsing.classify import classify_reply
from auditor.parsing.filters import canonical_value
from auditor.parsing.state import State, not_there, unparseable, with_text
from auditor.records import Outcome, Parser, ParserStep

SECONDS = 2.0
"""What the function may take for one reply."""
_IMPORT_SECONDS = 60.0
_MESSAGES = 20
"""So many different messages are counted apart."""
_IN_A_ROW = 10
"""So many replies in a row on which the process hangs or dies, and it is given up."""
_NAME = re.compile(r"python:([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")


def extractor(name: str) -> tuple[Parser, Reader]:
    """The parser of `python:package.module:function`. Raises UsageError where it cannot be imported."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise UsageError(f"parser {name!r} is no function", "write python:package.module:function")
    process = Extractor(name, match[1], match[2])
    # What the function imports may change as well: its outcomes are never taken for those of a later process.
    digest = secrets.token_hex(16)
    steps = (ParserStep("classify_reply"), ParserStep(name), ParserStep("canonical_value"))
    parser = Parser(name, 1, f"the function {match[2]} of {match[1]}", steps, (), name, digest)
    return parser, Reader(name, (classify_reply, process, canonical_value), process.faults.copy)


class Extractor:
    """The step that asks the function. `faults` counts why it gave no reading of a reply."""

    def __init__(self, name: str, module: str, function: str) -> None:
        self.faults: Counter[str] = Counter()
        self._name, self._command = name, (module, function)
        self._failures = 0
        self._child = _imported(name, self._command)

    def __call__(self, state: State) -> State | Outcome:
        told = self._ask(state)
        if "error" in told:
            self._count(told["error"])
            return unparseable("parser_error")
        if told["value"] is None:
            return not_there(state, "no_answer")
        return with_text(state, told["value"], "extractor")

    def _ask(self, state: State) -> dict[str, Any]:
        space = state.space
        choices = dict(zip(space.labels, space.texts or space.labels, strict=False))
        self._child.ask([state.text, choices])
        told = self._child.answer(SECONDS)
        if told is not None:
            self._failures = 0
            return told
        died = self._child.stop()
        self._failures += 1
        why = f"its process ended with {died}" if died is not None else f"more than {SECONDS:g} s"
        if self._failures == _IN_A_ROW:
            raise UsageError(f"parser {self._name}: {why}, on {_IN_A_ROW} replies in a row", "it is given up")
        self._child = _imported(self._name, self._command)
        return {"error": why}

    def _count(self, error: str) -> None:
        """Messages that quote the reply are all different: past a few, only the kind of error is told apart."""
        known = error in self.faults or len(self.faults) < _MESSAGES
        self.faults[error if known else error.partition(":")[0]] += 1


def _imported(name: str, command: tuple[str, str]) -> _Child:
    """The process once it has imported the function. Raises UsageError where it cannot."""
    child = _Child(command)
    told = child.answer(_IMPORT_SECONDS)
    if told is None or "error" in told:
        child.stop()
        why = told["error"] if told else f"nothing came within {_IMPORT_SECONDS:g} s"
        hint = "modules are looked for in the current folder and where Python finds them"
        raise UsageError(f"parser {name} cannot be imported: {why}", hint)
    return child


class _Child:
    """The process, a thread that writes to it and one that reads its answers: neither side can block the other."""

    def __init__(self, command: tuple[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(extractor_child.__file__)), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="ascii",
        )
        self._answers: queue.Queue[str] = queue.Queue()
        self._requests: queue.Queue[str] = queue.Queue()
        self._reading = threading.Thread(target=_read, args=(self._process, self._answers), daemon=True)
        writing = threading.Thread(target=_write, args=(self._process, self._requests), daemon=True)
        self._reading.start()
        writing.start()
        self._end = weakref.finalize(self, _stop, self._process, self._requests, (self._reading, writing))

    def ask(self, told: list[Any]) -> None:
        self._requests.put(json.dumps(told) + "\n")

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """None when there is none in time, or the process has ended."""
        try:
            line = self._answers.get(timeout=seconds)
            told: dict[str, Any] = json.loads(line)
        except (queue.Empty, ValueError):
            return None
        return told

    def stop(self) -> int | None:
        """End it; the exit code if it had ended by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self._reading.is_alive() else 1)
        code = self._process.poll()
        self._end()
        return code


def _read(process: subprocess.Popen[str], answers: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)
    answers.put("")


def _write(process: subprocess.Popen[str], requests: queue.Queue[str]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):  # it is gone; the answer that never comes says so
        while line := requests.get():
            process.stdin.write(line)
            process.stdin.flush()


def _stop(process: subprocess.Popen[str], requests: queue.Queue[str], threads: tuple[threading.Thread, ...]) -> None:
    process.kill()
    process.wait()
    requests.put("")
    for thread in threads:
        thread.join(1)
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
