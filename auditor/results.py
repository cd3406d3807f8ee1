"""What a store holds, read by parsers, measured and written: parse -> measure -> report, without asking any model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UnsetType

from auditor import reading
from auditor.analysis import Reading, summarize
from auditor.fields import ByField
from auditor.figures import Caveat, Counts, ReplyExample, RunInfo, Summary
from auditor.measure import GIVEN, measure, spreads
from auditor.parsing import Reader, compare, is_correct
from auditor.records import Contract, Outcome, Parser
from auditor.report import html, tables
from auditor.report.aside import aside
from auditor.report.text import inline
from auditor.report.value import Report
from auditor.store import Store
from auditor.stored import Stored, StoredItem, read_messages
from auditor.study import FUNCTION

PLAIN_TEXT = Contract(kind="text")
"""What a wrapper that no catalogue knows is read against."""
ReasonRow = tuple[int, str, int, int]
"""(cell, why replies gave no value, how many, the first of these generations)."""
_EXAMPLES = 3
"""Real replies shown per reason."""


def read(store: Store, readers: Sequence[tuple[Parser, Reader]]) -> list[Caveat]:
    """Read what these parsers have not read yet; returns why one does not apply to a task."""
    contracts, items = store.contracts(), store.items()
    caveats = []
    for parser, reader in readers:
        id_ = store.parser(parser.name, parser.digest)
        inapplicable = _inapplicable(store, reader)
        caveats += [
            Caveat("parser_does_not_apply", f"{parser.name} does not apply to task {task}: {why}", ("cells.accuracy",))
            for task, why in inapplicable.items()
        ]
        skipped = store.items_of(inapplicable)
        for batch in store.unread(id_):
            texts = [one for one in batch if one.given_parsed is None and one.item not in skipped]
            store.put_outcomes(id_, [_read_one(reader, one, contracts, items[one.item]) for one in texts])
        if faults := reader.faults():
            caveats.append(Caveat("parser_error", f"{parser.name} gave {faults_of(faults)}", ("cells.reasons",)))
    if store.has_given():
        id_ = store.parser(GIVEN, GIVEN)
        for batch in store.unread(id_):
            scored = [one for one in batch if one.given_parsed is not None]
            store.put_outcomes(id_, [(one.id, given(bool(one.given_parsed)), one.given_correct) for one in scored])
    return caveats


def faults_of(faults: Mapping[str, int]) -> str:
    """Why an extractor gave no reading, the most frequent first."""
    told = sorted(faults.items(), key=lambda one: -one[1])
    said = "; ".join(f"{count:,} times {inline(why)}" for why, count in told[:3])
    more = sum(count for _, count in told[3:])
    return f"no reading of {sum(faults.values()):,} replies: {said}" + (f"; {more:,} others" if more else "")


def _inapplicable(store: Store, reader: Reader) -> dict[str, str]:
    """Task -> why a parser says nothing about it: one item it cannot read would leave a rate over a part."""
    found: dict[str, str] = {}
    for task, space in store.spaces():
        why = reader.applies(space)
        if why is not None:
            found.setdefault(task, why)
    return found


def _read_one(
    reader: Reader, one: Stored, contracts: dict[str, Contract], item: StoredItem
) -> tuple[int, Outcome, bool | None]:
    assert one.reply is not None
    contract = contracts.get(one.wrapper, PLAIN_TEXT)
    outcome = reader.read(one.reply, contract, item.space)
    return one.id, outcome, judged(outcome, item, contract)


def judged(outcome: Outcome, item: StoredItem, contract: Contract = PLAIN_TEXT) -> bool | None:
    """Whether an outcome is correct; None without gold. Not parsed is not correct (the FSI paper's rule)."""
    if item.gold is None:
        return None
    if compared := compare.rules(contract, item.space):
        return compare.correct(compare.fields(outcome.value, item.gold, compared))
    return outcome.value is not None and is_correct(outcome.value, item.gold, item.space)


def given(parsed: bool) -> Outcome:
    """The outcome of a generation that was scored elsewhere."""
    return Outcome("parsed") if parsed else Outcome("unparseable", reason="given")


def finish(store: Store, folder: Path, readers: Sequence[tuple[Parser, Reader]], as_read: Sequence[str] = ()) -> Report:
    """Read with these parsers what is unread, measure and write everything. `as_read`: parsers of the user's own that
    read the run before and are not at hand; what they read is shown again."""
    caveats = [*read(store, readers), *(_as_read(name) for name in as_read)]
    names = [*(parser.name for parser, _ in readers), *as_read] + (
        [GIVEN] if store.has_given() or store.given_cells() else []
    )
    if GIVEN in names and not store.has_texts():
        names = [GIVEN]
    report = _report(store, folder, names, caveats)
    write(report)
    return report


def _as_read(name: str) -> Caveat:
    said = f"parser {name} is shown as it read the run before; to read again, name its file: --parsers"
    return Caveat("parser_as_read", said)


def _report(store: Store, folder: Path, names: Sequence[str], caveats: Sequence[Caveat]) -> Report:
    keys, totals, scored, clusters = store.cells(), store.totals(), store.given_cells(), store.clusters()
    compared = _compared(store)
    ids = {name: store.parser(name, GIVEN) if name == GIVEN else store.parsers()[name] for name in names}
    why = {name: store.reasons(id_) for name, id_ in ids.items()}
    readings = [
        Reading(
            measure(name, keys, totals, store.tallies(id_), scored if name == GIVEN else {}, clusters),
            _counted(why[name]),
            {} if name == GIVEN else _by_field(store, id_, compared),
        )
        for name, id_ in ids.items()
    ]
    why_missing = [Caveat("missing_why", f"{count:,} generations missing: {fault}") for fault, count in store.faults()]
    summary = summarize(
        _run_info(store),
        _counts(store),
        store.preflight(),
        readings,
        [*caveats, *why_missing],
        list(store.findings().values()),
        store.upstreams(),
        spreads(store.spreads()),
        store.groups(),
    )
    return Report(summary, _examples(store, why), _shown(store), folder, outcomes(folder))


def _compared(store: Store) -> dict[int, Contract]:
    """The cells whose answers are compared field by field, with their contracts."""
    contracts = {name: one for name, one in store.contracts().items() if not isinstance(one.compare, UnsetType)}
    return {id_: contracts[key.wrapper] for id_, key in store.cells().items() if key.wrapper in contracts}


def _by_field(store: Store, parser: int, compared: Mapping[int, Contract]) -> ByField:
    items = store.items() if compared else {}
    found: dict[int, dict[str, dict[int, tuple[int, int]]]] = {}
    for cell, contract in compared.items():
        for item, value, count in store.values(parser, cell):
            rules = compare.rules(contract, items[item].space)
            for field, right in compare.fields(value, items[item].gold, rules).items():
                counts = found.setdefault(cell, {}).setdefault(field, {})
                if right is not None:
                    n, correct = counts.get(item, (0, 0))
                    counts[item] = (n + count, correct + count * right)
    return found


def _run_info(store: Store) -> RunInfo:
    return RunInfo(
        name=store.meta("name") or "",
        created=store.meta("created") or "",
        auditor_version=store.meta("auditor_version") or "",
        study_digest=store.meta("study_digest") or "",
        seed=int(store.meta("seed") or 0),
    )


def _counts(store: Store) -> Counts:
    counted = store.counts()
    return Counts(planned=max(int(store.meta("planned") or 0), counted["answered"] + counted["missing"]), **counted)


def _counted(reasons: Sequence[ReasonRow]) -> dict[int, dict[str, int]]:
    """Cell -> why replies gave no value, counted."""
    found: dict[int, dict[str, int]] = {}
    for cell, reason, count, _ in reasons:
        found.setdefault(cell, {})[reason] = count
    return found


def _examples(store: Store, why: Mapping[str, Sequence[ReasonRow]]) -> tuple[ReplyExample, ...]:
    """A few real replies per parser and reason, of different cells."""
    examples = []
    for parser, rows in why.items():
        firsts: dict[str, list[tuple[int, int]]] = {}
        for _, reason, count, first in rows:
            if reason != GIVEN:
                firsts.setdefault(reason, []).append((first, count))
        for reason, found in firsts.items():
            total = sum(count for _, count in found)
            for first, _ in sorted(found)[:_EXAMPLES]:
                sample = store.sample(first)
                prompt = read_messages(sample.pop("messages"))
                examples.append(ReplyExample(parser=parser, reason=reason, count=total, prompt=prompt, **sample))
    return tuple(examples)


def _shown(store: Store) -> dict[str, object]:
    """The study as the report shows it."""
    known = store.meta("study")
    told: dict[str, object] = msgspec.json.decode(known) if known else {"source": store.meta("source") or ""}
    if (limit := store.meta("max_tokens")) is not None:
        limits = [int(one) for one in limit.split(",")]
        told["max_tokens"] = limits[0] if len(limits) == 1 else limits
    if (sources := store.meta("sources")) is not None:
        told["tasks"] = msgspec.json.decode(sources)
    return told


def outcomes(folder: Path) -> Callable[[], tuple[list[str], list[tuple[object, ...]]]]:
    """How `Report.outcomes()` reads the run when it is asked to: column names and rows."""

    def read_them() -> tuple[list[str], list[tuple[object, ...]]]:
        with Store(folder, writable=False) as store:
            return store.outcomes()

    return read_them


def write(report: Report) -> None:
    """`report.html`, `summary.json`, `cells.csv`, `spreads.csv` and, where fields are compared, `fields.csv`, each
    written aside and renamed."""
    contents = {
        "summary.json": tables.summary_json(report.summary),
        "cells.csv": tables.cells_csv(report.summary).encode(),
        "spreads.csv": tables.spreads_csv(report.summary).encode(),
        "report.html": html.render_html(report.summary, report.examples, report.study).encode(),
    }
    if report.summary.fields:
        contents["fields.csv"] = tables.fields_csv(report.summary).encode()
    for name, content in contents.items():
        with aside(report.path / name) as file:
            file.write(content)


def incomplete(summary: Summary) -> str | None:
    """Why a run did not measure enough, or None: a cell with more than 1 % missing."""
    cells = {(c.model, c.task, c.wrapper, c.arm) for c in summary.cells if c.lossy}
    if not cells and summary.counts.answered + summary.counts.missing >= summary.counts.planned:
        return None
    counts, never = summary.counts, summary.counts.planned - summary.counts.answered - summary.counts.missing
    if not cells:
        return f"{never:,} of {counts.planned:,} generations were never asked"
    return f"{counts.missing:,} generations are missing; {len(cells)} cells lack more than 1 %"


def load(folder: Path | str) -> Report:
    """The report of a run, measured again from its store; nothing is read anew or written."""
    folder = Path(folder)
    with Store(folder, writable=False) as store:
        return _report(store, folder, list(store.parsers()), [])


def _told(store: Store) -> list[str]:
    """The parsers that a study named: a run that was stopped has been read by none of them."""
    told = msgspec.json.decode(store.meta("study") or "{}").get("parsers")
    return [name for name in told or () if not name.startswith(FUNCTION)]


def rebuild(folder: Path, parsers: Sequence[str] | None) -> Report:
    """Read a run with these parsers (its own where none are named), measure, write. Raises FileError, UsageError."""
    with Store(folder, writable=True) as store:
        if parsers:
            return finish(store, folder, reading.readers(parsers))
        held = [name for name in store.parsers() if name != GIVEN]
        ours = reading.ours(held)
        others = [name for name in held if name not in ours]
        return finish(store, folder, reading.readers(ours if held else _told(store)), others)
