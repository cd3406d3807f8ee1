"""Generations as JSON Lines and tables of cells as CSV: what crosses the border, checked line by line."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from auditor.errors import FileError
from auditor.records import AnswerSpace, CellKey, Item, Reply, Row

Canonical = Callable[[str, AnswerSpace], str | None]

_KNOWN = frozenset(Row.__struct_fields__)
_CELL_COLUMNS = ("model", "task", "wrapper", "accuracy")
_KEYS = 20
"""Shown of a row without a text."""


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """(line, generation) of a JSON Lines file; unknown keys go to `extra`. Raises FileError with the line."""
    for number, tree in read_objects(path):
        yield number, _row(path, number, tree)


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of a JSON Lines file; blank lines are passed over. Raises FileError with the line."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _object(path, number, line)
    except OSError as error:
        raise FileError(path, error.strerror or str(error)) from error


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        tree = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(path, f"not JSON: {error}", "one JSON object a line", line=number) from error
    if not isinstance(tree, dict):
        raise FileError(path, f"a line must be a JSON object, not {type(tree).__name__}", line=number)
    return tree


def _row(path: Path, number: int, tree: dict[str, Any]) -> Row:
    known = {key: value for key, value in tree.items() if key in _KNOWN}
    if isinstance(known.setdefault("extra", {}), dict):
        known["extra"] |= {key: value for key, value in tree.items() if key not in _KNOWN}
    if isinstance(known.get("tool_calls"), list | dict):
        known["tool_calls"] = msgspec.json.encode(known["tool_calls"]).decode()
    try:
        row = msgspec.convert(known, Row)
    except msgspec.ValidationError as error:
        raise wrong_field(path, number, error) from error
    _check(path, number, row)
    if "text" not in tree:
        _check_reply(path, number, row, list(tree))
    return row


def wrong_field(path: Path, number: int, error: msgspec.ValidationError, hint: str = "") -> FileError:
    """What msgspec says of a field, with the line."""
    return FileError(path, str(error).replace(" - at `$.", ": `"), hint, line=number)


def _check_reply(path: Path, number: int, row: Row, keys: Sequence[str]) -> None:
    """A row without the key `text` is one that has no text for a reason, or one whose key is misspelt."""
    others = (row.parsed, row.refusal, row.reasoning, row.tool_calls)
    if row.status == "missing" or any(other is not None for other in others):
        return
    near = difflib.get_close_matches("text", [key for key in keys if key not in _KNOWN], n=1)
    hint = f"did you mean text by {near[0]!r}" if near else "the reply is the key text, null where there is none"
    raise FileError(path, f"no text; keys: {', '.join(map(repr, keys[:_KEYS]))}", hint, line=number)


def _check(path: Path, number: int, row: Row) -> None:
    if row.correct and row.parsed is False:
        raise FileError(path, "correct is true where parsed is false", line=number)
    if row.correct is not None and row.parsed is None:
        raise FileError(path, "correct without parsed", line=number)
    if row.text is not None and row.parsed is not None:
        raise FileError(path, "both text and parsed: give one of them", line=number)


def item_of(path: Path, number: int, row: Row, canonical: Canonical) -> Item:
    """The item a row is about. Raises FileError where its gold is no possible answer."""
    space = space_of(row)
    gold = None if row.gold is None else answer(path, number, "gold", row.gold, space, canonical)
    return Item(id=row.item, question="", space=space, gold=gold, group=row.group, cluster=row.cluster)


def answer(path: Path, number: int, what: str, text: str, space: AnswerSpace, canonical: Canonical) -> str:
    """A gold answer or a label as a canonical value. Raises FileError where it is no possible answer."""
    value = canonical(text, space)
    if value is None:
        among = f" (choices: {', '.join(space.labels)})" if space.labels else ""
        raise FileError(path, f"{what} {text!r} is no {space.type} answer{among}", line=number)
    return value


def space_of(row: Row) -> AnswerSpace:
    """What a row's answer can be."""
    type_ = row.answer_type or ("choice" if row.choices else "text")
    if isinstance(row.choices, dict):
        return AnswerSpace(type_, tuple(row.choices), tuple(row.choices.values()))
    return AnswerSpace(type_, row.choices or ())


def reply_of(row: Row) -> Reply:
    """The reply in a row."""
    return Reply(
        text=row.text,
        finish_reason=row.finish_reason,
        reasoning=row.reasoning,
        refusal=row.refusal,
        tool_calls=row.tool_calls,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
    )


def read_cells(path: Path) -> Iterator[tuple[CellKey, int | None, float, float | None]]:
    """A CSV of cells: model, task, wrapper, accuracy and perhaps n, parseability, arm. Raises FileError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            _check_header(path, reader.fieldnames or [])
            seen: dict[CellKey, int] = {}
            for record in reader:
                line = reader.line_num
                key = CellKey(record["model"], record["task"], record["wrapper"], record.get("arm") or "none")
                if key in seen:
                    raise FileError(path, f"the cell of line {seen[key]} again", line=line)
                seen[key] = line
                yield key, _count(path, line, record), *_rates(path, line, record)
    except OSError as error:
        raise FileError(path, error.strerror or str(error)) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileError(path, f"not a readable CSV: {error}") from error


def _check_header(path: Path, header: Sequence[str]) -> None:
    if missing := [name for name in _CELL_COLUMNS if name not in header]:
        hint = f"a table of cells has the columns {', '.join(_CELL_COLUMNS)} and perhaps n, parseability"
        raise FileError(path, f"no column {missing[0]!r} (columns: {', '.join(header)})", hint, line=1)


def _count(path: Path, line: int, record: dict[str, Any]) -> int | None:
    text = record.get("n") or ""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise FileError(path, f"n {text!r} is not a count of generations", line=line)
    return int(text)


def _rates(path: Path, line: int, record: dict[str, Any]) -> tuple[float, float | None]:
    accuracy = _rate(path, line, "accuracy", record["accuracy"] or "")
    text = record.get("parseability") or ""
    parseability = _rate(path, line, "parseability", text) if text else None
    if parseability is not None and accuracy > parseability + 1e-9:
        raise FileError(path, f"accuracy {accuracy:g} is above parseability {parseability:g}", line=line)
    return accuracy, parseability


def _rate(path: Path, line: int, column: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise FileError(path, f"{column} {text!r} is not a share between 0 and 1", "percent: divide by 100", line=line)
    return rate
