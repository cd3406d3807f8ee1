"""Wrapper and parser files: where ours are, how one is read, and what makes it valid.

Our own lie beside the package in a checkout, in `_data` inside an installed one, and never in the current folder,
since users run the tool inside repositories that have folders of those names.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args

import msgspec

import auditor
from auditor import lm_eval
from auditor.errors import FileError, UsageError, unknown
from auditor.records import (
    AnswerSpace,
    AnswerType,
    Contract,
    ContractKind,
    FieldRule,
    Message,
    Parser,
    ParserExample,
    ParserStep,
    Reason,
    Role,
    Wrapper,
    WrapperExample,
)

Kind = Literal["wrappers", "parsers"]
_T = TypeVar("_T")
_Named = TypeVar("_Named", Wrapper, Parser)

PLACEHOLDERS = frozenset({"content", "pad", "examples", "separator", "choices", "schema", "answer_hint", "question"})
"""What a wrapper may name besides the columns of the cases. `examples` and `separator` come with `--shots`."""

PLACEHOLDER = re.compile(r"\\\{\{|\{\{([a-z][a-z0-9_]*)\}\}")
"""Only {{lower_case}} is a placeholder; \\{{ is a literal {{."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VARIANT = re.compile(r"(.+)\[([A-Za-z0-9_.-]+)\]")
_MAY_BE_EMPTY = frozenset({"examples", "separator", "choices", "schema"})


class _WrapperFile(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    contract: Contract
    compare: dict[str, Any] | None = None
    version: int = 1
    set: str = "own"
    summary: str = ""
    source: str = ""
    system: str | None = None
    user: str | None = None
    messages: list[Message] | None = None
    example: str = ""
    separator: str = "\n\n"
    examples: list[WrapperExample] = []
    variants: dict[str, dict[str, str]] = {}


class _ParserFile(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    steps: list[str | dict[str, Any]]
    version: int = 1
    summary: str = ""
    examples: list[ParserExample] = []


def folder(kind: Kind) -> Path:
    """Where our own files of a kind are."""
    package = Path(auditor.__file__).resolve().parent
    checkout = package.parent / kind
    return checkout if (package.parent / "pyproject.toml").is_file() and checkout.is_dir() else package / "_data" / kind


def names(kind: Kind) -> list[str]:
    """The names in our own catalogue, sorted."""
    return sorted(path.stem for path in folder(kind).glob("*.toml"))


def find(kind: Kind, name: str) -> Path:
    """The file of a catalogue name, or of a path that ends in .toml.

    Raises UsageError for a name that is not known and FileError for a path that is not there.
    """
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise FileError(path, "no such file", f"known {kind}: {', '.join(names(kind))}")
        return path
    if name not in names(kind):
        raise unknown(kind.removesuffix("s"), name, names(kind), "a path to a .toml file works too")
    return folder(kind) / f"{name}.toml"


def wrappers(selected: Iterable[str], columns: Collection[str] = ()) -> tuple[Wrapper, ...]:
    """The wrappers of a study, in its order; `all` is the five of set fsi, `delimiter[comma]` one variant of a file.

    `columns` are the cases' own columns, which a wrapper may name too. Raises UsageError for two of one name.
    """
    found: list[Wrapper] = []
    for name in selected:
        for one in _FSI_ORDER if name == "all" else (name,):
            found += _named(one, columns)
    return distinct("wrapper", found)


def parsers(selected: Iterable[str]) -> tuple[Parser, ...]:
    """The parsers of a study, in its order."""
    found = [parser for name in selected for parser in _parsers(name)]
    for parser in found:
        if parser.name in _RESERVED and Path(parser.path).parent != folder("parsers"):
            raise FileError(parser.path, f"the name {parser.name!r} is ours", "call it something else")
    return distinct("parser", found)


def _parsers(name: str) -> Sequence[Parser]:
    """A name of ours, a .toml of one parser, or a .yaml of lm-evaluation-harness with one for each of its filters."""
    if not name.endswith((".yaml", ".yml")):
        return (read_parser(find("parsers", name)),)
    found = lm_eval.parsers(Path(name), _digest)
    for parser in found:
        _check_name(Path(name), "", parser.name, "filter_list.name")
    return found


_RESERVED = frozenset({"strict", "paper", "paper_unscoped", "normalized", "given", "label"})
"""Names that reports and comparisons know."""
_FSI_ORDER = ("plain", "json", "structured", "structured_delim", "deliberate")


def _named(name: str, columns: Collection[str]) -> list[Wrapper]:
    variant = _VARIANT.fullmatch(name)
    if variant is None:
        return read_wrapper(find("wrappers", name), columns)
    path = find("wrappers", variant[1])
    found = read_wrapper(path, columns)
    chosen = [wrapper for wrapper in found if wrapper.name.endswith(f"[{variant[2]}]")]
    if not chosen:
        known = [match[2] for wrapper in found if (match := _VARIANT.fullmatch(wrapper.name))]
        raise unknown(f"variant of {path}", variant[2], known, "" if known else "it has no [variants]")
    return chosen


def distinct(kind: str, found: list[_Named]) -> tuple[_Named, ...]:
    """Each once, in their order. Raises UsageError for two of one name that are not the same."""
    seen: dict[str, _Named] = {}
    for one in found:
        if one.name in seen and one.digest != seen[one.name].digest:
            raise UsageError(f"two {kind}s are called {one.name!r}: {seen[one.name].path} and {one.path}")
        seen[one.name] = one
    return tuple(seen.values())


# Reading a wrapper ---------------------------------------------------------------------------------------------


def read_wrapper(path: Path, columns: Collection[str] = ()) -> list[Wrapper]:
    """The wrapper in a file, or one per variant (`delimiter[comma]`).

    Raises FileError with the line of what is wrong.
    """
    text, tree = _load(path)
    contract = tree.get("contract")
    if isinstance(contract, dict) and "schema" in contract:
        tree = {**tree, "contract": {**contract, "schema": _schema(path, contract["schema"])}}
    if isinstance(contract, dict) and "compare" in contract:
        line = _key_line(text, "contract.compare")
        raise FileError(path, "contract.compare: it is no part of the contract", "write [compare]", line=line)
    file = _convert(path, text, tree, _WrapperFile)
    _check_name(path, text, file.name, "name")
    _check_contract(path, text, file.contract)
    if file.compare is not None:
        file = msgspec.structs.replace(file, contract=_compared(path, text, file.contract, file.compare))
    if not file.variants:
        return [_wrapper(path, text, file, columns)]
    return [_wrapper(path, text, _varied(path, text, file, name), columns) for name in file.variants]


def _varied(path: Path, text: str, file: _WrapperFile, variant: str) -> _WrapperFile:
    _check_name(path, text, variant, f"variants.{variant}")
    changes = file.variants[variant]
    for key in changes:
        if key not in ("user", "system", "separator", "example", "summary"):
            where = f"variants.{variant}.{key}"
            hint = "user, system, separator, example and summary can"
            raise FileError(path, f"{where}: {key} cannot vary", hint, line=_key_line(text, where))
    return msgspec.structs.replace(file, name=f"{file.name}[{variant}]", **changes)


def _wrapper(path: Path, text: str, file: _WrapperFile, columns: Collection[str]) -> Wrapper:
    messages = _messages(path, text, file)
    _check_placeholders(path, text, messages, file.example, PLACEHOLDERS | set(columns))
    _check_pad(path, text, messages)
    told = [file.name, messages, file.contract, file.example, file.separator]
    return Wrapper(
        name=file.name,
        version=file.version,
        set=file.set,
        summary=file.summary,
        source=file.source,
        messages=messages,
        contract=file.contract,
        examples=tuple(file.examples),
        example=file.example,
        separator=file.separator,
        path=str(path),
        digest=_digest(told),
    )


def _messages(path: Path, text: str, file: _WrapperFile) -> tuple[Message, ...]:
    if file.messages is not None:
        if file.user is not None or file.system is not None:
            raise FileError(path, "give either user/system or [[messages]]", line=_key_line(text, "messages"))
        turns = file.messages
    else:
        if file.user is None:
            raise FileError(path, "no user prompt", "write user = '''...''' or [[messages]]")
        turns = [Message(role="user", content=file.user)]
        if file.system is not None:
            turns.insert(0, Message(role="system", content=file.system))
    if not turns or turns[-1].role != "user":
        raise FileError(path, "the last message must be the user's", line=_key_line(text, "messages"))
    return tuple(Message(role=turn.role, content=turn.content.removesuffix("\n")) for turn in turns)


def _check_name(path: Path, text: str, name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise FileError(path, f"name {name!r}: use letters, digits, _ . -", line=_key_line(text, where))


def placeholders(template: str) -> list[str]:
    """The names a template asks for, in order; a literal \\{{ asks for nothing."""
    return [match[1] for match in PLACEHOLDER.finditer(template) if match[1] is not None]


def _check_placeholders(
    path: Path, text: str, messages: tuple[Message, ...], example: str, known: AbstractSet[str]
) -> None:
    asked = [name for message in messages for name in placeholders(message.content)]
    for names_, allowed in ((asked, known), (placeholders(example), known | {"reply"})):
        for name in names_:
            if name not in allowed:
                hint = unknown("placeholder", name, allowed).hint
                line = _placeholder_line(text, name)
                raise FileError(path, f"unknown placeholder {{{{{name}}}}}", hint, line=line)
    if not set(asked) & (known - PLACEHOLDERS | {"content", "question"}):
        raise FileError(path, "no placeholder shows the question", "write {{content}} where the item goes")


def _check_pad(path: Path, text: str, messages: tuple[Message, ...]) -> None:
    slots = [message for message in messages for name in placeholders(message.content) if name == "pad"]
    line = _placeholder_line(text, "pad")
    if len(slots) > 1:
        raise FileError(path, "more than one {{pad}} slot", "keep one of them", line=line)
    for message in slots:
        # What may be empty does not keep the slot from the edge: {{examples}} is, without --shots.
        firm = PLACEHOLDER.sub(lambda match: "" if match[1] in _MAY_BE_EMPTY else match[0], message.content).strip()
        if firm.startswith("{{pad}}") or firm.endswith("{{pad}}"):
            hint = "chat templates trim there: put the slot between two lines of text"
            raise FileError(path, "the {{pad}} slot is at the edge of a message", hint, line=line)


def _check_contract(path: Path, text: str, contract: Contract) -> None:
    kind, field, pointer = contract.kind, contract.field, contract.answer_path
    delimited = bool(contract.begin.strip() and contract.end.strip())
    wrong = {
        "field": (field != field.strip() or not field or "\n" in field, f"{field!r} is not the name of a field"),
        "begin": (kind == "block" and not delimited, "a block contract needs begin and end"),
        "end": (kind != "block" and bool(contract.begin or contract.end), f"a {kind} contract has no begin and end"),
        "schema": (kind != "json" and contract.schema is not None, f"a {kind} contract has no schema"),
        "answer_path": (pointer is not None and kind != "json", f"a {kind} contract has no answer_path"),
    }
    for key, (is_wrong, message) in wrong.items():
        if is_wrong:
            raise FileError(path, f"contract.{key}: {message}", line=_key_line(text, f"contract.{key}"))
    if pointer is not None and not pointer.startswith("/"):
        message = f"contract.answer_path: {pointer!r} is not a JSON pointer"
        raise FileError(path, message, 'write "/result/label"', line=_key_line(text, "contract.answer_path"))


_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_MOST_APART = 1e300


def _compared(path: Path, text: str, contract: Contract, told: dict[str, Any]) -> Contract:
    """The contract with what `[compare]` says of its fields."""
    line = _key_line(text, "compare")
    if contract.kind != "json":
        raise FileError(path, f"compare: a {contract.kind} contract has no fields to compare", line=line)
    if contract.answer_path is not None:
        hint = "leave out one of the two"
        raise FileError(path, "compare: contract.answer_path names the one value that is compared", hint, line=line)
    if not told:
        raise FileError(path, "compare: no field is named", 'write "/label" = "exact"', line=line)
    rules = tuple(_field_rule(path, _field_line(text, field), field, how) for field, how in told.items())
    return msgspec.structs.replace(contract, compare=rules)


def _field_rule(path: Path, line: int | None, field: str, how: object) -> FieldRule:
    if not _POINTER.fullmatch(field):
        raise FileError(path, f"compare: {field!r} is not a JSON pointer", 'write "/label" or "/customer/0"', line=line)
    match how:
        case "exact":
            return FieldRule(field, "exact")
        case "text":
            return FieldRule(field, "text")
        case {"number": bool()}:
            pass
        case {"number": int() | float() as tolerance, **rest} if not rest and 0 <= tolerance <= _MOST_APART:
            return FieldRule(field, "number", float(tolerance))
    hint = 'write "exact", "text", or {number = 0.01} for numbers that may be so far apart (0 or more)'
    raise FileError(path, f"compare: {field}: {how!r:.60} is not a way to compare", hint, line=line)


def _field_line(text: str, field: str) -> int | None:
    first = _key_line(text, "compare") or 1
    quoted = (json.dumps(field, ensure_ascii=False), f"'{field}'")
    lines = enumerate(text.split("\n")[first - 1 :], first)
    found = (number for number, line in lines if any(name in line for name in quoted))
    return next(found, _key_line(text, f"compare.{field}"))


def _schema(path: Path, told: object) -> object:
    """`contract.schema`: a JSON file beside the wrapper, or a table in it. Never fetches what it refers to."""
    import jsonschema
    import jsonschema_rs

    file, schema = (path.parent / told, _json(path, told)) if isinstance(told, str) else (path, told)
    if not isinstance(schema, dict):
        raise FileError(file, "not a JSON Schema: it must be an object")
    try:
        validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        validator.check_schema(schema)
        jsonschema_rs.validator_for(schema, retriever=_offline)
    except jsonschema.SchemaError as error:
        raise FileError(file, f"not a JSON Schema: {error.json_path}: {error.message}") from error
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise FileError(file, f"not a usable JSON Schema: {str(error).splitlines()[0]}") from error
    return schema


def _json(path: Path, name: str) -> object:
    file = path.parent / name
    try:
        return json.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise FileError(
            path, f"contract.schema {name!r}: {error.strerror}", "it is looked for beside the file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise FileError(file, f"not JSON: {error}") from error


def _offline(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not part of the schema")


# Reading a parser ----------------------------------------------------------------------------------------------


def read_parser(path: Path) -> Parser:
    """The parser in a file; its steps are checked where it is compiled. Raises FileError."""
    text, tree = _load(path)
    file = _convert(path, text, tree, _ParserFile)
    _check_name(path, text, file.name, "name")
    if not file.steps:
        raise FileError(path, "no steps", line=_key_line(text, "steps"))
    return Parser(
        name=file.name,
        version=file.version,
        summary=file.summary,
        steps=tuple(_step(path, text, number, told) for number, told in enumerate(file.steps, 1)),
        examples=tuple(file.examples),
        path=str(path),
        digest=_digest([file.name, file.version, file.steps]),
    )


def _step(path: Path, text: str, number: int, told: str | dict[str, Any]) -> ParserStep:
    """A step is a name, or a table whose `step` is the name and whose other keys are what it is told."""
    if isinstance(told, str):
        return ParserStep(told)
    name = told.get("step")
    if not isinstance(name, str):
        hint = 'write {step = "regex", regex_pattern = "..."}'
        raise FileError(path, f"step {number} has no name", hint, line=_key_line(text, "steps"))
    return ParserStep(name, {key: value for key, value in told.items() if key != "step"})


def example_contract(example: ParserExample) -> Contract:
    """The contract an example of a parser file is read against: the five wrappers' own names."""
    block = example.contract == "block"
    return Contract(example.contract, begin="<BEGIN ANSWER>" if block else "", end="<END ANSWER>" if block else "")


def example_space(example: ParserExample) -> AnswerSpace:
    """What the answer of an example can be."""
    if isinstance(example.choices, dict):
        return AnswerSpace(example.answer_type, tuple(example.choices), tuple(example.choices.values()))
    return AnswerSpace(example.answer_type, example.choices)


# Shared --------------------------------------------------------------------------------------------------------


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text("utf-8-sig")
        return text, tomllib.loads(text)
    except OSError as error:
        raise FileError(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise FileError(path, f"not UTF-8: {error.reason} at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"not TOML: {error}") from error
    except RecursionError as error:
        raise FileError(path, "not TOML: nested too deeply") from error


def _convert(path: Path, text: str, tree: dict[str, Any], type_: type[_T]) -> _T:
    try:
        return msgspec.convert(tree, type_)
    except msgspec.ValidationError as error:
        raise _readable(path, text, str(error)) from error


_CLOSED = {
    "kind": get_args(ContractKind),
    "contract": get_args(ContractKind),
    "role": get_args(Role),
    "answer_type": get_args(AnswerType),
    "reason": get_args(Reason),
}
_TYPES = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing"}
_TYPES |= {"array": "a list", "object": "a table"}


def _readable(path: Path, text: str, message: str) -> FileError:
    """msgspec's message in the words of the file, with the line of what is wrong."""
    what, _, where = message.partition(" - at `$.")
    where = where.rstrip("`").replace("[...]", "")
    inside = f" in {where}" if where else ""
    if missing := re.fullmatch(r"Object missing required field `(.+)`", what):
        return FileError(path, f"no {missing[1]}{inside}", line=_key_line(text, where) if where else None)
    if surplus := re.fullmatch(r"Object contains unknown field `(.+)`", what):
        line = _key_line(text, f"{where}.{surplus[1]}" if where else surplus[1])
        return FileError(path, f"unknown field {surplus[1]!r}{inside}", line=line)
    if closed := re.fullmatch(r"Invalid enum value '(.*)'", what, re.DOTALL):
        error = unknown(where, closed[1], _CLOSED[where.rpartition(".")[2]])
        return FileError(path, error.message, error.hint, line=_key_line(text, where))
    if types := re.fullmatch(r"Expected `(.+)`, got `(.+)`", what):
        wanted = " or ".join(_TYPES.get(name, name) for name in types[1].split(" | ") if name != "null")
        what = f"must be {wanted}, not {_TYPES.get(types[2], types[2])}"
    return FileError(path, f"{where}: {what}", line=_key_line(text, where))


def _key_line(text: str, where: str) -> int | None:
    """The line of `contract.kind` or `examples[1].reply`, as far as it can be followed: TOML's values carry no line."""
    at = None
    for name, index in re.findall(r"([\w-]+)(?:\[(\d+)\])?", where):
        key = re.compile(rf'^[ \t]*(?:\[+[ \t]*(?:[\w-]+\.)*)?"?{name}"?[ \t]*[]=.]', re.MULTILINE)
        found = [match.start() for match in key.finditer(text, at or 0)]
        if not found:
            break
        at = found[min(int(index or 0), len(found) - 1)]
    return None if at is None else text.count("\n", 0, at) + 1


def _placeholder_line(text: str, name: str) -> int | None:
    found = re.search(rf"(?<!\\)\{{\{{{name}\}}\}}", text)
    return text.count("\n", 0, found.start()) + 1 if found else None


def _digest(told: object) -> str:
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()
