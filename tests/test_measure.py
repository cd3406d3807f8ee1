"""Denominators: what a rate is over, and what leaves it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from samples import MICRO, tallies

from auditor.measure import (
    GIVEN,
    NO_SPREADS,
    Cell,
    Measured,
    Subset,
    TallyRow,
    by_seed,
    common,
    measure,
    on_subset,
    single_seeds,
    split,
    spreads,
    subsets,
)
from auditor.records import CellKey, CellTotal

Told = tuple[int, int, int, int | None]

KEY = CellKey("m", "t", "json", "none")


def total(answered: int = 6, missing: int = 0, given: int = 0) -> CellTotal:
    return CellTotal(1, answered, missing, 2, 100.0, 5.0, 0, given)


def one(rows: list[tuple[int, int, int, int, int | None]], total_: CellTotal, parser: str = "strict") -> Measured:
    return measure(parser, {1: KEY}, {1: total_}, tallies(*rows), {})


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
    found = measure("strict", keys, totals, tallies(*((i, 1, 1, 1, 1) for i in keys)), {}).families()
    assert [cell.key.wrapper for cell in found["m", "t", "none"]] == ["plain", "json", "xml"]


def test_an_empty_subset_is_no_cell() -> None:
    """The matched subset may hold nothing of a cell; else its seeds are counted item by item."""
    cell = one([(1, 1, 2, 1, 1), (1, 1, 2, 1, 0), (1, 1, 2, 0, 0)], total()).cells[0]
    assert on_subset(cell, None) is None
    assert on_subset(cell, Subset(np.array([2]), np.array([0]), np.array([0b111]))) is None
    # seeds 0, 1 are right, 2, 3 wrong, 4, 5 not parsed
    kept = on_subset(cell, Subset(np.array([1, 2]), np.array([0, 0]), np.array([0b1000111011, 1])))
    assert kept is not None
    assert (kept.n, kept.parsed, kept.correct) == (5, 3, 2)


def test_many_and_negative_seeds_are_told_apart() -> None:
    """A set holds 62 seeds, the next ones are in the next set, and seed -1 is the last of the one before."""
    rows: list[TallyRow] = [
        (1, 1, 0, 0b11, 0, 1, 1, "A"),
        (1, 1, 1, 0b1, 0, 1, 0, "B"),
        (1, 1, -1, 1 << 61, 0, 0, 0, None),
        (1, 2, 0, 0b10, 0, 1, 1, "A"),
    ]
    cell = measure("strict", {1: KEY}, {1: total(5)}, rows, {}).cells[0]
    assert (cell.n, cell.parsed, cell.correct) == (5, 4, 3)
    assert np.allclose(cell.item_correct, [2 / 4, 1])  # type: ignore[arg-type]
    assert by_seed([cell]) == [(1, -1, 1, 0, 0), (1, 0, 1, 1, 1), (1, 1, 2, 2, 2), (1, 62, 1, 1, 0)]


def test_votes_of_one_value_are_joined_over_sets_of_seeds() -> None:
    """Seeds 1, 42 and 2024 said the same: one value of three votes; another cell's values do not matter."""
    rows: list[TallyRow] = [
        (1, 1, 0, 1 << 1 | 1 << 42, 0, 1, 1, "B"),
        (1, 1, 32, 1 << 40, 0, 1, 1, "B"),
        (1, 1, 32, 1 << 41, 0, 1, 0, "A"),
        (1, 2, 0, 1, 0, 1, 0, "B"),
        (1, 2, 1, 1, 0, 0, 0, None),
    ]
    votes = measure("strict", {1: KEY}, {1: total(6)}, rows, {}).cells[0].votes
    assert votes is not None
    found = sorted(zip(votes.item.tolist(), votes.count.tolist(), votes.correct.tolist(), strict=True))
    assert found == [(1, 1, False), (1, 3, True), (2, 1, False), (2, 1, False)]


def test_counts_by_seed_know_of_no_gold() -> None:
    """Without gold a seed has a share parsed and nothing correct."""
    cell = one([(1, 1, 1, 1, None), (1, 1, 1, 0, None)], total(2)).cells[0]
    assert by_seed([cell]) == [(1, 0, 1, 1, None), (1, 1, 1, 0, None)]


def pair(first: list[Told], second: list[Told], *cut: int) -> tuple[Cell, Cell]:
    """Two cells from rows (item, how many, parsed, correct); rows number `cut` ended at the limit."""
    keys = {i: CellKey("m", "t", name, "none") for i, name in ((1, "a"), (2, "b"))}
    totals = {i: CellTotal(i, 9, 0, 9, None, None, None, 0) for i in keys}
    rows = [*((1, *row) for row in first), *((2, *row) for row in second)]
    one, two = measure("strict", keys, totals, tallies(*rows, cut=frozenset(cut)), {}).cells
    return one, two


def worked(family: tuple[str, str], wrapper: str) -> list[Told]:
    parsed, correct = MICRO[family][wrapper]
    return [(i, 1, int(parsed[i]), int(correct[i])) for i in range(4)]


