"""What crosses the border: rows and cells in, rows out, readings of both."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from loopback import Loopback
from samples import SHARED, micro_rows, write_jsonl
from simulated import CASES, reply

from auditor import audit, border
from auditor.errors import ConflictError
from auditor.results import load
from auditor.study import Study


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "cases.jsonl", CASES)


def study(url: str, cases: Path) -> Study:
    return Study(models=(f"compat/m@{url}",), tasks=(str(cases),), items=6, seeds=2, max_tokens=64)


def test_scored_rows_give_the_worked_example(tmp_path: Path) -> None:
    """Rows scored elsewhere: one row per cell, parser given, the exact values."""
    source = write_jsonl(tmp_path / "scored.jsonl", micro_rows())
    summary = border.import_rows(source, tmp_path / "x", ("strict", "paper"), ()).summary
    assert summary.parsers == ("given",)
    assert len(summary.cells) == 12
    assert [row.fsi for row in summary.sensitivity] == [0.5, 0.5, 0.25, 0.25]
    assert {row.wrapper: row.wins for row in summary.wins} == {"plain": 0.0, "json": 0.5, "xml": 3.5}
    assert summary.regression[0].beta == pytest.approx(0.5, abs=1e-9)
    assert summary.counts.planned == summary.counts.answered == 48


@pytest.mark.parametrize("name", ["scored.jsonl", "texts.jsonl"])
def test_the_shared_example_to_nine_digits(tmp_path: Path, name: str) -> None:
    """Both forms of the shared example give its values, texts under strict and normalized alike."""
    source = SHARED / "micro" / name
    if not source.exists():
        pytest.skip("no shared folder beside the checkout")
    expected = json.loads((SHARED / "micro" / "expected.json").read_text())
    summary = border.import_rows(source, tmp_path / "x", ("strict", "normalized"), ()).summary
    for parser in summary.parsers:
        rows = {f"{r.model}/{r.task}": r for r in summary.sensitivity if r.parser == parser}
        for name_ in ("fsi", "psi", "nfsi"):
            found = {key: getattr(row, name_) for key, row in rows.items()}
            assert found == pytest.approx(expected[name_], abs=1e-9)
        assert {r.model: r.fsi for r in summary.models if r.parser == parser} == expected["macro_fsi"]
        assert {r.wrapper: r.wins for r in summary.wins if r.parser == parser} == expected["wins"]
        fit = next(r for r in summary.regression if r.parser == parser)
        for key in ("beta", "se", "df", "partial_r2", "p", "pearson_r", "tautology_slope"):
            assert getattr(fit, key) == pytest.approx(expected["wls"][key], abs=1e-9), key


def test_a_table_of_cells_is_measured(tmp_path: Path) -> None:
    """What can be computed from cells is; what needs items is null with a reason."""
    source = tmp_path / "cells.csv"
    source.write_text("model,task,wrapper,n,accuracy\nm,t,plain,100,0.5\nm,t,json,100,0.25\n")
    summary = border.import_rows(source, tmp_path / "x", ("strict",), ()).summary
    assert (summary.parsers, summary.sensitivity[0].fsi, summary.sensitivity[0].psi) == (("given",), 0.25, None)
    assert summary.cells[0].accuracy_ci is None
    assert {"no_votes", "no_parseability"} <= {caveat.code for caveat in summary.warnings}


def test_cells_without_n_are_measured(tmp_path: Path) -> None:
    """Rates are as told, counts are null, and so is what would weigh by them: why is said, and after a reload too."""
    source = tmp_path / "cells.csv"
    source.write_text(
        "model,task,wrapper,n,accuracy,parseability\nm,t,a,10,0.3,0.6\nm,t,b,,0.7,0.9\nm,t,c,10,0.1,0.8\n"
    )
    report = border.import_rows(source, tmp_path / "x", (), ())
    summary = report.summary
    assert [(cell.n, cell.correct, cell.accuracy) for cell in summary.cells] == [
        (10, 3.0, 0.3),
        (None, None, 0.7),
        (10, 1.0, 0.1),
    ]
    assert summary.cells[1].accuracy_parsed == pytest.approx(7 / 9)
    assert (summary.sensitivity[0].fsi, summary.sensitivity[0].psi) == pytest.approx((0.6, 0.3))
    fit = summary.regression[0]
    assert (fit.status.split(":")[0], fit.cells, fit.beta) == ("no_weights", 3, None)
    # deviations from the means 11/30 and 23/30, times 30: (-2, 10, -8) and (-5, 4, 1)
    assert fit.pearson_r == pytest.approx(42 / (168 * 42) ** 0.5)
    assert "cells.n" in {field for caveat in summary.warnings for field in caveat.fields}
    assert load(tmp_path / "x").summary.cells == summary.cells


def test_the_spreads_of_cells_are_a_file(tmp_path: Path) -> None:
    """`spreads.csv` has a row per model and task; names of wrappers are JSON, whatever stands in them."""
    source = tmp_path / "cells.csv"
    source.write_text('model,task,wrapper,accuracy\nm,t,",",0.25\nm,t,=,0.75\nm,t,"a, b",0.75\n')
    border.import_rows(source, tmp_path / "x", (), ())
    with (tmp_path / "x" / "spreads.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["model"], row["wrappers"], row["spread"], json.loads(row["worst_wrappers"])) == ("m", "3", "0.5", [","])
    assert json.loads(row["best_wrappers"]) == ["=", "a, b"]
    # mean 7/12; deviations -1/3, 1/6, 1/6: squares 1/6
    assert float(row["sd_sample"]) == pytest.approx((1 / 12) ** 0.5)
    assert float(row["sd_population"]) == pytest.approx((1 / 18) ** 0.5)


def test_importing_again_changes_nothing_and_a_difference_is_refused(tmp_path: Path) -> None:
    """Import is safe to repeat; two rows of one identity that differ are an error."""
    rows = micro_rows()
    source = write_jsonl(tmp_path / "scored.jsonl", rows)
    border.import_rows(source, tmp_path / "x", (), ())
    assert border.import_rows(source, tmp_path / "x", (), ()).summary.counts.answered == 48
    write_jsonl(source, [*rows, {**rows[0], "correct": False}])
    with pytest.raises(ConflictError, match="two different rows"):
        border.import_rows(source, tmp_path / "y", (), ())
    assert not (tmp_path / "y").exists()


def test_an_export_can_be_imported_with_the_same_figures(cases: Path, tmp_path: Path) -> None:
    """The border is crossed both ways without loss."""
    with Loopback(reply) as server:
        ran = audit.run(study(server.url, cases), tmp_path / "run")
    rows = list(border.exported(tmp_path / "run", False))
    back = border.import_rows(write_jsonl(tmp_path / "rows.jsonl", rows), tmp_path / "back", ran.summary.parsers, ())
    assert [(c.wrapper, c.parser, c.n, c.parsed, c.correct, c.reasons) for c in back.summary.cells] == [
        (c.wrapper, c.parser, c.n, c.parsed, c.correct, c.reasons) for c in ran.summary.cells
    ]


def test_parse_says_one_line_per_row_and_parser_in_order(tmp_path: Path) -> None:
    """Missing rows are missing under every parser; rows need not be unique."""
    row = {"model": "m", "task": "t", "item": "i", "wrapper": "json", "choices": ["A", "B"], "gold": "B"}
    source = write_jsonl(
        tmp_path / "r.jsonl", [{**row, "text": '{"answer": "B"}'}, {**row, "status": "missing"}, {**row, "text": "B"}]
    )
    lines = [
        (parser, o.outcome, o.value, correct)
        for _, parser, o, correct, _ in border.parse(source, ("strict", "normalized"), ())
    ]
    assert lines[:4] == [
        ("strict", "parsed", "B", True),
        ("normalized", "parsed", "B", True),
        ("strict", "missing", None, None),
        ("normalized", "missing", None, None),
    ]
    assert lines[4] == ("strict", "unparseable", None, False)


def test_equal_rows_stay_two(tmp_path: Path) -> None:
    """Lines are put together by the row they came from, not by what is in it."""
    row = {"model": "m", "task": "t", "item": "i", "wrapper": "json", "text": "B"}
    source = write_jsonl(tmp_path / "r.jsonl", [row, row, {**row, "text": "A"}])
    found = list(border.by_row(border.parse(source, ("strict", "normalized"), ())))
    assert [(row.text, len(lines)) for row, lines in found] == [("B", 2), ("B", 2), ("A", 2)]


def test_unknown_wrappers_are_one_message(tmp_path: Path) -> None:
    """However many there are, three are named; a reply that is missing is not read."""
    row = {"model": "m", "task": "t", "item": "i", "text": "B"}
    rows = [{**row, "wrapper": f"w{i % 5}"} for i in range(10)] + [{**row, "wrapper": "gone", "status": "missing"}]
    said: list[str] = []
    list(border.parse(write_jsonl(tmp_path / "r.jsonl", rows), ("strict",), (), said.append))
    assert said == ["wrappers 'w0', 'w1', 'w2' and 2 others are not known: their replies are read as plain text"]


def test_a_catalogue_wrapper_gives_its_contract_and_any_other_name_is_text(tmp_path: Path) -> None:
    """`wrapper` may be any string."""
    row = {"model": "m", "task": "t", "item": "i", "choices": ["A", "B"], "gold": "B", "text": "B"}
    source = write_jsonl(tmp_path / "r.jsonl", [{**row, "wrapper": "whatever"}, {**row, "wrapper": "json"}])
    assert [outcome.value for _, _, outcome, *_ in border.parse(source, ("strict",), ())] == ["B", None]
