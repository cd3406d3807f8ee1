"""Means and places of models under each parser, and whose order turns round, worked out by hand."""

from __future__ import annotations

import pytest

from auditor import order
from auditor.analysis import Reading, summarize
from auditor.figures import CellRow, Counts, ModelRow, OrderChangeRow, RunInfo
from auditor.measure import TallyRow, measure
from auditor.records import CellKey, CellTotal

Rates = dict[tuple[str, str, str, str], tuple[float | None, float | None]]
"""(parser, model, task, wrapper) -> (accuracy, parseability)."""


def cells(rates: Rates, arm: str = "none") -> list[CellRow]:
    return [
        CellRow(model, task, wrapper, arm, parser, 8, 8, None, None, accuracy, None, None, readable, None, 0,
                None, None, None, None, {})
        for (parser, model, task, wrapper), (accuracy, readable) in rates.items()
    ]  # fmt: skip


def rows(found: list[CellRow]) -> list[ModelRow]:
    keys = dict.fromkeys((cell.model, cell.arm, cell.parser) for cell in found)
    return [ModelRow(*key, 2, None, None, None, None, None, None) for key in keys]


def simple(scores: dict[str, dict[str, float | None]]) -> list[CellRow]:
    """Parser -> model -> the accuracy of its only cell."""
    return cells({(p, m, "t", "w"): (value, 1.0) for p, by in scores.items() for m, value in by.items()})


def places(found: list[CellRow]) -> dict[tuple[str, str], int | None]:
    return {(row.parser, row.model): row.rank for row in order.placed(rows(found), found)}


def changes(found: list[CellRow]) -> list[OrderChangeRow]:
    return order.order_changes(order.placed(rows(found), found), found)


TURNED: Rates = {
    ("strict", "a", "t0", "plain"): (0.5, 1.0),
    ("strict", "a", "t0", "json"): (0.25, 0.5),
    ("strict", "a", "t1", "plain"): (0.125, 0.25),
    ("strict", "b", "t0", "plain"): (0.0, 0.0),
    ("strict", "b", "t0", "json"): (0.0, 0.0),
    ("strict", "b", "t1", "plain"): (0.25, 0.5),
    ("normalized", "a", "t0", "plain"): (0.5, 1.0),
    ("normalized", "a", "t0", "json"): (0.5, 1.0),
    ("normalized", "a", "t1", "plain"): (0.25, 0.5),
    ("normalized", "b", "t0", "plain"): (0.75, 1.0),
    ("normalized", "b", "t0", "json"): (0.25, 1.0),
    ("normalized", "b", "t1", "plain"): (0.5, 1.0),
}


def test_means_are_over_wrappers_and_then_over_tasks() -> None:
    """t0 of a under strict is (0.5 + 0.25) / 2 = 0.375 and t1 0.125: 0.25, and not the mean of three cells."""
    found = cells(TURNED)
    means = {(row.parser, row.model): (row.accuracy, row.parseability) for row in order.placed(rows(found), found)}
    assert means == {
        ("strict", "a"): (0.25, 0.5),
        ("strict", "b"): (0.125, 0.25),
        ("normalized", "a"): (0.375, 0.75),
        ("normalized", "b"): (0.5, 1.0),
    }


def test_an_order_that_turns_round_is_a_row() -> None:
    """a is ahead under strict with 0.25 to 0.125, b under normalized with 0.5 to 0.375."""
    found = cells(TURNED)
    assert places(found) == {("strict", "a"): 1, ("strict", "b"): 2, ("normalized", "a"): 2, ("normalized", "b"): 1}
    assert changes(found) == [OrderChangeRow("none", "strict", "normalized", "a", "b", (0.25, 0.125), (0.375, 0.5))]


def test_ties_share_a_place_and_change_no_order() -> None:
    """Two models at 0.5 are both first and the next is third, rounding apart; a tie under one parser is no change."""
    found = simple({"p": {"a": 0.5, "b": 0.1 + 0.2 + 0.2, "c": 0.25}, "q": {"a": 0.25, "b": 0.5, "c": 0.5}})
    assert places(found) == {("p", "a"): 1, ("p", "b"): 1, ("p", "c"): 3, ("q", "a"): 3, ("q", "b"): 1, ("q", "c"): 1}
    assert [(row.model_a, row.model_b) for row in changes(found)] == [("a", "c")]


