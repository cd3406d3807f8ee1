"""The verdict in plain words, computed from a summary."""

from __future__ import annotations

from collections.abc import Container, Sequence

from auditor.figures import ModelRow, RankingRow, Summary
from auditor.report import parsers
from auditor.report.card import Card, CardRow, cards, leading, primary, subjects
from auditor.report.causes import why
from auditor.report.enforced import brief
from auditor.report.text import count, known, percent, plural, rate

NAMED = 3
"""Up to this many models are told apart in the verdict."""


def headline(summary: Summary) -> tuple[str, ...]:
    """Sentences for the top of a report: how far accuracy and readability move without enforcement, what another parser
    makes of it, what enforcement does, which model is first, what is missing."""
    leads = leading(subjects(summary))
    found = [card for card in cards(summary) if card.subject in leads]
    if not found:
        return ("Nothing was measured.",)
    arms = {subject.arm for subject in leads}
    told = (
        *_moves(summary, found),
        parsers.order(summary),
        brief(summary),
        _first_place(summary, arms),
        _missing(summary),
    )
    return tuple(part for part in told if part)


def _moves(summary: Summary, found: Sequence[Card]) -> tuple[str, ...]:
    first = primary(summary.parsers)
    unread = [card for card in found if _row(card, first).unread]
    read = [card for card in found if card not in unread]
    told = [_unread(unread, len(found), first)] if unread else []
    scored = [(card, _row(card, first).scores) for card in read if known(_row(card, first).scores.fsi)]
    again = " ".join(parsers.scores(summary, [parser for parser in summary.parsers if parser != first]))
    if len(found) > NAMED:
        return (*told, _move_of_many(scored, len(read), first), again)
    told += [_move(card, scores, first) for card, scores in scored[:1]]
    told += [_also(card, scores) for card, scores in scored[1:]]
    told += [_unknown(summary, card) for card in read if not known(_row(card, first).scores.fsi)]
    return (" ".join(told), _adjusted(scored), again)


def _unread(unread: Sequence[Card], models: int, parser: str) -> str:
    names = ", ".join(card.subject.label for card in unread)
    whose = names if models <= NAMED else f"{len(unread)} of {models} models ({names})"
    spans = [_row(card, parser).parseability for card in unread]
    most = max((span.high for span in spans if span is not None), default=0.0)
    what, share = ("No reply", "") if most == 0 else ("Hardly a reply", f" ({percent(most)} at best)")
    return (
        f"{what} of {whose} was readable {_under(parser)}{share}, whatever the wrapper: an accuracy or FSI of 0 "
        f"means nothing there."
    )


def _move(card: Card, scores: ModelRow, parser: str) -> str:
    over_tasks = f" and on average over {scores.tasks} tasks" if scores.tasks > 1 else ""
    readable = f" and the share of readable replies by {rate(scores.psi, 2)} (PSI)" if known(scores.psi) else ""
    return (
        f"Across {plural(len(card.wrappers), 'wrapper')}{over_tasks}, the accuracy of {card.subject.label} moves by "
        f"{rate(scores.fsi, 2)} (FSI){readable} {_under(parser)}."
    )


def _also(card: Card, scores: ModelRow) -> str:
    readable = f" and its share of readable replies by {rate(scores.psi, 2)}" if known(scores.psi) else ""
    return f"That of {card.subject.label} moves by {rate(scores.fsi, 2)}{readable}."


def _unknown(summary: Summary, card: Card) -> str:
    reason = why(summary, "models.fsi").message.rstrip(".")
    return f"How far the accuracy of {card.subject.label} moves between wrappers cannot be told: {reason}."


def _adjusted(scored: Sequence[tuple[Card, ModelRow]]) -> str:
    values = [
        (card.subject.label, rate(max(0.0, scores.fsi_star or 0.0), 2))
        for card, scores in scored
        if known(scores.fsi_star)
    ]
    if not values:
        return ""
    return f"With what chance alone would move taken off, FSI* is {_each(values, len(scored))}."


