"""A whole run: what is sent, kept, resumed, extended, refused, and what is written."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from loopback import Answer, Body, Loopback, draw
from samples import write_jsonl
from simulated import CASES, reply, told, truth

from auditor import audit, results
from auditor.errors import AuditorError, ConflictError, EndpointDown, FileError, RequestRefused, UsageError
from auditor.report.value import Report
from auditor.store import FILE, Store
from auditor.study import Study


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "cases.jsonl", CASES)


def study(url: str, cases: Path, **changes: object) -> Study:
    told_ = {"models": (f"compat/m@{url}",), "tasks": (str(cases),), "items": 6, "seeds": 2, "max_tokens": 64}
    told_ |= {"preflight": False}
    return Study(**{**told_, **changes})  # type: ignore[arg-type]


def figures(report: Report) -> str:
    """Everything that is measured, without what differs between two runs: when it was and how often it asked."""
    summary = json.loads((report.path / "summary.json").read_text())
    del summary["run"], summary["counts"]["attempts"], summary["counts"]["retries"]
    return json.dumps(summary, sort_keys=True)


def test_a_run_measures_what_the_model_did(cases: Path, tmp_path: Path) -> None:
    """Accuracy and parseability of every cell equal the truth behind the replies."""
    with Loopback(reply) as server:
        report = audit.run(study(server.url, cases), tmp_path / "run")
        seen = list(server.requests)
    assert len(seen) == 6 * 5 * 2
    for cell in report.summary.cells:
        if cell.parser == "strict":
            outcomes = [truth(body) for body in seen if told(body) == cell.wrapper]
            assert (cell.n, cell.items, cell.missing) == (12, 6, 0)
            assert cell.parsed == sum(readable for readable, _ in outcomes)
            assert cell.correct == sum(readable and value == "B" for readable, value in outcomes)
    assert report.summary.counts.attempts == len(seen)


def test_cells_are_in_the_studys_order(cases: Path, tmp_path: Path) -> None:
    """Replies come in any order; tables and ties follow the study."""
    order = ("deliberate", "plain", "json")
    with Loopback(lambda body: Answer("B", delay=draw(body) / 20)) as server:
        report = audit.run(study(server.url, cases, wrappers=order), tmp_path / "run")
    assert report.summary.sensitivity[0].wrappers == order


def test_prompts_of_a_task_are_equally_long_and_seeds_are_sent(cases: Path, tmp_path: Path) -> None:
    """`--pad chars` holds over the wire; each (prompt, seed) is asked once, parameters explicit."""
    with Loopback(reply) as server:
        audit.run(study(server.url, cases), tmp_path / "run")
        seen = list(server.requests)
    assert len({len(body["messages"][0]["content"]) for body in seen}) == 1
    assert set(Counter((body["messages"][0]["content"], body["seed"]) for body in seen).values()) == {1}
    assert {(b["max_tokens"], b["temperature"], b["top_p"], b["stream"]) for b in seen} == {(64, 0.7, 1.0, False)}


def test_everything_is_written(cases: Path, tmp_path: Path) -> None:
    """The folder holds the journal, report, tables, and keeps itself out of git; summary.json is the value returned."""
    with Loopback(reply) as server:
        report = audit.run(study(server.url, cases), tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {FILE, "report.html", "summary.json", "cells.csv", ".gitignore"} <= names
    assert not [name for name in names if name.endswith(".part")]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["cells"][0]["n"] == report.summary.cells[0].n


def test_running_again_asks_nothing_and_changes_nothing(cases: Path, tmp_path: Path) -> None:
    """A warm rerun makes no call and gives the same figures."""
    with Loopback(reply) as server:
        first = figures(audit.run(study(server.url, cases), tmp_path / "run"))
        before = len(server.requests)
        assert figures(audit.run(study(server.url, cases), tmp_path / "run")) == first
        assert len(server.requests) == before


def test_a_run_can_be_extended(cases: Path, tmp_path: Path) -> None:
    """More seeds, items, wrappers and models ask only what is new, and end where one big run would."""
    with Loopback(reply) as server:
        small = study(server.url, cases, wrappers=("plain", "structured_delim"), items=3, seeds=1)
        audit.run(small, tmp_path / "run")
        assert len(server.requests) == 6
        big = study(server.url, cases, models=(f"compat/m@{server.url}", f"n=compat/m@{server.url}"))
        extended = audit.run(big, tmp_path / "run")
        assert len(server.requests) == 120
        assert {row.model for row in extended.summary.models} == {"m", "n"}
        fresh = audit.run(big, tmp_path / "fresh")
    cells = {(c.model, c.wrapper, c.parser): (c.n, c.parsed, c.correct) for c in extended.summary.cells}
    assert cells == {(c.model, c.wrapper, c.parser): (c.n, c.parsed, c.correct) for c in fresh.summary.cells}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"temperature": 0.2}, "temperature was 0.7, now 0.2"),
        ({"pad": "none"}, "pad was chars, now none"),
        ({"max_tokens": 24}, "max_tokens was 64, now 24"),
        ({"seed": 5}, "seed was 0, now 5"),
        ({"shots": 1}, "shots was 0, now 1"),
    ],
)
def test_another_study_is_refused_by_name(cases: Path, tmp_path: Path, changes: dict[str, object], named: str) -> None:
    """`--out` that holds another study's run is left alone, and the change is named."""
    with Loopback(reply) as server:
        audit.run(study(server.url, cases), tmp_path / "run")
        before = (tmp_path / "run" / "summary.json").read_bytes()
        with pytest.raises(ConflictError, match=named):
            audit.run(study(server.url, cases, **changes), tmp_path / "run")
        assert len(server.requests) == 60
    assert (tmp_path / "run" / "summary.json").read_bytes() == before


