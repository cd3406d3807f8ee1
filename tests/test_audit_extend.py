"""A run that is gone on with, extended, declined, planned or judged again stays true to what it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile import Holding, Hostile, Said, Situation
from hostile_truth import study, wrong_cells
from loopback import Answer, Body, Loopback, completion
from simulated import CASES, reply, told

from auditor import audit, gating, results
from auditor.errors import BudgetError, Interrupted, RequestRefused
from auditor.records import Price
from auditor.verdict import Rules

BARE = {"preflight": False, "pad": "none", "concurrency": 8}


def prose(body: Body) -> Said:
    """A model that never answers in a form."""
    return Said("I would say it is an apple.")


# Declined, planned, shrunk -------------------------------------------------------------------------------------


def test_a_run_that_is_declined_stays_as_it_was(tmp_path: Path) -> None:
    """More wrappers are asked for and the user says no: the report is the one of before."""
    with Loopback(reply) as server:
        audit.run(study(server.url, tmp_path, 4, 1, wrappers=("plain", "json"), **BARE), tmp_path / "run")
        before = json.loads((tmp_path / "run" / "summary.json").read_text())
        with pytest.raises(Interrupted):
            audit.run(study(server.url, tmp_path, 4, 1, **BARE), tmp_path / "run", confirm=lambda *_: False)
    results.rebuild(tmp_path / "run", None)
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == before


def test_a_plan_of_a_run_that_is_gone_on_with_takes_its_limit(tmp_path: Path) -> None:
    """The limit that preflight found with the server's tokenizer is the run's: nothing is left to plan."""
    with Hostile(reply, situation=Situation(dialect="vllm", model="m")) as server:
        for pad in ("chars", "tokens"):
            asked = study(
                "x", tmp_path, 3, 1, models=(f"vllm/m@{server.url}",), max_tokens="auto", pad=pad, preflight=False
            )
            audit.run(asked, tmp_path / pad)
            assert audit.plan(asked, tmp_path / pad).generations == 0


def test_a_plan_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks nobody."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked = study("x", tmp_path, 3, 1, models=("openai/m",), prices={"openai/m": Price(1.0, 2.0)})
    assert audit.plan(asked, tmp_path / "run").generations == 15


def test_fewer_items_than_before_are_no_missing_ones(tmp_path: Path) -> None:
    """A run that a budget stopped is finished as a smaller one, and is complete then."""
    price = {"m": Price(0.0, 0.0, request=0.01)}
    with Loopback(reply) as server:
        with pytest.raises(BudgetError):
            audit.run(study(server.url, tmp_path, 20, 1, max_cost=0.3, prices=price, **BARE), tmp_path / "run")
        report = audit.run(study(server.url, tmp_path, 2, 1, **BARE), tmp_path / "run")
    assert report.summary.counts.planned == report.summary.counts.answered >= 30
    assert results.incomplete(report.summary) is None


def test_models_of_two_parts_are_planned_together(tmp_path: Path) -> None:
    """The second part asks another model alone: the run's plan is both."""
    with Loopback(reply) as server:
        for name in ("a", "b"):
            models = (f"{name}=compat/m@{server.url}",)
            report = audit.run(study("x", tmp_path, 4, 1, models=models, **BARE), tmp_path / "run")
    assert report.summary.counts.planned == 40


# Reuse ---------------------------------------------------------------------------------------------------------


def test_a_reply_of_another_provider_is_not_reused(tmp_path: Path) -> None:
    """The same words through another provider are sent with other fields: another model's reply, for all we know."""
    with Hostile(reply, situation=Situation(dialect="vllm", model="m")) as server:
        audit.run(study(server.url, tmp_path, 3, 1, **BARE), tmp_path / "one")
        asked = study("x", tmp_path, 3, 1, models=(f"vllm/m@{server.url}",), **BARE)
        report = audit.run(asked, tmp_path / "two", reuse=tmp_path / "one")
    assert (report.summary.counts.reused, report.summary.counts.attempts) == (0, 15)


# Preflight -----------------------------------------------------------------------------------------------------


def test_another_arm_keeps_what_is_proved(tmp_path: Path) -> None:
    """A run extended by an arm asks the canary of that arm alone, and the first one is still verified."""
    with Hostile(prose, situation=Situation()) as server:
        common = {"wrappers": ("json",), "pad": "none", "concurrency": 8}
        audit.run(study(server.url, tmp_path, 3, 1, enforce=("none", "json_schema"), **common), tmp_path / "run")
        before = server.counts.posts
        enforce = ("none", "json_object")
        report = audit.run(study(server.url, tmp_path, 3, 1, enforce=enforce, **common), tmp_path / "run")
        assert server.counts.posts == before + 1 + 3
    labels = {row.arm: row.label for row in report.summary.enforcement if row.parser == "strict"}
    assert labels == {"json_schema": "verified", "json_object": "verified"}


def test_a_run_of_refused_arms_alone_is_an_error(tmp_path: Path) -> None:
    """Nothing can be measured, and the endpoint's reason is told."""
    with Hostile(reply, situation=Situation(holding=Holding("refuse"))) as server:
        asked = study(server.url, tmp_path, 3, 1, enforce=("json_schema",), pad="none")
        with pytest.raises(RequestRefused, match="every arm of the study is refused"):
            audit.run(asked, tmp_path / "run")


