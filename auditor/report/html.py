"""The audit as one offline HTML file: no script, no outside resource, everything untrusted escaped and made visible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import accumulate

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct

from auditor.figures import CellRow, RankingRow, ReplyExample, SensitivityRow, Summary, WinsRow
from auditor.records import Message
from auditor.report import enforced, fields, noise, parsers, ranges, statistics, text
from auditor.report.card import Card, Subject, cards, leading, pair, primary, subjects, telling
from auditor.report.causes import why
from auditor.report.cells import ReasonTable, WrapperRows, by_task, by_wrapper, reason_tables
from auditor.report.endpoints import places
from auditor.report.glossary import REASONS, TERMS
from auditor.report.headline import first_changes, headline, leaders
from auditor.report.parts import Parts, parts

EXAMPLE_BUDGET = 1_000_000
"""Characters of prompts and replies that a report shows at most, so that it stays a file one can mail."""
ENDS = 3
"""Of a long conversation so many messages are shown at its start and at its end."""


class ModelSection(Struct, frozen=True):
    """One model's cells: averaged over tasks, and per task. `leads`: the arm that its headline is about."""

    card: Card
    rows: tuple[WrapperRows, ...]
    tasks: tuple[tuple[str, tuple[WrapperRows, ...]], ...]
    leads: bool


class ReasonSection(Struct, frozen=True):
    """One parser's reasons, with (reason, replies that share it, examples)."""

    table: ReasonTable
    examples: tuple[tuple[str, int, tuple[ReplyExample, ...]], ...]


class Ranking(Struct, frozen=True):
    """The order of models under every wrapper, for one parser and arm. `usual` is first most often."""

    parser: str
    arm: str
    rows: tuple[RankingRow, ...]
    usual: str
    changes: bool


class SensitivityTable(Struct, frozen=True):
    """The sensitivity rows under one parser; `known` names the columns in which any row has a value."""

    parser: str
    rows: tuple[SensitivityRow, ...]
    parts: tuple[Parts, ...]
    known: frozenset[str]


def render_html(summary: Summary, examples: Sequence[ReplyExample], study: Mapping[str, object]) -> str:
    """The report. `examples` are shown under their parser and reason, in order, up to `EXAMPLE_BUDGET`: pick a
    few of each.
    `study` holds the options to show under "How this was run"."""
    shown = _affordable(examples)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            study={name: text.option(value) for name, value in study.items()},
            headline=headline(summary),
            sections=[_model_section(summary, card) for card in cards(summary)],
            reasons=[_reason_section(table, shown) for table in reason_tables(summary)],
            effect=parsers.effect(summary),
            changes=summary.order_changes[: parsers.LISTED],
            contrasts=enforced.contrasts(summary),
            enforced=enforced.by_parser(summary),
            fields=fields.by_parser(summary),
            ranges=ranges.by_parser(summary),
            places=places(summary),
            left_out=len(examples) - len(shown),
            sensitivity=_sensitivity(summary),
            rankings=_rankings(summary),
            wins=_wins(summary),
            primary=primary(summary.parsers),
            telling=telling(summary),
            under=partial(noise.under, summary),
            pair=pair(summary.parsers),
            why=cache(lambda field: why(summary, field)),
            noise_words=lambda parser: noise.sentences(summary, parser),
            words=statistics,
            terms=TERMS,
            meanings=REASONS,
        )
    )


def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("auditor.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "rate": lambda value, places=3: _minus(text.rate(value, places)),
        "signed": lambda value, places=3: _minus(text.signed(value, places)),
        "signed_interval": lambda value, places=3: _minus(text.signed_interval(value, places)),
        "interval": lambda value, places=3: _minus(text.interval(value, places)),
        "clipped": text.clipped,
        "count": text.count,
        "percent": lambda value: _tight(text.percent(value)),
        "percent0": lambda value: _tight(text.percent(value, 0)),
        "p_value": lambda value: _tight(text.p_value(value)),
        "length": len,
        "arm": lambda arm: Subject("", arm).arm_words,
        "css": _css,
        "block": _block,
        "ends": _ends,
    }
    env.tests |= {"known": _known}
    env.globals |= {
        "leaders": leaders,
        "cause": enforced.cause,
        "difference": enforced.difference,
        "meaning_of": enforced.MEANINGS,
    }
    return env


