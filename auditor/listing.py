"""`auditor list`: what there is, and one thing explained."""

from __future__ import annotations

from pathlib import Path

from auditor import catalogue, tasks
from auditor.endpoints import PROVIDERS
from auditor.errors import unknown
from auditor.parsing import STEPS, canonical, explain
from auditor.records import Reply
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


def show(what: str, name: str) -> str:
    """One of them, explained. Raises UsageError."""
    match what:
        case "wrappers":
            return Path(catalogue.find("wrappers", name)).read_text("utf-8").rstrip()
        case "parsers":
            return _parser(name)
        case "tasks":
            return _task(name)
        case _:
            raise unknown("kind to show", what, ("wrappers", "parsers", "tasks"))


def _parser(name: str) -> str:
    parser = catalogue.read_parser(catalogue.find("parsers", name))
    lines = [f"{parser.name} (version {parser.version}): {parser.summary}", "", "Steps:"]
    for step in parser.steps:
        doc = " ".join((STEPS[step].__doc__ or "").split())
        lines.append(f"  {step}: {doc}")
    for example in parser.examples[:3]:
        lines += ["", f"On {example.reply!r} ({example.contract}, {example.answer_type}):"]
        reply = Reply(example.reply, example.finish_reason)
        for step, did in explain(parser, reply, catalogue.example_contract(example), catalogue.example_space(example)):
            lines.append(f"  {step}: {did}")
    return "\n".join(lines)


def _task(name: str) -> str:
    task = tasks.load_task(name, 0, {}, canonical)
    item = task.items[0]
    lines = [f"{task.name}: {len(task.items)} items, {item.space.type} answers", "", f"First item, {item.id}:"]
    lines += [*item.parts, item.question]
    lines += [f"{label}. {text}" for label, text in zip(item.space.labels, item.space.texts, strict=False)]
    return "\n".join([*lines, f"answer: {item.gold}"])
