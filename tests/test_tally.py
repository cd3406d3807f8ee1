"""How extractors compare: every number worked out by hand on small tables of outcomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.records import Outcome
from auditor.stats.intervals import wilson
from auditor.tally import Audit, Comparison, Said, Share, Tally, is_known

A, B = Outcome("parsed", "A"), Outcome("parsed", "B")
NONE = Outcome("unparseable", reason="no_answer")
EXTRA = Outcome("unparseable", reason="extra_text")
BOTH = Outcome("ambiguous", candidates=("A", "B"))
MISSING = Outcome("missing")


def said(outcome: Outcome, gold: str | None = None) -> Said:
    """An outcome and whether it is correct."""
    return outcome, None if gold is None or outcome.outcome == "missing" else outcome.value == gold


def tally(*rows: tuple[dict[str, Outcome], Outcome | None], gold: str | None = "A") -> Audit:
    """Rows as ({parser: outcome}, label)."""
    found = Tally()
    for outcomes, label in rows:
        found.add(
            {name: said(one, gold) for name, one in outcomes.items()}, None if label is None else said(label, gold)
        )
    return found.audit()


def share(count: int, n: int) -> Share:
    """A count of n, its interval by the formula that has tests of its own."""
    return Share(count, n, count / n, wilson(count, n).interval)


def test_outcomes_of_a_parser() -> None:
    """Missing leaves every rate; correct is of the rows with gold; reasons come most frequent first."""
    audit = tally(*(({"mine": one}, None) for one in (A, A, B, BOTH, EXTRA, NONE, NONE, MISSING)))
    [mine] = audit.parsers
    assert (mine.rows, mine.missing, audit.rows, audit.labels) == (8, 1, 8, 0)
    assert (mine.parsed, mine.ambiguous, mine.unparseable) == (share(3, 7), share(1, 7), share(3, 7))
    assert mine.correct == share(2, 7)
    assert list(mine.reasons.items()) == [("no_answer", 2), ("extra_text", 1)]


def test_the_interval_is_wilsons() -> None:
    """5 of 10: 0.237 to 0.763, as every table has it."""
    [mine] = tally(*(({"mine": one}, None) for one in [A, NONE] * 5)).parsers
    assert mine.parsed.ci == pytest.approx((0.2366, 0.7634), abs=5e-5)


def test_a_rate_of_nothing_is_not_there() -> None:
    """Without gold nothing is correct or wrong; with only missing rows nothing is parsed or not."""
    [mine] = tally(({"mine": MISSING}, None), gold=None).parsers
    assert mine.parsed == mine.correct == Share(0, 0, None, None)


def test_two_parsers_agree_on_a_value_or_on_none() -> None:
    """Same value, both none (ambiguous is none); a row that one of them lacks does not count."""
    rows = [(A, A), (A, B), (NONE, BOTH), (A, NONE), (MISSING, MISSING)]
    audit = tally(*(({"one": one, "two": two}, None) for one, two in rows))
    assert [(each.one, each.other, each.same) for each in audit.agreement] == [("one", "two", share(2, 4))]


ERRORS = [(A, A), (B, A), (B, NONE), (A, BOTH), (NONE, A), (BOTH, A), (NONE, BOTH), (B, B), (MISSING, MISSING)]
"""(parser, reference): same, another value, invented, invented, lost, lost, same, same, left out."""


def check(found: Comparison) -> None:
    """What ERRORS come to where A is right."""
    assert found.n == 8
    assert found.same == share(3, 8)
    assert (found.false_positive, found.invented, found.other_value) == (share(3, 8), share(2, 8), share(1, 8))
    assert found.false_negative == share(2, 8)
    # A for `ambiguous` is credit that the reference does not give; B, none and ambiguous for A is credit withheld.
    assert (found.credit_given, found.credit_withheld) == (share(1, 8), share(3, 8))


def test_errors_against_normalized() -> None:
    """False positives, false negatives and credit, of the rows that both read; normalized itself is no case."""
    [found] = tally(*(({"mine": mine, "normalized": right}, None) for mine, right in ERRORS)).comparisons
    assert (found.parser, found.reference) == ("mine", "normalized")
    check(found)


def test_errors_against_labels() -> None:
    """Labels count the same way, of the labelled rows only, and normalized is then a case like others."""
    unlabelled = [({"mine": B, "normalized": A}, None)] * 5
    audit = tally(*unlabelled, *(({"mine": mine, "normalized": mine}, label) for mine, label in ERRORS))
    found = [each for each in audit.comparisons if each.reference == "label"]
    assert [each.parser for each in found] == ["mine", "normalized"]
    assert audit.labels == 8
    check(found[0])
    check(found[1])


def test_without_gold_there_is_no_credit() -> None:
    """Value errors stand without gold; credit has no rows."""
    [found] = tally(({"mine": A, "normalized": B}, None), gold=None).comparisons
    assert (found.false_positive.count, found.credit_given) == (1, Share(0, 0, None, None))


def test_what_was_scored_elsewhere_has_no_value_to_compare() -> None:
    """A row with `parsed` and no text counts as an outcome, and in no comparison with a label."""
    rows = (Outcome("parsed"), Outcome("unparseable", reason="given"))
    audit = tally(*(({"given": one}, A) for one in rows))
    assert (audit.parsers[0].parsed, audit.labels, audit.comparisons) == (share(1, 2), 0, ())


def needing(value: str, *names: str) -> Outcome:
    return Outcome("parsed", value, needed=names)


GAINS = [
    *(A, needing("A", "quotes"), needing("B", "quotes"), needing("A", "quotes", "case")),
    *(needing("A", "case", "x", "y"), Outcome("ambiguous", needed=("quotes",)), NONE),
]


def test_the_gain_of_a_tolerance() -> None:
    """Needed by replies that gave a value; needed alone, it is what they would be lost without."""
    found = tally(*(({"normalized": one}, None) for one in GAINS)).tolerances
    assert [(each.name, each.needed, each.only) for each in found] == [
        ("quotes", 3, 2), ("case", 2, 0), ("x", 1, 0), ("y", 1, 0),
    ]  # fmt: skip
    assert found[0].only_correct == share(1, 2)
    assert found[1].only_correct == Share(0, 0, None, None)


def test_the_ladder_climbs_from_strict_to_normalized() -> None:
    """Each rung tolerates one more; the last is normalized itself."""
    audit = tally(*(({"strict": A if one is A else EXTRA, "normalized": one}, None) for one in GAINS))
    assert [(rung.name, rung.parsed.count, rung.correct.count) for rung in audit.ladder] == [
        ("strict", 1, 1),
        ("normalized, no tolerance", 1, 1),
        ("normalized, at most 1 tolerance", 3, 2),
        ("normalized, at most 2 tolerances", 4, 3),
        ("normalized", 5, 4),
    ]
    assert {rung.parsed.n for rung in audit.ladder} == {rung.correct.n for rung in audit.ladder} == {7}


def test_tolerances_are_shown_of_normalized_only() -> None:
    """Another parser's `needed` says nothing about normalized."""
    audit = tally(({"mine": needing("A", "quotes"), "strict": A}, None))
    assert (audit.tolerances, audit.ladder, audit.comparisons) == ((), (), ())


OUTCOMES = st.sampled_from([A, B, NONE, EXTRA, BOTH, MISSING, needing("A", "quotes")])


@given(st.lists(st.tuples(OUTCOMES, OUTCOMES, st.none() | st.sampled_from([A, B, NONE, BOTH]))))
def test_a_comparison_is_the_same_plus_its_errors(rows: list[tuple[Outcome, Outcome, Outcome | None]]) -> None:
    """same + false positives + false negatives = n, false positives = invented + another value, for any rows."""
    audit = tally(*(({"mine": one, "normalized": two}, label) for one, two, label in rows))
    for each in audit.comparisons:
        assert each.same.count + each.false_positive.count + each.false_negative.count == each.n
        assert each.invented.count + each.other_value.count == each.false_positive.count
        assert each.credit_given.count + each.credit_withheld.count <= each.credit_given.n
    both = [one.value == two.value for one, two, _ in rows if is_known(one) and is_known(two)]
    assert [each.same.count for each in audit.agreement] == ([sum(both)] if both else [])
