"""Data that leave something open: every value that is not there has a warning that names it, and nothing is NaN."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from samples import micro_rows, write_jsonl

from auditor.border import import_rows
from auditor.figures import Summary

Row = dict[str, object]
SECTIONS = ("cells", "sensitivity", "models", "regression", "wins", "seed_disagreement", "seed_noise", "majority_vote")
ROWS = (*SECTIONS, "reversals", "comparisons", "groups", "enforcement", "spreads", "gains")


def grid(
    models: int = 2, tasks: int = 3, wrappers: int = 3, items: int = 6, seeds: int = 2, **changes: Callable[..., object]
) -> list[Row]:
    """Scored rows of a full design; `changes` make a field of (model, task, wrapper, item, seed)."""
    rows = []
    for m, t, w, i, s in itertools.product(range(models), range(tasks), range(wrappers), range(items), range(seeds)):
        parsed = (m + t + w + i + s) % 4 > 0
        row: Row = {"model": f"m{m}", "task": f"t{t}", "item": f"{t}-{i}", "wrapper": f"w{w}", "seed": s}
        row |= {"parsed": parsed, "correct": parsed and (m * i + w * s + t) % 3 > 0}
        row |= {name: make(m, t, w, i, s) for name, make in changes.items()}
        rows.append(row)
    return rows


def without(rows: list[Row], leave: Callable[[Row], bool]) -> list[Row]:
    return [row for row in rows if not leave(row)]


DATA: dict[str, list[Row]] = {
    "whole": grid(),
    "the worked example": micro_rows(),
    "one wrapper": grid(wrappers=1),
    "one task": grid(tasks=1),
    "one model": grid(models=1),
    "one item": grid(items=1),
    "one of each": grid(1, 1, 1, 1, 1),
    "all parsed": grid(parsed=lambda *_: True),
    "all parsed and correct": grid(parsed=lambda *_: True, correct=lambda *_: True),
    "nothing parsed": grid(parsed=lambda *_: False, correct=lambda *_: False),
    "nothing correct": grid(correct=lambda *_: False),
    "a missing cell": without(grid(), lambda row: (row["model"], row["task"], row["wrapper"]) == ("m0", "t0", "w0")),
    "a missing task": without(grid(), lambda row: (row["model"], row["task"]) == ("m0", "t0")),
    "nothing answered": grid(status=lambda m, t, w, i, s: "missing" if (m, t, w) == (0, 0, 0) else "answered"),
    "unbalanced seeds": without(grid(seeds=3), lambda row: row["seed"] == 2 and str(row["item"]).endswith(("1", "3"))),
    "no item in common": [
        row for row in grid(wrappers=2) if (row["wrapper"] == "w0") == (str(row["item"])[-1] in "024")
    ],
    "seeds far apart": grid(seed=lambda m, t, w, i, s: s * 10**9 - 5),
    "one passage": grid(cluster=lambda *_: "p"),
    "passages": grid(cluster=lambda m, t, w, i, s: f"p{i // 2}"),
    "subjects": grid(group=lambda m, t, w, i, s: "law" if i < 2 else "art"),
    "a subject of one item": grid(group=lambda m, t, w, i, s: "law" if i else "art"),
    "an exact fit": [
        {"model": "m", "task": f"t{t}", "item": f"{t}-{i}", "wrapper": f"w{w}", "seed": 0,
         "parsed": i < 2 * (t * w % 4 + 1), "correct": i < t * w % 4 + 1}
        for t, w, i in itertools.product(range(3), range(4), range(9))
    ],
}  # fmt: skip


@pytest.fixture(scope="module", params=DATA)
def summary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    folder = tmp_path_factory.mktemp("degenerate")
    source = write_jsonl(folder / "rows.jsonl", DATA[request.param])
    return import_rows(source, folder / "run", ("strict",), ("all",)).summary


def nulls(summary: Summary) -> Iterator[str]:
    for section in ROWS:
        for row in getattr(summary, section):
            for name in row.__struct_fields__:
                if getattr(row, name) is None:
                    yield f"{section}.{name}"


def test_every_null_has_a_reason(summary: Summary) -> None:
    """A warning names each field that is null somewhere, and says something."""
    named = {field for caveat in summary.warnings for field in caveat.fields}
    assert {null for null in nulls(summary) if null not in named and null.partition(".")[0] not in named} == set()
    assert all(caveat.message for caveat in summary.warnings)


def test_no_number_is_nan(summary: Summary, tmp_path: Path) -> None:
    """Nor infinite; intervals have their ends in order and hold what they are about."""

    def numbers(value: Any) -> Iterator[float]:
        if isinstance(value, float):
            yield value
        elif isinstance(value, dict):
            for one in value.values():
                yield from numbers(one)
        elif isinstance(value, list | tuple):
            for one in value:
                yield from numbers(one)

    every = [row for part in ROWS for row in getattr(summary, part)]
    rows = [{name: getattr(row, name) for name in row.__struct_fields__} for row in every]
    assert all(math.isfinite(number) for number in numbers(rows))
    for row in rows:
        for name, value in row.items():
            if "_ci" in name and value is not None:
                assert value[0] <= value[1], name
    for cell in summary.cells:
        for rate, ends in ((cell.accuracy, cell.accuracy_ci), (cell.parseability, cell.parseability_ci)):
            if rate is not None and ends is not None:
                assert ends[0] - 1e-12 <= rate <= ends[1] + 1e-12


def test_statuses_say_what_is_the_matter(summary: Summary) -> None:
    """A regression that is not there has a status that is not ok; one that is there has all its numbers."""
    for row in summary.regression:
        assert (row.status == "ok") == (row.beta is not None) == (row.p is not None)
        assert (row.parsed_status == "ok") == (row.parsed_slope is not None) == (row.parsed_p is not None)
        assert row.status and row.parsed_status  # noqa: PT018


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("all parsed", "constant_parseability"),
        ("one of each", "too_few_cells"),
        ("an exact fit", "exact_fit"),
        ("nothing parsed", "constant_parseability"),
    ],
)
def test_regressions_that_cannot_be(name: str, status: str, tmp_path: Path) -> None:
    """The status names the reason."""
    source = write_jsonl(tmp_path / "rows.jsonl", DATA[name])
    found = import_rows(source, tmp_path / "run", ("strict",), ("all",)).summary
    assert found.regression[0].status.startswith(status)


def test_the_summary_is_plain_json(summary: Summary, tmp_path: Path) -> None:
    """It is written and read again without NaN."""
    from auditor.report.tables import summary_json

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(summary_json(summary), parse_constant=refuse)
