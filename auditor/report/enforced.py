"""Enforcement while decoding, in words: what it does to readable replies, to accuracy and to their ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from auditor.figures import EnforcementRow, Interval, Summary
from auditor.report.card import Subject, primary
from auditor.report.causes import why
from auditor.report.text import known, rate, signed, signed_interval

NAMED = 3
"""Up to this many arms are told apart in a headline."""
ENOUGH = 30
"""On fewer readable replies the share of them that is right says nothing."""
MEANINGS = {
    "verified": "a canary proved it on every server",
    "claimed": "no canary proved it",
    "ignored": "taken by the endpoint, not enforced: a difference is noise",
    "refused": "not taken by the endpoint",
}
"""What a label says."""
_PROOF = {"verified": "verified by a canary", "claimed": "claimed, not proved by a canary"}


class Contrast(Struct, frozen=True):
    """One model and arm against the arm without enforcement, in a sentence about the primary parser."""

    subject: Subject
    row: EnforcementRow
    sentence: str


class ParserRows(Struct, frozen=True):
    """What every enforced arm is under one parser."""

    parser: str
    rows: tuple[EnforcementRow, ...]


def contrasts(summary: Summary) -> tuple[Contrast, ...]:
    """Every model and enforced arm, told under the primary parser."""
    rows = under(summary, primary(summary.parsers))
    return tuple(Contrast(Subject(row.model, row.arm), row, sentence(summary, row)) for row in rows)


def under(summary: Summary, parser: str) -> tuple[EnforcementRow, ...]:
    """One parser's rows."""
    return tuple(row for row in summary.enforcement if row.parser == parser)


def by_parser(summary: Summary) -> tuple[ParserRows, ...]:
    """The rows of each parser that has any."""
    found = [ParserRows(parser, under(summary, parser)) for parser in summary.parsers]
    return tuple(one for one in found if one.rows)


def cause(row: EnforcementRow, name: str) -> str:
    """The summary's field whose warning tells why `name` is null in this row."""
    if not row.n_without and name not in ("parseability", "accuracy", "psi", "fsi"):
        return "enforcement.parseability_without"
    if len(row.wrappers) == 1 and name in ("psi", "fsi", "psi_without", "fsi_without"):
        return "enforcement.psi"
    return f"enforcement.{name}"


def difference(with_: float | None, without: float | None) -> float | None:
    """With minus without, where both are there."""
    return None if with_ is None or without is None else with_ - without


def sentence(summary: Summary, row: EnforcementRow) -> str:
    """What a hurried reader must know of one arm."""
    kind = Subject(row.model, row.arm).enforce
    if row.label == "refused":
        return f"The endpoint refused {kind}, so this arm has nothing to say about enforcement."
    if row.label == "ignored":
        told = f" ({numbers})" if (numbers := " and ".join(_rates(row))) else ""
        return (
            f"The endpoint accepted {kind} and did not enforce it, so any difference between the arms is noise{told}."
        )
    start = f"With {kind} ({_PROOF[row.label]}){_where(summary, row)}, "
    if not row.n_without:
        reason = why(summary, cause(row, "parseability_without")).message.rstrip(".")
        alone = f"{row.parser} reads {rate(row.parseability, 2)} of the replies; accuracy is {rate(row.accuracy, 2)}"
        return f"{start}{alone}. There is nothing to compare this with: {reason}."
    told = "; ".join(part for part in (" and ".join(_rates(row)), " and ".join(_ranges(row))) if part)
    return " ".join([f"{start}{told or 'nothing could be measured'}.", *_lessons(row)])


def brief(summary: Summary) -> str:
    """One sentence about all enforced arms, for a headline; empty where there are none."""
    rows = under(summary, primary(summary.parsers))
    if len(rows) > NAMED:
        return _brief_of_many(rows)
    models = len({row.model for row in rows})
    return f"Enforced while decoding: {'; '.join(_brief(row, models) for row in rows)}." if rows else ""


def _brief(row: EnforcementRow, models: int) -> str:
    name = Subject(row.model, row.arm).arm_words + (f" of {row.model}" if models > 1 else "")
    if row.label in ("ignored", "refused"):
        return f"the endpoint {row.label} {name}"
    if not row.n_without:
        return f"{name} ({row.label}) has no arm to be compared with"
    rates = (
        ("the share of readable replies", row.parseability_without, row.parseability, row.parseability_change_ci),
        ("accuracy", row.accuracy_without, row.accuracy, row.accuracy_change_ci),
    )
    told = [
        f"{what} from {rate(a, 2)} to {rate(b, 2)}{' (which chance alone can give)' if a != b and _unclear(ci) else ''}"
        for what, a, b, ci in rates
        if known(a) and known(b)
    ]
    return f"{name} ({row.label}) takes {' and '.join(told) or 'nothing that could be measured'}"


