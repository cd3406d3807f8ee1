"""The journal: identity, replacing what was missing, aggregates, locks and damage."""

from __future__ import annotations

import inspect
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from samples import LETTERS, answered, item, missing, request

from auditor.errors import ConflictError, FileError
from auditor.figures import Check
from auditor.records import (
    Adaptation,
    Attempt,
    Canary,
    CellKey,
    Contract,
    Findings,
    Generation,
    Outcome,
    Reply,
    Request,
    Row,
    Wrapper,
)
from auditor.store import FILE, Store
from auditor.stored import read_messages


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with Store(tmp_path, writable=True, create=True) as store:
        store.put_items("t", [item("q1"), item("q2", gold="A")])
    return tmp_path


def writable(run: Path) -> Store:
    return Store(run, writable=True)


def test_a_generation_is_there_after_append(run: Path) -> None:
    """What append returned from can be read by another connection."""
    with writable(run) as store:
        store.append([answered(request(), "B")])
        with Store(run, writable=False) as other:
            assert other.state(request().identity) == ("d", True)
            assert [row.text for row in other.rows()] == ["B"]


def test_an_unknown_identity_has_no_state(run: Path) -> None:
    """Each part of the identity counts."""
    with writable(run) as store:
        store.append([answered(request(), "B")])
        for other in (request(item="q2"), request(wrapper="json"), request(seed=1)):
            assert store.state(other.identity) is None


def test_a_missing_generation_is_replaced_and_its_attempts_kept(run: Path) -> None:
    """A rerun asks missing ones again; the attempts of all runs are counted."""
    with writable(run) as store:
        store.append([missing(request(), tries=3)])
        assert store.state(request().identity) == ("d", False)
        store.append([answered(request(), "B")])
        counts = store.counts()
    assert (counts["answered"], counts["missing"], counts["attempts"], counts["retries"]) == (1, 0, 4, 3)


def test_an_answer_is_never_overwritten(run: Path) -> None:
    """The unique key keeps the first answer, whatever comes late."""
    with writable(run) as store:
        store.append([answered(request(), "B")])
        with pytest.raises(ValueError, match=r"is answered already|was never put"):
            store.append([answered(request(), "C")])
        assert [row.text for row in store.rows()] == ["B"]


def test_a_batch_is_one_transaction(run: Path) -> None:
    """A batch that fails in the middle leaves nothing of itself."""
    with writable(run) as store:
        with pytest.raises(ValueError, match=r"is answered already|was never put"):
            store.append([answered(request(), "B"), answered(request(item="nowhere"), "B")])
        assert store.counts()["answered"] == 0


def test_prompts_are_stored_once_and_read_back(run: Path) -> None:
    """Five seeds of a prompt are one prompt."""
    with writable(run) as store:
        store.append([answered(request(seed=seed), "B") for seed in range(5)])
        rows = sqlite3.connect(run / FILE).execute("SELECT digest, messages FROM prompt").fetchall()
    assert [row[0] for row in rows] == ["p-plain-q1"]
    assert read_messages(rows[0][1]) == request().messages


def test_the_lock_dies_with_the_process(run: Path) -> None:
    """A second writer is refused while the first lives, and welcome after a kill."""
    code = f"from auditor.store import Store; from pathlib import Path; s = Store(Path({str(run)!r}), writable=True)"
    code += "; print('held', flush=True); import time; time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with pytest.raises(ConflictError, match="another auditor is writing here"):
        writable(run)
    child.kill()
    child.communicate()
    with writable(run):
        pass


def test_a_reader_needs_no_lock(run: Path) -> None:
    """Reports can be looked at while a run goes on."""
    with writable(run), Store(run, writable=False) as reader:
        assert reader.counts()["answered"] == 0


def test_no_run_is_a_clear_error(tmp_path: Path) -> None:
    """A folder without a journal is named."""
    with pytest.raises(FileError, match=r"no run here: run\.sqlite is missing"):
        Store(tmp_path, writable=False)


