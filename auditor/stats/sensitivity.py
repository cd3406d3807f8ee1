"""FSI, PSI and nFSI of one (model, task): how far a rate moves over the wrappers (FSI paper, section 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.stats.arrays import TIE, FloatArray, floats

NFSI_OFFSET = 1e-6


@dataclass(frozen=True, slots=True)
class Range:
    """Highest minus lowest rate over F wrappers. `best` and `worst` index every wrapper that ties there."""

    value: float | None
    low: float | None
    high: float | None
    mean: float | None
    best: tuple[int, ...]
    worst: tuple[int, ...]
    reason: str | None = None

    @property
    def relative(self) -> float | None:
        """The range over (mean + 1e-6); of accuracies that is the nFSI."""
        if self.value is None or self.mean is None:
            return None
        return self.value / (self.mean + NFSI_OFFSET)


def fsi(accuracies: npt.ArrayLike) -> Range:
    """max_f A - min_f A over accuracies (F,), unparseable counted as incorrect (FSI paper, section 4)."""
    return _range(floats(accuracies))


def psi(parseabilities: npt.ArrayLike) -> Range:
    """max_f P - min_f P over parseabilities (F,) (FSI paper, section 4)."""
    return _range(floats(parseabilities))


def nfsi(accuracies: npt.ArrayLike) -> float | None:
    """FSI / (mean_f A + 1e-6); None where `fsi` gives a reason (FSI paper, section 4)."""
    return fsi(accuracies).relative


def _range(rates: FloatArray) -> Range:
    if rates.size == 0:
        return Range(None, None, None, None, (), (), "no wrapper was measured")
    if not np.isfinite(rates).all():
        return Range(None, None, None, None, (), (), "a wrapper has no rate")
    low, high = float(rates.min()), float(rates.max())
    # fsum: the mean must not depend on the order of the wrappers
    mean = math.fsum(rates) / rates.size
    best, worst = _indices(rates >= high - TIE), _indices(rates <= low + TIE)
    if rates.size == 1:
        return Range(None, low, high, mean, best, worst, "one wrapper has no range")
    return Range(high - low, low, high, mean, best, worst)


def _indices(mask: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(index) for index in np.flatnonzero(mask))
