"""How extractors compare, tallied row by row: rates, agreement, errors against a reference, what a tolerance gains.

A reference is the `normalized` parser, or labels made by hand. The memory of a tally does not grow with its rows.
Intervals are Wilson's at 95 % and take rows for independent: several replies to one question make them too narrow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import TypeAlias

from msgspec import Struct

from auditor.records import Outcome
from auditor.stats.intervals import wilson

NORMALIZED = "normalized"
STRICT = "strict"
LABEL = "label"

Said: TypeAlias = tuple[Outcome, bool | None]
"""What a parser or a label says of one row, and whether that is correct (None without gold)."""

_RUNGS = 3
"""Tolerances up to which the ladder has a rung of its own."""


class Share(Struct, frozen=True):
    """`count` of `n`; `share` and its interval `ci` are None where n is 0."""

    count: int
    n: int
    share: float | None
    ci: tuple[float, float] | None


class ParserRow(Struct, frozen=True):
    """One parser. The three outcomes are shares of the rows that are not missing, `correct` of those with gold;
    `reasons` are those of `unparseable`, most frequent first."""

    parser: str
    rows: int
    missing: int
    parsed: Share
    ambiguous: Share
    unparseable: Share
    correct: Share
    reasons: dict[str, int]


class Agreement(Struct, frozen=True):
    """On how many rows two parsers give the same value, or both none."""

    one: str
    other: str
    same: Share


class Comparison(Struct, frozen=True):
    """One parser against a reference, over the `n` rows of which both say something.

    `false_positive`: a value where the reference has none (`invented`) or has another (`other_value`).
    `false_negative`: no value where the reference has one. Of the rows with gold, `credit_given`: correct where the
    reference is not; `credit_withheld`: not correct where the reference is.
    """

    parser: str
    reference: str
    n: int
    same: Share
    false_positive: Share
    invented: Share
    other_value: Share
    false_negative: Share
    credit_given: Share
    credit_withheld: Share


class Tolerance(Struct, frozen=True):
    """One name in `needed`: the replies parsed with it, those that needed no other (lost without it), and how many
    of these are correct, of those with gold."""

    name: str
    needed: int
    only: int
    only_correct: Share


class Rung(Struct, frozen=True):
    """What is parsed, and what correct, when no more is tolerated than this."""

    name: str
    parsed: Share
    correct: Share


class Audit(Struct, frozen=True):
    """Everything that a tally found. `labels` counts the labelled rows that are not missing."""

    rows: int
    labels: int
    parsers: tuple[ParserRow, ...]
    agreement: tuple[Agreement, ...]
    comparisons: tuple[Comparison, ...]
    tolerances: tuple[Tolerance, ...]
    ladder: tuple[Rung, ...]


class Tally:
    """Counts that grow by one row at a time."""

    def __init__(self) -> None:
        self._rows = self._labels = 0
        self._parsers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._pairs: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._against: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._names: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._rungs: Counter[tuple[int, str]] = Counter()

    def add(self, said: Mapping[str, Said], label: Said | None = None) -> None:
        """Count what the parsers said of one row, and its hand label where it has one."""
        self._rows += 1
        for parser, (outcome, correct) in said.items():
            self._count(parser, outcome, correct)
        valued = {parser: one for parser, one in said.items() if is_known(one[0])}
        for one, other in combinations(valued, 2):
            pair = self._pairs[one, other]
            pair["n"] += 1
            pair["same"] += valued[one][0].value == valued[other][0].value
        if NORMALIZED in valued:
            self._tolerate(*valued[NORMALIZED])
            self._compare(valued, NORMALIZED, valued[NORMALIZED])
        if label is not None and valued:
            self._labels += 1
            self._compare(valued, LABEL, label)

    def _count(self, parser: str, outcome: Outcome, correct: bool | None) -> None:
        counts = self._parsers[parser]
        counts[outcome.outcome] += 1
        counts["gold"] += correct is not None
        counts["correct"] += correct is True
        if outcome.reason is not None:
            self._reasons[parser][outcome.reason] += 1

    def _compare(self, said: Mapping[str, Said], name: str, reference: Said) -> None:
        right, credited = reference[0].value, reference[1]
        for parser, (outcome, correct) in said.items():
            if parser == name == NORMALIZED:
                continue
            counts = self._against[parser, name]
            counts[_error(outcome.value, right)] += 1
            if correct is not None and credited is not None:
                counts["gold"] += 1
                counts["given"] += correct and not credited
                counts["withheld"] += credited and not correct

    def _tolerate(self, outcome: Outcome, correct: bool | None) -> None:
        if outcome.outcome != "parsed":
            return
        kinds = ["parsed"] + ["gold"] * (correct is not None) + ["correct"] * (correct is True)
        for kind in kinds:
            self._rungs[min(len(outcome.needed), _RUNGS + 1), kind] += 1
        for name in outcome.needed:
            counts = self._names[name]
            counts["needed"] += 1
            if len(outcome.needed) == 1:
                counts.update(kinds)

    def audit(self) -> Audit:
        """Everything counted so far."""
        return Audit(
            self._rows,
            self._labels,
            tuple(self._parser(*each) for each in self._parsers.items()),
            tuple(Agreement(*pair, _share(counts["same"], counts["n"])) for pair, counts in self._pairs.items()),
            tuple(_comparison(*pair, counts) for pair, counts in sorted(self._against.items(), key=self._place)),
            tuple(_tolerance(*each) for each in sorted(self._names.items(), key=lambda each: -each[1]["needed"])),
            self._ladder(),
        )

    def _place(self, each: tuple[tuple[str, str], object]) -> tuple[bool, int]:
        """One reference after the other, the parsers in the order they were named."""
        (parser, reference), _ = each
        return reference == LABEL, list(self._parsers).index(parser)

    def _parser(self, parser: str, counts: Counter[str]) -> ParserRow:
        n = _read(counts)
        return ParserRow(
            parser,
            n + counts["missing"],
            counts["missing"],
            parsed=_share(counts["parsed"], n),
            ambiguous=_share(counts["ambiguous"], n),
            unparseable=_share(counts["unparseable"], n),
            correct=_share(counts["correct"], counts["gold"]),
            reasons=dict(self._reasons[parser].most_common()),
        )

    def _ladder(self) -> tuple[Rung, ...]:
        counts = self._parsers.get(NORMALIZED)
        if counts is None:
            return ()
        below = range(max((needed for needed, _ in self._rungs), default=0))
        return (
            *(_rung(name, found, found) for name, found in self._parsers.items() if name == STRICT),
            *(_rung(f"{NORMALIZED}, {_at_most(most)}", self._reached(most), counts) for most in below),
            _rung(NORMALIZED, counts, counts),
        )

    def _reached(self, most: int) -> Counter[str]:
        reached: Counter[str] = Counter()
        for (needed, kind), count in self._rungs.items():
            reached[kind] += count if needed <= most else 0
        return reached


def is_known(outcome: Outcome) -> bool:
    """Whether it is known what was read, be it nothing: not of a missing reply, nor of one scored elsewhere."""
    if outcome.outcome == "parsed":
        return outcome.value is not None
    return outcome.outcome != "missing" and outcome.reason != "given"


def _error(value: str | None, right: str | None) -> str:
    if value == right:
        return "same"
    return "lost" if value is None else "invented" if right is None else "other"


def _share(count: int, n: int) -> Share:
    found = wilson(count, n)
    return Share(count, n, found.rate, found.interval)


def _read(counts: Counter[str]) -> int:
    return counts["parsed"] + counts["ambiguous"] + counts["unparseable"]


def _rung(name: str, reached: Counter[str], of: Counter[str]) -> Rung:
    return Rung(name, _share(reached["parsed"], _read(of)), _share(reached["correct"], of["gold"]))


def _at_most(number: int) -> str:
    return ("no tolerance", "at most 1 tolerance")[number] if number < 2 else f"at most {number} tolerances"


def _comparison(parser: str, reference: str, counts: Counter[str]) -> Comparison:
    n = sum(counts[kind] for kind in ("same", "invented", "other", "lost"))
    return Comparison(
        parser,
        reference,
        n,
        same=_share(counts["same"], n),
        false_positive=_share(counts["invented"] + counts["other"], n),
        invented=_share(counts["invented"], n),
        other_value=_share(counts["other"], n),
        false_negative=_share(counts["lost"], n),
        credit_given=_share(counts["given"], counts["gold"]),
        credit_withheld=_share(counts["withheld"], counts["gold"]),
    )


def _tolerance(name: str, counts: Counter[str]) -> Tolerance:
    return Tolerance(name, counts["needed"], counts["parsed"], _share(counts["correct"], counts["gold"]))
