"""A summary for a terminal, or for a pipe: the console decides about colour and width, and 80 columns are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from auditor.figures import CellRow, EnforcementRow, Summary
from auditor.report import noise
from auditor.report.card import Card, CardRow, Span, cards, primary
from auditor.report.cells import WrapperRows, by_wrapper, reason_tables
from auditor.report.enforced import MEANINGS, under
from auditor.report.headline import headline
from auditor.report.parsers import unread
from auditor.report.ranges import sentence
from auditor.report.text import DASH, count, inline, interval, known, plural, rate

NAME_WIDTH = 18
PARSER_WIDTH = 10
PARSERS_PER_TABLE = 3
TOP_REASONS = 3


def print_summary(summary: Summary, console: Console, parser: str | None = None) -> None:
    """The verdict; what enforcement does; per model its card and a table of wrappers; the most frequent reasons.
    `parser` leaves out the others."""
    parsers = [name for name in summary.parsers if parser in (None, name)]
    for said in (*headline(summary), noise.floor(summary), sentence(summary)):
        if said:
            console.print(Text(inline(said)))
    _print_enforcement(under(summary, parser or primary(summary.parsers)), console)
    for card in cards(summary):
        _print_model(summary, card, parsers, console)
    _print_reasons(summary, parsers, console)


def _print_enforcement(rows: Sequence[EnforcementRow], console: Console) -> None:
    """A line for each model and enforced arm, and what its label means where that spoils the comparison."""
    if not rows:
        return
    table = _table("model", "enforced", "label", "readable", "accuracy", "PSI")
    for row in rows:
        table.add_row(
            _name(row.model),
            Text(_short(row.arm, NAME_WIDTH)),
            row.label,
            _change(row.parseability_without, row.parseability),
            _change(row.accuracy_without, row.accuracy),
            _change(row.psi_without, row.psi),
        )
    console.print()
    console.print(Text(f"Enforced while decoding, read by {inline(rows[0].parser)}", style="bold"))
    console.print(table)
    for label in dict.fromkeys(row.label for row in rows if row.label != "verified"):
        console.print(Text(f" {label}: {MEANINGS[label]}", style="dim"))


def _change(without: float | None, with_: float | None) -> str:
    return f"{rate(without, 2)} → {rate(with_, 2)}" if known(without) or known(with_) else DASH


def _print_model(summary: Summary, card: Card, parsers: Sequence[str], console: Console) -> None:
    console.print()
    console.print(Text(inline(card.subject.label), style="bold"), Text(_facts(card)))
    console.print(_card_table([row for row in card.rows if row.parser in parsers]))
    if note := unread([row for row in card.rows if row.parser in parsers]):
        console.print(Text(f" {inline(note)}", style="dim"))
    rows = by_wrapper([cell for cell in summary.cells if card.subject.owns(cell)])
    for start in range(0, len(parsers), PARSERS_PER_TABLE):
        console.print(_wrapper_table(rows, parsers[start : start + PARSERS_PER_TABLE]))
    notes = "accuracy / share readable" + (f", averaged over {len(card.tasks)} tasks" if len(card.tasks) > 1 else "")
    marked = any(row.lossy for row in rows)
    console.print(Text(f" {notes}{'; ! more than 1 % missing' if marked else ''}", style="dim"))


def _facts(card: Card) -> str:
    tokens = card.prompt_tokens
    told = DASH if tokens is None else f"{tokens.low:,.0f}-{tokens.high:,.0f}"
    return f"F = {plural(len(card.wrappers), 'wrapper')}, {plural(len(card.tasks), 'task')}, prompt tokens {told}"


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        # Where the width does not do, only a column that may wrap gives way: a name, never a number.
        text = name in ("parser", "wrapper", "model", "enforced", "label")
        heading = Text(_short(name, PARSER_WIDTH))
        table.add_column(
            heading, justify="left" if text else "right", overflow="ellipsis", no_wrap=not text or name == "label"
        )
    return table


def _card_table(rows: Sequence[CardRow]) -> Table:
    table = _table("parser", "FSI", "interval", "PSI", "accuracy", "readable")
    for row in rows:
        scores = row.scores
        table.add_row(
            _name(row.parser),
            Text(rate(scores.fsi), style="bold"),
            interval(scores.fsi_ci_paper, 2),
            rate(scores.psi),
            _span(row.accuracy),
            _span(row.parseability),
        )
    return table


def _wrapper_table(rows: Sequence[WrapperRows], parsers: Sequence[str]) -> Table:
    table = _table("wrapper", *parsers, "n", "missing", "cut")
    for row in rows:
        by_parser = {cell.parser: cell for cell in row.cells}
        any_cell = row.cells[0]
        table.add_row(
            _name(row.wrapper),
            *(_rates(by_parser.get(parser)) for parser in parsers),
            count(any_cell.n),
            f"{count(any_cell.missing)}{' !' if row.lossy else ''}",
            count(any_cell.truncated),
        )
    return table


def _rates(cell: CellRow | None) -> str:
    return DASH if cell is None else f"{rate(cell.accuracy, 2)}/{rate(cell.parseability, 2)}"


def _span(span: Span | None) -> str:
    return DASH if span is None else f"{rate(span.mean, 2)} {interval((span.low, span.high), 2)}"


def _print_reasons(summary: Summary, parsers: Sequence[str], console: Console) -> None:
    console.print()
    for table in reason_tables(summary):
        if table.parser not in parsers or not table.total:
            continue
        counts: Counter[str] = Counter()
        for row in (row for group in table.groups for row in group.rows):
            counts[row.reason] += row.total
        told = ", ".join(f"{reason} {count(number)}" for reason, number in counts.most_common(TOP_REASONS))
        others = counts.total() - sum(number for _, number in counts.most_common(TOP_REASONS))
        rest = f", and {count(others)} for other reasons" if others else ""
        console.print(Text(f"Not read by {inline(table.parser)}: {inline(told)}{rest}"))


def _name(text: str) -> Text:
    return Text(_short(text, NAME_WIDTH))


def _short(text: str, width: int) -> str:
    shown = inline(text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"
