"""Measured cells to summary rows: the worked example, exact, and every null with its reason."""

from __future__ import annotations

import json

import pytest
from samples import MICRO, SHARED, tallies

from auditor import gaps
from auditor.analysis import Reading, summarize
from auditor.figures import Counts, RunInfo, SeedNoiseRow, Summary
from auditor.measure import GIVEN, measure, spreads
from auditor.records import Adaptation, Canary, CellKey, CellTotal, Findings

RUN = RunInfo("micro", "2026-01-01", "0", "", 0)
COUNTS = Counts(48, 48, 0, 0, 0, 0, 0)


def micro(parser: str = "strict", seeds: int = 1, cut: frozenset[int] = frozenset()) -> Summary:
    """The worked example, each generation repeated over seeds."""
    keys: dict[int, CellKey] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for (model, task), wrappers in MICRO.items():
        for wrapper, (parsed, correct) in wrappers.items():
            keys[len(keys) + 1] = CellKey(model, task, wrapper, "none")
            first = 4 if task == "t1" else 0
            rows += [(len(keys), first + i, seeds, int(parsed[i]), int(correct[i])) for i in range(4)]
    given = 4 * seeds if parser == GIVEN else 0
    totals = {id_: CellTotal(id_, 4 * seeds, 0, 4, None, None, 0, given) for id_ in keys}
    return summarize(RUN, COUNTS, [], [Reading(measure(parser, keys, totals, tallies(*rows, cut=cut), {}))], [])


EXPECTED = {
    ("m0", "t0"): (0.5, 0.75, 1.19999712),
    ("m0", "t1"): (0.5, 0.75, 0.999998),
    ("m1", "t0"): (0.25, 0.5, 0.74999775),
    ("m1", "t1"): (0.25, 0.5, 0.59999856),
}


def test_sensitivity_of_the_worked_example() -> None:
    """FSI, PSI and nFSI are the exact values; ties share the best wrapper."""
    rows = {(row.model, row.task): row for row in micro().sensitivity}
    for key, expected in EXPECTED.items():
        found = rows[key]
        assert (found.fsi, found.psi, found.nfsi) == pytest.approx(expected, abs=1e-9)
    assert rows["m0", "t0"].best_wrappers == ("xml",)
    assert rows["m1", "t1"].best_wrappers == ("json", "xml")
    assert rows["m0", "t0"].worst_wrappers == ("plain", "json")


def test_spreads_of_a_measured_run() -> None:
    """A run of replies has them too: m0 scores 1, 1 and 3 of 4 in t0, so the deviations are 1/12 and 1/18 rooted."""
    summary = micro()
    row = summary.spreads[0]
    assert [row.spread for row in summary.spreads] == [row.fsi for row in summary.sensitivity]
    assert (row.mean, row.sd_sample, row.sd_population) == pytest.approx((5 / 12, (1 / 12) ** 0.5, (1 / 18) ** 0.5))
    assert {row.task: row.by_wrapper["json"] for row in summary.firsts} == {"t0": ("m0", "m1"), "t1": ("m1",)}
    # xml: 0.75 - 5/12 in t0, 0.75 - 0.5 in t1
    assert (summary.gains[0].best_wrappers, summary.gains[0].gain) == (("xml",), pytest.approx((1 / 3 + 1 / 4) / 2))


def test_macro_means_and_the_papers_interval() -> None:
    """Equal tasks have an interval of no width; nFSI's lies between its two tasks."""
    rows = {row.model: row for row in micro().models}
    assert (rows["m0"].fsi, rows["m1"].fsi, rows["m0"].psi) == (0.5, 0.25, 0.75)
    assert rows["m0"].fsi_ci_paper == (0.5, 0.5)
    assert rows["m0"].nfsi_ci_paper == pytest.approx((0.999998, 1.19999712), abs=1e-9)


def test_wins_regression_and_correlation() -> None:
    """Shared wins, and the weighted regression with its slope to expect from parsing alone."""
    summary = micro()
    assert {row.wrapper: row.wins for row in summary.wins} == {"plain": 0.0, "json": 0.5, "xml": 3.5}
    fit = summary.regression[0]
    assert (fit.beta, fit.se, fit.df, fit.partial_r2) == pytest.approx((0.5, 0.1178511301977579, 6, 0.75), abs=1e-9)
    assert (fit.p, fit.pearson_r, fit.tautology_slope) == pytest.approx((0.0054239503, 0.3872983346, 5 / 9), abs=1e-9)