def test_a_broken_file_is_a_clear_error(tmp_path: Path) -> None:
    """Something else under the journal's name is no run."""
    (tmp_path / FILE).write_bytes(b"this is no database, but long enough to be looked at" * 100)
    with pytest.raises(FileError, match="not a readable run"):
        Store(tmp_path, writable=False)


def test_a_newer_schema_is_refused(run: Path) -> None:
    """A file from the future says so."""
    with sqlite3.connect(run / FILE) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    db.close()
    with pytest.raises(FileError, match="newer auditor"):
        Store(run, writable=False)


def test_a_changed_item_is_a_conflict(run: Path) -> None:
    """An item whose answer changed would mix two questions under one name."""
    with writable(run) as store:
        store.put_items("t", [item("q1")])
        with pytest.raises(ConflictError, match="item 'q1' of task 't'"):
            store.put_items("t", [item("q1", gold="C")])


def test_a_passage_is_named_by_its_first_item_and_is_of_one_task(run: Path) -> None:
    """Items of one passage have one cluster; the same name in another task is another; an item without is absent."""
    told = {"t": (("a", "p"), ("b", "q"), ("c", "p"), ("d", "-1")), "u": (("a", "p"), ("b", None), ("c", "p"))}
    with writable(run) as store:
        assert store.clusters() == {}
        for task, items in told.items():
            store.put_items(task, [msgspec.structs.replace(item(name), cluster=cluster) for name, cluster in items])
        # q1 and q2 of t are items 1 and 2
        assert store.clusters() == {3: 3, 4: 4, 5: 3, 6: 6, 7: 7, 9: 7}


def test_groups_are_told_of_items_that_have_one(run: Path) -> None:
    """A subject goes with its item, in whatever task; an item without one is absent."""
    with writable(run) as store:
        assert store.groups() == {}
        for task in ("t", "u"):
            store.put_items(task, [msgspec.structs.replace(item("a"), group="law"), item("b")])
        assert store.groups() == {3: "law", 5: "law"}


def wrapper(digest: str) -> Wrapper:
    return Wrapper("plain", 1, "own", "", "", (), Contract("text"), (), "", "\n\n", "plain.toml", digest)


def test_a_changed_wrapper_is_a_conflict(run: Path) -> None:
    """A wrapper that changed is another wrapper."""
    with writable(run) as store:
        store.put_wrappers([wrapper("one")])
        store.put_wrappers([wrapper("one")])
        assert store.contracts() == {"plain": Contract("text")}
        with pytest.raises(ConflictError, match="wrapper 'plain' changed"):
            store.put_wrappers([wrapper("two")])


def test_outcomes_of_a_changed_parser_are_read_again(run: Path) -> None:
    """A parser's digest decides whether what it read still holds."""
    with writable(run) as store:
        store.append([answered(request(), "B")])
        parser = store.parser("strict", "one")
        assert [[one.id for one in batch] for batch in store.unread(parser)] == [[1]]
        store.put_outcomes(parser, [(1, Outcome("parsed", "B"), True)])
        assert list(store.unread(parser)) == []
        assert store.parser("strict", "one") == parser
        assert store.parser("strict", "two") == parser
        assert [[one.id for one in batch] for batch in store.unread(parser)] == [[1]]


def test_missing_generations_are_never_read(run: Path) -> None:
    """A failed call has no text to score."""
    with writable(run) as store:
        store.append([missing(request())])
        assert list(store.unread(store.parser("strict", "one"))) == []


