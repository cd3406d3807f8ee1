"""The parsers a study names: ours, the user's files, lm-eval's lists and functions; and a run that was read by them."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import write_jsonl

from auditor import border, reading, results
from auditor.errors import UsageError
from auditor.settings import build
from auditor.store import Store

FILTERS = """
filter_list:
  - name: after-is
    filter: [{function: regex, regex_pattern: "is ([A-D])"}, {function: take_first}]
  - name: last
    filter: [{function: regex, regex_pattern: "[A-D]", group_select: -1}]
"""
ROWS = [
    {"model": "m", "task": "t", "item": str(n), "wrapper": "plain", "choices": ["A", "B"], "gold": "B", "text": text}
    for n, text in enumerate(["B", "It is B", "Not B but A"])
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_reading.py").write_text("def first(text): return text[0]\n")
    (tmp_path / "mine.yaml").write_text(FILTERS)
    write_jsonl(tmp_path / "rows.jsonl", ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_parsers_come_in_the_order_named(here: Path) -> None:
    """A list of filters gives one parser for each, in its place; what is named twice is there once."""
    names = ("python:own_reading:first", "mine.yaml", "strict", "mine.yaml", "python:own_reading:first")
    found = [parser.name for parser, _ in reading.readers(names)]
    assert found == ["python:own_reading:first", "after-is", "last", "strict"]


def test_a_run_shows_own_parsers_as_they_read_it(here: Path) -> None:
    """Without their files a report keeps what they read, says so, and imports nothing that the run names."""
    parsers = ("strict", "mine.yaml", "python:own_reading:first")
    first = border.import_rows(here / "rows.jsonl", here / "x", parsers, ()).summary
    (here / "own_reading.py").unlink()
    (here / "mine.yaml").unlink()
    again = results.rebuild(here / "x", None).summary
    assert again.parsers == first.parsers == ("strict", "after-is", "last", "python:own_reading:first")
    assert [cell.accuracy for cell in again.cells] == [cell.accuracy for cell in first.cells]
    said = [warning.message for warning in again.warnings if warning.code == "parser_as_read"]
    assert len(said) == 3
    assert "parser after-is is shown as it read the run before" in said[0]


def test_a_stopped_run_imports_nothing_either(here: Path) -> None:
    """A study in a run's file is not a command line: its functions are passed over."""
    border.import_rows(here / "rows.jsonl", here / "x", ("strict",), ())
    with Store(here / "x", writable=True) as store:
        store._db.execute("DELETE FROM outcome")
        store._db.execute("DELETE FROM parser")
        store._db.commit()
        store.set_meta(study='{"parsers": ["strict", "python:no_such_module:f"]}')
    assert results.rebuild(here / "x", None).summary.parsers == ("strict",)


def test_a_study_file_cannot_name_a_function(here: Path) -> None:
    """Code runs because a command line asks for it, never because a file does."""
    (here / "auditor.toml").write_text('parsers = ["strict", "python:own_reading:first"]\n')
    with pytest.raises(UsageError, match="code runs only if the command line names it"):
        build({}, "auditor.toml")
    assert build({"parsers": ("python:own_reading:first",)}, None)[0].parsers == ("python:own_reading:first",)


def test_why_a_function_gave_no_reading_is_told(here: Path) -> None:
    """The report warns, and `parse` says it, with how often."""
    (here / "own_faults.py").write_text("def f(text): return text if len(text) == 1 else 1 / 0\n")
    summary = border.import_rows(here / "rows.jsonl", here / "x", ("python:own_faults:f",), ()).summary
    told = [warning.message for warning in summary.warnings if warning.code == "parser_error"]
    why = "no reading of 2 replies: 2 times ZeroDivisionError: division by zero"
    assert told == [f"python:own_faults:f gave {why}"]
    said: list[str] = []
    lines = list(border.parse(here / "rows.jsonl", ("python:own_faults:f",), (), said.append))
    assert [line[2].reason for line in lines] == [None, "parser_error", "parser_error"]
    assert said == told
