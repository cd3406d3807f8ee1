"""A summary as GitHub-flavoured markdown, for a CI step's summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from auditor.figures import CellRow, EnforcementRow, Interval, Summary
from auditor.report import noise
from auditor.report.card import Card, CardRow, Span, cards
from auditor.report.cells import by_wrapper
from auditor.report.enforced import contrasts, difference
from auditor.report.headline import headline
from auditor.report.parsers import unread
from auditor.report.ranges import sentence
from auditor.report.text import DASH, count, inline, interval, known, percent, rate, signed, signed_interval

# An underscore inside a word is no emphasis; escaping it there would only hurt readers of the raw text.
_SPECIAL = re.compile(r"[\\`*\[\]{}|~#!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def summary_markdown(summary: Summary) -> str:
    """The verdict, what enforcement does, every model's reporting card and its table of wrappers."""
    parts = [f"## Format audit: {escape(summary.run.name)}", *map(escape, headline(summary))]
    parts += [escape(said) for said in (noise.floor(summary), sentence(summary)) if said]
    parts += _enforcement(summary)
    for card in cards(summary):
        parts += [f"### {escape(card.subject.label)}", _facts(summary, card), _card_table(card)]
        parts += [escape(note) for note in [unread(card.rows)] if note]
        parts.append(_wrapper_table([cell for cell in summary.cells if card.subject.owns(cell)]))
    parts += [f"> {escape(caveat.message)}" for caveat in summary.warnings]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """`text` as one line that markdown and HTML leave alone."""
    html = inline(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(lambda match: "\\" + match[0], html).replace("$", "<span>$</span>")


def _enforcement(summary: Summary) -> list[str]:
    found = contrasts(summary)
    if not found:
        return []
    told = "\n".join(
        f"- {escape(one.subject.label)}, **{one.row.label}**: {escape(one.sentence)} Canary: {escape(one.row.canary)}"
        for one in found
    )
    head = (
        "model",
        "arm",
        "label",
        "parser",
        "wrappers",
        "n",
        "readable",
        "change",
        "accuracy",
        "change",
        "PSI",
        "FSI",
    )
    return ["### Enforced while decoding", told, _table(head, [_enforced_line(row) for row in summary.enforcement])]


def _enforced_line(row: EnforcementRow) -> tuple[str, ...]:
    return (
        escape(row.model),
        escape(row.arm),
        row.label,
        escape(row.parser),
        count(len(row.wrappers)),
        f"{count(row.n_without)} to {count(row.n)}",
        _from_to(row.parseability_without, row.parseability),
        _change(row.parseability_without, row.parseability, row.parseability_change_ci),
        _from_to(row.accuracy_without, row.accuracy),
        _change(row.accuracy_without, row.accuracy, row.accuracy_change_ci),
        _from_to(row.psi_without, row.psi),
        _from_to(row.fsi_without, row.fsi),
    )


def _from_to(without: float | None, with_: float | None) -> str:
    return f"{rate(without)} to {rate(with_)}" if known(without) or known(with_) else DASH


def _change(without: float | None, with_: float | None, ci: Interval | None) -> str:
    change = difference(with_, without)
    return DASH if change is None else f"{signed(change)} {signed_interval(ci)}"


def _facts(summary: Summary, card: Card) -> str:
    spread = summary.token_spread
    return (
        f"Wrappers (F = {len(card.wrappers)}): {', '.join(map(escape, card.wrappers))}. "
        f"Prompt tokens: {_tokens(card.prompt_tokens)}; token spread: median {percent(spread.median)}, "
        f"{percent(spread.share_within_5pct)} of groups within 5 %."
    )


def _card_table(card: Card) -> str:
    head = ("parser", "FSI", "interval, as in the paper", "PSI", "nFSI", "parseability", "accuracy")
    return _table(head, [_card_line(row) for row in card.rows])


def _card_line(row: CardRow) -> tuple[str, ...]:
    scores = row.scores
    return (
        escape(row.parser),
        f"**{rate(scores.fsi)}**",
        interval(scores.fsi_ci_paper),
        rate(scores.psi),
        rate(scores.nfsi),
        _span(row.parseability),
        _span(row.accuracy),
    )


def _wrapper_table(cells: Sequence[CellRow]) -> str:
    head = ("wrapper", "parser", "accuracy", "parseability", "n", "missing", "cut by the limit")
    return _table(head, [_cell_line(cell, row.lossy) for row in by_wrapper(cells) for cell in row.cells])


def _cell_line(cell: CellRow, lossy: bool) -> tuple[str, ...]:
    missing = f"{count(cell.missing)} (more than 1 %)" if lossy else count(cell.missing)
    return (
        escape(cell.wrapper),
        escape(cell.parser),
        rate(cell.accuracy),
        rate(cell.parseability),
        count(cell.n),
        missing,
        count(cell.truncated),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---" if name in ("wrapper", "parser", "model", "arm", "label") else "---:" for name in head]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _span(span: Span | None) -> str:
    return DASH if span is None else f"{rate(span.mean)} {interval((span.low, span.high))}"


def _tokens(span: Span | None) -> str:
    if span is None:
        return DASH
    return f"{span.low:,.0f} to {span.high:,.0f} by wrapper, mean {span.mean:,.1f}"
