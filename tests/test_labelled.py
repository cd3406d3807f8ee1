"""Real replies that two readers labelled, and what the parsers make of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "labelled"))

from labelled import lines, rows

from auditor.border import compare_parsers
from auditor.labels import identity, read_labels
from auditor.tally import LABEL, Audit

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"
LABELS = HERE / "labelled" / "labels.jsonl"
PARSERS = ("strict", "paper", "paper_unscoped", "normalized", "custom_extract", "lm_eval_multi_choice")


def test_every_reply_has_one_label() -> None:
    """400 replies of two draws, every wrapper equally often, and a label for each of them."""
    replies, labels = lines("replies.jsonl"), read_labels(LABELS)
    assert len(replies) == len(labels) == 400
    assert {(r["model"], r["task"], r["item"], r["wrapper"], "none", r["seed"]) for r in replies} == set(labels)
    assert all(identity(label) == key for key, (_, label) in labels.items())
    for name in ("plain", "json", "structured", "structured_delim", "deliberate"):
        assert sum(reply["wrapper"] == name for reply in replies) == 80


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    if not DATA.is_dir():
        pytest.skip("the task files that the replies answer are not here")
    path = tmp_path_factory.mktemp("labelled") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(DATA)), "utf-8")
    return compare_parsers(path, PARSERS, (), LABELS, None, lambda _: None, lambda _: None)


def test_normalized_agrees_with_the_labels_and_hardly_ever_invents(audit: Audit) -> None:
    """At most 1 % of values are not what the readers saw, none is another value, and 9 of 10 labels are met."""
    found = {one.parser: one for one in audit.comparisons if one.reference == LABEL}
    normalized = found["normalized"]
    assert normalized.n == 400
    assert normalized.false_positive.count <= 4
    assert normalized.other_value.count == 0
    assert normalized.same.count >= 360
    for name in ("paper_unscoped", "custom_extract", "lm_eval_multi_choice"):
        assert found[name].false_positive.count > 20 * normalized.false_positive.count


def test_strict_reads_none_of_these_replies_wrongly(audit: Audit) -> None:
    """What fulfils its contract to the letter is what the readers saw."""
    strict = next(one for one in audit.comparisons if (one.parser, one.reference) == ("strict", LABEL))
    assert strict.false_positive.count == 0
