"""Steps that are told something, and work as lm-evaluation-harness's filters of the same name do on one response.

A pattern is the user's own and may take exponential time, so each search has a time limit; a reply on which it runs out
is a `parser_error`.
"""

from __future__ import annotations

import string
import unicodedata
from functools import cache, lru_cache

import regex
from msgspec import Struct

from auditor.parsing.state import State, not_there, parsed, unparseable, with_text
from auditor.parsing.values import canonical, fold
from auditor.records import AnswerSpace, Outcome

SECONDS = 1.0
"""What one search of one pattern may take."""

INVALID = "[invalid]"
_NUMBER = r"#### (\-?[0-9\.\,]+)"
_BLANKS = (None, "", INVALID)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> regex.Pattern[str]:
    """A pattern in the syntax of `re`. Raises ValueError that says what is wrong."""
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


class Regex(Struct, frozen=True, forbid_unknown_fields=True):
    """Keeps what a pattern finds, without white space around it: match `group_select` (0 the first, -1 the last), of
    several groups the first that is not empty; `fallback` where there is no match."""

    regex_pattern: str = _NUMBER
    group_select: int = 0
    fallback: str = INVALID

    def __post_init__(self) -> None:
        compiled(self.regex_pattern)

    def __call__(self, state: State) -> State | Outcome:
        try:
            found = _select(self.regex_pattern, state.text, self.group_select)
        except TimeoutError:
            return unparseable("parser_error")
        return _changed(state, self.fallback if found is None else found, "regex")


def _changed(state: State, text: str, name: str) -> State:
    return state if text == state.text else with_text(state, text, name)


def _select(pattern: str, text: str, select: int) -> str | None:
    if select == 0:
        first = compiled(pattern).search(text, timeout=SECONDS)
        groups = [] if first is None else [first.groups("") or (first[0],)]
    else:
        found = compiled(pattern).findall(text, timeout=SECONDS)
        groups = [one if isinstance(one, tuple) else (one,) for one in found]
        groups = groups[select:][:1] if -len(groups) <= select < len(groups) else []
    if not groups:
        return None
    texts = groups[0] if len(groups[0]) == 1 else [text for text in groups[0] if text]
    return texts[0].strip() if texts else None


class MultipleChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """Keeps what a pattern finds; else an option's text wherever it stands; else a label after a colon; in parentheses.
    `ignore_case`, `ignore_punctuation` and `regexes_to_ignore` are for the search for an option's text."""

    regex_pattern: str = _NUMBER
    group_select: int = 0
    fallback: str = INVALID
    ignore_case: bool = False
    ignore_punctuation: bool = False
    regexes_to_ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in (self.regex_pattern, *self.regexes_to_ignore):
            compiled(pattern)

    def __call__(self, state: State) -> State | Outcome:
        try:
            found = self._find(state.text, state.space)
        except TimeoutError:
            return unparseable("parser_error")
        return _changed(state, found or self.fallback, "multi_choice_regex")

    def _find(self, text: str, space: AnswerSpace) -> str | None:
        found = _select(self.regex_pattern, text, self.group_select)
        if found or not space.labels:
            return found
        options = {self._plain(option.strip()): f"({label})" for label, option in _options(space)}
        found = _select(_any(tuple(options)), self._plain(text), self.group_select)
        if found:
            return options.get(found, found)
        label = _select(rf":[\s]*({_any(space.labels)})", text, self.group_select)
        return f"({label})" if label else None

    def _plain(self, text: str) -> str:
        for pattern in self.regexes_to_ignore:
            text = compiled(pattern).sub("", text, timeout=SECONDS)
        text = text.lower() if self.ignore_case else text
        return text.translate(_punctuation()) if self.ignore_punctuation else text


def _options(space: AnswerSpace) -> list[tuple[str, str]]:
    return list(zip(space.labels, space.texts or space.labels, strict=False))


def _any(texts: tuple[str, ...]) -> str:
    return "|".join(map(regex.escape, texts))


@cache
def _punctuation() -> dict[int, None]:
    return dict.fromkeys(code for code in range(0x110000) if unicodedata.category(chr(code)).startswith("P"))


class Map(Struct, frozen=True, forbid_unknown_fields=True):
    """Replaces the text by what `mapping_dict` has for it, or by `default_value`; no answer where that is not given."""

    mapping_dict: dict[str, str | int | float | bool | None] = {}
    default_value: str | int | float | bool | None = None

    def __call__(self, state: State) -> State | Outcome:
        value = self.mapping_dict.get(state.text, self.default_value)
        if value is None:
            return not_there(state, "no_answer")
        return _changed(state, str(value), "map")


def remove_whitespace(state: State) -> State | Outcome:
    """Drops one space at the start of the text."""
    return _changed(state, state.text.removeprefix(" "), "remove_whitespace")


def lowercase(state: State) -> State | Outcome:
    """Puts the text in lower case."""
    return _changed(state, state.text.lower(), "lowercase")


def uppercase(state: State) -> State | Outcome:
    """Puts the text in upper case."""
    return _changed(state, state.text.upper(), "uppercase")


def take_first(state: State) -> State | Outcome:
    """Takes the first of several responses; here there is one."""
    return state


class ExactMatch(Struct, frozen=True, forbid_unknown_fields=True):
    """Accepts the text if it is a label, or a label in parentheses, up to what is ignored; for other types of answer,
    if it is a value once what matches `regexes_to_ignore` is gone."""

    ignore_case: bool = False
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.regexes_to_ignore:
            compiled(pattern)

    def __call__(self, state: State) -> State | Outcome:
        try:
            return self._match(state)
        except TimeoutError:
            return unparseable("parser_error")

    def _match(self, state: State) -> Outcome:
        if state.space.type not in ("choice", "label"):
            return _accepted(state, canonical(self._stripped(state.text), state.space))
        text = self._plain(state.text)
        labels = [
            label for label in state.space.labels if text in (self._plain(label), self._plain(f"({label})")) and text
        ]
        return _accepted(state, labels[0] if len(labels) == 1 else None)

    def _stripped(self, text: str) -> str:
        for pattern in self.regexes_to_ignore:
            text = compiled(pattern).sub("", text, timeout=SECONDS)
        return text

    def _plain(self, text: str) -> str:
        text = self._stripped(text)
        text = text.lower() if self.ignore_case else text
        text = text.translate(_ASCII_PUNCTUATION) if self.ignore_punctuation else text
        return text.translate(_DIGITS) if self.ignore_numbers else text


_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DIGITS = str.maketrans("", "", string.digits)


def canonical_value(state: State) -> State | Outcome:
    """Accepts the text if all of it is a value of the task: a label in any case, with or without parentheses, the exact
    text of one option, true or yes, a number with its commas."""
    text, space = state.text.strip(), state.space
    value = canonical(text, space)
    if value is None and space.type in ("choice", "label"):
        folded = fold(text[1:-1] if text.startswith("(") and text.endswith(")") else text)
        named = [label for label in space.labels if fold(label) == folded]
        value = named[0] if len(named) == 1 else None
    return _accepted(state, value)


def _accepted(state: State, value: str | None) -> Outcome:
    if value is not None and not (value == INVALID and value not in state.space.labels):
        return parsed(value, state.needed)
    named = state.space.type in ("choice", "label") and state.text.strip() not in _BLANKS
    return not_there(state, "not_in_choices" if named else "no_answer")
