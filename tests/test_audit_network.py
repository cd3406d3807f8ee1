"""Whole runs against servers that refuse, fail, cost money or do not do what they promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile import Faults, Holding, Hostile, Said, Situation
from hostile_truth import study, wrong_cells
from loopback import Answer, Body, Loopback, completion, draw
from samples import write_jsonl
from simulated import reply, said, told

from auditor import audit
from auditor.errors import BudgetError, EndpointDown, Interrupted, PreflightError, RequestRefused, UsageError
from auditor.records import EndpointOptions, Price
from auditor.report.value import Report
from auditor.store import Store

QUICK = {"concurrency": 16, "pad": "none"}


def checks(report: Report) -> dict[str, str]:
    """What preflight found that is not well."""
    return {check.check.partition("/v1")[2].lstrip(": "): check.message for check in report.summary.preflight
            if check.status != "ok"}  # fmt: skip


# Failures ------------------------------------------------------------------------------------------------------


def test_mixed_failures_change_no_number(tmp_path: Path) -> None:
    """1,500 generations at 15 % mixed failures end complete; every cell equals the truth, every attempt is counted."""
    with Hostile(reply, Faults(0.15, hang=0.6)) as server:
        report = audit.run(study(server.url, tmp_path, 150, 2, timeout=0.4), tmp_path / "run")
        seen = server.counts.posts
    counts = report.summary.counts
    assert sum(server.counts.faults.values()) > 150
    assert (counts.planned, counts.answered, counts.missing) == (1500, 1500, 0)
    assert wrong_cells(report, tmp_path / "run") == []
    assert counts.attempts == seen
    assert counts.retries > 150


def test_an_endpoint_that_goes_away_ends_the_run_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3 once nothing answers any more; with the server back, the same run completes, and every attempt counts."""
    from auditor import send

    quick = send.Retry(gone=0.5, first_wait=0.05)
    monkeypatch.setattr(audit, "Retry", lambda: quick)
    with Hostile(reply, situation=Situation(gone_after=120, latency=0.005)) as server:
        with pytest.raises(EndpointDown) as caught:
            audit.run(study(server.url, tmp_path, 40, 2, **QUICK), tmp_path / "run")
        first = server.counts.posts
    assert caught.value.exit_code == 3
    assert "of 400 generations are kept in" in caught.value.message
    with Hostile(reply) as server:
        report = audit.run(study(server.url, tmp_path, 40, 2, **QUICK), tmp_path / "run")
        second = server.counts.posts
    assert report.summary.counts.answered == 400
    assert wrong_cells(report, tmp_path / "run") == []
    assert second < 400 - 90
    with Store(tmp_path / "run", writable=False) as store:
        reached = store._db.execute("SELECT count(*) FROM attempt WHERE http_status IS NOT NULL").fetchone()[0]
        calls = store._db.execute("SELECT count(*) FROM call").fetchone()[0]
    assert reached + calls <= first + second <= report.summary.counts.attempts


@pytest.mark.parametrize(
    ("situation", "said"),
    [
        (Situation(key="sk-other-key-entirely"), "the key was refused"),
        (Situation(model="another-model"), "check the model's name"),
    ],
)
def test_a_bad_key_or_model_is_told_by_the_first_call(situation: Situation, said: str, tmp_path: Path) -> None:
    """A revoked key and an unknown model end the run with exit 2 after one call, and leave no folder behind."""
    with Hostile(reply, situation=situation) as server:
        with pytest.raises(RequestRefused) as caught:
            audit.run(study(server.url, tmp_path, 5, 1), tmp_path / "run")
        assert server.counts.posts == 1
    assert caught.value.exit_code == 2
    assert said in caught.value.hint
    assert not (tmp_path / "run").exists()


