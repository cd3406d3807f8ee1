"""Designs whose true ranges are known, for the benches: simulated, or resampled from the replies of a finished run.

A design draws T tasks of F wrappers x N items, as means over S seeds, and tells what is true of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from auditor.stats.arrays import FloatArray, IntArray
from auditor.store import Store

WRAPPERS, ITEM_SD, WRAPPER_SD = 5, 2.0, 0.7


@dataclass(frozen=True, slots=True)
class Simulated:
    """Logit p = d + 2.0 z(item) + 0.7 z(item, wrapper), d solved so that the mean over items is the wrapper's rate
    exactly; seeds are Bernoulli draws. `top` is the best wrapper's rate, drawn per task (base .4 to .7) when None;
    `varying` draws the range of a task as effect x 3 x Beta(1.5, 3), whose mean is `effect`; `cluster` items share
    half of every variance, which the statistics are not told where it is `ignored`."""

    name: str
    effect: float
    one_bad: bool = False
    varying: bool = False
    tasks: int = 7
    items: int = 200
    seeds: int = 5
    top: float | None = None
    cluster: int = 1
    ignored: bool = False

    @property
    def target(self) -> float | None:
        """The mean true range of the population of tasks."""
        return self.effect

    @property
    def unit(self) -> IntArray:
        """The cluster of each item, (N,)."""
        return np.arange(self.items) // (1 if self.ignored else self.cluster)

    def drawn(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """True ranges (T,) and item means over seeds (T, F, N)."""
        ranges, rates = self._rates(rng)
        return ranges, self.items_at(rates, rng)

    def _rates(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """True ranges (T,) and the wrappers' rates (T, F)."""
        ranges = np.full(self.tasks, self.effect)
        if self.varying:
            ranges = self.effect * 3 * rng.beta(1.5, 3, self.tasks)
        pattern = np.array([0.0] * (WRAPPERS - 1) + [1.0]) if self.one_bad else np.linspace(0, 1, WRAPPERS)
        centre = np.clip(rng.uniform(0.4, 0.7, self.tasks), ranges / 2 + 0.02, 0.98 - ranges / 2)
        top = centre + ranges / 2 if self.top is None else np.full(self.tasks, self.top)
        return ranges, top[:, None] - ranges[:, None] * pattern

    def items_at(self, rates: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Item means over seeds (T, F, N) of wrappers with these `rates` (T, F)."""
        item = self._normal(rng, (len(rates), 1))
        interaction = self._normal(rng, rates.shape)
        chance = expit(_intercepts(rates)[:, :, None] + ITEM_SD * item + WRAPPER_SD * interaction)
        return np.asarray(rng.binomial(self.seeds, chance) / self.seeds)

    def _normal(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Standard normal, (*shape, N); items of a cluster correlate by one half."""
        own = rng.standard_normal((*shape, self.items))
        if self.cluster == 1:
            return own
        shared = rng.standard_normal((*shape, -(-self.items // self.cluster)))
        return np.asarray((own + shared.repeat(self.cluster, axis=-1)[..., : self.items]) / math.sqrt(2))


@dataclass(frozen=True, slots=True)
class Resampled:
    """The replies of a run, one matrix (F, I, S) a task, as the population: N items are drawn with replacement, for
    all wrappers at once, and for each of them seeds from its own. `tasks` are drawn with replacement too, or those of
    the run where None. `tied` wrappers, the best ones, change labels at random in every item drawn: they have the same
    rate, and all wrappers tied have no effect."""

    name: str
    population: tuple[FloatArray, ...]
    tasks: int | None = None
    items: int = 200
    seeds: int = 5
    tied: int = 0

    @property
    def target(self) -> float | None:
        """The mean true range of the run's tasks; None where they are not sampled."""
        return None if self.tasks is None else float(self._ranges().mean())

    @property
    def unit(self) -> IntArray:
        """Every item is its own, (N,)."""
        return np.arange(self.items)

    def drawn(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """True ranges (T,) and item means over seeds (T, F, N), the best wrapper first."""
        known = len(self.population)
        chosen = np.arange(known) if self.tasks is None else rng.integers(0, known, self.tasks)
        return self._ranges()[chosen], np.stack([self._items(self.population[task], rng) for task in chosen])

    def _items(self, task: FloatArray, rng: np.random.Generator) -> FloatArray:
        item = rng.integers(0, task.shape[1], (self.items, 1))
        seed = rng.integers(0, task.shape[2], (self.items, self.seeds))
        means: FloatArray = task[:, item, seed].mean(axis=2)
        means[: self.tied] = rng.permuted(means[: self.tied], axis=0)
        return means

    def _ranges(self) -> FloatArray:
        rates = np.array([task.mean(axis=(1, 2)) for task in self.population])
        if self.tied:
            rates[:, : self.tied] = rates[:, : self.tied].mean(axis=1, keepdims=True)
        return np.asarray(np.ptp(rates, axis=1))


Design = Simulated | Resampled


def replies(folder: Path, parser: str, measure: str) -> tuple[FloatArray, ...]:
    """What `parser` made of the replies of a finished run: 0 or 1 for `measure`, "correct" or "parsed", one matrix
    (F, I, S) a task and model. The best wrapper is first; items that were not answered throughout are left out."""
    with Store(folder, writable=False) as store:
        columns, rows = store.outcomes()
    frame = pd.DataFrame(rows, columns=columns).query("parser == @parser")
    frame = frame.assign(parsed=frame.outcome == "parsed")
    return tuple(_matrix(task, measure) for _, task in frame.groupby(["model", "task", "arm"]))


def _matrix(frame: pd.DataFrame, measure: str) -> FloatArray:
    wide = frame.pivot(index="item", columns=["wrapper", "seed"], values=measure).sort_index(axis=1).dropna()
    shape = (len(wide), frame.wrapper.nunique(), frame.seed.nunique())
    matrix: FloatArray = wide.to_numpy(np.float64).reshape(shape).transpose(1, 0, 2)
    return matrix[np.argsort(-matrix.mean(axis=(1, 2)))]


def _intercepts(rates: FloatArray) -> FloatArray:
    """d with E expit(d + sd z) = rate, by interpolation."""
    return np.interp(rates, *_means_of_intercepts())


@cache
def _means_of_intercepts() -> tuple[FloatArray, FloatArray]:
    """E expit(d + sd z) by Gauss and Hermite, and d."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.linspace(-16, 16, 4001)
    return expit(grid[:, None] + math.hypot(ITEM_SD, WRAPPER_SD) * nodes) @ (weights / weights.sum()), grid
