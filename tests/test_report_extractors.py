"""The audit of extractors as a person reads it."""

from __future__ import annotations

import json

from auditor.records import Outcome, Reason
from auditor.report.extractors import as_bytes, as_text
from auditor.tally import Tally

A, B = Outcome("parsed", "A"), Outcome("parsed", "B", needed=("quotes",))
NONE = Outcome("unparseable", reason="no_answer")


def tally(*names: str, gold: bool = True, label: bool = True) -> Tally:
    """Four rows, gold A, of which two are labelled A: the first parser reads A, A, B, none; every other A each time."""
    found = Tally()
    for row, outcome in enumerate((A, A, B, NONE)):
        said = {name: (A if place else outcome) for place, name in enumerate(names)}
        found.add(
            {name: (one, one.value == "A" if gold else None) for name, one in said.items()},
            (A, True if gold else None) if label and row >= 2 else None,
        )
    return found


TEXT = """\
Outcomes
  Rows by what each parser made of them; correct of the rows with gold.
parser                      rows missing  parsed  ambig. unpars.         correct
mine                           4       0       3       0       1             2/4
normalized                     4       0       4       0       0             4/4

Shares
  Of the rows that are not missing. Intervals here and below: Wilson, 95 %, with
  rows as independent; several replies to one question make them too narrow.
parser                    parsed    95 % interval   ambig.  unpars.  correct
mine                       0.750   [0.301, 0.954]    0.000    0.250    0.500
normalized                 1.000   [0.510, 1.000]    0.000    0.000    1.000

Why unparseable
  What stopped each parser, the most frequent reasons first.
mine                    no_answer 1

Agreement
  Rows on which two parsers give the same value, or both none.
parser              and                            same   share    95 % interval
mine                normalized                      2/4   0.500   [0.150, 0.850]

Errors against normalized
  False positive: a value where the reference has none, or has another one.
  False negative: no value where the reference has one. Of the rows both read.
  Credit wrongly given: correct where the reference is not; withheld: the other
  way round. Of the rows both read and whose gold is known.
parser              error                         count   share    95 % interval
mine                false positive                  1/4   0.250   [0.046, 0.699]
                      another value                 1/4   0.250   [0.046, 0.699]
                    false negative                  1/4   0.250   [0.046, 0.699]
                    credit wrongly given            0/4   0.000   [0.000, 0.490]
                    credit withheld                 2/4   0.500   [0.150, 0.850]

From strict to normalized
  What is parsed, and what correct of the rows with gold, tolerating no more.
tolerated                                  parsed   share        correct   share
normalized                                    4/4   1.000            4/4   1.000
"""


def test_the_whole_text() -> None:
    """Sections with a legend, aligned, numbers as worked out by hand."""
    assert as_text(tally("mine", "normalized", label=False).audit()) == TEXT


def test_labels_have_a_section_of_their_own() -> None:
    """Two labelled rows: one read as another value, one not at all."""
    told = as_text(tally("mine", gold=False).audit())
    assert told.split("\n\n")[-1].splitlines()[-3:] == [
        "mine                false positive                  1/2   0.500   [0.095, 0.905]",
        "                      another value                 1/2   0.500   [0.095, 0.905]",
        "                    false negative                  1/2   0.500   [0.095, 0.905]",
    ]
    assert "Errors against hand labels\n" in told
    assert "no gold" in told


def test_tolerances_are_listed() -> None:
    """Needed by one reply, alone, and that one is wrong."""
    told = as_text(tally("normalized", label=False).audit())
    assert "quotes                           1               1                 0/1\n" in told


def test_every_line_fits_80_columns_and_is_plain() -> None:
    """Long names are cut in the middle, so that two of one package stay two; control characters are spelled out."""
    names = [f"python:some_company.extraction.answers:{name}_{'x' * 30}" for name in ("first", "second")]
    told = as_text(tally("\x1b[31m", *(name + name[-4] for name in names), "python:pkg.a:one", "normalized").audit())
    assert max(map(len, told.splitlines())) <= 80
    assert "\x1b" not in told
    assert "⟨U+001B⟩" in told
    longs = as_text(tally("python:some_company.extraction:one", "python:some_company.extraction:two").audit())
    assert {line[:24].strip()[-4:] for line in longs.splitlines() if line.startswith("python:")} >= {":one", ":two"}


def test_json_holds_everything() -> None:
    """The file's suffix decides; what is null has no rows."""
    audit = tally("mine", "normalized", gold=False).audit()
    told = json.loads(as_bytes(audit, ".JSON"))
    assert list(told) == ["rows", "labels", "parsers", "agreement", "comparisons", "tolerances", "ladder"]
    assert told["parsers"][0]["correct"] == {"count": 0, "n": 0, "share": None, "ci": None}
    assert as_bytes(audit, ".txt").decode() == as_text(audit)


def test_no_rows_say_so() -> None:
    """An empty file has no sections."""
    assert as_text(Tally().audit()) == "no rows\n"


def test_a_reason_stays_with_its_count() -> None:
    """Three reasons and the rest, wrapped between them."""
    found = Tally()
    reasons: list[tuple[Reason, int]] = [("truncated_in_reasoning", 4), ("content_in_reasoning", 3)]
    for reason, times in [*reasons, ("placeholder_echo", 2), ("empty", 1), ("refusal", 1)]:
        for _ in range(times):
            found.add({"mine": (Outcome("unparseable", reason=reason), None)})
    assert as_text(found.audit()).split("\n\n")[2].splitlines()[2:] == [
        "mine                    truncated_in_reasoning 4, content_in_reasoning 3,",
        "                        placeholder_echo 2, other reasons 2",
    ]
