"""What of a range is more than noise, from cells: which items count, what is null and why."""

from __future__ import annotations

import numpy as np
import pytest

from auditor import evidence
from auditor.evidence import Evidence, OverTasks, over_tasks, weigh
from auditor.measure import Cell, FloatArray, IntArray
from auditor.records import CellKey
from auditor.stats import effects, inversion, macro, simultaneous


def cell(
    name: str,
    correct: list[float] | None,
    items: list[int] | None = None,
    parsed: list[float] | None = None,
    units: list[int] | None = None,
) -> Cell:
    count = len(correct if correct is not None else parsed or [])
    ids = np.array(items if items is not None else range(count))
    rates = None if correct is None else np.array(correct, float)
    read = np.array(parsed if parsed is not None else [1.0] * count)
    own = ids if units is None else np.array(units)
    return Cell(1, CellKey("m", "t", name, "none"), count, 0, float(read.sum()), None, ids, read, rates, own)


def items(found: Evidence) -> list[int]:
    return [] if found.rates is None else [int(item) for item in found.rates.items]


def test_only_items_that_every_wrapper_answered_count() -> None:
    """An item that one wrapper lacks leaves them all, so that contrasts stay paired."""
    first = cell("a", [1, 0, 1, 1, 0], [1, 2, 3, 4, 5])
    second = cell("b", [0, 0, 0, 1], [2, 3, 4, 5])
    found = weigh([first, second], 0)
    rows = np.array([[0, 1, 1, 0], [0, 0, 0, 1]], float)
    assert items(found) == [2, 3, 4, 5]
    assert found.fsi == inversion.range_inversion(rows, 0)
    assert found.p == effects.permutation_test(rows, 0, relabellings=evidence.DRAWS).p
    assert found.p_cochran == effects.cochran_q(rows).p


def test_what_is_not_known_is_none() -> None:
    """Cells without items have no evidence; without gold there is that of parseability alone."""
    scored = Cell(1, CellKey("m", "t", "a", "none"), 10, 0, 10.0, 5.0, None, None, None)
    assert weigh([scored, scored], 0) == evidence.Evidence()
    unknown = [cell(name, None, parsed=[1.0, read, 1.0, 0.0]) for name, read in (("a", 0.0), ("b", 1.0))]
    found = weigh(unknown, 0)
    assert (found.fsi, found.p, len(items(found))) == (None, None, 4)
    assert found.psi is not None
    assert found.psi.observed == 0.25


def test_seeds_that_differ_have_no_cochran_q() -> None:
    """Cochran's Q is about one answer an item."""
    found = weigh([cell("a", [1, 0.5, 1, 0.2]), cell("b", [0, 0, 1, 0.4])], 0)
    assert found.p is not None
    assert found.p_cochran is None


def test_one_wrapper_or_one_item_has_a_reason() -> None:
    """A range needs two wrappers, its noise two items."""
    for cells in ([cell("a", [1, 0])], [cell("a", [1]), cell("b", [0])]):
        found = weigh(cells, 0)
        assert found.fsi is not None
        assert found.fsi.reason
        assert (found.p, found.contenders, found.detectable) == (None, (), None)


def test_a_real_effect_is_found_and_chance_is_not() -> None:
    """300 items: a wrapper 0.3 below the others is told from them; equal ones are all contenders."""
    rng = np.random.default_rng(5)
    rates = {"good": 0.7, "same": 0.7, "bad": 0.4}
    found = weigh([cell(name, list((rng.random(300) < rate) * 1.0)) for name, rate in rates.items()], 0)
    assert found.p is not None
    assert found.p < 0.001
    assert found.contenders == ("good", "same")
    assert found.fsi is not None
    assert found.fsi.interval is not None
    assert found.fsi.interval[0] > 0.2
    equal = weigh([cell(name, list((rng.random(300) < 0.6) * 1.0)) for name in "abc"], 0)
    assert equal.p is not None
    assert equal.p > 0.05
    assert equal.contenders == ("a", "b", "c")


def test_holm_is_over_the_tasks_of_one_model_and_arm() -> None:
    """Two tasks of one model share the error; another model and another arm do not."""
    ps = {("m", "t", "none"): 0.02, ("m", "u", "none"): 0.03, ("n", "t", "none"): 0.02, ("m", "t", "json_schema"): None}
    expected = {
        ("m", "t", "none"): 0.04,
        ("m", "u", "none"): 0.04,
        ("n", "t", "none"): 0.02,
        ("m", "t", "json_schema"): None,
    }
    assert evidence.adjusted(ps) == pytest.approx(expected)


# Passages ------------------------------------------------------------------------------------------------------


def test_items_of_a_passage_count_together() -> None:
    """Range, bounds and test take passages for items, and Cochran's Q, which cannot, is not told."""
    rng = np.random.default_rng(8)
    units = np.repeat(np.arange(12), 3) * 3
    read, rows = (rng.random((2, 36)) < [[0.9], [0.7]]) * 1.0, (rng.random((2, 36)) < [[0.7], [0.5]]) * 1.0
    told = [
        (name, list(row), None, list(parsed), units.tolist())
        for name, row, parsed in zip("ab", rows, read, strict=True)
    ]
    found = weigh([cell(*one) for one in told], 0)
    assert found.fsi == inversion.range_inversion(rows, 0, clusters=units)
    assert found.psi == inversion.range_inversion(read, 0, clusters=units)
    assert found.fsi.units == found.psi.units == 12
    assert found.fsi_bounds == simultaneous.range_bounds(rows, 0, clusters=units, draws=evidence.DRAWS).interval
    assert found.psi_bounds == simultaneous.range_bounds(read, 0, clusters=units, draws=evidence.DRAWS).interval
    assert found.p == effects.permutation_test(rows, 0, clusters=units, relabellings=evidence.DRAWS).p
    assert found.p_cochran is None


