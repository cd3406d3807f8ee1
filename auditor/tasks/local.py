"""A task from the user's own file: columns -> items, with the answer type inferred where it is not given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import Struct

from auditor.errors import FileError, unknown
from auditor.records import AnswerSpace, AnswerType, Item, Task
from auditor.tasks.choices import Canonical, Choices, read_choices, read_list
from auditor.tasks.table import Row, Table, plain, read_table

FIELDS = ("id", "question", "choices", "answer", "group", "cluster", "parts", "answer_type")
REQUIRED = ("question", "answer")
BOOLEANS = frozenset({"true", "false", "yes", "no"})
MOST_LABELS = 200
"""Beyond this many distinct answers a task is free text, not a closed set of labels."""


class Entry(Struct, frozen=True):
    """A row in our words; `type` is None where it is still to be inferred."""

    line: int
    id: str
    question: str
    choices: Choices | None
    answer: str
    type: AnswerType | None
    group: str | None
    cluster: str | None
    parts: tuple[str, ...]
    columns: dict[str, str]


class Source(Struct, frozen=True):
    """A file and which of its columns hold which of our fields; `choices` may be spread over several."""

    path: Path
    columns: dict[str, tuple[str, ...]]

    def value(self, row: Row, field: str) -> Any:
        """The row's value of a field, None when it has none."""
        names = self.columns.get(field, ())
        return row.values.get(names[0]) if names else None

    def fault(self, line: int, field: str, message: str, hint: str = "") -> FileError:
        """An error of one value."""
        return FileError(self.path, f"{'+'.join(self.columns.get(field, (field,)))}: {message}", hint, line=line)


def read_task(
    path: Path, columns: Mapping[str, str], canonical: Canonical, answer_type: AnswerType | None = None
) -> Task:
    """The task in a .jsonl, .csv or .parquet file, named by the file's stem.

    `columns` maps our field -> the file's column, for choices also several joined by `+`. The answer type is
    `answer_type`, else the row's own, else inferred for the whole task: choices make a choice; all of
    true/false/yes/no a boolean; all numbers a number; all JSON objects json; at most 200 distinct answers, some of them
    repeated, a label (the labels are all of them); anything else is text. A JSON object that is no text is json by
    itself. Choices are shown as A, B, ...; labels of the source that
    differ are kept in the column `choice_labels`. Raises FileError with the line, UsageError for an unknown field.
    """
    table = read_table(path)
    source = Source(path, _columns(table, columns))
    entries = [_entry(source, row, answer_type) for row in table.rows]
    _refuse_twice(source, entries)
    inferred = _inferred([entry for entry in entries if entry.type is None], canonical)
    return Task(path.stem, _items(source, entries, inferred, canonical), source=str(path))


# Columns -------------------------------------------------------------------------------------------------------


