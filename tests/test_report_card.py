import math

import msgspec
import pytest
import report_samples as samples

from auditor.figures import RankingRow, Summary
from auditor.report.card import Span, Subject, cards, leading, pair, primary, span, weighted_mean
from auditor.report.causes import why
from auditor.report.cells import by_task, by_wrapper, reason_tables
from auditor.report.headline import first_changes, headline, leaders


@pytest.fixture(scope="module")
def summary() -> Summary:
    return samples.realistic()


def test_the_card_agrees_with_fsi_and_psi(summary: Summary) -> None:
    """On a card, largest minus least accuracy is the macro FSI, and the same of parseability the macro PSI."""
    for card in cards(summary):
        for row in card.rows:
            assert row.accuracy is not None
            assert row.parseability is not None
            assert math.isclose(row.accuracy.high - row.accuracy.low, row.scores.fsi)
            assert math.isclose(row.parseability.high - row.parseability.low, row.scores.psi)


def test_the_card_names_wrappers_tasks_and_tokens(summary: Summary) -> None:
    """The card states F wrappers, the tasks and the range of prompt tokens over wrappers."""
    card = cards(summary)[0]
    assert card.wrappers == samples.WRAPPERS
    assert card.tasks == samples.TASKS
    assert card.prompt_tokens == Span(98.4, pytest.approx(112.4), pytest.approx(126.4))


def test_a_card_of_nothing_is_null() -> None:
    """Where nothing was measured, a card holds no number."""
    (card,) = cards(samples.degenerate())
    assert card.prompt_tokens is None
    assert (card.rows[0].accuracy, card.rows[0].parseability, card.rows[0].scores.fsi) == (None, None, None)


def test_strict_and_normalized_are_the_pair() -> None:
    """The gap shown is that of strict and normalized; without them, of the first two parsers."""
    assert pair(("paper", "normalized", "strict")) == ("strict", "normalized")
    assert pair(("a", "b", "c")) == ("a", "b")
    assert pair(("given",)) == ("given",)
    assert primary(()) == "strict"


def test_means_are_null_where_a_part_is_unknown() -> None:
    """A mean over known and unknown values is not the mean of the known ones."""
    assert span([0.1, None]) is None
    assert span([]) is None
    assert span([0.1, 0.4]) == Span(0.1, 0.25, 0.4)
    assert weighted_mean([(10.0, 1), (20.0, 3)]) == 17.5
    assert weighted_mean([(10.0, 1), (None, 3)]) is None
    assert weighted_mean([(10.0, 1), (None, 0)]) == 10.0


def test_rows_average_over_tasks_and_add_up_counts(summary: Summary) -> None:
    """A wrapper's row is the plain mean of its tasks' rates and the sum of their counts."""
    cells = [c for c in summary.cells if c.model == "gemma-3-270m"]
    row = next(row for row in by_wrapper(cells) if row.wrapper == "json")
    strict = [c for c in cells if (c.wrapper, c.parser) == ("json", "strict")]
    assert row.cells[0].accuracy == pytest.approx(sum(c.accuracy for c in strict) / 3)
    assert row.cells[0].parseability == pytest.approx(sum(c.parseability for c in strict) / 3)
    assert (row.cells[0].n, row.cells[0].missing) == (2970, 30)
    assert row.cells[0].accuracy_ci is None
    assert row.lossy
    assert row.shared


def test_one_task_keeps_its_intervals(summary: Summary) -> None:
    """The rows of a single task are its cells, intervals and all."""
    cells = [c for c in summary.cells if c.model == "smollm2-135m"]
    tasks = dict(by_task(cells))
    assert tuple(tasks) == samples.TASKS
    assert [c for row in tasks["yes_no"] for c in row.cells] == [c for c in cells if c.task == "yes_no"]


def test_an_average_needs_every_task(summary: Summary) -> None:
    """A wrapper that lacks a task has no averaged rate, since the others stand for more tasks."""
    kept = [c for c in summary.cells if c.model == "smollm2-135m" and (c.wrapper, c.task) != ("json", "yes_no")]
    rows = {row.wrapper: row.cells[0] for row in by_wrapper(kept)}
    assert (rows["json"].accuracy, rows["json"].parseability) == (None, None)
    assert rows["json"].n == 2000
    assert rows["plain"].accuracy is not None


