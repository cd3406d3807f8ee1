"""The Python API: four public names and their values."""

from __future__ import annotations

from pathlib import Path

import pytest
from loopback import Loopback
from samples import write_jsonl
from simulated import CASES, reply

import auditor


def test_run_load_and_gate(tmp_path: Path) -> None:
    """A study runs, is loaded again with the same summary, and is judged; each name can be used twice."""
    cases = str(write_jsonl(tmp_path / "cases.jsonl", CASES))
    with Loopback(reply) as server:
        study = auditor.Study(models=(f"compat/m@{server.url}",), tasks=(cases,), items=4, seeds=1)
        report = auditor.run(study, tmp_path / "run")
        assert isinstance(report, auditor.Report)
        assert auditor.load(tmp_path / "run").summary == report.summary
        told = auditor.Study(
            models=study.models,
            tasks=study.tasks,
            wrappers=("plain",),
            parsers=("strict",),
            items=4,
            seeds=1,
            pad="none",
        )
        for _ in range(2):
            verdict, _report = auditor.gate(told, auditor.Rules(min_parseability=0.5), tmp_path / "gate")
            assert isinstance(verdict, auditor.Verdict)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As in any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        auditor.nothing  # noqa: B018
