"""The child process of an Extractor: `python -P extractor_child.py MODULE FUNCTION`, nothing of ours imported.

One JSON value a line: requests `[text, choices]` on standard input, answers `{"value": ...}` or `{"error": "..."}` on
standard output, the first of them once the function is imported. What the function prints goes to standard error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import operator
import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Answer until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.fdopen(os.dup(0), encoding="ascii"), os.fdopen(os.dup(1), "w", encoding="ascii")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.path.insert(0, os.getcwd())

    def answer(told: dict[str, Any]) -> None:
        print(json.dumps(told), file=answers, flush=True)

    try:
        call = _function(*sys.argv[1:3])
    except BaseException as error:  # an import may even exit
        answer({"error": _said(error)})
        return
    answer({"value": None})
    for line in requests:
        try:
            answer({"value": _text(call(*json.loads(line)))})
        except Exception as error:
            answer({"error": _said(error)})


def _function(module: str, name: str) -> Callable[[str, dict[str, str]], Any]:
    function = operator.attrgetter(name)(importlib.import_module(module))
    if not callable(function):
        raise TypeError(f"{name} is not a function")
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some builtins do not tell
        return lambda text, _: function(text)
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(places) > 1 and places[1].default is inspect.Parameter.empty:
        return lambda text, choices: function(text, choices)
    return lambda text, _: function(text)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | dict | list):
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(value)
    raise TypeError(f"it returned a {type(value).__name__}")


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


if __name__ == "__main__":
    main()
