"""400 real replies and labels: `python tests/labelled/labelled.py DATA > rows.jsonl` joins them with their items.

DATA is a folder with the task files (arc_challenge.jsonl, ...), which are not part of the project. The rows are for
`auditor parse rows.jsonl --labels tests/labelled/labels.jsonl`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auditor import tasks
from auditor.parsing import canonical
from auditor.records import Item

HERE = Path(__file__).resolve().parent


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a file beside this one."""
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def rows(data: Path) -> Iterator[dict[str, Any]]:
    """Every reply with the choices and the gold answer of its item."""
    items: dict[tuple[str, str], Item] = {}
    for name in sorted({reply["task"] for reply in lines("replies.jsonl")}):
        task = tasks.load_task(str(data / f"{name}.jsonl"), 0, {}, canonical)
        items |= {(name, item.id): item for item in task.items}
    for reply in lines("replies.jsonl"):
        item = items[reply["task"], reply["item"]]
        space = item.space
        choices = dict(zip(space.labels, space.texts, strict=True)) if space.texts else space.labels or None
        yield reply | {"answer_type": space.type, "choices": choices, "gold": item.gold}


def main() -> None:
    for row in rows(Path(sys.argv[1])):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
