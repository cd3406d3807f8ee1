import csv
import io
import json
import math

import msgspec
import pytest
import report_samples as samples

from auditor.figures import CellRow, Summary
from auditor.report.tables import cells_csv, summary_json


def rows(summary: Summary) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(cells_csv(summary))))


def test_one_line_per_cell_with_every_field() -> None:
    """The CSV has a line per cell and a column per field, intervals split in two."""
    summary = samples.realistic()
    found = rows(summary)
    assert len(found) == len(summary.cells) == 90
    expected = [
        name
        for field in CellRow.__struct_fields__
        for name in ((f"{field}_low", f"{field}_high") if field.endswith("_ci") else (field,))
    ]
    assert list(found[0]) == expected
    for row, cell in zip(found, summary.cells, strict=True):
        assert float(row["accuracy"]) == cell.accuracy
        assert (float(row["accuracy_ci_low"]), float(row["accuracy_ci_high"])) == cell.accuracy_ci
        assert json.loads(row["reasons"]) == cell.reasons


def test_null_is_an_empty_field() -> None:
    """What is not known is empty in the CSV, never 0 or None; a known 0 is 0."""
    (row,) = rows(samples.degenerate())
    assert (row["accuracy"], row["accuracy_ci_low"], row["items"], row["truncated"]) == ("", "", "", "")
    assert (row["n"], row["missing"], row["reasons"]) == ("0", "4", "{}")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_name_is_no_formula(start: str) -> None:
    """Text that a spreadsheet would run is prefixed, negative numbers are left alone."""
    cell = msgspec.structs.replace(samples.realistic().cells[0], model=f"{start}cmd|' /C calc'!A0", accuracy=-0.25)
    out = cells_csv(msgspec.structs.replace(samples.realistic(), cells=(cell,)))
    (row,) = csv.DictReader(io.StringIO(out, newline=""))
    assert row["model"] == f"'{start}cmd|' /C calc'!A0"
    assert row["accuracy"] == "-0.25"


def test_quotes_and_line_breaks_survive() -> None:
    """A name with quotes, commas and line breaks comes back unchanged."""
    name = 'a,"b"\nc'
    cell = msgspec.structs.replace(samples.realistic().cells[0], wrapper=name)
    assert rows(msgspec.structs.replace(samples.realistic(), cells=(cell,)))[0]["wrapper"] == name


def test_summary_json_comes_back() -> None:
    """The JSON decodes to the same summary, is indented and ends in a line break."""
    data = summary_json(samples.realistic())
    assert msgspec.json.decode(data, type=Summary) == samples.realistic()
    assert data.startswith(b'{\n  "schema": 1,')
    assert data.endswith(b"}\n")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_has_no_nan(value: float) -> None:
    """A number that is not finite is null in the JSON."""
    cell = msgspec.structs.replace(samples.realistic().cells[0], accuracy=value)
    data = summary_json(msgspec.structs.replace(samples.realistic(), cells=(cell,)))

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(data, parse_constant=refuse)["cells"][0]["accuracy"] is None
