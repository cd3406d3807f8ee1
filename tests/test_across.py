"""What is said across cells, each arm for itself: regression, wins, votes and seeds, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
from samples import MICRO, tallies

from auditor import across
from auditor.figures import CellRow, MajorityVoteRow, SeedDisagreementRow, WinsRow
from auditor.measure import GIVEN, Measured, measure
from auditor.records import CellKey, CellTotal

Told = Mapping[tuple[str, str, str, str], Sequence[tuple[str, str]]]
"""(model, task, wrapper, arm) -> what was parsed and correct with each seed, a digit an item, "-" where it lacks."""


def measured(told: Told, parser: str = "strict") -> Measured:
    keys = {id_: CellKey(*key) for id_, key in enumerate(told, 1)}
    tasks = sorted({key.task for key in keys.values()})
    rows = [
        (id_, 100 * tasks.index(key.task) + i, 1, int(parsed[i]), int(correct[i]))
        for (id_, key), seeds in zip(keys.items(), told.values(), strict=True)
        for parsed, correct in seeds
        for i in range(len(parsed))
        if parsed[i] != "-"
    ]
    return measure(parser, keys, {id_: total(id_) for id_ in keys}, tallies(*rows), {})


def total(id_: int, given: int = 0) -> CellTotal:
    return CellTotal(id_, 4, 0, 4, None, None, None, given)


Row = tuple[int, int, int, int, int | None]
"""(cell, item, how many, parsed, correct)."""


def from_rows(rows: Sequence[Row], arms: Sequence[str], parser: str = "strict") -> Measured:
    """A cell for each arm."""
    keys = {id_: CellKey("m", "t", f"w{id_}", arm) for id_, arm in enumerate(arms, 1)}
    given = 4 if parser == GIVEN else 0
    return measure(parser, keys, {id_: total(id_, given) for id_ in keys}, tallies(*rows), {})


FREE: Told = {
    (model, task, wrapper, "none"): [said]
    for (model, task), wrappers in MICRO.items()
    for wrapper, said in wrappers.items()
}
"""The worked example."""
HELD: Told = {
    (model, task, wrapper, "grammar"): [("1111", "1101") if wrapper == "plain" else said]
    for (model, task, wrapper, _), (said,) in FREE.items()
}
"""The same with a plain wrapper that does better."""


@pytest.mark.parametrize(
    "rows",
    [
        across.regressions,
        lambda one: across.win_counts(one, {("m0", "t0", "none"): ("xml",), ("m1", "t0", "grammar"): ("plain",)}),
        across.seed_disagreement,
        across.seed_noise,
        across.rankings,
    ],
)
def test_arms_never_mix(rows: Callable[[Measured], list[Any]]) -> None:
    """Two arms whose cells come in turns have the rows that each has alone, and no others."""
    both = {key: told for pair in zip(FREE.items(), HELD.items(), strict=True) for key, told in pair}
    found = rows(measured(both))
    assert [row for row in found if row.arm == "none"] == [row for row in rows(measured(FREE)) if row.arm == "none"]
    assert [row for row in found if row.arm == "grammar"] == [
        row for row in rows(measured(HELD)) if row.arm == "grammar"
    ]
    assert {row.arm for row in found} == {"none", "grammar"}


# Regression ----------------------------------------------------------------------------------------------------


def design(told: Told) -> tuple[Any, Any, Any]:
    """Accuracies, parseabilities and the fixed effects, one row a cell."""
    correct, parsed = (
        np.array([[float(digit) for digit in said[place]] for (said,) in told.values()]).mean(axis=1)
        for place in (1, 0)
    )
    columns = [np.ones(len(told))]
    for place in range(3):
        names = sorted({key[place] for key in told})
        columns += [np.array([key[place] == name for key in told], float) for name in names[1:]]
    return correct, parsed, np.column_stack(columns)


def test_the_regression_of_the_worked_example() -> None:
    """Beta is 1/2 with a standard error of 1 / (6 sqrt 2); the slope to expect from parsing alone is 5/9."""
    (row,) = across.regressions(measured(FREE))
    assert (row.parser, row.arm, row.status, row.parsed_status, row.cells) == ("strict", "none", "ok", "ok", 12)
    assert (row.beta, row.se, row.df, row.partial_r2) == pytest.approx((0.5, 1 / (6 * 2**0.5), 6, 0.75), abs=1e-9)
    assert (row.pearson_r, row.tautology_slope) == pytest.approx(((3 / 20) ** 0.5, 5 / 9), abs=1e-9)


@pytest.mark.parametrize("told", [FREE, HELD])
def test_accuracy_among_parsed_replies_is_regressed_as_statsmodels_does(told: Told) -> None:
    """A / P on P, weighted by the number of parsed replies: slope, standard error, degrees of freedom and p."""
    (row,) = across.regressions(measured(told))
    accuracy, parseability, effects = design(told)
    fit = sm.WLS(accuracy / parseability, np.column_stack([parseability, effects]), weights=4 * parseability).fit()
    assert row.parsed_status == "ok"
    assert (row.parsed_slope, row.parsed_se, row.parsed_df, row.parsed_p) == pytest.approx(
        (fit.params[0], fit.bse[0], 6, fit.pvalues[0]), abs=1e-9
    )
    assert row.parsed_slope != pytest.approx(row.beta, abs=0.01)


def test_a_cell_without_a_parsed_reply_says_nothing_of_parsed_replies() -> None:
    """It counts for accuracy, 12 cells, and not for accuracy among parsed replies, 11 cells and one df less."""
    silent = {**FREE, ("m0", "t0", "json", "none"): [("0000", "0000")]}
    (row,) = across.regressions(measured(silent))
    accuracy, parseability, effects = design(silent)
    used = parseability > 0
    among = accuracy[used] / parseability[used]
    regressors = np.column_stack([parseability, effects])[used]
    fit = sm.WLS(among, regressors, weights=4 * parseability[used]).fit()
    assert (row.cells, row.df, row.parsed_df) == (12, 6, 5)
    assert (row.parsed_slope, row.parsed_p) == pytest.approx((fit.params[0], fit.pvalues[0]), abs=1e-9)


def test_wrappers_that_only_break_parsing_leave_parsed_replies_alone() -> None:
    """Half of what is parsed is right in every cell: no regression leaves a residual, and 1/2 is to be expected."""
    shapes = [("1111", "1100"), ("1100", "1000"), ("1100", "0100"), ("1111", "0011")]
    told = {
        (model, task, wrapper, "none"): [shapes[(i * 5 + j * 3 + k * (i + 2 * j)) % 4]]
        for i, model in enumerate("ab")
        for j, task in enumerate("tu")
        for k, wrapper in enumerate("xyz")
    }
    (row,) = across.regressions(measured(told))
    assert (row.status.split(":")[0], row.parsed_status.split(":")[0]) == ("exact_fit", "exact_fit")
    assert (row.beta, row.parsed_slope, row.parsed_p, row.tautology_slope) == (None, None, None, 0.5)


def test_cells_without_counts_have_no_weights() -> None:
    """An imported table that does not say n has correlation and expected slope alone, and says why."""
    keys = {id_: CellKey(*key) for id_, key in enumerate(FREE, 1)}
    accuracy, parseability, _ = design(FREE)
    given = {id_: (None, float(accuracy[id_ - 1]), float(parseability[id_ - 1])) for id_ in keys}
    (row,) = across.regressions(measure(GIVEN, keys, {}, [], given))
    assert row.status == row.parsed_status
    assert row.status.startswith("no_weights: ")
    assert (row.beta, row.parsed_slope, row.cells) == (None, None, 12)
    assert (row.pearson_r, row.tautology_slope) == pytest.approx(((3 / 20) ** 0.5, 5 / 9))


def test_an_arm_without_gold_has_a_row_that_says_so() -> None:
    """No cell has an accuracy: none is counted and nothing is fitted."""
    (row,) = across.regressions(from_rows([(1, 1, 1, 1, None), (2, 1, 1, 0, None)], ["none", "none"]))
    assert (row.cells, row.beta, row.parsed_slope) == (0, None, None)
    assert row.status.startswith("too_few_cells: ")


# Wins ----------------------------------------------------------------------------------------------------------


def test_wins_of_the_worked_example_and_their_contenders() -> None:
    """xml is best in three pairs and ties with json in the fourth; contenders are counted, another arm's are not."""
    contenders = {
        ("m0", "t0", "none"): ("xml",),
        ("m0", "t1", "none"): ("plain", "xml"),
        ("m1", "t0", "none"): (),
        ("m1", "t1", "none"): ("plain", "json", "xml"),
        ("m0", "t0", "grammar"): ("json",),
    }
    assert across.win_counts(measured(FREE), contenders) == [
        WinsRow("strict", "none", "plain", 0.0, 4, 2),
        WinsRow("strict", "none", "json", 0.5, 4, 1),
        WinsRow("strict", "none", "xml", 3.5, 4, 3),
    ]


