"""The steps that take off what is not part of the answer's text: leading reasoning, and what serving leaks."""

from __future__ import annotations

import re

from auditor.parsing.peel import BLANK, OPENING_THINK, THINK, drop_invisible, drop_special_tokens
from auditor.parsing.state import State, not_there, unparseable, with_text
from auditor.records import Outcome

_OPEN_ANYWHERE = re.compile(rf"<{THINK}>|\[THINK\]", re.I)
_CLOSE = re.compile(rf"</{THINK}>|\[/THINK\]", re.I)
_OTHER_CLOSE = re.compile(r"</[\w:|\-]{1,20}>\s{0,20}(?=<answer>[^<]{0,400}</answer>\s{0,20}\Z)", re.I)


_CHANNELS = ("<|channel|>", "<|start|>")
_FINAL = "<|channel|>final<|message|>"


def drop_leading_think(state: State) -> State | Outcome:
    """Drops reasoning that opens the reply (`<think>...</think>` and its kin, also without the opening tag); text
    inside it is never read."""
    text, place = state.text, 0
    if "<" not in text and "[" not in text:
        return state
    if text.startswith(_CHANNELS) and (final := text.rfind(_FINAL)) >= 0:
        return with_text(state, text[final + len(_FINAL) :], "think_block")
    while opening := OPENING_THINK.match(text, place):
        closing = _CLOSE.search(text, opening.end()) or _OTHER_CLOSE.search(text, opening.end())
        if closing is None:
            return _all_reasoning(state)
        place = closing.end()
    rest = text[place:] if place else text
    if orphan := _orphan_close(rest):
        rest = rest[orphan.end() :]
    if rest == text:
        return state
    return with_text(state, rest, "think_block") if rest.strip(BLANK) else _all_reasoning(state)


def _all_reasoning(state: State) -> Outcome:
    return unparseable("truncated_in_reasoning" if state.cut else "content_in_reasoning")


def _orphan_close(text: str) -> re.Match[str] | None:
    """The first closing tag, if no opening tag precedes it."""
    first = _CLOSE.search(text) if "</" in text or "[/" in text else None
    return None if first is None or _OPEN_ANYWHERE.search(text, 0, first.start()) else first


def drop_leaks(state: State) -> State | Outcome:
    """Drops what serving leaks into a reply: byte order marks, zero-width characters, a chat template's tokens."""
    visible = drop_invisible(state.text)
    text = drop_special_tokens(visible)
    if text == state.text:
        return state
    if not text.strip(BLANK):
        return not_there(state, "empty")
    invisible = ("invisible",) if visible != state.text else ()
    return with_text(state, text, *invisible, *(("special_token",) if text != visible else ()))