@pytest.mark.parametrize(
    ("family", "best", "worst", "expected"),
    [
        (("m0", "t0"), "xml", "plain", (4, 2, 0, 0)),
        (("m0", "t0"), "xml", "json", (4, 0, 0, 2)),
        (("m0", "t1"), "xml", "json", (4, 0, 0, 2)),
        (("m1", "t0"), "xml", "plain", (4, 1, 0, 0)),
        (("m1", "t1"), "json", "plain", (4, 1, 0, 0)),
        (("m1", "t1"), "xml", "json", (4, 1, 0, -1)),
    ],
)
def test_the_worked_example_is_split(
    family: tuple[str, str], best: str, worst: str, expected: tuple[int, int, int, int]
) -> None:
    """Content where both were parsed, format where one was; divided by four they are the page's figures."""
    one, two = pair(worked(family, best), worked(family, worst))
    assert split(one, two) == expected
    assert split(two, one) == (4, *(-part for part in expected[1:]))


def test_what_the_limit_cut_is_told_from_what_did_not_comply() -> None:
    """Of json's two unread replies on items that xml has right one ended at the limit; a reply at the limit that was
    read counts as content."""
    one, two = pair(worked(("m0", "t1"), "xml"), worked(("m0", "t1"), "json"), 3, 4, 6)
    assert split(one, two) == (4, 0, 1, 1)
    assert split(two, one) == (4, 0, -1, -1)


def test_only_what_both_answered_is_split() -> None:
    """An item that one of them lacks, and another seed, are in no pair; a cell without gold has none."""
    one, two = pair([(1, 2, 1, 1), (2, 1, 1, 1)], [(2, 1, 0, 0), (3, 1, 1, 1)], 2)
    assert split(one, two) == (1, 0, 1, 0)
    assert split(two, one) == (1, 0, -1, 0)
    unknown, _ = pair([(2, 1, 1, None)], [(2, 1, 1, 1)])
    assert split(unknown, two) == (0, 0, 0, 0)


