"""The FSI paper's reporting card (section 6), one per model and arm, from a summary.

Per task the card takes the least and the largest value over wrappers, then averages over tasks; so the largest minus
the least accuracy is the macro FSI, and the same holds for parseability and PSI.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from auditor.figures import CellRow, ModelRow, SensitivityRow, Summary
from auditor.report.text import known

HARDLY = 0.05
"""A share of readable replies up to which a range of accuracy says nothing."""


class Subject(Struct, frozen=True):
    """What a card is about: a model under one arm."""

    model: str
    arm: str

    @property
    def label(self) -> str:
        """The model's name, with enforcement and limit where the arm names them."""
        return f"{self.model} ({self.arm_words})" if self.arm_words else self.model

    @property
    def enforce(self) -> str:
        """What is enforced: `none`, `json_schema`, ..."""
        return self.arm.partition("@")[0]

    @property
    def arm_words(self) -> str:
        """`json_schema, at most 256 tokens`; empty for the arm `none`."""
        limit = self.arm.partition("@")[2]
        held = [self.enforce] if self.enforce != "none" else []
        return ", ".join([*held, *([f"at most {limit} tokens"] if limit else [])])

    def owns(self, row: CellRow | ModelRow | SensitivityRow) -> bool:
        """Whether a row is about this model and arm."""
        return row.model == self.model and row.arm == self.arm


class Span(Struct, frozen=True):
    """The least, mean and largest value over wrappers."""

    low: float
    mean: float
    high: float


class CardRow(Struct, frozen=True):
    """One parser's line of a card."""

    parser: str
    scores: ModelRow
    accuracy: Span | None
    parseability: Span | None
    unread: bool
    """Under its best wrapper at most one reply in twenty could be read: FSI is near 0 by default."""


class Card(Struct, frozen=True):
    """A model's card. `prompt_tokens` are means per wrapper, over all its generations."""

    subject: Subject
    wrappers: tuple[str, ...]
    tasks: tuple[str, ...]
    prompt_tokens: Span | None
    rows: tuple[CardRow, ...]


def subjects(summary: Summary) -> tuple[Subject, ...]:
    """Every (model, arm) of the summary, in the order of its cells."""
    found = [Subject(cell.model, cell.arm) for cell in summary.cells]
    found += [Subject(row.model, row.arm) for row in summary.models]
    return tuple(dict.fromkeys(found))


def cards(summary: Summary) -> tuple[Card, ...]:
    """The cards of all models."""
    return tuple(_card(summary, subject) for subject in subjects(summary))


def leading(found: Sequence[Subject]) -> tuple[Subject, ...]:
    """Of each model the first arm without enforcement, else its first arm: what headlines are about."""
    order = sorted(found, key=lambda subject: subject.enforce != "none")
    first = {subject.model: subject for subject in reversed(order)}
    return tuple(first[model] for model in dict.fromkeys(subject.model for subject in found))


def primary(parsers: Sequence[str]) -> str:
    """The parser that headlines quote: `strict` where it was used, else the first."""
    return "strict" if "strict" in parsers or not parsers else parsers[0]


def telling(summary: Summary) -> str:
    """The parser that sentences are about: the one that headlines quote, unless it could read hardly a reply; then the
    first that could."""
    first = primary(summary.parsers)
    for parser in (first, *(name for name in summary.parsers if name != first)):
        cells = [cell for cell in summary.cells if cell.parser == parser and cell.n != 0]
        if cells and not _hardly_read(cells):
            return parser
    return first


def pair(parsers: Sequence[str]) -> tuple[str, ...]:
    """The two parsers whose gap is shown: `strict` and `normalized` where they were used, else the first two."""
    first = primary(parsers)
    others = sorted((name for name in parsers if name != first), key=lambda name: name != "normalized")
    return (first, *others[:1])


def _card(summary: Summary, subject: Subject) -> Card:
    cells = [cell for cell in summary.cells if subject.owns(cell)]
    return Card(
        subject=subject,
        wrappers=tuple(dict.fromkeys(cell.wrapper for cell in cells)),
        tasks=tuple(dict.fromkeys(cell.task for cell in cells)),
        prompt_tokens=_prompt_tokens(cells),
        rows=tuple(_row(summary, subject, parser) for parser in summary.parsers),
    )


def _row(summary: Summary, subject: Subject, parser: str) -> CardRow:
    scores = [row for row in summary.models if subject.owns(row) and row.parser == parser]
    sensitivity = [row for row in summary.sensitivity if subject.owns(row) and row.parser == parser]
    cells = [cell for cell in summary.cells if subject.owns(cell) and cell.parser == parser]
    parseability = _average(_parseability(cells, row.task) for row in sensitivity)
    return CardRow(
        parser=parser,
        scores=scores[0] if scores else _no_scores(subject, parser),
        accuracy=_average(_accuracy(row) for row in sensitivity),
        parseability=parseability,
        unread=_hardly_read([cell for cell in cells if cell.n != 0]),
    )


def _hardly_read(cells: Sequence[CellRow]) -> bool:
    """Whether even the most readable wrapper, averaged over its tasks, stays below."""
    rates: dict[str, list[float]] = {}
    for cell in cells:
        if cell.parseability is None:
            return False
        rates.setdefault(cell.wrapper, []).append(cell.parseability)
    return bool(rates) and max(sum(tasks) / len(tasks) for tasks in rates.values()) <= HARDLY


def _no_scores(subject: Subject, parser: str) -> ModelRow:
    return ModelRow(subject.model, subject.arm, parser, 0, None, None, None, None, None, None)


def _accuracy(row: SensitivityRow) -> Span | None:
    if row.accuracy_min is None or row.accuracy_mean is None or row.accuracy_max is None:
        return None
    return Span(row.accuracy_min, row.accuracy_mean, row.accuracy_max)


def _parseability(cells: Iterable[CellRow], task: str) -> Span | None:
    return span([cell.parseability for cell in cells if cell.task == task])


def span(values: Sequence[float | None]) -> Span | None:
    """Least, mean and largest; None where a value is unknown or there is none."""
    numbers = [value for value in values if value is not None and known(value)]
    if not numbers or len(numbers) < len(values):
        return None
    return Span(min(numbers), sum(numbers) / len(numbers), max(numbers))


def _average(spans: Iterable[Span | None]) -> Span | None:
    found = [one for one in spans if one is not None]
    if not found:
        return None
    n = len(found)
    return Span(sum(s.low for s in found) / n, sum(s.mean for s in found) / n, sum(s.high for s in found) / n)


def _prompt_tokens(cells: Sequence[CellRow]) -> Span | None:
    one_parser = [cell for cell in cells if cell.parser == cells[0].parser and cell.n]
    per_wrapper = [
        weighted_mean([(cell.prompt_tokens_mean, cell.n) for cell in one_parser if cell.wrapper == wrapper])
        for wrapper in dict.fromkeys(cell.wrapper for cell in one_parser)
    ]
    whole = weighted_mean([(cell.prompt_tokens_mean, cell.n) for cell in one_parser])
    ends = span(per_wrapper)
    return None if ends is None or whole is None else Span(ends.low, whole, ends.high)


def weighted_mean(pairs: Sequence[tuple[float | None, int | None]]) -> float | None:
    """Mean of (value, weight); None where a value with weight is unknown."""
    counted = [(value, weight) for value, weight in pairs if weight]
    values = [value * weight for value, weight in counted if value is not None and known(value)]
    if not values or len(values) < len(counted):
        return None
    return sum(values) / sum(weight for _, weight in counted)
