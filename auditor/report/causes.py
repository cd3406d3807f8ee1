"""Why a value is not there."""

from __future__ import annotations

from msgspec import Struct

from auditor.figures import Summary


class Cause(Struct, frozen=True):
    """Why a field is null; `number` is that of the warning that says so, from 1, or 0 where none does."""

    number: int
    message: str


def why(summary: Summary, field: str) -> Cause:
    """The first warning that names `field` (`models.fsi_ci_paper`, or the last part alone)."""
    name = field.rpartition(".")[2]
    for wanted in ({field, name}, {name}):
        for number, caveat in enumerate(summary.warnings, start=1):
            told = {part.replace("[]", "") for part in caveat.fields}
            if wanted & (told if field in wanted else {part.rpartition(".")[2] for part in told}):
                return Cause(number, caveat.message)
    return Cause(0, "not computed or not recorded in this run")