def test_a_prompt_that_does_not_fit_is_missing_and_the_run_goes_on(tmp_path: Path) -> None:
    """One item's prompt is longer than the model's context: it is missing with the endpoint's reason, the others are
    measured."""
    told_ = study("", tmp_path, 6, 1)
    rows = [json.loads(line) for line in Path(told_.tasks[0]).read_text().splitlines()]
    rows[3]["question"] = "word " * 500
    long = write_jsonl(tmp_path / "long.jsonl", rows)
    with Hostile(reply, situation=Situation(context=300, dialect="vllm")) as server:
        asked = study(server.url, tmp_path, 6, 1, tasks=(str(long),), pad="none")
        report = audit.run(asked, tmp_path / "run")
    assert (report.summary.counts.answered, report.summary.counts.missing) == (25, 5)
    assert any("context" in caveat.message for caveat in report.summary.warnings if caveat.code == "missing_why")


# Parameters ----------------------------------------------------------------------------------------------------


def test_refused_parameters_are_adapted_once_and_in_the_open(tmp_path: Path) -> None:
    """A reasoning model refuses max_tokens and temperature: one refusal each, then every request goes without, and the
    record and the report say what was requested and what was sent."""
    refused = Situation(refuses=frozenset({"max_tokens", "temperature"}))
    with Hostile(reply, situation=refused, keep=True) as server:
        report = audit.run(study(server.url, tmp_path, 10, 2, **QUICK), tmp_path / "run")
        assert server.counts.refused == 2
        assert report.summary.counts.attempts == server.counts.posts
        last = server.requests[-1]
    assert "max_tokens" not in last
    assert "temperature" not in last
    assert last["max_completion_tokens"] == 64
    (endpoint,) = report.summary.endpoints
    assert {one.parameter: (one.requested, one.sent) for one in endpoint.adaptations} == {
        "max_tokens": ("24", "as max_completion_tokens"),
        "temperature": ("0.7", "left out"),
    }
    assert report.summary.counts.missing == 0
    with Store(tmp_path / "run", writable=False) as store:
        (body,) = store._db.execute("SELECT DISTINCT body FROM sending").fetchone()
    assert json.loads(body) == {"model": "m", "max_completion_tokens": 64, "top_p": 1.0, "stream": False}


def test_what_was_adapted_is_known_to_a_resumed_run(tmp_path: Path) -> None:
    """Preflight's findings are kept: going on asks none of it again and meets no refusal."""
    refused = Situation(refuses=frozenset({"max_tokens"}))
    with Hostile(reply, situation=refused) as server:
        audit.run(study(server.url, tmp_path, 10, 1, **QUICK), tmp_path / "run")
        before, met = server.counts.posts, server.counts.refused
        report = audit.run(study(server.url, tmp_path, 10, 2, **QUICK), tmp_path / "run")
        assert server.counts.posts == before + 50
        assert server.counts.refused == met == 1
    assert report.summary.counts.answered == 100


def test_a_system_message_is_folded_where_the_template_has_no_place_for_it(tmp_path: Path) -> None:
    """The refusal of a system role folds it into the user's turn for every request, and says so."""
    wrapper = tmp_path / "polite.toml"
    wrapper.write_text(
        'name = "polite"\nversion = 1\nset = "mine"\nsummary = "x"\nsource = "mine"\nsystem = "Be polite."\n'
        "user = '''\n{{content}}\n{{pad}}\nwrite only the final answer.\n'''\n[contract]\nkind = \"text\"\n"
    )
    with Hostile(reply, situation=Situation(refuses=frozenset({"system"})), keep=True) as server:
        asked = study(server.url, tmp_path, 4, 1, wrappers=(str(wrapper),), **QUICK)
        report = audit.run(asked, tmp_path / "run")
        bodies = server.requests[-4:]
    assert all([turn["role"] for turn in body["messages"]] == ["user"] for body in bodies)
    assert all(body["messages"][0]["content"].startswith("Be polite.\n\nCase ") for body in bodies)
    assert [one.parameter for one in report.summary.endpoints[0].adaptations] == ["system"]
    assert report.summary.counts.answered == 4


