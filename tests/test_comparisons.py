"""Two sides on the items that both answered: worked out by hand, and against each pair for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from msgspec import structs
from samples import MICRO, tallies

from auditor.comparisons import caveats, comparisons
from auditor.figures import ComparisonRow
from auditor.measure import GIVEN, Measured, measure
from auditor.records import CellKey, CellTotal
from auditor.stats import pairs

Told = Mapping[tuple[str, str, str, str], Sequence[str]]
"""(model, task, wrapper, arm) -> what was right with each seed, a digit an item: "-" if it lacks, "?" if gold does."""


def measured(told: Told, passage: int = 1, parser: str = "strict") -> Measured:
    """Every `passage` items of a task share one."""
    keys = {id_: CellKey(*key) for id_, key in enumerate(told, 1)}
    tasks = sorted({key.task for key in keys.values()})
    rows: list[tuple[int, int, int, int, int | None]] = [
        (id_, 1000 * tasks.index(key.task) + i, 1, 1, None if digit == "?" else int(digit))
        for (id_, key), seeds in zip(keys.items(), told.values(), strict=True)
        for seed in seeds
        for i, digit in enumerate(seed)
        if digit != "-"
    ]
    totals = {id_: CellTotal(id_, 1, 0, 1, None, None, None, 0) for id_ in keys}
    clusters = {item: item - item % passage for _, item, *_ in rows} if passage > 1 else {}
    return measure(parser, keys, totals, tallies(*rows), {}, clusters)


def worked(*wrappers: str, arm: str = "none") -> Told:
    """The worked example with its wrappers in this order."""
    return {
        (*family, wrapper, arm): [told[wrapper][1]]
        for family, told in MICRO.items()
        for wrapper in wrappers or ("plain", "json", "xml")
    }


def found(told: Told, passage: int = 1, seed: int = 0) -> list[ComparisonRow]:
    return comparisons([measured(told, passage)], seed)


Side = tuple[str, tuple[str, ...]]


def sides(row: ComparisonRow) -> tuple[Side, Side]:
    return (row.model_a, row.wrappers_a), (row.model_b, row.wrappers_b)


def test_the_worked_example() -> None:
    """Every wrapper against plain, the first one, then the models over all wrappers: differences over tasks, items that
    one side alone has right, exact p."""
    every = ("plain", "json", "xml")
    rows = found(worked())
    assert [sides(row) for row in rows] == [
        (("m0", ("json",)), ("m0", ("plain",))),
        (("m0", ("xml",)), ("m0", ("plain",))),
        (("m1", ("json",)), ("m1", ("plain",))),
        (("m1", ("xml",)), ("m1", ("plain",))),
        (("m0", every), ("m1", every)),
    ]
    assert [(row.only_a, row.only_b, row.p_mcnemar) for row in rows] == [
        (0, 1, 1.0),
        (3, 0, 0.25),
        (3, 2, 1.0),
        (2, 0, 0.5),
        (None, None, None),
    ]
    assert [row.difference for row in rows] == pytest.approx([-1 / 8, 3 / 8, 1 / 8, 1 / 4, 1 / 12])
    assert {(row.arm, row.parser, row.tasks, row.items) for row in rows} == {("none", "strict", 2, 8)}
    assert all(row.difference_ci and row.difference_ci[0] < row.difference_ci[1] for row in rows)


def test_mcnemar_of_xml_and_json() -> None:
    """The page's b = 4, c = 0 and p = 1/8 for m0, wherever json is the first wrapper."""
    row = next(row for row in found(worked("json", "plain", "xml")) if row.wrappers_a == ("xml",))
    assert sides(row) == (("m0", ("xml",)), ("m0", ("json",)))
    assert (row.only_a, row.only_b, row.p_mcnemar, row.difference) == (4, 0, 0.125, 0.5)


def test_models_with_one_wrapper_in_common_have_mcnemar() -> None:
    """m0 has plain and json, m1 plain alone: 1000, 1001 against 0100, 1000 are two items and one."""
    told = {key: right for key, right in worked("json", "plain").items() if key[0] == "m0" or key[2] == "plain"}
    row = found(told)[-1]
    assert sides(row) == (("m0", ("plain",)), ("m1", ("plain",)))
    assert (row.only_a, row.only_b, row.p_mcnemar, row.difference) == (2, 1, 1.0, 1 / 8)


def test_models_are_compared_over_the_wrappers_that_both_have() -> None:
    """m1 lacks xml: the mean over plain and json, on the same items under both."""
    told = {key: right for key, right in worked().items() if key[0] == "m0" or key[2] != "xml"}
    row = found(told)[-1]
    assert sides(row) == (("m0", ("plain", "json")), ("m1", ("plain", "json")))
    # t0: 1/4 and 1/4 against 1/4 and 1/4; t1: 1/2 and 1/4 against 1/4 and 1/2
    assert (row.difference, row.p_mcnemar, row.tasks) == (0.0, None, 2)


