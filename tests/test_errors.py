"""Every error a user can meet: one line, a hint, an exit code."""

import inspect
import re

import pytest

from auditor import errors
from auditor.errors import AuditorError, FileError, UsageError, unknown

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, AuditorError)]


def test_the_drawn_tree_is_the_real_one() -> None:
    """The tree at the top of the module names every class, under its base, with its exit code."""
    drawn = {}
    bases: dict[int, str] = {}
    for match in re.finditer(r"^([ │├└─]*)(\w+) +(?:(\d+) )?", errors.__doc__ or "", re.MULTILINE):
        depth, name = len(match[1]), match[2]
        if name not in vars(errors):
            continue
        drawn[name] = (bases.get(depth - 4), int(match[3]) if match[3] else 1)
        bases[depth] = name
    actual = {cls.__name__: (cls.__mro__[1].__name__, cls.exit_code) for cls in CLASSES if cls is not AuditorError}
    assert drawn == {"AuditorError": (None, 1), **actual}


def test_exit_codes() -> None:
    """2 is a usage or a file, 3 is not enough measured, 4 the budget, 130 an interruption: what CI scripts rely on."""
    assert {cls.__name__: cls.exit_code for cls in CLASSES} == {
        "AuditorError": 1,
        "UsageError": 2,
        "FileError": 2,
        "ConflictError": 2,
        "PreflightError": 2,
        "EndpointError": 3,
        "EndpointDown": 3,
        "RequestRefused": 2,
        "IncompleteError": 3,
        "BudgetError": 4,
        "Interrupted": 130,
    }


def test_message_and_hint() -> None:
    """An error is its message, and the hint stands beside it."""
    error = UsageError("no such thing", "name another")
    assert (str(error), error.message, error.hint) == ("no such thing", "no such thing", "name another")
    assert AuditorError("x").hint == ""


def test_file_error_says_where() -> None:
    """A file's error begins with the path, and the line where it is known."""
    assert FileError("a.toml", "no steps", "add some", line=3).message == "a.toml:3: no steps"
    assert FileError("a.toml", "no steps").message == "a.toml: no steps"
    assert FileError("a.toml", "no steps", "add some").hint == "add some"


@pytest.mark.parametrize(
    ("name", "known", "hint", "said"),
    [
        ("jsn", ["json", "plain"], "", "did you mean json"),
        ("structurd", ["structured", "structured_delim"], "", "did you mean structured or structured_delim"),
        ("zzz", ["plain", "json", "json"], "", "known: json, plain"),
        ("zzz", ["plain"], "a path works too", "known: plain; a path works too"),
        ("zzz", [], "", ""),
        ("zzz", [], "a path works too", "a path works too"),
    ],
)
def test_unknown_name(name: str, known: list[str], hint: str, said: str) -> None:
    """An unknown name is answered with the nearest known ones, else with all of them."""
    error = unknown("wrapper", name, known, hint)
    assert isinstance(error, UsageError)
    assert error.message == f"unknown wrapper {name!r}"
    assert error.hint == said