def test_without_evidence_there_are_wins_and_no_contenders() -> None:
    """No set of contenders is not a count of 0."""
    for contenders in ({}, {("m0", "t0", "none"): ()}, {("m0", "t0", "grammar"): ("xml",)}):
        assert {row.not_separable for row in across.win_counts(measured(FREE), contenders)} == {None}


# Votes ---------------------------------------------------------------------------------------------------------


def test_disagreement_is_counted_in_each_arm() -> None:
    """Free, of two items with two seeds one is answered twice otherwise; held, none of one; one seed is no group."""
    rows = [(1, 1, 2, 1, 1), (1, 2, 1, 1, 1), (1, 2, 1, 0, 0), (1, 3, 1, 1, 0), (2, 1, 3, 0, 0), (3, 1, 1, 1, 1)]
    found = across.seed_disagreement(from_rows(rows, ["none", "grammar", "json_schema"]))
    assert found == [
        SeedDisagreementRow("strict", "none", 0.5, 2),
        SeedDisagreementRow("strict", "grammar", 0.0, 1),
        SeedDisagreementRow("strict", "json_schema", None, 0),
    ]


def test_disagreement_weighs_groups_and_not_cells() -> None:
    """One cell of three groups, all at odds, and one of a single group at one: 3 of 4."""
    rows = [(1, i, 1, 1, right) for i in (1, 2, 3) for right in (1, 0)] + [(2, 1, 2, 1, 1)]
    (row,) = across.seed_disagreement(from_rows(rows, ["none", "none"]))
    assert (row.share, row.groups) == (0.75, 4)