def test_the_shared_values_are_these() -> None:
    """The literals above are those of the shared file."""
    path = SHARED / "micro" / "expected.json"
    if not path.exists():
        pytest.skip("no shared folder beside the checkout")
    told = json.loads(path.read_text())
    assert {tuple(key.split("/")): value for key, value in told["nfsi"].items()} == {
        key: value[2] for key, value in EXPECTED.items()
    }
    assert told["wls"]["se"] == 0.1178511301977579


def test_one_seed_votes_like_itself() -> None:
    """With one seed the majority vote is the accuracy, and no group can disagree."""
    summary = micro()
    assert all(cell.majority_vote_accuracy == cell.accuracy for cell in summary.cells)
    assert (summary.majority_vote[0].mean_change, summary.majority_vote[0].largest_change) == (0.0, 0.0)
    assert (summary.seed_disagreement[0].share, summary.seed_disagreement[0].groups) == (None, 0)


def test_seeds_that_agree_disagree_in_no_group() -> None:
    """Two equal seeds: 48 groups, none with two predictions."""
    summary = micro(seeds=2)
    assert (summary.seed_disagreement[0].share, summary.seed_disagreement[0].groups) == (0.0, 48)


def test_votes_share_ties_and_count_unparseable_as_a_value() -> None:
    """One item, three seeds: right, unparsed, unparsed: the vote is unparsed, accuracy 1/3. A tie of right and wrong
    scores one half."""
    keys = {1: CellKey("m", "t", "a", "none"), 2: CellKey("m", "t", "b", "none")}
    totals = {1: CellTotal(1, 3, 0, 1, None, None, None, 0), 2: CellTotal(2, 2, 0, 1, None, None, None, 0)}
    rows = tallies((1, 1, 1, 1, 1), (1, 1, 2, 0, 0), (2, 1, 1, 1, 1), (2, 1, 1, 1, 0))
    summary = summarize(RUN, COUNTS, [], [Reading(measure("strict", keys, totals, rows, {}))], [])
    assert [cell.majority_vote_accuracy for cell in summary.cells] == [0.0, 0.5]
    assert summary.majority_vote[0].mean_change == pytest.approx(-1 / 6)
    assert summary.majority_vote[0].largest_change == pytest.approx(1 / 3)
    assert (summary.seed_disagreement[0].share, summary.seed_disagreement[0].groups) == (1.0, 2)


def test_values_of_several_seeds_scored_elsewhere_cannot_vote() -> None:
    """Rows without values have no majority; the summary says why."""
    summary = micro(GIVEN, seeds=2)
    assert all(cell.majority_vote_accuracy is None for cell in summary.cells)
    assert summary.seed_disagreement[0].share is None
    assert "no_votes" in {caveat.code for caveat in summary.warnings}


def lone(accuracy_known: bool = True, wrappers: int = 1, missing: int = 0) -> Summary:
    keys = {i: CellKey("m", "t", f"w{i}", "none") for i in range(1, wrappers + 1)}
    totals = {i: CellTotal(i, 2, missing, 2, None, None, None, 0) for i in keys}
    rows = tallies(*((i, item, 1, 1, 1 if accuracy_known else None) for i in keys for item in (1, 2)))
    return summarize(RUN, COUNTS, [], [Reading(measure("strict", keys, totals, rows, {}))], [])


def reasons(summary: Summary) -> dict[str, tuple[str, ...]]:
    return {caveat.code: caveat.fields for caveat in summary.warnings}


def test_one_wrapper_has_no_range() -> None:
    """FSI and PSI of one wrapper are null with a reason, never 0."""
    summary = lone()
    assert (summary.sensitivity[0].fsi, summary.sensitivity[0].psi, summary.models[0].fsi) == (None, None, None)
    assert (summary.spreads[0].spread, summary.spreads[0].sd_population, summary.gains[0].gain) == (None, None, None)
    assert {"sensitivity.fsi", "spreads.spread", "gains.gain"} <= set(reasons(summary)["one_wrapper"])


def test_no_gold_has_parseability_only() -> None:
    """Without gold PSI is there and FSI is null with a reason."""
    summary = lone(accuracy_known=False, wrappers=2)
    assert (summary.sensitivity[0].fsi, summary.sensitivity[0].psi) == (None, 0.0)
    assert "sensitivity.fsi" in reasons(summary)["no_gold"]


def test_more_than_one_percent_missing_is_marked() -> None:
    """The marked cell is named with its counts."""
    assert "m, t, w1: 1 of 3" in next(c.message for c in lone(missing=1).warnings if c.code == "missing")
    assert "missing" not in reasons(lone())


