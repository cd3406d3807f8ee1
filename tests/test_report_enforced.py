import msgspec
import pytest
import report_samples as samples

from auditor.figures import Caveat, EnforcementRow, Summary
from auditor.report.card import Subject
from auditor.report.enforced import brief, by_parser, cause, contrasts, sentence

RISE = (
    "With grammar (verified by a canary), the share of replies that strict can read rose from 0.12 to 0.99 "
    "[+0.83, +0.91] and accuracy rose from 0.08 to 0.41 [+0.29, +0.37]; PSI fell from 0.40 to 0.01 and FSI fell from "
    "0.28 to 0.06."
)


@pytest.fixture(scope="module")
def summary() -> Summary:
    return samples.enforced()


def row(arm: str = "grammar", **changes: object) -> EnforcementRow:
    return samples.enforcement("smollm2-135m", arm, **changes)


def with_rows(summary: Summary, *rows: EnforcementRow) -> Summary:
    return msgspec.structs.replace(summary, enforcement=rows)


def test_the_sentence_quotes_the_row(summary: Summary) -> None:
    """Rates with the interval of their change, then the ranges, as the row has them."""
    assert sentence(summary, row()).startswith(RISE)


def test_readable_is_not_right(summary: Summary) -> None:
    """Where more can be read and a smaller share of that is right, the sentence says so: 0.41/0.99 and 0.08/0.12."""
    assert sentence(summary, row()).removeprefix(RISE) == (
        " Of the replies that can be read, 0.41 are right; without enforcement 0.67 were."
    )
    better = row(accuracy=0.9, accuracy_change_ci=(0.8, 0.84))
    assert "Of the replies" not in sentence(summary, better)


@pytest.mark.parametrize(
    ("accuracy", "ci", "told"),
    [
        (0.09, (-0.01, 0.03), "rose from 0.08 to 0.09 [-0.01, +0.03], which chance alone can give;"),
        (0.09, (-0.01, 0.03), "More replies can be read, but it is not clear that more are right."),
        (0.08, (-0.01, 0.01), "accuracy stayed at 0.08 [-0.01, +0.01];"),
        (0.08, (-0.01, 0.01), "More replies can be read, but it is not clear that more are right."),
        (0.05, (-0.05, -0.01), "More replies can be read, and fewer are right."),
    ],
)
def test_accuracy_that_does_not_follow(summary: Summary, accuracy: float, ci: tuple[float, float], told: str) -> None:
    """A rise in readable replies without one in accuracy is said, and what an interval does not bear is not claimed."""
    assert told in sentence(summary, row(accuracy=accuracy, accuracy_change_ci=ci))


def test_few_readable_replies_are_no_base(summary: Summary) -> None:
    """15 readable replies of 15,000 say nothing about the share of them that is right."""
    told = sentence(summary, row(parseability_without=0.001, accuracy_without=0.001))
    assert told.endswith("Without it too few replies could be read to compare how many of those are right.")


def test_nothing_is_learnt_where_readability_stays(summary: Summary) -> None:
    """Where no more can be read, there is no lesson about what it brings."""
    told = sentence(summary, row(parseability_without=0.985, parseability_change_ci=(-0.001, 0.011)))
    assert told.endswith("FSI fell from 0.28 to 0.06.")


def test_labels_change_the_sentence(summary: Summary) -> None:
    """Claimed is not proved, ignored makes every difference noise, refused leaves nothing to compare."""
    assert sentence(summary, row(label="claimed")).startswith("With grammar (claimed, not proved by a canary), ")
    assert sentence(summary, row(label="ignored")).startswith(
        "The endpoint accepted grammar and did not enforce it, so any difference between the arms is noise (the share "
    )
    nothing = dict.fromkeys(("parseability", "parseability_change_ci", "accuracy", "accuracy_change_ci"))
    assert sentence(summary, row(label="ignored", **nothing)).endswith("is noise.")
    assert sentence(summary, row(label="refused", **nothing)) == (
        "The endpoint refused grammar, so this arm has nothing to say about enforcement."
    )


def test_without_a_base_the_reason_is_given(summary: Summary) -> None:
    """Where the run has no arm without enforcement, the sentence gives the rates and the warning's words."""
    caveat = Caveat("no_base_arm", "this run has no arm none.", ("enforcement.parseability_without",))
    without = {name: None for name in EnforcementRow.__struct_fields__ if name.endswith(("_without", "_ci"))}
    alone = row(**without | {"n_without": 0})
    told = sentence(msgspec.structs.replace(summary, warnings=(caveat,)), alone)
    assert told == (
        "With grammar (verified by a canary), strict reads 0.99 of the replies; accuracy is 0.41. There is nothing to "
        "compare this with: this run has no arm none."
    )
    assert cause(alone, "accuracy_without") == cause(alone, "fsi_without") == "enforcement.parseability_without"
    assert cause(alone, "accuracy") == "enforcement.accuracy"


def test_fewer_wrappers_are_named(summary: Summary) -> None:
    """An arm that covers some of the model's wrappers says which, or how many."""
    assert "(verified by a canary) under json, the" in sentence(summary, row(wrappers=("json",), psi=None, fsi=None))
    assert "(verified by a canary) under 2 of 5 wrappers, the" in sentence(summary, row(wrappers=("json", "plain")))
    assert cause(row(wrappers=("json",)), "fsi_without") == "enforcement.psi"


def test_limits_do_not_clutter_the_sentence(summary: Summary) -> None:
    """With several limits the title names the limit, the sentence what is enforced."""
    (one,) = contrasts(with_rows(summary, row("json_schema@256")))
    assert one.subject == Subject("smollm2-135m", "json_schema@256")
    assert one.sentence.startswith("With json_schema (verified")


def test_rows_are_told_under_the_primary_parser(summary: Summary) -> None:
    """One sentence for each model and arm, tables for every parser."""
    assert [(one.subject.arm, one.row.parser) for one in contrasts(summary)] == [
        ("grammar", "strict"),
        ("json_schema", "strict"),
        ("grammar", "strict"),
    ]
    assert [(table.parser, len(table.rows)) for table in by_parser(summary)] == [(p, 3) for p in samples.PARSERS]


def test_one_sentence_sums_up(summary: Summary) -> None:
    """A headline has no model's name for one model, says what was ignored or refused, and is empty without arms."""
    assert brief(with_rows(summary)) == ""
    assert brief(with_rows(summary, row("grammar@24"), row("json_schema@24", label="refused"))) == (
        "Enforced while decoding: grammar, at most 24 tokens (verified) takes the share of readable replies from 0.12 "
        "to 0.99 and accuracy from 0.08 to 0.41; the endpoint refused json_schema, at most 24 tokens."
    )
    alone = row(n_without=0, parseability_without=None, accuracy_without=None)
    assert brief(with_rows(summary, alone)) == (
        "Enforced while decoding: grammar (verified) has no arm to be compared with."
    )


def test_many_arms_are_one_range(summary: Summary) -> None:
    """More than three arms are counted by label, and told as a range over those that may have held."""
    rows = (row("a"), row("b", parseability=0.5, accuracy=0.02), row("c", label="claimed"), row("d", label="ignored"))
    assert brief(with_rows(summary, *rows)) == (
        "Enforced while decoding in 4 arms (2 verified, 1 claimed, 1 ignored): the share of readable replies "
        "changes by +0.38 to +0.87 and accuracy by -0.06 to +0.33."
    )
