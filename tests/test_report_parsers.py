"""What the parser changes, in words, in the page, in the terminal and in markdown."""

from __future__ import annotations

import io

import msgspec
import pytest
import report_samples as samples
from rich.console import Console

from auditor import order
from auditor.figures import CellRow, Counts, ModelRow, RunInfo, SensitivityRow, Summary, TokenSpread
from auditor.report.headline import headline
from auditor.report.html import render_html
from auditor.report.markdown import summary_markdown
from auditor.report.parsers import LISTED, effect, scores
from auditor.report.parsers import order as order_told
from auditor.report.terminal import print_summary

Scores = dict[str, dict[str, tuple[tuple[float, float], tuple[float, float]]]]
"""Parser -> model -> (accuracy, parseability) under plain and under json."""

TURNED: Scores = {
    "strict": {"a": ((0.0, 0.0), (0.0, 0.0)), "b": ((0.5, 0.75), (0.25, 0.5))},
    "paper": {"a": ((0.25, 0.5), (0.0, 0.25)), "b": ((0.5, 0.75), (0.25, 0.5))},
    "normalized": {"a": ((0.75, 1.0), (0.5, 1.0)), "b": ((0.5, 0.75), (0.375, 0.75))},
}


def summary(told: Scores) -> Summary:
    """One task, two wrappers, so that FSI is the difference of two accuracies."""
    cells, tasks, models = [], [], []
    for parser, by_model in told.items():
        for model, rates in by_model.items():
            cells += [
                CellRow(model, "t", wrapper, "none", parser, 8, 8, None, None, accuracy, None, None, readable, None, 0,
                        None, None, None, None, {})
                for wrapper, (accuracy, readable) in zip(("plain", "json"), rates, strict=True)
            ]  # fmt: skip
            (high, most), (low, least) = rates
            ranges = (high - low, most - least, 0.0)
            tasks.append(
                SensitivityRow(model, "t", "none", parser, ("plain", "json"), *ranges, low, high, (low + high) / 2,
                               ("plain",), ("json",))
            )  # fmt: skip
            models.append(ModelRow(model, "none", parser, 1, ranges[0], None, ranges[1], None, 0.0, None))
    placed = order.placed(models, cells)
    return Summary(
        1, RunInfo("r", "2026-01-01", "0", "sha256:0", 0), Counts(48, 48, 0, 48, 0, 0, 0), (), tuple(told),
        tuple(cells), tuple(tasks), tuple(placed), (), (), (), (), TokenSpread(None, None, 0, None), (), (),
        order_changes=tuple(order.order_changes(placed, cells)),
    )  # fmt: skip


def only(parser: str) -> Summary:
    return summary({parser: TURNED[parser]})


def printed(told: Summary) -> str:
    out = io.StringIO()
    print_summary(told, Console(file=out, width=80))
    return out.getvalue()


def test_each_models_fsi_is_told_under_each_parser() -> None:
    """FSI is 0.75 - 0.5 of a under normalized and so on; where nothing could be read, that is the reason of its 0."""
    assert effect(summary(TURNED)) == (
        "Read by strict, FSI of a is 0.00 because nothing could be read; read by paper, FSI is 0.25 and PSI 0.25; "
        "read by normalized, FSI is 0.25 and PSI 0.00.",
        "Read by strict, FSI of b is 0.25 and PSI 0.25; read by paper, FSI is 0.25 and PSI 0.25; read by normalized, "
        "FSI is 0.12 and PSI 0.00.",
        "The order of b and a turns round between strict and normalized (apparent: no test).",
    )


def test_hardly_a_reply_is_told_from_none() -> None:
    """One reply in twenty under the best wrapper is not nothing, and its FSI is no better."""
    few: Scores = {"p": {"m": ((0.05, 0.05), (0.0, 0.0))}, "q": {"m": ((0.5, 1.0), (0.25, 1.0))}}
    assert effect(summary(few))[0].startswith(
        "Read by p, FSI of m is 0.05, where hardly a reply could be read; read by q"
    )


def test_without_gold_the_readable_share_is_told() -> None:
    """Where no FSI is known, the sentence is about the mean share of readable replies."""
    known = summary(TURNED)
    models = tuple(msgspec.structs.replace(row, fsi=None) for row in known.models if row.model == "b")
    cells = tuple(cell for cell in known.cells if cell.model == "b")
    assert effect(msgspec.structs.replace(known, models=models, cells=cells, order_changes=())) == (
        "Read by strict, the share of readable replies of b is 0.62; read by paper, the share of readable replies is "
        "0.62; read by normalized, the share of readable replies is 0.75.",
    )


def test_of_many_parsers_the_ends_are_told() -> None:
    """Of five parsers: the one that read nothing, the least and the largest FSI."""
    rates = {"p": 0.25, "q": 0.5, "r": 0.125, "s": 0.375}
    told: Scores = {name: {"m": ((fsi, 1.0), (0.0, 1.0))} for name, fsi in rates.items()}
    assert effect(summary({"z": {"m": ((0.0, 0.0), (0.0, 0.0))}, **told})) == (
        "Read by z, FSI of m is 0.00 because nothing could be read; read by q, FSI is 0.50 and PSI 0.00; read by r, "
        "FSI is 0.12 and PSI 0.00.",
    )


