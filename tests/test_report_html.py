from html.parser import HTMLParser
from typing import get_args

import msgspec
import pytest
import report_samples as samples

from auditor.figures import Summary
from auditor.records import Message, Reason
from auditor.report.glossary import REASONS
from auditor.report.html import render_html
from auditor.report.text import signed, signed_interval

HOSTILE = "<script>alert(1)</script>{{7*7}}{% raw %}\u202e\u2066]]>\"'><img src=x onerror=alert(1)>\x07&lt;"
STUDY = {
    "models": ("local/a", "local/b"),
    "seeds": 5,
    "stop": (),
    "cache": None,
    "base_url": "http://127.0.0.1:8000/v1",
}
TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "nav", "section", "article", "h1", "h2", "h3",
    "h4", "h5", "p", "span", "a", "small", "strong", "code", "pre", "dl", "div", "dt", "dd", "table", "thead", "tbody",
    "tr", "th", "td", "i", "b", "sup", "br", "details", "summary", "figure", "figcaption", "ol", "ul", "li", "mark",
}  # fmt: skip
VOID = {"meta", "br", "img"}


class Page(HTMLParser):
    """What a browser sees: elements with attributes, their texts by class, and whether tags are balanced."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.by_class: dict[str, list[str]] = {}
        self.open: list[tuple[str, dict[str, str]]] = []
        self.pre: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found))
        if tag not in VOID:
            self.open.append((tag, found))
            for name in found.get("class", "").split():
                self.by_class.setdefault(name, []).append("")
            if tag == "pre":
                self.pre.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] == "style":
            return
        self.text += data
        if any(tag == "pre" for tag, _ in self.open):
            self.pre[-1] += data
        for name in {name for _, attrs in self.open for name in attrs.get("class", "").split()}:
            self.by_class[name][-1] += data


def hostile(summary: Summary) -> Summary:
    """The same summary with every name replaced by one that attacks the page."""
    text = msgspec.json.encode(summary)
    for name in (b"smollm2-135m", b"arithmetic", b"structured_delim", b"paper", b"two-small-models", b"token limit"):
        text = text.replace(b'"' + name + b'"', msgspec.json.encode(HOSTILE + name.decode()))
    return msgspec.json.decode(text, type=Summary)


@pytest.fixture(scope="module")
def realistic() -> Page:
    return Page(render_html(samples.realistic(), samples.examples(), STUDY))


@pytest.fixture(scope="module")
def attacked() -> Page:
    examples = (
        samples.example(HOSTILE),
        samples.example(HOSTILE, HOSTILE, model=HOSTILE, item=HOSTILE, gold=HOSTILE, finish_reason=HOSTILE),
    )
    return Page(render_html(hostile(samples.realistic()), examples, {HOSTILE: HOSTILE}))


@pytest.fixture(scope="module")
def enforced() -> Page:
    return Page(render_html(samples.enforced(), samples.examples(), STUDY))


@pytest.fixture(scope="module")
def attacked_arms() -> Page:
    text = msgspec.json.encode(samples.enforced())
    for name in (*samples.CANARIES.values(), "grammar", "json_schema", "smollm2-135m", "b6002-1a2b3c4", "DeepInfra"):
        text = text.replace(f'"{name}"'.encode(), msgspec.json.encode(HOSTILE + name))
    # The enforcement of a canary is a closed set; only arms are free names.
    for name in ("grammar", "json_schema"):
        text = text.replace(b'"enforce":' + msgspec.json.encode(HOSTILE + name), f'"enforce":"{name}"'.encode())
    return Page(render_html(msgspec.json.decode(text, type=Summary), (), {}))


@pytest.fixture(scope="module")
def nothing() -> Page:
    return Page(render_html(samples.degenerate(), (), {}))


@pytest.mark.parametrize("page", ["realistic", "attacked", "nothing", "enforced", "attacked_arms"])
def test_the_page_is_well_formed_and_inert(page: str, request: pytest.FixtureRequest) -> None:
    """Tags are balanced, only plain elements occur, there is no script or handler, and links stay on the page."""
    found: Page = request.getfixturevalue(page)
    assert not found.open
    assert {tag for tag, _ in found.elements} <= TAGS
    for tag, attrs in found.elements:
        assert not [name for name in attrs if name.startswith("on") or name in ("src", "srcset", "action", "data")]
        assert attrs.get("href", "#").startswith("#"), tag


def test_the_page_forbids_what_it_does_not_need(realistic: Page) -> None:
    """The policy of the page allows inline style and data images, nothing else, and stands before any style."""
    tags = [(tag, attrs) for tag, attrs in realistic.elements if tag in ("meta", "style")]
    position = next(n for n, (_, attrs) in enumerate(tags) if attrs.get("http-equiv") == "Content-Security-Policy")
    policy = tags[position][1]["content"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert position < next(n for n, (tag, _) in enumerate(tags) if tag == "style")


def test_nothing_is_loaded_from_elsewhere() -> None:
    """No address occurs in the page but those that are text."""
    page = render_html(samples.realistic(), samples.examples(), STUDY)
    assert page.count("http://") == 1  # the study's base_url, as text
    assert "https://" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_text_is_shown_and_never_obeyed(attacked: Page) -> None:
    """Markup, template syntax and hidden characters of names and replies are shown as what they are."""
    shown = HOSTILE.replace("\u202e", "⟨U+202E⟩").replace("\u2066", "⟨U+2066⟩").replace("\x07", "⟨U+0007⟩")
    assert "\n" + shown in attacked.pre
    assert shown + "smollm2-135m" in attacked.text
    assert "\u202e" not in attacked.text
    assert "49" not in attacked.by_class["verdict"][0]
    titles = [attrs[name] for _, attrs in attacked.elements for name in ("title", "aria-label") if name in attrs]
    assert any(shown in title for title in titles)
    assert not any("\u202e" in title for title in titles)


@pytest.mark.parametrize("page", ["realistic", "nothing", "enforced"])
def test_a_value_that_is_not_there_is_a_dash(page: str, request: pytest.FixtureRequest) -> None:
    """The words None and nan never stand for a value."""
    words = set(request.getfixturevalue(page).text.replace("[", " ").replace("]", " ").split())
    assert not words & {"None", "nan", "NaN", "inf", "Undefined"}


def test_a_null_tells_why(nothing: Page) -> None:
    """Each dash carries its reason, and leads to the warning that says so."""
    nulls = [attrs for _, attrs in nothing.elements if attrs.get("class") == "null"]
    assert len(nulls) > 20
    assert all(attrs["title"] for attrs in nulls)
    targets = {attrs["href"] for attrs in nulls if "href" in attrs}
    ids = {"#" + attrs["id"] for _, attrs in nothing.elements if "id" in attrs}
    assert targets == {"#warning-1", "#warning-2"}
    assert targets <= ids
    assert "0.000" not in nothing.text


def test_the_card_shows_the_values(realistic: Page) -> None:
    """FSI, FSI*, PSI and nFSI with their intervals, in the order of models and parsers, equal the summary's."""
    summary = samples.realistic()
    expected = [
        f"{value:.3f} [{ci[0]:.3f}, {ci[1]:.3f}]"
        for row in summary.models
        for value, ci in (
            (row.fsi, row.fsi_ci_paper),
            (row.fsi_star, row.fsi_star_ci),
            (row.psi, row.psi_ci_paper),
            (row.nfsi, row.nfsi_ci_paper),
        )
        if value is not None and ci is not None
    ]
    assert len(expected) == 24
    assert realistic.by_class["score"] == expected


