"""JSON answers that are compared field by field -> one row per cell and field. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.figures import Caveat, FieldRow
from auditor.measure import Cell, Measured
from auditor.stats import intervals

Counted = Mapping[int, tuple[int, int]]
"""Item -> (generations, those that are right), over items whose gold answer has the field."""
ByField = Mapping[int, Mapping[str, Counted]]
"""Cell id -> field -> counts."""


def rows(measured: Measured, by_field: ByField) -> list[FieldRow]:
    """One parser's rows, in the order of cells and of a wrapper's fields. Intervals are, as a cell's, over items."""
    return [
        _row(measured.parser, cell, field, counted)
        for cell in measured.cells
        for field, counted in by_field.get(cell.id, {}).items()
    ]


def _row(parser: str, cell: Cell, field: str, counted: Counted) -> FieldRow:
    n, correct = (sum(counts[place] for counts in counted.values()) for place in (0, 1))
    units = cell.unit_of
    rates, clusters = [right / said for said, right in counted.values()], [units.get(item, item) for item in counted]
    return FieldRow(
        model=cell.key.model,
        task=cell.key.task,
        wrapper=cell.key.wrapper,
        arm=cell.key.arm,
        parser=parser,
        field=field,
        n=n,
        correct=correct,
        accuracy=correct / n if n else None,
        accuracy_ci=intervals.cell_interval(rates, clusters=clusters).interval,
    )


def caveats(found: Sequence[FieldRow]) -> list[Caveat]:
    """Fields that no gold answer has: mostly a pointer that is spelled otherwise."""
    unknown = dict.fromkeys((row.task, row.wrapper, row.field) for row in found if not row.n)
    return [
        Caveat("no_gold_field", f"{task}: no gold answer has the field {field} of wrapper {wrapper}", _FIELDS)
        for task, wrapper, field in unknown
    ]


_FIELDS = ("fields.accuracy", "fields.accuracy_ci")