def test_every_two_models_are_compared_once() -> None:
    """Three models are three pairs, in their order; models without a wrapper in common are none."""
    told = {(model, "t", "w", "none"): ["101"] for model in "abc"}
    assert [(row.model_a, row.model_b) for row in found(told)] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found({("a", "t", "v", "none"): ["10"], ("b", "t", "w", "none"): ["10"]}) == []
    assert found({("a", "t", "v", "none"): ["10"]}) == []


def test_only_items_that_both_answered_count() -> None:
    """plain lacks the last two items and json the first: of the three left json alone has one and plain one."""
    told = {("m", "t", "plain", "none"): ["1100--"], ("m", "t", "json", "none"): ["-01011"]}
    (row,) = found(told)
    assert (row.items, row.only_a, row.only_b, row.difference) == (3, 1, 1, 0.0)


def test_items_of_a_third_wrapper_do_not_matter_to_two() -> None:
    """json lacks an item; xml against plain keeps it."""
    told = {
        ("m", "t", "plain", "none"): ["1010"],
        ("m", "t", "json", "none"): ["-111"],
        ("m", "t", "xml", "none"): ["1111"],
    }
    json, xml = found(told)
    assert (json.items, xml.items) == (3, 4)
    assert (json.difference, xml.difference) == pytest.approx((2 / 3, 1 / 2))


def test_tasks_that_lack_a_wrapper_are_left_out() -> None:
    """xml was asked in t0 alone: 1110 against 1000 there; json keeps both tasks."""
    told = {key: right for key, right in worked().items() if key[:3] != ("m0", "t1", "xml") and key[0] == "m0"}
    json, xml = found(told)
    assert (json.tasks, json.items, xml.tasks, xml.items) == (2, 8, 1, 4)
    assert (xml.only_a, xml.only_b, xml.difference) == (2, 0, 0.5)


def test_tasks_weigh_the_same_however_many_items_they_have() -> None:
    """1/1 in one task and 0/3 in the other are 1/2, and not 1/4."""
    told = {
        ("m", "t", "plain", "none"): ["0"],
        ("m", "u", "plain", "none"): ["101"],
        ("m", "t", "json", "none"): ["1"],
        ("m", "u", "json", "none"): ["011"],
    }
    (row,) = found(told)
    assert (row.difference, row.tasks, row.items) == (0.5, 2, 4)


def test_tasks_without_gold_or_items_in_common_are_left_out() -> None:
    """Of four tasks one has no gold, one no item that both answered, one is an imported cell: one is left; with none
    left there is no row."""
    told = {
        ("m", "t", "plain", "none"): ["1?0"],
        ("m", "u", "plain", "none"): ["10--"],
        ("m", "v", "plain", "none"): ["100"],
        ("m", "t", "json", "none"): ["110"],
        ("m", "u", "json", "none"): ["--11"],
        ("m", "v", "json", "none"): ["110"],
    }
    (row,) = found(told)
    assert (row.tasks, row.items, row.difference) == pytest.approx((1, 3, 1 / 3))
    assert found({key: right for key, right in told.items() if key[1] != "v"}) == []
    keys = {id_: CellKey("m", "t", name, "none") for id_, name in ((1, "plain"), (2, "json"))}
    assert comparisons([measure(GIVEN, keys, {}, [], {1: (40, 0.5, 1.0), 2: (40, 0.25, 1.0)})], 0) == []


# What is not known ---------------------------------------------------------------------------------------------


def test_several_seeds_have_no_mcnemar() -> None:
    """Seeds are averaged within an item first: 1, 1/2 against 1/2, 0. The reason is said."""
    told = {("m", "t", "plain", "none"): ["100", "000"], ("m", "t", "json", "none"): ["110", "100"]}
    rows = found(told)
    assert rows[0].difference == pytest.approx(1 / 3)
    assert (rows[0].only_a, rows[0].only_b, rows[0].p_mcnemar) == (None, None, None)
    said = {caveat.code: caveat.fields for caveat in caveats(rows)}
    assert said == {"no_mcnemar": ("comparisons.only_a", "comparisons.only_b", "comparisons.p_mcnemar")}


def test_nothing_is_said_where_nothing_lacks() -> None:
    """Wrappers of one model with one seed have every number."""
    assert caveats([row for row in found(worked()) if row.model_a == row.model_b]) == []
    assert caveats([]) == []


