"""A grammar's parts in the languages of servers: a regular expression, or GBNF."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.records import Part

# llama.cpp refuses more than 2,000 repetitions in all; 6 lines of 200 characters are room enough for a brief reason.
_REGEX = {
    "number": r"(0|-?(0\.[0-9]{0,5}[1-9]|[1-9][0-9]{0,14}(\.[0-9]{0,5}[1-9])?))",
    "line": r"[^ \n]([^\n]{0,198}[^ \n])?",
    "string": r'"[^"\\\x00-\x1f]{0,200}"',
    "lines": r"([^\n]{1,200}\n){0,6}",
}
_GBNF = {
    "number": '("0" | "-"? ("0." [0-9]{0,5} [1-9] | [1-9] [0-9]{0,14} ("." [0-9]{0,5} [1-9])?))',
    "line": r"[^ \n] ([^\n]{0,198} [^ \n])?",
    "string": r'"\"" [^"\\\x00-\x1F]{0,200} "\""',
    "lines": r'([^\n]{1,200} "\n"){0,6}',
}


def regex(parts: Sequence[Part]) -> str:
    """Full match."""
    return "".join(_regex(part) for part in parts)


def gbnf(parts: Sequence[Part]) -> str:
    """With the root rule alone."""
    return "root ::= " + " ".join(_gbnf(part) for part in parts)


def _regex(part: Part) -> str:
    if not part.texts:
        return _REGEX[part.kind]
    escaped = [_escape(text) for text in part.texts]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _escape(text: str) -> str:
    """Only what means something in every dialect of regular expressions: `re.escape` also escapes spaces."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text).replace("\n", r"\n")


def _gbnf(part: Part) -> str:
    if not part.texts:
        return _GBNF[part.kind]
    quoted = ['"' + _gbnf_escape(text) + '"' for text in part.texts]
    return quoted[0] if len(quoted) == 1 else f"({' | '.join(quoted)})"


def _gbnf_escape(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return text