def test_a_task_without_gold_does_not_hide_the_others(summary: Summary) -> None:
    """A task that has no accuracy under any wrapper is left out of the averaged accuracy alone."""
    cells = [
        msgspec.structs.replace(c, accuracy=None) if c.task == "yes_no" else c
        for c in summary.cells
        if (c.model, c.parser) == ("smollm2-135m", "strict")
    ]
    plain = by_wrapper(cells)[0].cells[0]
    known = [c.accuracy for c in cells if c.wrapper == "plain" and c.accuracy is not None]
    assert len(known) == 2
    assert plain.accuracy == pytest.approx(sum(known) / 2)
    assert plain.parseability is not None


def test_more_than_one_percent_missing_is_marked(summary: Summary) -> None:
    """Exactly 1 % missing is not marked, more is; a cell without replies is."""
    cell = summary.cells[0]
    assert not msgspec.structs.replace(cell, n=99, missing=1).lossy
    assert msgspec.structs.replace(cell, n=98, missing=1).lossy
    assert msgspec.structs.replace(cell, n=0, missing=4).lossy
    assert not msgspec.structs.replace(cell, n=0, missing=0).lossy


def test_reasons_add_up_to_what_was_not_parsed(summary: Summary) -> None:
    """The counts of a reason table are those of the cells, models apart, the most frequent reason first."""
    for table in reason_tables(summary):
        cells = [c for c in summary.cells if c.parser == table.parser]
        assert table.total == sum(c.n - (c.parsed or 0) for c in cells)
        for group in table.groups:
            assert [row.total for row in group.rows] == sorted((row.total for row in group.rows), reverse=True)
            for row in group.rows:
                assert sum(n for n in row.counts if n is not None) == row.total


def test_a_wrapper_that_was_not_measured_has_no_count(summary: Summary) -> None:
    """In a reason table a wrapper that a model was not asked with is null, not 0."""
    kept = tuple(c for c in summary.cells if (c.model, c.wrapper) != ("gemma-3-270m", "json"))
    table = reason_tables(msgspec.structs.replace(summary, cells=kept))[0]
    column = table.wrappers.index("json")
    assert table.groups[1].n[column] is None
    assert {row.counts[column] for row in table.groups[1].rows} == {None}


def test_the_headline_quotes_the_summary(summary: Summary) -> None:
    """The verdict's first sentence gives FSI and PSI of the strict parser, as the summary has them."""
    scores = next(row for row in summary.models if (row.model, row.parser) == ("smollm2-135m", "strict"))
    assert headline(summary)[0].startswith(
        f"Across 5 wrappers and on average over 3 tasks, the accuracy of smollm2-135m moves by {scores.fsi:.2f} (FSI) "
        f"and the share of readable replies by {scores.psi:.2f} (PSI) under the strict parser."
    )


def test_the_headline_says_what_else_matters(summary: Summary) -> None:
    """The verdict says that the first model changes, and what is missing."""
    told = " ".join(headline(summary))
    assert "Which model comes first depends on the wrapper: smollm2-135m under plain; gemma-3-270m under json" in told
    assert "30 of 30,000 planned replies are missing (more than 1 % in 1 cell) and left out of every rate." in told


def test_a_subject_says_its_arm_in_words() -> None:
    """A model is called by its name alone without enforcement, and by enforcement and limit where the arm has them."""
    arms = ("none", "none@24", "json_schema", "json_schema@256")
    assert [Subject("m", arm).label for arm in arms] == [
        "m",
        "m (at most 24 tokens)",
        "m (json_schema)",
        "m (json_schema, at most 256 tokens)",
    ]


def test_the_first_free_arm_of_each_model_leads() -> None:
    """A headline is about the first arm without enforcement of each model, or its first arm where it has none."""
    found = [Subject("a", "grammar"), Subject("b", "json_schema@24"), Subject("a", "none@24"), Subject("a", "none@256")]
    assert leading(found) == (Subject("a", "none@24"), Subject("b", "json_schema@24"))
    assert leading([]) == ()


def test_the_headline_is_about_the_free_arm(summary: Summary) -> None:
    """With enforced arms the verdict is that of the run without them, with one sentence about enforcement."""
    free, held = headline(summary), headline(samples.enforced())
    assert held[:3] == free[:3]
    assert held[3] == (
        "Enforced while decoding: grammar of smollm2-135m (verified) takes the share of readable replies from 0.45 to "
        "0.99 and accuracy from 0.18 to 0.42; the endpoint ignored json_schema of smollm2-135m; grammar of "
        "gemma-3-270m (claimed) takes the share of readable replies from 0.74 to 0.99 and accuracy from 0.28 to 0.28."
    )
    assert held[4] == free[3]