def test_the_cells_show_the_values(realistic: Page) -> None:
    """Every cell's accuracy and parseability stand in the tables with their intervals, in order."""
    expected = [
        f"{value:.3f}[{low:.3f}, {high:.3f}]"
        for model in samples.MODELS
        for task in samples.TASKS
        for cell in samples.realistic().cells
        if (cell.model, cell.task) == (model, task)
        for value, (low, high) in (
            (cell.accuracy, cell.accuracy_ci),
            (cell.parseability, cell.parseability_ci),
        )
    ]
    cells = [text for text in realistic.by_class["rate"] if "[" in text and "\n" not in text]
    assert cells == expected


def test_enforcement_is_shown_with_its_proof(enforced: Page, realistic: Page) -> None:
    """Every arm has its label as a word and the canary's words; a run without enforcement has no such section."""
    assert enforced.by_class["verified"][0] == "✓ verified"
    assert enforced.by_class["ignored"][0] == "▲ ignored"
    assert f"Canary: {samples.CANARIES['ignored']}" in enforced.text
    assert "Enforced while decoding" not in realistic.text


def test_the_contrasts_show_the_values(enforced: Page) -> None:
    """For every parser and arm the rates without and with, and both changes with their intervals, are the summary's."""
    rows = samples.enforced().enforcement
    ordered = [row for parser in samples.PARSERS for row in rows if row.parser == parser]
    assert enforced.by_class["share"] == [
        f"{value:.3f}"
        for row in ordered
        for value in (row.parseability_without, row.accuracy_without, row.parseability, row.accuracy)
    ]
    shown = [text.replace("\N{MINUS SIGN}", "-") for text in enforced.by_class["change"]]
    assert shown[0] == "+0.545 [+0.525, +0.565]"
    assert shown == [
        f"{signed(with_ - without)} {signed_interval(ci)}"
        for row in ordered
        for with_, without, ci in (
            (row.parseability, row.parseability_without, row.parseability_change_ci),
            (row.accuracy, row.accuracy_without, row.accuracy_change_ci),
        )
        if with_ is not None and without is not None
    ]


