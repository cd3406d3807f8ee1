import msgspec
import pytest
import report_samples as samples
from hypothesis import given
from hypothesis import strategies as st

from auditor.figures import SensitivityRow
from auditor.report.parts import Parts, parts

SHARE = st.floats(-0.3, 0.3)


def split(content: float | None, cut: float | None, odd: float | None, fsi: float | None = None) -> Parts:
    total = None if cut is None or odd is None else cut + odd
    changes = {"content_part": content, "format_part": total, "format_truncated": cut, "format_noncompliant": odd}
    row = samples.realistic().sensitivity[0]
    (one,) = parts([msgspec.structs.replace(row, fsi=fsi, **changes)])
    return one


def test_segments_lie_end_to_end() -> None:
    """Content, cut and not as asked for follow each other from 0 to the range: 0.1 + 0.05 + 0.15 = 0.3."""
    one = split(0.1, 0.05, 0.15, 0.3)
    assert [(s.kind, pytest.approx(s.left), pytest.approx(s.right)) for s in one.segments] == [
        ("content", 0.0, 0.1),
        ("truncated", 0.1, 0.15),
        ("noncompliant", 0.15, 0.3),
    ]
    assert (one.against, one.apart) == (False, False)


@given(SHARE, SHARE, SHARE)
def test_segments_are_as_wide_as_parts_above_zero(content: float, cut: float, odd: float) -> None:
    """Each part above zero is a segment of its width, a part below zero has none and is marked."""
    one = split(content, cut, odd)
    widths = [s.right - s.left for s in one.segments]
    assert sum(widths) == pytest.approx(sum(value for value in (content, cut, odd) if value > 0))
    assert one.against == any(value < 0 for value in (content, cut, odd))


def test_parts_that_miss_the_range_are_marked() -> None:
    """Where replies are missing the parts need not add up to FSI, and the row says so."""
    assert split(0.1, 0.05, 0.15, 0.31).apart
    assert not split(0.1, 0.05, 0.15, 0.3004).apart


def test_a_row_without_parts_has_no_bar() -> None:
    """What was not computed is no segment of width 0."""
    assert split(None, None, None, 0.3) == Parts(split(None, None, None, 0.3).row, (), against=False, apart=False)


def test_a_format_part_that_was_not_split_is_one_segment() -> None:
    """An older summary, which does not say what the limit cut, shows the format part whole."""
    row = SensitivityRow(
        "m",
        "t",
        "none",
        "strict",
        ("a", "b"),
        0.3,
        None,
        None,
        None,
        None,
        None,
        (),
        (),
        format_part=0.2,
        content_part=0.1,
    )
    (one,) = parts([row])
    assert [segment.kind for segment in one.segments] == ["content", "noncompliant"]
    assert not one.apart