def test_tallies_group_equal_values_and_join_all_unparsed(run: Path) -> None:
    """Unparseable and ambiguous are one value; two different values are two."""
    outcomes = [
        Outcome("parsed", "B"),
        Outcome("parsed", "B"),
        Outcome("parsed", "C"),
        Outcome("unparseable", reason="empty"),
        Outcome("ambiguous", candidates=("A", "B")),
    ]
    with writable(run) as store:
        store.append([answered(request(seed=seed), "x", "length" if seed == 4 else "stop") for seed in range(5)])
        parser = store.parser("strict", "one")
        store.put_outcomes(parser, [(i + 1, outcome, outcome.value == "B") for i, outcome in enumerate(outcomes)])
        tallies = sorted(store.tallies(parser))
        reasons = store.reasons(parser)
    # seeds 0 and 1 said B, 2 said C, 3 and 4 nothing that counts; seed 4 ended at the limit
    assert tallies == [
        (1, 1, 0, 0b00011, 0, 1, 1, "B"),
        (1, 1, 0, 0b00100, 0, 1, 0, "C"),
        (1, 1, 0, 0b11000, 0b10000, 0, 0, None),
    ]
    assert reasons == [(1, "conflicting_answers", 1, 5), (1, "empty", 1, 4)]


def test_sets_of_seeds_hold_any_seed(run: Path) -> None:
    """62 seeds a set: seed -1 is the last of the set before 0, seed 62 the first of the one after."""
    with writable(run) as store:
        store.append([answered(request(seed=seed), "x") for seed in (-63, -1, 0, 61, 62)])
        parser = store.parser("strict", "one")
        store.put_outcomes(parser, [(i, Outcome("parsed", "B"), None) for i in range(1, 6)])
        assert [(word, seeds, right) for _, _, word, seeds, _, _, right, _ in store.tallies(parser)] == [
            (-2, 1 << 61, -1),
            (-1, 1 << 61, -1),
            (0, 1 | 1 << 61, -1),
            (1, 1, -1),
        ]


def test_spreads_need_every_wrapper_and_match_the_worked_example(run: Path) -> None:
    """(100, 104, 105) is 4.85 % of its mean and matched; (100, 110, 120) is not; an incomplete group is left out."""
    tokens = {"q1": (100, 104, 105), "q2": (100, 110, 120)}
    with writable(run) as store:
        for name, counts in tokens.items():
            for wrapper_name, count in zip(("plain", "json", "xml"), counts, strict=True):
                store.append([answered(request(item=name, wrapper=wrapper_name), "B", tokens=count)])
        store.append([answered(request(wrapper="plain", seed=1), "B", tokens=100)])
        assert list(store.spreads()) == [(1, 1, 0, 5 / 103), (1, 2, 0, 20 / 110)]


def test_totals_count_what_the_limit_cut(run: Path) -> None:
    """Missing generations are in no mean; a finish reason of length is a truncated reply."""
    with writable(run) as store:
        store.append([answered(request(), "B", tokens=10), answered(request(seed=1), "B", "length", tokens=20)])
        store.append([missing(request(seed=2))])
        total = store.totals()[1]
    assert (total.answered, total.missing, total.items, total.prompt_tokens_mean, total.truncated) == (2, 1, 1, 15.0, 1)


def test_rows_come_back_as_they_went_in(run: Path) -> None:
    """An imported row with unknown keys is exported with them."""
    row = Row(
        model="m",
        task="t",
        item="q1",
        wrapper="json",
        seed=3,
        text="é\u202e",
        finish_reason="stop",
        answer_type="choice",
        choices=dict(zip(LETTERS.labels, LETTERS.texts, strict=True)),
        gold="B",
        extra={"run": 7},
    )
    with writable(run) as store:
        assert store.append_rows([(row, item("q1"), Reply(row.text, "stop"))]) == 1
        assert store.append_rows([(row, item("q1"), Reply(row.text, "stop"))]) == 0
        assert list(store.rows()) == [row]


def test_two_rows_of_one_identity_that_differ_are_refused(run: Path) -> None:
    """A generation can be given only once."""
    row = Row(model="m", task="t", item="q1", wrapper="json", text="B")
    with writable(run) as store, pytest.raises(ConflictError, match="two different rows"):
        store.append_rows((r, item("q1"), Reply(r.text)) for r in (row, msgspec.structs.replace(row, text="C")))


def test_verify_finds_a_changed_prompt(run: Path) -> None:
    """A prompt that does not match its digest is found."""
    with writable(run) as store:
        store.append([answered(request(), "B")])
        assert store.verify() == ["prompt p-plain-q1 does not match its digest"]


