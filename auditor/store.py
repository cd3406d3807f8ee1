"""The run's journal: one SQLite file, the only source of truth, and the only module that imports sqlite3.

A row is on its way to the disk before its worker goes on; `kill -9` costs what was in flight and nothing else.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from auditor import sql
from auditor.errors import ConflictError, FileError
from auditor.figures import Check
from auditor.records import (
    AnswerSpace,
    CellKey,
    CellTotal,
    Contract,
    Findings,
    Generation,
    Item,
    Outcome,
    Reply,
    Request,
    Row,
    Wrapper,
)
from auditor.stored import Stored, StoredItem, reply_values, row_of, stored_of

FILE = "run.sqlite"
_BATCH = 4000
_JSON = msgspec.json.Encoder(order="deterministic")


class Store:
    """An open run. Use as a context manager; `writable` takes the run's lock and holds it."""

    def __init__(self, run: Path, *, writable: bool, create: bool = False) -> None:
        """Open `run/run.sqlite`. Raises FileError where there is none or it is newer, ConflictError where it is
        in use."""
        self.path = run / FILE
        if not create and not self.path.is_file():
            raise FileError(run, f"no run here: {FILE} is missing")
        self._lock = _lock(run / "run.lock", run) if writable else None
        try:
            self._open(writable, create)
        except BaseException:
            self._release()
            raise
        self._cells: dict[tuple[str, str, str, str], int] = {}
        self._judged: dict[tuple[str, str], tuple[int, tuple[AnswerSpace, str | None]]] = {}
        self._sendings: dict[bytes, int] = {}
        self._prompts: set[str] = set()

    def _open(self, writable: bool, create: bool) -> None:
        mode = "rwc" if create else "rw" if writable else "ro"
        self._db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        try:
            if writable:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")
            # aggregates go through the whole file in the order of ids: 2 MB of cache would fetch pages again and again
            self._db.execute("PRAGMA cache_size = -65536")
            self._db.execute("PRAGMA mmap_size = 268435456")
            self._migrate(writable)
        except sqlite3.DatabaseError as error:
            raise FileError(self.path, f"not a readable run: {error}") from error

    def _migrate(self, writable: bool) -> None:
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            self._db.executescript(f"BEGIN; {sql.SCHEMA} {sql.SET_VERSION.format(sql.VERSION)} COMMIT;")
        told = self.meta("schema") or "missing"
        if not told.isdecimal() or int(told) < 1:
            raise FileError(self.path, f"not a readable run: its schema is {told}")
        version = int(told)
        if version > sql.VERSION:
            message = f"written by a newer auditor (schema {version}, this one knows {sql.VERSION})"
            raise FileError(self.path, message, "pip install -U format-auditor")
        if version < sql.VERSION and not writable:  # an older run is read from a migrated copy and stays as it is
            copy = sqlite3.connect(":memory:", isolation_level=None)
            self._db.backup(copy)
            self._db.close()
            self._db = copy
        for step in range(version, sql.VERSION):
            self._db.executescript(f"BEGIN; {sql.MIGRATIONS[step]} {sql.SET_VERSION.format(step + 1)} COMMIT;")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    # What the run is -------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """One value of the run's description."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def has_answers(self, model: str | None = None) -> bool:
        """Whether anything was answered, by a model or by any, or imported."""
        if model is not None:
            return self._db.execute(sql.ANSWERED_BY, (model,)).fetchone() is not None
        return bool(
            self._one("SELECT EXISTS (SELECT 1 FROM generation WHERE answered) OR EXISTS (SELECT 1 FROM given_cell)")
        )

    def is_empty(self) -> bool:
        """Whether no generation was ever asked."""
        return not self._one("SELECT EXISTS (SELECT 1 FROM generation)")

    def has_given(self) -> bool:
        """Whether any generation was scored elsewhere."""
        return bool(self._one("SELECT EXISTS (SELECT 1 FROM generation WHERE given_parsed IS NOT NULL)"))

    def has_texts(self) -> bool:
        """Whether any generation is there to be read by parsers."""
        return bool(self._one("SELECT EXISTS (SELECT 1 FROM generation WHERE given_parsed IS NULL AND answered)"))

    def set_meta(self, **values: str) -> None:
        """Set values of the run's description."""
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def put_wrappers(self, wrappers: Iterable[Wrapper]) -> None:
        """Remember contracts. Raises ConflictError for a wrapper that changed since this run used it."""
        known = dict(self._db.execute("SELECT name, digest FROM wrapper"))
        for wrapper in wrappers:
            if known.get(wrapper.name, wrapper.digest) != wrapper.digest:
                raise ConflictError(f"{self.path.parent}: wrapper {wrapper.name!r} changed since this run", _NEW_OUT)
            row = (wrapper.name, wrapper.digest, _JSON.encode(wrapper.contract).decode())
            self._db.execute("INSERT OR IGNORE INTO wrapper VALUES (?, ?, ?)", row)

    def contracts(self) -> dict[str, Contract]:
        """Wrapper name -> contract."""
        rows = self._db.execute("SELECT name, contract FROM wrapper")
        return {name: msgspec.json.decode(contract, type=Contract) for name, contract in rows}

    def put_items(self, task: str, items: Iterable[Item]) -> None:
        """Remember items. Raises ConflictError for one whose choices or answer changed since this run used it."""
        with self._transaction():
            for item in items:
                self._put_item(task, item)

    def _put_item(self, task: str, item: Item) -> int:
        key, judged = (task, item.id), (item.space, item.gold)
        if key not in self._judged:
            self._judged[key] = self._stored_item(key) or self._new_item(task, item)
        id_, known = self._judged[key]
        if known != judged:
            message = f"item {item.id!r} of task {task!r} has other choices or another answer than before"
            raise ConflictError(f"{self.path.parent}: {message}", _NEW_OUT)
        return id_

    def _stored_item(self, key: tuple[str, str]) -> tuple[int, tuple[AnswerSpace, str | None]] | None:
        row = self._db.execute("SELECT id, space, gold FROM item WHERE task = ? AND item = ?", key).fetchone()
        return None if row is None else (row[0], (msgspec.json.decode(row[1], type=AnswerSpace), row[2]))

    def _new_item(self, task: str, item: Item) -> tuple[int, tuple[AnswerSpace, str | None]]:
        row = (task, item.id, _JSON.encode(item.space).decode(), item.gold, item.group, item.cluster)
        insert = "INSERT INTO item (task, item, space, gold, subject, cluster) VALUES (?, ?, ?, ?, ?, ?)"
        return self._insert(insert, row), (item.space, item.gold)

    def items(self) -> dict[int, StoredItem]:
        """Item id -> what its outcomes are judged against."""
        decoder = msgspec.json.Decoder(AnswerSpace)
        rows = self._db.execute("SELECT id, space, gold FROM item")
        return {id_: StoredItem(decoder.decode(space), gold) for id_, space, gold in rows}

    def spaces(self) -> list[tuple[str, AnswerSpace]]:
        """Every distinct (task, answer space)."""
        decoder = msgspec.json.Decoder(AnswerSpace)
        rows = self._db.execute("SELECT DISTINCT task, space FROM item")
        return [(task, decoder.decode(space)) for task, space in rows]

    def clusters(self) -> dict[int, int]:
        """Item -> its cluster (a shared passage), where it has one; a cluster is named by its first item."""
        return dict(self._db.execute(sql.CLUSTERS))

    def groups(self) -> dict[int, str]:
        """Item -> its group in its task (a subject), where it has one."""
        return dict(self._db.execute("SELECT id, subject FROM item WHERE subject IS NOT NULL"))

    def items_of(self, tasks: Iterable[str]) -> set[int]:
        """The item ids of some tasks."""
        return {row[0] for task in tasks for row in self._db.execute("SELECT id FROM item WHERE task = ?", (task,))}

    def budgets(self) -> dict[tuple[str, str], int]:
        """(task, item or '') -> characters, as fixed at the first plan."""
        return {(task, item): size for task, item, size in self._db.execute("SELECT * FROM budget")}

    def put_budgets(self, budgets: Mapping[tuple[str, str], int]) -> None:
        """Fix budgets that are not fixed yet."""
        rows = [(task, item, size) for (task, item), size in budgets.items()]
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO budget VALUES (?, ?, ?)", rows)

    def put_preflight(self, checks: Iterable[Check]) -> None:
        """Replace the preflight findings."""
        with self._transaction():
            self._db.execute("DELETE FROM preflight")
            rows = [(check.check, check.status, check.message) for check in checks]
            self._db.executemany("INSERT OR REPLACE INTO preflight VALUES (?, ?, ?)", rows)

    def put_findings(self, findings: Findings) -> None:
        """Remember what preflight found out about a model at a server."""
        row = (findings.model, findings.server, _JSON.encode(findings).decode())
        self._db.execute("INSERT OR REPLACE INTO endpoint VALUES (?, ?, ?)", row)

    def findings(self) -> dict[tuple[str, str], Findings]:
        """(model, server) -> what preflight found out."""
        decoder = msgspec.json.Decoder(Findings)
        rows = self._db.execute("SELECT model, server, findings FROM endpoint")
        return {(model, server): decoder.decode(text) for model, server, text in rows}

    def put_calls(self, calls: Iterable[tuple[str, Generation]]) -> None:
        """Commit what preflight asked: purpose, and what became of it. Every attempt counts."""
        rows = [
            (
                one.request.model, a.server, purpose, a.started, a.latency_ms, a.http_status, a.fault, a.sent.decode(),
                a.body, a.cost_usd,
            )
            for purpose, one in calls
            for a in one.attempts
        ]  # fmt: skip
        columns = "model, server, purpose, started, latency_ms, http_status, fault, sent, body, cost_usd"
        with self._transaction():
            self._db.executemany(f"INSERT INTO call ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def preflight(self) -> tuple[Check, ...]:
        """The preflight findings, by name."""
        return tuple(Check(*row) for row in self._db.execute("SELECT name, status, message FROM preflight"))

    # Writing generations ---------------------------------------------------------------------------------------

    def state(self, identity: tuple[str, str, str, str, str, int]) -> tuple[str, bool] | None:
        """(digest, answered) of a generation, or None."""
        row = self._db.execute(sql.STATE, identity).fetchone()
        return None if row is None else (row[0], bool(row[1]))

    def append(self, generations: Sequence[Generation]) -> None:
        """Commit what became of requests, in one transaction. One that was missing is replaced, its attempts kept."""
        try:
            with self._transaction():
                for generation in generations:
                    self._append(generation, generation.sent, generation.cost_usd)
        except sqlite3.OperationalError as error:
            hint = "what was committed is kept: make room, then run the same command again"
            raise FileError(self.path, f"cannot be written: {error}", hint) from error

    def append_reused(self, reused: Iterable[tuple[Request, Reply, bytes]], run: str) -> None:
        """Commit replies of an earlier run: request, reply, body as sent. They cost nothing and are no attempts."""
        with self._transaction():
            for request, reply, sent in reused:
                self._append(Generation(request, reply, None, ()), sent, None, run)

    def answers(self) -> dict[str, int]:
        """Digest of the request -> a generation that answers it."""
        rows = self._db.execute("SELECT digest, id FROM generation WHERE answered AND given_parsed IS NULL")
        return dict(rows.fetchall())

    def reply(self, generation: int) -> tuple[Reply, bytes]:
        """A reply, and the body as it was sent; what it cost is not asked again."""
        row = self._db.execute(sql.REPLY, (generation,)).fetchone()
        told = dict(zip(sql.REPLY_COLUMNS.split(", "), row[:-1], strict=True))
        return Reply(**{**told, "cost_usd": None}), (row[-1] or "{}").encode()

    def rate(self, model: str) -> float | None:
        """Generations a second over the last ones a model answered without a pause of a minute; None where there are
        too few to say."""
        starts = sorted(row[0] for row in self._db.execute(sql.RATE, (model,)))
        pauses = [index for index in range(1, len(starts)) if starts[index] - starts[index - 1] > 60]
        session = starts[pauses[-1] :] if pauses else starts
        seconds = session[-1] - session[0] if session else 0.0
        return (len(session) - 1) / seconds if len(session) > 20 and seconds > 0 else None

    def has_cost(self) -> bool:
        """Whether preflight's calls were charged."""
        return bool(self._one("SELECT EXISTS (SELECT 1 FROM call WHERE cost_usd > 0)"))

    def _append(self, generation: Generation, sent: bytes, cost: float | None, reused: str | None = None) -> None:
        request, reply = generation.request, generation.reply or Reply(None)
        if request.prompt not in self._prompts:
            messages = _JSON.encode(request.messages)
            self._db.execute("INSERT OR IGNORE INTO prompt VALUES (?, ?)", (request.prompt, messages))
            self._prompts.add(request.prompt)
        fault = generation.fault
        row = self._db.execute(
            sql.INSERT,
            (
                self.cell(request.model, request.task, request.wrapper, request.arm),
                self._item(request.task, request.item),
                request.seed,
                request.digest,
                request.prompt,
                self._sending(sent),
                generation.reply is not None,
                *reply_values(msgspec.structs.replace(reply, cost_usd=cost)),
                f"{fault.kind}: {fault.message}" if fault else None,
                len(generation.attempts),
                generation.attempts[-1].latency_ms if generation.attempts else None,
                *(None, None, None),
                reused,
            ),
        ).fetchone()
        if row is None:
            raise ValueError(f"{request.identity} is answered already")
        self._db.executemany(
            "INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (row[0], a.started, a.latency_ms, a.http_status, a.fault, a.body, a.server, a.cost_usd)
                for a in generation.attempts
            ],
        )

    def append_rows(self, rows: Iterable[tuple[Row, Item, Reply]]) -> int:
        """Commit imported generations; returns how many are new. Raises ConflictError for two of one identity that
        differ."""
        new = 0
        with self._transaction():
            for row, item, reply in rows:
                new += self._append_row(row, item, reply)
        return new

    def _append_row(self, row: Row, item: Item, reply: Reply) -> bool:
        digest = hashlib.sha256(_JSON.encode(row)).hexdigest()
        known = self.state((row.model, row.task, row.item, row.wrapper, row.arm, row.seed))
        if known is not None:
            if known[0] == digest:
                return False
            where = (
                f"model {row.model!r}, task {row.task!r}, item {row.item!r}, wrapper {row.wrapper!r}, seed {row.seed}"
            )
            raise ConflictError(f"two different rows for {where}", "one generation can be given only once")
        cell, item_id = self.cell(row.model, row.task, row.wrapper, row.arm), self._put_item(row.task, item)
        given = (row.parsed, row.correct, _JSON.encode(row.extra).decode() if row.extra else None)
        answered = row.status == "answered"
        start = (cell, item_id, row.seed, digest, None, None, answered)
        self._db.execute(sql.INSERT, (*start, *reply_values(reply), None, 0, None, *given, None)).fetchone()
        return True

    def put_given_cells(self, cells: Iterable[tuple[CellKey, int | None, float, float | None]]) -> None:
        """Commit an imported table of cells: key, n, accuracy, parseability."""
        with self._transaction():
            for key, n, accuracy, parseability in cells:
                cell = self.cell(key.model, key.task, key.wrapper, key.arm)
                self._db.execute("INSERT INTO given_cell VALUES (?, ?, ?, ?)", (cell, n, accuracy, parseability))

    def put_cells(self, keys: Iterable[tuple[str, str, str, str]]) -> None:
        """Make cells in the study's order, which tables and ties follow, before replies come in any order."""
        with self._transaction():
            for key in keys:
                self.cell(*key)

    def cell(self, model: str, task: str, wrapper: str, arm: str) -> int:
        """The id of a cell, made where it is new."""
        key = (model, task, wrapper, arm)
        if key not in self._cells:
            self._db.execute("INSERT OR IGNORE INTO cell (model, task, wrapper, arm) VALUES (?, ?, ?, ?)", key)
            where = "model = ? AND task = ? AND wrapper = ? AND arm = ?"
            self._cells[key] = self._db.execute(f"SELECT id FROM cell WHERE {where}", key).fetchone()[0]
        return self._cells[key]

    def _item(self, task: str, item: str) -> int:
        if (task, item) not in self._judged:
            known = self._stored_item((task, item))
            if known is None:
                raise ValueError(f"item {item!r} of task {task!r} was never put")
            self._judged[task, item] = known
        return self._judged[task, item][0]

    def _sending(self, body: bytes) -> int:
        if body not in self._sendings:
            self._db.execute("INSERT OR IGNORE INTO sending (body) VALUES (?)", (body.decode(),))
            row = self._db.execute("SELECT id FROM sending WHERE body = ?", (body.decode(),)).fetchone()
            self._sendings[body] = row[0]
        return self._sendings[body]

    # Outcomes --------------------------------------------------------------------------------------------------

    def parser(self, name: str, digest: str) -> int:
        """The id of a parser; outcomes of an older digest of it are dropped, to be read again."""
        row = self._db.execute("SELECT id, digest FROM parser WHERE name = ?", (name,)).fetchone()
        if row is None:
            return self._insert("INSERT INTO parser (name, digest) VALUES (?, ?)", (name, digest))
        if row[1] != digest:
            with self._transaction():
                self._db.execute("DELETE FROM outcome WHERE parser = ?", (row[0],))
                self._db.execute("UPDATE parser SET digest = ? WHERE id = ?", (digest, row[0]))
        return int(row[0])

    def parsers(self) -> dict[str, int]:
        """Name -> id, in the order they were first used."""
        return dict(self._db.execute("SELECT name, id FROM parser ORDER BY id"))

    def unread(self, parser: int) -> Iterator[list[Stored]]:
        """Answered generations without an outcome of this parser, in batches."""
        last = 0
        while rows := self._db.execute(sql.UNREAD, (parser, last, _BATCH)).fetchall():
            yield [stored_of(row) for row in rows]
            last = rows[-1][0]

    def put_outcomes(self, parser: int, outcomes: Iterable[tuple[int, Outcome, bool | None]]) -> None:
        """Commit what a parser read: generation id, outcome, whether it is correct."""
        rows = [
            (
                parser,
                id_,
                outcome.outcome,
                outcome.value,
                outcome.reason,
                ",".join(outcome.needed) or None,
                _JSON.encode(outcome.candidates).decode() if outcome.candidates else None,
                correct,
            )
            for id_, outcome, correct in outcomes
        ]
        with self._transaction():
            self._db.executemany("INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    # Aggregates ------------------------------------------------------------------------------------------------

    def cells(self) -> dict[int, CellKey]:
        """Cell id -> key, in the order they were first asked."""
        rows = self._db.execute("SELECT id, model, task, wrapper, arm FROM cell ORDER BY id")
        return {row[0]: CellKey(*row[1:]) for row in rows}

    def totals(self) -> dict[int, CellTotal]:
        """Cell id -> counts and mean tokens."""
        return {row[0]: CellTotal(*row) for row in self._db.execute(sql.TOTALS)}

    def tallies(self, parser: int) -> Iterator[tuple[int, int, int, int, int, int, int, str | None]]:
        """Rows (cell, item, word, seeds, cut, parsed, correct, value), in order of cells: generations of one cell and
        item with one value. Bit b of `seeds` is seed SEEDS_A_WORD * word + b, `cut` are those that the limit ended.

        Unparseable and ambiguous are one value, None; `correct` is -1 without gold.
        """
        return self._db.execute(sql.TALLIES, (parser,))

    def values(self, parser: int, cell: int) -> list[tuple[int, str | None, int]]:
        """Rows (item, value, count) of one cell; the value is None where there is none or more than one."""
        return self._db.execute(sql.VALUES, (parser, cell)).fetchall()

    def reasons(self, parser: int) -> list[tuple[int, str, int, int]]:
        """Rows (cell, why replies gave no value, how many, the first of these generations), most frequent first."""
        return self._db.execute(sql.REASONS, (parser,)).fetchall()

    def given_cells(self) -> dict[int, tuple[int | None, float, float | None]]:
        """Cell id -> (n, accuracy, parseability) of an imported table."""
        return {row[0]: (row[1], row[2], row[3]) for row in self._db.execute("SELECT * FROM given_cell")}

    def spreads(self) -> Iterator[tuple[int, int, int, float]]:
        """Rows (first cell, item, seed, (max - min) / mean of prompt tokens over wrappers) of each (model, task, arm,
        item, seed) that has all its wrappers and their tokens."""
        return self._db.execute(sql.SPREADS)

    def counts(self) -> dict[str, Any]:
        """Totals over the run: answered, missing, attempts, retries, tokens, cost."""
        cursor = self._db.execute(sql.COUNTS)
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))

    def upstreams(self) -> list[tuple[str, str, str | None, str | None, str | None, int]]:
        """(model, server, provider, model returned, fingerprint, replies), most frequent first."""
        return self._db.execute(sql.UPSTREAMS).fetchall()

    def sample(self, generation: int) -> dict[str, Any]:
        """One generation as an example shows it."""
        cursor = self._db.execute(sql.SAMPLE, (generation,))
        return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))

    def faults(self) -> list[tuple[str, int]]:
        """Why generations are missing, counted."""
        return self._db.execute(
            "SELECT coalesce(fault, 'missing in the imported rows'), count(*) FROM generation "
            "WHERE NOT answered GROUP BY 1 ORDER BY 2 DESC"
        ).fetchall()

    # Rows out --------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[Row]:
        """Every generation as it crosses the border, in the order it was stored."""
        spaces = self.items()
        last = 0
        while batch := self._db.execute(sql.ROWS, (last, _BATCH)).fetchall():
            for row in batch:
                yield row_of(row, spaces[row[1]])
            last = batch[-1][0]

    def outcomes(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of every outcome, one per generation and parser, missing ones included."""
        cursor = self._db.execute(sql.OUTCOMES)
        return [column[0] for column in cursor.description], cursor.fetchall()

    def verify(self) -> list[str]:
        """What is wrong with the file: damage, dangling references, prompts that do not match their digest."""
        found = [row[0] for row in self._db.execute("PRAGMA integrity_check") if row[0] != "ok"]
        found += [
            f"{row[0]} row {row[1]} refers to no {row[2]}" for row in self._db.execute("PRAGMA foreign_key_check")
        ]
        for digest, messages in self._db.execute("SELECT digest, messages FROM prompt"):
            if not isinstance(messages, bytes) or hashlib.sha256(messages).hexdigest() != digest:
                found.append(f"prompt {digest[:12]} does not match its digest")
        return found

    def _one(self, query: str) -> Any:
        return self._db.execute(query).fetchone()[0]

    def _insert(self, statement: str, values: Sequence[Any]) -> int:
        return int(self._db.execute(statement, values).lastrowid or 0)

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


class _Transaction:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")


def _lock(path: Path, run: Path) -> IO[bytes]:
    """An operating-system lock: it dies with the process that holds it."""
    file = path.open("ab")
    try:
        try:
            import fcntl
        except ImportError:
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise ConflictError(f"{run}: another auditor is writing here", "wait for it, or name another --out") from error
    return file


_NEW_OUT = "name another --out for the new study"
