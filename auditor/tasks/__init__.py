"""What is asked: the bundled tasks, named sets from the hub and the user's own files, and the draw of items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from auditor.errors import FileError, unknown
from auditor.records import AnswerType, Task
from auditor.tasks.bundled import BUNDLED, bundled_task
from auditor.tasks.choices import Canonical
from auditor.tasks.hub import HUB, hub_task, is_hub_name
from auditor.tasks.local import read_task
from auditor.tasks.table import READERS
from auditor.tasks.tacred import read_tacred

__all__ = ["BUNDLED", "HUB", "bundled_task", "hub_task", "load_task", "read_tacred", "read_task", "sample"]


def load_task(
    name_or_path: str,
    seed: int,
    columns: Mapping[str, str],
    canonical: Canonical,
    answer_type: AnswerType | None = None,
    shots: int = 0,
) -> Task:
    """A bundled task or a named set of the hub (`boolq`, `boolq@COMMIT`), or the task in a file.

    `columns` and `answer_type` say how to read a table; a `.json` file is TACRED. `shots` says whether worked
    examples are needed, which a set of the hub keeps in files of their own. Raises UsageError for a name that is
    none of these and for a set that the hub does not give, FileError for a file that is no task.
    """
    if name_or_path in BUNDLED:
        return bundled_task(name_or_path, seed, canonical)
    if is_hub_name(name_or_path):
        return hub_task(name_or_path, seed, canonical, shots)
    path = Path(name_or_path)
    if path.exists():
        if path.suffix.lower() == ".json":
            return read_tacred(path, canonical)
        return read_task(path, columns, canonical, answer_type)
    if path.suffix.lower() in (*READERS, ".json"):
        raise FileError(path, "no such file", f"bundled tasks: {', '.join(BUNDLED)}")
    raise unknown("task", name_or_path, [*BUNDLED, *HUB], f"a path to a {', '.join(READERS)} file works too")


def sample(task: Task, items: int, seed: int) -> Task:
    """`items` of the task's items, drawn without replacement, or all when there are fewer.

    The draw is the start of one order of the ids that depends on the seed alone, so that asking for more items
    extends a run, and rows may stand in the file in any order.
    """

    def key(identity: str) -> bytes:
        return hashlib.sha256(f"{seed}:{task.name}:{identity}".encode()).digest()

    drawn = sorted(task.items, key=lambda item: key(item.id))[:items]
    return msgspec.structs.replace(task, items=tuple(drawn))
