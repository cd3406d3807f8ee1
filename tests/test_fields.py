"""JSON answers compared field by field, from a template and its cases to rows, tables and verdicts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from loopback import Answer, Body, Loopback
from samples import write_jsonl

from auditor import border, fields, gating, results
from auditor.figures import FieldRow
from auditor.measure import Measured, measure
from auditor.records import CellKey, CellTotal
from auditor.report.outcomes import line
from auditor.report.value import Report
from auditor.stats import intervals
from auditor.study import Study
from auditor.verdict import Rules, Verdict

TEMPLATE = """name = "invoice"
user = '''
Read the invoice.
{{content}}
Return a JSON object with "label" and "amount".
'''
[contract]
kind = "json"
[compare]
"/label" = "text"
"/amount" = {number = 0.01}
"""
CASES: list[dict[str, object]] = [
    {"id": "close", "question": "one", "answer": {"label": "Rent", "amount": 18.00}},
    {"id": "other", "question": "two", "answer": '{"label": "Food", "amount": 7}'},
    {"id": "prose", "question": "three", "answer": {"label": "Fuel", "amount": 40}},
    {"id": "short", "question": "four", "answer": {"label": "Gift"}},
]
SAID = {
    "one": '{"amount": 18.005, "label": "rent", "paid": true}',
    "two": '{"label": "Fun", "amount": "7"}',
    "three": "It is fuel for 40.",
    "four": '{"label": "Gift"}',
}
RIGHT: dict[str, tuple[bool, dict[str, bool | None]]] = {
    "close": (True, {"/label": True, "/amount": True}),
    "other": (False, {"/label": False, "/amount": True}),
    "prose": (False, {"/label": False, "/amount": False}),
    "short": (True, {"/label": True, "/amount": None}),
}


def reply(body: Body) -> Answer:
    text = body["messages"][-1]["content"]
    return Answer(next(said for word, said in SAID.items() if f"\n{word}\n" in text))


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "invoice.toml"
    path.write_text(TEMPLATE)
    return path


def gated(template: Path, rules: Rules, seeds: int = 1) -> tuple[Verdict, Report]:
    cases = write_jsonl(template.parent / "cases.jsonl", CASES)
    with Loopback(reply) as server:
        study = Study(
            models=(f"compat/m@{server.url}",),
            tasks=(str(cases),),
            wrappers=(str(template),),
            parsers=("strict",),
            seeds=seeds,
            pad="none",
            preflight=False,
        )
        return gating.gate(study, rules, template.parent / "run")


def test_a_template_is_judged_by_its_fields(template: Path) -> None:
    """An answer is correct when every field of the gold answer is: two of four, and the gate holds that."""
    verdict, report = gated(template, Rules(min_accuracy=0.5))
    (cell,) = report.summary.cells
    assert (cell.n, cell.parsed, cell.correct, verdict.judgement) == (4, 3, 2, "PASS")
    assert gated(template, Rules(min_accuracy=0.6))[0].judgement == "FAIL"


def test_each_field_has_its_row(template: Path) -> None:
    """A reply that cannot be read has no field right; an item without the field is not counted; intervals are over
    items, however many seeds there are; what is measured again is the same."""
    _, report = gated(template, Rules(min_accuracy=0.1), seeds=2)
    key = ("m", "cases", "invoice", "none", "strict")
    expected = (
        FieldRow(*key, "/label", 8, 4, 0.5, intervals.clopper_pearson(2, 4).interval),
        FieldRow(*key, "/amount", 6, 4, 2 / 3, intervals.clopper_pearson(2, 3).interval),
    )
    assert report.summary.fields == expected
    assert results.load(report.path).summary.fields == expected
    told = json.loads((report.path / "summary.json").read_text())["fields"]
    assert [(row["field"], row["n"], row["correct"]) for row in told] == [("/label", 8, 4), ("/amount", 6, 4)]
    with (report.path / "fields.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["field"], row["n"], row["correct"]) for row in rows] == [("/label", "8", "4"), ("/amount", "6", "4")]
    assert "Field by field" in (report.path / "report.html").read_text()


def test_a_run_that_compares_whole_answers_has_no_fields(template: Path) -> None:
    """Without `[compare]` the whole object must be equal, and nothing is said of fields anywhere."""
    template.write_text(TEMPLATE.partition("[compare]")[0])
    _, report = gated(template, Rules(min_accuracy=0.1))
    (cell,) = report.summary.cells
    assert (cell.correct, report.summary.fields, (report.path / "fields.csv").exists()) == (1, (), False)
    assert "Field by field" not in (report.path / "report.html").read_text()


def test_a_field_that_no_case_has_is_null_with_its_reason(template: Path) -> None:
    """A pointer that is spelled otherwise than the cases spell it is not measured, and that is said."""
    template.write_text(TEMPLATE.replace('"/label"', '"/lable"'))
    _, report = gated(template, Rules(min_parseability=0.1))
    row, other = report.summary.fields
    assert (row.field, row.n, row.accuracy, row.accuracy_ci) == ("/lable", 0, None, None)
    assert (other.n, other.correct) == (3, 2)
    (caveat,) = (one for one in report.summary.warnings if one.code == "no_gold_field")
    assert caveat.message == "cases: no gold answer has the field /lable of wrapper invoice"
    assert "fields.accuracy" in caveat.fields


def test_parse_says_which_fields_are_right(template: Path) -> None:
    """A line has `fields` where the row's wrapper compares fields, null where the gold answer has none or the reply is
    missing, and no such key elsewhere."""
    gold = {str(case["id"]): case["answer"] for case in CASES}
    rows: list[dict[str, object]] = [
        {
            "model": "m", "task": "t", "item": case["id"], "wrapper": "invoice", "answer_type": "json",
            "text": SAID[str(case["question"])],
            "gold": told if isinstance(told := gold[str(case["id"])], str) else json.dumps(told),
        }
        for case in CASES
    ]  # fmt: skip
    more = [
        {**rows[0], "text": None, "status": "missing"},
        {**rows[0], "gold": None},
        {**rows[0], "wrapper": "json"},
        {**rows[0], "answer_type": "text"},
        {**rows[0], "text": None, "parsed": True, "correct": True},
    ]
    source = write_jsonl(template.parent / "rows.jsonl", [*rows, *more])
    lines = [line(*one) for one in border.parse(source, ("strict",), (str(template),))]
    assert {one["item"]: (one["correct"], one["fields"]) for one in lines[:4]} == RIGHT
    nothing = {"/label": None, "/amount": None}
    assert [one.get("fields") for one in lines[4:]] == [nothing, nothing, None, None, None]


def test_imported_rows_are_compared_by_field(template: Path) -> None:
    """Rows from elsewhere are measured as a run is, those scored elsewhere left out of it."""
    gold = '{"label": "Rent", "amount": 18}'
    row = {"model": "m", "task": "t", "wrapper": "invoice", "answer_type": "json", "gold": gold}
    source = write_jsonl(
        template.parent / "rows.jsonl",
        [{**row, "item": "a", "text": SAID["one"]}, {**row, "item": "b", "parsed": True, "correct": True}],
    )
    summary = border.import_rows(source, template.parent / "x", ("strict",), (str(template),)).summary
    assert [(one.parser, one.field, one.n, one.correct) for one in summary.fields] == [
        ("strict", "/label", 1, 1),
        ("strict", "/amount", 1, 1),
    ]


def measured(cells: int) -> Measured:
    keys = {id_: CellKey("m", "t", f"w{id_}", "none") for id_ in range(1, cells + 1)}
    totals = {id_: CellTotal(id_, 4, 0, 2, None, None, None, 0) for id_ in keys}
    return measure("strict", keys, totals, [], {})


def test_rows_follow_cells_and_fields() -> None:
    """Items count once, by their mean over seeds; a cell that compares nothing has no row."""
    rows = fields.rows(measured(3), {3: {"/b": {7: (2, 1), 8: (2, 2)}, "/a": {}}, 1: {"/a": {7: (1, 0)}}})
    assert [(row.wrapper, row.field, row.n, row.correct, row.accuracy) for row in rows] == [
        ("w1", "/a", 1, 0, 0.0),
        ("w3", "/b", 4, 3, 0.75),
        ("w3", "/a", 0, 0, None),
    ]
    assert rows[1].accuracy_ci == intervals.clopper_pearson(1.5, 2).interval
    assert [caveat.message for caveat in fields.caveats([*rows, *rows])] == [
        "t: no gold answer has the field /a of wrapper w3"
    ]