def test_a_full_disk_is_one_clear_error(run: Path) -> None:
    """When the file cannot grow, the error says that what was committed is kept."""
    with writable(run) as store:
        store.append([answered(request(), "B")])
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(FileError, match="cannot be written") as caught:
            store.append([answered(request(seed=1), "B" * 100_000)])
        assert "what was committed is kept" in caught.value.hint
        assert store.counts()["answered"] == 1


# Attempts and money --------------------------------------------------------------------------------------------


def charged(request: Request, *costs: float | None, answer: bool = True) -> Generation:
    """A request with an attempt for each cost, the last of which was answered, or none."""
    attempts = tuple(Attempt(1.0, 2.0, 200, "broken", b"", cost_usd=cost) for cost in costs)
    reply = Reply("B", "stop", prompt_tokens=10, completion_tokens=3, cost_usd=costs[-1]) if answer else None
    fault = None if answer else missing(request).fault
    return Generation(request, reply, fault, attempts)


def test_a_generation_costs_what_its_attempts_cost_in_every_part_of_a_run(run: Path) -> None:
    """Two charged failures, and in the next part a third and the answer: their sum."""
    with writable(run) as store:
        store.append([charged(request(), 0.125, None, 0.25, answer=False)])
        assert store.counts()["cost_usd"] == 0.375
        store.append([charged(request(), 0.5, 1.0)])
        store.append([charged(request(item="q2"), None)])
        counts = store.counts()
    assert (counts["cost_usd"], counts["attempts"], counts["retries"], counts["answered"]) == (1.875, 6, 4, 2)


def test_a_cost_that_nobody_says_is_not_nothing(run: Path) -> None:
    """Without any cost the run's is not known; a cost of 0 is one."""
    with writable(run) as store:
        store.append([charged(request(), None)])
        assert store.counts()["cost_usd"] is None
        store.append([charged(request(seed=1), 0.0)])
        assert store.counts()["cost_usd"] == 0.0


def test_calls_of_preflight_are_attempts_and_cost(run: Path) -> None:
    """They are no generations, no retries and no tokens, and every one of them counts."""
    calls = [("seed", charged(request(), 0.25, 0.5)), ("padding", charged(request(), None))]
    with writable(run) as store:
        store.append([charged(request(), 1.0)])
        store.put_calls(calls)
        counts = store.counts()
    assert (counts["attempts"], counts["preflight_calls"], counts["retries"]) == (4, 3, 0)
    assert (counts["answered"], counts["prompt_tokens"], counts["cost_usd"]) == (1, 10, 1.75)


def test_calls_alone_are_counted_too(run: Path) -> None:
    """A run that went no further than preflight has spent what that cost."""
    with writable(run) as store:
        store.put_calls([("seed", charged(request(), 0.25))])
        assert (store.counts()["attempts"], store.counts()["cost_usd"], store.has_answers()) == (1, 0.25, False)


def test_every_attempt_is_on_record_with_its_server(run: Path) -> None:
    """Which server it went to and what it cost stand beside the raw body."""
    with writable(run) as store:
        attempts = (
            Attempt(1.0, 2.0, 503, "unavailable", b"no", b'{"a":1}', "http://one/v1"),
            Attempt(2.0, 3.0, 200, None, b"yes", b'{"a":2}', "http://two/v1", 0.5),
        )
        store.append([Generation(request(), Reply("B"), None, attempts)])
        found = sqlite3.connect(run / FILE).execute("SELECT server, fault, body, cost_usd FROM attempt").fetchall()
        _, sent = store.reply(store.answers()["d"])
    assert found == [("http://one/v1", "unavailable", b"no", None), ("http://two/v1", None, b"yes", 0.5)]
    assert sent == b'{"a":2}'


