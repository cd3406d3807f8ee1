"""Where a text says that its answer follows: `answer:` lines, tags, boxes, and a few whole sentences.

A cue only counts where a line or a sentence starts with it, so that "if the answer is B" or "not the answer: B" never
does. Every pattern is bounded, and starts with a mark or a line break (the texts searched begin with one more), so that
the search skips from sentence to sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice

from msgspec import Struct

from auditor.parsing.peel import BLANK
from auditor.parsing.phrases import LONGEST_LINE, VERB, goes_on, is_example, line_end, phrases, sentence
from auditor.parsing.state import Found
from auditor.records import AnswerSpace, AnswerType, Contract

MOST = 32
"""Distinct cues looked at; a text with more has no one answer."""

_SHORTEST = 4
"""Characters of a text that announces something: `答案:B`."""
_MOST_CUES = 2000

_SYNONYMS: dict[AnswerType, tuple[str, ...]] = {
    "choice": ("choice", "option", "selection"),
    "label": ("label", "category", "class", "intent"),
    "boolean": ("statement", "claim"),
}
# One pattern from the sentence's start to the verb: the search skips to the next such start and a word in the middle of
# a sentence costs nothing.
_BEFORE = (
    r"""[\n.!?;)\]>*](?!\n)(?:(?<=\n)|[ \t])(?=[ \t>*#_`"'(\-]{0,8}+\w)(?i:[ \t>*#_`"'(\-]{0,8}"""
    r"(?:(?:assistant|ai|bot|model) ?: ?)?"
    r"(?:(?:so|thus|therefore|hence|and|in conclusion|here is|here's)[, ]{1,2})?"
    r"(?:(?:the|my|our|your) )?(?:(?:final|correct|right|best|most likely)[ _\-])?)"
)
_COLON = r"[ \t*_`\"']{0,6}(?:[:=：]|-{1,2}>|=>|→)"
_BOXED = re.compile(r"\\boxed\s?\{((?:[^{}]|\{[^{}]{0,100}+\}){0,120}+)\}")
_KEY_VALUE = re.compile(r"[A-Za-z_][\w \-]{0,40}:(?:\s|\Z)")
_GAP = re.compile(r"\s{0,8}")
_PARAGRAPH_END = re.compile(r"\s{0,8}\Z|[ \t]{0,8}\n[ \t]{0,8}\n")


class _Words(Struct, frozen=True):
    """The patterns that depend on the field's name and the type of answer."""

    spelled: tuple[str, ...]
    """What a text with a cue must have in it: the words that announce an answer, without their first letters."""
    cue: re.Pattern[str]
    tag: re.Pattern[str]
    marker: re.Pattern[str]
    row: re.Pattern[str]
    heading: re.Pattern[str]
    call: re.Pattern[str]
    own: frozenset[str]
    """The field's name and `answer`, folded: any other word that announces an answer is a synonym."""
    demanded: str
    """The key as the contract demands it, where it demands one."""
    name: str
    """What any other cue is called."""


def _spellings(*words: str) -> tuple[str, ...]:
    """The words in lower, title and upper case; without re.I, the search for them is several times as fast."""
    return tuple(
        dict.fromkeys(form for word in words for form in (word, word.lower(), word.capitalize(), word.upper()))
    )


@lru_cache(maxsize=256)
def _words(field: str, answer_type: AnswerType, demanded: bool) -> _Words:
    name = re.escape(field).replace("_", "[ _]")
    spelled = _spellings(field, "answer", *_SYNONYMS.get(answer_type, ()))
    names = "|".join(re.escape(word).replace("_", "[ _]") for word in spelled)
    return _Words(
        # Without its first letter, a word in lower and in title case is one.
        tuple(dict.fromkeys((word.partition("_")[0] or word)[1:] for word in spelled)),
        re.compile(rf"{_BEFORE}({names})(?!\w)(?:{_COLON}|({VERB}))"),
        re.compile(rf"<(?:{name}|answer)>([^<]{{0,400}}+)(?:</(?:{name}|answer)>|\Z)", re.I),
        re.compile(rf"\[\[ ?## ?(?:{name}) ?## ?\]\]\s{{0,4}}([^\[\n]{{0,400}})", re.I),
        re.compile(
            rf"^[ \t]{{0,4}}\|[ \t*`]{{0,6}}(?:{name}|answer)[ \t*`]{{0,6}}\|([^|\n]{{1,400}})\|[ \t]{{0,4}}$",
            re.I | re.M,
        ),
        re.compile(
            rf"^[ \t]{{0,3}}(?:#{{1,6}}[ \t]{{1,3}}|\*\*|__)[*_]{{0,3}}(?:the )?(?:(?:final|correct) )?"
            rf"(?:{name}|answer)[ \t*_#]{{0,8}}$",
            re.I | re.M,
        ),
        re.compile(
            rf"\b(?:submit|give|final|return|record|select|choose)\w{{0,20}}\(\s?(?:final_)?(?:{name}|answer)\s?[=:]\s?([^()\n]{{1,200}})\)",
            re.I,
        ),
        frozenset({field.casefold(), "answer"}),
        f"{field}: " if demanded else "",
        "key_variant" if demanded else "answer_cue",
    )


def find(text: str, contract: Contract, space: AnswerSpace) -> list[Found] | None:
    """Every cue of a text with what it announces, equal ones once; None when there are too many to look at."""
    if len(text) < _SHORTEST:
        return []
    words = _words(contract.field, space.type, contract.kind not in ("text", "json"))
    distinct: dict[tuple[str, bool], Found] = {}
    cues = chain(
        _cues(text, words),
        _headings(text, words),
        _marked(text, words),
        _calls(text, words),
        _boxes(text),
        phrases(text, space),
    )
    for count, found in enumerate(cues):
        # The last of equal ones stays, so that `end` is where the text went on.
        key = found.text.strip(BLANK), found.firm
        again = ("duplicate_field",) if key in distinct else ()
        distinct[key] = Found(found.text, found.needed + again, found.firm, found.end)
        if len(distinct) > MOST or count > _MOST_CUES:
            return None
    return list(distinct.values())


def last_line(text: str, contract: Contract, space: AnswerSpace) -> Found | None:
    """The cue with a colon that the last line of the text is, if it is one."""
    lines = text.rstrip(BLANK)
    start = lines.rfind("\n") + 1
    if len(lines) - start > LONGEST_LINE:
        return None
    cues = list(islice(_cues(lines[start:], _words(contract.field, space.type, True)), 2))
    if len(cues) != 1 or not cues[0].firm:
        return None
    return Found(cues[0].text, cues[0].needed, end=len(text))


def _cues(text: str, words: _Words) -> Iterator[Found]:
    if not any(word in text for word in words.spelled):
        return
    for cue in words.cue.finditer(f"\n{text}"):
        start, place = cue.end() - 1, max(0, cue.start() - 1)
        if cue[2]:
            if not goes_on(text, place):
                yield sentence(text, start)
        elif not is_example(text, place):
            end = line_end(text, start)
            line = text[start:end]
            written = cue[0].lstrip("\n") + text[start : start + 1]
            needed = () if written == words.demanded else (words.name,)
            # Under a contract with a field, "category: ..." may be another of its lines.
            yield from _colon(text, line, end, needed, not words.demanded or cue[1].casefold() in words.own)


def _colon(text: str, line: str, end: int, needed: tuple[str, ...], firm: bool) -> Iterator[Found]:
    if line.strip("*_`" + BLANK):
        yield Found(line, needed, firm, end)
        return
    # An answer on the next line stands alone there: several lines may be the options, listed once more.
    gap = _GAP.match(text, end)
    start = gap.end() if gap else end
    next_end = line_end(text, start)
    if next_end > start and not _KEY_VALUE.match(text, start) and _PARAGRAPH_END.match(text, next_end):
        yield Found(text[start:next_end], (*needed, "next_line"), firm, next_end)


def _marked(text: str, words: _Words) -> Iterator[Found]:
    if "<" in text:
        for match in words.tag.finditer(text):
            yield Found(match[1], ("tag",), end=match.end())
    if "[[" in text:
        for match in words.marker.finditer(text):
            yield Found(match[1], ("field_marker",), end=match.end())
    if "|" in text:
        for match in words.row.finditer(text):
            yield Found(match[1], ("table",), end=match.end())


def _headings(text: str, words: _Words) -> Iterator[Found]:
    """`## Final answer`, and the answer on the next line."""
    if "#" in text or "**" in text or "__" in text:
        for match in words.heading.finditer(text):
            yield from _colon(text, "", match.end(), (words.name,), firm=False)


def _calls(text: str, words: _Words) -> Iterator[Found]:
    """`submit_answer(answer="B")`."""
    if "(" in text:
        for match in words.call.finditer(text):
            yield Found(match[1], ("call",), end=match.end())


def _boxes(text: str) -> Iterator[Found]:
    if "\\boxed" in text:
        for match in _BOXED.finditer(text):
            yield Found(match[1], ("latex",), end=match.end())