def test_a_changed_question_is_refused(cases: Path, tmp_path: Path) -> None:
    """The digest of the request is the last guard: an item that asks something else is another request."""
    with Loopback(reply) as server:
        audit.run(study(server.url, cases), tmp_path / "run")
        write_jsonl(cases, [{**case, "question": f"{case['question']} Really?"} for case in CASES])
        with pytest.raises(ConflictError, match="its prompt or parameters changed"):
            audit.run(study(server.url, cases), tmp_path / "run")
        assert len(server.requests) == 60


def test_another_port_is_the_same_run(cases: Path, tmp_path: Path) -> None:
    """URL, concurrency and transport are not part of a request."""
    with Loopback(reply) as server:
        audit.run(study(server.url, cases), tmp_path / "run")
    with Loopback(reply) as server:
        audit.run(study(server.url, cases, concurrency=3, transport="httpx"), tmp_path / "run")
        assert server.requests == []


def test_missing_ones_are_asked_again(cases: Path, tmp_path: Path) -> None:
    """A generation that was lost is missing, not wrong; the next run asks it, and only it."""
    lost = {"left": 3}

    def answer(body: Body) -> Answer:
        if told(body) == "json" and lost["left"] > 0:
            lost["left"] -= 1
            return Answer(status=413, body=b'{"error": {"message": "too long"}}')
        return reply(body)

    with Loopback(answer) as server:
        report = audit.run(study(server.url, cases, concurrency=1), tmp_path / "run")
        assert (report.summary.counts.answered, report.summary.counts.missing) == (57, 3)
        cell = next(c for c in report.summary.cells if c.wrapper == "json" and c.parser == "strict")
        assert (cell.n, cell.missing) == (9, 3)
        assert results.incomplete(report.summary) is not None
        again = audit.run(study(server.url, cases, concurrency=1), tmp_path / "run")
        assert (again.summary.counts.answered, again.summary.counts.missing) == (60, 0)
        assert again.summary.counts.attempts == len(server.requests) == 63
        assert results.incomplete(again.summary) is None


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"models": ("gpt-4",)}, UsageError),
        ({"models": ("opnai/gpt-4",)}, UsageError),
        ({"models": ("compat/m",)}, UsageError),
        ({"models": ("openai/gpt-4.1",)}, UsageError),
        ({"models": ("local/nothing",)}, UsageError),
        ({"models": ("local/nowhere.gguf",)}, FileError),
        ({"wrappers": ("jsn",)}, UsageError),
        ({"parsers": ("strickt",)}, UsageError),
        ({"tasks": ("arithmetics",)}, UsageError),
        ({"tasks": ("nowhere.jsonl",)}, UsageError),
    ],
)
def test_wrong_input_writes_nothing(
    cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], error: type[AuditorError]
) -> None:
    """Everything a study names is checked before the run's folder is made."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(error) as caught:
        audit.run(study("http://127.0.0.1:9/v1", cases, **changes), tmp_path / "run")
    assert caught.value.exit_code == 2
    assert caught.value.hint
    assert not (tmp_path / "run").exists()


def test_an_endpoint_where_nothing_listens_leaves_nothing(cases: Path, tmp_path: Path) -> None:
    """Nothing answered, nothing kept; said within 15 s."""
    start = time.monotonic()
    with pytest.raises(EndpointDown) as caught:
        audit.run(study("http://127.0.0.1:9/v1", cases), tmp_path / "run")
    assert time.monotonic() - start < 15
    assert caught.value.exit_code == 3
    assert not (tmp_path / "run").exists()


def test_a_refused_key_ends_the_run_at_once(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 401 is met by all requests: one is enough, and the key is in no message or file."""
    monkeypatch.setenv("AUDITOR_API_KEY", "sk-very-secret")
    refusal = b'{"error": {"message": "Incorrect API key provided: sk-very-secret", "code": "invalid_api_key"}}'
    with Loopback(lambda _: Answer(status=401, body=refusal)) as server:
        with pytest.raises(RequestRefused) as caught:
            audit.run(study(server.url, cases), tmp_path / "run")
        assert len(server.requests) <= 16
        assert server.headers[0]["Authorization"] == "Bearer sk-very-secret"
    assert "very-secret" not in f"{caught.value.message} {caught.value.hint}"
    assert not (tmp_path / "run").exists()


