"""lm-evaluation-harness's `filter_list`, in a file of its own or in a task's YAML, as parsers: one per filter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from auditor.errors import FileError, unknown
from auditor.records import Parser, ParserStep

FILTERS = {
    "regex": "regex",
    "multi_choice_regex": "multi_choice_regex",
    "map": "map",
    "lowercase": "lowercase",
    "uppercase": "uppercase",
    "remove_whitespace": "remove_whitespace",
    "take_first": "take_first",
    "take_first_k": "take_first",
    "majority_vote": "take_first",
}
"""The filters that are read, by the step that does their work. Of one response, the last three take that one."""

_METRIC = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")


class _Function(str):
    """A `!function module.name` of a task file: Python code, which is never run from there."""


class _Loader(yaml.SafeLoader):
    """Safe YAML in which an unknown tag is only its text, and nothing refers to anything."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        # An alias can make a file endless, or a few lines of it gigabytes.
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not read", problem_mark=event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def _tagged(loader: _Loader, _: str, node: yaml.Node) -> _Function:
    return _Function(getattr(node, "value", ""))


_Loader.add_multi_constructor("!", _tagged)


def read(path: Path) -> tuple[tuple[str, str, tuple[ParserStep, ...]], ...]:
    """(name, summary, steps) of every filter of a file. Raises FileError with the line, where it is known."""
    text, tree = _load(path)
    told = tree.get("filter_list") if isinstance(tree, dict) else tree
    if not isinstance(told, list) or not told:
        hint = "filter_list is a list of {name, filter: [{function, ...}]}"
        if isinstance(tree, dict) and "include" in tree:
            hint = f"it may be in the file that this one includes: {tree['include']}"
        raise FileError(path, "no filter_list", hint)
    ending = ParserStep("exact_match", _metric(tree))
    return tuple(_parser(path, text, number, one, ending) for number, one in enumerate(told))


def _load(path: Path) -> tuple[str, Any]:
    try:
        text = path.read_text("utf-8-sig")
        return text, yaml.load(text, _Loader)
    except OSError as error:
        hint = "a .toml of ours, or a .yaml with lm-evaluation-harness's filter_list"
        raise FileError(path, error.strerror or str(error), hint) from error
    except UnicodeDecodeError as error:
        raise FileError(path, f"not UTF-8: {error.reason} at byte {error.start}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FileError(path, f"not YAML: {error.problem or error}", line=line) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FileError(path, f"not YAML: {error}") from error


def _metric(tree: Any) -> dict[str, Any]:
    """What the task's exact_match ignores, where the file says it."""
    metrics = tree.get("metric_list") if isinstance(tree, dict) else None
    for metric in metrics if isinstance(metrics, list) else ():
        if isinstance(metric, dict) and metric.get("metric") == "exact_match":
            return {key: metric[key] for key in _METRIC if metric.get(key) is not None}
    return {}


def _parser(
    path: Path, text: str, number: int, told: Any, ending: ParserStep
) -> tuple[str, str, tuple[ParserStep, ...]]:
    where = f"filter_list[{number}]"
    if not isinstance(told, dict) or not isinstance(told.get("filter"), list):
        raise FileError(path, f"{where}: no list `filter`", "a filter is {name, filter: [{function, ...}]}")
    name = told.get("name")
    if not isinstance(name, str):
        raise FileError(path, f"{where}: no name")
    steps = tuple(_steps(path, text, f"{where}.filter", told["filter"]))
    return (
        name,
        f"lm-evaluation-harness's filter {name!r} of {path.name}",
        (ParserStep("classify_reply"), *steps, ending),
    )


def _steps(path: Path, text: str, where: str, told: list[Any]) -> Iterator[ParserStep]:
    for number, one in enumerate(told):
        place = f"{where}[{number}].function"
        function = one.get("function") if isinstance(one, dict) else None
        if not isinstance(function, str):
            raise FileError(path, f"{place}: no function", f"known: {', '.join(FILTERS)}")
        if isinstance(function, _Function):
            message = f"{place}: !function {function} is Python code, which is not run from a file"
            raise FileError(
                path, message, "--parsers python:package.module:function runs one", line=_line(text, function)
            )
        if function not in FILTERS:
            error = unknown("filter", function, FILTERS)
            raise FileError(path, f"{place}: {error.message}", error.hint, line=_line(text, function))
        name = FILTERS[function]
        options = {key: value for key, value in one.items() if key != "function"}
        yield ParserStep(name, {} if name == "take_first" else options)


def _line(text: str, function: str) -> int | None:
    match = re.search(rf"function[\"']?\s*:.*{re.escape(function)}", text)
    return text.count("\n", 0, match.start()) + 1 if match else None


def parsers(path: Path, digest: Any) -> tuple[Parser, ...]:
    """The parsers of a file; `digest` makes a digest of what is told. Raises FileError."""
    return tuple(
        Parser(name, 1, summary, steps, (), str(path), digest([name, 1, steps])) for name, summary, steps in read(path)
    )
