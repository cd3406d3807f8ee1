"""Reading a value that was located, tolerantly: the whole of a short string must make sense.

Nothing here searches for a letter or a number inside prose: a reading is of the whole string or there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from auditor.parsing import numbers
from auditor.parsing.language import UNDECLARED, Language
from auditor.parsing.numbers import Reading
from auditor.parsing.peel import BLANK, layers
from auditor.parsing.values import Index, boolean, fold, fold_text, index, json_value, words
from auditor.records import AnswerSpace

LONGEST = 2000
"""No value is longer; keeps every reading cheap."""

_ROOM = 120
"""Characters that decoration may add to a name."""

EXTRA = frozenset({"explanation", "letter_and_text", "unit", "label_prefix"})
"""Tolerances that pass over words beside the value."""

_PLACEHOLDER = re.compile(
    r"<[^<>]{0,60}>|\[[^\[\]]{0,60}\]|\{\{?[^{}]{0,60}\}?\}|\.{3,}|…|_{2,}|\$[A-Z_]{2,30}"
    r"|(?:your|the|final|correct)[ _](?:final[ _])?(?:answer|letter|choice|value|number)(?:[ _]here)?"
    r"|(?:letter|value|number|string|boolean)|[A-Za-z]{1,12}(?: ?\| ?[A-Za-z]{1,12})+",
    re.I,
)
_NULLISH = re.compile(
    r"(?:none|null|nil|nan|n/?a|unknown|undefined|unsure|not sure|(?:i )?(?:don'?t|do not) know|cannot .{0,60})"
    r"(?:\b.{0,200})?",
    re.I | re.S,
)
_PREFIX = re.compile(r"(?:the\s)?(?:option|choice|answer|letter)\s(?=\S)", re.I)
_LABEL_BRACKET = re.compile(r"([^\s().:\],;]{1,12})\s(\()(.+)\)")
_LABEL_TEXT = re.compile(r"\(?([^\s().:\]\-–—,;]{1,12})(\)\.?|[.:\]]|\s[-–—])[ \t]{0,4}(\S.*)")
_WHY = r"(?:because|since|due to)\b"
_CLAUSE = re.compile(rf"([^\s().:,;]{{1,12}})([.,;:]?)\s{{1,4}}{_WHY}", re.I)
_IS_RIGHT = re.compile(
    r"\(?([^\s().:,;]{1,12})\)?\s(?:is|would be)\s(?:the\s)?(?:correct|right|best)"
    r"(?:\s(?:answer|option|choice|one))?[.!]?",
    re.I,
)
_FIRST_WORDS = 5
_VERDICT = re.compile(r"\(?(?:is )?(?:in|not )?(?:correct|wrong|false|right)\)?[.!]?", re.I)
_NEGATIONS = frozenset(
    {"not", "no", "never", "none", "neither", "nor", "without", "cannot", "t", "un", "false", "wrong"}
)
_LIST = re.compile(r"\s*(?:,|/|&|\band\b|\bor\b)\s*", re.I)
_EITHER = re.compile(r"(?:either|both|maybe|perhaps) ", re.I)
_REASON = re.compile(rf",? {_WHY}", re.I)
_TEXT_LABEL = re.compile(r"(.+?) ?\(([^()\s]{1,12})\)")
_BECAUSE = re.compile(_WHY, re.I)
_TRUTH = re.compile(
    r"(true|false|yes|no)[*_`]{0,3}(?=[.,!;:]|\n\s{0,4}(?-i:[^a-z])|\s[-–—]\s)(?!\.?\s{0,4}[0-9])(.*)", re.I | re.S
)
_BOTH = re.compile(
    r"(?:either )?(?:true|yes)(?:/| or | and )(?:false|no)\b|(?:either )?(?:false|no)(?:/| or | and )(?:true|yes)\b",
    re.I,
)
_NOTHING: tuple[str, ...] = ()


def _said(words: str) -> re.Pattern[str]:
    lead = (
        r"(?:but |or |and |otherwise |it is |it's |that is |that's "
        r"|(?:the|this) (?:statement|claim|sentence|answer) is )?"
    )
    return re.compile(rf"(?:^|[.!?,;\n])\s{{0,4}}{lead}(?:{words})\b\s{{0,4}}(?:[.,!;\n–—-]|\Z)", re.I)


_OPPOSITE = {
    "true": _said("false|no|incorrect|untrue|wrong|not true|not correct"),
    "false": _said("true|yes|correct|right"),
}
_NO_VERDICT = re.compile(
    r"(?:cannot|can't|can not|don't|do not|unable to|not able to) (?:determine|answer|know|decide|tell|say|confirm)"
    r"|not enough information|insufficient information|undecidable|\bi (?:can|will) help|happy to|\bi understand"
    r"|of course|please (?:share|provide|send)",
    re.I,
)
_HALF = re.compile(
    r"\W{0,3}(?:but )?(?:only )?(?:partly|partially|in part|in theory|in some cases|it depends|depends on)\b", re.I
)


def read_value(
    text: str, space: AnswerSpace, exact_case: bool = False, language: Language = UNDECLARED
) -> Reading | None:
    """What a whole string says, in the terms of a space; several values when more than one could be meant.

    `exact_case` is for phrases in prose, where `a` and `i` are words.
    """
    if len(text) > LONGEST:
        return None
    if language is UNDECLARED:
        return _READERS[space.type](text, space, exact_case)
    plain = language.plain(text, space.type)
    reading = _READERS[space.type](plain, space, exact_case)
    return reading if reading is None or plain == text else Reading(reading.values, ("language", *reading.needed))


def is_placeholder(text: str) -> bool:
    """Whether a template's placeholder was copied: `<letter>`, `[YOUR ANSWER]`, `...`, `yes|no`."""
    return len(text) < 200 and _PLACEHOLDER.fullmatch(text.strip("*`\"'" + BLANK)) is not None


