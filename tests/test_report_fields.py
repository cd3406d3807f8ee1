"""The section on fields: which tables there are, what they show, and what a hostile name does."""

from __future__ import annotations

import csv
import io

import msgspec
import report_samples as samples

from auditor.figures import FieldRow, Summary
from auditor.report.fields import by_parser
from auditor.report.html import render_html
from auditor.report.tables import fields_csv


def row(field: str, parser: str = "strict", wrapper: str = "json", arm: str = "none", n: int = 4) -> FieldRow:
    accuracy, ci = (0.125, (0.0625, 0.25)) if n else (None, None)
    return FieldRow("smollm2-135m", "arithmetic", wrapper, arm, parser, field, n, n // 2, accuracy, ci)


def with_rows(*rows: FieldRow) -> Summary:
    return msgspec.structs.replace(samples.realistic(), fields=rows)


def test_rows_are_grouped_by_wrapper_under_each_parser() -> None:
    """A parser without rows has no table; one wrapper's fields stand together, arms apart."""
    found = by_parser(with_rows(row("/a", "paper"), row("/a"), row("/b"), row("/a", arm="json_schema")))
    assert [table.parser for table in found] == ["strict", "paper"]
    assert [(group.subject.arm, [one.field for one in group.rows]) for group in found[0].groups] == [
        ("none", ["/a", "/b"]),
        ("json_schema", ["/a"]),
    ]


def test_the_page_shows_fields_only_where_there_are_any() -> None:
    """Rate, interval and n of each field, and a link to them; nothing of it in a run without."""
    page = render_html(with_rows(row("/amount"), row("/b", n=0)), (), {})
    for part in ('<section id="fields">', '<a href="#fields">', "<code>/amount</code>", "0.125", "[0.062, 0.250]"):
        assert part in page
    assert "fields" not in render_html(samples.realistic(), (), {})


def test_a_hostile_field_is_only_text() -> None:
    """Markup in the name of a field is shown, never obeyed; a spreadsheet runs no name either."""
    page = render_html(with_rows(row("/<script>alert(1)</script>")), (), {})
    assert ("<script" in page, "/&lt;script&gt;" in page) == (False, True)
    (line,) = csv.DictReader(io.StringIO(fields_csv(with_rows(row("/a", wrapper="=1+1")))))
    assert (line["wrapper"], line["field"], line["accuracy_ci_low"]) == ("'=1+1", "/a", "0.0625")