def test_a_range_of_one_enforced_wrapper_is_a_dash_with_its_reason() -> None:
    """PSI and FSI of an arm with one wrapper, with and without, lead to the warning that explains them."""
    page = Page(render_html(samples.enforced(), (), {}))
    reasons = [attrs["href"] for _, attrs in page.elements if attrs.get("title") == "one wrapper is no range"]
    assert len(reasons) == 6 * len(samples.PARSERS)
    assert set(reasons) == {"#warning-4"}


def test_only_the_leading_arm_stands_open(enforced: Page, realistic: Page) -> None:
    """Cards and cells of enforced arms are folded away; those without enforcement are not."""
    assert [text.split()[:2] for text in enforced.by_class["arm"][:3]] == [
        ["smollm2-135m", "(grammar)"],
        ["smollm2-135m", "(json_schema)"],
        ["gemma-3-270m", "(grammar)"],
    ]
    assert len(enforced.by_class["arm"]) == 6
    assert "arm" not in realistic.by_class


def test_unreadable_cards_are_marked(realistic: Page) -> None:
    """A card whose parser read nothing says that its FSI of 0 means nothing."""
    told = "could read hardly a reply, if any: an FSI of 0 means nothing there."
    assert Page(render_html(samples.unread(), (), {})).text.count(f"strict {told}") == 1
    assert told not in realistic.text


def test_the_parts_of_fsi_are_shown(realistic: Page) -> None:
    """Under every parser and for every task, content part and format part, and the two halves of the latter."""
    summary = samples.realistic()
    expected = [
        f"{value:.3f}"
        for parser in samples.PARSERS
        for row in summary.sensitivity
        if row.parser == parser
        for value in (row.content_part, row.format_part, row.format_truncated, row.format_noncompliant)
    ]
    assert realistic.by_class["part"] == expected
    assert len(realistic.by_class["stacked"]) == len(summary.sensitivity)


def test_parts_of_no_range_are_dashes_with_its_reason() -> None:
    """Where there is no FSI its four parts are dashes that lead to the warning about FSI."""
    page = render_html(samples.enforced(), (), {})
    dash = '<td class="num part"><a class="null" href="#warning-5" title="a range over wrappers needs two">'
    assert page.count(dash) == 4 * len(samples.TASKS) * len(samples.PARSERS)