def test_findings_come_back_as_they_went_in(run: Path) -> None:
    """By model and server; asked again they are replaced."""
    found = Findings(
        "m",
        "http://one/v1",
        "vllm",
        build="0.11",
        adaptations=(Adaptation("seed", "0", "", "unsupported"),),
        routing={"only": ["x"]},
        seed="honoured",
        padding=True,
        latency_ms=12.5,
        canaries=(Canary("grammar", "enforced", "B"),),
    )
    other = msgspec.structs.replace(found, server="http://two/v1", padding=None)
    with writable(run) as store:
        store.put_findings(msgspec.structs.replace(found, build=None))
        store.put_findings(found)
        store.put_findings(other)
        assert store.findings() == {("m", "http://one/v1"): found, ("m", "http://two/v1"): other}


def test_the_rate_is_of_the_last_answers(run: Path) -> None:
    """Thirty answers two seconds apart are half a generation a second; twenty are too few to say; faults are none."""
    with writable(run) as store:
        for seed in range(30):
            attempts = (Attempt(0.0, 1.0, 503, "busy", b""), Attempt(1000.0 + 2 * seed, 1.0, 200, None, b""))
            if seed == 20:
                assert store.rate("m") is None
            store.append([Generation(request(seed=seed), Reply("B"), None, attempts)])
        assert store.rate("m") == pytest.approx(0.5)
        assert store.rate("other") is None


def test_upstreams_are_counted(run: Path) -> None:
    """Who answered in the end and through which server, most frequent first; missing ones name nobody."""
    with writable(run) as store:
        for seed, provider in enumerate(("a", "b", "b")):
            reply = Reply("B", provider=provider, model_returned="m-1", system_fingerprint="f")
            tries = (Attempt(1.0, 2.0, 503, "x", b"", server="http://a"), Attempt(1.0, 2.0, 200, None, b"", server="s"))
            store.append([Generation(request(seed=seed), reply, None, tries)])
        store.append([missing(request(seed=9))])
        assert store.upstreams() == [("m", "s", "b", "m-1", "f", 2), ("m", "s", "a", "m-1", "f", 1)]


# Replies of an earlier run -------------------------------------------------------------------------------------


