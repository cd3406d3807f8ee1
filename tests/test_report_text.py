import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.report.text import (
    count,
    cut,
    inline,
    interval,
    option,
    p_value,
    percent,
    plural,
    rate,
    signed,
    signed_interval,
    visible,
)


@given(st.text())
def test_visible_leaves_no_hidden_character(text: str) -> None:
    """After `visible` only line breaks and tabs are left of all control, format and surrogate characters."""
    left = {unicodedata.category(char) for char in visible(text) if char not in "\n\t"}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text())
def test_visible_is_idempotent(text: str) -> None:
    """What has been made visible stays as it is."""
    assert visible(visible(text)) == visible(text)


def test_visible_names_the_code_point() -> None:
    """A bidi override is shown by its code point, ordinary text of any script is left alone."""
    assert visible("a\u202eb") == "a⟨U+202E⟩b"
    assert visible("\x1b[31m") == "⟨U+001B⟩[31m"
    assert visible("é 日本 🙂\n\tx") == "é 日本 🙂\n\tx"
    assert inline("a\nb") == "a⟨U+000A⟩b"


@given(st.text(), st.integers(2, 50))
def test_cut_keeps_both_ends(text: str, limit: int) -> None:
    """A cut text is its own start and end, and the number left out is right."""
    head, omitted, tail = cut(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + omitted + len(tail) == len(text)
    assert omitted == max(0, len(text) - limit)


@pytest.mark.parametrize("show", [rate, signed, count, percent, p_value])
@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_a_dash(show, value) -> None:
    """A value that is not there is never 0, nan or None."""
    assert show(value) == "–"


def test_numbers_as_a_reader_sees_them() -> None:
    """Rates have three places, counts separated thousands, and a rounded zero has no sign."""
    assert rate(0.3104) == "0.310"
    assert rate(0.0) == "0.000"
    assert rate(-0.0001) == "0.000"
    assert rate(-0.0081) == "-0.008"
    assert rate(0.3104, 2) == "0.31"
    assert interval((0.2, 0.5)) == "[0.200, 0.500]"
    assert interval((0.2, math.nan)) == "–"
    assert count(12000) == "12,000"
    assert count(3.5) == "3.5"
    assert percent(0.612) == "61.2 %"
    assert percent(0.0) == "0.0 %"
    assert p_value(0.00099) == "< 0.001"
    assert p_value(0.0312) == "0.031"
    assert (plural(1, "cell"), plural(2, "cell"), plural(2, "reply", "replies")) == ("1 cell", "2 cells", "2 replies")


def test_a_difference_has_its_sign() -> None:
    """A rise has a plus, a fall a minus, and what rounds to nothing neither."""
    assert (signed(0.87), signed(-0.39, 2), signed(0.0004), signed(-0.0004)) == ("+0.870", "-0.39", "0.000", "0.000")
    assert signed_interval((-0.02, 0.034), 2) == "[-0.02, +0.03]"
    assert signed_interval(None) == signed_interval((0.1, math.nan)) == "–"


def test_options_are_one_line_of_text() -> None:
    """An option that is not set says so; lists and switches read as prose."""
    assert option(None) == option(()) == option("") == "not set"
    assert option(True) == "yes"
    assert option(("json", "plain")) == "json, plain"
    assert option({"reasoning": None}) == '{"reasoning": null}'
    assert option(0) == "0"
