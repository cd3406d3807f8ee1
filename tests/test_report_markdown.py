import re

import msgspec
import pytest
import report_samples as samples
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from auditor.figures import Summary
from auditor.report.markdown import escape, summary_markdown
from auditor.report.text import inline

RENDERER = MarkdownIt("commonmark").enable("table")


@given(st.text(st.characters(codec="utf-8"), max_size=40).filter(lambda text: text.strip()))
def test_escaped_text_survives_a_markdown_renderer(text: str) -> None:
    """A name in a table cell comes out of a renderer as the text it is: no markup, no second cell."""
    page = RENDERER.render(f"| a |\n| --- |\n| x{escape(text)}x |\n")
    cell = re.search(r"<td>(.*)</td>", page, re.DOTALL)
    assert cell is not None
    plain = cell[1].replace("<span>$</span>", "$").replace("&lt;", "<").replace("&gt;", ">")
    assert plain.replace("&quot;", '"').replace("&amp;", "&") == f"x{inline(text)}x"


def test_names_stay_readable_in_the_raw_text() -> None:
    """An underscore inside a word is left alone, what would be markup is escaped."""
    assert escape("structured_delim") == "structured_delim"
    assert escape("_a_|`b`<i>") == "\\_a\\_\\|\\`b\\`&lt;i&gt;"


@pytest.mark.parametrize("summary", [samples.realistic(), samples.degenerate(), samples.enforced()])
def test_tables_are_rectangular(summary: Summary) -> None:
    """Every row of a table has as many cells as its head, and no value is None or nan."""
    text = summary_markdown(summary)
    for block in text.split("\n\n"):
        if block.startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    assert "None" not in text
    assert "nan" not in text
    assert text.endswith("\n")


def test_the_tables_show_the_values() -> None:
    """FSI, PSI and the missing replies of the marked wrapper stand in the tables."""
    summary = samples.realistic()
    text = summary_markdown(summary)
    for row in summary.models:
        assert f"| {row.parser} | **{row.fsi:.3f}** |" in text
    assert "| 2,970 | 30 (more than 1 %) |" in text


def test_enforcement_is_told() -> None:
    """Each arm has its label and sentence, each parser a line in the table; without enforcement there is neither."""
    text = summary_markdown(samples.enforced())
    assert "- smollm2-135m (json_schema), **ignored**: The endpoint accepted json_schema and did not enforce it" in text
    assert "| smollm2-135m | grammar | verified | strict | 5 | 15,000 to 15,000 | 0.445 to 0.990 | +0.545 [" in text
    assert text.count("| verified |") == len(samples.PARSERS)
    assert "Enforced" not in summary_markdown(samples.realistic())


def test_hostile_names_do_not_break_out() -> None:
    """A model named with pipes, backticks and HTML changes nothing about the structure."""
    name = 'a|b`c`<img src="x">\n# d'
    text = msgspec.json.encode(samples.realistic()).replace(b'"smollm2-135m"', msgspec.json.encode(name))
    page = RENDERER.render(summary_markdown(msgspec.json.decode(text, type=Summary)))
    assert "<img" not in page
    assert page.count("<table>") == 4
    assert page.count("<h3>") == 2
