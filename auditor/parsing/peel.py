"""Decoration around a value, taken off layer by layer; each layer has a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

BLANK = " \t\r\n\f\v\u00a0\u3000\ufeff\u200b\u200c\u200d\u200e\u200f\u2060"
FENCE = "```"
# Only a known language is a tag: in "```A" the letter may be the answer.
_TAG = r"json[c5]?|javascript|js|python|py|text|txt|plain|plaintext|yaml|yml|xml|html|markdown|md|toml|ini|latex|tex"
_FENCED = re.compile(rf"```[ \t]{{0,4}}+(?:(?:{_TAG})(?:[ \t]{{0,4}}+\n|[ \t]{{0,4}}+(?=\{{))|\n)?+", re.I)
_INVISIBLE = re.compile("[\ufeff\u200b\u200c\u200d\u200e\u200f\u2060]")
_SPECIAL = (
    r"(?:<\|im_start\|>(?:assistant)?|<\|start_header_id\|>assistant<\|end_header_id\|>"
    r"|<\|(?:im_end|endoftext|eot_id|eom_id|end|end_of_text|begin_of_text|assistant|return)\|>"
    r"|</?s>|<(?:eos|bos|pad|end_of_turn|start_of_turn)>|<｜end▁of▁sentence｜>|\[/?INST\])"
)
_SPECIAL_FIRST = re.compile(_SPECIAL)
_SPECIAL_LAST = re.compile(rf"{_SPECIAL}\Z")
_LONGEST_SPECIAL = 60
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_HAS_FULL_WIDTH = re.compile("[\uff01-\uff5e]")
_LATEX = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|mathrm|mathbf|mathsf|texttt)\s?\{(.*)\}"
    r"|\\\((.*)\\\)|\\\[(.*)\\\]|\$\$?([^$]*)\$\$?",
    re.S,
)
_LATEX_INSIDE = re.compile(r"\s?\\(?:text|mathrm|textbf)\s?\{\s?([^{}]*)\}")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "「": "」", "`": "`"}
_BRACKETS = {"(": ")", "[": "]", "<": ">", "（": "）", "【": "】"}
_PLAIN = re.compile(r"([A-Za-z0-9](?:[^<\[\\$*\x80-\U0010FFFF]*[A-Za-z0-9])?)[.,;]*")
"""What no layer changes, but for the punctuation at its end; most texts are, and are not searched for more."""


THINK = r"(?:[a-z]{1,10}:)?(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
OPENING_THINK = re.compile(rf"\s{{0,100}}(?:<{THINK}>|\[THINK\])", re.I)
"""Where a text starts with a tag that opens reasoning."""

Layer = tuple[str, Callable[[str], str]]


def unfenced(text: str) -> str | None:
    """What is inside a code fence, if the whole text is one."""
    bare = text.strip()
    opening = _FENCED.match(bare)
    if opening is None or not bare.endswith(FENCE) or bare.find(FENCE, opening.end()) != len(bare) - len(FENCE):
        return None
    return bare[opening.end() : -len(FENCE)]


def drop_special_tokens(text: str) -> str:
    """The text without a chat template's tokens at its two ends."""
    if "<" not in text and "[" not in text:
        return text
    for _ in range(20):
        bare = text.strip()
        first = _SPECIAL_FIRST.match(bare)
        last = _SPECIAL_LAST.search(bare, max(first.end() if first else 0, len(bare) - _LONGEST_SPECIAL))
        if not (first or last):
            break
        text = bare[first.end() if first else 0 : last.start() if last else len(bare)]
    return text


def drop_invisible(text: str) -> str:
    """The text without byte order marks and zero-width characters."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def _full_width(text: str) -> str:
    return text.translate(_FULL_WIDTH) if _HAS_FULL_WIDTH.search(text) else text


def _markdown(text: str) -> str:
    return text.strip("*`" + BLANK).removeprefix("> ")


def _inner_markdown(text: str) -> str:
    return text.replace("**", "")


def _latex(text: str) -> str:
    if "\\" not in text and "$" not in text:
        return text
    match = _LATEX.fullmatch(text)
    if match:
        return next(group for group in match.groups() if group is not None).strip(BLANK)
    return _LATEX_INSIDE.sub(r" \1", text).strip()


def _between(pairs: dict[str, str]) -> Callable[[str], str]:
    def undo(text: str) -> str:
        closed = len(text) > 2 and pairs.get(text[0]) == text[-1]
        return text[1:-1].strip(BLANK) if closed else text

    return undo


def _opening_quote(text: str) -> str:
    is_alone = text[:1] in _QUOTES and text[:1] not in text[1:] and _QUOTES[text[0]] not in text[1:]
    return text[1:].strip(BLANK) if is_alone else text


def _closing_bracket(text: str) -> str:
    return text[:-1] if text.endswith(")") and "(" not in text else text


_COMMON: tuple[Layer, ...] = (
    ("invisible", drop_invisible),
    ("special_token", drop_special_tokens),
    ("full_width", _full_width),
    ("markdown", _markdown),
    ("latex", _latex),
    ("quotes", _between(_QUOTES)),
)
# `(5)` is minus five to accountants, `5!` is 120 and `2**3` is 8: a number keeps what could change it.
_BARE = ("markdown", lambda text: text.strip("*`" + BLANK))
"""Of a number `>` is no quote: it may be a bound."""
_NUMBER = (
    *(_BARE if layer[0] == "markdown" else layer for layer in _COMMON),
    ("punctuation", lambda text: text.rstrip(".,;" + BLANK)),
)
_NAME = (
    *_COMMON,
    ("markdown", _inner_markdown),
    ("punctuation", lambda text: text.rstrip(".,;:!。" + BLANK)),
    ("brackets", _between(_BRACKETS)),
    ("brackets", _closing_bracket),
    ("quotes", _opening_quote),
)


def layers(text: str, numeric: bool = False) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The text, then the text without its outermost decoration, and so on, each with the names of what is off."""
    text = text.strip(BLANK)
    needed: tuple[str, ...] = ()
    for _ in range(9):
        yield text, needed
        plain = _PLAIN.fullmatch(text)
        name, bare = ("punctuation", plain[1]) if plain else _undo(text, _NUMBER if numeric else _NAME)
        if not bare or bare == text:
            return
        text = bare
        needed = needed if name in needed else (*needed, name)


def _undo(text: str, undoing: tuple[Layer, ...]) -> tuple[str, str]:
    for name, undo in undoing:
        bare = undo(text)
        if bare != text:
            return name, bare
    return "", text