def is_nullish(text: str) -> bool:
    """Whether a string says that there is no answer: `None (cannot decide)`, `N/A`."""
    return len(text) < 300 and _NULLISH.fullmatch(text.strip("*`\"'(" + BLANK)) is not None


def _named(text: str, space: AnswerSpace, exact_case: bool) -> Reading | None:
    names = index(space)
    bare, needed = text.strip(BLANK), _NOTHING
    # Much longer than any name: only a label with words after it is left to try.
    for bare, needed in layers(text) if len(text) <= names.longest + _ROOM else ():
        if reading := _whole(bare, names, exact_case):
            return Reading(reading.values, needed + reading.needed)
    reading = (_in_words if space.type == "choice" else _label_in_words)(bare, names, exact_case)
    return reading and Reading(reading.values, needed + reading.needed)


def _whole(text: str, names: Index, exact_case: bool) -> Reading | None:
    """The string is a label, or an option's text, and nothing else."""
    if not names.may_start(text):
        return None
    if text in names.exact:
        return Reading((text,))
    by_label = () if exact_case and len(text) == 1 else names.labels.get(fold(text), ())
    by_text = names.texts.get(fold_text(text), ())
    values = tuple(dict.fromkeys(by_label + by_text))
    if values:
        return Reading(values, ("case" if by_label and len(text) == 1 else "spelling" if by_label else "option_text",))
    truth = boolean(text) if names.booleans else None
    return Reading((names.booleans[truth],), ("boolean_word",)) if truth else None


def _label(text: str, names: Index, exact_case: bool) -> str | None:
    if text in names.exact:
        return text
    folded = () if exact_case else names.labels.get(fold(text), ())
    return folded[0] if len(folded) == 1 else None


def _in_words(text: str, names: Index, exact_case: bool) -> Reading | None:
    """The string is a label with its text or a clause after it, or a list of labels."""
    if match := _PREFIX.match(text):
        bare = text[match.end() :]
        reading = _whole(bare, names, True) or _in_words(bare, names, True)
        # "Option 4" is the fourth as well as the one that says 4.
        other = (bare,) if reading and "option_text" in reading.needed and bare.isdecimal() else ()
        return reading and Reading((*reading.values, *other), ("label_prefix", *reading.needed))
    if labels := _listed(text, names):
        return Reading(labels, ("list",))
    if names.booleans and _BOTH.match(text):
        return Reading(tuple(names.booleans.values()), ("list",))
    if not names.may_start(text):
        return None
    if match := _IS_RIGHT.fullmatch(text):
        label = _label(match[1], names, exact_case=True)
        return Reading((label,), ("explanation",)) if label else None
    if match := _CLAUSE.match(text):
        # "A" and "I" before a clause are words too often.
        is_word = match[1] == "I" or (match[1] == "A" and not match[2])
        label = None if is_word else _label(match[1], names, exact_case=True)
        return Reading((label,), ("explanation",)) if label else None
    if reading := _before_reason(text, names):
        return reading
    if (match := _TEXT_LABEL.fullmatch(text)) and (owners := names.texts.get(fold_text(match[1]))):
        label = _label(match[2], names, exact_case=True)
        return Reading(tuple(dict.fromkeys((label, *owners))), ("letter_and_text",)) if label else None
    match = _LABEL_TEXT.fullmatch(text) or _LABEL_BRACKET.fullmatch(text)
    label = _label(match[1], names, exact_case) if match else None
    return _with_text(label, match[2].strip(), match[3], match[1], names) if match and label else None


def _label_in_words(text: str, names: Index, exact_case: bool) -> Reading | None:
    """The string is a label with a reason after it, or a list of labels."""
    labels = _listed(text, names)
    return Reading(labels, ("list",)) if labels else _before_reason(text, names)