def test_what_is_adapted_without_preflight_is_told_too(tmp_path: Path) -> None:
    """The report says what was sent, and the next part meets no refusal."""
    refused = Situation(refuses=frozenset({"temperature"}))
    with Hostile(reply, situation=refused) as server:
        report = audit.run(study(server.url, tmp_path, 3, 1, **BARE), tmp_path / "run")
        met = server.counts.refused
        audit.run(study(server.url, tmp_path, 3, 2, **BARE), tmp_path / "run")
        assert server.counts.refused == met
    assert [one.parameter for one in report.summary.endpoints[0].adaptations] == ["temperature"]


def test_a_folded_system_message_loses_nothing_that_was_in_flight(tmp_path: Path) -> None:
    """Sixteen requests meet the refusal of the system role at once, without preflight: all are answered."""
    wrapper = tmp_path / "polite.toml"
    wrapper.write_text(
        'name = "polite"\nversion = 1\nset = "mine"\nsummary = "x"\nsource = "mine"\nsystem = "Be polite."\n'
        "user = '''\n{{content}}\nwrite only the final answer.\n'''\n[contract]\nkind = \"text\"\n"
    )
    with Hostile(reply, situation=Situation(refuses=frozenset({"system"}), latency=0.02)) as server:
        options = {**BARE, "concurrency": 16}
        asked = study(server.url, tmp_path, 40, 1, wrappers=(str(wrapper),), **options)
        report = audit.run(asked, tmp_path / "run")
    assert (report.summary.counts.answered, report.summary.counts.missing) == (40, 0)


def test_an_odd_first_item_does_not_end_the_run(tmp_path: Path) -> None:
    """One at a time, and the first item cannot be answered: preflight's answers say that the endpoint is well."""
    first = str(CASES[0]["question"])

    def odd(body: Body) -> Answer:
        if told(body) and "Case 0:" in body["messages"][0]["content"]:
            return Answer(status=400, body=b'{"error": {"message": "This prompt exceeds the context"}}')
        return reply(body)

    assert "Case 0:" in first
    with Loopback(odd) as server:
        report = audit.run(study(server.url, tmp_path, 6, 1, concurrency=1, pad="none"), tmp_path / "run")
    assert (report.summary.counts.answered, report.summary.counts.missing) == (25, 5)


# Money and time ------------------------------------------------------------------------------------------------


def test_a_reply_without_usage_counts_at_its_most(tmp_path: Path) -> None:
    """Where a reply does not say what it took, the limit is kept by what it can have taken."""

    def silent(body: Body) -> Answer:
        made = completion(body, "B")
        del made["usage"]
        return Answer(body=json.dumps(made).encode())

    price = {"m": Price(1000.0, 1000.0)}
    with Loopback(silent) as server:
        with pytest.raises(BudgetError):
            audit.run(study(server.url, tmp_path, 40, 1, max_cost=5.0, prices=price, **BARE), tmp_path / "run")
        assert 0 < len(server.requests) < 40


def test_preflight_is_not_paid_past_the_limit(tmp_path: Path) -> None:
    """Its calls cost money too: a limit below them ends the run before any."""
    price = {"m": Price(0.0, 0.0, request=1.0)}
    with Loopback(reply) as server:
        with pytest.raises(BudgetError, match="preflight could cost up to"):
            audit.run(study(server.url, tmp_path, 4, 1, max_cost=2.0, prices=price), tmp_path / "run")
        assert server.requests == []


def test_the_time_is_kept_where_everybody_waits_for_a_rate(tmp_path: Path) -> None:
    """Under --rpm workers wait for minutes: when the time is up they go home, and the run stops."""
    import time

    started = time.monotonic()
    with Loopback(reply) as server:
        options = {**BARE, "rpm": 60, "concurrency": "auto"}
        with pytest.raises(BudgetError, match="the time is up"):
            audit.run(study(server.url, tmp_path, 40, 1, max_minutes=0.03, **options), tmp_path / "run")
    assert time.monotonic() - started < 10


# The gate ------------------------------------------------------------------------------------------------------


def judged(url: str, folder: Path, wrappers: tuple[str, ...], **changes: Any) -> Any:
    asked = study(url, folder, 20, 1, wrappers=wrappers, parsers=("strict",), **{**BARE, **changes})
    return gating.gate(asked, Rules(min_parseability=0.7), folder / "gate")[0]


def test_a_gate_judges_its_own_templates(tmp_path: Path) -> None:
    """A template that an earlier gate put into the same folder has no say."""
    with Loopback(reply) as server:
        assert judged(server.url, tmp_path, ("plain", "json")).judgement == "FAIL"
        assert judged(server.url, tmp_path, ("plain",)).judgement == "PASS"


def test_a_gate_whose_arm_is_refused_is_inconclusive(tmp_path: Path) -> None:
    """The arm was asked for and nothing is known of it; the finding says so."""
    with Hostile(reply, situation=Situation(holding=Holding("refuse"))) as server:
        changes: dict[str, Any] = {"enforce": ("none", "json_schema"), "preflight": True}
        verdict = judged(server.url, tmp_path, ("plain", "json"), **changes)
    assert verdict.judgement != "PASS"
    assert any("refused" in str(finding) for finding in verdict.findings)


def test_an_extended_run_still_equals_the_truth(tmp_path: Path) -> None:
    """Items, seeds and wrappers in three parts: every cell is the truth behind its prompts."""
    with Loopback(reply) as server:
        for items, seeds, wrappers in ((4, 1, ("plain",)), (8, 2, ("plain",)), (8, 2, ("plain", "json", "structured"))):
            report = audit.run(study(server.url, tmp_path, items, seeds, wrappers=wrappers, **BARE), tmp_path / "run")
    assert report.summary.counts.answered == 48
    assert wrong_cells(report, tmp_path / "run") == []