def test_sides_that_differ_by_the_same_on_every_item_have_no_interval() -> None:
    """Equal answers, all right against all wrong, and one item: a difference, and why there is no interval."""
    for first, second, expected in (("101", "101", 0.0), ("111", "000", -1.0), ("0", "1", 1.0)):
        rows = found({("m", "t", "plain", "none"): [first], ("m", "t", "json", "none"): [second]})
        assert (rows[0].difference, rows[0].difference_ci) == (expected, None)
        assert rows[0].p_mcnemar is not None
        assert [(caveat.code, caveat.fields) for caveat in caveats(rows)] == [
            ("no_comparison", ("comparisons.difference_ci",))
        ]


# Resamples -----------------------------------------------------------------------------------------------------


def drawn(seed: int, items: Mapping[str, int]) -> dict[tuple[str, str, str, str], list[str]]:
    """Two models under three wrappers, task -> how many items, at random."""
    rng = np.random.default_rng(seed)
    return {
        (model, task, wrapper, "none"): ["".join(str(int(right)) for right in rng.random(count) < rate)]
        for model in ("a", "b")
        for task, count in items.items()
        for wrapper, rate in (("plain", 0.5), ("json", 0.6), ("xml", 0.8))
    }


def alone(told: Told, row: ComparisonRow, seed: int, passage: int = 1) -> pairs.Difference:
    """The statistics of one pair for itself."""
    differences, units = [], []
    for task in dict.fromkeys(key[1] for key in told):
        first, second = ([told[model, task, name, "none"][0] for name in names] for model, names in sides(row))
        both = [i for i in range(len(first[0])) if all(digits[i] != "-" for digits in (*first, *second))]
        one, other = (np.mean([[int(digits[i]) for i in both] for digits in side], axis=0) for side in (first, second))
        differences.append((one - other)[None])
        units.append(np.array(both) // passage)
    (said,) = pairs.differences(differences, seed, clusters=units)
    return said


@pytest.mark.parametrize("passage", [1, 4])
def test_shared_resamples_leave_a_pair_what_it_is_alone(passage: int) -> None:
    """Five comparisons at once, of passages too: mean and BCa interval of each are those of `differences` for it. Model
    b lacks the first item under json and the last under xml: as many items, in other passages."""
    told = drawn(1, {"t": 40, "u": 25})
    told["b", "t", "json", "none"] = ["-" + told["b", "t", "json", "none"][0][1:]]
    told["b", "t", "xml", "none"] = [told["b", "t", "xml", "none"][0][:-1] + "-"]
    rows = found(told, passage, seed=7)
    assert [row.items for row in rows] == [65, 65, 64, 64, 63]
    for row in rows:
        said = alone(told, row, 7, passage)
        assert row.difference == pytest.approx(said.mean)
        assert row.difference_ci == pytest.approx(said.percentile, abs=1e-12)


def test_passages_widen_the_interval_and_have_no_mcnemar() -> None:
    """Four copies of every item, told that they are one, know no more than the item; not told, they seem to."""
    once = {key: right for key, right in drawn(2, {"t": 30}).items() if key[0] == "a" and key[2] != "xml"}
    copies = {key: ["".join(digit * 4 for digit in right[0])] for key, right in once.items()}
    ((single,), (told,), (untold,)) = found(once), found(copies, passage=4), found(copies)
    assert told.difference == pytest.approx(single.difference)
    assert told.difference_ci == pytest.approx(single.difference_ci, abs=1e-12)
    assert told.difference_ci is not None
    assert untold.difference_ci is not None
    assert told.difference_ci[1] - told.difference_ci[0] > 1.5 * (untold.difference_ci[1] - untold.difference_ci[0])
    assert (told.only_a, told.only_b, told.p_mcnemar) == (None, None, None)
    assert (single.p_mcnemar is None, untold.p_mcnemar is None) == (False, False)
    assert [caveat.code for caveat in caveats([told])] == ["no_mcnemar"]


def test_the_same_seed_gives_the_same_rows() -> None:
    """Everything random comes from the seed, and another seed draws other items."""
    told = drawn(3, {"t": 60, "u": 37})
    assert found(told, seed=1) == found(told, seed=1)
    assert found(told, seed=1) != found(told, seed=2)


# Arms and parsers ----------------------------------------------------------------------------------------------


def test_arms_and_parsers_are_apart() -> None:
    """Two arms and two parsers have the rows that each has alone, parser by parser, and none between them."""
    free, held = worked(), worked("xml", "plain", arm="grammar")
    mixed = {**held, **free}
    expected = [*found(held), *found(free)]
    rows = comparisons([measured(mixed), measured(mixed, parser="other")], 0)
    assert [structs.replace(row, difference_ci=None) for row in rows] == [
        structs.replace(row, parser=parser, difference_ci=None) for parser in ("strict", "other") for row in expected
    ]
    for row, same in zip(rows, expected * 2, strict=True):
        assert row.difference_ci == pytest.approx(same.difference_ci, abs=1e-12)