def _brief_of_many(rows: Sequence[EnforcementRow]) -> str:
    counts = Counter(row.label for row in rows)
    labels = ", ".join(f"{number} {name}" for name, number in counts.items())
    held = [row for row in rows if row.label in _PROOF]
    readable = _spread([difference(row.parseability, row.parseability_without) for row in held])
    accuracy = _spread([difference(row.accuracy, row.accuracy_without) for row in held])
    change = f": the share of readable replies changes by {readable}" if readable else ""
    change += f" and accuracy by {accuracy}" if readable and accuracy else ""
    return f"Enforced while decoding in {len(rows)} arms ({labels}){change}."


def _spread(values: Sequence[float | None]) -> str:
    known_values = [value for value in values if value is not None]
    return f"{signed(min(known_values), 2)} to {signed(max(known_values), 2)}" if known_values else ""


def _where(summary: Summary, row: EnforcementRow) -> str:
    asked = {cell.wrapper for cell in summary.cells if cell.model == row.model}
    if len(row.wrappers) == len(asked):
        return ""
    return (
        f" under {row.wrappers[0]}"
        if len(row.wrappers) == 1
        else f" under {len(row.wrappers)} of {len(asked)} wrappers"
    )


def _rates(row: EnforcementRow) -> list[str]:
    readable = f"the share of replies that {row.parser} can read"
    found = [
        _moved(readable, row.parseability_without, row.parseability, row.parseability_change_ci),
        _moved("accuracy", row.accuracy_without, row.accuracy, row.accuracy_change_ci),
    ]
    return [part for part in found if part]


def _ranges(row: EnforcementRow) -> list[str]:
    found = [_moved("PSI", row.psi_without, row.psi, None), _moved("FSI", row.fsi_without, row.fsi, None)]
    return [part for part in found if part]


def _moved(what: str, without: float | None, with_: float | None, ci: Interval | None) -> str:
    if without is None or with_ is None or not (known(without) and known(with_)):
        return ""
    before, after = rate(without, 2), rate(with_, 2)
    told = f"stayed at {after}" if before == after else f"{_verb(without, with_)} from {before} to {after}"
    interval = f" {signed_interval(ci, 2)}" if ci is not None else ""
    return f"{what} {told}{interval}{', which chance alone can give' if before != after and _unclear(ci) else ''}"


def _verb(without: float, with_: float) -> str:
    return "rose" if with_ > without else "fell"


def _unclear(ci: Interval | None) -> bool:
    return ci is not None and ci[0] <= 0 <= ci[1]


def _rises(without: float | None, with_: float | None, ci: Interval | None) -> bool:
    change = difference(with_, without)
    return change is not None and rate(change, 2) != "0.00" and change > 0 and not _unclear(ci)


def _lessons(row: EnforcementRow) -> list[str]:
    """What a rise in readable replies did not bring."""
    if not _rises(row.parseability_without, row.parseability, row.parseability_change_ci):
        return []
    return [*_not_righter(row), *_among(row)]


def _not_righter(row: EnforcementRow) -> list[str]:
    ci = row.accuracy_change_ci
    if not (known(row.accuracy) and known(row.accuracy_without)) or _rises(row.accuracy_without, row.accuracy, ci):
        return []
    if _rises(row.accuracy, row.accuracy_without, ci):
        return ["More replies can be read, and fewer are right."]
    return ["More replies can be read, but it is not clear that more are right."]


def _among(row: EnforcementRow) -> list[str]:
    if row.accuracy is None or row.accuracy_without is None:
        return []
    parsed, parsed_without = (row.parseability or 0.0) * row.n, (row.parseability_without or 0.0) * row.n_without
    if min(parsed, parsed_without) < ENOUGH:
        return ["Without it too few replies could be read to compare how many of those are right."]
    after = row.accuracy / (row.parseability or 1.0)
    before = row.accuracy_without / (row.parseability_without or 1.0)
    if rate(after, 2) > rate(before, 2):
        return []
    return [f"Of the replies that can be read, {rate(after, 2)} are right; without enforcement {rate(before, 2)} were."]