def test_rows_scored_elsewhere_name_no_value_to_disagree_in() -> None:
    """Two wrong answers may be one or two: no group is counted."""
    assert across.seed_disagreement(from_rows([(1, 1, 1, 1, 0), (1, 1, 1, 1, 1)], ["none"], GIVEN)) == [
        SeedDisagreementRow(GIVEN, "none", None, 0)
    ]


def test_a_vote_needs_values_and_gold() -> None:
    """Two of three seeds right: the vote is right. Without gold, and of several seeds scored elsewhere, there is none;
    one seed scored elsewhere votes for itself."""
    several: list[Row] = [(1, 1, 2, 1, 1), (1, 1, 1, 1, 0), (1, 2, 3, 0, 0)]
    single: list[Row] = [(1, 1, 1, 1, 1), (1, 2, 1, 1, 0), (1, 3, 1, 1, 1), (1, 4, 1, 1, 1)]
    unknown: list[Row] = [(1, 1, 1, 1, 1), (1, 2, 1, 1, None)]
    for rows, parser, expected in (
        (several, "strict", 0.5),
        (several, GIVEN, None),
        (single, GIVEN, 0.75),
        (unknown, "strict", None),
        ([], "strict", None),
    ):
        found = from_rows(rows, ["none"], parser)
        assert across.vote_accuracy(found, found.cells[0]) == expected


def voted(arm: str, accuracy: float | None, vote: float | None, parser: str = "p") -> CellRow:
    return CellRow("m", "t", "w", arm, parser, 8, 8, None, None, accuracy, None, None, None, None, 0, None, None, None,
                   vote, {})  # fmt: skip


def test_what_voting_changes_is_told_of_each_arm() -> None:
    """Free +0.25 and -0.5, held +0.125, one arm without votes; another parser's cells are in no row."""
    cells = [
        voted("none", 0.5, 0.75),
        voted("grammar", 0.5, 0.625),
        voted("none", 0.5, 0.0),
        voted("none", None, None),
        voted("json_schema", 0.5, None),
        voted("none", 0.0, 1.0, "q"),
    ]
    assert across.majority_vote("p", cells) == [
        MajorityVoteRow("p", "none", -0.125, 0.5, 2),
        MajorityVoteRow("p", "grammar", 0.125, 0.125, 1),
        MajorityVoteRow("p", "json_schema", None, None, 0),
    ]


# Seeds as runs -------------------------------------------------------------------------------------------------


