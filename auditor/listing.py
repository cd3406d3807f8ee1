"""`auditor list`: what there is, and one thing explained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from msgspec import Struct

from auditor import catalogue, reading, tasks
from auditor.endpoints import PROVIDERS
from auditor.errors import UsageError, unknown
from auditor.parsing import Reader, canonical, explain, explained
from auditor.records import AnswerSpace, AnswerType, Contract, Parser, ParserExample, Reply
from auditor.report.text import inline
from auditor.study import EMBEDDED

_KINDS = ("wrappers", "parsers", "tasks", "models")


def table(what: str) -> str:
    """Names and one-line summaries. Raises UsageError for an unknown kind."""
    match what:
        case "wrappers":
            ours = [catalogue.read_wrapper(catalogue.find("wrappers", n))[0] for n in catalogue.names("wrappers")]
            rows = [(wrapper.name, f"{wrapper.summary} (set {wrapper.set})") for wrapper in ours]
        case "parsers":
            rows = [(parser.name, parser.summary) for parser in catalogue.parsers(catalogue.names("parsers"))]
        case "tasks":
            rows = [
                *tasks.BUNDLED.items(),
                *tasks.HUB.items(),
                ("<path>", "a .jsonl, .csv or .parquet file of your own"),
                ("<path>.json", "TACRED, from your own copy"),
            ]
        case "models":
            rows = [(EMBEDDED, "the embedded default: runs here, no key"), *_providers()]
        case _:
            raise unknown("kind", what, _KINDS)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {summary}" for name, summary in rows)


def _providers() -> list[tuple[str, str]]:
    return [(f"{name}/<id>", provider.summary) for name, provider in PROVIDERS.items()]


class OneReply(Struct, frozen=True):
    """A reply at hand, and what it is read against."""

    reply: Reply
    contract: Contract
    space: AnswerSpace


def one_reply(text: str, wrapper: str, choices: Sequence[str], answer_type: str | None) -> OneReply:
    """A reply to a wrapper, with choices as `A` or `A=iron`. Raises UsageError."""
    pairs = [one.partition("=") for one in choices]
    labels, texts = tuple(pair[0] for pair in pairs), tuple(pair[2] for pair in pairs)
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise UsageError(f"--choices: {twice[0]!r} stands twice")
    kinds = get_args(AnswerType)
    if answer_type is not None and answer_type not in kinds:
        raise unknown("--answer-type", answer_type, kinds)
    if any(texts) and not all(texts):
        raise UsageError("--choices: some have a text and some have none", "write A,B,C or A=iron,B=copper,C=tin")
    space = AnswerSpace(answer_type or ("choice" if labels else "text"), labels, texts if all(texts) else ())  # type: ignore[arg-type]
    if space.type in ("choice", "label") and not labels:
        raise UsageError(f"--answer-type {space.type} needs --choices", "--choices A,B,C,D")
    return OneReply(Reply(text, "stop"), catalogue.wrappers((wrapper,))[0].contract, space)


def show(what: str, name: str, on: OneReply | None = None) -> str:
    """One of them, explained; a parser on a reply, if there is one. Raises UsageError."""
    match what:
        case "wrappers":
            return Path(catalogue.find("wrappers", name)).read_text("utf-8").rstrip()
        case "parsers":
            return "\n\n".join(_parser(*one, on) for one in reading.readers([name]))
        case "tasks":
            return _task(name)
        case _:
            raise unknown("kind to show", what, ("wrappers", "parsers", "tasks"))


def _parser(parser: Parser, reader: Reader, on: OneReply | None) -> str:
    lines = [f"{parser.name} (version {parser.version}): {parser.summary}", "", "Steps:"]
    docs = explained()
    for step in parser.steps:
        told = "".join(f" {key} = {value!r}" for key, value in step.options.items())
        lines.append(f"  {step.name}{told}: {docs.get(step.name, 'asks the function, in a process of its own')}")
    for one in [on] if on else [_of(example) for example in parser.examples[:3]]:
        lines += ["", f"On {one.reply.text!r} ({one.contract.kind}, {one.space.type}):"]
        lines += [
            f"  {step}: {inline(did)}" for step, did in explain(parser, reader, one.reply, one.contract, one.space)
        ]
    if faults := reader.faults():
        lines += [f"  why: {inline(why)}" for why in faults]
    return "\n".join(lines)


def _of(example: ParserExample) -> OneReply:
    reply = Reply(example.reply, example.finish_reason)
    return OneReply(reply, catalogue.example_contract(example), catalogue.example_space(example))


def _task(name: str) -> str:
    task = tasks.load_task(name, 0, {}, canonical)
    item = task.items[0]
    lines = [f"{task.name}: {len(task.items)} items, {item.space.type} answers", "", f"First item, {item.id}:"]
    lines += [*item.parts, item.question]
    lines += [f"{label}. {text}" for label, text in zip(item.space.labels, item.space.texts, strict=False)]
    return "\n".join([*lines, f"answer: {item.gold}"])
