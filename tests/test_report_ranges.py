"""The section on spreads: when it is there, what it says, and what a hostile name does."""

from __future__ import annotations

import msgspec
import pytest
import report_samples as samples
from test_ranges import TABLE, Table, cells
from test_report_terminal import printed

from auditor import ranges
from auditor.figures import Summary
from auditor.report.html import render_html
from auditor.report.markdown import summary_markdown
from auditor.report.ranges import by_parser, sentence, shown


def summary(table: Table, parser: str = "given") -> Summary:
    """Nothing but these cells, and what is made of them."""
    found = cells(table, parser)
    return msgspec.structs.replace(
        samples.degenerate(),
        parsers=(parser,),
        cells=tuple(found),
        spreads=tuple(ranges.spreads(found)),
        gains=tuple(ranges.gains(found)),
        firsts=tuple(ranges.firsts(found)),
        sensitivity=(),
        models=(),
    )


def wide(wrappers: int) -> Table:
    return {("m", "t"): {f"w{i}": i / 100 for i in range(wrappers)}}


@pytest.mark.parametrize(
    ("table", "parser", "there"),
    [(TABLE, "given", True), (TABLE, "strict", False), (wide(5), "strict", False), (wide(6), "strict", True)],
)
def test_when_it_is_shown(table: Table, parser: str, there: bool) -> None:
    """Where there is nothing but cells, or six wrappers or more; nowhere else."""
    found = summary(table, parser)
    page = render_html(found, (), {})
    assert (shown(found), bool(by_parser(found)), bool(sentence(found))) == (there,) * 3
    assert ('<section id="spreads">' in page, 'href="#spreads"' in page) == (there, there)
    assert ("Spread of accuracy" in printed(found), "Spread of accuracy" in summary_markdown(found)) == (there, there)


def test_the_sentence() -> None:
    """The widest spread with its ends, and whether any model can be put first, task by task."""
    assert sentence(summary(TABLE)) == (
        "Spread of accuracy over up to 3 wrappers (given): 0.300 to 0.700, the widest for m in t2, from c to a. "
        "Can the choice of one wrapper put any model first: yes in t1, t2."
    )
    held: Table = {("x", "MMLU"): {"a": 0.9, "b": 0.8}, ("y", "MMLU"): {"a": 0.1, "b": 0.1}}
    assert sentence(summary(held)).endswith("put any model first: no in MMLU.")
    both = sentence(summary(TABLE | held))
    assert both.endswith("put any model first: yes in t1, t2; no in MMLU.")


def test_the_page_says_formulas_gains_and_firsts() -> None:
    """Both deviations under their names, the gain with its sign, and who is first under how many wrappers."""
    page = render_html(summary(TABLE), (), {})
    for part in ("SD, sample", "SD, population", "0.3000", "0.2449", "+0.1000", "2 of 3", "any model can be put first"):
        assert part in page


def test_a_hostile_name_is_only_text() -> None:
    """Markup in the name of a wrapper is shown, never obeyed."""
    bad = "<script>alert(1)</script>"
    found = summary({("m", "t"): {bad: 0.5, "b": 0.25}, ("n", "t"): {bad: 0.75, "b": 0.25}})
    page = render_html(found, (), {})
    assert ("<script" in page, "&lt;script&gt;" in page) == (False, True)
    assert "<script" not in summary_markdown(found)
