"""The FSI paper's reading (its section 5.2 and Appendix B), as far as the paper tells.

The scope is our reading: Table 1's caption says that only the final answer field is parsed, so the field is located as
the contract demands and Appendix B is applied to what stands in it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from auditor.parsing import numbers, strictjson
from auditor.parsing.contracts import answer_path
from auditor.parsing.peel import FENCE
from auditor.parsing.state import Found, State, not_there, parsed, unparseable, with_found
from auditor.parsing.values import json_value
from auditor.records import AnswerSpace, Outcome

LETTERS = frozenset("ABCDE")
_LETTER = re.compile("[A-E]")
# The first letter stands alone in front, so that the search skips from one such letter to the next.
_TRUTH = re.compile(r"[TYFNtyfn](?<!\w.)(?i:((?<=t)rue|(?<=y)es)|(?<=f)alse|(?<=n)o)\b")
_DIGITS = "0123456789"
# A comma between two digits is as if it were not there.
_RUN = r"[0-9](?:,?[0-9])*+"
_NUMBER = re.compile(rf"(?<![0-9])-?(?:(?<![0-9],){_RUN}(?:\.{_RUN})?|\.{_RUN})(?:[eE][-+]?[0-9](?:,?[0-9]){{0,2}})?")


def does_not_apply(space: AnswerSpace) -> str | None:
    """Why Appendix B cannot read a space: it knows the letters A to E."""
    past = [label for label in space.labels if label not in LETTERS] if space.type == "choice" else []
    return f"labels go past E ({past[0]})" if past else None


@lru_cache(maxsize=256)
def _line(field: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,20}}{re.escape(field)}[ \t]{{0,20}}:(.*)$", re.I | re.M)


def contract_field(state: State) -> State | Outcome:
    """Takes the answer field as the contract demands: json, the whole reply loads and has the key; block, the last
    `answer:` line inside the block; fields and final_line, the last `answer:` line; text, the whole reply."""
    match state.contract.kind:
        case "text":
            return with_found(state, (Found(state.text),))
        case "json":
            return _json_field(state)
        case "block":
            return _block_field(state)
        case _:
            return _last_line(state, state.text)


def _json_field(state: State) -> State | Outcome:
    text = state.text.strip()
    if text.startswith(FENCE):
        return unparseable("code_fence")
    try:
        value = strictjson.plain(text)
    except ValueError:
        return not_there(state, "invalid_json")
    if not isinstance(value, dict):
        return unparseable("wrong_type")
    if state.space.type == "json" and state.contract.answer_path is None:
        return with_found(state, (Found(text),))
    try:
        answer = strictjson.at(value, answer_path(state.contract))
    except LookupError:
        return unparseable("missing_key")
    if state.space.type == "json":
        return with_found(state, (Found(strictjson.dumps(answer)),))
    scalar = None if answer is None else strictjson.scalar(answer)
    return unparseable("wrong_type") if scalar is None else with_found(state, (Found(scalar),))


def _block_field(state: State) -> State | Outcome:
    end = state.text.rfind(state.contract.end)
    begin = state.text.rfind(state.contract.begin, 0, max(end, 0))
    if begin < 0 or end < 0:
        return not_there(state, "block_missing")
    return _last_line(state, state.text[begin + len(state.contract.begin) : end])


def _last_line(state: State, text: str) -> State | Outcome:
    values = _line(state.contract.field).findall(text)
    return with_found(state, (Found(values[-1]),)) if values else not_there(state, "field_missing")


def appendix_b(state: State) -> State | Outcome:
    """Appendix B on the field, or on the whole reply where no step located one: choice, the first letter in A-E;
    boolean, the first of true/yes/false/no; number, the last one, commas removed; label, the whole, in any case."""
    text = state.found[0].text if state.found else state.text
    match state.space.type:
        case "choice":
            return _letter(state, text)
        case "boolean":
            found = _TRUTH.search(text)
            value = ("true" if found[1] else "false") if found else None
        case "number":
            value = _last_number(text)
        case "label":
            return _label(state, text.strip())
        case "json":
            value = json_value(text)
        case _:
            value = text.strip() or None
    return not_there(state, "no_answer") if value is None else parsed(value)


def _letter(state: State, text: str) -> Outcome:
    found = _LETTER.search(text)
    if found is None:
        return not_there(state, "no_answer")
    return parsed(found[0]) if found[0] in state.space.labels else unparseable("not_in_choices")


def _last_number(text: str) -> str | None:
    # All of the last number lies in the last run of such characters.
    end = max(map(text.rfind, _DIGITS)) + 1
    run = text[len(text[:end].rstrip(_DIGITS + "+-.,eE")) : end]
    found = _NUMBER.findall(run)
    reading = numbers.read(found[-1].replace(",", "")) if found else None
    return reading.values[0] if reading else None


def _label(state: State, text: str) -> Outcome:
    matches = [label for label in state.space.labels if label == text] or [
        label for label in state.space.labels if label.casefold() == text.casefold()
    ]
    if len(matches) == 1:
        return parsed(matches[0])
    return not_there(state, "not_in_choices" if text else "no_answer")
