"""The gate: rules on a template, verdicts that hold, and what is said before anything is spent."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from loopback import Answer, Loopback
from samples import tallies, write_jsonl
from simulated import CASES, reply

from auditor import gating
from auditor.errors import UsageError
from auditor.measure import Cell, Measured, measure
from auditor.records import CellKey, CellTotal
from auditor.report import judgement
from auditor.study import Study
from auditor.verdict import Finding, Measure, Rules, Verdict


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "cases.jsonl", CASES)


def study(url: str, cases: Path, **changes: object) -> Study:
    told = {
        "models": (f"compat/m@{url}",),
        "tasks": (str(cases),),
        "wrappers": ("json",),
        "parsers": ("strict",),
        "items": 50,
        "seeds": 1,
        "pad": "none",
        "preflight": False,
    }
    return Study(**{**told, **changes})  # type: ignore[arg-type]


def test_a_good_template_passes_and_a_strict_rule_fails_it(cases: Path, tmp_path: Path) -> None:
    """Half of the json replies are unreadable: 0.3 passes, 0.9 fails; the second verdict asks nothing."""
    with Loopback(reply) as server:
        verdict, report = gating.gate(study(server.url, cases), Rules(min_parseability=0.3), tmp_path / "g")
        asked = len(server.requests)
        other, _ = gating.gate(study(server.url, cases), Rules(min_parseability=0.9), tmp_path / "g")
        assert len(server.requests) == asked == 50
    cell = report.summary.cells[0]
    assert (verdict.judgement, verdict.exit_code, verdict.findings[0].measure.value) == ("PASS", 0, cell.parseability)
    assert (other.judgement, other.exit_code) == ("FAIL", 1)


FILTERS = """
filter_list:
  - name: value
    filter: [{function: regex, regex_pattern: '"answer": ?"(.)"'}]
