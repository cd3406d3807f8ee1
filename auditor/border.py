"""Generations and cells that come from elsewhere, are read by the row, or leave: import, parse, export."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

import auditor
from auditor import catalogue, reading, rows
from auditor.errors import ConflictError, FileError, UsageError
from auditor.folders import default_folder, describe, opened
from auditor.labels import Identity, Label, described, identity, read_labels
from auditor.measure import GIVEN
from auditor.parsing import Reader, canonical, compare
from auditor.records import Contract, Item, Outcome, Parser, Reply, Row, Wrapper
from auditor.report import exports
from auditor.report import outcomes as outcome_lines
from auditor.report.value import Report
from auditor.results import PLAIN_TEXT, faults_of, finish, given, judged
from auditor.results import outcomes as outcomes_of
from auditor.store import Store
from auditor.stored import StoredItem
from auditor.tally import Audit, Said, Tally

Line = tuple[Row, str, Outcome, bool | None, compare.Fields]
"""(row, parser, outcome, correct, right by field): no fields where answers are compared as a whole."""
Say = Callable[[str], object]
_NAMED = 3
"""Unknown wrappers that a message names."""


def import_rows(
    source: Path, out: Path | None, parsers: Sequence[str], wrappers: Sequence[str], say: Say = lambda _: None
) -> Report:
    """Generations (JSON Lines) or a CSV of cells from elsewhere: measured and written as a run is.

    Raises FileError with the line of a bad row, ConflictError for two of one identity that differ.
    """
    readers = reading.readers(parsers)
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
            _import_generations(store, source, own, say)
        describe(store, name)
        store.set_meta(source=str(source), auditor_version=auditor.__version__, seed="0")
        return finish(store, folder, readers)


def _import_generations(store: Store, source: Path, own: Sequence[Wrapper], say: Say) -> None:
    used: set[str] = set()
    read: set[str] = set()

    def checked() -> Iterator[tuple[Row, Item, Reply]]:
        for number, row in rows.read_rows(source):
            used.add(row.wrapper)
            if _is_read(row):
                read.add(row.wrapper)
            yield row, rows.item_of(source, number, row, canonical), rows.reply_of(row)

    if not store.append_rows(checked()) and not used:
        raise UsageError(f"{source}: no rows")
    known = {wrapper.name: wrapper for wrapper in own}
    ours = {wrapper.name: wrapper for wrapper in _catalogue() if wrapper.name in used}
    store.put_wrappers({**ours, **known}.values())
    _say_unknown(read - store.contracts().keys(), say)


def _catalogue() -> tuple[Wrapper, ...]:
    return catalogue.wrappers(catalogue.names("wrappers"))


def _is_read(row: Row) -> bool:
    return row.parsed is None and row.status != "missing"


def _say_unknown(wrappers: Iterable[str], say: Say) -> None:
    names = [repr(name) for name in sorted(wrappers)]
    if len(names) == 1:
        say(f"wrapper {names[0]} is not known: its replies are read as plain text")
    elif names:
        more = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
        say(f"wrappers {', '.join(names[:_NAMED])}{more} are not known: their replies are read as plain text")


def parse(source: Path, parsers: Sequence[str], wrappers: Sequence[str], say: Say = lambda _: None) -> Iterator[Line]:
    """Every row of a file or a run read by every parser, in order."""
    readers = reading.readers(parsers)
    with _opened(source, wrappers) as (numbered, contracts):
        yield from _parsed(source, numbered, readers, contracts, say)


def compare_parsers(
    source: Path,
    parsers: Sequence[str],
    wrappers: Sequence[str],
    labels: Path | None,
    disagreements: Path | None,
    write: Callable[[bytes], object],
    say: Say,
) -> Audit:
    """Read every row with every parser, write a JSON line of each, and the rows on which they or a hand label differ
    to `disagreements`; how they compare. Raises FileError, UsageError."""
    told = hand_labels(labels, source, wrappers) if labels else {}
    tally, encoder = Tally(), msgspec.json.Encoder()
    with exports.lines(disagreements) as differ:
        for row, lines in by_row(parse(source, parsers, wrappers, say)):
            write(b"".join(encoder.encode(outcome_lines.line(*line)) + b"\n" for line in lines))
            said = {parser: (outcome, correct) for _, parser, outcome, correct, _ in lines}
            label = told.get(identity(row))
            tally.add(said, label)
            if found := outcome_lines.disagreement(row, said, label):
                differ(found)
    return tally.audit()


def by_row(lines: Iterable[Line]) -> Iterator[tuple[Row, list[Line]]]:
    """The lines of each row together; rows may be equal and yet two."""
    current: list[Line] = []
    for line in lines:
        if current and line[0] is not current[0][0]:
            yield current[0][0], current
            current = []
        current.append(line)
    if current:
        yield current[0][0], current


@contextmanager
def _opened(
    source: Path, wrappers: Sequence[str]
) -> Iterator[tuple[Iterable[tuple[int, Row]], Mapping[str, Contract]]]:
    """The numbered rows of a file or a run, and the contracts of its wrappers."""
    contracts = {wrapper.name: wrapper.contract for wrapper in (*_catalogue(), *catalogue.wrappers(wrappers))}
    if not source.is_dir():
        yield rows.read_rows(source), contracts
        return
    with Store(source, writable=False) as store:
        yield enumerate(store.rows(), 1), contracts | store.contracts()


def _parsed(
    source: Path,
    numbered: Iterable[tuple[int, Row]],
    readers: Sequence[tuple[Parser, Reader]],
    contracts: Mapping[str, Contract],
    say: Say,
) -> Iterator[Line]:
    unknown: set[str] = set()
    for number, row in numbered:
        item = rows.item_of(source, number, row, canonical)
        if _is_read(row) and row.wrapper not in contracts:
            unknown.add(row.wrapper)
        if row.parsed is not None:
            yield row, GIVEN, given(row.parsed), row.correct, {}
            continue
        contract = contracts.get(row.wrapper, PLAIN_TEXT)
        rules = compare.rules(contract, item.space)
        for parser, reader in readers:
            if row.status == "missing":
                yield row, parser.name, Outcome("missing"), None, compare.fields(None, None, rules)
                continue
            outcome = reader.read(rows.reply_of(row), contract, item.space)
            right = judged(outcome, StoredItem(item.space, item.gold), contract)
            yield row, parser.name, outcome, right, compare.fields(outcome.value, item.gold, rules)
    _say_unknown(unknown, say)
    for parser, reader in readers:
        if faults := reader.faults():
            say(f"{parser.name} gave {faults_of(faults)}")


def hand_labels(path: Path, source: Path, wrappers: Sequence[str]) -> dict[Identity, Said]:
    """Labels of the rows of a file or a run: what a person reads, and whether that is correct, by identity.

    Raises FileError with the line: for a label that is no possible answer, that no row has, or that two rows share.
    """
    if source.exists() and not (source.is_file() or source.is_dir()):
        raise UsageError(f"{source} can be read only once", "with --labels, name a file or a run")
    told = read_labels(path)
    found: dict[Identity, Said] = {}
    with _opened(source, wrappers) as (numbered, contracts):
        for number, row in numbered:
            key = identity(row)
            if key in found:
                raise FileError(source, f"a second row of what {path}:{told[key][0]} labels", line=number)
            if key in told:
                item = rows.item_of(source, number, row, canonical)
                found[key] = _labelled(path, *told[key], item, contracts.get(row.wrapper, PLAIN_TEXT))
    for key, (line, _) in told.items():
        if key not in found:
            raise FileError(path, f"no row of {source} has {described(key)}", line=line)
    return found


def _labelled(path: Path, line: int, label: Label, item: Item, contract: Contract) -> Said:
    if label.label is None:
        outcome = Outcome("ambiguous" if label.ambiguous else "unparseable")
    else:
        outcome = Outcome("parsed", rows.answer(path, line, "label", label.label, item.space, canonical))
    return outcome, judged(outcome, StoredItem(item.space, item.gold), contract)


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