def test_an_ignored_seed_is_told(tmp_path: Path) -> None:
    """Asked twice with one seed, the server gives two replies: several seeds are then no seeds."""
    with Hostile(reply, situation=Situation(ignores_seed=True)) as server:
        report = audit.run(study(server.url, tmp_path, 4, 2, **QUICK), tmp_path / "run")
    assert "the seed is ignored" in checks(report)["seed"]
    with Hostile(reply) as server:
        report = audit.run(study(server.url, tmp_path, 4, 2, **QUICK), tmp_path / "other")
    assert report.summary.endpoints[0].seed.startswith("honoured")
    assert "seed" not in checks(report)


def test_padding_that_a_template_trims_is_told(tmp_path: Path) -> None:
    """The server counts words, so white space costs nothing there: prompts of equal length are not of equal cost."""
    with Hostile(reply) as server:
        report = audit.run(study(server.url, tmp_path, 4, 1, pad="chars"), tmp_path / "run")
        assert "padding does not reach the model" in checks(report)["padding"]
        with pytest.raises(PreflightError):
            audit.run(study(server.url, tmp_path, 4, 1, pad="chars", strict_preflight=True), tmp_path / "strict")


# Enforcement ---------------------------------------------------------------------------------------------------


def held(body: Body) -> Said:
    """A model that answers in prose, whatever it is asked for."""
    return Said("I would say it is an apple.")


@pytest.mark.parametrize(
    ("treatment", "verdict", "label"),
    [
        ("enforce", "enforced", "verified"),
        ("ignore", "ignored", "ignored"),
        ("refuse", "refused", "refused"),
        ("fails_open", "fails_open", "claimed"),
    ],
)
def test_the_canary_tells_what_enforcement_is_worth(treatment: Any, verdict: str, label: str, tmp_path: Path) -> None:
    """Prompt and schema disagree; what the server does decides the verdict, and the label of the comparison."""
    holding = Holding(treatment, uncompilable='"answer"' if treatment == "fails_open" else None)
    with Hostile(held, situation=Situation(holding=holding), keep=True) as server:
        asked = study(server.url, tmp_path, 4, 1, enforce=("none", "json_schema"), **QUICK)
        report = audit.run(asked, tmp_path / "run")
        bodies = server.requests
    (canary,) = report.summary.endpoints[0].canaries
    assert (canary.enforce, canary.verdict) == ("json_schema", verdict)
    rows = [row for row in report.summary.enforcement if row.parser == "strict"]
    assert [row.label for row in rows] == [label]
    assert report.summary.counts.answered == 20 + (0 if label == "refused" else 4)
    assert ("refused_arm" in {caveat.code for caveat in report.summary.warnings}) == (label == "refused")
    if label == "verified":
        assert (rows[0].wrappers, rows[0].parseability_without, rows[0].parseability) == (("json",), 0.0, 1.0)
        prompts = {json.dumps(body["messages"]) for body in bodies if "JSON object" in body["messages"][-1]["content"]}
        assert len(prompts) == 4  # the same in both arms


def test_several_limits_are_arms(tmp_path: Path) -> None:
    """`--max-tokens 24,256`: every wrapper at both limits, and what the limit cut is told apart from other failures."""

    def cut(body: Body) -> Said:
        wrapper = told(body)
        if wrapper is None:
            return Said("Fine.")
        if wrapper == "json" and body["max_tokens"] == 24:
            return Said('{"answer": ', finish_reason="length")
        return Said("I would rather not say." if wrapper == "structured" else said(wrapper, "B"))

    with Hostile(cut) as server:
        report = audit.run(study(server.url, tmp_path, 10, 1, max_tokens=(24, 256), **QUICK), tmp_path / "run")
    rows = {row.arm: row for row in report.summary.sensitivity if row.parser == "strict"}
    assert set(rows) == {"none@24", "none@256"}
    assert (rows["none@24"].fsi, rows["none@256"].fsi) == (1.0, 1.0)
    short = rows["none@24"]
    assert short.worst_wrappers == ("json", "structured")
    assert (short.format_truncated, short.format_noncompliant, short.content_part) == (1.0, 0.0, 0.0)
    assert (rows["none@256"].format_truncated, rows["none@256"].format_noncompliant) == (0.0, 1.0)


