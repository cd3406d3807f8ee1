"""JSON objects in a reply: where they are, and what stands under the answer's key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from auditor.parsing import numbers, relaxed, strictjson
from auditor.parsing.contracts import answer_path
from auditor.parsing.peel import BLANK
from auditor.parsing.state import Found
from auditor.parsing.strictjson import Pairs
from auditor.records import AnswerSpace, Contract, Reason

_KEY = re.compile(r"[\W_]+")
_EATEN = re.compile(r"[\x08\x0c](?=[a-z])|\t(?=(?:ext|imes|frac)\b)")
_ATE = {"\x08": "\\b", "\x0c": "\\f", "\t": "\\t"}
_LEVELS = 3
_INNER = frozenset({"value", "label", "letter", "option", "choice", "text"})
"""What an object in the answer's place calls the answer."""
_NOT_MEANT = re.compile(
    r"(?:\b(?:not|never|cannot|if|for example|for instance|e\.g\.|such as|instead of|format is|looks? like|like this"
    r"|json like|template|wrote|would write)|n't)\b[^.!?\n]{0,25}\Z",
    re.I,
)
"""What stands before an object that is not the answer."""
_UNIT = frozenset({"unit", "units", "scale", "multiplier"})
_SAMPLE = frozenset(
    {"example", "sample", "schema", "format", "properties", "input", "question", "few_shot", "template", "placeholder"}
    | {"prompt", "rejected", "draft", "previous", "wrong", "incorrect", "old"}
)
"""Keys whose object is not the answer's."""

Read = tuple[list[Found], Reason | None]
"""The pieces found, or why there are none."""


def whole(text: str, contract: Contract, space: AnswerSpace) -> Read | None:
    """What a text that is one JSON object, or a string that holds one, says; None when it is neither."""
    around, text = text, text.strip(BLANK)
    if not text or text[0] not in '{"':
        return None
    loaded = relaxed.load(text)
    if loaded is None and text[0] == "{" and relaxed.spans(text) == [(0, len(text))]:
        loaded = relaxed.repair(text, contract.field)
    if loaded is None:
        return None
    value, liberties = loaded
    needed = (*_format(contract), *(() if around.rstrip("\n") == text else ("whitespace",)), *liberties)
    if isinstance(value, str) and not isinstance(value, strictjson.Number):
        inner = relaxed.load(value.strip())
        value, needed = (inner[0], (*needed, "double_encoded", *inner[1])) if inner else (None, ())
    return answers(value, needed, contract, space, len(text)) if isinstance(value, Pairs) else None


def inside(text: str, contract: Contract, space: AnswerSpace) -> tuple[list[Found], str]:
    """What the objects inside a text say that hold the answer's key, and the text with those blanked out."""
    found: list[Found] = []
    for start, end in relaxed.spans(text):
        if _NOT_MEANT.search(text, max(0, start - 40), start):
            text = text[:start] + " " * (end - start) + text[end:]
            continue
        loaded = relaxed.load(text[start:end])
        if loaded is None or not isinstance(loaded[0], Pairs):
            continue
        pieces, reason = answers(loaded[0], (*_format(contract), "extra_text", *loaded[1]), contract, space, end)
        if reason != "missing_key":
            found += pieces
            text = text[:start] + " " * (end - start) + text[end:]
    return found, text


def _format(contract: Contract) -> tuple[str, ...]:
    return () if contract.kind == "json" else ("json_object",)


def answers(value: Pairs, needed: tuple[str, ...], contract: Contract, space: AnswerSpace, end: int) -> Read:
    """What stands in an object where the answer should."""
    if space.type == "json" and contract.answer_path is None:
        # With a key that comes twice, two values could be meant.
        both = dict.fromkeys(map(strictjson.dumps, (value, strictjson.firsts(value))))
        again = ("duplicate_field",) if len(both) > 1 else ()
        return [Found(text, (*needed, *again), end=end) for text in both], None
    if contract.answer_path is not None:
        under = list(_at(value, needed, strictjson.pointer(contract.answer_path)))
    else:
        under = list(_under(value, needed, contract.field)) or list(_wrapped(value, needed, contract.field))
    if not under:
        return [], "missing_key"
    if space.type == "number":
        under = [(_scaled(answer, value), names) for answer, names in under]
    found = [piece for answer, names in under for piece in _pieces(answer, names, contract.field, space, end)]
    return found, None if found else "wrong_type"


