"""Aggregates from the store -> arrays per cell under one parser. The denominators live here, and no others exist.

n is answered generations: missing leaves every rate. Unparseable and ambiguous count as not parsed and as incorrect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from auditor.records import SEEDS_A_WORD, CellKey, CellTotal

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Family = tuple[str, str, str]
"""(model, task, arm): the cells whose wrappers are compared."""

GIVEN = "given"
"""The parser's name of rows and cells that were scored elsewhere."""

TallyRow = tuple[int, int, int, int, int, int, int, str | None]
"""(cell, item, word, seeds, cut, parsed, correct, value): generations of one cell and item that were given one value.
Bit b of `seeds` is seed SEEDS_A_WORD * word + b, `cut` are those that the token limit ended; `correct` is -1 without
gold."""

SeedRow = tuple[int, int, int, int, int | None]
"""(cell, seed, n, parsed, correct)."""

SpreadRow = tuple[int, int, int, float]
"""(a cell of the family, item, seed, token spread over wrappers)."""


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """The answered generations of a cell as sets of seeds, columns (K,) in order of `item` and `word`: bit b of a set
    is seed SEEDS_A_WORD * word + b of the item. `correct` is None without gold."""

    item: IntArray
    word: IntArray
    answered: IntArray
    parsed: IntArray
    correct: IntArray | None
    cut: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class SingleSeeds:
    """What each `seed` (S,) of a cell did on each item, (S, I); `correct` is None without gold."""

    seed: IntArray
    answered: npt.NDArray[np.bool_]
    parsed: npt.NDArray[np.bool_]
    correct: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """Some generations of a family, under whatever wrapper, as `Replies` has them: columns (K,)."""

    item: IntArray
    word: IntArray
    seeds: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Spreads:
    """Token spreads over the wrappers of a family, columns (G,); `cell` is the first of the family."""

    cell: IntArray
    item: IntArray
    seed: IntArray
    spread: FloatArray


