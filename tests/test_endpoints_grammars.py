"""Grammars as regex and as GBNF: texts worked out by hand, and both generate the same replies."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.endpoints.grammars import gbnf, regex
from auditor.records import Part

NUMBER = r"(0|-?(0\.[0-9]{0,5}[1-9]|[1-9][0-9]{0,14}(\.[0-9]{0,5}[1-9])?))"
TRICKY = (
    "C++",
    "a.b",
    "(x)",
    "[y]",
    "{z}",
    "p|q",
    "^$",
    "why?*",
    "50%",
    "a\\b",
    'say "hi"',
    "it's",
    "a-b/c",
    "naïve 東",
)


def text(*texts: str) -> Part:
    return Part("text", texts)


# By hand -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "expected_regex", "expected_gbnf"),
    [
        ([Part("one_of", ("A", "B", "C"))], "(A|B|C)", 'root ::= ("A" | "B" | "C")'),
        ([Part("one_of", ("only",))], "only", 'root ::= "only"'),
        (
            [text("answer: "), Part("one_of", ("true", "false"))],
            "answer: (true|false)",
            'root ::= "answer: " ("true" | "false")',
        ),
        (
            [text('{"answer": '), Part("one_of", ('"A"', '"B"')), text("}")],
            r'\{"answer": ("A"|"B")\}',
            r'root ::= "{\"answer\": " ("\"A\"" | "\"B\"") "}"',
        ),
        (
            [text("<BEGIN ANSWER>\n"), text("answer: "), Part("number"), text("\n<END ANSWER>")],
            rf"<BEGIN ANSWER>\nanswer: {NUMBER}\n<END ANSWER>",
            'root ::= "<BEGIN ANSWER>\\n" "answer: " ("0" | "-"? ("0." [0-9]{0,5} [1-9] | [1-9] [0-9]{0,14} '
            '("." [0-9]{0,5} [1-9])?)) "\\n<END ANSWER>"',
        ),
        (
            [Part("lines"), text("answer: "), Part("line")],
            r"([^\n]{1,200}\n){0,6}answer: [^ \n]([^\n]{0,198}[^ \n])?",
            r'root ::= ([^\n]{1,200} "\n"){0,6} "answer: " [^ \n] ([^\n]{0,198} [^ \n])?',
        ),
        ([Part("string")], r'"[^"\\\x00-\x1f]{0,200}"', r'root ::= "\"" [^"\\\x00-\x1F]{0,200} "\""'),
    ],
    ids=["labels", "one label", "field", "json", "block", "final line", "string"],
)
def test_parts_in_both_languages(parts: list[Part], expected_regex: str, expected_gbnf: str) -> None:
    """Character by character."""
    assert (regex(parts), gbnf(parts)) == (expected_regex, expected_gbnf)


def test_what_means_something_in_a_regex_is_escaped_and_nothing_else() -> None:
    """Dialects differ in what an escaped space, dash, quote or letter is; a newline is written as two characters."""
    assert regex([text(r"\.^$*+?{}[]|()")]) == r"\\\.\^\$\*\+\?\{\}\[\]\|\(\)"
    plain = "aZ09 -_/:;,<>=!@#%&'\"`~é東"
    assert regex([text(plain)]) == plain
    assert regex([text("a\nb")]) == "a\\nb"


def test_what_ends_a_string_in_gbnf_is_escaped() -> None:
    """Quotation mark, backslash and the three control characters that a literal may hold; nothing twice."""
    assert gbnf([text('a"b')]) == r'root ::= "a\"b"'
    assert gbnf([text("a\\b")]) == r'root ::= "a\\b"'
    assert gbnf([text("a\\nb")]) == r'root ::= "a\\nb"'
    assert gbnf([text("a\nb\rc\td")]) == r'root ::= "a\nb\rc\td"'
    assert gbnf([text("[a-z]{2} | x ::= 'é'")]) == "root ::= \"[a-z]{2} | x ::= 'é'\""


# Laws ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=5))
def test_a_regex_of_texts_matches_these_and_no_other(texts: list[str]) -> None:
    """Whatever characters labels are made of."""
    pattern = re.compile(regex([Part("one_of", tuple(texts))]))
    for one in texts:
        assert pattern.fullmatch(one)
        assert bool(pattern.fullmatch(f"{one}x")) == (f"{one}x" in texts)
        assert bool(pattern.fullmatch(one[1:])) == (one[1:] in texts)


def read_gbnf(grammar: str) -> str:
    """A regex for a grammar whose only rule is the root: literals, character classes, groups, counts.

    White space between the pieces is all that a regular expression would not read the same.
    """
    assert grammar.startswith("root ::= ")
    pieces = re.findall(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[0-9,]+\}|[()|?]|\s+|.', grammar[9:], re.DOTALL)
    unescaped = {"\\n": "\n", "\\r": "\r", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
    found = []
    for piece in pieces:
        if piece.startswith('"'):
            literal = re.sub(r"\\.", lambda match: unescaped[match[0]], piece[1:-1])
            found.append(f"(?:{re.escape(literal)})")
        elif not piece.isspace():
            assert len(piece) > 1 or piece in "()|?", f"{piece!r} is no GBNF"
            found.append(piece)
    return "".join(found)


kinds = st.sampled_from(["number", "line", "string", "lines"])
parts = st.lists(
    kinds.map(lambda kind: Part(kind))  # type: ignore[arg-type]
    | st.sampled_from(TRICKY).map(lambda one: Part("text", (one,)))
    | st.lists(st.sampled_from(TRICKY), min_size=1, max_size=4).map(lambda some: Part("one_of", tuple(some)))
    | st.text(st.sampled_from('ab"\\\n\r\t[](){}|*+?.^$'), min_size=1, max_size=6).map(
        lambda one: Part("text", (one,))
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(parts, st.data())
def test_both_languages_generate_the_same_replies(some: list[Part], data: st.DataObject) -> None:
    """What one generates, the other does too: read by a few lines that know only this much of GBNF."""
    one, other = regex(some), read_gbnf(gbnf(some))
    for pattern, judge in ((one, other), (other, one)):
        reply = data.draw(st.from_regex(pattern, fullmatch=True))
        assert re.fullmatch(judge, reply)


@settings(max_examples=200, deadline=None)
@given(st.from_regex(regex([Part("number")]), fullmatch=True))
def test_a_number_is_written_in_one_way(reply: str) -> None:
    """No leading zero, no zero at the end of a fraction, no plus, no exponent, at most 15 and 6 digits."""
    whole, _, fraction = reply.removeprefix("-").partition(".")
    assert whole == "0" or not whole.startswith("0")
    assert not fraction.endswith("0")
    assert (len(whole) <= 15, len(fraction) <= 6) == (True, True)
    assert reply.isascii()


def test_free_text_is_bounded_and_keeps_to_its_line() -> None:
    """A small model cannot run on until its limit."""
    line, string, lines = (regex([Part(kind)]) for kind in ("line", "string", "lines"))
    assert re.fullmatch(line, "x" * 200)
    assert not re.fullmatch(line, "x" * 201)
    assert not re.fullmatch(line, "")
    assert not re.fullmatch(line, "a\nb")
    assert re.fullmatch(string, '""')
    assert not re.fullmatch(string, '"a"b"')
    assert not re.fullmatch(string, '"a\\"')
    assert re.fullmatch(lines, "")
    assert re.fullmatch(lines, "why\n" * 6)
    assert not re.fullmatch(lines, "why\n" * 7)
    assert not re.fullmatch(lines, "why")