def test_a_split_of_cells_is_that_of_their_replies_one_by_one() -> None:
    """Random replies over several sets of seeds: the same sums as a loop over every pair has."""
    rng = np.random.default_rng(3)
    told: dict[tuple[int, int, int], tuple[bool, bool, bool]] = {}
    for cell_, item_, seed in itertools.product((1, 2), range(8), (-70, -1, 0, 3, 61, 62, 200)):
        if rng.random() < 0.8:
            parsed = bool(rng.random() < 0.7)
            told[cell_, item_, seed] = parsed, parsed and bool(rng.random() < 0.6), bool(rng.random() < 0.4)
    rows: list[TallyRow] = [
        (cell_, item_, seed // 62, 1 << seed % 62, (1 << seed % 62) * cut, int(parsed), int(right), None)
        for (cell_, item_, seed), (parsed, right, cut) in told.items()
    ]
    keys = {i: CellKey("m", "t", str(i), "none") for i in (1, 2)}
    totals = {i: CellTotal(i, 9, 0, 9, None, None, None, 0) for i in keys}
    both = measure("strict", keys, totals, rows, {})
    one, two = both.cells
    expected = [0, 0, 0, 0]
    for item_, seed in {key[1:] for key in told if key[0] == 1} & {key[1:] for key in told if key[0] == 2}:
        (p, c, cut), (q, d, cut_too) = told[1, item_, seed], told[2, item_, seed]
        expected[0] += 1
        expected[1] += (c - d) * (p and q)
        expected[2] += (p and not q) * c * cut_too - (q and not p) * d * cut
        expected[3] += (p and not q) * c * (not cut_too) - (q and not p) * d * (not cut)
    assert split(one, two) == tuple(expected)
    kept = {key for key in told if key[0] == 1 and key[2] > 0}
    items, seeds = (np.array([key[place] for key in sorted(kept)]) for place in (1, 2))
    table = spreads([(1, int(i), int(s), 0.01) for i, s in zip(items, seeds, strict=True)])
    subset = on_subset(one, subsets(table, table.spread < 0.05, both)["m", "t", "none"])
    assert subset is not None
    assert (subset.n, subset.parsed, subset.correct) == (
        len(kept),
        *(sum(told[key][i] for key in kept) for i in (0, 1)),
    )


def test_subsets_are_of_the_family_of_their_cell() -> None:
    """The worked spreads: of (100, 104, 105) and of equal prompts the generations are kept, of (100, 110, 120) not."""
    table = spreads([(1, 7, 0, 5 / 103), (1, 8, 2, 20 / 110), (1, 8, 3, 0.0)])
    assert table.spread.tolist() == [5 / 103, 20 / 110, 0.0]
    found = one([(1, 7, 1, 1, 1)], total())
    (subset,) = subsets(table, table.spread < 0.05, found).values()
    assert (subset.item.tolist(), subset.word.tolist(), subset.seeds.tolist()) == ([7, 8], [0, 0], [1, 8])
    assert subsets(NO_SPREADS, NO_SPREADS.spread < 0.05, found) == {}


# Items in common -----------------------------------------------------------------------------------------------


def cells(*told: list[Told], clusters: dict[int, int] | None = None) -> list[Cell]:
    """A cell for each list of rows (item, how many, parsed, correct)."""
    keys = {id_: CellKey("m", "t", f"w{id_}", "none") for id_ in range(1, len(told) + 1)}
    totals = {id_: CellTotal(id_, 9, 0, 9, None, None, None, 0) for id_ in keys}
    rows = [(id_, *row) for id_, rows in enumerate(told, 1) for row in rows]
    return list(measure("strict", keys, totals, tallies(*rows), {}, clusters or {}).cells)


def test_rates_are_of_the_items_that_every_cell_answered() -> None:
    """Items 2 and 5 are in all three cells; each cell's rates stand in one row, whatever else it answered."""
    found = common(
        cells(
            [(1, 1, 1, 1), (2, 1, 1, 1), (2, 1, 0, 0), (5, 1, 1, 0)],
            [(2, 3, 1, 1), (3, 1, 0, 0), (5, 1, 0, 0)],
            [(5, 1, 1, 1), (2, 1, 1, 0), (4, 1, 1, 1), (1, 1, 1, 1)],
        )
    )
    assert found is not None
    assert found.items.tolist() == found.units.tolist() == [2, 5]
    assert found.parsed.tolist() == [[0.5, 1], [1, 0], [1, 1]]
    assert found.correct is not None
    assert found.correct.tolist() == [[0.5, 0], [1, 0], [0, 1]]
    assert not found.clustered


def test_one_cell_without_gold_leaves_parseability() -> None:
    """What is correct is not known of a row, and so of none; what was parsed is."""
    found = common(cells([(1, 1, 1, 1), (2, 1, 0, 0)], [(1, 1, 1, None), (2, 1, 1, None)]))
    assert found is not None
    assert found.correct is None
    assert found.parsed.tolist() == [[1, 0], [1, 1]]


def test_cells_that_share_no_item_have_none_in_common() -> None:
    """There are two rows of no item, which is not the same as not known."""
    found = common(cells([(1, 1, 1, 1)], [(2, 1, 1, 1)]))
    assert found is not None
    assert found.correct is not None
    assert (len(found.items), found.parsed.shape, found.correct.shape) == (0, (2, 0), (2, 0))
    assert not found.clustered


def test_without_items_nothing_is_in_common() -> None:
    """No cell at all, one that nobody has read, one of an imported table."""
    (known,) = cells([(1, 1, 1, 1)])
    (unread,) = measure("strict", {1: KEY}, {1: total()}, [], {}).cells
    (given,) = measure(GIVEN, {1: KEY}, {}, [], {1: (3, 0.5, 0.75)}).cells
    assert common([]) is None
    for unknown in (unread, given):
        assert common([known, unknown]) is None
        assert common([unknown, known]) is None


def test_items_of_a_cluster_have_its_number() -> None:
    """Items 1, 3 and 4 share a passage; 2 has none and is its own. What they share with other cells keeps it."""
    passages = {1: 1, 3: 1, 4: 1, 9: 9}
    one, two = cells([(i, 1, 1, 1) for i in (1, 2, 3, 4)], [(i, 1, 1, 1) for i in (2, 3, 4)], clusters=passages)
    assert one.units is not None
    assert one.units.tolist() == [1, 2, 1, 1]
    found = common([one, two])
    assert found is not None
    assert (found.items.tolist(), found.units.tolist(), found.clustered) == ([2, 3, 4], [2, 1, 1], True)
    alone = common(cells([(1, 1, 1, 1), (2, 1, 1, 1)], clusters=passages))
    assert alone is not None
    assert not alone.clustered


def test_single_seeds_are_laid_out_by_item_whatever_their_sets() -> None:
    """Seeds 1, 42 and 2024, and item 2 with the last one alone: a row a seed, a column an item."""
    rows: list[TallyRow] = [
        (1, 1, 0, 1 << 1, 0, 1, 1, "A"),
        (1, 1, 0, 1 << 42, 0, 0, 0, None),
        (1, 1, 32, 1 << 40, 0, 1, 0, "B"),
        (1, 2, 32, 1 << 40, 0, 1, 1, "A"),
    ]
    found = single_seeds(measure("strict", {1: KEY}, {1: total(4)}, rows, {}).cells[0])
    assert found is not None
    assert found.answered.tolist() == [[True, False], [True, False], [True, True]]
    assert found.parsed.tolist() == [[True, False], [False, False], [True, True]]
    assert found.correct is not None
    assert found.correct.tolist() == [[True, False], [False, False], [False, True]]
    assert single_seeds(measure(GIVEN, {1: KEY}, {}, [], {1: (3, 0.5, None)}).cells[0]) is None
