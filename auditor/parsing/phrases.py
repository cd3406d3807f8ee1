"""Sentences that say what the answer is. One counts only where a sentence starts with it, is no condition and goes on
from no other line: "if I were rich, I would choose A" does not, nor does a line after "nobody believes that"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.parsing.peel import BLANK
from auditor.parsing.state import Found
from auditor.records import AnswerSpace

VERB = (
    r"(?i:[ \t*]{1,4}(?:is|would be|should be|must be|will be|seems to be|appears to be)"
    r"(?: (?:therefore|thus|likely|most likely|clearly))?[ \t]{0,2}:?(?: (?:option|choice|letter))?[ \t]{1,2}(?=\S))"
)
LONGEST_LINE = 2500
"""More than a value may be long, so that a line cut off here is never read as one."""
_LONGEST_SENTENCE = 400
_SHORTEST = 12
"""Characters of a sentence in one of the other languages with an alphabet."""

# A start is a mark and white space, or a new line: the search skips from one to the next.
_START = r"[\n.!?](?!\n)(?:(?<=\n)|[ \t])"
_CHOSEN = re.compile(
    rf"(?:{_START}(?= {{0,2}}[bsathiw][uonhe' ]) {{0,2}}(?:(?:but|so|and|thus|therefore|hence),? )?"
    r"|[,;] (?:but|so|and|thus|therefore|hence),? )(?:I|We|I'd|I would|I will|I'll) "
    r"(?:choose|pick|select|go with|opt for|say|answer)(?: (?:option|choice|answer|letter))?:? (?=\S)",
    re.I,
)
_AFTER_CLAUSE = re.compile(
    rf"{_START}(?:since|because|as a result|based on|given|considering|therefore|thus|so|hence|in conclusion|in summary"
    r"|overall|after (?:checking|considering|reviewing)|you(?:'re| are) right)\b"
    r"[^.!?\n,]{0,60}(?:,[^.!?\n,]{1,30}){0,4}, "
    r"(?:so |and |then )?the (?:final|correct|right) (?:answer|option|choice)" + VERB,
    re.I,
)
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
_CJK = re.compile(
    r"[\n。！？!?.](?:(?<=\n)|\s{0,3})(?:所以|因此|故|我们?|正确的?|正確的?|最终|最終|标准|したがって|따라서|[，,、\s]){0,4}"
    r"(?:答案|选择|選擇|选|選|正解|答え|정답)[是为為は은는이가]?\s{0,2}[:：]?\s{0,2}"
)
_WORDS_ABROAD = ("ntwort", "espuesta", "éponse", "isposta", "esposta")
_ABROAD = re.compile(
    r"[\n.!?:](?!\n)(?:(?<=\n)|[ \t])[ *#>_]{0,6}(?:(?:die|la|a|il|le|el|der) )?"
    r"(?:(?:richtige|korrekte|bonne|endgültige) )?(?:antwort|respuesta|réponse|risposta|resposta)"
    r"(?: (?:correcta|correcte|corretta|correta|final|finale))?(?: ist| es| est| è| é)?"
    r"[ *_]{0,4}(?:[:：]| (?=\S))[ *_]{0,4}(?:(?:la|die|le|il|a|opción|option) )?",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!](?=[*\"'”)]{0,3}\s{0,4}\Z|\s+[A-Z]\w*\s+\w+)")
_QUOTED = re.compile(r"[*_]{0,2}(?:\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”)")
_OPEN = re.compile(
    r"(?:,|\b(?:that|why|if|whether|when|because|since|and|or|but|than|as|like|say|says|to|not|is))[ \t]?\Z", re.I
)
_AS_EXAMPLE = re.compile(
    r"\b(?:example|instance|template|look like this|(?:use|follow|your|this)(?: the)?(?: following)? format)\b"
    r"[^\n.!?]{0,30}:?\s{0,3}\Z",
    re.I,
)
_LABELLED = re.compile(r"(?:#{4}|(?:A|Ans|Total|Result|Sum|Answer) ?[:=])[ \t]{0,4}(.+)", re.I)
_EQUATION = re.compile(r"[$€£]?[0-9][0-9 .,$€£%()+\-−–*/×÷]{0,120} ?[=≈] ?([^=≈]{1,60})")
_LONGEST_ENDING = 200


def phrases(text: str, space: AnswerSpace) -> Iterator[Found]:
    """What sentences of a text announce as the answer."""
    if space.labels and ("I" in text or "We " in text or "i " in text):
        yield from _announced(text, _CHOSEN)
    if ", " in text and any(word in text for word in (" correct ", " right ", " final ")):
        yield from _announced(text, _AFTER_CLAUSE)
    if space.type == "choice" and (" is " in text or " would be " in text):
        for match in _IS_RIGHT.finditer(text):
            before = _BEFORE_LABEL.search(text, max(0, match.start() - 40), match.start())
            if before and not goes_on(text, before.start()):
                yield Found(match[1], ("answer_cue",), firm=False, end=match.end())
    if not text.isascii():
        yield from _announced(text, _CJK)
    if len(text) < _SHORTEST:
        return
    # Numbers are written otherwise there: 2.500 may be two thousand five hundred.
    if space.type != "number" and any(word in text for word in _WORDS_ABROAD):
        yield from _announced(text, _ABROAD)


def _announced(text: str, cue: re.Pattern[str]) -> Iterator[Found]:
    for match in cue.finditer(f"\n{text}"):
        if not goes_on(text, max(0, match.start() - 1)):
            yield sentence(text, match.end() - 1)


def sentence(text: str, start: int) -> Found:
    """What is announced, from a place to the end of its sentence."""
    line = text[start : min(line_end(text, start), start + _LONGEST_SENTENCE)]
    quoted, end = _QUOTED.match(line), _SENTENCE_END.search(line)
    said = quoted[0] if quoted else line[: end.start()] if end else line
    return Found(said, ("answer_cue",), firm=False, end=start + len(said))


def line_end(text: str, start: int) -> int:
    """Where the line ends, or is cut off."""
    end = text.find("\n", start, start + LONGEST_LINE)
    return min(len(text), start + LONGEST_LINE) if end < 0 else end


def goes_on(text: str, place: int) -> bool:
    """Whether the line that starts at a place goes on from the one before: `if it rains,`, `they say that`."""
    line = text.rfind("\n", max(0, place - 1), place + 1)
    return line >= 0 and _OPEN.search(text[max(0, line - 40) : line]) is not None


def is_example(text: str, place: int) -> bool:
    """Whether what stands before says that an example follows."""
    return _AS_EXAMPLE.search(text[max(0, place - 60) : place]) is not None


def number_ending(text: str) -> Iterator[Found]:
    """The number on a last line like `#### 9` or `Total: 9`, or after a reply that is one equation."""
    last = text.rstrip(BLANK).rpartition("\n")[2].strip(BLANK)
    if len(last) >= _LONGEST_ENDING:
        return
    match = _LABELLED.fullmatch(last) or (_EQUATION.fullmatch(last) if last == text.strip(BLANK) else None)
    if match:
        yield Found(match[1], ("answer_cue",), firm=False, end=len(text))