def test_fsi_of_unreadable_replies_is_no_stability() -> None:
    """Where the primary parser read nothing of a model, the first sentence says so, and its FSI of 0 is not quoted."""
    told = headline(samples.unread())
    assert told[0].startswith(
        "No reply of smollm2-135m was readable under the strict parser, whatever the wrapper: an accuracy or FSI of 0 "
        "means nothing there. Across 5 wrappers and on average over 3 tasks, the accuracy of gemma-3-270m moves by "
    )
    assert "0.00" not in " ".join(told)
    assert [row.unread for row in cards(samples.unread())[0].rows] == [True, False, False]


def test_a_few_readable_replies_are_a_measurement() -> None:
    """A model is told as measured once its best wrapper has more than one readable reply in twenty over its tasks; one
    without any reply is not called unreadable."""
    base = samples.unread()
    first = msgspec.structs.replace(base.cells[0], parsed=200, parseability=0.2)
    assert not cards(msgspec.structs.replace(base, cells=(first, *base.cells[1:])))[0].rows[0].unread
    assert not cards(samples.degenerate())[0].rows[0].unread


def test_unreadable_models_leave_the_range_of_many(summary: Summary) -> None:
    """Of more than three models, those of which nothing was read are named first and left out of the range."""
    models, cells = [], []
    for n in range(1, 5):
        source = samples.unread() if n == 1 else summary
        models += [msgspec.structs.replace(row, model=f"m{n}", fsi=n / 10, psi=n / 20) for row in source.models[:3]]
        cells += [msgspec.structs.replace(cell, model=f"m{n}") for cell in source.cells[:45]]
    told = headline(msgspec.structs.replace(summary, models=tuple(models), cells=tuple(cells)))
    assert told[0].startswith("No reply of 1 of 4 models (m1) was readable under the strict parser")
    assert told[1].startswith("Across 5 wrappers, the accuracy of 3 models moves by 0.20 to 0.40 (FSI; most for m4)")


def test_the_headline_of_nothing() -> None:
    """Without an FSI the verdict gives the reason; without cells it says that nothing was measured."""
    nothing = samples.degenerate()
    assert headline(nothing)[0] == (
        "How far the accuracy of m moves between wrappers cannot be told: a range over wrappers needs at least two."
    )
    empty = msgspec.structs.replace(nothing, cells=(), models=(), sensitivity=())
    assert headline(empty) == ("Nothing was measured.",)


def test_many_models_are_one_range(summary: Summary) -> None:
    """More than three models are told as a range, naming the most sensitive."""
    models = tuple(
        msgspec.structs.replace(row, model=f"m{n}", fsi=n / 10, psi=n / 20)
        for n in range(1, 5)
        for row in summary.models[:3]
    )
    cells = tuple(msgspec.structs.replace(cell, model=f"m{n}") for n in range(1, 5) for cell in summary.cells[:45])
    told = headline(msgspec.structs.replace(summary, models=models, cells=cells))
    assert told[0] == (
        "Across 5 wrappers, the accuracy of 4 models moves by 0.10 to 0.40 (FSI; most for m4) and the share of "
        "readable replies by 0.05 to 0.20 (PSI) under the strict parser."
    )


def test_replies_never_asked_for_are_told(summary: Summary) -> None:
    """A run that stopped early says how many planned replies it did not ask for."""
    counts = msgspec.structs.replace(summary.counts, planned=31000)
    assert (
        "1,000 of 31,000 planned replies were not asked for."
        in headline(msgspec.structs.replace(summary, counts=counts))[-1]
    )


def test_a_shared_first_place_is_no_change() -> None:
    """The first model changes only if none is first, alone or shared, under every wrapper."""
    tie = RankingRow("strict", "none", "plain", ("a", "b"), (0.5, 0.5))
    a_first = RankingRow("strict", "none", "json", ("a", "b"), (0.5, 0.4))
    b_first = RankingRow("strict", "none", "xml", ("b", "a"), (0.5, 0.4))
    assert leaders(tie) == ("a", "b")
    assert not first_changes([tie, a_first])
    assert first_changes([a_first, b_first])
    assert not first_changes([])


def test_a_null_leads_to_its_warning() -> None:
    """The reason of a null is the first warning that names its field, in full or by its last part."""
    nothing = samples.degenerate()
    assert why(nothing, "models.fsi").number == 1
    assert why(nothing, "cells.accuracy").message == "no reply arrived"
    assert why(nothing, "other.fsi").number == 1
    assert why(nothing, "counts.cost_usd").number == 0