def _columns(table: Table, columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    for field in columns:
        if field not in FIELDS:
            raise unknown("field", field, FIELDS, "--columns FIELD=COLUMN names the file's column for a field")
    found = {field: _wanted(table, field, columns.get(field)) for field in FIELDS}
    for field, names in found.items():
        if field in columns or field in REQUIRED:
            _refuse_missing(table, field, names)
    return {field: names for field, names in found.items() if set(names) <= set(table.columns)}


def _wanted(table: Table, field: str, column: str | None) -> tuple[str, ...]:
    if column is None:
        return ("subject",) if field == "group" and "group" not in table.columns else (field,)
    if field == "choices" and column not in table.columns:
        return tuple(column.split("+"))
    return (column,)


def _refuse_missing(table: Table, field: str, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in table.columns:
            wanted = f"no column {name!r}" + (f" (for {field})" if name != field else "")
            hint = f"--columns {field}=COLUMN says which of them it is"
            raise FileError(table.path, f"{wanted}; the columns are {', '.join(table.columns)}", hint)


# Rows ----------------------------------------------------------------------------------------------------------


def _entry(source: Source, row: Row, answer_type: AnswerType | None) -> Entry:
    choices = _choices(source, row)
    is_object = choices is None and isinstance(source.value(row, "answer"), dict)
    type_ = answer_type or _type(source, row) or ("json" if is_object else None)
    used = {name for names in source.columns.values() for name in names}
    return Entry(
        line=row.line,
        id=_scalar(source, row, "id") or f"{source.path.stem}-{row.line}",
        question=_question(source, row),
        choices=choices,
        answer=_answer(source, row, type_),
        type=type_,
        group=_scalar(source, row, "group"),
        cluster=_scalar(source, row, "cluster"),
        parts=_parts(source, row),
        columns={name: plain(value) for name, value in row.values.items() if name not in used and value is not None},
    )


def _type(source: Source, row: Row) -> AnswerType | None:
    name = _scalar(source, row, "answer_type")
    if name is not None and name not in get_args(AnswerType):
        raise source.fault(row.line, "answer_type", f"{name!r} is none of {', '.join(get_args(AnswerType))}")
    return cast("AnswerType | None", name)


def _question(source: Source, row: Row) -> str:
    value = source.value(row, "question")
    if not isinstance(value, str):
        shown = "nothing" if value is None else plain(value)
        raise source.fault(row.line, "question", f"a text is wanted, not {_short(shown)}")
    if not value.strip():
        raise source.fault(row.line, "question", "the text is empty")
    return value


def _answer(source: Source, row: Row, type_: AnswerType | None) -> str:
    value = source.value(row, "answer")
    if isinstance(value, (list, dict)) and type_ == "json":
        return plain(value)
    answer = _scalar(source, row, "answer")
    if answer is None:
        raise source.fault(row.line, "answer", "there is none", "leave out items whose answer is not known")
    return answer


def _scalar(source: Source, row: Row, field: str) -> str | None:
    """A text, number or boolean as text without white space around it; None for nothing and for an empty text."""
    value = source.value(row, field)
    if isinstance(value, (list, dict)):
        raise source.fault(row.line, field, f"one value is wanted, not {_short(plain(value))}")
    return None if value is None else plain(value).strip() or None


def _choices(source: Source, row: Row) -> Choices | None:
    names = source.columns.get("choices", ())
    if len(names) > 1:
        values = [row.values.get(name) for name in names]
        while values and values[-1] in (None, ""):  # items with fewer choices than the file has columns for
            values.pop()
        value: Any = values
    else:
        value = source.value(row, "choices")
    if value is None or value == "":
        return None
    try:
        return read_choices(value)
    except ValueError as error:
        raise source.fault(row.line, "choices", str(error)) from error


def _parts(source: Source, row: Row) -> tuple[str, ...]:
    value = source.value(row, "parts")
    try:
        return () if value is None or value == "" else tuple(map(plain, read_list(value)))
    except ValueError as error:
        raise source.fault(row.line, "parts", str(error)) from error


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse_twice(source: Source, entries: Sequence[Entry]) -> None:
    lines: dict[str, int] = {}
    for entry in entries:
        first = lines.setdefault(entry.id, entry.line)
        if first != entry.line:
            raise source.fault(entry.line, "id", f"{entry.id!r} stands in line {first} too", "an id names one item")


# Answers -------------------------------------------------------------------------------------------------------


def _inferred(entries: Sequence[Entry], canonical: Canonical) -> AnswerType:
    if any(entry.choices for entry in entries):
        return "choice"
    answers = [entry.answer for entry in entries]
    if all(answer.casefold() in BOOLEANS for answer in answers):
        return "boolean"
    if all(canonical(answer, AnswerSpace("number")) is not None for answer in answers):
        return "number"
    if all(answer.startswith("{") and canonical(answer, AnswerSpace("json")) is not None for answer in answers):
        return "json"
    return "label" if len(set(answers)) <= MOST_LABELS and len(set(answers)) < len(answers) else "text"


def _items(source: Source, entries: Sequence[Entry], inferred: AnswerType, canonical: Canonical) -> tuple[Item, ...]:
    typed = [(entry, entry.type or inferred) for entry in entries]
    labels = tuple(sorted({entry.answer for entry, type_ in typed if type_ == "label" and entry.choices is None}))
    chosen = [entry for entry, type_ in typed if type_ == "choice"]
    # "C" names the third choice, unless the file gives its answers as texts and "C" is one of these.
    by_name = all(entry.choices is not None and entry.choices.named(entry.answer) for entry in chosen)
    items = []
    for entry, type_ in typed:
        if type_ == "choice":
            space, answer = _choice(source, entry, by_name)
        else:
            space, answer = _space(entry, type_, labels), entry.answer
        items.append(_item(source, entry, space, canonical(answer, space)))
    return tuple(items)


def _choice(source: Source, entry: Entry, by_name: bool) -> tuple[AnswerSpace, str]:
    """The space of a choice item and the label of its answer."""
    choices, answer = entry.choices, entry.answer
    if choices is None:
        raise source.fault(entry.line, "choices", "there are none, but the answer is a choice")
    named, saying = choices.named(answer), choices.saying(answer)
    label = (named or saying) if by_name else (saying or named)
    if label is None:
        hint = "an answer is a label or an exact text" + ("; an index is not read" if answer.isdecimal() else "")
        raise source.fault(entry.line, "answer", f"{answer!r} is none of the choices {choices}", hint)
    return choices.space, label


def _space(entry: Entry, type_: AnswerType, labels: tuple[str, ...]) -> AnswerSpace:
    if type_ != "label":
        return AnswerSpace(type_)
    if entry.choices is None:
        return AnswerSpace("label", labels)
    return AnswerSpace(
        "label", entry.choices.names or entry.choices.texts, entry.choices.texts if entry.choices.names else ()
    )


def _item(source: Source, entry: Entry, space: AnswerSpace, gold: str | None) -> Item:
    if gold is None:
        wanted = f"one of {', '.join(space.labels)}" if space.labels else f"a {space.type}"
        raise source.fault(entry.line, "answer", f"{entry.answer!r} is not {_short(wanted)}")
    columns = entry.columns
    if entry.choices is not None and entry.choices.names not in ((), space.labels):
        columns = {**columns, "choice_labels": ", ".join(entry.choices.names)}
    return Item(entry.id, entry.question, space, gold, entry.group, entry.cluster, parts=entry.parts, columns=columns)
