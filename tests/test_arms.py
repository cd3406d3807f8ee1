"""Enforced arms against the arm without: rates, changes on the same items, and whether anybody proved it."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest
from samples import tallies
from scipy import stats

from auditor.arms import caveats, enforcement, label
from auditor.measure import Measured, measure
from auditor.records import Canary, CellKey, CellTotal, Enforcement, Findings, Verdict

Rates = dict[tuple[str, str, str], tuple[str, str]]
"""(task, wrapper, arm) -> (parsed, correct), a digit an item and one seed; `-` is missing."""


def measured(rates: Rates, gold: bool = True) -> Measured:
    keys, rows, totals = {}, [], {}
    tasks = list(dict.fromkeys(task for task, _, _ in rates))
    for id_, ((task, wrapper, arm), (parsed, correct)) in enumerate(rates.items(), 1):
        keys[id_] = CellKey("m", task, wrapper, arm)
        read = [
            (id_, 100 * tasks.index(task) + i, 1, int(digit), int(correct[i]) if gold else None)
            for i, digit in enumerate(parsed)
            if digit != "-"
        ]
        totals[id_] = CellTotal(id_, len(read), parsed.count("-"), len(read), None, None, None, 0)
        rows += read
    return measure("strict", keys, totals, tallies(*rows), {})


def canary(enforce: Enforcement, verdict: Verdict, said: str = "told", server: str = "s", model: str = "m") -> Findings:
    return Findings(model, server, "vllm", canaries=(Canary(enforce, verdict, said),))


TWO: Rates = {
    ("t", "plain", "none"): ("10", "10"),
    ("t", "json", "none"): ("00", "00"),
    ("t", "plain", "grammar"): ("11", "10"),
    ("t", "json", "grammar"): ("11", "11"),
}


def test_two_wrappers_and_two_items_by_hand() -> None:
    """Without: parsed 1/2 and 0, correct 1/2 and 0. With: parsed 1 and 1, correct 1/2 and 1.

    Item 1 changes by (0 + 1) / 2 in parsed and correct; item 2 by (1 + 1) / 2 in parsed, (0 + 1) / 2 in correct. So
    parseability changes by 3/4 with variance 1/8 over two items, accuracy by 1/2 for both.
    """
    (row,) = enforcement(measured(TWO), [canary("grammar", "enforced")])
    assert (row.model, row.arm, row.parser, row.label, row.canary) == (
        "m",
        "grammar",
        "strict",
        "verified",
        "enforced: told",
    )
    assert (row.wrappers, row.tasks, row.n, row.n_without) == (("plain", "json"), 1, 4, 4)
    assert (row.parseability, row.parseability_without) == (1.0, 0.25)
    assert (row.accuracy, row.accuracy_without) == (0.75, 0.25)
    assert (row.psi, row.psi_without) == (0.0, 0.5)
    assert (row.fsi, row.fsi_without) == (0.5, 0.5)
    half = float(stats.t.ppf(0.975, 1)) * (1 / 8 / 2) ** 0.5
    assert row.parseability_change_ci == pytest.approx((max(-1, 0.75 - half), min(1, 0.75 + half)))
    assert row.accuracy_change_ci == (0.5, 0.5)


def test_the_change_of_one_wrapper_is_the_paired_t_test() -> None:
    """On the items that both arms answered, in whatever order: scipy's interval."""
    rng = np.random.default_rng(0)
    free = "".join(rng.choice(["0", "1"], 40))
    held = "".join(rng.choice(["0", "1", "1"], 40))
    some = "-" + held[1:39] + "-"
    rates: Rates = {("t", "json", "none"): (free, free), ("t", "json", "json_schema"): (some, held)}
    (row,) = enforcement(measured(rates), [])
    with_, without = (np.array(list(digits[1:39]), float) for digits in (held, free))
    interval = stats.ttest_rel(with_, without).confidence_interval(0.95)
    assert row.accuracy_change_ci == pytest.approx((interval.low, interval.high))
    assert (row.n, row.n_without) == (38, 40)


def test_tasks_count_alike() -> None:
    """PSI and FSI are means over tasks, the change a mean over tasks, however many items one has."""
    rates: Rates = {
        ("t", "a", "none"): ("1100", "1100"),
        ("t", "b", "none"): ("1111", "1111"),
        ("u", "a", "none"): ("00", "00"),
        ("u", "b", "none"): ("11", "11"),
        ("t", "a", "grammar"): ("1111", "1111"),
        ("t", "b", "grammar"): ("1111", "1111"),
        ("u", "a", "grammar"): ("00", "00"),
        ("u", "b", "grammar"): ("11", "11"),
    }
    (row,) = enforcement(measured(rates), [])
    assert row.tasks == 2
    assert (row.psi, row.psi_without) == (0.5, 0.75)
    assert row.parseability_change_ci is not None
    assert sum(row.parseability_change_ci) / 2 == pytest.approx((0.25 + 0) / 2)


