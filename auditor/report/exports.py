"""Rows as JSON Lines, CSV or Parquet, to a file or to standard output."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from auditor.errors import FileError, UsageError
from auditor.report.aside import aside
from auditor.report.tables import spreadsheet_safe

Record = dict[str, Any]
_CHUNK = 20_000


def write(records: Iterator[Record], to: Path | None) -> None:
    """Write records to a file by its suffix, aside and renamed; JSON Lines to standard output without one."""
    if to is None:
        _jsonl(records, sys.stdout.buffer)
        return
    writers: dict[str, Callable[[Iterable[Record], IO[bytes]], None]] = {
        ".jsonl": _jsonl,
        ".csv": _csv,
        ".parquet": _parquet,
    }
    if to.suffix not in writers:
        raise UsageError(f"--to {to}: unknown format {to.suffix!r}", f"known: {', '.join(writers)}")
    try:
        with aside(to) as file:
            writers[to.suffix](records, file)
    except OSError as error:
        raise UsageError(f"--to {to}: {error.strerror}") from error


@contextmanager
def lines(path: Path | None) -> Iterator[Callable[[Record], object]]:
    """Writes JSON Lines, record by record, to a file aside and renamed; nowhere without one. A pipe, a device or what
    a link leads to is written as it is: a rename would take its place."""
    if path is None:
        yield lambda record: None
        return
    encoder = msgspec.json.Encoder()
    with ExitStack() as stack:
        try:
            plain = not path.is_symlink() and (path.is_file() or not path.exists())
            file = stack.enter_context(aside(path) if plain else path.open("wb"))
        except OSError as error:
            raise FileError(path, error.strerror or str(error)) from error
        yield lambda record: file.write(encoder.encode(record) + b"\n")


def _jsonl(records: Iterable[Record], file: IO[bytes]) -> None:
    encoder = msgspec.json.Encoder()
    for record in records:
        file.write(encoder.encode(record) + b"\n")
    file.flush()


def _csv(records: Iterable[Record], file: IO[bytes]) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = None
    for record in records:
        if writer is None:
            writer = csv.writer(text)
            writer.writerow(record)
        writer.writerow([spreadsheet_safe(_flat(value)) for value in record.values()])
    text.detach()


def _parquet(records: Iterable[Record], file: IO[bytes]) -> None:
    """Nested values become JSON text, so that every chunk has one schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = ({key: _flat(value) for key, value in record.items()} for record in records)
    writer = None
    while chunk := list(itertools.islice(flat, _CHUNK)):
        table = pa.Table.from_pylist(chunk, schema=_schema(chunk[0]) if writer is None else writer.schema)
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is None:
        raise UsageError("the run holds no generations to export")
    writer.close()


_INTEGERS = frozenset({"seed", "prompt_tokens", "completion_tokens"})
_BOOLEANS = frozenset({"parsed", "correct"})


def _schema(record: Record) -> Any:
    import pyarrow as pa

    types = {name: pa.int64() for name in _INTEGERS} | {name: pa.bool_() for name in _BOOLEANS}
    return pa.schema([(name, types.get(name, pa.string())) for name in record])


def _flat(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, list | tuple | dict) else value
