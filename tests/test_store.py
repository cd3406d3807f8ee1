"""The journal: identity, replacing what was missing, aggregates, locks and damage."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from samples import LETTERS, answered, item, missing, request

from auditor.errors import ConflictError, FileError
from auditor.records import Contract, Outcome, Reply, Row, Wrapper
from auditor.store import FILE, Store, read_messages


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
        store.append([answered(request(seed=seed), "x") for seed in range(5)])
        parser = store.parser("strict", "one")
        store.put_outcomes(parser, [(i + 1, outcome, outcome.value == "B") for i, outcome in enumerate(outcomes)])
        tallies = sorted(store.tallies(parser))
        reasons = store.reasons(parser)
    assert tallies == [(1, 1, 1, 1, 0), (1, 1, 2, 0, 0), (1, 1, 2, 1, 1)]
    assert reasons == {1: {"conflicting_answers": 1, "empty": 1}}


def test_spreads_need_every_wrapper_and_match_the_worked_example(run: Path) -> None:
    """(100, 104, 105) is 4.85 % of its mean and matched; (100, 110, 120) is not; an incomplete group is left out."""
    tokens = {"q1": (100, 104, 105), "q2": (100, 110, 120)}
    with writable(run) as store:
        for name, counts in tokens.items():
            for wrapper_name, count in zip(("plain", "json", "xml"), counts, strict=True):
                store.append([answered(request(item=name, wrapper=wrapper_name), "B", tokens=count)])
        store.append([answered(request(wrapper="plain", seed=1), "B", tokens=100)])
        assert store.spreads() == [(100, 105, 103.0), (100, 120, 110.0)]
        parser = store.parser("strict", "one")
        store.put_outcomes(parser, [(i, Outcome("parsed", "B"), i < 3) for i in range(1, 8)])
        assert store.matched(parser) == {1: (1, 1, 1), 2: (1, 1, 1), 3: (1, 1, 0)}


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