# Money and time ------------------------------------------------------------------------------------------------


def priced(body: Body) -> Answer:
    """A reply that cost a cent."""
    text = said(told(body) or "plain", "B") if told(body) else f"Sentence {draw(body)}."
    answer = completion(body, text)
    answer["usage"]["cost"] = 0.01
    return Answer(body=json.dumps(answer).encode())


def test_max_cost_is_never_crossed_and_the_run_goes_on(tmp_path: Path) -> None:
    """The run stops before the limit with exit 4; a higher limit goes on from there; the cost is what was charged."""
    price = {"m": Price(0.0, 0.0, request=0.01)}
    with Loopback(priced) as server:
        with pytest.raises(BudgetError) as caught:
            audit.run(study(server.url, tmp_path, 20, 1, max_cost=0.505, prices=price, **QUICK), tmp_path / "run")
        assert caught.value.exit_code == 4
        assert len(server.requests) == 50
        report = audit.run(study(server.url, tmp_path, 20, 1, max_cost=5.0, prices=price, **QUICK), tmp_path / "run")
        assert len(server.requests) == 103  # preflight's three, each generation once
    assert report.summary.counts.cost_usd == pytest.approx(1.03)


def test_a_price_makes_the_cost_where_the_endpoint_names_none(tmp_path: Path) -> None:
    """Tokens times price, over every attempt that was answered."""
    price = {"m": Price(1000.0, 2000.0)}
    with Loopback(reply) as server:
        report = audit.run(study(server.url, tmp_path, 4, 1, prices=price, preflight=False), tmp_path / "run")
    counts = report.summary.counts
    assert counts.cost_usd == pytest.approx((counts.prompt_tokens * 1000 + counts.completion_tokens * 2000) / 1e6)


def test_max_cost_needs_a_price(tmp_path: Path) -> None:
    """A limit that cannot be kept is an error before anything is sent."""
    with Loopback(reply) as server:
        with pytest.raises(UsageError, match=r"the price of compat/m@.* is not known"):
            audit.run(study(server.url, tmp_path, 4, 1, max_cost=1.0), tmp_path / "run")
        assert server.requests == []


def test_max_minutes_ends_the_run(tmp_path: Path) -> None:
    """When the time is up nothing new is sent, what is in flight is kept, and the run goes on later."""
    with Hostile(reply, situation=Situation(latency=0.05)) as server:
        with pytest.raises(BudgetError, match="the time is up"):
            audit.run(study(server.url, tmp_path, 60, 2, max_minutes=0.005, **QUICK), tmp_path / "run")
        seen = server.counts.posts
    with Store(tmp_path / "run", writable=False) as store:
        counts = store.counts()
    assert counts["answered"] == seen - counts["preflight_calls"] > 0


def test_the_user_can_decline(tmp_path: Path) -> None:
    """What the run takes is told before it is spent, and a no sends nothing but preflight's calls."""
    heard: list[Any] = []

    def no(total: Any, paid: bool) -> bool:
        heard.append((total.generations, paid))
        return False

    with Loopback(reply) as server:
        with pytest.raises(Interrupted):
            audit.run(study(server.url, tmp_path, 4, 1, preflight=False), tmp_path / "run", confirm=no)
        assert server.requests == []
    assert heard == [(20, False)]


