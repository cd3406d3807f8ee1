"""Report: what a run says, as one value that every renderer and the Python API share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from auditor.figures import ReplyExample, Summary

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Report:
    """A measured run. `summary` is what `summary.json` holds; the frames are the same rows as pandas tables."""

    summary: Summary
    examples: tuple[ReplyExample, ...]
    study: dict[str, object]
    path: Path
    read_outcomes: Callable[[], tuple[list[str], list[tuple[Any, ...]]]] = field(repr=False)

    @property
    def cells(self) -> pd.DataFrame:
        """One row per (model, task, wrapper, arm, parser)."""
        return _frame(self.summary.cells)

    @property
    def sensitivity(self) -> pd.DataFrame:
        """One row per (model, task, arm, parser): FSI, PSI, nFSI and what goes with them."""
        return _frame(self.summary.sensitivity)

    def outcomes(self) -> pd.DataFrame:
        """One row per generation and parser, missing ones included; read from the run."""
        import pandas as pd

        names, rows = self.read_outcomes()
        return pd.DataFrame(rows, columns=names)


def _frame(rows: Sequence[msgspec.Struct]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([msgspec.structs.asdict(row) for row in rows])
