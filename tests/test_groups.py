"""Ranges and noise floors within the groups of a task, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from samples import tallies

from auditor import groups
from auditor.figures import GroupRow
from auditor.measure import GIVEN, Measured, measure
from auditor.records import CellKey, CellTotal

Told = Mapping[tuple[str, str], tuple[str, str]]
"""(wrapper, arm) -> what was parsed and correct, a digit an item: "-" if it lacks, "?" if gold does."""


def measured(told: Told, clusters: Mapping[int, int] | None = None) -> Measured:
    keys = {id_: CellKey("m", "t", *key) for id_, key in enumerate(told, 1)}
    rows: list[tuple[int, int, int, int, int | None]] = [
        (id_, i, 1, int(parsed[i]), None if correct[i] == "?" else int(correct[i]))
        for id_, (parsed, correct) in enumerate(told.values(), 1)
        for i in range(len(parsed))
        if parsed[i] != "-"
    ]
    totals = {id_: CellTotal(id_, 1, 0, 1, None, None, None, 0) for id_ in keys}
    return measure("strict", keys, totals, tallies(*rows), {}, clusters or {})


TWO: Told = {("a", "none"): ("111111", "110110"), ("b", "none"): ("110011", "100001")}
"""Items 0 to 5."""
LAW = {0: "law", 1: "law", 2: "law", 3: "law", 4: "art"}
"""Item 5 has no group."""


def floor(*errors: float) -> float:
    """The expected range of two wrappers whose difference has the sum of these squares as its variance."""
    return math.hypot(*errors) * math.sqrt(2 / math.pi)


def test_the_range_of_a_group_by_hand() -> None:
    """law: right 3/4 and 1/4, parsed 1 and 1/2; the differences 0, 1, 0, 1 have a standard error of sqrt(1/12), of both
    kinds. art has one item, right under a alone: a range, and no noise to tell it from."""
    art, law = groups.rows(measured(TWO), LAW, 0)
    assert (law.model, law.task, law.arm, law.parser, law.group) == ("m", "t", "none", "strict", "law")
    assert (law.items, law.wrappers, law.accuracy_mean, law.fsi, law.psi) == (4, 2, 0.5, 0.5, 0.5)
    assert (law.fsi_floor, law.psi_floor) == pytest.approx((floor(math.sqrt(1 / 12)),) * 2, rel=0.05)
    assert art == GroupRow("m", "t", "none", "strict", "art", 1, 2, 0.5, 1.0, None, 0.0, None)


def test_items_without_a_group_are_in_no_row() -> None:
    """Item 5 is in the task and in no group; an item that one wrapper lacks is in none either."""
    assert [(row.group, row.items) for row in groups.rows(measured(TWO), LAW, 0)] == [("art", 1), ("law", 4)]
    lacking: Told = {**TWO, ("b", "none"): ("-10011", "-00001")}
    assert [(row.group, row.items) for row in groups.rows(measured(lacking), LAW, 0)] == [("art", 1), ("law", 3)]


def test_one_group_is_the_task_again() -> None:
    """There are rows where items are told apart: not with one group for all of them, and not with none."""
    assert groups.rows(measured(TWO), dict.fromkeys(range(6), "law"), 0) == []
    assert groups.rows(measured(TWO), {}, 0) == []
    assert groups.rows(measured(TWO), {7: "law", 8: "art"}, 0) == []


def test_a_passage_is_one_unit_of_noise() -> None:
    """law in two passages of two: sums of the differences are 1 and 1, so that nothing varies; then 0 and 2."""
    steady = next(r for r in groups.rows(measured(TWO, {0: 0, 1: 0, 2: 2, 3: 2}), LAW, 0) if r.group == "law")
    assert (steady.fsi, steady.fsi_floor) == pytest.approx((0.5, 0), abs=1e-12)
    # 2 / (2 - 1) x (1 + 1) / 4^2 is the variance of a mean of passages that are off by one each way
    paired = next(r for r in groups.rows(measured(TWO, {0: 0, 2: 0, 1: 1, 3: 1}), LAW, 0) if r.group == "law")
    assert paired.fsi_floor == pytest.approx(floor(0.5), rel=0.05)
    single = next(r for r in groups.rows(measured(TWO, dict.fromkeys(range(4), 0)), LAW, 0) if r.group == "law")
    assert (single.items, single.fsi, single.fsi_floor) == (4, 0.5, None)


def test_what_is_not_known_is_none() -> None:
    """Without gold there is parseability alone; one wrapper has no range; an imported cell has no items."""
    unknown: Told = {("a", "none"): ("111111", "??????"), ("b", "none"): ("110011", "??????")}
    law = groups.rows(measured(unknown), LAW, 0)[1]
    assert (law.accuracy_mean, law.fsi, law.fsi_floor, law.psi) == (None, None, None, 0.5)
    assert law.psi_floor is not None
    alone = groups.rows(measured({("a", "none"): TWO["a", "none"]}), LAW, 0)[1]
    assert (alone.wrappers, alone.accuracy_mean, alone.fsi, alone.fsi_floor) == (1, 0.75, None, None)
    imported = measure(GIVEN, {1: CellKey("m", "t", "a", "none")}, {}, [], {1: (6, 0.5, 1.0)})
    assert groups.rows(imported, LAW, 0) == []


def test_arms_are_apart() -> None:
    """Each arm of a task has the rows that it has alone."""
    held: Told = {("a", "grammar"): ("111111", "111111"), ("b", "grammar"): ("111111", "011101")}
    both = {key: told for pair in zip(TWO.items(), held.items(), strict=True) for key, told in pair}
    found = groups.rows(measured(both), LAW, 3)
    assert found == [*groups.rows(measured(TWO), LAW, 3), *groups.rows(measured(held), LAW, 3)]
    assert [row.arm for row in found] == ["none", "none", "grammar", "grammar"]
