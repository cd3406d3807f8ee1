"""JSON answers field by field, arranged for reading."""

from __future__ import annotations

from msgspec import Struct

from auditor.figures import FieldRow, Summary
from auditor.report.card import Subject


class FieldGroup(Struct, frozen=True):
    """What one wrapper's fields scored on a task, for one model and arm."""

    subject: Subject
    task: str
    wrapper: str
    rows: tuple[FieldRow, ...]


class FieldTable(Struct, frozen=True):
    """The groups under one parser."""

    parser: str
    groups: tuple[FieldGroup, ...]


def by_parser(summary: Summary) -> tuple[FieldTable, ...]:
    """A table for each parser that has rows, in the order of the summary."""
    tables = [FieldTable(parser, _groups(summary, parser)) for parser in summary.parsers]
    return tuple(table for table in tables if table.groups)


def _groups(summary: Summary, parser: str) -> tuple[FieldGroup, ...]:
    found: dict[tuple[str, str, str, str], list[FieldRow]] = {}
    for row in summary.fields:
        if row.parser == parser:
            found.setdefault((row.model, row.arm, row.task, row.wrapper), []).append(row)
    return tuple(
        FieldGroup(Subject(model, arm), task, wrapper, tuple(rows))
        for (model, arm, task, wrapper), rows in found.items()
    )