def test_one_wrapper_has_no_range() -> None:
    """Where JSON alone is enforced PSI and FSI are not known with it nor without; the caveat says which arm helps."""
    rates = {key: value for key, value in TWO.items() if key[1] == "json" or key[2] == "none"}
    rows = enforcement(measured({(t, w, a.replace("grammar", "json_schema")): r for (t, w, a), r in rates.items()}), [])
    (row,) = rows
    assert row.wrappers == ("json",)
    assert (row.psi, row.fsi, row.psi_without, row.fsi_without) == (None, None, None, None)
    assert (row.parseability, row.parseability_without) == (1.0, 0.0)
    (caveat,) = caveats(rows)
    assert caveat.code == "one_enforced_wrapper"
    assert caveat.fields == tuple(f"enforcement.{name}" for name in ("psi", "fsi", "psi_without", "fsi_without"))
    assert "--enforce grammar" in caveat.message


def test_limits_are_compared_with_themselves() -> None:
    """`grammar@24` stands against `none@24`, not against `none@256`; arms without enforcement have no row."""
    rates: Rates = {}
    for limit, free in (("24", "00"), ("256", "10")):
        rates |= {("t", w, f"none@{limit}"): (free, free) for w in ("a", "b")}
        rates |= {("t", w, f"grammar@{limit}"): ("11", "11") for w in ("a", "b")}
    rows = {row.arm: row for row in enforcement(measured(rates), [canary("grammar", "enforced")])}
    assert {arm: row.parseability_without for arm, row in rows.items()} == {"grammar@24": 0.0, "grammar@256": 0.5}
    assert {row.label for row in rows.values()} == {"verified"}


def test_without_the_arm_none_there_is_no_comparison() -> None:
    """What is measured is there, what it is compared with is not, and the caveat says why."""
    rates = {key: value for key, value in TWO.items() if key[2] == "grammar"}
    rows = enforcement(measured(rates), [])
    (row,) = rows
    assert (row.n, row.n_without, row.parseability, row.psi) == (4, 0, 1.0, 0.0)
    assert (row.parseability_without, row.accuracy_without, row.psi_without, row.fsi_without) == (None,) * 4
    assert (row.parseability_change_ci, row.accuracy_change_ci) == (None, None)
    assert [caveat.code for caveat in caveats(rows)] == ["no_base_arm"]


def test_without_gold_there_is_parseability_alone() -> None:
    """Accuracy, its change and FSI are not known; parseability, its change and PSI are."""
    (row,) = enforcement(measured(TWO, gold=False), [])
    assert (row.accuracy, row.accuracy_without, row.accuracy_change_ci, row.fsi) == (None,) * 4
    assert (row.parseability, row.psi) == (1.0, 0.0)
    assert row.parseability_change_ci is not None


def test_items_that_one_cell_lacks_are_in_no_difference() -> None:
    """Only items that every wrapper answered in both arms are averaged: one left is too few for an interval."""
    rates = TWO | {("t", "json", "grammar"): ("1-", "1-"), ("t", "plain", "grammar"): ("11", "10")}
    (row,) = enforcement(measured(rates), [])
    assert row.parseability_change_ci is None
    assert row.n == 3


def test_each_model_is_compared_with_itself() -> None:
    """Another model's arm none is no base."""
    one = measured(TWO)
    other = [msgspec.structs.replace(cell.key, model="other") for cell in one.cells]
    cells = tuple(
        dataclasses.replace(cell, key=key) if key.arm == "none" else cell
        for cell, key in zip(one.cells, other, strict=True)
    )
    (row,) = enforcement(Measured(one.parser, cells), [])
    assert (row.model, row.n_without) == ("m", 0)


# Labels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("enforced", ("verified", "enforced: told")),
        ("ignored", ("ignored", "ignored: told")),
        ("refused", ("refused", "refused: told")),
        ("fails_open", ("claimed", "fails open: told")),
        ("unknown", ("claimed", "unknown: told")),
    ],
)
def test_a_label_is_what_the_canary_says(verdict: Verdict, expected: tuple[str, str]) -> None:
    """Verified only where a canary proved it."""
    assert label("m", "grammar", [canary("grammar", verdict)]) == expected


def test_without_a_canary_it_is_claimed() -> None:
    """Another model's or another enforcement's canary proves nothing."""
    found = [canary("grammar", "enforced", model="other"), canary("json_schema", "enforced")]
    assert label("m", "grammar", found) == ("claimed", "no canary was asked")
    assert label("m", "grammar", []) == ("claimed", "no canary was asked")


def test_the_worst_server_counts() -> None:
    """One of several servers that ignores it makes it ignored."""
    found = [canary("grammar", "enforced", "a"), canary("grammar", "ignored", "b"), canary("grammar", "unknown", "c")]
    assert label("m", "grammar", found) == ("ignored", "ignored: b")
    assert label("m", "grammar", [found[0], found[2]]) == ("claimed", "unknown: c")
    assert label("m", "grammar", [*found, canary("grammar", "refused", "d")])[0] == "refused"
