"""A task file as rows: JSON Lines, CSV or Parquet. Nothing in a file is ever evaluated."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from auditor.errors import FileError


class Row(Struct, frozen=True):
    """One row. `line` is where it starts in the file, from 1; for Parquet the row's number."""

    line: int
    values: dict[str, Any]
    """By column. A JSON number is a `Raw`: its literal, digit for digit."""


class Table(Struct, frozen=True):
    """A file's rows, at least one, and its columns in order of appearance."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(path: Path) -> Table:
    """The rows of a .jsonl, .csv or .parquet file. Raises FileError."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise FileError(path, f"unknown extension {path.suffix!r}", f"a task file is one of {', '.join(READERS)}")
    rows = tuple(reader(path))
    if not rows:
        raise FileError(path, "no rows", "a task needs at least one item")
    return Table(path, tuple(dict.fromkeys(column for row in rows for column in row.values)), rows)


def plain(value: Any) -> str:
    """A value as text: a text itself, a number's literal, other scalars by `str`, the rest as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Raw):
        return bytes(value).decode()
    if isinstance(value, (list, dict)):
        return msgspec.json.encode(value).decode()
    return str(value)


def json_value(text: str) -> Any:
    """`json.loads` that keeps numbers as literals and refuses what JSON does not have. Raises ValueError."""
    try:
        value = json.loads(
            text, parse_int=_literal, parse_float=_literal, parse_constant=_no_constant, object_pairs_hook=_unique
        )
        msgspec.json.encode(
            value
        )  # what cannot be written again is found here, with its line, not in the middle of a run
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg}, column {error.colno}") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no character") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _literal(digits: str) -> Raw:
    return Raw(digits.encode())


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return members


# Formats -------------------------------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from error


def _text(path: Path) -> str:
    """The file's text without a byte order mark; an undecodable byte is an error of its line."""
    data = _bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # `object` is what the codec was given after the mark, if there was one.
        where, byte = error.object[: error.start].count(b"\n") + 1, error.object[error.start]
        raise FileError(path, f"byte {byte:#04x} is not UTF-8", "save the file as UTF-8", line=where) from error


def _jsonl(path: Path) -> Iterator[Row]:
    for line, text in enumerate(_text(path).split("\n"), 1):
        if not text.strip():
            continue
        try:
            values = json_value(text)
        except ValueError as error:
            raise FileError(path, f"not JSON: {error}", "each line is one JSON object", line=line) from error
        if not isinstance(values, dict):
            raise FileError(path, "not a JSON object", "each line is one JSON object", line=line)
        yield Row(line, values)


def _csv(path: Path) -> Iterator[Row]:
    records = _records(path)
    line, header = next(records, (1, []))
    _refuse_twice(path, header, line)
    for line, record in records:
        if len(record) != len(header):
            message = f"{len(record)} values, but the header names {len(header)} columns"
            raise FileError(path, message, "a value with a comma or a line break needs double quotes", line=line)
        yield Row(line, dict(zip(header, record, strict=True)))


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records that are not blank, each with the line it starts in: a quoted value may span lines."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FileError(path, f"not CSV: {error}", line=line) from error
        if record:
            yield line, record


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = _bytes(path)
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FileError(path, f"not Parquet: {' '.join(str(error).split())}") from error
    _refuse_twice(path, table.column_names, None)
    for number, values in enumerate(table.to_pylist(), 1):
        yield Row(number, {column: None if _is_nan(value) else value for column, value in values.items()})


def _refuse_twice(path: Path, names: list[str], line: int | None) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise FileError(path, f"two columns are called {twice[0]!r}", line=line)


def _is_nan(value: Any) -> bool:
    """What pandas writes for a missing number."""
    return isinstance(value, float) and math.isnan(value)


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
