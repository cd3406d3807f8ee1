"""Every error a user can meet.

AuditorError                 one line, a hint, an exit code
├── UsageError          2    an option or a name that cannot be
│   ├── FileError       2    a file that is not what it should be: path, line, field
│   ├── ConflictError   2    the run folder holds something else
│   └── PreflightError  2    --strict-preflight, and something would spoil the run
├── EndpointError       3    an endpoint does not do its part
│   ├── EndpointDown    3    nothing listens, or nothing answers any more
│   └── RequestRefused  2    the key, the model or a parameter was refused
├── IncompleteError     3    not enough was measured
├── BudgetError         4    the money or the time that a run may use is used
└── Interrupted       130    the user stopped it
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AuditorError(Exception):
    """An expected failure: `message` says what is wrong, `hint` what to do next."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AuditorError):
    """An option or a name that cannot be."""

    exit_code = 2


class FileError(UsageError):
    """A file that is not what it should be; the message starts with `path[:line]`."""

    def __init__(self, path: object, message: str, hint: str = "", *, line: int | None = None) -> None:
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}", hint)


class ConflictError(UsageError):
    """The run folder holds something that this study may not touch."""


class PreflightError(UsageError):
    """Something would spoil the run, and the user wants that to be an error."""


class EndpointError(AuditorError):
    """An endpoint does not do its part."""

    exit_code = 3


class EndpointDown(EndpointError):
    """Nothing listens there, or nothing answers any more."""


class RequestRefused(EndpointError):
    """The endpoint refuses what every request of the study has in common: key, model or a parameter."""

    exit_code = 2


class IncompleteError(AuditorError):
    """Not enough was measured for the question asked."""

    exit_code = 3


class BudgetError(AuditorError):
    """The money or the time that a run may use is used; what was measured is kept."""

    exit_code = 4


class Interrupted(AuditorError):
    """The user stopped the run; what was measured is kept."""

    exit_code = 130


def unknown(kind: str, name: str, known: Iterable[str], hint: str = "") -> UsageError:
    """`unknown wrapper 'jsn'`, with the nearest known names as the hint."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        advice = f"did you mean {' or '.join(near)}"
    elif names:
        advice = f"known: {', '.join(names)}"
    else:
        advice = ""
    return UsageError(f"unknown {kind} {name!r}", "; ".join(part for part in (advice, hint) if part))