def test_of_many_models_the_most_changed_is_told() -> None:
    """Of four models, m3 changes its FSI from 0.125 to 0.5, the others by less; with no change nothing is said."""
    second = {f"m{n}": ((0.125 * (n + 1), 1.0), (0.0, 1.0)) for n in range(4)}
    first = dict.fromkeys(second, ((0.125, 1.0), (0.0, 1.0)))
    told = scores(summary({"p": first, "q": second}), ("p", "q"))
    assert told == (
        "Of 4 models, the parser moves FSI of m3 most.",
        "Read by p, FSI of m3 is 0.12 and PSI 0.00; read by q, FSI is 0.50 and PSI 0.00.",
    )
    assert scores(summary({"p": first, "q": first}), ("p", "q")) == ()


def test_several_orders_are_counted_by_pairs_of_models() -> None:
    """Four models in the opposite order are six pairs, three of them named, whatever the number of parsers."""
    up = {f"m{n}": ((0.125 * (n + 1), 1.0), (0.0, 1.0)) for n in range(4)}
    down = {f"m{n}": ((0.125 * (4 - n), 1.0), (0.0, 1.0)) for n in range(4)}
    told = order_told(summary({"p": up, "q": down, "r": down}))
    assert told == (
        "The order of 6 pairs of models turns round with the parser (apparent: no test): m1 and m0 between p and q; "
        "m2 and m0 between p and q; m3 and m0 between p and q, and 3 more."
    )


def test_the_verdict_tells_it_once() -> None:
    """The verdict says what could not be read, never an FSI of 0 for it, and what other parsers make of it."""
    told = headline(summary(TURNED))
    assert told[0].startswith("No reply of a was readable under the strict parser, whatever the wrapper")
    assert told[1].startswith("Read by paper, FSI of a is 0.25 and PSI 0.25; read by normalized,")
    assert told[2] == "The order of b and a turns round between strict and normalized (apparent: no test)."
    assert "FSI of a is 0.00" not in " ".join(told)


@pytest.mark.parametrize("render", [printed, summary_markdown])
def test_a_text_says_it_too(render: object) -> None:
    """Terminal and markdown have both sentences, and at the card of a that its FSI of 0 means nothing."""
    text = " ".join(render(summary(TURNED)).split())  # type: ignore[operator]
    assert "Read by paper, FSI of a is 0.25 and PSI 0.25" in text
    assert "The order of b and a turns round between strict and normalized (apparent: no test)." in text
    assert text.count("strict could read hardly a reply, if any: an FSI of 0 means nothing there.") == 1


def test_the_page_has_a_row_for_each_model_and_parser() -> None:
    """Accuracy, readable share, FSI, PSI and place stand in the order of models and parsers; both changes below."""
    page = render_html(summary(TURNED), (), {})
    section = page[page.index('<section id="parsers">') : page.index('<section id="wrappers">')]
    places = [part.partition("<")[0] for part in section.split('<td class="num place">')[1:]]
    assert places == ["2", "2", "1", "1", "1", "2"]
    means = [part.partition("<")[0] for part in section.split('<span class="val">')[1:]]
    assert means == [
        "0.000", "0.000", "0.125", "0.375", "0.625", "1.000",
        "0.375", "0.625", "0.375", "0.625", "0.438", "0.750",
    ]  # fmt: skip
    ranges = [part.partition("<")[0] for part in section.split('<td class="num moves">')[1:]]
    assert ranges[4:] == ["0.250", "0.000", "0.250", "0.250", "0.250", "0.250", "0.125", "0.000"]
    assert section.count("▲ no reply read") == 1
    assert section.count(" before ") == 4
    assert '<small>normalized</small> <strong>a</strong> <span class="ci">0.625</span> before b' in section


def test_one_parser_has_no_such_section() -> None:
    """With one parser there is nothing to compare: no section, no link to it, no sentence."""
    page = render_html(only("normalized"), (), {})
    assert "What the parser changes" not in page
    assert 'href="#parsers"' not in page
    assert effect(only("normalized")) == ()
    assert 'href="#parsers"' in render_html(summary(TURNED), (), {})


def test_one_model_has_no_column_of_places() -> None:
    """Alone, a model is shown under each parser without a place, and no change of places is denied."""
    alone = summary({parser: {"a": by["a"]} for parser, by in TURNED.items()})
    page = render_html(alone, (), {})
    assert "What the parser changes" in page
    assert 'class="num place"' not in page
    assert "No two models change places" not in page
    assert "No two models change places" in render_html(samples_placed(), (), {})


def samples_placed() -> Summary:
    base = samples.realistic()
    return msgspec.structs.replace(base, models=tuple(order.placed(base.models, base.cells)))


def test_names_in_the_section_are_escaped() -> None:
    """Markup in the names of models and parsers is shown as what it is, in sentence, table and changes."""
    names = {"a": "<script>x</script>", "strict": "<b>&\u202e"}
    told: Scores = {
        names.get(parser, parser): {names.get(model, model): rates for model, rates in by.items()}
        for parser, by in TURNED.items()
    }
    page = render_html(summary(told), (), {})
    section = page[page.index('<section id="parsers">') : page.index('<section id="wrappers">')]
    assert "<script>" not in section
    assert "<b>&" not in section
    assert "\u202e" not in section
    assert section.count("&lt;script&gt;x&lt;/script&gt;") > 5


def test_a_long_list_of_changes_is_cut() -> None:
    """Ten models in the opposite order are 45 changes: some are listed, the others counted."""
    up = {f"m{n}": ((n / 16, 1.0), (0.0, 1.0)) for n in range(10)}
    down = {f"m{n}": ((1 - n / 16, 1.0), (0.0, 1.0)) for n in range(10)}
    page = render_html(summary({"p": up, "q": down}), (), {})
    assert page.count("</span> before ") == 2 * LISTED
    assert f"{45 - LISTED} more are left out here" in page