def _move_of_many(scored: Sequence[tuple[Card, ModelRow]], models: int, parser: str) -> str:
    if not scored:
        return f"How far accuracy moves between wrappers cannot be told for any of {models} models." if models else ""
    fsi = sorted(scores.fsi for _, scores in scored if scores.fsi is not None)
    psi = sorted(scores.psi for _, scores in scored if scores.psi is not None)
    largest = next(card.subject.label for card, scores in scored if scores.fsi == fsi[-1])
    wrappers = max(len(card.wrappers) for card, _ in scored)
    readable = f" and the share of readable replies by {rate(psi[0], 2)} to {rate(psi[-1], 2)} (PSI)" if psi else ""
    return (
        f"Across {plural(wrappers, 'wrapper')}, the accuracy of {plural(len(scored), 'model')} moves by "
        f"{rate(fsi[0], 2)} to {rate(fsi[-1], 2)} (FSI; most for {largest}){readable} {_under(parser)}."
    )


def _each(values: Sequence[tuple[str, str]], models: int) -> str:
    """The values, with the models' names where there is more than one model."""
    return "; ".join(f"{value} for {label}" if models > 1 else value for label, value in values)


def leaders(row: RankingRow) -> tuple[str, ...]:
    """The models with the largest accuracy; several where they tie."""
    best = max(row.accuracies, default=None)
    return tuple(model for model, accuracy in zip(row.models, row.accuracies, strict=True) if accuracy == best)


def first_changes(rows: Sequence[RankingRow]) -> bool:
    """Whether no single model is first, or shares the first place, under every wrapper of `rows`."""
    return bool(rows) and not frozenset.intersection(*(frozenset(leaders(row)) for row in rows))


def _first_place(summary: Summary, arms: Container[str]) -> str:
    parser = primary(summary.parsers)
    for arm in dict.fromkeys(row.arm for row in summary.rankings if row.arm in arms):
        rows = [row for row in summary.rankings if (row.parser, row.arm) == (parser, arm) and len(row.models) > 1]
        if first_changes(rows):
            under: dict[str, list[str]] = {}
            for row in rows:
                under.setdefault(" and ".join(leaders(row)), []).append(row.wrapper)
            told = "; ".join(f"{model} under {', '.join(wrappers)}" for model, wrappers in under.items())
            return f"Which model comes first depends on the wrapper: {told}{_certainty(summary, parser, arm)}."
    return ""


def _certainty(summary: Summary, parser: str, arm: str) -> str:
    """Whether models that change places do so by more than chance."""
    pairs = [row for row in summary.reversals if (row.parser, row.arm) == (parser, arm)]
    if not pairs:
        return ""
    sure = sum(row.certified for row in pairs)
    if not sure:
        return "; as measured, chance is not ruled out"
    return f"; in {count(sure)} of {plural(len(pairs), 'pair')} of models that change places it is more than chance"


def _missing(summary: Summary) -> str:
    counts = summary.counts
    unasked = counts.planned - counts.answered - counts.missing
    parts = []
    if counts.missing:
        marked = {(c.model, c.task, c.wrapper, c.arm) for c in summary.cells if c.lossy}
        many = f" (more than 1 % in {plural(len(marked), 'cell')})" if marked else ""
        replies = plural(counts.planned, "planned reply", "planned replies")
        parts.append(f"{count(counts.missing)} of {replies} are missing{many} and left out of every rate.")
    if unasked > 0:
        parts.append(f"{count(unasked)} of {count(counts.planned)} planned replies were not asked for.")
    return " ".join(parts)


def _row(card: Card, parser: str) -> CardRow:
    return next(row for row in card.rows if row.parser == parser)


def _under(parser: str) -> str:
    return "as scored elsewhere" if parser == "given" else f"under the {parser} parser"
