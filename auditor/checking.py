"""`auditor check`: validate files and runs, and run the examples in them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from auditor import catalogue, prepare, reading, settings, tasks
from auditor.errors import AuditorError
from auditor.parsing import Reader, canonical, compile_parser
from auditor.records import AnswerSpace, Parser, ParserExample, Reply, Task, Wrapper, WrapperExample
from auditor.store import FILE, Store


class Finding(Struct, frozen=True):
    """What was found about one file."""

    path: str
    ok: bool
    message: str


def check(paths: Sequence[Path], cases: Sequence[str]) -> Iterator[Finding]:
    """Every file's findings; our own catalogue where none is named."""
    columns = {name for case in cases for item in _task(case).items for name in item.columns}
    for path in paths or _ours():
        try:
            yield from _check(path, columns)
        except AuditorError as error:
            where, message = _split(path, error.message)
            yield Finding(where, False, f"{message} ({error.hint})" if error.hint else message)


def _split(path: Path, message: str) -> tuple[str, str]:
    """`path[:line]` and the rest, where a message starts with them."""
    match = re.match(rf"({re.escape(str(path))}(?::\d+)?): ", message)
    return (match[1], message[match.end() :]) if match else (str(path), message)


def _ours() -> list[Path]:
    return [catalogue.find(kind, name) for kind in ("wrappers", "parsers") for name in catalogue.names(kind)]


def _check(path: Path, columns: set[str]) -> Iterator[Finding]:
    if path.is_dir():
        yield from _run(path)
    elif path.suffix == ".toml":
        yield from _toml(path, columns)
    elif path.suffix in (".yaml", ".yml"):
        for parser, _ in reading.readers([str(path)]):
            yield Finding(str(path), True, f"parser {parser.name}, {len(parser.steps)} steps")
    else:
        task = _task(str(path))
        yield Finding(str(path), True, f"task of {len(task.items)} items, {task.items[0].space.type} answers")


def _task(name: str) -> Task:
    return tasks.load_task(name, 0, {}, canonical)


def _toml(path: Path, columns: set[str]) -> Iterator[Finding]:
    try:
        keys = set(tomllib.loads(path.read_text("utf-8")))
    except (OSError, ValueError):
        keys = set()  # the reader below says what is wrong
    if "steps" in keys:
        parser = catalogue.read_parser(path)
        yield _examples(path, f"parser {parser.name}", _parser_faults(parser), len(parser.examples))
    elif keys & {"models", "tasks", "items", "seeds", "parsers", "preset", "enforce", "endpoint"}:
        built, _ = settings.build({}, str(path))
        prepare.prepare(built)
        yield Finding(str(path), True, f"study of {len(built.models)} models, {len(built.tasks)} tasks")
    else:
        for wrapper in catalogue.read_wrapper(path, columns):
            yield _examples(path, f"wrapper {wrapper.name}", _wrapper_faults(wrapper), len(wrapper.examples))


def _examples(path: Path, what: str, faults: Iterable[str], count: int) -> Finding:
    found = list(faults)
    return Finding(str(path), not found, "; ".join(found) if found else f"{what}, {count} examples hold")


def _wrapper_faults(wrapper: Wrapper) -> Iterator[str]:
    strict = compile_parser(catalogue.read_parser(catalogue.find("parsers", "strict")))
    for example in wrapper.examples:
        outcome = strict.read(Reply(example.reply, "stop"), wrapper.contract, _space(example))
        if outcome.value != example.strict:
            said = outcome.value or outcome.reason or outcome.outcome
            yield f"strict reads {example.reply!r} as {said!r}, the example says {example.strict!r}"


def _space(example: WrapperExample) -> AnswerSpace:
    return AnswerSpace(example.answer_type, example.choices)


def _parser_faults(parser: Parser) -> Iterator[str]:
    reader = compile_parser(parser)
    for example in parser.examples:
        fault = _parser_fault(reader, example)
        if fault:
            yield fault


def _parser_fault(reader: Reader, example: ParserExample) -> str | None:
    contract, space = catalogue.example_contract(example), catalogue.example_space(example)
    outcome = reader.read(Reply(example.reply, example.finish_reason), contract, space)
    wrong = [
        f"{name} {got!r}, the example says {wanted!r}"
        for name, got, wanted in (
            ("parsed", outcome.value, example.parsed),
            ("reason", outcome.reason, example.reason or outcome.reason),
            ("ambiguous", outcome.candidates, example.ambiguous or outcome.candidates),
            ("needed", outcome.needed, outcome.needed if example.needed is None else example.needed),
        )
        if got != wanted
    ]
    return f"{example.reply!r}: {'; '.join(wrong)}" if wrong else None


def _run(path: Path) -> Iterator[Finding]:
    with Store(path, writable=False) as store:
        faults = store.verify()
        counted = store.counts()
    said = f"run of {counted['answered']:,} answered and {counted['missing']:,} missing generations, digests hold"
    yield Finding(str(path / FILE), not faults, "; ".join(faults) if faults else said)