def _before_reason(text: str, names: Index) -> Reading | None:
    """`copper, since it conducts`: the name before the reason; a letter alone is `_CLAUSE`'s."""
    match = _REASON.search(text, 2, names.longest + 2) if names.may_start(text) else None
    reading = _whole(text[: match.start()], names, True) if match and match.start() > 1 else None
    return reading and Reading(reading.values, (*reading.needed, "explanation"))


def _listed(text: str, names: Index) -> tuple[str, ...]:
    """The labels in `B and C`, `A/B`; none when anything else is in it."""
    if match := _EITHER.match(text):
        text = text[match.end() :]
    if not names.may_start(text):
        return ()
    parts = [part.strip("() ") for part in _LIST.split(text)] if len(text) < 80 else []
    if len(parts) < 2:
        return ()
    labels = [_label(part, names, exact_case=len(part) == 1) for part in parts]
    return tuple(dict.fromkeys(label for label in labels if label)) if all(labels) else ()


def _with_text(label: str, mark: str, rest: str, written: str, names: Index) -> Reading | None:
    """`B) copper`: sure when the text is the option's own, or a reason; else two things could be meant."""
    if _VERDICT.fullmatch(rest):
        return None
    if _BECAUSE.match(rest):
        return Reading((label,), ("explanation",))
    if reason := _REASON.search(rest):
        rest = rest[: reason.start()]
    for bare, _ in layers(rest):
        if owners := names.texts.get(fold_text(bare)):
            return Reading(tuple(dict.fromkeys((label, *owners))), ("letter_and_text",))
    if _is_shortened(rest, label, names):
        return Reading((label,), ("letter_and_text", "shortened"))
    # Without option texts to check against, "E. coli" and "A. Lincoln" must not be read as letters.
    initial = mark == "." and not (written.islower() and written not in ("a", "i"))
    if names.texts or initial or mark in ("-", "–", "—") or _mentions(rest, names, label):
        return Reading((label, rest.strip()[:40]), ("letter_and_text",))
    return Reading((label,), ("letter_and_text",))


def _is_shortened(text: str, label: str, names: Index) -> bool:
    """The words of the label's own text and no others, with none of its negations lost: at least half of them in their
    order and of no other's text, or its first ones, three more of them than of any other's."""
    said, own = words(text), names.words.get(label, ())
    if not set(said) <= set(own) or _NEGATIONS.intersection(said) != _NEGATIONS.intersection(own):
        return False
    fitting = [other for other, other_own in names.words.items() if _are_among(said, other_own)]
    if fitting == [label] and len(said) >= max(2, (len(own) + 1) // 2):
        return True
    alike = {other: _same_first(said, other_own) for other, other_own in names.words.items()}
    others = max((count for other, count in alike.items() if other != label), default=0)
    return alike.get(label, 0) >= max(_FIRST_WORDS, others + 3)


def _same_first(said: list[str], own: tuple[str, ...]) -> int:
    pairs = zip(said, own, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(said), len(own)))


def _are_among(said: list[str], own: tuple[str, ...]) -> bool:
    rest = iter(own)
    return all(word in rest for word in said)


def _mentions(text: str, names: Index, label: str) -> bool:
    found = frozenset(re.split(r"[^\w]+", text))
    return any(word in names.exact and word != label for word in found)


def _boolean(text: str, space: AnswerSpace, exact_case: bool) -> Reading | None:
    bare, needed = "", _NOTHING
    for bare, needed in layers(text):
        if bare.isalpha() and (truth := boolean(bare)):
            return Reading((truth,), needed if bare == truth else (*needed, "boolean_word"))
    match = _TRUTH.match(bare)
    if match is None:
        return Reading(("true", "false"), ("list",)) if _BOTH.match(bare) else None
    if _NO_VERDICT.search(match[2][:120]):
        return None
    if _HALF.match(match[2]):
        return Reading(("true", "false"), ("list",))
    truth = boolean(match[1]) or ""
    values = ("true", "false") if _OPPOSITE[truth].search(match[2]) else (truth,)
    return Reading(values, (*needed, "explanation"))


def _number(text: str, space: AnswerSpace, exact_case: bool) -> Reading | None:
    for bare, needed in layers(text, numeric=True) if len(text) <= 500 else ():
        if reading := numbers.read(bare):
            return Reading(reading.values, needed + reading.needed)
    return None


def _text(text: str, space: AnswerSpace, exact_case: bool) -> Reading | None:
    bare = text.strip(BLANK).strip()
    return None if not bare or is_placeholder(bare) else Reading((bare,))


def _json(text: str, space: AnswerSpace, exact_case: bool) -> Reading | None:
    value = json_value(text)
    return Reading((value,)) if value is not None else None


_READERS: dict[str, Callable[[str, AnswerSpace, bool], Reading | None]] = {
    "choice": _named,
    "label": _named,
    "boolean": _boolean,
    "number": _number,
    "text": _text,
    "json": _json,
}