def test_a_key_is_in_no_file(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a server that repeats the key back does not get it into the run folder."""
    monkeypatch.setenv("AUDITOR_API_KEY", "sk-very-secret")
    with Loopback(lambda body: Answer(f"{reply(body).text} sk-very-secret")) as server:
        audit.run(study(server.url, cases), tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        assert b"very-secret" not in path.read_bytes(), path


def test_a_folder_that_holds_something_else_is_left_alone(cases: Path, tmp_path: Path) -> None:
    """A typo in --out must not write into somebody's folder."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("42")
    with Loopback(reply) as server, pytest.raises(ConflictError, match="not empty and holds no run"):
        audit.run(study(server.url, cases), tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


RUN = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from auditor import audit, results
from auditor.study import Study
audit.run(Study(models=("compat/m@{url}",), tasks=({cases!r},), items=40, seeds=10, concurrency=16, max_tokens=64,
          preflight=False, parsers=("strict",)), Path({out!r}))
"""


def test_a_killed_run_loses_at_most_what_was_in_flight(cases: Path, tmp_path: Path) -> None:
    """2,000 generations, killed five times at a random moment: all there in the end, none twice, at most
    (concurrency) asked again at each kill, and the figures of an undisturbed run."""
    rng = random.Random(20260101)
    with Loopback(reply, latency=0.02) as server:
        out = tmp_path / "killed"
        code = RUN.format(root=str(Path(audit.__file__).parents[1]), url=server.url, cases=str(cases), out=str(out))
        for _ in range(5):
            before = len(server.requests)
            child = subprocess.Popen([sys.executable, "-c", code])
            while len(server.requests) == before:
                assert child.poll() is None
                time.sleep(0.01)
            time.sleep(rng.uniform(0.05, 0.35))
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert len(server.requests) < 2_000
        subprocess.run([sys.executable, "-c", code], check=True)
        asked = Counter((body["messages"][0]["content"], body["seed"]) for body in server.requests)
        again = results.load(out)
        undisturbed = audit.run(
            study(server.url, cases, items=40, seeds=10, parsers=("strict",)), tmp_path / "undisturbed"
        )
    assert len(asked) == 2_000
    assert sum(asked.values()) - 2_000 <= 5 * 16
    with Store(out, writable=False) as store:
        assert store.counts()["answered"] == 2_000
        assert store.verify() == []
    assert again.summary.counts.answered == undisturbed.summary.counts.answered == 2_000
    assert figures(results.rebuild(out, ["strict"])) == figures(undisturbed)


def test_ctrl_c_keeps_what_was_answered(cases: Path, tmp_path: Path) -> None:
    """An interrupt ends cleanly with 130 and says how to go on; running again finishes."""
    with Loopback(reply, latency=0.05) as server:
        arguments = ["--models", f"compat/m@{server.url}", "--tasks", str(cases), "--items", "40", "--seeds", "2"]
        arguments += ["--concurrency", "16"]
        command = [sys.executable, "-m", "auditor.cli", "run", *arguments, "--out", str(tmp_path / "run")]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        while len(server.requests) < 50:
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=20)
        assert child.returncode == 130
        assert "stopped:" in said
        assert "run the same command again to go on" in said
        assert "Traceback" not in said
        with Store(tmp_path / "run", writable=False) as store:
            kept = store.counts()["answered"]
        assert kept >= 30
        finished = audit.run(study(server.url, cases, items=40, max_tokens="auto"), tmp_path / "run")
        assert finished.summary.counts.answered == 400
        assert len(server.requests) <= 4 + 400 + 16
        assert finished.summary.counts.attempts == len(server.requests)


def test_the_frames_hold_the_summary(cases: Path, tmp_path: Path) -> None:
    """The Python API gives pandas frames of the same rows."""
    with Loopback(reply) as server:
        report = audit.run(study(server.url, cases), tmp_path / "run")
    assert len(report.cells) == len(report.summary.cells) == 15
    assert list(report.sensitivity["fsi"]) == [row.fsi for row in report.summary.sensitivity]
    outcomes = report.outcomes()
    strict = outcomes[outcomes["parser"] == "strict"]
    assert len(strict) == 60
    assert strict["correct"].sum() == sum(c.correct or 0 for c in report.summary.cells if c.parser == "strict")


def test_shots_show_other_items(cases: Path, tmp_path: Path) -> None:
    """A worked example stands before the question, with the contract's own reply, and is never the item itself."""
    with Loopback(reply) as server:
        audit.run(study(server.url, cases, shots=2, wrappers=("json",), seeds=1), tmp_path / "run")
        for body in server.requests:
            asked = body["messages"][0]["content"]
            assert asked.count('{"answer": "B"}') == 2
            assert len({part for part in asked.split() if part.endswith(":") and part[:-1].isdigit()}) == 3


def test_a_journal_that_fails_ends_the_run(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any error while committing reaches the run; no worker waits for ever."""

    def fail(self: Store, generations: object) -> None:
        raise ValueError("nothing can be written")

    monkeypatch.setattr(Store, "append", fail)
    with Loopback(reply) as server, pytest.raises(ValueError, match="nothing can be written"):
        audit.run(study(server.url, cases), tmp_path / "run")


def test_a_model_with_a_body_joins_and_moves(cases: Path, tmp_path: Path) -> None:
    """Extra fields are held per alias: another model's are welcome, another URL is the same model, a change is not."""

    def told(url: str, effort: str, *more: str) -> Study:
        first = f"compat/m@{url}"
        return study(url, cases, models=(first, *more), wrappers=("plain",), bodies={first: {"effort": effort}})

    with Loopback(reply) as server:
        audit.run(told(server.url, "low"), tmp_path / "run")
        assert all(body["effort"] == "low" for body in server.requests)
    with Loopback(reply) as server:
        audit.run(told(server.url, "low", f"n=compat/n@{server.url}"), tmp_path / "run")
        assert {body["model"] for body in server.requests} == {"n"}
        with pytest.raises(ConflictError, match=r"the body of model 'm' was \{'effort': 'low'\}, now"):
            audit.run(told(server.url, "high"), tmp_path / "run")


def test_a_resumed_run_whose_last_items_are_refused_still_reports(cases: Path, tmp_path: Path) -> None:
    """What a model refuses that has answered before is missing, and no reason to end the run."""
    refused = Answer(status=413, body=b'{"error": {"message": "too long"}}')
    with Loopback(lambda body: refused if "Case 1" in body["messages"][0]["content"] else reply(body)) as server:
        told_ = study(server.url, cases, items=60, seeds=1, concurrency=2)
        first = audit.run(told_, tmp_path / "run").summary.counts
        again = audit.run(told_, tmp_path / "run").summary.counts
    assert first.missing == again.missing == 55
    assert again.answered == 245
