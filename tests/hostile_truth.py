"""A study against a hostile server, and the truth that its cells must equal."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from samples import write_jsonl
from simulated import CASES, truth

from auditor.report.value import Report
from auditor.store import Store
from auditor.study import Study

ITEMS, SEEDS = 400, 10


def study(url: str, folder: Path, items: int, seeds: int, **changes: Any) -> Study:
    """So many items under the five wrappers."""
    rows = [
        {**CASES[index % len(CASES)], "id": str(index), "question": f"Case {index}: which is a fruit?"}
        for index in range(items)
    ]
    cases = write_jsonl(folder / "cases.jsonl", rows)
    told: dict[str, Any] = {
        "models": (f"compat/m@{url}",),
        "tasks": (str(cases),),
        "items": items,
        "seeds": seeds,
        "max_tokens": 64,
    }
    return Study(**told | changes)


def wrong_cells(report: Report, run: Path) -> list[str]:
    """The cells whose strict counts are not those of the truth behind every prompt that was sent."""
    expected: dict[str, list[tuple[bool, str]]] = defaultdict(list)
    with Store(run, writable=False) as store:
        for wrapper, seed, messages in store._db.execute(
            "SELECT c.wrapper, g.seed, p.messages FROM generation g "
            "JOIN cell c ON c.id = g.cell JOIN prompt p ON p.digest = g.prompt"
        ):
            expected[wrapper].append(truth({"messages": json.loads(messages), "seed": seed}))
    wrong = []
    for cell in report.summary.cells:
        if cell.parser == "strict":
            outcomes = expected[cell.wrapper]
            parsed = sum(readable for readable, _ in outcomes)
            correct = sum(readable and value == "B" for readable, value in outcomes)
            if (cell.n, cell.parsed, cell.correct) != (len(outcomes), parsed, correct):
                wrong.append(
                    f"{cell.wrapper}: {cell.n, cell.parsed, cell.correct}, not {len(outcomes), parsed, correct}"
                )
    return wrong