def test_items_that_say_the_same_in_their_passage_are_no_evidence() -> None:
    """Five copies of an item are one: floor, interval and tests are those of the items once, not of five times more."""
    rows = (np.random.default_rng(3).random((3, 30)) < [[0.8], [0.6], [0.5]]).astype(float)
    once = weigh([cell(name, list(row)) for name, row in zip("abc", rows, strict=True)], 0)
    copies = np.repeat(np.arange(30), 5).tolist()
    five = weigh([cell(name, list(row.repeat(5)), units=copies) for name, row in zip("abc", rows, strict=True)], 0)
    assert once.fsi is not None
    assert five.fsi is not None
    assert five.fsi.floor == pytest.approx(once.fsi.floor)
    assert five.fsi.interval == pytest.approx(once.fsi.interval, abs=1e-6)
    assert (five.p, five.contenders) == (once.p, once.contenders)
    assert five.detectable == pytest.approx(once.detectable)
    assert five.chances == pytest.approx(once.chances)
    assert once.p_cochran is not None


# Over tasks ----------------------------------------------------------------------------------------------------


def family(seed: int, items: tuple[int, ...] = (20, 30), gold: bool = True, units: int = 1) -> list[Evidence]:
    """A task for each number of `items`, every `units` of which share a passage, under two wrappers."""
    rng = np.random.default_rng(seed)
    found = []
    for count in items:
        parsed = rng.random((2, count)) < 0.9
        right = parsed & (rng.random((2, count)) < [[0.7], [0.5]])
        passage = (np.arange(count) // units * units).tolist()
        found.append(
            weigh(
                [
                    cell(name, list(c * 1.0) if gold else None, parsed=list(p * 1.0), units=passage)
                    for name, c, p in zip("ab", right, parsed, strict=True)
                ],
                seed,
            )
        )
    return found


def known(one: Evidence) -> tuple[inversion.RangeEstimate, inversion.RangeEstimate, FloatArray, FloatArray, IntArray]:
    assert one.fsi is not None
    assert one.psi is not None
    assert one.rates is not None
    assert one.rates.correct is not None
    return one.fsi, one.psi, one.rates.correct, one.rates.parsed, one.rates.units


def test_three_intervals_over_tasks_are_those_of_the_statistics() -> None:
    """For more tasks, for exactly these, and by the hierarchical bootstrap, with passages resampled as a whole."""
    one = family(1, (20, 30, 24), units=2)
    fsi, psi, correct, parsed, units = zip(*map(known, one), strict=True)
    resampled = macro.hierarchical_means(
        [np.stack(rates) for rates in zip(correct, parsed, strict=True)], 5, clusters=units
    )
    ((said, said_psi),) = over_tasks([one], 5)
    for told, estimates, mean in ((said, fsi, resampled[0]), (said_psi, psi, resampled[1])):
        assert told.mean == np.mean([estimate.adjusted for estimate in estimates])
        assert told.sampled == macro.macro_range(estimates).interval
        assert told.fixed == macro.fixed_tasks(estimates).interval
        assert told.hierarchical == pytest.approx(mean.interval, abs=1e-12)


def test_models_that_share_resamples_have_what_each_has_alone() -> None:
    """Models with equal items, other items, no gold, no items: in one call as in a call for each."""
    nothing = [*family(4)[:1], Evidence()]
    models = [family(1), family(2), family(3, (20, 31)), family(4, gold=False), nothing, family(5, units=5)]
    together = over_tasks(models, 9)
    for model, found in zip(models, together, strict=True):
        (alone,) = over_tasks([model], 9)
        for one, other in zip(found, alone, strict=True):
            assert (one.mean, one.sampled, one.fixed) == (other.mean, other.sampled, other.fixed)
            assert one.hierarchical == pytest.approx(other.hierarchical, abs=1e-12)
    assert len({found[0].hierarchical for found in together}) == 5
    assert together[3][0] == OverTasks()
    assert together[3][1].hierarchical is not None
    assert together[4] == (OverTasks(), OverTasks())


def test_one_task_has_no_bootstrap_over_tasks() -> None:
    """Its mean and its own interval are there; there are no tasks to draw."""
    ((fsi, psi),) = over_tasks([family(1, (20,))], 0)
    assert fsi.fixed is not None
    assert fsi.sampled is not None
    assert (fsi.hierarchical, psi.hierarchical) == (None, None)


def test_a_task_without_a_range_leaves_the_mean_open() -> None:
    """One wrapper in one of two tasks: nothing over tasks."""
    ((fsi, psi),) = over_tasks([[*family(1, (20,)), weigh([cell("a", [1, 0, 1])], 0)]], 0)
    assert (fsi, psi) == (OverTasks(), OverTasks())
