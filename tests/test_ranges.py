"""The delimiter paper's tables: worked by hand, over small tables of cells."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import ranges
from auditor.figures import CellRow

Table = dict[tuple[str, str], dict[str, float | None]]
"""(model, task) -> wrapper -> accuracy."""


def cells(table: Table, parser: str = "given", arm: str = "none") -> list[CellRow]:
    """Cells that know nothing but their accuracy."""
    nothing: dict[str, Any] = dict.fromkeys(CellRow.__struct_fields__) | {"missing": 0, "reasons": {}}
    return [
        CellRow(**nothing | {"model": m, "task": t, "wrapper": w, "arm": arm, "parser": parser, "accuracy": rate})
        for (m, t), rates in table.items()
        for w, rate in rates.items()
    ]


# t1: means 0.5 and 0.4. t2: means 0.5 and 0.5.
TABLE: Table = {
    ("m", "t1"): {"a": 0.2, "b": 0.8, "c": 0.5},
    ("n", "t1"): {"a": 0.3, "b": 0.3, "c": 0.6},
    ("m", "t2"): {"a": 0.9, "b": 0.4, "c": 0.2},
    ("n", "t2"): {"a": 0.4, "b": 0.3, "c": 0.8},
}


def test_a_spread_by_hand() -> None:
    """0.2, 0.8, 0.5: mean 0.5, squares 0.09 + 0.09, over 2 by the sample and over 3 by the population formula."""
    row = ranges.spreads(cells(TABLE))[0]
    assert (row.model, row.task, row.wrappers, row.lowest, row.highest) == ("m", "t1", 3, 0.2, 0.8)
    assert (row.mean, row.spread, row.gain) == pytest.approx((0.5, 0.6, 0.3), abs=1e-15)
    assert (row.sd_sample, row.sd_population) == pytest.approx((0.3, sqrt(0.06)), abs=1e-15)
    assert (row.best_wrappers, row.worst_wrappers) == (("b",), ("a",))


def test_wrappers_that_tie_are_all_named() -> None:
    """n scores 0.3 under both a and b."""
    row = ranges.spreads(cells(TABLE))[1]
    assert (row.worst_wrappers, row.best_wrappers) == (("a", "b"), ("c",))


def test_the_gain_is_of_one_wrapper_for_all_tasks() -> None:
    """m gains 0.1 by b, though 0.3 by b in t1 and 0.4 by a in t2: these are two wrappers."""
    found = {row.model: row for row in ranges.gains(cells(TABLE))}
    assert (found["m"].tasks, found["m"].best_wrappers) == (2, ("b",))
    # b: 0.3 in t1 and -0.1 in t2; a: -0.3 and 0.4; c: 0 and -0.3
    assert found["m"].gain == pytest.approx(0.1, abs=1e-15)
    assert found["n"].best_wrappers == ("c",)
    assert found["n"].gain == pytest.approx((0.2 + 0.3) / 2, abs=1e-15)


def test_tasks_with_other_wrappers_have_no_common_gain() -> None:
    """A mean over other wrappers is another mean: null with a reason, while each task keeps its spread."""
    found = cells({("m", "t1"): {"a": 0.2, "b": 0.8}, ("m", "t2"): {"a": 0.2, "c": 0.8}})
    rows = (ranges.spreads(found), ranges.gains(found), ranges.firsts(found))
    assert (rows[1][0].gain, rows[1][0].best_wrappers) == (None, ())
    assert [row.gain for row in rows[0]] == pytest.approx([0.3, 0.3])
    assert [caveat.code for caveat in ranges.caveats(*rows)] == ["no_gain"]


@pytest.mark.parametrize("rates", [{"a": 0.5}, {"a": 0.5, "b": None}])
def test_what_has_no_spread_has_none(rates: dict[str, float | None]) -> None:
    """One wrapper, or one whose accuracy is not known: null, never 0."""
    (row,) = ranges.spreads(cells({("m", "t"): rates}))
    (gain,) = ranges.gains(cells({("m", "t"): rates}))
    assert (row.spread, row.sd_sample, row.sd_population, row.gain, gain.gain) == (None,) * 5


def test_who_is_first_under_each_wrapper() -> None:
    """In t1 n leads by a and c; in t2 m leads by a and b."""
    found = {row.task: row for row in ranges.firsts(cells(TABLE))}
    assert found["t1"].by_wrapper == {"a": ("n",), "b": ("m",), "c": ("n",)}
    assert found["t2"].by_wrapper == {"a": ("m",), "b": ("m",), "c": ("n",)}
    assert all((row.models, row.never, row.never_apart) == (("m", "n"), (), ()) for row in found.values())


def test_a_model_that_no_wrapper_puts_first() -> None:
    """y never leads under one wrapper for all, but its best, 0.6, is above the others' worst; z's best is not."""
    (row,) = ranges.firsts(
        cells({("x", "t"): {"a": 0.9, "b": 0.5}, ("y", "t"): {"a": 0.6, "b": 0.3}, ("z", "t"): {"a": 0.4, "b": 0.4}})
    )
    assert row.by_wrapper == {"a": ("x",), "b": ("x",)}
    assert (row.never, row.never_apart) == (("y", "z"), ("z",))


def test_models_that_tie_are_both_first() -> None:
    """0.1 + 0.2 and 0.3 are one accuracy but for rounding."""
    (row,) = ranges.firsts(cells({("x", "t"): {"a": 0.1 + 0.2}, ("y", "t"): {"a": 0.3}}))
    assert (row.by_wrapper, row.never) == ({"a": ("x", "y")}, ())


def test_models_are_compared_under_wrappers_that_all_have() -> None:
    """y lacks b, under which x would be last: b is left out and named."""
    found = cells({("x", "t"): {"a": 0.9, "b": 0.1}, ("y", "t"): {"a": 0.6}})
    rows = (ranges.spreads(found), ranges.gains(found), ranges.firsts(found))
    assert (rows[2][0].by_wrapper, rows[2][0].left_out) == ({"a": ("x",)}, ("b",))
    assert "not every model has b" in ranges.caveats(*rows)[-1].message


@pytest.mark.parametrize("other", [("y", "u", "a"), ("y", "t", "b")])
def test_without_a_common_wrapper_nobody_is_first(other: tuple[str, str, str]) -> None:
    """Two models in two tasks, or under two wrappers, are not compared; it is said why."""
    found = cells({("x", "t"): {"a": 0.9}, other[:2]: {other[2]: 0.5}})
    rows = (ranges.spreads(found), ranges.gains(found), ranges.firsts(found))
    assert rows[2] == []
    assert "no_firsts" in [caveat.code for caveat in ranges.caveats(*rows)]


def test_parsers_and_arms_stay_apart() -> None:
    """A row for each, and no wrapper of one arm beside another's."""
    found = [*cells(TABLE, "strict"), *cells(TABLE, "normalized"), *cells(TABLE, "strict", "grammar")]
    assert len(ranges.spreads(found)) == 12
    assert {(row.parser, row.arm, row.tasks) for row in ranges.gains(found)} == {
        ("strict", "none", 2),
        ("normalized", "none", 2),
        ("strict", "grammar", 2),
    }
    assert len(ranges.firsts(found)) == 6


RATE = st.integers(0, 1000).map(lambda correct: correct / 1000)


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(RATE, RATE), min_size=2))
def test_laws(rates: dict[str, tuple[float, float]]) -> None:
    """The population formula gives the smaller deviation, at most half the spread; one wrapper for all tasks gains no
    more than each task's own, and no less than nothing; whom a wrapper puts first could be first with a choice for
    each model."""
    table: Table = {
        ("m", "t"): {w: a for w, (a, _) in rates.items()},
        ("m", "u"): {w: b for w, (_, b) in rates.items()},
    }
    table |= {("n", "t"): table["m", "u"]}
    found = cells(table)
    rows = ranges.spreads(found)
    for row in rows:
        assert row.sd_population <= row.sd_sample + 1e-12  # type: ignore[operator]
        assert row.sd_population <= row.spread / 2 + 1e-12  # type: ignore[operator]
    gain = ranges.gains(found)[0].gain
    assert -1e-12 <= gain <= (rows[0].gain + rows[1].gain) / 2 + 1e-12  # type: ignore[operator]
    (first,) = (row for row in ranges.firsts(found) if row.task == "t")
    assert set(first.never_apart) <= set(first.never)