def _finalize(value: object) -> object:
    """What an expression of the template puts out, before it is escaped: hidden characters are spelled out, so that
    no place can be forgotten."""
    if value is None:
        return text.DASH
    return text.inline(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _block(value: str) -> Markup:
    """Untrusted text for a `pre`: cut in the middle where long, hidden characters marked."""
    head, omitted, tail = text.cut(value)
    if not omitted:
        return _marked(head)
    note = Markup('<span class="cut">… {} characters left out …</span>').format(text.count(omitted))
    return Markup("{}\n{}\n{}").format(_marked(head), note, _marked(tail))


def _marked(value: str) -> Markup:
    if text.visible(value) == value:
        return escape(value)
    parts = (text.visible(char) for char in value)
    return Markup("").join(Markup("<mark>{}</mark>").format(p) if len(p) > 1 else escape(p) for p in parts)


def _known(value: object) -> bool:
    if isinstance(value, tuple):
        return len(value) > 0 and all(_known(part) for part in value if not isinstance(part, str))
    return text.known(value) if isinstance(value, int | float) else value is not None


def _css(value: float) -> str:
    """A share as a length for a style attribute."""
    return f"{min(max(value, 0.0), 1.0) * 100:.4g}%"


def _minus(shown: str) -> str:
    return shown.replace("-", "\N{MINUS SIGN}")


def _tight(shown: str) -> str:
    return shown.replace(" ", "\N{NO-BREAK SPACE}")


def _model_section(summary: Summary, card: Card) -> ModelSection:
    cells: list[CellRow] = [cell for cell in summary.cells if card.subject.owns(cell)]
    return ModelSection(card, by_wrapper(cells), by_task(cells), card.subject in leading(subjects(summary)))


def _affordable(examples: Sequence[ReplyExample]) -> list[ReplyExample]:
    costs = accumulate(_length(example) for example in examples)
    return [example for example, cost in zip(examples, costs, strict=True) if cost <= EXAMPLE_BUDGET]


def _length(example: ReplyExample) -> int:
    texts = [message.content for message in _ends(example.prompt) if message is not None] + [example.text or ""]
    return sum(len(text.visible(part)) for one in texts for part in text.cut(one) if isinstance(part, str))


def _ends(messages: Sequence[Message]) -> tuple[Message | None, ...]:
    """The messages, with None for those in the middle of a long conversation."""
    if len(messages) <= 2 * ENDS:
        return tuple(messages)
    return (*messages[:ENDS], None, *messages[-ENDS:])


def _reason_section(table: ReasonTable, examples: Iterable[ReplyExample]) -> ReasonSection:
    counts: Counter[str] = Counter()
    shown: dict[str, list[ReplyExample]] = {}
    for row in (row for group in table.groups for row in group.rows):
        counts[row.reason] += row.total
    for example in (example for example in examples if example.parser == table.parser):
        shown.setdefault(example.reason, []).append(example)
    counts |= {reason: found[0].count for reason, found in shown.items() if reason not in counts}
    return ReasonSection(table, tuple((reason, n, tuple(shown.get(reason, ()))) for reason, n in counts.most_common()))


def _sensitivity(summary: Summary) -> list[SensitivityTable]:
    tables = []
    for parser in summary.parsers:
        rows = tuple(row for row in summary.sensitivity if row.parser == parser)
        fields = SensitivityRow.__struct_fields__
        has = frozenset(field for field in fields if any(_has(row, field) for row in rows))
        tables.append(SensitivityTable(parser, rows, parts(rows), has))
    return [table for table in tables if table.rows]


def _has(row: SensitivityRow, field: str) -> bool:
    return _known(getattr(row, field))


def _rankings(summary: Summary) -> list[Ranking]:
    groups: dict[tuple[str, str], list[RankingRow]] = {}
    for row in summary.rankings:
        if len(row.models) > 1:
            groups.setdefault((row.parser, row.arm), []).append(row)
    return [
        Ranking(parser, arm, tuple(rows), _usual(rows), first_changes(rows)) for (parser, arm), rows in groups.items()
    ]


def _usual(rows: Sequence[RankingRow]) -> str:
    first = Counter(model for row in rows for model in leaders(row))
    return first.most_common(1)[0][0]


def _wins(summary: Summary) -> dict[tuple[str, str], dict[str, WinsRow]]:
    """(arm, wrapper) -> parser -> its row."""
    table: dict[tuple[str, str], dict[str, WinsRow]] = {}
    for row in summary.wins:
        table.setdefault((row.arm, row.wrapper), {})[row.parser] = row
    return table
