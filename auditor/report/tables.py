"""A summary as files for other programs: cells as CSV, everything as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from auditor.figures import CellRow, FieldRow, SpreadRow, Summary

_INTERVALS = ("accuracy_ci", "parseability_ci")
# A spreadsheet runs a cell that begins like a formula, and names come from files and endpoints.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cells_csv(summary: Summary) -> str:
    """One line per cell. An interval is two columns (`_low`, `_high`), `reasons` a JSON object, null an empty field."""
    return _csv(CellRow, summary.cells)


def fields_csv(summary: Summary) -> str:
    """One line per cell and compared field of JSON answers, in the form of `cells_csv`."""
    return _csv(FieldRow, summary.fields)


def spreads_csv(summary: Summary) -> str:
    """One line per (model, task, arm, parser), in the form of `cells_csv`; names of wrappers are a JSON list."""
    return _csv(SpreadRow, summary.spreads)


def summary_json(summary: Summary) -> bytes:
    """`summary.json`: indented by two spaces; a number that is not finite is null."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n"


def _csv(kind: type[Struct], rows: Iterable[Struct]) -> str:
    names = kind.__struct_fields__
    head: list[object] = [column for name in names for column in _columns(name)]
    lines = ([part for name in names for part in _fields(name, getattr(row, name))] for row in rows)
    return "".join(map(_line, (head, *lines)))


def _line(fields: Iterable[object]) -> str:
    # The writer quotes a bare carriage return only where its own line ends have one.
    out = io.StringIO(newline="")
    csv.writer(out).writerow(fields)
    return out.getvalue().removesuffix("\r\n") + "\n"


def _columns(name: str) -> tuple[str, ...]:
    return (f"{name}_low", f"{name}_high") if name in _INTERVALS else (name,)


def _fields(name: str, value: object) -> tuple[object, ...]:
    if name in _INTERVALS:
        return value if isinstance(value, tuple) else (None, None)
    if isinstance(value, dict | tuple):
        return (json.dumps(value, sort_keys=True, ensure_ascii=False),)
    return (spreadsheet_safe(value),)


def spreadsheet_safe(value: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it; everything else stays."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