def test_one_task_cannot_be_resampled() -> None:
    """The paper's interval needs tasks; the reason is there."""
    summary = lone(wrappers=2)
    assert (summary.models[0].fsi, summary.models[0].fsi_ci_paper) == (0.0, None)
    assert "models.fsi_ci_paper" in reasons(summary)["one_task"]


def test_two_numbers_of_wrappers_are_not_compared_silently() -> None:
    """FSI grows with F: unlike ranges in one summary are pointed out."""
    assert "different_f" in reasons(ranged({"m": "ab", "n": "abc"}))
    assert "different_f" not in reasons(ranged({"m": "ab", "n": "ab"}))


def test_one_wrapper_is_no_range_to_compare() -> None:
    """A family with one wrapper has no range: that is said, and not that ranges differ."""
    found = reasons(ranged({"m": "ab", "n": "a"}))
    assert "one_wrapper" in found
    assert "different_f" not in found


def ranged(wrappers: dict[str, str]) -> Summary:
    """Model -> its wrappers, a letter each."""
    keys = dict(enumerate((CellKey(model, "t", name, "none") for model in wrappers for name in wrappers[model]), 1))
    totals = {i: CellTotal(i, 1, 0, 1, None, None, None, 0) for i in keys}
    reading = Reading(measure("strict", keys, totals, tallies(*((i, 1, 1, 1, 1) for i in keys)), {}))
    return summarize(RUN, COUNTS, [], [reading], [])


def test_evidence_of_the_worked_example() -> None:
    """m0, t0: of the 9 ways to relabel its two items that vary, 3 give the range of 1/2; Holm doubles the smaller p."""
    rows = {(row.model, row.task): row for row in micro().sensitivity}
    assert rows["m0", "t0"].p_wrapper_effect == pytest.approx(1 / 3)
    smaller = min(rows["m0", task].p_wrapper_effect or 0.0 for task in ("t0", "t1"))
    assert min(rows["m0", task].p_holm or 0.0 for task in ("t0", "t1")) == pytest.approx(min(1.0, 2 * smaller))
    for row in rows.values():
        assert row.fsi_star is not None
        assert row.fsi is not None
        assert row.fsi_floor is not None
        assert row.fsi_ci is not None
        assert row.fsi_star <= row.fsi
        assert row.fsi_ci[0] <= max(0.0, row.fsi_star) <= row.fsi_ci[1]
        assert set(row.best_wrappers) <= set(row.not_separable)
        assert sum(row.p_best.values()) == pytest.approx(1)


# Format and content --------------------------------------------------------------------------------------------


def test_the_parts_of_the_worked_example() -> None:
    """Of the first best and the first worst wrapper, in their order; together they are the range."""
    # of json's two unread replies on items of t1 that xml has right, the limit cut one
    rows = {(row.model, row.task): row for row in micro(cut=frozenset({18})).sensitivity}
    assert {key: (row.content_part, row.format_part) for key, row in rows.items()} == {
        ("m0", "t0"): (0.5, 0.0),
        ("m0", "t1"): (0.0, 0.5),
        ("m1", "t0"): (0.25, 0.0),
        ("m1", "t1"): (0.25, 0.0),
    }
    assert (rows["m0", "t1"].format_truncated, rows["m0", "t1"].format_noncompliant) == (0.25, 0.25)
    assert all((row.content_part or 0) + (row.format_part or 0) == row.fsi for row in rows.values())


def test_without_pairs_there_are_no_parts() -> None:
    """Where no item was answered by both, and where there is no range, the parts are not known."""
    for row in (*lone(accuracy_known=False, wrappers=2).sensitivity, *lone().sensitivity):
        assert (row.content_part, row.format_part, row.format_truncated, row.format_noncompliant) == (None,) * 4


# Arms and endpoints --------------------------------------------------------------------------------------------

FOUND = Findings(
    "m",
    "http://one/v1",
    "vllm",
    build="0.11",
    seed="ignored",
    seed_said="3 of 3 differ",
    adaptations=(Adaptation("seed", "0", "", "unsupported"),),
    canaries=(Canary("grammar", "enforced", "B"),),
    routing={"only": ["x"]},
)


