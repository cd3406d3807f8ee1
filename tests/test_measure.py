"""Denominators: what a rate is over, and what leaves it."""

from __future__ import annotations

import numpy as np

from auditor.measure import GIVEN, Measured, measure, on_subset
from auditor.records import CellKey, CellTotal

KEY = CellKey("m", "t", "json", "none")


def total(answered: int = 6, missing: int = 0, given: int = 0) -> CellTotal:
    return CellTotal(1, answered, missing, 2, 100.0, 5.0, 0, given)


def one(tallies: list[tuple[int, int, int, int, int | None]], total_: CellTotal, parser: str = "strict") -> Measured:
    return measure(parser, {1: KEY}, {1: total_}, tallies, {})


def test_unparsed_counts_as_incorrect_and_missing_leaves_every_rate() -> None:
    """Of 6 answered, 4 parse and 3 are correct; 2 missing are beside them, in no denominator."""
    cell = one([(1, 1, 3, 1, 1), (1, 2, 1, 1, 0), (1, 2, 2, 0, 0)], total(missing=2)).cells[0]
    assert (cell.n, cell.parsed, cell.correct, cell.missing) == (6, 4, 3, 2)
    assert (cell.parseability, cell.accuracy, cell.accuracy_parsed) == (4 / 6, 3 / 6, 3 / 4)


def test_rates_per_item_average_over_its_seeds() -> None:
    """Item 1 is right in 2 of 3 seeds, item 2 in none, one of them unparsed."""
    cell = one([(1, 7, 2, 1, 1), (1, 7, 1, 1, 0), (1, 9, 2, 1, 0), (1, 9, 1, 0, 0)], total()).cells[0]
    assert cell.items is not None
    assert cell.items.tolist() == [7, 9]
    assert np.allclose(cell.item_correct, [2 / 3, 0])  # type: ignore[arg-type]
    assert np.allclose(cell.item_parsed, [1, 2 / 3])  # type: ignore[arg-type]


def test_without_gold_there_is_parseability_and_no_accuracy() -> None:
    """One item without gold makes a cell's accuracy unknown, not lower."""
    cell = one([(1, 1, 3, 1, 1), (1, 2, 3, 1, None)], total()).cells[0]
    assert (cell.parseability, cell.accuracy, cell.item_correct) == (1.0, None, None)


def test_nothing_parsed_is_zero_and_accuracy_among_parsed_is_unknown() -> None:
    """0 of n is a rate; 0 of 0 is none."""
    cell = one([(1, 1, 6, 0, 0)], total()).cells[0]
    assert (cell.parseability, cell.accuracy, cell.accuracy_parsed) == (0.0, 0.0, None)


def test_a_parser_that_does_not_apply_leaves_its_cell_unknown() -> None:
    """Answered generations without any outcome are no zeros."""
    cell = one([], total()).cells[0]
    assert (cell.n, cell.parseability, cell.accuracy) == (6, None, None)


def test_nothing_answered_is_unknown() -> None:
    """A cell of missing generations has n 0 and no rates."""
    cell = one([], total(answered=0, missing=4)).cells[0]
    assert (cell.n, cell.missing, cell.parseability, cell.accuracy) == (0, 4, None, None)


def test_rows_scored_elsewhere_concern_the_given_parser_alone() -> None:
    """Exactly one row per cell, whatever parsers are named."""
    assert one([], total(given=6)).cells == ()
    assert len(one([(1, 1, 6, 1, 1)], total(given=6), GIVEN).cells) == 1
    assert one([], total(given=0), GIVEN).cells == ()


def test_an_imported_cell_keeps_its_shares() -> None:
    """A table of cells has counts that need not be whole."""
    cell = measure(GIVEN, {1: KEY}, {}, [], {1: (3, 0.5, None)}).cells[0]
    assert (cell.n, cell.accuracy, cell.parseability, cell.items) == (3, 0.5, None, None)


def test_families_keep_the_order_of_wrappers() -> None:
    """Ties are broken and tables are drawn in the order in which cells were first asked."""
    keys = {i: CellKey("m", "t", name, "none") for i, name in enumerate(("plain", "json", "xml"), 1)}
    totals = {i: CellTotal(i, 1, 0, 1, None, None, None, 0) for i in keys}
    found = measure("strict", keys, totals, [(i, 1, 1, 1, 1) for i in keys], {}).families()
    assert [cell.key.wrapper for cell in found["m", "t", "none"]] == ["plain", "json", "xml"]


def test_an_empty_subset_is_no_cell() -> None:
    """The matched subset may hold nothing of a cell."""
    cell = one([(1, 1, 6, 1, 1)], total()).cells[0]
    assert on_subset(cell, None) is None
    assert on_subset(cell, (0, 0, 0)) is None
    kept = on_subset(cell, (4, 3, 2))
    assert kept is not None
    assert (kept.parseability, kept.accuracy) == (0.75, 0.5)