def test_a_reused_reply_costs_nothing_and_is_no_attempt(run: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What another run paid for is the same answer here, with the body that was sent for it, and counted as reused."""
    other = tmp_path_factory.mktemp("other")
    reply = Reply("B", "stop", "thought", prompt_tokens=10, completion_tokens=3, cost_usd=0.5, provider="p")
    with writable(run) as store:
        attempt = Attempt(1.0, 2.0, 200, None, b"{}", b'{"max_tokens":24}', cost_usd=0.5)
        store.append([Generation(request(), reply, None, (attempt,)), missing(request(seed=1, digest="e"))])
        assert list(store.answers()) == ["d"]
        found, sent = store.reply(store.answers()["d"])
    assert (found, sent) == (msgspec.structs.replace(reply, cost_usd=None), b'{"max_tokens":24}')
    with Store(other, writable=True, create=True) as store:
        store.put_items("t", [item("q1")])
        store.append_reused([(request(), found, sent)], "earlier")
        counts = store.counts()
        assert store.state(request().identity) == ("d", True)
        assert [(row.text, row.reasoning) for row in store.rows()] == [("B", "thought")]
        assert store.reply(store.answers()["d"]) == (found, sent)
    assert (counts["answered"], counts["reused"], counts["attempts"], counts["retries"]) == (1, 1, 0, 0)
    assert counts["cost_usd"] is None
    reused = sqlite3.connect(other / FILE).execute("SELECT reused FROM generation").fetchall()
    assert reused == [("earlier",)]


def test_a_reused_reply_takes_the_place_of_a_missing_one(run: Path) -> None:
    """The attempts and the money that the missing one took are kept; an answer is never replaced."""
    with writable(run) as store:
        store.append([charged(request(), 0.25, 0.25, answer=False)])
        store.append_reused([(request(), Reply("B"), b"{}")], "earlier")
        counts = store.counts()
        assert (counts["attempts"], counts["cost_usd"], counts["reused"], counts["missing"]) == (2, 0.5, 1, 0)
        with pytest.raises(ValueError, match="is answered already"):
            store.append_reused([(request(), Reply("C"), b"{}")], "earlier")


def test_rows_scored_elsewhere_answer_nothing(run: Path) -> None:
    """A row without a text is no reply that another run could take."""
    row = Row(model="m", task="t", item="q1", wrapper="json", parsed=True, correct=True)
    with writable(run) as store:
        store.append_rows([(row, item("q1"), Reply(None))])
        assert store.answers() == {}


# Older files ---------------------------------------------------------------------------------------------------

VERSION_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cell (id INTEGER PRIMARY KEY, model TEXT NOT NULL, task TEXT NOT NULL, wrapper TEXT NOT NULL, arm TEXT
    NOT NULL, UNIQUE (model, task, wrapper, arm));
CREATE TABLE item (id INTEGER PRIMARY KEY, task TEXT NOT NULL, item TEXT NOT NULL, space TEXT NOT NULL, gold TEXT,
    subject TEXT, cluster TEXT, UNIQUE (task, item));
CREATE TABLE wrapper (name TEXT PRIMARY KEY, digest TEXT NOT NULL, contract TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE parser (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest TEXT NOT NULL);
CREATE TABLE budget (task TEXT NOT NULL, item TEXT NOT NULL, characters INTEGER NOT NULL, PRIMARY KEY (task, item))
    WITHOUT ROWID;
CREATE TABLE prompt (digest TEXT PRIMARY KEY, messages BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE sending (id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE);
CREATE TABLE generation (id INTEGER PRIMARY KEY, cell INTEGER NOT NULL REFERENCES cell (id), item INTEGER NOT NULL
    REFERENCES item (id), seed INTEGER NOT NULL, digest TEXT NOT NULL, prompt TEXT REFERENCES prompt (digest),
    sending INTEGER REFERENCES sending (id), answered INTEGER NOT NULL, text TEXT, finish_reason TEXT, reasoning
    TEXT, refusal TEXT, tool_calls TEXT, native_finish_reason TEXT, prompt_tokens INTEGER, completion_tokens
    INTEGER, reasoning_tokens INTEGER, cost_usd REAL, provider TEXT, model_returned TEXT, system_fingerprint TEXT,
    fault TEXT, attempts INTEGER NOT NULL, latency_ms REAL, given_parsed INTEGER, given_correct INTEGER, extra TEXT,
    UNIQUE (cell, item, seed));
CREATE TABLE attempt (generation INTEGER NOT NULL REFERENCES generation (id), started REAL NOT NULL, latency_ms REAL
    NOT NULL, http_status INTEGER, fault TEXT, body BLOB NOT NULL);
CREATE TABLE outcome (parser INTEGER NOT NULL REFERENCES parser (id), generation INTEGER NOT NULL REFERENCES
    generation (id), outcome TEXT NOT NULL, value TEXT, reason TEXT, needed TEXT, candidates TEXT, correct INTEGER,
    PRIMARY KEY (parser, generation)) WITHOUT ROWID;
CREATE TABLE given_cell (cell INTEGER PRIMARY KEY REFERENCES cell (id), n INTEGER NOT NULL, accuracy REAL NOT NULL,
    parseability REAL);
CREATE TABLE preflight (name TEXT PRIMARY KEY, status TEXT NOT NULL, message TEXT NOT NULL) WITHOUT ROWID;
"""

SPACE = '{"type":"choice","labels":["A","B"],"texts":["car","apple"]}'
ROWS_1 = f"""
INSERT INTO meta VALUES ('schema', '1'), ('name', 'old');
INSERT INTO cell VALUES (1, 'm', 't', 'plain', 'none'), (2, 'm', 't', 'json', 'none'), (3, 'x', 't', 'plain', 'none');
INSERT INTO item VALUES (1, 't', 'q1', '{SPACE}', 'B', 'g', NULL), (2, 't', 'q2', '{SPACE}', 'A', NULL, NULL);
INSERT INTO wrapper VALUES ('plain', 'w', '{{"kind":"text"}}');
INSERT INTO parser VALUES (1, 'strict', 'one');
INSERT INTO budget VALUES ('t', '', 90);
INSERT INTO prompt VALUES ('87ac7a12', CAST('[{{"role":"user","content":"Which?"}}]' AS BLOB));
INSERT INTO sending VALUES (1, '{{"max_tokens":24}}');
INSERT INTO generation (id, cell, item, seed, digest, prompt, sending, answered, text, finish_reason, prompt_tokens,
    completion_tokens, cost_usd, provider, fault, attempts, latency_ms) VALUES
    (1, 1, 1, 0, 'd1', '87ac7a12', 1, 1, 'B', 'stop', 100, 3, 0.5, 'p', NULL, 2, 8.0),
    (2, 2, 1, 0, 'd2', '87ac7a12', 1, 1, '?', 'length', 102, 9, NULL, 'p', NULL, 1, 8.0),
    (3, 1, 2, 0, 'd3', '87ac7a12', 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'timeout: none', 8, 8.0);
INSERT INTO attempt VALUES (1, 10.0, 5.0, 503, 'unavailable', X''), (1, 11.0, 8.0, 200, NULL, X'7B7D');
INSERT INTO outcome VALUES (1, 1, 'parsed', 'B', NULL, NULL, NULL, 1),
    (1, 2, 'unparseable', NULL, 'truncated', NULL, NULL, 0);
INSERT INTO given_cell VALUES (3, 40, 0.5, 0.75);
INSERT INTO preflight VALUES ('seed', 'ok', 'honoured');
"""

READERS: dict[str, tuple[Callable[[Store], Any], Any]] = {
    "meta": (lambda s: s.meta("name"), "old"),
    "has_answers": (lambda s: (s.has_answers(), s.has_answers("m"), s.has_answers("x")), (True, True, False)),
    "has_given": (lambda s: s.has_given(), False),
    "has_texts": (lambda s: s.has_texts(), True),
    "contracts": (lambda s: s.contracts(), {"plain": Contract("text")}),
    "items": (lambda s: [one.gold for one in s.items().values()], ["B", "A"]),
    "spaces": (lambda s: [(task, space.labels) for task, space in s.spaces()], [("t", ("A", "B"))]),
    "clusters": (lambda s: s.clusters(), {}),
    "groups": (lambda s: s.groups(), {1: "g"}),
    "items_of": (lambda s: s.items_of(["t"]), {1, 2}),
    "budgets": (lambda s: s.budgets(), {("t", ""): 90}),
    "findings": (lambda s: s.findings(), {}),
    "preflight": (lambda s: s.preflight(), (Check("seed", "ok", "honoured"),)),
    "state": (lambda s: s.state(("m", "t", "q1", "plain", "none", 0)), ("d1", True)),
    "answers": (lambda s: s.answers(), {"d1": 1, "d2": 2}),
    "reply": (
        lambda s: s.reply(1),
        (Reply("B", "stop", prompt_tokens=100, completion_tokens=3, provider="p"), b'{"max_tokens":24}'),
    ),
    "rate": (lambda s: s.rate("m"), None),
    "parsers": (lambda s: s.parsers(), {"strict": 1}),
    "unread": (lambda s: [one.id for batch in s.unread(99) for one in batch], [1, 2]),
    "cells": (lambda s: s.cells()[2], CellKey("m", "t", "json", "none")),
    "totals": (lambda s: [(t.answered, t.missing, t.truncated) for t in s.totals().values()], [(1, 1, 0), (1, 0, 1)]),
    "tallies": (lambda s: list(s.tallies(1)), [(1, 1, 0, 1, 0, 1, 1, "B"), (2, 1, 0, 1, 1, 0, 0, None)]),
    "values": (lambda s: (s.values(1, 1), s.values(1, 2)), ([(1, "B", 1)], [(1, None, 1)])),
    "reasons": (lambda s: s.reasons(1), [(2, "truncated", 1, 2)]),
    "given_cells": (lambda s: s.given_cells(), {3: (40, 0.5, 0.75)}),
    "spreads": (lambda s: list(s.spreads()), [(1, 1, 0, 2 / 101)]),
    "counts": (lambda s: tuple(s.counts().values()), (2, 1, 11, 8, 202, 12, 0.5, 0, 0)),
    "upstreams": (lambda s: s.upstreams(), [("m", "", "p", None, None, 1)]),
    "is_empty": (lambda s: s.is_empty(), False),
    "has_cost": (lambda s: s.has_cost(), False),
    "sample": (lambda s: s.sample(2)["text"], "?"),
    "faults": (lambda s: s.faults(), [("timeout: none", 1)]),
    "rows": (lambda s: [(row.item, row.text, row.status) for row in s.rows()],
             [("q1", "B", "answered"), ("q1", "?", "answered"), ("q2", None, "missing")]),
    "outcomes": (lambda s: [row[7] for row in s.outcomes()[1]], ["parsed", "unparseable", "missing"]),
    "verify": (lambda s: s.verify(), ["prompt 87ac7a12 does not match its digest"]),
}  # fmt: skip
"""Public reader -> how it is called, and what it says of the rows above."""
WRITERS = {"set_meta", "append", "append_reused", "append_rows", "cell", "parser"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(VERSION_1 + ROWS_1)
    db.close()
    return tmp_path


def columns(run: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Table -> its columns: place, name, type, not null, default, key."""
    db = sqlite3.connect(run / FILE)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {table: db.execute(f"PRAGMA table_info({table})").fetchall() for table in tables}
    db.close()
    return found


def test_every_reader_is_tried_on_an_older_file() -> None:
    """The table above names all that is public and does not write."""
    public = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert {name for name in public - WRITERS if not name.startswith("put_")} == set(READERS)


def test_an_older_file_is_read_and_stays_as_it_is(old: Path) -> None:
    """Every reader says what the rows say, and not a byte of the file changes."""
    before = (old / FILE).read_bytes()
    with Store(old, writable=False) as store:
        found = {name: call(store) for name, (call, _) in READERS.items()}
    assert found == {name: expected for name, (_, expected) in READERS.items()}
    assert (old / FILE).read_bytes() == before


def test_an_older_file_that_is_written_is_migrated(old: Path) -> None:
    """It says the same, takes what this version writes, and is of this version from then on."""
    with writable(old) as store:
        assert {name: call(store) for name, (call, _) in READERS.items()} == {
            name: expected for name, (_, expected) in READERS.items()
        }
        store.append([charged(msgspec.structs.replace(request("q2"), digest="d3"), 0.25)])
        store.put_calls([("seed", charged(request(), 0.25))])
        store.put_findings(Findings("m", "s", "vllm"))
    with Store(old, writable=False) as store:
        counts = store.counts()
        assert store.meta("schema") == "3"
        assert list(store.findings()) == [("m", "s")]
    assert (counts["missing"], counts["attempts"], counts["cost_usd"]) == (0, 13, 1.0)


def test_a_migrated_file_is_like_a_new_one(old: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same tables with the same columns in the same order."""
    new = tmp_path_factory.mktemp("new")
    with Store(new, writable=True, create=True), writable(old):
        pass
    assert columns(old) == columns(new)


@pytest.mark.parametrize("folder", ["old", "new"])
def test_a_kill_between_tables_and_version_is_survived(
    folder: str, old: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a migration or a first opening had done when it was killed, the run can be opened afterwards: the
    version is written in the same transaction as the tables."""
    run = old if folder == "old" else tmp_path_factory.mktemp("new")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "meta", killed)
        with pytest.raises(KeyboardInterrupt):
            Store(run, writable=True, create=True)
    with writable(run) as store:
        assert store.meta("schema") == "3"


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("statement", ["DELETE FROM meta", "UPDATE meta SET value = 'two'"])
def test_a_version_that_is_none_is_a_clear_error(old: Path, statement: str) -> None:
    """A file whose version is missing or no number is no readable run."""
    db = sqlite3.connect(old / FILE)
    db.execute(statement)
    db.commit()
    db.close()
    with pytest.raises(FileError, match="not a readable run"):
        Store(old, writable=False)
