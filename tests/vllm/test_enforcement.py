"""The same small study with its enforcement arms on a real vLLM and a real llama.cpp, with the same SmolLM2."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import audit
from auditor.report.value import Report
from auditor.study import EMBEDDED, Study

ARMS = ("none", "json_object", "json_schema", "grammar")
SERVERS = ("vllm", "llama.cpp")


@pytest.fixture(scope="module")
def reports(vllm_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    models = {"vllm": f"vllm/smollm2-135m-instruct@{vllm_url}", "llama.cpp": EMBEDDED}
    folder = tmp_path_factory.mktemp("runs")
    return {name: audit.run(_study(model), folder / name) for name, model in models.items()}


def _study(model: str) -> Study:
    return Study(
        models=(model,),
        tasks=("categories", "arithmetic"),
        items=4,
        seeds=1,
        enforce=ARMS,
        max_tokens=160,
        concurrency=8,
    )


@pytest.mark.parametrize("server", SERVERS)
def test_everything_is_answered(reports: dict[str, Report], server: str) -> None:
    """Five wrappers without enforcement and under grammar, one under each kind of JSON, two tasks of four items."""
    counts = reports[server].summary.counts
    assert (counts.planned, counts.answered, counts.missing) == (96, 96, 0)
    assert counts.attempts == 96 + counts.preflight_calls + counts.retries


@pytest.mark.parametrize("server", SERVERS)
def test_the_canary_finds_enforcement(reports: dict[str, Report], server: str) -> None:
    """Both servers hold to JSON, to a schema and to a grammar that the prompt disagrees with."""
    (endpoint,) = reports[server].summary.endpoints
    assert {canary.enforce: canary.verdict for canary in endpoint.canaries} == dict.fromkeys(ARMS[1:], "enforced")
    assert endpoint.build is not None
    assert endpoint.adaptations == ()


@pytest.mark.parametrize("server", SERVERS)
def test_what_is_enforced_is_readable(reports: dict[str, Report], server: str) -> None:
    """Under a schema, and under a grammar without free text, strict reads every reply that the limit did not cut."""
    for cell in reports[server].summary.cells:
        if cell.parser == "strict" and cell.arm in ("json_schema", "grammar"):
            assert cell.parsed is not None
            assert cell.truncated is not None
            assert cell.parsed >= cell.n - cell.truncated


def test_side_by_side(reports: dict[str, Report], capsys: pytest.CaptureFixture[str]) -> None:
    """Both servers give a comparison for every arm; it is printed for whoever reads along."""
    lines = ["", f"{'server':<10} {'arm':<12} {'readable':>16} {'accuracy':>16} {'PSI':>16} {'FSI':>16}"]
    for server, report in reports.items():
        rows = [row for row in report.summary.enforcement if row.parser == "strict"]
        assert {(row.arm, row.label) for row in rows} == {(arm, "verified") for arm in ARMS[1:]}
        for row in rows:
            pairs = (
                (row.parseability_without, row.parseability),
                (row.accuracy_without, row.accuracy),
                (row.psi_without, row.psi),
                (row.fsi_without, row.fsi),
            )
            told = [" -> ".join("-" if rate is None else f"{rate:.2f}" for rate in pair) for pair in pairs]
            lines.append(f"{server:<10} {row.arm:<12} {told[0]:>16} {told[1]:>16} {told[2]:>16} {told[3]:>16}")
    with capsys.disabled():
        print("\n".join(lines))


def test_the_runs_can_be_opened_again(reports: dict[str, Report]) -> None:
    """A report is there for each server."""
    assert all(Path(report.path / "report.html").stat().st_size > 10_000 for report in reports.values())
