"""What stands behind the scores, in sentences made from the result: one for each kind of figure, empty where there is
none to speak of."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from auditor.figures import ComparisonRow, GroupRow, ModelRow, RegressionRow, ReversalRow, SensitivityRow, Summary
from auditor.report.card import Subject, leading, subjects
from auditor.report.noise import LEVEL, SMALLEST
from auditor.report.text import count, interval, p_value, percent, plural, rate, signed

NAMED = 4
"""So many names fit into a sentence."""
LISTED = 20
"""Groups of a task that a report lists at most."""


class Compared(Struct, frozen=True):
    """One comparison as a line of a table."""

    row: ComparisonRow
    first: str
    second: str
    sure: bool
    """Whether its interval leaves out 0."""


# Over tasks ----------------------------------------------------------------------------------------------------


def over_tasks(summary: Summary, parser: str) -> str:
    """For whom the interval of FSI* speaks: more tasks like these, or these alone."""
    leads = leading(subjects(summary))
    rows = [row for row in summary.models if row.parser == parser and _of(row, leads) and row.fsi_star_ci_fixed]
    if not rows or rows[0].tasks < 2:
        return ""
    told = [
        f"{Subject(row.model, row.arm).label + ': ' if len(rows) > 1 else ''}{_clipped(row.fsi_star_ci_fixed)}"
        for row in rows[:NAMED]
    ]
    return (
        f"The interval of FSI* is for more tasks like these {rows[0].tasks}, as if they were drawn at random. "
        f"Chosen tasks are not: for exactly these it is {'; '.join(told)}."
    )


def hierarchical(summary: Summary, parser: str) -> str:
    """The FSI paper's other bootstrap, and what is known of it."""
    leads = leading(subjects(summary))
    rows = [row for row in summary.models if row.parser == parser and _of(row, leads) and row.fsi_ci_hierarchical]
    why = next((caveat.message for caveat in summary.warnings if caveat.code == "hierarchical"), "")
    if not rows:
        return ""
    told = "; ".join(
        f"{Subject(row.model, row.arm).label + ' ' if len(rows) > 1 else ''}{interval(row.fsi_ci_hierarchical)}"
        for row in rows[:NAMED]
    )
    return f"Bootstrap over tasks and items, as the paper proposes for later: FSI {told}. Not calibrated: {why}."


def _of(row: ModelRow, leads: Sequence[Subject]) -> bool:
    return any(subject.owns(row) for subject in leads)


def _clipped(pair: tuple[float, float] | None) -> str:
    return interval((max(0.0, pair[0]), min(1.0, pair[1])) if pair else None)


def made_of(rows: Sequence[SensitivityRow]) -> str:
    """What of the mean range is format, and what is other answers."""
    known = [row for row in rows if row.content_part is not None and row.format_part is not None]
    if not known or len(known) < len(rows):
        return ""
    fsi, content, form = (_mean(known, name) for name in ("fsi", "content_part", "format_part"))
    if fsi < SMALLEST:
        return ""
    parts = ""
    if all(row.format_truncated is not None for row in known):
        cut, odd = _mean(known, "format_truncated"), _mean(known, "format_noncompliant")
        parts = f" ({signed(cut)} cut by the token limit, {signed(odd)} not as asked for)"
    return (
        f"Of a mean range of {rate(fsi)}, {signed(form)} is right answers that could be read under the best wrapper "
        f"alone, less those under the worst alone{parts}; {signed(content)} is other answers."
    )


def _mean(rows: Sequence[SensitivityRow], name: str) -> float:
    return sum(getattr(row, name) or 0.0 for row in rows) / len(rows)


# Regression, wins, seeds ---------------------------------------------------------------------------------------


def regression(row: RegressionRow) -> str:
    """Whether readability does more to accuracy than lose replies."""
    if row.beta is None or row.tautology_slope is None:
        return ""
    told = (
        f"β is {rate(row.beta)}, and lost replies alone would make it about {rate(row.tautology_slope)} (the tautology "
        f"slope). "
    )
    if row.parsed_slope is None or row.parsed_p is None:
        return f"{told}Whether accuracy among readable replies moves too is not known: {row.parsed_status}."
    moves = f"slope {signed(row.parsed_slope)} with s.e. {rate(row.parsed_se)}, p {p_value(row.parsed_p)}"
    if row.parsed_p < LEVEL:
        return f"{told}Accuracy among readable replies moves with readability too ({moves}): not only parsing changes."
    return f"{told}That accuracy among readable replies moves too is not shown ({moves}), nor that it does not."


def wins(summary: Summary, parser: str) -> str:
    """How many wins are more than luck."""
    sets = [row.not_separable for row in summary.sensitivity if row.parser == parser and row.not_separable]
    if not sets:
        return ""
    clear = sum(len(found) == 1 for found in sets)
    return f"In {clear} of {plural(len(sets), 'pair')} one wrapper alone is best at 95 %; elsewhere a win may be luck."


