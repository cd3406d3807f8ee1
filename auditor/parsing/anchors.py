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
# One pattern from the sentence's start to the verb: the search skips to the next such start and a word in the middle of
# a sentence costs nothing.
_BEFORE = (
    r"""(?:[\n.!?;)\]>*](?!\n)(?:(?<=\n)|[ \t])|(?<=\w)\()(?=[ \t>*#_`"'(\-]{0,8}+\w)(?i:[ \t>*#_`"'(\-]{0,8}"""
    r"(?:(?:assistant|ai|bot|model) ?: ?)?"
    r"(?:(?:so|thus|therefore|hence|and|in conclusion|here is|here's)[, ]{1,2})?"
    r"(?:(?:the|my|our|your) )?(?:(?:final|correct|right|best|most likely)[ _\-])?)"
)
_COLON = r"[ \t*_`\"']{0,6}(?:[:=：]|-{1,2}>|=>|→)"
_VERB = (
    r"(?i:[ \t*]{1,4}(?:is|would be|should be|must be|will be|seems to be|appears to be)"
    r"(?: (?:therefore|thus|likely|most likely|clearly))?[ \t]{0,2}:?(?: (?:option|choice|letter))?[ \t]{1,2}(?=\S))"
)
_AFTER_CLAUSE = re.compile(
    r"(?:^|[.!?][ \t])(?!(?:if|unless|when|suppose|assuming|although|though|while|were|had)\b)"
    r"[^.!?\n,]{1,40}(?:,[^.!?\n,]{1,30}){0,4}, (?:so |and |then )?the (?:final|correct|right) (?:answer|option|choice)"
    + _VERB,
    re.I | re.M,
)
"""A clause before "the correct answer is", unless it is a condition."""
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
_WORDS_ABROAD = ("ntwort", "espuesta", "éponse", "isposta", "esposta")
_ABROAD = re.compile(
    r"[\n.!?:](?!\n)(?:(?<=\n)|[ \t])[ *#>_]{0,6}(?:(?:die|la|a|il|le|el|der) )?"
    r"(?:(?:richtige|korrekte|bonne|endgültige) )?(?:antwort|respuesta|réponse|risposta|resposta)"
    r"(?: (?:correcta|correcte|corretta|correta|final|finale))?(?: ist| es| est| è| é)?"
    r"[ *_]{0,4}(?:[:：]| (?=\S))[ *_]{0,4}(?:(?:la|die|le|il|a|opción|option) )?",
    re.I,
)
# The letters ahead are the first two of what may follow, seen before any of it is tried.
_CHOSEN = re.compile(
    r"[\n.!?;,:](?!\n)(?:(?<=\n)|[ \t])(?= {0,2}[bsathiw][uonhe' ]) {0,2}"
    r"(?:(?:but|so|and|thus|therefore|hence),? )?(?:I|We|I'd|I would|I will|I'll) "
    r"(?:choose|pick|select|go with|opt for|say|answer)(?: (?:option|choice|answer|letter))?:? (?=\S)",
    re.I,
)
_KEY_VALUE = re.compile(r"[A-Za-z_][\w \-]{0,40}:(?:\s|\Z)")
_LAST_LABELLED = re.compile(r"(?:#{1,6}|[A-Za-z]{1,12} ?[:=])[ \t]{0,4}(.+)")
_EQUATION = re.compile(r"[$€£]?[0-9][0-9 .,$€£%()+\-−–*/×÷]{0,120} ?[=≈] ?([^=≈]{1,60})")
_GAP = re.compile(r"\s{0,8}")
_PARAGRAPH_END = re.compile(r"\s{0,8}\Z|[ \t]{0,8}\n[ \t]{0,8}\n")
_LONGEST_LINE = 2500
"""More than a value may be long, so that a line cut off here is never read as one."""
_LONGEST_SENTENCE = 400


