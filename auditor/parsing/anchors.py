"""Where a text says that its answer follows: `answer:` lines, tags, boxes, and a few whole sentences.

A cue only counts where a line or a sentence starts with it, so that "if the answer is B" or "not the answer: B" never
does. Every pattern is bounded; a word is found first and its surroundings are looked at afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice

from msgspec import Struct

from auditor.parsing.peel import BLANK
from auditor.parsing.state import Found
from auditor.records import AnswerSpace, AnswerType, Contract

MOST = 32
"""Distinct cues looked at; a text with more has no one answer."""

_MOST_CUES = 2000

_SYNONYMS: dict[AnswerType, tuple[str, ...]] = {
    "choice": ("choice", "option", "selection"),
    "label": ("label", "category", "class", "intent"),
    "boolean": ("statement", "claim"),
}
_BEFORE = re.compile(
    r"""(?:^|[.!?;)\]>*][ \t]) [ \t>*#_`"'(\-]{0,8}
    (?:(?:so|thus|therefore|hence|and|in\ conclusion|here\ is|here's)[, ]{1,2})?
    (?:(?:the|my|our|your)\ )? (?:(?:final|correct|right|best|most\ likely)[ _\-])? \Z""",
    re.I | re.M | re.X,
)
_COLON = re.compile(r"[ \t*_`\"']{0,6}(?:[:=：]|-{1,2}>|=>|→)")
_VERB = re.compile(
    r"[ \t*]{1,4}(?:is|would be|should be|must be|will be|seems to be|appears to be)"
    r"(?: (?:therefore|thus|likely|most likely|clearly))?[ \t]{0,2}:?(?: (?:option|choice|letter))?[ \t]{1,2}(?=\S)",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!](?=[*\"'”)]{0,3}\s{0,4}\Z|\s+[A-Z]\w*\s+\w+\s+\w+)")
_QUOTED = re.compile(r"[*_]{0,2}(?:\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”)")
_IS_RIGHT = re.compile(
    r"\(?(?<!\w)([A-Z0-9]{1,2})\)? (?:is|would be) (?:the )?(?:correct|right|best)"
    r"(?: (?:answer|option|choice|one))?[.!]?$",
    re.M,
)
_BEFORE_LABEL = re.compile(
    r"(?:^|[.!?][ \t])[ \t>*]{0,4}(?:(?:so|thus|therefore),? )?"
    r"(?:(?:the )?(?:(?:correct|right|best) )?(?:answer|option|choice) )?\Z",
    re.I | re.M,
)
_BOXED = re.compile(r"\\boxed\s?\{((?:[^{}]|\{[^{}]{0,100}+\}){0,120}+)\}")
_CJK = re.compile(
    r"(?<![不非没沒未勿別别])(?:答案|选择|選擇|选|選|正解|答え|정답)[是为為は은는이가]?\s{0,2}[:：]?\s{0,2}"
)
_CHOSEN = re.compile(
    r"(?:^|[.!?;,:][ \t]) {0,2}(?:(?:but|so|and|thus|therefore|hence),? )?(?:I|We|I'd|I would|I will|I'll) "
    r"(?:choose|pick|select|go with|opt for|say|answer)(?: (?:option|choice|answer|letter))?:? (?=\S)",
    re.I | re.M,
)
_KEY_VALUE = re.compile(r"[A-Za-z_][\w \-]{0,40}:(?:\s|\Z)")
_LAST_LABELLED = re.compile(r"(?:#{1,6}|[A-Za-z]{1,12} ?[:=])[ \t]{0,4}(.+)")
_GAP = re.compile(r"\s{0,8}")
_PARAGRAPH_END = re.compile(r"\s{0,8}\Z|[ \t]{0,8}\n[ \t]{0,8}\n")
_LONGEST_LINE = 2500
"""More than a value may be long, so that a line cut off here is never read as one."""
_LONGEST_SENTENCE = 400


class _Words(Struct, frozen=True):
    """The patterns that depend on the field's name and the type of answer."""

    cue: re.Pattern[str]
    tag: re.Pattern[str]
    marker: re.Pattern[str]
    row: re.Pattern[str]
    demanded: str
    """The key as the contract demands it, where it demands one."""
    name: str
    """What any other cue is called."""


def _spellings(*words: str) -> str:
    """The words in lower, title and upper case; without re.I, the search for them is several times as fast."""
    names = dict.fromkeys(form for word in words for form in (word, word.lower(), word.capitalize(), word.upper()))
    return "|".join(re.escape(name).replace("_", "[ _]") for name in names)


@lru_cache(maxsize=256)
def _words(field: str, answer_type: AnswerType, demanded: bool) -> _Words:
    name = re.escape(field).replace("_", "[ _]")
    return _Words(
        re.compile(rf"(?:{_spellings(field, 'answer', *_SYNONYMS.get(answer_type, ()))})(?!\w)"),
        re.compile(rf"<(?:{name}|answer)>([^<]{{0,400}}+)(?:</(?:{name}|answer)>|\Z)", re.I),
        re.compile(rf"\[\[ ?## ?(?:{name}) ?## ?\]\]\s{{0,4}}([^\[\n]{{0,400}})", re.I),
        re.compile(
            rf"^[ \t]{{0,4}}\|[ \t*`]{{0,6}}(?:{name}|answer)[ \t*`]{{0,6}}\|([^|\n]{{1,400}})\|[ \t]{{0,4}}$",
            re.I | re.M,
        ),
        f"{field}: " if demanded else "",
        "key_variant" if demanded else "answer_cue",
    )


def find(text: str, contract: Contract, space: AnswerSpace) -> list[Found] | None:
    """Every cue of a text with what it announces, equal ones once; None when there are too many to look at."""
    words = _words(contract.field, space.type, contract.kind not in ("text", "json"))
    distinct: dict[tuple[str, bool], Found] = {}
    cues = chain(_cues(text, words), _marked(text, words), _boxes(text), _phrases(text, space))
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
    cues = list(islice(_cues(lines[start:], _words(contract.field, space.type, True)), 2))
    if len(cues) != 1 or not cues[0].firm:
        return None
    return Found(cues[0].text, cues[0].needed, end=len(text))


def _cues(text: str, words: _Words) -> Iterator[Found]:
    for word in words.cue.finditer(text):
        colon = _COLON.match(text, word.end())
        verb = None if colon else _VERB.match(text, word.end())
        after = colon or verb
        if after is None or text[word.start() - 1 : word.start()].isalnum():
            continue
        before = _BEFORE.search(text, max(0, word.start() - 48), word.start())
        if before is None:
            continue
        end = _line_end(text, after.end())
        line = text[after.end() : end]
        if verb:
            yield Found(_sentence(line[:_LONGEST_SENTENCE]), ("answer_cue",), firm=False, end=end)
        else:
            written = text[before.start() : after.end() + 1].lstrip("\n")
            yield from _colon(text, line, end, () if written == words.demanded else (words.name,))


def _colon(text: str, line: str, end: int, needed: tuple[str, ...]) -> Iterator[Found]:
    if line.strip("*_`" + BLANK):
        yield Found(line, needed, end=end)
        return
    # An answer on the next line stands alone there: several lines may be the options, listed once more.
    gap = _GAP.match(text, end)
    start = gap.end() if gap else end
    next_end = _line_end(text, start)
    if next_end > start and not _KEY_VALUE.match(text, start) and _PARAGRAPH_END.match(text, next_end):
        yield Found(text[start:next_end], (*needed, "next_line"), end=next_end)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + _LONGEST_LINE)
    return min(len(text), start + _LONGEST_LINE) if end < 0 else end


def _sentence(line: str) -> str:
    quoted = _QUOTED.match(line)
    if quoted:
        return quoted[0]
    end = _SENTENCE_END.search(line)
    return line[: end.start()] if end else line


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


def _boxes(text: str) -> Iterator[Found]:
    if "\\boxed" in text:
        for match in _BOXED.finditer(text):
            yield Found(match[1], ("latex",), end=match.end())


def _phrases(text: str, space: AnswerSpace) -> Iterator[Found]:
    if space.labels and ("I" in text or "We " in text or "i " in text):
        for match in _CHOSEN.finditer(text):
            end = _line_end(text, match.end())
            sentence = _sentence(text[match.end() : min(end, match.end() + _LONGEST_SENTENCE)])
            yield Found(sentence, ("answer_cue",), firm=False, end=end)
    if space.type == "choice" and (" is " in text or " would be " in text):
        for match in _IS_RIGHT.finditer(text):
            if _BEFORE_LABEL.search(text, max(0, match.start() - 40), match.start()):
                yield Found(match[1], ("answer_cue",), firm=False, end=match.end())
    if not text.isascii():
        for match in _CJK.finditer(text):
            end = _line_end(text, match.end())
            sentence = _sentence(text[match.end() : min(end, match.end() + _LONGEST_SENTENCE)])
            yield Found(sentence, ("answer_cue",), firm=False, end=end)
    if space.type == "number":
        yield from _labelled_last_line(text)


def _labelled_last_line(text: str) -> Iterator[Found]:
    last = text.rstrip(BLANK).rpartition("\n")[2].strip(BLANK)
    match = _LAST_LABELLED.fullmatch(last) if len(last) < 200 else None
    if match:
        yield Found(match[1], ("answer_cue",), firm=False, end=len(text))
