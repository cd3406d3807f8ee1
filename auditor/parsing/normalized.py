"""The tolerant reading: it looks only where a contract or a cue says that the answer is, and gives a value only when
exactly one is left. It never looks for a letter or a number in prose."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from auditor.parsing import anchors, objects
from auditor.parsing.contracts import exact_contract
from auditor.parsing.language import Language
from auditor.parsing.loose import is_nullish, is_placeholder, read_value
from auditor.parsing.numbers import Reading
from auditor.parsing.peel import BLANK, unfenced
from auditor.parsing.phrases import number_ending
from auditor.parsing.retraction import is_taken_back
from auditor.parsing.state import (
    Found,
    State,
    ambiguous,
    not_there,
    parsed,
    unparseable,
    with_found,
    with_language,
    with_text,
)
from auditor.parsing.values import exact
from auditor.records import AnswerType, Outcome, Reason

_REFUSAL = re.compile(
    r"\W{0,4}(?:(?:i'?m|i am) (?:very |really )?(?:sorry|unable|not able)|i (?:can'?t|can ?not|won'?t|would rather not)"
    r"|sorry|as an ai)\b",
    re.I,
)
_LINES, _LONGEST_LINE = 60, 600
_MOST_MARKS = 200
"""Delimiters looked at; a text with more has no one block."""
_EXPLAINED = ("explanation",)
_DOUBTFUL: dict[AnswerType, frozenset[str]] = {
    "choice": frozenset({"explanation"}),
    "label": frozenset(),
    "boolean": frozenset(),
    "number": frozenset({"unit", "punctuation"}),
    "text": frozenset(),
    "json": frozenset(),
}
"""What a first line may not need: "3 eggs" and "1." open an explanation more often than they are the answer."""


class DeclareLanguage(Language, frozen=True, forbid_unknown_fields=True):
    """Declares words for `true` and `false` beside true, yes, false and no (`Nein`), in any case; `decimal_comma` says
    that 1.234,56 is a number."""

    def __call__(self, state: State) -> State | Outcome:
        return with_language(state, self)


_ITEM = re.compile(r"\s{0,4}\(?[A-Za-z0-9]{1,2}[).:]")
"""How an item of a list starts."""
_CONTRAST = re.compile(r"\s{0,4}(?:but|however|hmm|though|yet|on the other hand|this (?:one|option|choice))\b", re.I)
_GOES_ON = re.compile(r"[a-z0-9*/+×÷=%^-]")
"""How a line starts that goes on with the one before."""
_REASON = re.compile(r"(?:because|since|due to|as)\b", re.I)
_ONE_MORE = re.compile(r"\(?[A-Za-z0-9]{1,2}[.):] .*|\w[\w'-]*(?: \w[\w'-]*){0,2}")
_DENIES = re.compile(
    r"\b(?:(?:is|are|was|were|would be|may be|might be) "
    r"(?:a mistake|wrong|false|incorrect|not (?:the|right|correct|it\b|true))"
    r"|sorry|i meant|instead|edit|correction|ruled? (?:(?:it|this|that) )?out|excluded|does(?: not|n't) fit|none of"
    r"|not a (?:good|correct))\b",
    re.I,
)
_OTHER_TRUTH = re.compile(r"\b(?:it is|it's|that is|that's|answer is) (?:true|false|yes|no)\b", re.I)
_ANY_FIELD = re.compile(r"^[A-Za-z_][\w ]{0,30}:[ \t]", re.M)


def strict_first(state: State) -> State | Outcome:
    """Ends with what the strict reading accepts, unchanged: no tolerance ever touches a reply that needs none."""
    if state.cut:
        return state
    located = exact_contract(state)
    if isinstance(located, Outcome):
        return state
    value = exact(located.found[0].text, state.space)
    return state if value is None else parsed(value)


def locate_contract(state: State) -> State | Outcome:
    """Finds the answer where the contract puts it, whatever surrounds or decorates it: an object with the key, an
    `answer:` line, a block, a tag, a box, a sentence that says so; else the whole reply, if it is only a value."""
    if state.space.type == "text" and state.contract.kind == "text":
        return not_there(state, "truncated") if state.cut else with_found(state, (Found(state.text.strip(BLANK)),))
    if state.cut:
        return _located_cut(state)
    body = unfenced(state.text)
    if body is not None:
        state = with_text(state, body, "code_fence")
    if state.contract.kind == "final_line" and (last := anchors.last_line(state.text, state.contract, state.space)):
        return with_found(state, (last,))
    whole = objects.whole(state.text, state.contract, state.space)
    if whole is not None:
        return with_found(state, whole[0]) if whole[0] else unparseable(whole[1] or "missing_key")
    found = _everywhere(state)
    if found is None:
        return unparseable("conflicting_answers")
    return with_found(state, found) if found else _nothing(state)


def _everywhere(state: State) -> list[Found] | None:
    """Every piece that a contract or a cue marks; None when there are too many. Under a contract with a field, phrases
    only count without one."""
    found, text = objects.inside(state.text, state.contract, state.space) if "{" in state.text else ([], state.text)
    if state.space.type == "json":
        return found
    if state.contract.kind == "block":
        blocks, text = _blocks(text, state)
        found += blocks
    cues = anchors.find(text, state.contract, state.space)
    if cues is None:
        return None
    found += cues
    if not found and state.space.type == "number" and state.contract.kind in ("text", "final_line"):
        found = list(number_ending(text))
    if state.contract.kind == "text":
        return found + _leading(state, found)
    firm = [each for each in found if each.firm] or _unclosed(state)
    # Any words would do for a text: a sentence that starts like an answer proves nothing there.
    if firm or state.space.type == "text":
        return firm
    if _is_begun(state):
        return found
    leading = _leading(state, found)
    return found + [Found(each.text, ("bare_answer", *each.needed), False, each.end) for each in leading]


def _leading(state: State, found: list[Found]) -> list[Found]:
    """What the reply starts with; not where that is the options once more, before one of them is named."""
    leading = _first_lines(state, alone=not found)
    return [] if found and _is_list(state.text, leading) else leading


def _is_list(text: str, leading: list[Found]) -> bool:
    """Whether the text begins with two or more different values, line by line."""
    first = [line.strip(BLANK) for line in text.strip(BLANK).split("\n", 2)[:2]]
    return len(leading) > 1 and first == [each.text.strip(BLANK) for each in leading[:2]] and first[0] != first[1]


def _is_begun(state: State) -> bool:
    """Whether a field or a block is there, with nothing in it: then what stands before it is no answer."""
    contract = state.contract
    marks = (contract.begin, contract.end) if contract.kind == "block" else (f"{contract.field}:", f'{contract.field}"')
    text = state.text.casefold()
    return any(mark.casefold() in text for mark in marks)


def _unclosed(state: State) -> list[Found]:
    """The answer of an object that is the reply's end and only lacks its closing brace."""
    bare = state.text.strip(BLANK)
    if state.contract.kind != "json" or not bare.startswith("{") or bare.endswith("}"):
        return []
    return objects.cut_off(bare, state.contract, "unclosed")