def test_two_seeds_differ_by_what_their_rates_do() -> None:
    """Right 3/4 and 1/4, then 1/2 twice: 1/2 and 0. Parsed 1 and 1/2, then 1 and 3/4: 1/2 and 1/4."""
    told = {
        ("m", "t", "a", "none"): [("1111", "1110"), ("1100", "1000")],
        ("m", "t", "b", "none"): [("1111", "1010"), ("1110", "0110")],
    }
    (row,) = across.seed_noise(measured(told))
    assert (row.parser, row.arm, row.cells, row.seeds) == ("strict", "none", 2, 2)
    assert (row.accuracy_difference, row.accuracy_range) == (0.25, 0.5)
    assert (row.parseability_difference, row.parseability_range) == (0.375, 0.5)


def test_three_seeds_are_three_pairs() -> None:
    """.2, .4 and .8 right lie .2, .4 and .6 apart: .4 on average, .6 at most. `seeds` is the least that a cell has."""
    three = [("11111", right) for right in ("10000", "11000", "11110")]
    (row,) = across.seed_noise(measured({("m", "t", "a", "none"): three}))
    assert (row.accuracy_difference, row.accuracy_range, row.seeds) == pytest.approx((0.4, 0.6, 3))
    two = [("11", "11"), ("11", "10")]
    (row,) = across.seed_noise(measured({("m", "t", "a", "none"): three, ("m", "u", "a", "none"): two}))
    assert (row.accuracy_difference, row.accuracy_range, row.seeds, row.cells) == pytest.approx((0.45, 0.6, 2, 2))
    assert (row.parseability_difference, row.parseability_range) == (0.0, 0.0)


def test_seeds_are_compared_on_what_both_answered() -> None:
    """The second seed lacks item 4: on the other three right 2/3 and 1/3. Seeds that share no item are no pair."""
    two = [("1111", "1101"), ("111-", "100-")]
    (row,) = across.seed_noise(measured({("m", "t", "a", "none"): two}))
    assert (row.cells, row.seeds, row.accuracy_difference, row.parseability_range) == pytest.approx((1, 2, 1 / 3, 0.0))
    (row,) = across.seed_noise(measured({("m", "t", "a", "none"): [("11--", "11--"), ("--11", "--00")]}))
    assert (row.cells, row.seeds, row.accuracy_difference, row.parseability_range) == (0, None, None, None)


def test_seeds_that_move_many_items_at_once_are_told() -> None:
    """20 of 40 items turn from wrong to right: .5 over its standard error. Independent items come to about 1."""
    turned = [("1" * 40, "0" * 40), ("1" * 40, "1" * 20 + "0" * 20)]
    (row,) = across.seed_noise(measured({("m", "t", "a", "none"): turned}))
    error = np.std([1.0] * 20 + [0.0] * 20, ddof=1) / 40**0.5
    assert row.accuracy_excess == pytest.approx(0.5 / error)
    assert row.parseability_excess is None
    rng = np.random.default_rng(2)
    free = {
        ("m", "t", f"w{i}", "none"): [("1" * 60, "".join(rng.choice(["0", "1"], 60))) for _ in range(3)]
        for i in range(30)
    }
    (row,) = across.seed_noise(measured(free))
    assert row.accuracy_excess == pytest.approx(1.0, abs=0.2)


def test_without_gold_seeds_differ_in_parseability_alone() -> None:
    """One cell without gold leaves the accuracy of its arm open, and not that of another arm."""
    rows: list[Row] = [(1, 1, 2, 1, 1), (2, 1, 1, 1, None), (2, 1, 1, 0, None), (3, 1, 1, 1, 1), (3, 1, 1, 1, 0)]
    free, held = across.seed_noise(from_rows(rows, ["none", "none", "grammar"]))
    assert (free.cells, free.accuracy_difference, free.accuracy_range) == (2, None, None)
    assert (free.parseability_difference, free.parseability_range) == (0.5, 1.0)
    assert (held.accuracy_difference, held.accuracy_range) == (1.0, 1.0)


def test_one_seed_is_no_noise() -> None:
    """Nothing can be told apart from itself: no cell, no value."""
    (row,) = across.seed_noise(measured(FREE))
    assert (row.cells, row.seeds) == (0, None)
    assert (row.accuracy_difference, row.accuracy_range) == (None, None)
    assert (row.parseability_difference, row.parseability_range) == (None, None)
