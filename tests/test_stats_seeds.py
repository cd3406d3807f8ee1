"""A/A: differences of two seeds on the items that both answered, against a loop and by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from auditor.stats.seeds import Gaps, excess, gaps, largest, mean


def test_gaps_by_hand() -> None:
    """Seeds 0 and 1 share items 0 to 3: 3/4 against 1/4. Seed 2 shares items 2 and 3 with both: 1/2 against 0 and 0."""
    answered = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]], bool)
    hits = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], bool)
    found = gaps(answered, hits)
    assert (found.pairs, found.judged) == (3, 2)
    assert (found.mean, found.largest) == pytest.approx(((0.5 + 0.5 + 0.0) / 3, 0.5))
    # 0, 1, 1, 0: variance 1/3 over 4 items; 1, 0: variance 1/2 over 2 items
    assert found.squares == pytest.approx(0.25 / (1 / 12) + 0.25 / (1 / 4))


def test_the_loop_agrees() -> None:
    """Five seeds of 30 items, some not answered: each pair by itself."""
    rng = np.random.default_rng(1)
    answered = rng.random((5, 30)) < 0.8
    hits = answered & (rng.random((5, 30)) < 0.4)
    distances, squares = [], 0.0
    for one, other in combinations(range(5), 2):
        both = answered[one] & answered[other]
        turned = hits[one, both].astype(float) - hits[other, both]
        distances.append(abs(turned.mean()))
        squares += (turned.mean() / (turned.std(ddof=1) / np.sqrt(both.sum()))) ** 2
    found = gaps(answered, hits)
    assert (found.mean, found.largest, found.squares) == pytest.approx((np.mean(distances), max(distances), squares))
    assert (found.pairs, found.judged) == (10, 10)


@pytest.mark.parametrize("answered", [np.zeros((0, 0), bool), np.ones((1, 3), bool), np.eye(2, dtype=bool)])
def test_seeds_that_share_no_item_are_no_pair(answered: np.ndarray) -> None:
    """No seed, one seed, and two that share nothing."""
    assert gaps(answered, answered) == Gaps(0.0, 0.0, 0.0, 0, 0)


def test_over_cells() -> None:
    """Means of means, the largest of all, the root mean square over all judged pairs; nothing of nothing."""
    cells = [Gaps(0.1, 0.2, 8.0, 1, 3), Gaps(0.3, 0.5, 0.0, 1, 1), Gaps(0.0, 0.0, 0.0, 0, 2)]
    assert (mean(cells), largest(cells), excess(cells)) == pytest.approx((0.4 / 3, 0.5, 2.0))
    assert (mean([]), largest([]), excess([])) == (None, None, None)
    assert excess(cells[2:]) is None


def test_independent_items_have_an_excess_of_one() -> None:
    """40 cells of three seeds and 50 items whose replies are independent: 1 within a tenth."""
    rng = np.random.default_rng(3)
    answered = np.ones((3, 50), bool)
    cells = [gaps(answered, rng.random((3, 50)) < rng.uniform(0.2, 0.8, 50)) for _ in range(40)]
    assert excess(cells) == pytest.approx(1.0, abs=0.1)
