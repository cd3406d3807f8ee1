import io

import msgspec
import pytest
import report_samples as samples
from rich.console import Console

from auditor.figures import Summary
from auditor.report.terminal import print_summary


def printed(summary: Summary, parser: str | None = None, **options: object) -> str:
    out = io.StringIO()
    print_summary(summary, Console(file=out, **options), parser)  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("summary", [samples.realistic(), samples.degenerate(), samples.enforced(), samples.unread()])
def test_a_pipe_gets_plain_lines(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a pipe no escape code goes, and no line is longer than 80 columns."""
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    text = printed(summary)
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "None" not in text
    assert "nan" not in text


def test_numbers_are_whole_at_80_columns() -> None:
    """No number is cut off by the width, and each wrapper keeps to one line."""
    lines = printed(samples.realistic(), width=80).splitlines()
    assert not [line for line in lines if "…" in line]
    row = next(line for line in lines if line.startswith("structured_delim")).split()
    cells = [c for c in samples.realistic().cells if (c.model, c.wrapper) == ("smollm2-135m", "structured_delim")]
    for place, parser in enumerate(samples.PARSERS, start=1):
        accuracy = sum(c.accuracy or 0 for c in cells if c.parser == parser) / 3
        parseability = sum(c.parseability or 0 for c in cells if c.parser == parser) / 3
        assert row[place] == f"{accuracy:.2f}/{parseability:.2f}"
    assert row[4:] == ["3,000", "0", "765"]


def test_the_card_shows_fsi() -> None:
    """Each model's card line gives FSI as the summary has it."""
    summary = samples.realistic()
    lines = [line.split()[:2] for line in printed(summary).splitlines() if line.startswith("strict  ")]
    strict = [row for row in summary.models if row.parser == "strict"]
    assert lines == [["strict", f"{row.fsi:.3f}"] for row in strict]


def test_enforcement_is_one_line_per_arm() -> None:
    """Each model and enforced arm has one line, with its label as a word; a run without enforcement has none."""
    lines = printed(samples.enforced(), width=80).splitlines()
    start = lines.index("Enforced while decoding, read by strict")
    assert [" ".join(line.split()) for line in lines[start + 3 : start + 6]] == [
        "smollm2-135m grammar verified 0.45 → 0.99 0.18 → 0.42 0.77 → 0.00",
        "smollm2-135m json_schema ignored 0.08 → 0.08 0.04 → 0.04 –",
        "gemma-3-270m grammar claimed 0.74 → 0.99 0.28 → 0.28 0.18 → 0.00",
    ]
    assert " ignored: taken by the endpoint, not enforced: a difference is noise" in lines
    assert "Enforced" not in printed(samples.realistic())
    assert "read by paper" in printed(samples.enforced(), "paper")


def test_one_parser_can_be_asked_for() -> None:
    """With a parser named, the tables and reasons of the others are left out."""
    text = printed(samples.realistic(), "normalized")
    assert "Not read by normalized: " in text
    assert "Not read by strict" not in text
    assert not [line for line in text.splitlines() if line.startswith("paper")]


def test_missing_is_marked() -> None:
    """A wrapper with a cell that lacks more than 1 % is marked, and the mark explained."""
    text = printed(samples.realistic())
    assert "30 !" in text
    assert "! more than 1 % missing" in text


def test_names_cannot_drive_the_terminal() -> None:
    """Escape codes and console markup in a name are printed as text, and long names give way to numbers."""
    name = "\x1b[31m[bold]x[/bold]\u202e" + "y" * 60
    text = msgspec.json.encode(samples.realistic())
    for old in (b"smollm2-135m", b"structured_delim", b"paper"):
        text = text.replace(b'"' + old + b'"', msgspec.json.encode(name))
    shown = printed(msgspec.json.decode(text, type=Summary), width=80)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]x[/bold]" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert shown.count("0.14/0.27") == 0
    assert "0.10/0.23" in shown


def test_many_parsers_are_split_over_tables() -> None:
    """Six parsers still fit into 80 columns."""
    summary = samples.realistic()
    more = [msgspec.structs.replace(c, parser=f"lm_eval_filter_{c.parser}") for c in summary.cells]
    names = tuple(f"lm_eval_filter_{p}" for p in summary.parsers)
    wide = msgspec.structs.replace(summary, cells=summary.cells + tuple(more), parsers=summary.parsers + names)
    text = printed(wide, width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert len([line for line in text.splitlines() if line.startswith("wrapper")]) == 4