def test_reuse_takes_equal_replies_and_asks_the_rest(tmp_path: Path) -> None:
    """Replies to equal requests are taken from an earlier run: no call, no cost, no attempt, the same figures."""
    with Loopback(reply) as server:
        one = audit.run(study(server.url, tmp_path, 10, 1, preflight=False), tmp_path / "one")
        before = len(server.requests)
        options = {"preflight": False, "max_tokens": (64, 24)}
        two = audit.run(study(server.url, tmp_path, 10, 2, **options), tmp_path / "two", reuse=tmp_path / "one")
        assert len(server.requests) == before + 150
    counts = two.summary.counts
    assert (counts.answered, counts.reused, counts.attempts) == (200, 50, 150)
    assert one.summary.counts.attempts == 50


def test_a_plan_asks_nothing_and_counts_what_a_run_sends(tmp_path: Path) -> None:
    """`auditor plan` names the generations that `run` then sends, within its tokens."""
    price = {"m": Price(1.0, 2.0)}
    with Loopback(reply) as server:
        asked = study(server.url, tmp_path, 10, 2, prices=price, enforce=("none", "json_object"), preflight=False)
        total = audit.plan(asked, tmp_path / "run")
        assert server.requests == []
        report = audit.run(asked, tmp_path / "run")
        assert audit.plan(asked, tmp_path / "run").generations == 0
    assert total.generations == report.summary.counts.answered == 120
    assert total.cost_usd is not None
    assert 0 < total.cost_usd[0] < total.cost_usd[1]


# Several servers, gateways, keys -------------------------------------------------------------------------------


def test_several_servers_share_one_models_work(tmp_path: Path) -> None:
    """Two base URLs are asked together, least busy first; when one dies the other does the rest."""
    situation = Situation(latency=0.01)
    with Hostile(reply, situation=situation) as one, Hostile(reply, situation=situation) as two:
        models = (f"compat/m@{one.url}@{two.url}",)
        report = audit.run(study("x", tmp_path, 40, 1, models=models, **QUICK), tmp_path / "run")
        assert one.counts.posts + two.counts.posts == report.summary.counts.attempts
        assert min(one.counts.posts, two.counts.posts) > 70
    assert len(report.summary.endpoints) == 2
    with Hostile(reply, situation=Situation(latency=0.01, gone_after=30)) as one, Hostile(reply) as two:
        models = (f"compat/m@{one.url}@{two.url}",)
        report = audit.run(study("x", tmp_path, 40, 1, models=models, **QUICK), tmp_path / "other")
    assert report.summary.counts.missing == 0