def seeds(summary: Summary, parser: str) -> str:
    """What another seed alone changes."""
    rows = [row for row in summary.seed_noise if row.parser == parser and row.cells]
    if not rows:
        return ""
    row = rows[0]
    moved, most, excess, what = row.accuracy_difference, row.accuracy_range, row.accuracy_excess, "accuracy"
    if moved is None:
        moved, most, excess = row.parseability_difference, row.parseability_range, row.parseability_excess
        what = "share of readable replies"
    if moved is None or moved < SMALLEST:
        return f"Another seed does not move the {what} of any cell."
    told = (
        f"The same wrapper with another seed moves the {what} of a cell by {rate(moved)} on average and {rate(most)} "
        f"at most (A/A, {plural(row.cells, 'cell')}): between two runs of one seed, less than that is nothing."
    )
    if excess is None:
        return told
    return f"{told} That is {rate(excess, 1)} times what items that are answered independently would give."


def votes(summary: Summary, parser: str) -> str:
    """How often seeds disagree, and what their vote changes."""
    said = next((row for row in summary.seed_disagreement if row.parser == parser and row.share is not None), None)
    vote = next((row for row in summary.majority_vote if row.parser == parser and row.cells), None)
    if said is None:
        return ""
    told = f"{percent(said.share)} of items get more than one answer over their seeds"
    if vote is None:
        return f"{told}."
    return (
        f"{told}; if the seeds voted, a cell's accuracy would change by {signed(vote.mean_change)} on average and by "
        f"{rate(vote.largest_change)} at most."
    )


def tokens(summary: Summary) -> str:
    """How unequal in length prompts are, and whether that matters."""
    told = summary.token_spread
    if told.median is None:
        return ""
    matched = f": over these alone FSI is {rate(told.fsi_matched)}" if told.fsi_matched is not None else ""
    return (
        f"Prompts of one item differ by {percent(told.median)} in tokens over wrappers (median); "
        f"{percent(told.share_within_5pct)} of items stay within 5 %{matched}."
    )


# Models and wrappers against each other ------------------------------------------------------------------------


def reversals(summary: Summary, parser: str) -> str:
    """How many pairs of models change places with the wrapper, and how many do so for sure."""
    models = {row.model for row in summary.models if row.parser == parser}
    rows = _reversals(summary, parser)
    if len(models) < 2 or not summary.reversals:
        return ""
    if not rows:
        return "No two models change places with the wrapper."
    sure = sum(row.certified for row in rows)
    held = "it holds" if sure == 1 else "they hold" if sure else "none holds"
    return (
        f"{plural(len(rows), 'pair')} of models change places with the wrapper as measured; in {count(sure)} of them "
        f"that is more than chance ({held} at 95 % over all pairs and wrappers at once)."
    )


def _reversals(summary: Summary, parser: str) -> list[ReversalRow]:
    return [row for row in summary.reversals if row.parser == parser]


def compared(summary: Summary, parser: str) -> tuple[Compared, ...]:
    """The comparisons under one parser, as lines."""
    return tuple(_compared(row) for row in summary.comparisons if row.parser == parser)


def _compared(row: ComparisonRow) -> Compared:
    sure = row.difference_ci is not None and not row.difference_ci[0] <= 0 <= row.difference_ci[1]
    if row.model_a == row.model_b:
        return Compared(row, ", ".join(row.wrappers_a), ", ".join(row.wrappers_b), sure)
    return Compared(row, row.model_a, row.model_b, sure)


def comparisons(summary: Summary, parser: str) -> str:
    """Which wrappers differ from the first one."""
    lines = [line for line in compared(summary, parser) if line.row.model_a == line.row.model_b]
    if not lines:
        return ""
    if all(line.row.difference_ci is None for line in lines):
        return f"Against {lines[0].second}, no other wrapper changes which items are right."
    lower = sum(line.sure and (line.row.difference or 0.0) < 0 for line in lines)
    higher = sum(line.sure and (line.row.difference or 0.0) > 0 for line in lines)
    return (
        f"Against {lines[0].second}, another wrapper lowers accuracy in {lower} of {plural(len(lines), 'comparison')} "
        f"and raises it in {higher}; in the others 0 lies in the interval."
    )


def groups(summary: Summary, parser: str) -> tuple[GroupRow, ...]:
    """The groups whose range is farthest above its noise floor."""
    rows = [row for row in summary.groups if row.parser == parser]
    return tuple(sorted(rows, key=lambda row: -((row.fsi or 0.0) - (row.fsi_floor or 0.0)))[:LISTED])


def grouped(summary: Summary, parser: str) -> str:
    """How ranges of groups compare with what noise makes of so few items."""
    rows = [row for row in summary.groups if row.parser == parser and row.fsi is not None and row.fsi_floor is not None]
    if not rows:
        return ""
    above = sum((row.fsi or 0.0) > 2 * (row.fsi_floor or 0.0) for row in rows)
    items = sorted(row.items for row in rows)
    span = count(items[0]) if items[0] == items[-1] else f"{count(items[0])} to {count(items[-1])}"
    floor = sum(row.fsi_floor or 0.0 for row in rows) / len(rows)
    return (
        f"{plural(len(rows), 'group')} of {span} items: so few move by {rate(floor)} through chance alone, on average; "
        f"{percent(above / len(rows), 0)} of them have a range of more than twice their noise floor."
    )
