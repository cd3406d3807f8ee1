"""The sentences on noise: made from the result, for one parser at a time."""

from __future__ import annotations

from msgspec.structs import replace
from report_samples import realistic

from auditor.figures import SensitivityRow, Summary
from auditor.report.noise import floor, sentences


def rows_with(summary: Summary, **changes: object) -> Summary:
    return replace(summary, sensitivity=tuple(replace(row, **changes) for row in summary.sensitivity))


def of(summary: Summary, parser: str) -> list[SensitivityRow]:
    return [row for row in summary.sensitivity if row.parser == parser]


def test_floor_effects_and_power_in_one_sentence_each() -> None:
    """200 items, 5 replies to each; the least and the largest where rows differ."""
    summary = rows_with(realistic(), p_holm=0.2, fsi_detectable=0.08, items_for_lower_floor=578)
    first, *others = summary.sensitivity
    varied = replace(first, p_holm=0.001, fsi_floor=0.021, fsi_detectable=0.06, items_for_lower_floor=221)
    summary = replace(summary, sensitivity=(varied, *others))
    pairs = len(of(summary, first.parser))
    assert sentences(summary, first.parser) == (
        "With 200 items a task and 5 replies to each, noise alone shows ranges of 0.021 to 0.034 on average by task: "
        "less is nothing.",
        f"In 1 of {pairs} pairs of model and task chance does not explain the effect of the wrapper "
        "(permutation test, Holm, 5 %).",
        "A true range of 0.060 to 0.080 is found by four of five such runs; a noise floor of 0.02 takes 221 to 578 "
        "items.",
    )


def test_without_noise_or_evidence_nothing_is_made_up() -> None:
    """A floor of 0 means that nothing differed; no floor at all says nothing."""
    summary = realistic()
    (only,) = sentences(rows_with(summary, fsi_floor=0.0), "strict")
    assert only.endswith("no reply counts otherwise than another: there is no noise to measure.")
    assert sentences(rows_with(summary, fsi_floor=None), "strict") == ()


def test_the_floor_of_a_parser_that_reads_something() -> None:
    """The parser that headlines quote, unless it reads hardly a reply; then the next one, by name. Tasks in which
    nothing varies are not told."""
    summary = realistic()
    said = "ith 200 items a task and 5 replies to each, noise alone shows ranges of 0.034 on average: less is nothing."
    assert floor(summary) == f"W{said}"
    cells = [replace(cell, parseability=0.01) if cell.parser == "strict" else cell for cell in summary.cells]
    first, *rows = summary.sensitivity
    unread = replace(summary, cells=tuple(cells), sensitivity=(replace(first, fsi_floor=0.0), *rows))
    assert floor(unread) == f"Read by paper: w{said}"
    assert floor(rows_with(summary, fsi_floor=0.0)) == floor(rows_with(summary, fsi_floor=None)) == ""