def test_who_answered_is_shown(enforced: Page, realistic: Page) -> None:
    """Endpoints stand under how this was run: what was sent otherwise, a changed server and an ignored seed."""
    for told in (
        "DeepInfra (29,000 replies), Together (1 reply)",
        "max_tokens = 24 was sent as max_completion_tokens: Unsupported parameter: 'max_tokens'",
        "temperature = 0.7 was left out: only the default (1) is supported",
        '{"only": ["deepinfra"], "allow_fallbacks": false}',
        "3 ▲ the server changed during the run",
        "▲ ignored: asked twice with one seed, it gave two replies; the seeds of this run are mere repetitions",
        "of 63,000 planned, 1,200 of them taken from an earlier run",
        "412 tried again, 14 to check the endpoints",
    ):
        assert told in enforced.text
    assert "Endpoints" not in realistic.text


def test_missing_cells_are_marked(realistic: Page) -> None:
    """The wrapper with a cell of 3 % missing is marked in the average, in its task's table and in its panel, for
    that model alone."""
    marks = [text for text in realistic.by_class["mark"] if text == "▲ 30"]
    assert len(marks) == 2
    assert len(realistic.by_class["lossy"]) == 2
    assert realistic.text.count("n = 970 to 1,000 a wrapper, 30 missing") == 1


def test_examples_stand_under_their_reason(realistic: Page) -> None:
    """Replies are shown verbatim beside their prompt, a reply without text is said to be empty."""
    assert '```json\n{"answer": "A"}\n```' in "".join(realistic.pre)
    assert "What is 3 + 4?\nA. 7\nB. 8" in "".join(realistic.pre)
    assert "A⟨U+202E⟩B⟨U+0007⟩" in "".join(realistic.pre)
    assert "The reply is an empty text." in realistic.text
    assert "2 shown" in realistic.text


def test_a_leading_line_break_of_a_reply_is_kept() -> None:
    """A reply that begins with a line break still does, although a browser drops the first one in a pre."""
    page = render_html(samples.realistic(), (samples.example("\nA"),), {})
    assert '<pre class="reply">\n\nA</pre>' in page


def test_a_long_reply_is_cut_in_the_middle() -> None:
    """Of a reply of 50,000 characters 2,000 are shown, and the cut is noted."""
    page = Page(render_html(samples.realistic(), (samples.example("a" * 25000 + "b" * 25000),), {}))
    reply = page.by_class["reply"][0]
    assert (reply.count("a"), reply.count("b")) == (1200 + "characters left out".count("a"), 800)
    assert "48,000 characters left out" in reply


def test_a_long_conversation_keeps_its_ends() -> None:
    """Of 20 messages the first and last three are shown, and the others counted."""
    prompt = tuple(Message("user", f"turn {n}.") for n in range(20))
    page = Page(render_html(samples.realistic(), (samples.example("A", prompt=prompt),), {}))
    assert [text.strip() for text in page.pre[:-1]] == [f"turn {n}." for n in (0, 1, 2, 17, 18, 19)]
    assert "14 messages left out" in page.text


def test_too_many_examples_are_left_out() -> None:
    """Examples past the budget are left out, counted, and the file stays below 5 MB."""
    many = [samples.example("<" * 1900, item=f"number {n}") for n in range(1000)]
    page = render_html(samples.realistic(), many, {})
    shown = page.count("item number ")
    assert 450 < shown < 520
    assert f"{1000 - shown} more examples are left out" in page
    assert len(page.encode()) < 5_000_000


def test_reasons_are_explained() -> None:
    """Every reason of the closed list has an explanation, and no other word has one."""
    assert set(REASONS) == set(get_args(Reason))


def test_rankings_need_two_models(realistic: Page, nothing: Page) -> None:
    """Rankings appear only with several models, and say where the first one changes."""
    assert "the first model depends on the wrapper" in realistic.text
    assert "Rankings" not in nothing.text


def test_a_regression_that_failed_says_why(realistic: Page) -> None:
    """A regression without result shows its status in place of numbers."""
    assert "parseability does not vary enough to fit a slope" in realistic.text


def test_the_study_is_shown(realistic: Page) -> None:
    """Options stand under how this was run; one that is not set says so."""
    assert "http://127.0.0.1:8000/v1" in realistic.text
    assert realistic.text.count("not set") == 2


def test_the_page_is_small() -> None:
    """A report of 90 cells is below 250 kB."""
    assert len(render_html(samples.realistic(), samples.examples(), STUDY).encode()) < 250_000
