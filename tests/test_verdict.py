"""Rules to verdicts: what passes, what fails, and what stays open."""

from __future__ import annotations

import pytest

from auditor.verdict import Judgement, Measure, Rules, judge


def measure(name: str = "parseability", value: float | None = 0.95, **changes: object) -> Measure:
    told = {"n": 100, "items": 100, "missing": 0, "worst": value, "best": value, "low": 0.90, "high": 0.98, **changes}
    return Measure(name, "m", "w", value, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize(("limit", "expected"), [(0.95, "PASS"), (0.950001, "FAIL"), (0.5, "PASS"), (1.0, "FAIL")])
def test_a_suite_is_judged_as_it_is(limit: float, expected: Judgement) -> None:
    """All cases were run, so their rate decides, at the limit too."""
    assert judge(Rules(min_parseability=limit), [measure()], "strict").judgement == expected


@pytest.mark.parametrize(
    ("limit", "expected"), [(0.90, "PASS"), (0.91, "INCONCLUSIVE"), (0.98, "INCONCLUSIVE"), (0.99, "FAIL")]
)
def test_a_population_is_judged_by_bounds(limit: float, expected: Judgement) -> None:
    """A limit between the bounds is not decided by these cases."""
    rules = Rules(min_accuracy=limit, claim="population")
    assert judge(rules, [measure("accuracy")], "strict").judgement == expected


@pytest.mark.parametrize(("limit", "expected"), [(0.20, "PASS"), (0.15, "INCONCLUSIVE"), (0.05, "FAIL")])
def test_a_range_must_stay_below(limit: float, expected: Judgement) -> None:
    """FSI passes when its upper bound is within the limit and fails when its lower one is beyond."""
    rules = Rules(max_fsi=limit, claim="population")
    assert judge(rules, [measure("fsi", 0.12, low=0.06, high=0.20)], "strict").judgement == expected


def test_missing_generations_that_could_decide_leave_it_open() -> None:
    """One of 100 is missing: the limit between what it could have been is not decided, one outside is."""
    one = measure(value=0.95, n=100, missing=1, worst=95 / 101, best=96 / 101)
    assert judge(Rules(min_parseability=0.945), [one], "strict").judgement == "INCONCLUSIVE"
    assert judge(Rules(min_parseability=0.94), [one], "strict").judgement == "PASS"
    assert judge(Rules(min_parseability=0.96), [one], "strict").judgement == "FAIL"


def test_more_than_one_percent_missing_is_not_measured() -> None:
    """Even a rule that all of them would fulfil stays open."""
    lost = measure(value=1.0, n=98, missing=2, worst=0.98, best=1.0)
    verdict = judge(Rules(min_parseability=0.5), [lost], "strict")
    assert (verdict.judgement, verdict.exit_code) == ("INCONCLUSIVE", 3)
    assert "2 of 100 generations are missing" in verdict.findings[0].message


def test_an_unknown_value_is_inconclusive() -> None:
    """Null is neither pass nor fail."""
    assert judge(Rules(min_accuracy=0.5), [measure("accuracy", None)], "strict").judgement == "INCONCLUSIVE"


def test_one_failure_fails_all() -> None:
    """FAIL outranks INCONCLUSIVE, which outranks PASS."""
    good, bad, open_ = measure(), measure(value=0.2, worst=0.2, best=0.2), measure(value=None)
    rules = Rules(min_parseability=0.9)
    assert judge(rules, [good, open_, bad], "strict").exit_code == 1
    assert judge(rules, [good, open_], "strict").exit_code == 3
    assert judge(rules, [good], "strict").exit_code == 0


def test_a_rule_that_meets_no_measure_is_inconclusive() -> None:
    """Nothing measured is no pass."""
    assert judge(Rules(max_fsi=0.5), [measure()], "strict").judgement == "INCONCLUSIVE"


def test_seed_noise_is_shown() -> None:
    """The range over single seeds stands beside the value."""
    message = judge(Rules(min_parseability=0.9), [measure(seeds=(0.93, 0.97))], "strict").findings[0].message
    assert message == "parseability 0.950 on these 100 cases (single seeds: 0.930 to 0.970)"