def test_a_gateway_gets_its_headers_and_nobody_else_sees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Header, query and key header take their values from the environment; none of them is in any file."""
    secrets = {"GATE": "gateway-secret-0123", "VERSION": "2026-01-01-preview", "AZURE": "azure-secret-0123"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    options = EndpointOptions({"X-Gateway": "GATE"}, {"api-version": "VERSION"}, {"api-key": "AZURE"})

    def echoing(body: Body) -> Answer:
        return Answer(status=400, body=f'{{"error": {{"message": "no {" ".join(secrets.values())}"}}}}'.encode())

    with Loopback(lambda body: reply(body) if draw(body) < 0.8 else echoing(body)) as server:
        asked = study(server.url, tmp_path, 10, 1, endpoint=options, preflight=False)
        audit.run(asked, tmp_path / "run")
        headers = server.headers[0]
    assert headers["X-Gateway"] == secrets["GATE"]
    assert headers["api-key"] == secrets["AZURE"]
    assert "Authorization" not in headers
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert not any(value.encode() in file.read_bytes() for value in secrets.values()), file


def test_a_key_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key given in the environment is in no file of the run, no message, no report, and no process list, also where
    the server echoes it in refusals and replies."""
    key = "sk-" + "k3y" * 12
    processes: set[str] = set()

    def echo(body: Body) -> Answer:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                processes.add((folder / "cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
        if draw(body) < 0.3:
            return Answer(status=400, body=f'{{"error": {{"message": "Incorrect API key provided: {key}"}}}}'.encode())
        return Answer(f"You sent {key}.")

    with Loopback(echo) as server:
        asked = study(server.url, tmp_path, 3, 1)
        command = [sys.executable, "-m", "auditor.cli", "run", "--models", asked.models[0], "--tasks", asked.tasks[0]]
        command += ["--items", "3", "--seeds", "1", "--out", str(tmp_path / "run"), "--concurrency", "2"]
        done = subprocess.run(
            command, env={**os.environ, "AUDITOR_API_KEY": key}, capture_output=True, text=True, timeout=60
        )
        assert any(key in headers.get("Authorization", "") for headers in server.headers)
    assert "report:" in done.stdout
    assert key not in done.stdout + done.stderr
    assert not any(key in line for line in processes)
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            assert key.encode() not in file.read_bytes(), file


def openrouter(providers: Callable[[Body], str]) -> Callable[[Body], Answer]:
    """A router's replies."""

    def answer(body: Body) -> Answer:
        made = completion(body, reply(body).text)
        made["provider"] = providers(body)
        made["usage"]["cost"] = 0.001
        return Answer(body=json.dumps(made).encode())

    return answer


def test_openrouter_requests_pin_their_routing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters are required, fallbacks off, the upstream of every reply recorded, the project named."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-0123456789")
    with Loopback(openrouter(lambda _: "Acme")) as server:
        models = (f"openrouter/maker/m@{server.url}",)
        report = audit.run(study("x", tmp_path, 3, 1, models=models, **QUICK), tmp_path / "run")
        body, headers = server.requests[-1], server.headers[-1]
    assert body["provider"] == {"require_parameters": True, "allow_fallbacks": False}
    assert headers["X-OpenRouter-Title"] == "auditor"
    assert report.summary.endpoints[0].upstreams == {"Acme": 15}
    assert report.summary.counts.cost_usd == pytest.approx(0.018)


def test_a_vllm_server_is_asked_in_its_own_words(tmp_path: Path) -> None:
    """Sampling defaults of the model's own configuration are overridden, padding is equal by its tokenizer, the build
    is recorded."""
    situation = Situation(dialect="vllm", model="m", context=4000)
    with Hostile(reply, situation=situation, keep=True) as server:
        asked = study(server.url, tmp_path, 3, 1, models=(f"vllm/m@{server.url}",), max_tokens="auto")
        report = audit.run(asked, tmp_path / "run")
        body = server.requests[-1]
    assert (body["top_k"], body["min_p"], body["repetition_penalty"]) == (-1, 0.0, 1.0)
    assert (report.summary.endpoints[0].build or "").startswith("vLLM ")
    assert report.summary.counts.cost_usd == 0.0
    assert report.summary.counts.answered == 15
    rooms = [check for check in report.summary.preflight if "room" in check.check]
    assert [check.status for check in rooms] == ["ok"]


def test_a_context_that_is_too_short_is_told_before_spending(tmp_path: Path) -> None:
    """vLLM cuts a reply that exceeds its context without a word: preflight says so."""
    situation = Situation(dialect="vllm", model="m", context=300)
    with Hostile(reply, situation=situation) as server:
        models = (f"vllm/m@{server.url}",)
        with pytest.raises(PreflightError, match="exceed its context of 300"):
            audit.run(
                study(server.url, tmp_path, 3, 1, models=models, max_tokens=290, strict_preflight=True, pad="none"),
                tmp_path / "run",
            )


def test_a_model_that_a_vllm_server_does_not_serve_is_told_with_those_it_does(tmp_path: Path) -> None:
    """Before any completion is asked for."""
    with Hostile(reply, situation=Situation(dialect="vllm", model="other")) as server:
        with pytest.raises(RequestRefused) as caught:
            audit.run(study(server.url, tmp_path, 3, 1, models=(f"vllm/m@{server.url}",)), tmp_path / "run")
        assert server.counts.posts == 0
    assert "'m'" in caught.value.message
    assert "other" in caught.value.hint
