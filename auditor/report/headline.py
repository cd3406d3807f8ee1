"""The verdict in plain words, computed from a summary; and why a value is not there."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from auditor.records import ModelRow, RankingRow, Summary
from auditor.report.card import Card, CardRow, cards, pair, primary
from auditor.report.text import count, known, plural, rate

NAMED = 3
"""Up to this many models are told apart in the verdict."""


class Cause(Struct, frozen=True):
    """Why a field is null; `number` is that of the warning that says so, from 1, or 0 where none does."""

    number: int
    message: str


def why(summary: Summary, field: str) -> Cause:
    """The first warning that names `field` (`models.fsi_ci_paper`, or the last part alone)."""
    name = field.rpartition(".")[2]
    for wanted in ({field, name}, {name}):
        for number, caveat in enumerate(summary.warnings, start=1):
            told = {part.replace("[]", "") for part in caveat.fields}
            if wanted & (told if field in wanted else {part.rpartition(".")[2] for part in told}):
                return Cause(number, caveat.message)
    return Cause(0, "not computed or not recorded in this run")


def headline(summary: Summary) -> tuple[str, ...]:
    """Sentences for the top of a report: how far accuracy and readability move, which model is first, what is
    missing."""
    found = cards(summary)
    if not found:
        return ("Nothing was measured.",)
    moves = _moves(summary, found)
    return tuple(part for part in (*moves, _first_place(summary), _missing(summary)) if part)


def _moves(summary: Summary, found: Sequence[Card]) -> tuple[str, ...]:
    first, *second = pair(summary.parsers)
    if len(found) > NAMED:
        return (_move_of_many(found, first),)
    scored = [(card, _row(card, first).scores) for card in found if known(_row(card, first).scores.fsi)]
    told = [_move(card, scores, first) for card, scores in scored[:1]]
    told += [_also(card, scores) for card, scores in scored[1:]]
    told += [_unknown(summary, card) for card in found if not known(_row(card, first).scores.fsi)]
    return (" ".join(told), _adjusted(scored), *(_again(found, parser) for parser in second))


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
    values = [(card.subject.label, rate(scores.fsi_star, 2)) for card, scores in scored if known(scores.fsi_star)]
    if not values:
        return ""
    return f"With what chance alone would move taken off, FSI* is {_each(values, len(scored))}."


def _move_of_many(found: Sequence[Card], parser: str) -> str:
    scored = [(row.scores.fsi, row.scores.psi, card) for card in found if known((row := _row(card, parser)).scores.fsi)]
    if not scored:
        return f"How far accuracy moves between wrappers cannot be told for any of {len(found)} models."
    fsi = sorted(one for one, _, _ in scored if one is not None)
    psi = sorted(one for _, one, _ in scored if one is not None)
    largest = next(card.subject.label for one, _, card in scored if one == fsi[-1])
    wrappers = max(len(card.wrappers) for card in found)
    readable = f" and the share of readable replies by {rate(psi[0], 2)} to {rate(psi[-1], 2)} (PSI)" if psi else ""
    return (
        f"Across {plural(wrappers, 'wrapper')}, the accuracy of {len(scored)} models moves by {rate(fsi[0], 2)} to "
        f"{rate(fsi[-1], 2)} (FSI; most for {largest}){readable} {_under(parser)}."
    )


def _again(found: Sequence[Card], parser: str) -> str:
    rows = [(card.subject.label, _row(card, parser).scores) for card in found]
    told = [(label, scores) for label, scores in rows if known(scores.fsi) and known(scores.psi)]
    if not told:
        return ""
    values = [(label, f"FSI {rate(scores.fsi, 2)} and PSI {rate(scores.psi, 2)}") for label, scores in told]
    return f"Read by the {parser} parser, the same replies give {_each(values, len(rows))}."


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


def _first_place(summary: Summary) -> str:
    parser = primary(summary.parsers)
    arms = dict.fromkeys(row.arm for row in summary.rankings)
    for arm in arms:
        rows = [row for row in summary.rankings if (row.parser, row.arm) == (parser, arm) and len(row.models) > 1]
        if first_changes(rows):
            under: dict[str, list[str]] = {}
            for row in rows:
                under.setdefault(" and ".join(leaders(row)), []).append(row.wrapper)
            told = "; ".join(f"{model} under {', '.join(wrappers)}" for model, wrappers in under.items())
            return f"Which model comes first depends on the wrapper: {told}."
    return ""


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
