"""Generations and cells that come from elsewhere, are read by the row, or leave: import, parse, export."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

import auditor
from auditor import catalogue, prepare, rows
from auditor.errors import ConflictError, UsageError
from auditor.folders import default_folder, describe, opened
from auditor.measure import GIVEN
from auditor.parsing import Reader, canonical
from auditor.records import Contract, Item, Outcome, Parser, Reply, Row, Wrapper
from auditor.report.value import Report
from auditor.results import PLAIN_TEXT, finish, given, judged
from auditor.results import outcomes as outcomes_of
from auditor.store import Store
from auditor.stored import StoredItem


def import_rows(source: Path, out: Path | None, parsers: Sequence[str], wrappers: Sequence[str]) -> Report:
    """Generations (JSON Lines) or a CSV of cells from elsewhere: measured and written as a run is.

    Raises FileError with the line of a bad row, ConflictError for two of one identity that differ.
    """
    readers = prepare.readers(parsers)
    own = catalogue.wrappers(wrappers)
    name = re.sub(r"[^\w.-]+", "-", source.stem)
    folder = out or default_folder(name)
    if not source.is_file():
        raise UsageError(f"{source}: no such file", "auditor import takes .jsonl (generations) or .csv (cells)")
    with opened(folder) as store:
        if store.meta("study") is not None:
            raise ConflictError(f"--out {folder} holds a run of its own", "name another --out")
        if source.suffix.lower() == ".csv":
            store.put_given_cells(list(rows.read_cells(source)))
        else:
            _import_generations(store, source, own)
        describe(store, name)
        store.set_meta(source=str(source), auditor_version=auditor.__version__, seed="0")
        return finish(store, folder, readers)


def _import_generations(store: Store, source: Path, own: Sequence[Wrapper]) -> None:
    used: set[str] = set()

    def checked() -> Iterator[tuple[Row, Item, Reply]]:
        for number, row in rows.read_rows(source):
            used.add(row.wrapper)
            yield row, rows.item_of(source, number, row, canonical), rows.reply_of(row)

    if not store.append_rows(checked()) and not used:
        raise UsageError(f"{source}: no rows")
    known = {wrapper.name: wrapper for wrapper in own}
    ours = {wrapper.name: wrapper for wrapper in _catalogue() if wrapper.name in used}
    store.put_wrappers({**ours, **known}.values())


def _catalogue() -> tuple[Wrapper, ...]:
    return catalogue.wrappers(catalogue.names("wrappers"))


def parse(
    source: Path, parsers: Sequence[str], wrappers: Sequence[str]
) -> Iterator[tuple[Row, str, Outcome, bool | None]]:
    """Every row of a file or a run read by every parser: (row, parser, outcome, correct), in order."""
    readers = prepare.readers(parsers)
    contracts = {wrapper.name: wrapper.contract for wrapper in (*_catalogue(), *catalogue.wrappers(wrappers))}
    if not source.is_dir():
        yield from _parsed(source, rows.read_rows(source), readers, contracts)
        return
    with Store(source, writable=False) as store:
        yield from _parsed(source, enumerate(store.rows(), 1), readers, contracts | store.contracts())


def _parsed(
    source: Path,
    numbered: Iterable[tuple[int, Row]],
    readers: Sequence[tuple[Parser, Reader]],
    contracts: Mapping[str, Contract],
) -> Iterator[tuple[Row, str, Outcome, bool | None]]:
    for number, row in numbered:
        item = rows.item_of(source, number, row, canonical)
        if row.parsed is not None:
            yield row, GIVEN, given(row.parsed), row.correct
            continue
        for parser, reader in readers:
            if row.status == "missing":
                yield row, parser.name, Outcome("missing"), None
                continue
            outcome = reader.read(rows.reply_of(row), contracts.get(row.wrapper, PLAIN_TEXT), item.space)
            yield row, parser.name, outcome, judged(outcome, StoredItem(item.space, item.gold))


def exported(folder: Path, outcomes: bool) -> Iterator[dict[str, object]]:
    """A run's generations, or what each parser read of them, as plain records."""
    if outcomes:
        names, found = outcomes_of(folder)()
        for values in found:
            record = dict(zip(names, values, strict=True))
            yield {**record, "correct": None if record["correct"] is None else bool(record["correct"])}
        return
    with Store(folder, writable=False) as store:
        for row in store.rows():
            yield msgspec.structs.asdict(row)
