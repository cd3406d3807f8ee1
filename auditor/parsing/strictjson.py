"""JSON as the parsers need it: number literals kept as written, duplicate keys seen, NaN refused, never an exception
other than `ValueError`."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

SURROGATE = re.compile("[\ud800-\udfff]")


class Number(str):
    """A JSON number, as it was written: `18.00` and `18` are different literals."""


class Pairs(list[tuple[str, Any]]):
    """A JSON object as its (key, value) pairs, so that a key that comes twice is seen."""


class DuplicateKey(ValueError):
    """An object holds one key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise DuplicateKey
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_float=Number, parse_int=Number, parse_constant=_refuse)
_PLAIN = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)
_PAIRS = json.JSONDecoder(object_pairs_hook=Pairs, parse_float=Number, parse_int=Number, parse_constant=_refuse)


def _decode(decoder: json.JSONDecoder, text: str) -> Any:
    bare = text.strip(" \t\n\r")
    try:
        value, end = decoder.raw_decode(bare)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if end < len(bare):
        raise ValueError("text after the value")
    return value


def strict(text: str) -> Any:
    """The value of a JSON text, stricter than `json.loads`: raises `ValueError` for NaN, Infinity and lone surrogates,
    `DuplicateKey` for a key that comes twice at any depth. Numbers come as `Number`."""
    value = _decode(_STRICT, text)
    if ("\\u" in text or not text.isascii()) and SURROGATE.search(dumps(value)):
        raise ValueError("a lone surrogate is not text")
    return value


def plain(text: str) -> Any:
    """What `json.loads` makes of a text (the last of two equal keys wins, NaN is taken), numbers as `Number`."""
    return _decode(_PLAIN, text)


def pairs(text: str) -> Any:
    """The value of a JSON text with every object as `Pairs`. Raises `ValueError`."""
    return _decode(_PAIRS, text)


def is_prefix(text: str) -> bool:
    """Whether a JSON value starts the text and something follows it."""
    try:
        _, end = _STRICT.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return bool(text[end:].strip())


def dumps(value: Any) -> str:
    """Compact JSON with sorted keys, literals of numbers unchanged. Raises `ValueError` where it is too deep."""
    try:
        return _dump(value)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _dump(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_dump(key)}:{_dump(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, Pairs):
        return _dump(dict(value))
    if isinstance(value, list):
        return "[" + ",".join(map(_dump, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def scalar(value: Any) -> str | None:
    """A JSON string, number, boolean or null as text; None for an object or a list."""
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return None


def pointer(path: str) -> list[str]:
    """The tokens of a JSON pointer (RFC 6901): `/a~1b/0` is `["a/b", "0"]`."""
    if not path:
        return []
    return [token.replace("~1", "/").replace("~0", "~") for token in path.removeprefix("/").split("/")]


def firsts(value: Any) -> Any:
    """The value with the first of equal keys of every object, where `dumps` takes the last."""
    if isinstance(value, Pairs):
        return {key: firsts(one) for key, one in reversed(value)}
    return [firsts(one) for one in value] if isinstance(value, list) else value


def all_at(value: Any, keys: list[str]) -> list[Any]:
    """Every value that a path leads to, more than one where an object holds a key twice."""
    values = [value]
    for key in keys:
        values = [inner for one in values for inner in _inner(one, key)]
    return values


def _inner(value: Any, key: str) -> list[Any]:
    if isinstance(value, Pairs):
        return [inner for name, inner in value if name == key]
    if isinstance(value, list) and key.isdecimal() and len(key) < 9:
        return value[int(key) : int(key) + 1]
    return []


def at(value: Any, path: str) -> Any:
    """The value a JSON pointer leads to. Raises `LookupError` when there is none."""
    for token in pointer(path):
        if isinstance(value, dict):
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and len(token) < 9:
            value = value[int(token)]
        else:
            raise KeyError(token)
    return value
