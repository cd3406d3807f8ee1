"""Named tasks from the Hugging Face hub: Parquet files of one commit -> items."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from auditor.errors import FileError, UsageError, unknown
from auditor.records import AnswerSpace, Item, Task
from auditor.tasks.choices import Canonical
from auditor.tasks.hub_files import ELSE, Snapshot, Wanted, fetch
from auditor.tasks.hub_rows import DATASETS, HUB, Dataset, Fields, Gap, Values

__all__ = ["HUB", "hub_task", "is_hub_name"]

EXAMPLES = 100
"""So many worked examples are drawn from a split that may have tens of thousands of rows."""


class File(Struct, frozen=True):
    """A Parquet file: `name` as messages give it, its rows, and the class names that its metadata gives."""

    name: str
    rows: list[Values]
    classes: tuple[str, ...]


class Draft(Struct, frozen=True):
    """A row that is an item, and where it stands: file and row, from 1."""

    file: str
    row: int
    id: str
    fields: Fields


class Part(Struct, frozen=True):
    """A split: its items, why rows were left out, and the class names its files give."""

    drafts: list[Draft]
    gaps: Counter[str]
    classes: tuple[str, ...]


def is_hub_name(name: str) -> bool:
    """Whether `name` or `name@revision` is one of `HUB`."""
    return name.partition("@")[0] in DATASETS


def hub_task(name: str, seed: int, canonical: Canonical, shots: int = 0) -> Task:
    """The task `name` or `name@revision` (branch, tag or commit); `source` gives the commit, and what was left out.

    Without a revision it is `main`, or `refs/convert/parquet` where `main` holds no Parquet. Worked examples are read
    only where `shots` asks for them, since their split is up to ten times as large; 100 of them are drawn by the seed.
    Rows that the set gives no answer or an empty text in are left out, and counted. Raises UsageError where the hub
    does not give the set, FileError for a file that is not what it should be.
    """
    title, at, revision = name.partition("@")
    if title not in DATASETS:
        raise unknown("task", title, DATASETS)
    if at and not revision:
        raise UsageError(f"task {name!r}: no revision after the @", f"{title}, or {title}@COMMIT")
    dataset = DATASETS[title]
    splits = (dataset.split, dataset.examples) if shots else (dataset.split,)
    snapshot = fetch(Wanted(dataset.repo, dataset.config, splits), revision)
    parts = [_part(title, dataset, snapshot, split) for split in splits]
    space = AnswerSpace(dataset.type, _labels(dataset, parts))
    items, *examples = (tuple(_item(draft, space, canonical) for draft in part.drafts) for part in parts)
    return Task(title, items, _drawn(f"{seed}:{title}", *examples), _source(dataset, snapshot, parts[0]))


def _source(dataset: Dataset, snapshot: Snapshot, part: Part) -> str:
    asked = "" if snapshot.revision in ("main", snapshot.commit) else f" ({snapshot.revision})"
    source = f"hub: {dataset.repo}@{snapshot.commit}{asked}, {dataset.split}"
    gaps = ", ".join(f"{count} with {gap}" for gap, count in sorted(part.gaps.items()))
    return f"{source}; left out: {gaps}" if gaps else source


def _drawn(key: str, pool: Sequence[Item] = ()) -> tuple[Item, ...]:
    """In an order of the key's own, not the file's: a split may be sorted by its labels."""
    return tuple(sorted(pool, key=lambda item: hashlib.sha256(f"{key}:{item.id}".encode()).digest())[:EXAMPLES])


def _labels(dataset: Dataset, parts: Sequence[Part]) -> tuple[str, ...]:
    """The closed set of a label task: the classes in the set's own order, else all labels that occur."""
    if dataset.type != "label":
        return ()
    occurring = sorted({draft.fields.answer for part in parts for draft in part.drafts})
    return parts[0].classes or tuple(occurring)


def _item(draft: Draft, space: AnswerSpace, canonical: Canonical) -> Item:
    fields = draft.fields
    space = fields.choices.space if fields.choices else space
    gold = canonical(fields.answer, space)
    if gold is None:
        raise FileError(draft.file, f"answer: {fields.answer!r} is not a {space.type}", ELSE, line=draft.row)
    return Item(draft.id, fields.question, space, gold, fields.group, fields.cluster, columns=fields.columns)


# Rows ----------------------------------------------------------------------------------------------------------


def _part(title: str, dataset: Dataset, snapshot: Snapshot, split: str) -> Part:
    files = [_file(dataset, snapshot, path) for path in snapshot.files[split]]
    rows = [(file.name, row, values) for file in files for row, values in enumerate(file.rows, 1)]
    prefix = "" if split == dataset.split else f"{split}-"
    ids = _ids(f"{prefix}{title}", prefix, [values.get(dataset.key) for _, _, values in rows])
    drafts: list[Draft] = []
    gaps: Counter[str] = Counter()
    for (name, row, values), identity in zip(rows, ids, strict=True):
        try:
            drafts.append(Draft(name, row, identity, dataset.read(values)))
        except Gap as gap:
            gaps[str(gap)] += 1
        except ValueError as error:
            raise FileError(name, str(error), ELSE, line=row) from error
    if not drafts:
        raise UsageError(f"{dataset.repo}, {split}: of {len(rows)} rows none has an answer", ELSE)
    return Part(drafts, gaps, next((file.classes for file in files if file.classes), ()))


def _ids(name: str, prefix: str, keys: Sequence[Any]) -> list[str]:
    """The set's own ids where each row has one and no two are alike, else the row's number in the split, from 0."""
    own = [str(key).strip() for key in keys if key is not None]
    if all(own) and len(set(own)) == len(keys):
        return [f"{prefix}{key}" for key in own]
    return [f"{name}-{index}" for index in range(len(keys))]


def _file(dataset: Dataset, snapshot: Snapshot, path: Path) -> File:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = f"{dataset.repo}/{path.relative_to(snapshot.folder).as_posix()}"
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            _refuse_missing(name, dataset, schema.names)
            key = [dataset.key] if dataset.key in schema.names else []
            rows = file.read(columns=[*dataset.columns, *key]).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        hint = f"remove {path} and it is fetched again; {ELSE}"
        raise FileError(name, f"not Parquet: {' '.join(str(error).split())}", hint) from error
    classes = _classes(schema.metadata or {}, dataset.classes)
    return File(name, [_classed(values, dataset.classes, classes) for values in rows], classes)


def _refuse_missing(name: str, dataset: Dataset, columns: Sequence[str]) -> None:
    for column in dataset.columns:
        if column not in columns:
            raise FileError(name, f"no column {column!r}; the columns are {', '.join(columns)}", ELSE)


def _classes(metadata: dict[bytes, bytes], column: str) -> tuple[str, ...]:
    """The names of a column's classes, as the hub's own library writes them beside the schema."""
    try:
        names = json.loads(metadata[b"huggingface"])["info"]["features"][column]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    named = isinstance(names, list) and all(isinstance(name, str) and name.strip() for name in names)
    return tuple(names) if named and len(set(names)) == len(names) else ()


def _classed(values: Values, column: str, classes: Sequence[str]) -> Values:
    """The row with the class's name for its number."""
    number = values.get(column)
    if isinstance(number, int) and 0 <= number < len(classes):
        return {**values, column: classes[number]}
    return values