"""


def test_the_parser_may_be_the_users_own(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of steps, one filter of lm-eval and a function judge as ours do; a file of two filters is refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate_parser.py").write_text("def last(text): return text[-3] if text.endswith('}') else None\n")
    (tmp_path / "own.toml").write_text('name = "exact"\nsteps = ["classify_reply", "exact_contract", "exact_token"]\n')
    (tmp_path / "own.yaml").write_text(FILTERS)
    (tmp_path / "two.yaml").write_text(FILTERS + FILTERS.split("filter_list:\n")[1].replace("value", "other"))
    with Loopback(lambda _: Answer('{"answer": "B"}')) as server:
        for parser in ("own.toml", "own.yaml", "python:gate_parser:last"):
            told = study(server.url, cases, parsers=(parser,))
            verdict, _ = gating.gate(told, Rules(min_parseability=0.9), tmp_path / "g")
            assert (verdict.judgement, verdict.findings[0].measure.value) == ("PASS", 1.0)
        asked = len(server.requests)
        with pytest.raises(UsageError, match=r"two\.yaml holds value, other"):
            gating.gate(study(server.url, cases, parsers=("two.yaml",)), Rules(min_parseability=0.9), tmp_path / "h")
        assert len(server.requests) == asked == 50


def test_a_population_claim_needs_more_cases(cases: Path, tmp_path: Path) -> None:
    """All 50 replies parse: 0.94 is proven, 0.95 is not, though every case passed."""
    with Loopback(lambda _: Answer('{"answer": "B"}')) as server:
        for limit, expected in ((0.94, "PASS"), (0.95, "INCONCLUSIVE")):
            rules = Rules(min_parseability=limit, claim="population")
            verdict, _ = gating.gate(study(server.url, cases), rules, tmp_path / "g")
            assert verdict.judgement == expected


def test_the_tightest_thresholds_are_said_before_spending(cases: Path, tmp_path: Path) -> None:
    """0.05 ** (1 / 50) = 0.942: no design of 50 cases proves more."""
    said: list[str] = []
    with Loopback(reply) as server:

        def say(line: str) -> None:
            said.append(line)
            assert not server.requests or "planned" not in said[0]

        rules = Rules(min_parseability=0.5, claim="population")
        gating.gate(study(server.url, cases), rules, tmp_path / "g", say=say)
    assert said[0].startswith("50 cases, all parsed: parseability >= 0.942 at best")


def test_max_fsi_needs_two_wrappers(cases: Path) -> None:
    """One wrapper has no range: exit 2, nothing asked."""
    with Loopback(reply) as server:
        with pytest.raises(UsageError, match="--max-fsi needs at least two wrappers") as caught:
            gating.gate(study(server.url, cases), Rules(max_fsi=0.1))
        assert (caught.value.exit_code, server.requests) == (2, [])


def test_fsi_over_two_templates(cases: Path, tmp_path: Path) -> None:
    """json breaks half of its replies and plain does not: the range fails a small limit."""
    with Loopback(reply) as server:
        told = study(server.url, cases, wrappers=("plain", "json"))
        verdict, report = gating.gate(told, Rules(max_fsi=0.1), tmp_path / "g")
    assert verdict.judgement == "FAIL"
    assert verdict.findings[0].measure.value == pytest.approx(report.summary.sensitivity[0].fsi)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (Rules(), "the gate has no rule"),
        (Rules(min_parseability=1.5), "--min-parseability 1.5: must be between 0 and 1"),
        (Rules(max_fsi=-0.1), "--max-fsi -0.1: must be between 0 and 1"),
    ],
)
def test_rules_that_cannot_be_are_refused(cases: Path, rules: Rules, said: str) -> None:
    """A wrong rule is one clear line before anything is asked."""
    with pytest.raises(UsageError, match=said):
        gating.gate(study("http://127.0.0.1:9/v1", cases), rules)


def test_accuracy_needs_answers(tmp_path: Path) -> None:
    """Cases without a gold answer gate parseability alone."""
    cases = write_jsonl(tmp_path / "c.jsonl", [{k: v for k, v in case.items() if k != "answer"} for case in CASES])
    with pytest.raises(UsageError, match="answer"):
        gating.gate(study("http://127.0.0.1:9/v1", cases), Rules(min_accuracy=0.5))


def cell(wrapper: str, correct: list[float], seeds: int = 1, id_: int = 1, passage: int = 1) -> Cell:
    """Every `passage` items share one."""
    rates, ids = np.array(correct), np.arange(len(correct))
    n = len(rates) * seeds
    return Cell(
        id_, CellKey("m", "t", wrapper, "none"), n, 0, n, float(rates.sum() * seeds), ids, np.ones(len(rates)), rates,
        ids - ids % passage,
    )  # fmt: skip


def measured(*cells: Cell) -> Measured:
    return Measured("strict", cells)


def test_bounds_are_over_items_with_seeds_averaged_first() -> None:
    """Five seeds of ten items are ten units: the bound of 10 of 10 is 0.05 ** (1 / 10), not of 50 of 50."""
    found = {m.name: m for m in gating.measures(measured(cell("a", [1.0] * 10, seeds=5)))}
    assert found["accuracy"].low == pytest.approx(0.05 ** (1 / 10))
    assert (found["accuracy"].n, found["accuracy"].items) == (50, 10)


def test_bounds_are_over_passages_where_items_share_them() -> None:
    """Twenty items in passages of five prove what four items prove: 0.05 ** (1 / 4)."""
    found = {m.name: m for m in gating.measures(measured(cell("a", [1.0] * 20, passage=5)))}
    assert found["accuracy"].low == pytest.approx(0.05 ** (1 / 4))
    assert (found["accuracy"].n, found["accuracy"].items) == (20, 20)


def test_single_seeds_stand_beside_the_value() -> None:
    """Seed 0 got 4 of 4, seed 1 got 2 of 4."""
    split = [(1, i, 1, 1, right) for i in (3, 4) for right in (1, 0)]
    rows, keys = tallies((1, 1, 2, 1, 1), (1, 2, 2, 1, 1), *split), {1: CellKey("m", "t", "a", "none")}
    totals = {1: CellTotal(1, 8, 0, 4, None, None, None, 0)}
    found = {m.name: m for m in gating.measures(measure("strict", keys, totals, rows, {}))}
    assert found["accuracy"].seeds == (0.5, 1.0)
    assert found["parseability"].seeds == (1.0, 1.0)


def test_fsi_bounds_count_missing_both_ways() -> None:
    """Worst and best case of a range: each wrapper's missing ones failed or succeeded."""
    one, two = cell("a", [1, 1, 1, 0]), cell("b", [1, 0, 0, 0], id_=2)
    fsi = gating.measures(measured(one, dataclasses.replace(two, missing=1)))[-1]
    assert (fsi.value, fsi.missing) == (0.5, 1)
    assert (fsi.worst, fsi.best) == pytest.approx((0.75 - 2 / 5, 0.75 - 1 / 5))


VERDICT = Verdict(
    "FAIL",
    "suite",
    "strict",
    (
        Finding("parseability >= 0.9", 0.9, Measure("parseability", "m|x", "w<1>", 0.5, 10, 10, 0), "FAIL", "half"),
        Finding("accuracy >= 0.1", 0.1, Measure("accuracy", "m|x", "w<1>", None, 0, 0, 10), "INCONCLUSIVE", "lost"),
    ),
)


def test_one_verdict_feeds_every_view() -> None:
    """Text, JSON, JUnit and markdown say the same; an open rule is an error there, not a failure."""
    assert judgement.as_text(VERDICT).splitlines()[-1] == "FAIL (claim suite, read by strict)"
    told = json.loads(judgement.as_json(VERDICT))
    assert (told["judgement"], told["exit_code"], told["findings"][0]["measure"]["value"]) == ("FAIL", 1, 0.5)
    suite = ET.fromstring(judgement.as_junit(VERDICT)).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    markdown = judgement.as_markdown(VERDICT)
    assert "### auditor gate: FAIL" in markdown
    assert "m\\|x" in markdown
    assert "w<1>" not in markdown