def test_every_two_parsers_are_compared() -> None:
    """Under p and r a is ahead, under q b is: two rows, each beginning with who is ahead under its first parser."""
    found = simple({"p": {"a": 0.5, "b": 0.25}, "q": {"a": 0.25, "b": 0.5}, "r": {"a": 0.75, "b": 0.5}})
    assert [(row.parser_a, row.parser_b, row.model_a, row.model_b) for row in changes(found)] == [
        ("p", "q", "a", "b"),
        ("q", "r", "b", "a"),
    ]


def test_arms_are_apart() -> None:
    """A model held to a grammar has no place among those that are not."""
    found = [*simple({"p": {"a": 0.5}, "q": {"a": 0.25}})]
    found += cells({("p", "b", "t", "w"): (0.25, 1.0), ("q", "b", "t", "w"): (0.5, 1.0)}, "grammar")
    assert set(places(found).values()) == {None}
    assert changes(found) == []


@pytest.mark.parametrize("lost", [("t1", "plain"), ("t0", "json")])
def test_a_model_that_lacks_a_task_or_wrapper_is_not_compared(lost: tuple[str, str]) -> None:
    """Without one of its cells under one parser, b has no place there, a alone has none, and no order is told."""
    kept = {key: value for key, value in TURNED.items() if key != ("normalized", "b", *lost)}
    found = cells(kept)
    assert places(found) == {
        ("strict", "a"): 1,
        ("strict", "b"): 2,
        ("normalized", "a"): None,
        ("normalized", "b"): None,
    }
    assert changes(found) == []


def test_what_is_not_known_is_null_with_a_reason() -> None:
    """One cell of c without accuracy or parseability: no mean, no place, and warnings name the model; a and b stay."""
    found = simple({"p": {"a": 0.5, "b": 0.25, "c": None}})
    placed = {row.model: row for row in order.placed(rows(found), found)}
    assert [(row.accuracy, row.parseability, row.rank) for row in placed.values()] == [
        (0.5, 1.0, 1),
        (0.25, 1.0, 2),
        (None, 1.0, None),
    ]
    said = {caveat.code: caveat for caveat in order.caveats(list(placed.values()))}
    assert set(said) == {"no_model_mean", "not_ranked"}
    assert said["no_model_mean"].message.endswith("one is not known of c (p)")
    assert "models.rank" in said["not_ranked"].fields
    assert order.placed([ModelRow("m", "none", "p", 0, *(None,) * 6)], [])[0].accuracy is None


def test_one_model_has_no_place() -> None:
    """Alone in its arm a model has no place, and that is the only thing said."""
    found = simple({"p": {"a": 0.5}, "q": {"a": 0.25}})
    assert set(places(found).values()) == {None}
    assert [caveat.code for caveat in order.caveats(order.placed(rows(found), found))] == ["one_model"]


def test_the_summary_holds_it_all() -> None:
    """Two items each: strict reads one reply of a and none of b; normalized one of a and both of b, all right."""
    keys = {1: CellKey("a", "t", "w", "none"), 2: CellKey("b", "t", "w", "none")}
    totals = {i: CellTotal(i, 2, 0, 2, None, None, None, 0) for i in keys}
    strict: list[TallyRow] = [(1, 1, 1, 1, 1), (1, 2, 1, 0, 0), (2, 1, 1, 0, 0), (2, 2, 1, 0, 0)]
    loose: list[TallyRow] = [(1, 1, 1, 1, 1), (1, 2, 1, 0, 0), (2, 1, 1, 1, 1), (2, 2, 1, 1, 1)]
    readings = [
        Reading(measure(name, keys, totals, tallies, {}), {}, {})
        for name, tallies in (("strict", strict), ("normalized", loose))
    ]
    run, counts = RunInfo("r", "2026-01-01", "0", "", 0), Counts(4, 4, 0, 0, 0, 0, 0)
    summary = summarize(run, counts, [], readings, [], [])
    assert [(row.parser, row.model, row.accuracy, row.parseability, row.rank) for row in summary.models] == [
        ("strict", "a", 0.5, 0.5, 1),
        ("strict", "b", 0.0, 0.0, 2),
        ("normalized", "a", 0.5, 0.5, 2),
        ("normalized", "b", 1.0, 1.0, 1),
    ]
    (row,) = summary.order_changes
    assert (row.model_a, row.model_b, row.accuracies_a, row.accuracies_b) == ("a", "b", (0.5, 0.0), (0.5, 1.0))
