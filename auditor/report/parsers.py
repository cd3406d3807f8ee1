"""What the parser changes, in words: FSI and PSI of the same replies, and the order of models."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from auditor.figures import OrderChangeRow, Summary
from auditor.report.card import Card, CardRow, cards, leading, pair, subjects
from auditor.report.text import known, plural, rate

NAMED = 3
"""Up to this many models, pairs of models or parsers are told apart in a sentence."""
LISTED = 30
"""So many order changes a report lists."""


def effect(summary: Summary) -> tuple[str, ...]:
    """Sentences on what another parser makes of the same replies; empty with one parser."""
    if len(summary.parsers) < 2:
        return ()
    return tuple(part for part in (*scores(summary, summary.parsers), order(summary)) if part)


def scores(summary: Summary, parsers: Collection[str]) -> tuple[str, ...]:
    """A sentence for each leading model on its FSI and PSI under these parsers; with many models one, on that which
    differs most, under all parsers."""
    leads = leading(subjects(summary))
    found = [card for card in cards(summary) if card.subject in leads]
    if len(found) > NAMED:
        most = max(found, key=_difference)
        if _difference(most) < 0.005:
            return ()
        return (
            f"Of {len(found)} models, the parser moves FSI of {most.subject.label} most.",
            _scores(most, summary.parsers),
        )
    return tuple(told for card in found if (told := _scores(card, parsers)))


def order(summary: Summary) -> str:
    """A sentence on leading models whose order is opposite under two parsers; empty where there are none."""
    arms = {subject.arm for subject in leading(subjects(summary))}
    changes = _one_each([row for row in summary.order_changes if row.arm in arms], pair(summary.parsers))
    if not changes:
        return ""
    if len(changes) == 1:
        (row,) = changes
        return (
            f"The order of {row.model_a} and {row.model_b} turns round between {row.parser_a} and {row.parser_b} "
            f"(apparent: no test)."
        )
    named = [f"{row.model_a} and {row.model_b} between {row.parser_a} and {row.parser_b}" for row in changes[:NAMED]]
    rest = f", and {len(changes) - NAMED} more" if len(changes) > NAMED else ""
    pairs = plural(len(changes), "pair")
    return f"The order of {pairs} of models turns round with the parser (apparent: no test): {'; '.join(named)}{rest}."


def unread(rows: Sequence[CardRow]) -> str:
    """Which parsers could read hardly anything of a model, for the foot of its card; empty where all could."""
    names = [row.parser for row in rows if row.unread]
    return f"{', '.join(names)} could read hardly a reply, if any: an FSI of 0 means nothing there." if names else ""


def _one_each(rows: Sequence[OrderChangeRow], preferred: Collection[str]) -> list[OrderChangeRow]:
    """One change for each two models, between the preferred parsers where there is one."""
    found: dict[tuple[str, frozenset[str]], OrderChangeRow] = {}
    for row in sorted(rows, key=lambda row: {row.parser_a, row.parser_b} != set(preferred)):
        found.setdefault((row.arm, frozenset((row.model_a, row.model_b))), row)
    return list(found.values())


def _difference(card: Card) -> float:
    values = [row.scores.fsi for row in card.rows if row.scores.fsi is not None and not row.unread]
    return max(values) - min(values) if values else -1.0


def _scores(card: Card, parsers: Collection[str]) -> str:
    asked = [row for row in card.rows if row.parser in parsers]
    scored = [row for row in asked if known(row.scores.fsi)]
    rows = scored or [row for row in asked if known(row.scores.parseability)]
    if len(rows) > NAMED:
        rows = _ends(rows)
    return "; ".join(_clauses(rows, card.subject.label, _fsi if scored else _readable)) + "." if rows else ""


def _ends(rows: Sequence[CardRow]) -> list[CardRow]:
    """The first that could not read, and those with the least and the largest FSI."""
    read = sorted(
        (row for row in rows if not row.unread), key=lambda row: (row.scores.fsi or 0.0, row.scores.parseability or 0.0)
    )
    shown = [*[row for row in rows if row.unread][:1], *read[:1], *read[1:][-1:]]
    return [row for row in rows if row in shown]


def _clauses(rows: Sequence[CardRow], label: str, figure: Callable[[CardRow, str], str]) -> Iterator[str]:
    for row in rows:
        read, whose = ("Read", f" of {label}") if row is rows[0] else ("read", "")
        yield f"{read} by {row.parser}, {figure(row, whose)}"


def _fsi(row: CardRow, whose: str) -> str:
    return f"FSI{whose} is {rate(row.scores.fsi, 2)}{_beside(row)}"


def _readable(row: CardRow, whose: str) -> str:
    return f"the share of readable replies{whose} is {rate(row.scores.parseability, 2)}"


def _beside(row: CardRow) -> str:
    if row.unread:
        nothing = row.parseability is not None and row.parseability.high == 0
        return " because nothing could be read" if nothing else ", where hardly a reply could be read"
    return f" and PSI {rate(row.scores.psi, 2)}" if known(row.scores.psi) else ""
