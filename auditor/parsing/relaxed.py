"""JSON as models write it, rewritten as JSON: each liberty taken has a name.

The rewriting is one pass over tokens and never guesses where a string or an object ends; `json_repair` is asked last,
about a short span that is already delimited, and its result must be backed by the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from auditor.parsing.strictjson import Pairs, pairs

Loaded = tuple[Any, tuple[str, ...]]

_TOKEN = re.compile(
    r"""(?P<space>\s++)
    |(?P<comment>//[^\n]{0,2000}+|/\*[^*]{0,2000}+\*++(?:[^/*][^*]{0,2000}+\*++){0,50}/|\#[^\n]{0,2000}+)
    |(?P<string>"(?:[^"\\]|\\.)*+")
    |(?P<single>'(?:[^'\\]|\\.)*+')
    |(?P<mark>[{}\[\]:,])
    |(?P<word>[^\s{}\[\]:,"']++)
    |(?P<open>["'])""",
    re.X | re.S,
)
_BRACES = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[{}"']""", re.S)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_CONTROL = re.compile(r"[\x00-\x1f]")
_DOUBLE_OPEN = re.compile(r"\{\s{0,20}\{")
_DOUBLE_CLOSE = re.compile(r"\}\s{0,20}\}\Z")
_LITERALS = {"True": "true", "False": "false", "None": "null"}
_JSON_WORD = re.compile(r"true|false|null|NaN|-?Infinity|-?[0-9][0-9.eE+\-]*")

_SPANS = 16
_LONGEST_SPAN = 20_000
_DEEPEST = 50
_LONGEST_REPAIR = 2_000


def load(text: str) -> Loaded | None:
    """The value of a text that is meant to be one JSON value, objects as `Pairs`, and the liberties it took."""
    try:
        return pairs(text), ()
    except ValueError:
        pass
    for candidate, needed in _rewritings(text):
        try:
            return pairs(candidate), needed
        except ValueError:
            continue
    return None


def _rewritings(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    if len(text) > _LONGEST_SPAN:
        return
    doubled = _DOUBLE_OPEN.match(text) and _DOUBLE_CLOSE.search(text)
    body, first = (text[1:-1].strip(), ("double_braces",)) if doubled else (text, ())
    rewritten = rewrite(body)
    if rewritten is not None:
        yield rewritten[0], first + rewritten[1]


def _tokens(text: str, start: int, end: int) -> list[re.Match[str]]:
    """The tokens up to a quote that never closes: looking for its end again and again would take quadratic time."""
    tokens = []
    for match in _TOKEN.finditer(text, start, end):
        if match.lastgroup != "space":
            tokens.append(match)
        if match.lastgroup == "open":
            break
    return tokens


def rewrite(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The text as JSON, and the liberties it took; None when a string never ends."""
    out: list[str] = []
    needed: list[str] = []
    tokens = _tokens(text, 0, len(text))
    for place, match in enumerate(tokens):
        kind, token = match.lastgroup, match[0]
        if kind == "open":
            return None
        if kind == "comment":
            needed.append("comment")
        elif kind == "mark":
            _mark(token, out, needed)
        elif kind == "word":
            before_colon = place + 1 < len(tokens) and tokens[place + 1][0] == ":"
            out.append(_word(token, before_colon, needed))
        else:
            out.append(_string(token, needed))
    return " ".join(out), tuple(dict.fromkeys(needed))


def _mark(token: str, out: list[str], needed: list[str]) -> None:
    if token in "}]" and out and out[-1] == ",":
        out.pop()
        needed.append("trailing_comma")
    out.append(token)


def _word(token: str, is_key: bool, needed: list[str]) -> str:
    if is_key:
        needed.append("unquoted_key")
        return json.dumps(token)
    if token in _LITERALS:
        needed.append("python_literal")
        return _LITERALS[token]
    if _JSON_WORD.fullmatch(token):
        return token
    needed.append("unquoted_value")
    return json.dumps(token)


def _string(token: str, needed: list[str]) -> str:
    body = token[1:-1]
    if token[0] == "'":
        needed.append("single_quotes")
        body = _BARE_QUOTE.sub(lambda match: '\\"', body)
    if "\\" in body:
        body = _ESCAPE.sub(lambda match: _escape(match[1], needed), body)
    if _CONTROL.search(body):
        needed.append("control_char")
        body = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", body)
    return f'"{body}"'


def _escape(escaped: str, needed: list[str]) -> str:
    if len(escaped) > 1 or escaped in '"\\/bfnrt':
        return "\\" + escaped
    if escaped == "'":
        return "'"
    needed.append("bad_escape")
    return "\\\\" + escaped


def spans(text: str) -> list[tuple[int, int]]:
    """Where the outermost `{...}` are, braces inside strings not counted; the first few."""
    found = []
    place = text.find("{")
    for _ in range(_SPANS):
        if place < 0:
            break
        end = _close(text, place)
        if end is not None:
            found.append((place, end))
        place = text.find("{", end or place + 1)
    return found


def _close(text: str, start: int) -> int | None:
    depth = 0
    for match in _BRACES.finditer(text, start, start + _LONGEST_SPAN):
        if match[0] in ('"', "'"):
            return None
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
        if depth > _DEEPEST:
            return None
    return None


def closed_values(text: str, start: int) -> list[tuple[tuple[str, ...], str]]:
    """The (keys, literal) of every value of an object that broke off, as far as they are closed: a string by its quote,
    anything else by what follows it; nothing else than a comma or a closing brace may follow."""
    tokens = _tokens(text, start, start + _LONGEST_SPAN)
    keys: list[str | None] = []
    found = []
    for place, match in enumerate(tokens):
        token, kind = match[0], match.lastgroup
        if kind == "open" or len(keys) > _DEEPEST:
            break
        if token in ("{", "["):
            keys.append(None)
        elif token in ("}", "]"):
            keys = keys[:-1] or [None]
        elif kind in ("string", "single", "word") and place > 1 and tokens[place - 1][0] == ":" and keys:
            after = tokens[place + 1][0] if place + 1 < len(tokens) else ""
            if after in (",", "}") or (not after and kind != "word"):
                found.append((tuple(key or "" for key in keys), token))
        elif kind in ("string", "single", "word") and keys and place + 1 < len(tokens) and tokens[place + 1][0] == ":":
            keys[-1] = token.strip("\"'")
    return found


def repair(span: str, field: str) -> Loaded | None:
    """What `json_repair` makes of a short delimited object, if it has the field, the text names that field once, and
    the answer stands in the text as it is."""
    if len(span) > _LONGEST_REPAIR or span.count(field) != 1:
        return None
    # Imported here: it is slow to import and rarely needed.
    import json_repair

    try:
        value = json_repair.loads(span)
    except (ValueError, RecursionError, IndexError):
        return None
    answer = value.get(field) if isinstance(value, dict) else None
    if not isinstance(answer, str) or not answer:
        return None
    # The text must say the same: the field, the answer, and then the next member or the end.
    member = rf"""{re.escape(field)}["']?\s*[:=]\s*["']?{re.escape(answer)}["']?\s*(?:[,;}}\n]|["']\w+["']\s*:)"""
    return (Pairs([(field, answer)]), ("repaired",)) if re.search(member, span) else None
