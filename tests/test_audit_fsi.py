"""`--study fsi`: the paper's design, its seven tasks from the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hub_server import HubServer, parquet
from loopback import Answer, Body, Loopback
from simulated import told

from auditor import audit
from auditor.settings import build
from auditor.store import Store

FIVE, THREE = list("ABCDE"), list("ABC")
ROWS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "google/boolq": (
        "data/validation-00000-of-00001.parquet",
        [{"question": f"is {n} even", "answer": n % 2 == 0, "passage": f"Number {n}."} for n in range(3)],
    ),
    "ybisk/piqa": (
        "plain_text/validation/0000.parquet",
        [{"goal": f"Goal {n}", "sol1": "one", "sol2": "two", "label": n % 2} for n in range(3)],
    ),
    "allenai/ai2_arc": (
        "ARC-Challenge/test-00000-of-00001.parquet",
        [{"id": f"a{n}", "question": f"Q{n}?", "answerKey": "B", "choices": {"text": ["x", "y", "z"], "label": THREE}}
         for n in range(3)],
    ),
    "Rowan/hellaswag": (
        "data/validation-00000-of-00001.parquet",
        [{"ind": n, "activity_label": "Roof", "ctx_a": f"Man {n}.", "ctx_b": "he", "ctx": "", "source_id": "s",
          "split": "val", "split_type": "zeroshot", "endings": ["a", "b", "c", "d"], "label": "1"} for n in range(3)],
    ),
    "allenai/winogrande": (
        "winogrande_xl/validation-00000-of-00001.parquet",
        [{"sentence": f"Ann {n} met _ .", "option1": "Bea", "option2": "Cy", "answer": "1"} for n in range(3)],
    ),
    "tau/commonsense_qa": (
        "data/validation-00000-of-00001.parquet",
        [{"id": f"c{n}", "question": f"Where {n}?", "question_concept": "w", "answerKey": "D",
          "choices": {"label": FIVE, "text": ["car", "sea", "tree", "fridge", "sky"]}} for n in range(3)],
    ),
    "openai/gsm8k": (
        "main/test-00000-of-00001.parquet",
        [{"question": f"How many {n}?", "answer": f"so\n#### {n}"} for n in range(3)],
    ),
}  # fmt: skip


def answer(body: Body) -> Answer:
    """B to everything."""
    return Answer("B" if told(body) else "Fine.")


def test_the_papers_study_runs_from_the_hub(hub: HubServer, tmp_path: Path) -> None:
    """Seven tasks, five wrappers, 24 tokens, five seeds; the commit that every item came from is recorded."""
    commits = {repo: hub.push(repo, {path: parquet(repo, rows)}) for repo, (path, rows) in ROWS.items()}
    with Loopback(answer) as server:
        study, _ = build({"models": (f"compat/m@{server.url}",), "preflight": False}, "fsi")
        report = audit.run(study, tmp_path / "run")
        bodies = list(server.requests)
    assert len(bodies) == 7 * 3 * 5 * 5
    assert {(body["max_tokens"], body["temperature"]) for body in bodies} == {(24, 0.7)}
    assert {body["seed"] for body in bodies} == set(range(5))
    assert {cell.task for cell in report.summary.cells} == {
        "boolq", "piqa", "arc_challenge", "hellaswag", "winogrande", "commonsense_qa", "gsm8k"
    }  # fmt: skip
    lengths = {len(body["messages"][0]["content"]) for body in bodies if "How many" in body["messages"][0]["content"]}
    assert len(lengths) == 1
    with Store(tmp_path / "run", writable=False) as store:
        sources = store.meta("sources") or ""
    assert all(commit in sources for commit in commits.values())
    assert commits["google/boolq"] in (tmp_path / "run" / "report.html").read_text()


def test_a_run_that_is_gone_on_with_reads_the_commit_it_began_with(hub: HubServer, tmp_path: Path) -> None:
    """The hub moves on between two parts of a run: the second part asks more seeds of the same items."""
    path, rows = ROWS["google/boolq"]
    first = hub.push("google/boolq", {path: parquet("google/boolq", rows)})
    options = {"tasks": ("boolq",), "preflight": False, "seeds": 1}
    with Loopback(answer) as server:
        models = (f"compat/m@{server.url}",)
        audit.run(build({"models": models, **options}, "fsi")[0], tmp_path / "run")
        other = [{"question": "is this new", "answer": True, "passage": "New."}]
        hub.push("google/boolq", {path: parquet("google/boolq", other)})
        report = audit.run(build({"models": models, **options, "seeds": 2}, "fsi")[0], tmp_path / "run")
    assert report.summary.counts.answered == 3 * 5 * 2
    with Store(tmp_path / "run", writable=False) as store:
        assert first in (store.meta("sources") or "")