class _Words(Struct, frozen=True):
    """The patterns that depend on the field's name and the type of answer."""

    spelled: tuple[str, ...]
    """How the words that announce an answer are written; a field's name of two words by its first."""
    cue: re.Pattern[str]
    tag: re.Pattern[str]
    marker: re.Pattern[str]
    row: re.Pattern[str]
    heading: re.Pattern[str]
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
        tuple(word.partition("_")[0] or word for word in spelled),
        re.compile(rf"{_BEFORE}({names})(?!\w)(?:{_COLON}|({_VERB}))"),
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
        frozenset({field.casefold(), "answer"}),
        f"{field}: " if demanded else "",
        "key_variant" if demanded else "answer_cue",
    )


def find(text: str, contract: Contract, space: AnswerSpace) -> list[Found] | None:
    """Every cue of a text with what it announces, equal ones once; None when there are too many to look at."""
    words = _words(contract.field, space.type, contract.kind not in ("text", "json"))
    distinct: dict[tuple[str, bool], Found] = {}
    cues = chain(_cues(text, words), _headings(text, words), _marked(text, words), _boxes(text), _phrases(text, space))
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
    if len(lines) - start > _LONGEST_LINE:
        return None
    cues = list(islice(_cues(lines[start:], _words(contract.field, space.type, True)), 2))
    if len(cues) != 1 or not cues[0].firm:
        return None
    return Found(cues[0].text, cues[0].needed, end=len(text))


def _cues(text: str, words: _Words) -> Iterator[Found]:
    if not any(word in text for word in words.spelled):
        return
    for cue in words.cue.finditer(f"\n{text}"):
        start = cue.end() - 1
        end = _line_end(text, start)
        line = text[start:end]
        if cue[2]:
            yield Found(_sentence(line[:_LONGEST_SENTENCE]), ("answer_cue",), firm=False, end=end)
        else:
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
    next_end = _line_end(text, start)
    if next_end > start and not _KEY_VALUE.match(text, start) and _PARAGRAPH_END.match(text, next_end):
        yield Found(text[start:next_end], (*needed, "next_line"), firm, next_end)


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


def _headings(text: str, words: _Words) -> Iterator[Found]:
    """`## Final answer`, and the answer on the next line."""
    if "#" in text or "**" in text or "__" in text:
        for match in words.heading.finditer(text):
            yield from _colon(text, "", match.end(), (words.name,), firm=False)


def _boxes(text: str) -> Iterator[Found]:
    if "\\boxed" in text:
        for match in _BOXED.finditer(text):
            yield Found(match[1], ("latex",), end=match.end())


def _phrases(text: str, space: AnswerSpace) -> Iterator[Found]:
    if space.labels and ("I" in text or "We " in text or "i " in text):
        yield from _announced(text, _CHOSEN)
    if ", " in text and any(word in text for word in (" correct ", " right ", " final ")):
        yield from _announced(text, _AFTER_CLAUSE)
    if space.type == "choice" and (" is " in text or " would be " in text):
        for match in _IS_RIGHT.finditer(text):
            if _BEFORE_LABEL.search(text, max(0, match.start() - 40), match.start()):
                yield Found(match[1], ("answer_cue",), firm=False, end=match.end())
    if not text.isascii():
        yield from _announced(text, _CJK)
    if any(word in text for word in _WORDS_ABROAD):
        yield from _announced(text, _ABROAD)
    if space.type == "number":
        yield from _labelled_last_line(text)


def _announced(text: str, cue: re.Pattern[str]) -> Iterator[Found]:
    for match in cue.finditer(f"\n{text}"):
        start = match.end() - 1
        end = _line_end(text, start)
        sentence = _sentence(text[start : min(end, start + _LONGEST_SENTENCE)])
        yield Found(sentence, ("answer_cue",), firm=False, end=end)


def _labelled_last_line(text: str) -> Iterator[Found]:
    last = text.rstrip(BLANK).rpartition("\n")[2].strip(BLANK)
    match = _LAST_LABELLED.fullmatch(last) if len(last) < 200 else None
    if match is None and last == text.strip(BLANK) and len(last) < 200:
        match = _EQUATION.fullmatch(last)
    if match:
        yield Found(match[1], ("answer_cue",), firm=False, end=len(text))
