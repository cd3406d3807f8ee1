"""What a tally of extractors found, as plain text that fits 80 columns, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import msgspec

from auditor.report.text import DASH, count, inline, interval, rate
from auditor.tally import LABEL, Agreement, Audit, Comparison, ParserRow, Rung, Share, Tolerance

WIDTH = 80
TOP_REASONS = 3

Line = Sequence[str]


def as_bytes(audit: Audit, suffix: str) -> bytes:
    """A file's content: everything as JSON (a share of nothing is null) where its suffix is `.json`, else the text."""
    if suffix.lower() != ".json":
        return as_text(audit).encode()
    return msgspec.json.format(msgspec.json.encode(audit), indent=2) + b"\n"


def as_text(audit: Audit) -> str:
    """A section for each question, each with a legend; sections without rows are left out."""
    sections = [
        *_outcomes(audit.parsers),
        _reasons(audit.parsers),
        _agreement(audit.agreement),
        *_errors(audit.comparisons),
        _tolerances(audit.tolerances),
        _ladder(audit.ladder),
    ]
    return ("\n\n".join(filter(None, sections)) or "no rows") + "\n"


def _outcomes(parsers: Sequence[ParserRow]) -> Iterator[str]:
    yield _table(
        "Outcomes",
        "Rows by what each parser made of them; correct of the rows with gold.",
        {"parser": -24, "rows": 8, "missing": 8, "parsed": 8, "ambig.": 8, "unpars.": 8, "correct": 16},
        (
            (
                row.parser,
                count(row.rows),
                count(row.missing),
                *(count(share.count) for share in (row.parsed, row.ambiguous, row.unparseable)),
                _of(row.correct, "no gold"),
            )
            for row in parsers
        ),
    )
    yield _table(
        "Shares",
        "Of the rows that are not missing. Intervals here and below: Wilson, 95 %, with\n"
        "rows as independent; several replies to one question make them too narrow.",
        {"parser": -24, "parsed": 8, "95 % interval": 17, "ambig.": 9, "unpars.": 9, "correct": 9},
        (
            (
                row.parser,
                rate(row.parsed.share),
                interval(row.parsed.ci),
                *(rate(share.share) for share in (row.ambiguous, row.unparseable, row.correct)),
            )
            for row in parsers
        ),
    )


def _reasons(parsers: Sequence[ParserRow]) -> str:
    lines = [line for row in parsers if row.reasons for line in _wrapped(row.parser, _top(row.reasons))]
    return _section("Why unparseable", "What stopped each parser, the most frequent reasons first.", lines)


def _wrapped(parser: str, parts: Sequence[str]) -> list[str]:
    # A reason stays with its count: textwrap breaks at plain spaces only.
    whole = ", ".join(part.replace(" ", "\xa0") for part in parts)
    lines = [line.replace("\xa0", " ") for line in textwrap.wrap(whole, WIDTH - 24)]
    return [f"{name:<24}{line}" for name, line in zip_longest([_name(parser, 23)], lines, fillvalue="")]


def _top(reasons: dict[str, int]) -> list[str]:
    shown = list(reasons.items())[:TOP_REASONS]
    rest = sum(reasons.values()) - sum(number for _, number in shown)
    others = [f"other reasons {count(rest)}"] if rest else []
    return [*(f"{reason} {count(number)}" for reason, number in shown), *others]


def _agreement(pairs: Sequence[Agreement]) -> str:
    return _table(
        "Agreement",
        "Rows on which two parsers give the same value, or both none.",
        {"parser": -20, "and": -20, "same": 15, "share": 8, "95 % interval": 17},
        ((pair.one, pair.other, *_shown(pair.same)) for pair in pairs),
    )


def _errors(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for reference in dict.fromkeys(each.reference for each in comparisons):
        yield _table(
            f"Errors against {'hand labels' if reference == LABEL else reference}",
            "False positive: a value where the reference has none, or has another one.\n"
            "False negative: no value where the reference has one. Of the rows both read.\n"
            "Credit wrongly given: correct where the reference is not; withheld: the other\n"
            "way round. Of the rows both read and whose gold is known.",
            {"parser": -20, "error": -22, "count": 13, "share": 8, "95 % interval": 17},
            (line for each in comparisons if each.reference == reference for line in _error_lines(each)),
        )


def _error_lines(each: Comparison) -> Iterator[Line]:
    yield each.parser, "false positive", *_shown(each.false_positive)
    yield "", "  another value", *_shown(each.other_value)
    yield "", "false negative", *_shown(each.false_negative)
    if each.credit_given.n:
        yield "", "credit wrongly given", *_shown(each.credit_given)
        yield "", "credit withheld", *_shown(each.credit_withheld)


def _tolerances(tolerances: Sequence[Tolerance]) -> str:
    return _table(
        "What each tolerance of normalized gains",
        "Replies parsed with it; those that needed no other one, lost without it; and\n"
        "how many of these are correct, of those with gold.",
        {"tolerance": -24, "needed": 10, "only this one": 16, "of these correct": 20},
        ((each.name, count(each.needed), count(each.only), _of(each.only_correct)) for each in tolerances),
    )


def _ladder(ladder: Sequence[Rung]) -> str:
    return _table(
        "From strict to normalized",
        "What is parsed, and what correct of the rows with gold, tolerating no more.",
        {"tolerated": -34, "parsed": 15, "share": 8, "correct": 15, "share ": 8},
        (
            (rung.name, _of(rung.parsed), rate(rung.parsed.share), _of(rung.correct), rate(rung.correct.share))
            for rung in ladder
        ),
    )


def _shown(share: Share) -> Line:
    return _of(share), rate(share.share), interval(share.ci)


def _of(share: Share, nothing: str = DASH) -> str:
    return f"{count(share.count)}/{count(share.n)}" if share.n else nothing


def _table(title: str, legend: str, columns: dict[str, int], lines: Iterable[Line]) -> str:
    """`columns`: heading and width, negative for text, which stands on the left and is cut."""
    shown = [_line(line, columns.values()) for line in lines]
    return _section(title, legend, [_line(tuple(columns), columns.values()), *shown] if shown else [])


def _line(fields: Line, widths: Iterable[int]) -> str:
    cells = (
        f"{_name(field, -width - 1):<{-width}}" if width < 0 else f"{field.strip():>{width}}"
        for field, width in zip(fields, widths, strict=True)
    )
    return "".join(cells).rstrip()


def _section(title: str, legend: str, lines: Sequence[str]) -> str:
    return "\n".join([title, textwrap.indent(legend, "  "), *lines]) if lines else ""


def _name(text: str, width: int) -> str:
    """A name cut in its middle: names of one package differ at their ends."""
    shown = inline(text)
    if len(shown) <= width:
        return shown
    head = (width - 1) // 3
    return f"{shown[:head]}…{shown[head + 1 - width :]}"