@lru_cache(maxsize=256)
def _delimiters(begin: str, end: str) -> re.Pattern[str]:
    """Both, in any case, also as `<BEGIN_ANSWER>` and `</END ANSWER>`."""
    loose = (re.escape(one).replace(r"\ ", "[ _]").replace("<", "</?") for one in (begin, end))
    return re.compile("|".join(loose), re.I)


def _blocks(text: str, state: State) -> tuple[list[Found], str]:
    """What stands in blocks without an `answer:` line, and the text with the delimiters as line breaks."""
    if not (state.contract.begin and state.contract.end):
        return [], text
    pattern = _delimiters(state.contract.begin, state.contract.end)
    opening = _delimiters(state.contract.begin, state.contract.begin)
    found, marks = [], list(islice(pattern.finditer(text), _MOST_MARKS + 1))
    if len(marks) > _MOST_MARKS:
        return [], text
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        start = mark.end()
        inner = text[start:end].strip(BLANK) if start < end and opening.fullmatch(mark[0]) else ""
        if inner and ":" not in inner and read_value(inner, state.space, language=state.language) is not None:
            found.append(Found(inner, ("field_missing",), end=end))
    return found, pattern.sub(lambda mark: "\n".rjust(len(mark[0])), text)


def _first_lines(state: State, alone: bool) -> list[Found]:
    """A reply that is a value, or whose first line is one; where it is `alone`, only with an explanation after it."""
    text, whole = state.text, state.text.strip(BLANK)
    if reading := read_value(whole, state.space, language=state.language):
        return [Found(text, end=len(text), reading=reading if whole == text else None)]
    head, newline, tail = whole.partition("\n")
    first = _line_value(head, state) if newline else None
    if first is None or (head.strip() in ("A", "I") and tail.partition("\n")[0].strip()):
        return []
    # Options or steps listed line by line are values too; then there is no one answer.
    lines = [line for line in tail[:8000].split("\n")[:_LINES] if line.strip()]
    if alone and not _explains(lines[0] if lines else "", tail, state):
        return []
    values = [(head, first), *((line, _line_value(line, state)) for line in lines)]
    return [Found(line, _EXPLAINED, False, len(head), reading) for line, reading in values if reading]


def _explains(line: str, tail: str, state: State) -> bool:
    """Whether what follows a value on the first line can be its explanation: not where the next line goes on with it,
    names one more thing or denies it, nor, under a contract with a field, where one is begun."""
    if _line_value(line, state) is not None:
        return True
    bare = line.strip(BLANK + "*_>")
    if state.contract.kind != "text" and ("{" in tail or _ANY_FIELD.search(tail)):
        return False
    if _GOES_ON.match(bare) and not _REASON.match(bare):
        return False
    if _ONE_MORE.fullmatch(bare) or _DENIES.search(bare):
        return False
    return state.space.type != "boolean" or not _OTHER_TRUTH.search(bare)