def _scaled(answer: Any, beside: Pairs) -> Any:
    """A number with the unit beside or within it, where that changes what it says: `"unit": "million"`."""
    units = [one for key, one in (*beside, *(answer if isinstance(answer, Pairs) else ())) if key.casefold() in _UNIT]
    scale = next((one for one in units if isinstance(one, str) and not numbers.is_unit(one)), None)
    return answer if scale is None else f"{answer} {scale}"


def _at(value: Pairs, needed: tuple[str, ...], path: list[str]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Every value at a path of keys (twice the same key is both), or with levels of it left out."""
    found = strictjson.all_at(value, path)
    if found:
        again = ("duplicate_field",) if len(found) > 1 else ()
        yield from ((one, (*needed, *again)) for one in found)
        return
    flat = (strictjson.all_at(value, path[:1]) or strictjson.all_at(value, path[-1:])) if len(path) > 1 else []
    for one in flat:
        if strictjson.scalar(one) is not None:
            yield one, (*needed, "key_variant")


@lru_cache(maxsize=256)
def _spellings(field: str) -> tuple[str, str]:
    wanted = _KEY.sub("", field.casefold())
    return wanted, "final" + wanted


def _under(value: Pairs, needed: tuple[str, ...], field: str) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Every value under the field's name, however the key is spelled; twice the same key is both."""
    under = [pair for pair in value if pair[0] == field or _KEY.sub("", pair[0].casefold()) in _spellings(field)]
    extra = ("extra_key",) if len(under) < len(value) else ()
    again = ("duplicate_field",) if len(under) > 1 else ()
    for key, answer in under:
        yield answer, (*needed, *(() if key == field else ("key_variant",)), *extra, *again)


def _wrapped(value: Pairs, needed: tuple[str, ...], field: str) -> Iterator[tuple[Any, tuple[str, ...]]]:
    for _ in range(_LEVELS):
        if len(value) != 1 or not isinstance(value[0][1], Pairs) or value[0][0].casefold() in _SAMPLE:
            return
        value = value[0][1]
        if under := list(_under(value, (*needed, "wrapped"), field)):
            yield from under
            return


def _pieces(answer: Any, needed: tuple[str, ...], field: str, space: AnswerSpace, end: int) -> Iterator[Found]:
    if space.type == "json":
        yield Found(strictjson.dumps(answer), needed, end=end)
    elif isinstance(answer, Pairs):
        names = (*needed, "nested")
        inside = list(_under(answer, names, field)) or [(one, names) for key, one in answer if key.casefold() in _INNER]
        for inner, names in inside:
            if (text := strictjson.scalar(inner)) is not None:
                yield Found(text, names, end=end)
    elif isinstance(answer, list):
        name = "list_of_one" if len(answer) == 1 else "list"
        for text in map(strictjson.scalar, answer):
            if text is not None:
                yield Found(text, (*needed, name), end=end)
    elif answer is None and space.type == "text":
        return
    elif (text := strictjson.scalar(answer)) is not None:
        whole = _EATEN.sub(lambda match: _ATE[match[0]], text)
        yield Found(whole, needed if whole == text else (*needed, "eaten_escape"), end=end)


def broken_off(text: str, contract: Contract, space: AnswerSpace) -> list[Found]:
    """What a reply that was cut says: its closed objects, and what was closed in the one that broke off. Nothing where
    that one, after another, had not come to its answer."""
    if space.type == "json":
        return []
    spans = relaxed.spans(text)
    found, rest = inside(text, contract, space) if spans and spans[0][0] == text.find("{") else ([], text)
    if not found:
        return cut_off(text, contract)
    return [] if contract.field in rest and "{" in rest else [_truncated(each) for each in found]


def _truncated(found: Found) -> Found:
    return Found(found.text, ("truncated", *found.needed), found.firm, found.end)


def cut_off(text: str, contract: Contract, name: str = "truncated") -> list[Found]:
    """What the fields of an object say that were closed before it broke off."""
    start = text.find("{")
    wanted = tuple(strictjson.pointer(answer_path(contract)))
    found = []
    for path, literal in relaxed.closed_values(text, start) if start >= 0 else ():
        loaded = relaxed.load(literal) if path == wanted else None
        value = strictjson.scalar(loaded[0]) if loaded else None
        if loaded and value is not None:
            found.append(Found(value, (name, *loaded[1]), end=len(text)))
    return found
