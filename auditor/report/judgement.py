"""A verdict as text, JSON, JUnit and markdown: four views of the same value."""

from __future__ import annotations

import msgspec

from auditor.report.junit import CaseStatus, JUnitCase, junit_xml
from auditor.report.markdown import escape
from auditor.verdict import Finding, Verdict

_STATUS: dict[str, CaseStatus] = {"PASS": "passed", "FAIL": "failed", "INCONCLUSIVE": "error"}


def as_text(verdict: Verdict) -> str:
    """One line per rule, then the verdict."""
    lines = [
        f"{finding.judgement:<12} {_subject(finding)}: {finding.rule}: {finding.message}"
        for finding in verdict.findings
    ]
    return "\n".join([*lines, f"{verdict.judgement} (claim {verdict.claim}, read by {verdict.parser})"]) + "\n"


def as_json(verdict: Verdict) -> bytes:
    """The whole value, with the exit code."""
    told = {**msgspec.to_builtins(verdict), "exit_code": verdict.exit_code}
    return msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"


def as_junit(verdict: Verdict) -> str:
    """One test case per rule; an inconclusive one is an error, not a failure."""
    cases = [
        JUnitCase(f"{_subject(finding)}: {finding.rule}", _STATUS[finding.judgement], finding.message)
        for finding in verdict.findings
    ]
    return junit_xml("auditor gate", cases)


def as_markdown(verdict: Verdict) -> str:
    """A table for a CI step summary."""
    rows = [
        f"| {finding.judgement} | {escape(_subject(finding))} | {escape(finding.rule)} | {escape(finding.message)} |"
        for finding in verdict.findings
    ]
    head = [
        f"### auditor gate: {verdict.judgement}",
        "",
        "| verdict | template | rule | measured |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, "", f"Claim: {verdict.claim}; read by `{escape(verdict.parser)}`.", ""]) + "\n"


def _subject(finding: Finding) -> str:
    return f"{finding.measure.model}, {finding.measure.wrapper}"