def enforced(missing: int = 0) -> Summary:
    """Two wrappers, free and held to a grammar, on two items."""
    keys = dict(enumerate((CellKey("m", "t", name, arm) for arm in ("none", "grammar") for name in "ab"), 1))
    totals = {i: CellTotal(i, 2, missing, 2, None, None, None, 0) for i in keys}
    rows = tallies(*((i, item, 1, int(i > 2), int(i > 2)) for i in keys for item in (1, 2)))
    reading = Reading(measure("strict", keys, totals, rows, {}))
    upstreams = [
        ("m", "http://one/v1", "p", "m-1", "f1", 3),
        ("m", "http://one/v1", "p", "m-2", "f2", 4),
        ("m", "http://one/v1", None, None, None, 1),
        ("x", "http://one/v1", "q", "", "", 9),
    ]
    return summarize(RUN, COUNTS, [], [reading], [], [FOUND], upstreams)


def test_the_summary_has_a_row_for_each_enforced_arm() -> None:
    """What enforcement did, with the canary's label; arms are models and families of their own elsewhere."""
    summary = enforced()
    (row,) = summary.enforcement
    assert (row.arm, row.label, row.parseability, row.parseability_without) == ("grammar", "verified", 1.0, 0.0)
    assert [(row.model, row.arm, row.fsi) for row in summary.models] == [("m", "none", 0.0), ("m", "grammar", 0.0)]
    assert micro().enforcement == ()


def test_caveats_name_the_arm() -> None:
    """A cell of an enforced arm that lacks replies is told from the free one."""
    said = [caveat.message for caveat in enforced(missing=1).warnings if caveat.code == "missing"]
    assert said[0].startswith("m, t, a: 1 of 3")
    assert said[2].startswith("m, t, a (grammar): 1 of 3")


def test_the_summary_says_who_answered() -> None:
    """What preflight found out about a server, and upstream providers, models and fingerprints of its replies."""
    (row,) = enforced().endpoints
    assert (row.model, row.server, row.provider, row.build) == ("m", "http://one/v1", "vllm", "0.11")
    assert row.seed == "ignored: 3 of 3 differ"
    assert (row.adaptations, row.canaries, row.routing) == (FOUND.adaptations, FOUND.canaries, FOUND.routing)
    assert (row.upstreams, row.models_returned, row.fingerprints) == ({"p": 7}, {"m-1": 3, "m-2": 4}, 2)
    assert micro().endpoints == ()


# Order and emptiness -------------------------------------------------------------------------------------------


def test_rankings_show_models_under_each_wrapper() -> None:
    """Under plain m0 leads by its second task; means over tasks decide."""
    rankings = {row.wrapper: (row.models, row.accuracies) for row in micro().rankings}
    assert rankings["plain"] == (("m0", "m1"), (0.375, 0.25))
    assert rankings["xml"] == (("m0", "m1"), (0.75, 0.5))
    assert rankings["json"] == (("m1", "m0"), (0.375, 0.25))


def test_the_same_seed_gives_the_same_bytes() -> None:
    """Everything random comes from the run's seed."""
    assert micro() == micro()


def test_an_empty_matched_subset_has_a_reason() -> None:
    """Token counts are known, but no item is within 5 %: null, and said why."""
    keys = {i: CellKey("m", "t", f"w{i}", "none") for i in (1, 2)}
    totals = {i: CellTotal(i, 2, 0, 2, 50.0 * i, 3.0, 0, 0) for i in keys}
    rows = tallies(*((i, item, 1, 1, 1) for i in keys for item in (1, 2)))
    found = Reading(measure("strict", keys, totals, rows, {}))
    summary = summarize(RUN, COUNTS, [], [found], [], spreads=spreads([(1, item, 0, 2 / 3) for item in (1, 2)]))
    assert (summary.sensitivity[0].fsi_matched, summary.token_spread.fsi_matched) == (None, None)
    assert "token_spread.fsi_matched" in reasons(summary)["no_matched"]


def aa(excess: float, cells: int) -> SeedNoiseRow:
    return SeedNoiseRow("strict", "none", cells, 2, 0.1, 0.2, 1.0, 0.1, 0.2, excess)


@pytest.mark.parametrize(("excess", "cells", "told"), [(7.5, 25, True), (1.4, 25, False), (7.5, 9, False)])
def test_seeds_that_move_many_items_are_warned_of(excess: float, cells: int, told: bool) -> None:
    """From 1.5 on, of either rate, where there are cells enough to tell it from chance."""
    found = {one.code: one.message for one in gaps.caveats([], [], [], noise=[aa(excess, cells)])}
    assert ("shared_seeds" in found) == told
    assert not told or "7.5 times as much" in found["shared_seeds"]
