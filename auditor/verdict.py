"""Rules -> verdict. Pure: numbers in, one value out that feeds console, JSON, JUnit and markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from auditor.figures import MISSING_MARK, Interval

Claim = Literal["suite", "population"]
Judgement = Literal["PASS", "FAIL", "INCONCLUSIVE"]


class Rules(Struct, frozen=True):
    """What a template must hold; None is not asked."""

    min_parseability: float | None = None
    min_accuracy: float | None = None
    max_fsi: float | None = None
    claim: Claim = "suite"


class Measure(Struct, frozen=True):
    """One number to judge. `low` and `high` are one-sided 95 % bounds over items (population), `worst` and `best`
    what it would be if every missing generation had failed or succeeded, `seeds` its range over single seeds."""

    name: Literal["parseability", "accuracy", "fsi"]
    model: str
    wrapper: str
    value: float | None
    n: int
    items: int
    missing: int
    low: float | None = None
    high: float | None = None
    worst: float | None = None
    best: float | None = None
    seeds: Interval | None = None


class Finding(Struct, frozen=True):
    """One rule on one measure."""

    rule: str
    limit: float
    measure: Measure
    judgement: Judgement
    message: str


class Verdict(Struct, frozen=True):
    """FAIL if a rule failed, else INCONCLUSIVE if one is open, else PASS."""

    judgement: Judgement
    claim: Claim
    parser: str
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """0 PASS, 1 FAIL, 3 INCONCLUSIVE."""
        return {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}[self.judgement]


def judge(rules: Rules, measures: Sequence[Measure], parser: str) -> Verdict:
    """Hold every measure against its rule."""
    limits = {"parseability": rules.min_parseability, "accuracy": rules.min_accuracy, "fsi": rules.max_fsi}
    findings = []
    for measure in measures:
        limit = limits[measure.name]
        if limit is not None:
            findings.append(_finding(rules.claim, limit, measure))
    said = {finding.judgement for finding in findings}
    overall: Judgement = "FAIL" if "FAIL" in said else "INCONCLUSIVE" if "INCONCLUSIVE" in said or not said else "PASS"
    return Verdict(overall, rules.claim, parser, tuple(findings))


def _finding(claim: Claim, limit: float, measure: Measure) -> Finding:
    rule = f"{measure.name} {'<=' if measure.name == 'fsi' else '>='} {limit:g}"
    judgement, message = _judge(claim, limit, measure)
    return Finding(rule, limit, measure, judgement, message)


def _judge(claim: Claim, limit: float, measure: Measure) -> tuple[Judgement, str]:
    if measure.value is None:
        return "INCONCLUSIVE", f"{measure.name} is not known"
    if measure.missing > MISSING_MARK * (measure.n + measure.missing):
        return "INCONCLUSIVE", f"{measure.missing} of {measure.n + measure.missing} generations are missing"
    if claim == "suite":
        low, high = measure.worst, measure.best
        said = f"{measure.name} {measure.value:.3f} on these {measure.items} cases"
    else:
        low, high = measure.low, measure.high
        said = f"{measure.name} {measure.value:.3f}, with 95 % confidence {_bounds(measure)} on cases like these"
    if low is None or high is None:
        return "INCONCLUSIVE", f"{measure.name} has no bounds over {measure.items} cases"
    holds, fails = (high <= limit, low > limit) if measure.name == "fsi" else (low >= limit, high < limit)
    if holds or fails:
        return "PASS" if holds else "FAIL", said + _noise(measure)
    open_ = "missing generations could decide it" if claim == "suite" else "the bounds straddle the limit"
    return "INCONCLUSIVE", f"{said}: {open_}"


def _bounds(measure: Measure) -> str:
    return f">= {measure.low:.3f} and <= {measure.high:.3f}"


def _noise(measure: Measure) -> str:
    if measure.seeds is None or measure.seeds[0] == measure.seeds[1]:
        return ""
    return f" (single seeds: {measure.seeds[0]:.3f} to {measure.seeds[1]:.3f})"
