"""Means and places of models under each parser, and whose order turns round, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from samples import MICRO, tallies

from auditor import order
from auditor.analysis import Reading, summarize
from auditor.figures import CellRow, Counts, ModelRow, OrderChangeRow, ReversalRow, RunInfo
from auditor.measure import Measured, measure
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
    strict = tallies((1, 1, 1, 1, 1), (1, 2, 1, 0, 0), (2, 1, 1, 0, 0), (2, 2, 1, 0, 0))
    loose = tallies((1, 1, 1, 1, 1), (1, 2, 1, 0, 0), (2, 1, 1, 1, 1), (2, 2, 1, 1, 1))
    readings = [
        Reading(measure(name, keys, totals, rows, {})) for name, rows in (("strict", strict), ("normalized", loose))
    ]
    run, counts = RunInfo("r", "2026-01-01", "0", "", 0), Counts(4, 4, 0, 0, 0, 0, 0)
    summary = summarize(run, counts, [], readings, [])
    assert [(row.parser, row.model, row.accuracy, row.parseability, row.rank) for row in summary.models] == [
        ("strict", "a", 0.5, 0.5, 1),
        ("strict", "b", 0.0, 0.0, 2),
        ("normalized", "a", 0.5, 0.5, 2),
        ("normalized", "b", 1.0, 1.0, 1),
    ]
    (row,) = summary.order_changes
    assert (row.model_a, row.model_b, row.accuracies_a, row.accuracies_b) == ("a", "b", (0.5, 0.0), (0.5, 1.0))


# Between wrappers ----------------------------------------------------------------------------------------------

Right = Mapping[tuple[str, str, str, str], str]
"""(model, task, wrapper, arm) -> what is right, a digit an item: "-" where it lacks, "?" without gold."""


def measured(told: Right, passage: int = 1) -> Measured:
    """Every `passage` items of a task share one."""
    keys = {id_: CellKey(*key) for id_, key in enumerate(told, 1)}
    tasks = sorted({key.task for key in keys.values()})
    answers: list[tuple[int, int, int, int, int | None]] = [
        (id_, 1000 * tasks.index(key.task) + i, 1, 1, None if digit == "?" else int(digit))
        for (id_, key), digits in zip(keys.items(), told.values(), strict=True)
        for i, digit in enumerate(digits)
        if digit != "-"
    ]
    totals = {id_: CellTotal(id_, 1, 0, 1, None, None, None, 0) for id_ in keys}
    clusters = {item: item - item % passage for _, item, *_ in answers}
    return measure("strict", keys, totals, tallies(*answers), {}, clusters)


def reversals(told: Right, passage: int = 1) -> list[ReversalRow]:
    return order.reversals(measured(told, passage), 0)


WORKED = {
    (*family, wrapper, "none"): correct
    for family, wrappers in MICRO.items()
    for wrapper, (_, correct) in wrappers.items()
}


def test_the_worked_example_has_an_apparent_reversal() -> None:
    """In t1 m0 is ahead under plain with 1/2 to 1/4 and behind under json with 1/4 to 1/2. Over both tasks m0 has 3/8,
    1/4 and 3/4, m1 1/4, 3/8 and 1/2: the same. Four items a task make nothing sure."""
    ahead_and_behind = (("plain", "xml"), ("json",), (), (), False)
    t1 = {key: right for key, right in WORKED.items() if key[1] == "t1"}
    assert reversals(t1) == [ReversalRow("none", "strict", "m0", "m1", 1, 4, *ahead_and_behind)]
    assert reversals(WORKED) == [ReversalRow("none", "strict", "m0", "m1", 2, 8, *ahead_and_behind)]


def test_models_that_tie_or_keep_their_order_have_no_row() -> None:
    """In t0 they tie under plain and json, and m0 is ahead under xml."""
    assert reversals({key: right for key, right in WORKED.items() if key[1] == "t0"}) == []


def many(items: int, rates: Mapping[tuple[str, str], float], tasks: str = "tu") -> dict[tuple[str, str, str, str], str]:
    """(model, wrapper) -> its rate in every task; answers at random."""
    rng = np.random.default_rng(4)
    return {
        (model, task, wrapper, "none"): "".join(str(int(right)) for right in rng.random(items) < rate)
        for (model, wrapper), rate in rates.items()
        for task in tasks
    }


TURNS = {("a", "plain"): 0.8, ("a", "json"): 0.5, ("b", "plain"): 0.6, ("b", "json"): 0.7, ("c", "plain"): 0.3,
         ("c", "json"): 0.2}  # fmt: skip


def test_many_items_certify_a_reversal() -> None:
    """Two tasks of 300 items: .8 against .6 under plain and .5 against .7 under json are no chance; c is behind both
    under both."""
    (row,) = reversals(many(300, TURNS))
    assert (row.model_a, row.model_b, row.tasks, row.items) == ("a", "b", 2, 600)
    assert (row.ahead, row.behind, row.certified) == (("plain",), ("json",), True)
    assert (row.surely_ahead, row.surely_behind) == (("plain",), ("json",))


def test_few_items_certify_nothing() -> None:
    """8 to 6 and 5 to 7 of ten items may be chance: the row is there, and says that it is apparent. So it is of 60
    copies of each item in one passage, which would be sure if they were items."""
    few = {
        ("a", "t", "plain", "none"): "1111111100",
        ("a", "t", "json", "none"): "1010101010",
        ("b", "t", "plain", "none"): "1110111000",
        ("b", "t", "json", "none"): "1111110100",
    }
    copies = {key: "".join(digit * 60 for digit in right) for key, right in few.items()}
    for told, passage, items, certified in ((few, 1, 10, False), (copies, 60, 600, False), (copies, 1, 600, True)):
        (row,) = reversals(told, passage)
        assert (row.ahead, row.behind, row.items, row.certified) == (("plain",), ("json",), items, certified)


def test_a_missing_cell_leaves_its_wrapper_out() -> None:
    """A copy of json under which the models turn too goes for both tasks when m1 lacks it in one; without json itself
    nothing turns."""
    copied = {**WORKED, **{(m, t, "yaml", arm): right for (m, t, w, arm), right in WORKED.items() if w == "json"}}
    assert [row.behind for row in reversals(copied)] == [("json", "yaml")]
    del copied["m1", "t0", "yaml", "none"]
    assert reversals(copied) == reversals(WORKED)
    assert reversals({key: right for key, right in WORKED.items() if key[:3] != ("m1", "t1", "json")}) == []


def test_only_items_that_all_models_answered_under_all_wrappers_count() -> None:
    """m1 lacks the second item of t1 under json, one that it has right there: two ties and xml are left of t1."""
    told = {**WORKED, ("m1", "t1", "json", "none"): "0-10"}
    # t1 without it: m0 2/3, 1/3, 2/3 and m1 1/3, 1/3, 1/3; t0: ties, and 3/4 to 1/2
    assert reversals(told) == []
    wider = {**WORKED, ("m0", "t0", "plain", "none"): "-000"}
    # t0 without it: m0 0, 0, 2/3 and m1 1/3, 0, 2/3; with t1's +1/4, -1/4, +1/4 plain turns too
    assert [(row.items, row.ahead, row.behind) for row in reversals(wider)] == [(7, ("xml",), ("plain", "json"))]


def test_what_cannot_be_compared_has_no_row() -> None:
    """One model, one wrapper, no gold in a task, no item in common, an imported table of cells."""
    assert reversals({key: right for key, right in WORKED.items() if key[0] == "m0"}) == []
    assert reversals({key: right for key, right in WORKED.items() if key[2] == "json"}) == []
    assert reversals({**WORKED, ("m1", "t0", "xml", "none"): "01?0"}) == []
    assert (
        reversals({("a", "t", w, "none"): "10--" for w in "vw"} | {("b", "t", w, "none"): "--01" for w in "vw"}) == []
    )
    keys = {
        id_: CellKey(m, "t", w, "none") for id_, (m, w) in enumerate([("a", "v"), ("a", "w"), ("b", "v"), ("b", "w")])
    }
    given = {id_: (40, rate, 1.0) for id_, rate in enumerate((0.5, 0.25, 0.25, 0.5))}
    assert order.reversals(measure("given", keys, {}, [], given), 0) == []


def test_each_arm_has_its_reversals() -> None:
    """Held to a grammar the models keep their order under json and turn under xml; free they turn as before."""
    turned = {"plain": "plain", "json": "xml", "xml": "json"}
    held = {(m, t, turned[w], "grammar"): right for (m, t, w, _), right in WORKED.items()}
    both = {key: right for pair in zip(WORKED.items(), held.items(), strict=True) for key, right in pair}
    assert reversals(both) == [*reversals(WORKED), *reversals(held)]
    assert [(row.arm, row.behind) for row in reversals(both)] == [("none", ("json",)), ("grammar", ("xml",))]
