"""What of a range is more than noise, from cells: which items count, what is null and why."""

from __future__ import annotations

import numpy as np
import pytest

from auditor import evidence
from auditor.evidence import weigh
from auditor.measure import Cell
from auditor.records import CellKey
from auditor.stats import effects, inversion


def cell(
    name: str, correct: list[float] | None, items: list[int] | None = None, parsed: list[float] | None = None
) -> Cell:
    count = len(correct if correct is not None else parsed or [])
    ids = np.array(items if items is not None else range(count))
    rates = None if correct is None else np.array(correct, float)
    read = np.array(parsed if parsed is not None else [1.0] * count)
    return Cell(1, CellKey("m", "t", name, "none"), count, 0, float(read.sum()), None, ids, read, rates)


def test_only_items_that_every_wrapper_answered_count() -> None:
    """An item that one wrapper lacks leaves them all, so that contrasts stay paired."""
    first = cell("a", [1, 0, 1, 1, 0], [1, 2, 3, 4, 5])
    second = cell("b", [0, 0, 0, 1], [2, 3, 4, 5])
    found = weigh([first, second], 0)
    rows = np.array([[0, 1, 1, 0], [0, 0, 0, 1]], float)
    assert found.items == 4
    assert found.fsi == inversion.range_inversion(rows, 0)
    assert found.p == effects.permutation_test(rows, 0, relabellings=evidence.DRAWS).p
    assert found.p_cochran == effects.cochran_q(rows).p


def test_what_is_not_known_is_none() -> None:
    """Cells without items have no evidence; without gold there is that of parseability alone."""
    scored = Cell(1, CellKey("m", "t", "a", "none"), 10, 0, 10.0, 5.0, None, None, None)
    assert weigh([scored, scored], 0) == evidence.Evidence()
    unknown = [cell(name, None, parsed=[1.0, read, 1.0, 0.0]) for name, read in (("a", 0.0), ("b", 1.0))]
    found = weigh(unknown, 0)
    assert (found.fsi, found.p, found.items) == (None, None, 4)
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