NO_SPREADS = Spreads(*(np.zeros(0, np.int64),) * 3, np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Rates per item over its seeds, (F, N), of the N items that all F cells answered. `correct` is None without gold;
    `units` (N,) are the items' clusters, or themselves."""

    items: IntArray
    units: IntArray
    parsed: FloatArray
    correct: FloatArray | None

    @property
    def clustered(self) -> bool:
        """Whether items belong together."""
        return len(np.unique(self.units)) < len(self.units)


class Split(NamedTuple):
    """Two cells pair by pair: the `pairs` that both answered, and sums over them of correct minus correct where both
    were parsed, where only one was and the token limit cut the other, where only one was and it did not."""

    pairs: int
    content: int
    truncated: int
    noncompliant: int


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """What the seeds of a cell said, columns (R,): a row is one value of one item, with how many seeds gave it."""

    item: IntArray
    count: IntArray
    correct: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell under one parser. `parsed` and `correct` are counts out of `n`; None is not known: no gold, or the
    parser does not apply. `item_*` (I,) are rates per item over its seeds, in the order of `items`. `rates` are
    (accuracy, parseability) of a cell of an imported table, whose `n` may be None."""

    id: int
    key: CellKey
    n: int | None
    missing: int
    parsed: float | None
    correct: float | None
    items: IntArray | None
    item_parsed: FloatArray | None
    item_correct: FloatArray | None
    units: IntArray | None = None
    replies: Replies | None = None
    votes: Votes | None = None
    prompt_tokens_mean: float | None = None
    completion_tokens_mean: float | None = None
    truncated: int | None = None
    rates: tuple[float, float | None] | None = None

    @property
    def unit_of(self) -> dict[int, int]:
        """Item -> its cluster, or itself."""
        if self.items is None or self.units is None:
            return {}
        return dict(zip(self.items.tolist(), self.units.tolist(), strict=True))

    @property
    def accuracy(self) -> float | None:
        """Correct over n."""
        if self.rates is not None:
            return self.rates[0]
        return None if self.correct is None or not self.n else self.correct / self.n

    @property
    def parseability(self) -> float | None:
        """Parsed over n."""
        if self.rates is not None:
            return self.rates[1]
        return None if self.parsed is None or not self.n else self.parsed / self.n

    @property
    def accuracy_parsed(self) -> float | None:
        """Correct over parsed."""
        if self.rates is not None:
            return self.rates[0] / self.rates[1] if self.rates[1] else None
        return None if self.correct is None or not self.parsed else self.correct / self.parsed


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything one parser says about a run."""

    parser: str
    cells: tuple[Cell, ...]

    def arms(self) -> dict[str, list[Cell]]:
        """Arm -> its cells, in order."""
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.key.arm, []).append(cell)
        return found

    def families(self) -> dict[Family, list[Cell]]:
        """(model, task, arm) -> its cells, in the order of their wrappers."""
        found: dict[Family, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault((cell.key.model, cell.key.task, cell.key.arm), []).append(cell)
        return found


def measure(
    parser: str,
    keys: Mapping[int, CellKey],
    totals: Mapping[int, CellTotal],
    tallies: Iterable[TallyRow],
    given: Mapping[int, tuple[int | None, float, float | None]],
    clusters: Mapping[int, int] = MappingProxyType({}),
) -> Measured:
    """Shape one parser's tallies, which come in order of cells. `given` are cells (n, accuracy, parseability) that were
    scored elsewhere, `clusters` those of items that have one."""
    # one cell at a time: its rows take ten times the memory of what is kept of them
    read = {
        id_: _cell(id_, keys[id_], totals[id_], _columns(list(rows)), clusters)
        for id_, rows in groupby(tallies, itemgetter(0))
        if id_ in keys
    }
    cells = []
    for id_, key in keys.items():
        total = totals.get(id_)
        if parser == GIVEN and id_ in given:
            cells.append(_given_cell(id_, key, given[id_]))
        elif total is not None and _concerns(parser, total):
            cells.append(read[id_] if id_ in read else _unread(id_, key, total))
    return Measured(parser, tuple(cells))


def common(cells: Sequence[Cell]) -> Items | None:
    """The items that every cell answered; None where a cell has none, or was not read."""
    shared = None
    for cell in cells:
        if cell.items is None or cell.units is None:
            return None
        if shared is None:
            shared = cell.items, cell.units
        elif not np.array_equal(shared[0], cell.items):
            here = np.isin(shared[0], cell.items)
            shared = shared[0][here], shared[1][here]
    if shared is None:
        return None
    parsed = _rates([(cell.items, cell.item_parsed) for cell in cells], shared[0])
    correct = _rates([(cell.items, cell.item_correct) for cell in cells], shared[0])
    return None if parsed is None else Items(*shared, parsed, correct)


def on_subset(cell: Cell, subset: Subset | None) -> Cell | None:
    """The same cell over the generations of a subset alone; None where it has none of them."""
    if cell.replies is None or subset is None:
        return None
    mine, theirs = _places((cell.replies.item, cell.replies.word), (subset.item, subset.word))
    kept = subset.seeds[theirs]
    n, parsed = (_count(kept & bits[mine]) for bits in (cell.replies.answered, cell.replies.parsed))
    correct = None if cell.replies.correct is None else _count(kept & cell.replies.correct[mine])
    return Cell(cell.id, cell.key, n, 0, parsed, correct, None, None, None) if n else None


def split(first: Cell, second: Cell) -> Split:
    """How two cells differ on the items and seeds that both answered; nothing where either is not known so far."""
    one, other = first.replies, second.replies
    if one is None or other is None or one.correct is None or other.correct is None:
        return Split(0, 0, 0, 0)
    mine, theirs = _places((one.item, one.word), (other.item, other.word))
    pairs = one.answered[mine] & other.answered[theirs]
    parsed, right, cut = one.parsed[mine] & pairs, one.correct[mine] & pairs, one.cut[mine]
    parsed_too, right_too, cut_too = other.parsed[theirs] & pairs, other.correct[theirs] & pairs, other.cut[theirs]
    alone, alone_too = right & ~parsed_too, right_too & ~parsed
    return Split(
        _count(pairs),
        _count(right & parsed_too) - _count(right_too & parsed),
        _count(alone & cut_too) - _count(alone_too & cut),
        _count(alone & ~cut_too) - _count(alone_too & ~cut),
    )


def by_seed(cells: Iterable[Cell]) -> list[SeedRow]:
    """Counts of each cell with each of its seeds alone."""
    rows: list[SeedRow] = []
    for cell in cells:
        if (one := single_seeds(cell)) is not None:
            n, parsed = (table.sum(axis=1).tolist() for table in (one.answered, one.parsed))
            right = [None] * len(n) if one.correct is None else one.correct.sum(axis=1).tolist()
            rows += zip([cell.id] * len(n), one.seed.tolist(), n, parsed, right, strict=True)
    return rows


def single_seeds(cell: Cell) -> SingleSeeds | None:
    """The replies of a cell one by one; None where it has none."""
    replies = cell.replies
    if replies is None:
        return None
    items, place = np.unique(replies.item, return_inverse=True)
    words, bits = np.unique(replies.word), np.arange(int(np.bitwise_or.reduce(replies.answered)).bit_length())

    def table(sets: IntArray) -> npt.NDArray[np.bool_]:
        found = np.zeros((len(words), len(bits), len(items)), np.bool_)
        for number, word in enumerate(words):
            here = replies.word == word
            found[number, :, place[here]] = sets[here, None] >> bits & 1
        return found.reshape(-1, len(items))

    answered = table(replies.answered)
    used = answered.any(axis=1)
    correct = None if replies.correct is None else table(replies.correct)[used]
    seed = (SEEDS_A_WORD * words[:, None] + bits).ravel()[used]
    return SingleSeeds(seed, answered[used], table(replies.parsed)[used], correct)


def spreads(rows: Iterable[SpreadRow]) -> Spreads:
    """Token spreads as columns."""
    table: FloatArray = np.fromiter(rows, np.dtype((np.float64, 4)))
    cell, item, seed = table[:, :3].T.astype(np.int64)
    return Spreads(cell, item, seed, table[:, 3])


def subsets(spreads: Spreads, kept: npt.NDArray[np.bool_], measured: Measured) -> dict[Family, Subset]:
    """The generations of each family whose token spread is `kept` (G,)."""
    found = {}
    for cell in measured.cells:
        here = (spreads.cell == cell.id) & kept
        if here.any():
            seed = spreads.seed[here]
            word, bit = seed // SEEDS_A_WORD, 1 << seed % SEEDS_A_WORD
            found[cell.key.model, cell.key.task, cell.key.arm] = Subset(*_sets(spreads.item[here], word, bit))
    return found


def _rates(cells: Sequence[tuple[IntArray | None, FloatArray | None]], shared: IntArray) -> FloatArray | None:
    """Rates of the shared items, (F, N); None where a cell has no rates."""
    rows = [
        rates if np.array_equal(items, shared) else rates[np.isin(items, shared)]
        for items, rates in cells
        if items is not None and rates is not None
    ]
    return np.array(rows) if len(rows) == len(cells) else None


_NUMBERS = itemgetter(*range(7))


def _columns(rows: Sequence[TallyRow]) -> IntArray:
    """A cell's rows as numbers, (R, 8), the last one the place of the value among all that were said."""
    table = np.empty((len(rows), 8), np.int64)
    table[:, :7] = np.fromiter(map(_NUMBERS, rows), np.dtype((np.int64, 7)), len(rows))
    if np.ptp(table[:, 2]) == 0:  # in one set of seeds every row is another value of its item
        table[:, 7] = np.arange(len(rows))
    else:
        said: dict[tuple[int, int, str | None], int] = {}
        table[:, 7] = [said.setdefault(row[5:], len(said)) for row in rows]
    return table


def _concerns(parser: str, total: CellTotal) -> bool:
    """Rows with a text are read by the parsers, rows scored elsewhere are `given`; a cell may hold both."""
    if parser == GIVEN:
        return total.given > 0
    return total.given < total.answered or total.answered == 0


def _given_cell(id_: int, key: CellKey, given: tuple[int | None, float, float | None]) -> Cell:
    n, accuracy, parseability = given
    parsed, correct = (None if n is None or rate is None else rate * n for rate in (parseability, accuracy))
    return Cell(id_, key, n, 0, parsed, correct, None, None, None, rates=(accuracy, parseability))


def _unread(id_: int, key: CellKey, total: CellTotal) -> Cell:
    """A cell of which the parser read nothing."""
    tokens = (total.prompt_tokens_mean, total.completion_tokens_mean, total.truncated)
    return Cell(id_, key, total.answered, total.missing, None, None, None, None, None, None, None, None, *tokens)


def _cell(id_: int, key: CellKey, total: CellTotal, rows: IntArray, clusters: Mapping[int, int]) -> Cell:
    replies = _replies(rows)
    items, position = np.unique(replies.item, return_inverse=True)
    per_item, parsed = (_per_item(position, sets) for sets in (replies.answered, replies.parsed))
    right = None if replies.correct is None else _per_item(position, replies.correct)
    return Cell(
        id_,
        key,
        int(per_item.sum()),
        total.missing,
        int(parsed.sum()),
        None if right is None else int(right.sum()),
        items,
        parsed / per_item,
        None if right is None else right / per_item,
        np.array([clusters.get(item, item) for item in items.tolist()]) if clusters else items,
        replies,
        _votes(rows),
        total.prompt_tokens_mean,
        total.completion_tokens_mean,
        total.truncated,
    )


def _per_item(position: IntArray, sets: IntArray) -> FloatArray:
    return np.bincount(position, np.bitwise_count(sets)).astype(np.float64)


def _replies(rows: IntArray) -> Replies:
    _, item, word, seeds, cut, parsed, correct, _ = rows.T
    known = bool((correct >= 0).all())
    items, words, answered = _sets(item, word, seeds)
    read, right = (_sets(item, word, np.where(to > 0, seeds, 0))[2] for to in (parsed, correct))
    return Replies(items, words, answered, read, right if known else None, _sets(item, word, cut)[2])


def _votes(rows: IntArray) -> Votes:
    """One row per item and value: seeds of one value may lie in several sets."""
    item, seeds, correct, said = rows[:, 1], rows[:, 3], rows[:, 6], rows[:, 7]
    _, first, place = np.unique(item * (said.max() + 1) + said, return_index=True, return_inverse=True)
    count = np.bincount(place, np.bitwise_count(seeds)).astype(np.int64)
    return Votes(item[first], count, correct[first] > 0)


def _sets(item: IntArray, word: IntArray, seeds: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The sets of seeds of rows of one item and word joined, in order of these."""
    order = np.lexsort((word, item))
    item, word, seeds = item[order], word[order], seeds[order]
    first = np.ones(len(item), np.bool_)
    first[1:] = (item[1:] != item[:-1]) | (word[1:] != word[:-1])
    starts = np.flatnonzero(first)
    joined = np.bitwise_or.reduceat(seeds, starts) if len(starts) else seeds
    return item[starts], word[starts], joined


def _places(one: tuple[IntArray, IntArray], other: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
    """Where two (item, word) listings have the same: positions in each."""
    words, code = np.unique(np.concatenate([one[1], other[1]]), return_inverse=True)
    keys = np.concatenate([one[0], other[0]]) * len(words) + code
    _, mine, theirs = np.intersect1d(keys[: len(one[0])], keys[len(one[0]) :], assume_unique=True, return_indices=True)
    return mine, theirs


def _count(sets: IntArray) -> int:
    return int(np.bitwise_count(sets).sum())
