"""What preflight's calls say of a server, and what the user is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.probing import Question, checks, fulfils, unproved
from auditor.records import Adaptation, Canary, Constraint, Findings, Message, Part, Request

TEMPLATE = Request("m", "", "", "", "none", 0, "", "", (Message("user", ""),), 24, 0.7, 1.0)
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"], "additionalProperties": False}
LABELS = Constraint("grammar", grammar=(Part("text", ("answer: ",)), Part("one_of", ("A", "B"))))


def found(**changes: Any) -> Findings:
    return Findings(**{"model": "m", "server": "http://s/v1", "provider": "compat", **changes})


def told(findings: Findings, several_seeds: bool = True) -> dict[str, str]:
    """What is not well, by what it is about."""
    return {
        check.check.rpartition(" ")[2]: check.message
        for check in checks(findings, several_seeds)
        if check.status == "warning"
    }


@pytest.mark.parametrize(
    ("text", "held", "expected"),
    [
        ('{"a": "x"}', Constraint("json_schema", schema=SCHEMA), True),
        ('{"a": "y"}', Constraint("json_schema", schema=SCHEMA), False),
        ('{"a": "x"} and more', Constraint("json_schema", schema=SCHEMA), False),
        ("banana", Constraint("json_schema", schema=SCHEMA), False),
        ('{"anything": 1}', Constraint("json_object"), True),
        ("[1]", Constraint("json_object"), False),
        ("[" * 100_000, Constraint("json_object"), False),
        ("answer: B", LABELS, True),
        ("answer: C", LABELS, False),
        ("The answer: B", LABELS, False),
    ],
)
def test_a_canary_is_judged_by_the_whole_reply(text: str, held: Constraint, expected: bool) -> None:
    """A reply fulfils a constraint from its first character to its last, or not at all."""
    assert fulfils(text, held) is expected


def test_only_what_is_not_proved_is_asked_again() -> None:
    """A canary stands for the constraints it was asked with; another one, and an unclear one, is asked anew."""
    question = Question(TEMPLATE, {"grammar": (LABELS,)}, system=False, padded=False)
    assert unproved(found(), question).held == {"grammar": (LABELS,)}
    other = found(canaries=(Canary("grammar", "enforced", "giraffe", held="another"),))
    assert unproved(other, question).held == {"grammar": (LABELS,)}


def test_an_upstream_that_may_change_is_a_warning() -> None:
    """Where a router's provider could not be pinned, the user is told and shown how to name one."""
    assert "any upstream provider may answer" in told(found(provider="openrouter", upstream="any"))["upstream"]
    assert told(found(provider="openrouter", routing={"only": ["acme/fp8"]})) == {}


def test_an_ignored_seed_matters_where_there_are_several() -> None:
    """With one seed nothing depends on it."""
    ignored = found(seed="ignored", seed_said="asked twice with one seed, it gave two replies")
    assert "the seed is ignored" in told(ignored)["seed"]
    assert told(ignored, several_seeds=False) == {}


def test_an_adaptation_says_what_was_requested_what_is_sent_and_why() -> None:
    """In one sentence each, in the endpoint's words."""
    findings = found(
        adaptations=(
            Adaptation("max_tokens", "24", "as max_completion_tokens", "Unsupported parameter"),
            Adaptation("temperature", "0.7", "left out", "Only the default"),
        )
    )
    assert told(findings) == {
        "max_tokens": "m at http://s/v1 refused max_tokens = 24: it is sent as max_completion_tokens from now on "
        "(Unsupported parameter)",
        "temperature": "m at http://s/v1 refused temperature = 0.7: it is left out from now on (Only the default)",
    }


def test_a_refused_arm_is_said_to_be_left_out() -> None:
    """Enforcement that is not what it says is a warning; that it holds is none."""
    canaries = (Canary("json_schema", "enforced", "zebra"), Canary("grammar", "refused", "HTTP 400"))
    assert told(found(canaries=canaries)) == {
        "grammar": "m at http://s/v1: grammar is refused: HTTP 400; the arm is left out"
    }