def _line_value(line: str, state: State) -> Reading | None:
    reading = read_value(line, state.space, True, state.language) if len(line) <= _LONGEST_LINE else None
    return None if reading is None or _DOUBTFUL[state.space.type].intersection(reading.needed) else reading


def _nothing(state: State) -> Outcome:
    bare = state.text.strip(BLANK)
    if state.contract.kind == "json" and bare.startswith("{"):
        return unparseable("invalid_json")
    if state.contract.kind == "block" and state.contract.begin in bare:
        return unparseable("field_missing")
    if is_placeholder(bare):
        return unparseable("placeholder_echo")
    if _REFUSAL.match(bare):
        return unparseable("refusal")
    reasons: dict[str, Reason] = {"json": "invalid_json", "block": "block_missing", "text": "no_answer"}
    return unparseable(reasons.get(state.contract.kind, "field_missing"))


def _located_cut(state: State) -> State | Outcome:
    """A reply stopped by its limit counts only as far as an answer was closed before the cut."""
    if state.contract.kind == "json" or state.space.type == "json":
        found = objects.broken_off(state.text, state.contract, state.space)
        return with_found(state, found) if found else unparseable("truncated")
    lines, newline, rest = state.text.rpartition("\n")
    if not newline or (state.contract.kind == "final_line" and rest.strip(BLANK)):
        return unparseable("truncated")
    closed = with_text(state, lines, "truncated")
    if state.contract.kind == "final_line":
        last = anchors.last_line(lines, state.contract, state.space)
        return with_found(closed, (last,)) if last else unparseable("truncated")
    found = _everywhere(closed) or []
    # A sentence alone does not close an answer, but it may contradict one; so may the line that was cut.
    is_closed = any(each.firm or "explanation" in each.needed for each in found)
    is_open = (
        _ITEM.match(rest)
        or _CONTRAST.match(rest)
        or is_taken_back(rest, 0)
        or anchors.find(rest, state.contract, state.space) != []
    )
    return with_found(closed, found) if is_closed and not is_open else unparseable("truncated")


def one_value(state: State) -> State | Outcome:
    """Reads every piece that was found as a value of the task; gives it when exactly one distinct value is left."""
    if len(state.found) > anchors.MOST:
        return unparseable("conflicting_answers")
    if len(state.found) == 1 and (reading := _read(state.found[0], state)) and len(reading.values) == 1:
        return _one(state, state.found[0], reading)
    readings = [(each, _read(each, state)) for each in state.found]
    values = [value for _, reading in readings if reading for value in reading.values]
    unread = [each.text.strip(BLANK) for each, reading in readings if reading is None and each.firm]
    unread = [text for text in unread if text and not is_placeholder(text)]
    if len(set(values)) > 1 or (values and unread):
        every = set(values) == set(state.space.labels) and len(state.space.labels) > 2
        if every or any(reading and is_taken_back(each.text, 0) for each, reading in readings):
            return unparseable("conflicting_answers")  # all the options are none, and so is one that is taken back
        return ambiguous([*values, *(text[:40] for text in unread)], state.needed)
    if not values:
        return _no_value(state, unread)
    return _one(state, *next((each, reading) for each, reading in readings if reading))


def _one(state: State, each: Found, reading: Reading) -> Outcome:
    """The one value that is left, unless what follows the last piece takes it back."""
    if is_taken_back(state.text, min(max(one.end for one in state.found), len(state.text))):
        return unparseable("conflicting_answers")
    needed = (*state.needed, *each.needed, *reading.needed)
    return parsed(reading.values[0], needed or (_surroundings(state, each),))


def _read(each: Found, state: State) -> Reading | None:
    reading = each.reading or read_value(each.text, state.space, not each.firm, state.language)
    # `<true or false>` lists what the prompt asked for.
    return None if reading and len(reading.values) > 1 and is_placeholder(each.text) else reading


def _surroundings(state: State, each: Found) -> str:
    contract = state.contract
    if contract.kind == "block" and not (contract.begin in state.text and contract.end in state.text):
        return "block_missing"
    return "whitespace" if state.text.strip(BLANK) == each.text.strip(BLANK) else "extra_text"


def _no_value(state: State, unread: list[str]) -> Outcome:
    firm = [each for each in state.found if each.firm and each.text.strip(BLANK)]
    if firm and not unread:
        return unparseable("placeholder_echo")
    if not unread:
        return unparseable("no_answer") if state.found and state.found[0].firm else _nothing(state)
    if is_nullish(unread[0]):
        return unparseable("no_answer")
    short = len(unread[0]) <= 80 and not any(map(str.isspace, unread[0]))
    return unparseable("not_in_choices" if state.space.type in ("choice", "label") and short else "no_answer")
