"""Replies written for the project, with their truth: what each parser says, and how often normalized is right."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "corpus"))

from corpus import CONTRACTS, PARSERS, SPACES, Case, cases, filled, kind, said
from parsing_samples import READERS

from auditor.records import AnswerType, Reason, Reply

CASES = list(cases())
NOT_OURS = {"given", "parser_error"}
"""Reasons that no reply can give by itself: scored elsewhere, and a function or a pattern that failed."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.where)
def test_every_parser_says_what_the_line_states(case: Case) -> None:
    """The line has every column, and each parser gives the value, the candidates or the reason that stand there."""
    now = filled(case)
    assert {name: case.told.get(name) for name in now} == now


def test_normalized_is_right_and_never_reads_what_is_not_there() -> None:
    """At least 98 % of the outcomes are the truth, and no value is given where it is none, ambiguous or another."""
    pairs = [(case, kind(case.told["normalized"])) for case in CASES]
    false = [case.where for case, got in pairs if got not in ("?", "!") and got != kind(case.truth)]
    right = sum(got == kind(case.truth) for case, got in pairs)
    assert not false
    assert right / len(pairs) >= 0.98, f"{right} of {len(pairs)}"


def test_strict_values_are_true() -> None:
    """What fulfils its contract to the letter is the answer."""
    assert all(kind(case.told["strict"]) in ("!", case.truth) for case in CASES)


def test_the_corpus_covers_what_there_is() -> None:
    """At least 400 cases, none twice; every reason, answer type, contract and space, with a value and without one."""
    keys = Counter(tuple(case.told[name] for name in ("contract", "space", "how", "reply")) for case in CASES)
    assert len(keys) == len(CASES) >= 400
    reasons = {case.told[name][1:] for case in CASES for name in PARSERS if case.told[name].startswith("!")}
    assert reasons == set(get_args(Reason)) - NOT_OURS
    types = {(case.space.type, case.truth in ("?", "!")) for case in CASES}
    assert types == {(type_, without) for type_ in get_args(AnswerType) for without in (False, True)}
    assert {(case.told["contract"], case.truth in ("?", "!")) for case in CASES} == {
        (name, without) for name in CONTRACTS for without in (False, True)
    }
    assert {case.told["space"] for case in CASES} == set(SPACES)


WRAPPINGS = ("```\n{}\n```", "  {}\n\n", "Sure, here you go.\n\n{}", "{}\n\nI hope that helps.")


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_decoration_never_changes_a_value_to_another(wrapping: str) -> None:
    """A fence, white space or a line of prose around a reply of the corpus costs normalized the value at most."""
    normalized = READERS["normalized"]
    for case in CASES:
        value = kind(case.told["normalized"])
        if value in ("?", "!") or case.space.type == "text" or case.reply.text is None:
            continue
        reply = Reply(wrapping.replace("{}", case.reply.text), case.reply.finish_reason)
        assert normalized.read(reply, case.contract, case.space).value in (value, None), case.where


def test_a_cell_shows_an_outcome() -> None:
    """A value stands as it is, candidates after `?`, a reason after `!`, and `-` where the parser does not apply."""
    ten = next(case for case in CASES if case.told["space"] == "ten")
    assert said(None) == ten.told["paper"] == "-"
    assert [kind(cell) for cell in ("B", "?A / B", "!empty")] == ["B", "?", "!"]
