"""The sentences behind the scores, made from the result: what they say, and that they say nothing of what is not
there."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from report_samples import realistic

from auditor.figures import (
    Caveat,
    ComparisonRow,
    GroupRow,
    ModelRow,
    RegressionRow,
    ReversalRow,
    SeedNoiseRow,
    SensitivityRow,
    Summary,
    TokenSpread,
)
from auditor.report import statistics
from auditor.report.html import render_html


def with_rows(**rows: object) -> Summary:
    return replace(realistic(), **rows)


def model(name: str, **changes: object) -> ModelRow:
    row = next(row for row in realistic().models if (row.model, row.parser) == ("smollm2-135m", "strict"))
    return replace(row, model=name, **changes)


def test_the_interval_says_whom_it_is_for() -> None:
    """Seven chosen tasks are no sample: the interval for these alone stands beside the other, held within 0 and 1."""
    one = with_rows(models=(model("smollm2-135m", fsi_star_ci_fixed=(-0.02, 0.31)),))
    assert statistics.over_tasks(one, "strict") == (
        "The interval of FSI* is for more tasks like these 3, as if they were drawn at random. Chosen tasks are not: "
        "for exactly these it is [0.000, 0.310]."
    )
    both = with_rows(
        models=tuple(model(name, fsi_star_ci_fixed=(0.1, 0.2)) for name in ("smollm2-135m", "gemma-3-270m"))
    )
    assert "it is smollm2-135m: [0.100, 0.200]; gemma-3-270m: [0.100, 0.200]." in statistics.over_tasks(both, "strict")
    alone = with_rows(models=(model("smollm2-135m", fsi_star_ci_fixed=(0.1, 0.2), tasks=1),))
    assert statistics.over_tasks(alone, "strict") == statistics.over_tasks(realistic(), "strict") == ""


def test_the_other_bootstrap_carries_its_coverage() -> None:
    """It is never shown without what is known of it."""
    told = Caveat("hierarchical", "it covers 0 %")
    row = model("smollm2-135m", fsi_ci_hierarchical=(0.2, 0.4))
    assert statistics.hierarchical(with_rows(models=(row,), warnings=(told,)), "strict") == (
        "Bootstrap over tasks and items, as the paper proposes for later: FSI [0.200, 0.400]. Not calibrated: it "
        "covers 0 %."
    )
    assert statistics.hierarchical(realistic(), "strict") == ""


def test_what_a_range_is_made_of() -> None:
    """Means over rows of 0.2 = 0.03 + 0.05 + 0.12 and 0.4 = -0.01 + 0.01 + 0.4; unknown parts say nothing."""
    first, second, *_ = realistic().sensitivity
    one = replace(first, fsi=0.2, content_part=0.03, format_truncated=0.05, format_noncompliant=0.12)
    two = replace(second, fsi=0.4, content_part=-0.01, format_truncated=0.01, format_noncompliant=0.4)
    one, two = replace(one, format_part=0.17), replace(two, format_part=0.41)
    told = (
        "Of a mean range of 0.300, +0.290 is right answers that could be read under the best wrapper alone, less those "
    )
    assert statistics.made_of([one, two]) == (
        f"{told}under the worst alone (+0.030 cut by the token limit, +0.260 not as asked for); +0.010 is other "
        f"answers."
    )
    imported = replace(two, format_truncated=None, format_noncompliant=None)
    assert statistics.made_of([one, imported]) == f"{told}under the worst alone; +0.010 is other answers."
    assert statistics.made_of([one, replace(two, content_part=None)]) == ""
    still = replace(one, fsi=0.0, content_part=0.0, format_truncated=0.0, format_noncompliant=0.0)
    assert statistics.made_of([still]) == statistics.made_of([]) == ""


@pytest.mark.parametrize(
    ("slope", "p", "said"),
    [
        (0.002, 0.84, "moves too is not shown (slope +0.002 with s.e. 0.100, p 0.840), nor that it does not."),
        (-0.3, 0.01, "moves with readability too (slope -0.300 with s.e. 0.100, p 0.010): not only parsing changes."),
    ],
)
def test_beta_stands_beside_what_parsing_alone_gives(slope: float, p: float, said: str) -> None:
    """β near the tautology slope is no news; accuracy among readable replies decides whether answers change."""
    row = RegressionRow(
        "strict", "none", "ok", 30, 0.6, tautology_slope=0.59, parsed_slope=slope, parsed_se=0.1, parsed_p=p
    )
    found = statistics.regression(row)
    assert found.startswith("β is 0.600, and lost replies alone would make it about 0.590 (the tautology slope).")
    assert found.endswith(said)


def test_a_regression_that_is_not_there_says_nothing_of_itself() -> None:
    """Without β no sentence; without the second regression its reason."""
    assert statistics.regression(RegressionRow("strict", "none", "too_few_cells: why", 4)) == ""
    row = RegressionRow("strict", "none", "ok", 30, 0.6, tautology_slope=0.59, parsed_status="exact_fit: no residual")
    assert statistics.regression(row).endswith("is not known: exact_fit: no residual.")


def separable(*sets: tuple[str, ...]) -> tuple[SensitivityRow, ...]:
    rows = [row for row in realistic().sensitivity if row.parser == "strict"]
    return tuple(replace(row, not_separable=found) for row, found in zip(rows, sets, strict=False))


def test_wins_that_may_be_luck() -> None:
    """Of three pairs two have a wrapper that alone is best."""
    summary = with_rows(sensitivity=separable(("a",), ("a", "b"), ("b",)))
    assert (
        statistics.wins(summary, "strict")
        == "In 2 of 3 pairs one wrapper alone is best at 95 %; elsewhere a win may be luck."
    )
    assert statistics.wins(realistic(), "strict") == ""


def test_what_another_seed_changes() -> None:
    """Accuracy where it is known, else readability, else nothing."""
    row = SeedNoiseRow("strict", "none", 35, 5, 0.021, 0.085, 2.96, 0.01, 0.05, None)
    assert statistics.seeds(with_rows(seed_noise=(row,)), "strict") == (
        "The same wrapper with another seed moves the accuracy of a cell by 0.021 on average and 0.085 at most (A/A, "
        "35 cells): between two runs of one seed, less than that is nothing. That is 3.0 times what items that are "
        "answered independently would give."
    )
    still = replace(row, accuracy_difference=0.0, accuracy_range=0.0)
    assert statistics.seeds(with_rows(seed_noise=(still,)), "strict") == (
        "Another seed does not move the accuracy of any cell."
    )
    blind = replace(row, accuracy_difference=None, accuracy_range=None)
    assert "share of readable replies of a cell by 0.010 on average and 0.050" in statistics.seeds(
        with_rows(seed_noise=(blind,)), "strict"
    )
    assert statistics.seeds(with_rows(seed_noise=(replace(row, cells=0),)), "strict") == ""


def test_what_a_vote_changes() -> None:
    """Disagreement and majority vote in one sentence; one seed says nothing."""
    assert statistics.votes(realistic(), "strict") == (
        "42.3 % of items get more than one answer over their seeds; if the seeds voted, a cell's accuracy would change "
        "by -0.008 on average and by 0.121 at most."
    )
    alone = tuple(replace(row, share=None) for row in realistic().seed_disagreement)
    assert statistics.votes(with_rows(seed_disagreement=alone), "strict") == ""
    unvoted = with_rows(majority_vote=())
    assert statistics.votes(unvoted, "strict") == "42.3 % of items get more than one answer over their seeds."


def test_how_unequal_prompts_are() -> None:
    """The median, the share that matches, and FSI over that share."""
    assert statistics.tokens(realistic()) == (
        "Prompts of one item differ by 4.1 % in tokens over wrappers (median); 61.2 % of items stay within 5 %: over "
        "these alone FSI is 0.268."
    )
    assert statistics.tokens(with_rows(token_spread=TokenSpread(None, None, 0, None))) == ""


def reversal(certified: bool, parser: str = "strict") -> ReversalRow:
    sure = (("json",), ("plain",)) if certified else ((), ())
    return ReversalRow("none", parser, "a", "b", 3, 600, ("json",), ("plain", "xml"), *sure, certified)


def test_reversals_that_are_sure_and_that_are_not() -> None:
    """Two change places as measured, one of them for sure."""
    told = statistics.reversals(with_rows(reversals=(reversal(True), reversal(False))), "strict")
    assert told == (
        "2 pairs of models change places with the wrapper as measured; in 1 of them that is more than chance (it holds "
        "at 95 % over all pairs and wrappers at once)."
    )
    assert "(none holds at" in statistics.reversals(with_rows(reversals=(reversal(False),)), "strict")
    other = with_rows(reversals=(reversal(True, "paper"),))
    assert statistics.reversals(other, "strict") == "No two models change places with the wrapper."
    assert statistics.reversals(realistic(), "strict") == ""


def comparison(wrapper: str, low: float, high: float, b: int | None = None) -> ComparisonRow:
    p = None if b is None else 0.25
    sides = ("m", (wrapper,), "m", ("plain",))
    return ComparisonRow("none", "strict", *sides, 3, 600, (low + high) / 2, (low, high), b, b, p)


MODELS = ComparisonRow("none", "strict", "m", ("plain", "json"), "n", ("plain", "json"), 3, 600, 0.1, (0.05, 0.15))


def test_comparisons_whose_interval_leaves_out_0() -> None:
    """Of three wrappers one is lower, one higher, one neither; two models are no wrapper."""
    rows = (comparison("a", -0.2, -0.1), comparison("b", 0.01, 0.1), comparison("c", -0.1, 0.1), MODELS)
    summary = with_rows(comparisons=rows)
    assert statistics.comparisons(summary, "strict") == (
        "Against plain, another wrapper lowers accuracy in 1 of 3 comparisons and raises it in 1; in the others 0 lies "
        "in the interval."
    )
    lines = statistics.compared(summary, "strict")
    assert [(line.first, line.second, line.sure) for line in lines] == [
        ("a", "plain", True),
        ("b", "plain", True),
        ("c", "plain", False),
        ("m", "n", True),
    ]
    assert statistics.comparisons(with_rows(comparisons=(MODELS,)), "strict") == ""
    equal = replace(rows[0], difference=0.0, difference_ci=None)
    assert statistics.comparisons(with_rows(comparisons=(equal,)), "strict") == (
        "Against plain, no other wrapper changes which items are right."
    )


def group(name: str, fsi: float, floor: float | None, items: int = 8) -> GroupRow:
    return GroupRow("m", "mmlu", "none", "strict", name, items, 5, 0.5, fsi, floor, 0.1, 0.02)


def test_groups_are_listed_by_how_far_they_exceed_their_noise() -> None:
    """The farthest first; so few items move by chance, and that is said."""
    rows = (group("law", 0.2, 0.2, 5), group("art", 0.5, 0.2), group("bio", 0.3, 0.1, 12))
    summary = with_rows(groups=rows)
    assert [row.group for row in statistics.groups(summary, "strict")] == ["art", "bio", "law"]
    assert statistics.grouped(summary, "strict") == (
        "3 groups of 5 to 12 items: so few move by 0.167 through chance alone, on average; 67 % of them have a range "
        "of more than twice their noise floor."
    )
    assert statistics.grouped(with_rows(groups=(group("one", 0.2, None),)), "strict") == ""


def test_the_report_shows_them_all() -> None:
    """Every section is there when its rows are, with its sentence; without rows there is no section."""
    rows = (comparison("json", -0.2, -0.1, 3), MODELS)
    summary = with_rows(comparisons=rows, reversals=(reversal(True),), groups=(group("law", 0.3, 0.1),))
    page = re.sub(r"<[^>]+>", "", render_html(summary, (), {}))
    for told in (
        statistics.comparisons(summary, "strict"),
        statistics.reversals(summary, "strict"),
        statistics.grouped(summary, "strict"),
        "mean over 2 wrappers",
        "p, McNemar",
        "surely json",
    ):
        assert told in page
    plain = render_html(realistic(), (), {})
    assert not any(f'<section id="{name}">' in plain for name in ("comparisons", "groups"))
    assert "Pairs that change places" not in plain
    several_seeds = render_html(with_rows(comparisons=(comparison("json", -0.2, -0.1),)), (), {})
    assert "p, McNemar" not in several_seeds
