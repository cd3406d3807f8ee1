"""The exact reading: the whole reply, the contract to the letter, a canonical token."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from auditor.parsing import schema, strictjson
from auditor.parsing.loose import EXTRA, is_nullish, is_placeholder, read_value
from auditor.parsing.peel import FENCE
from auditor.parsing.state import Found, State, parsed, unparseable, with_found
from auditor.parsing.values import exact, index
from auditor.records import AnswerSpace, Contract, Outcome, Reason

_LINE = re.compile(r"[A-Za-z_][A-Za-z0-9_ \-]{0,60}:.*")
_DIGIT = re.compile(r"\d")
_MARKS = str.maketrans(dict.fromkeys(".,;:!?()[]{}\"'`*", " "))

Token = tuple[str | None, Reason | None]
"""The token that stands in the contract's place, or the reason why none does."""


def exact_contract(state: State) -> State | Outcome:
    """Takes the token out of a reply that fulfils the contract to the letter; one final newline may be missing."""
    text = state.text.removesuffix("\n")
    token, reason = _CONTRACTS[state.contract.kind](text, state.contract, state.space)
    if token is None:
        return unparseable(reason or "no_answer")
    return with_found(state, (Found(token),))


def exact_token(state: State) -> State | Outcome:
    """Accepts the token if it already is the canonical value; otherwise says what is wrong with it."""
    token = state.found[0].text if state.found else ""
    value = exact(token, state.space)
    return parsed(value) if value is not None else unparseable(why_not(token, state.space))


def _text(text: str, contract: Contract, space: AnswerSpace) -> Token:
    if space.type != "text" and text.startswith(FENCE):
        return None, "code_fence"
    return text, None


def _json(text: str, contract: Contract, space: AnswerSpace) -> Token:
    if not (text.startswith("{") and text.endswith("}")):
        return None, _not_an_object(text)
    try:
        value = strictjson.strict(text)
    except strictjson.DuplicateKey:
        return None, "duplicate_field"
    except ValueError:
        return None, "extra_text" if strictjson.is_prefix(text) else "invalid_json"
    if contract.schema is not None:
        return _with_schema(value, text, contract, space)
    if space.type == "json":
        return strictjson.dumps(value), None
    if contract.field not in value:
        return None, "missing_key"
    return (None, "extra_key") if len(value) > 1 else _typed(value[contract.field], space)


def _not_an_object(text: str) -> Reason:
    bare = text.strip()
    if bare.startswith(FENCE):
        return "code_fence"
    try:
        value = strictjson.plain(bare)
    except ValueError:
        return "extra_text" if "{" in bare and "}" in bare else "invalid_json"
    return "extra_text" if isinstance(value, dict) else "wrong_type"


def _with_schema(value: Any, text: str, contract: Contract, space: AnswerSpace) -> Token:
    fits = schema.fits(text, contract.schema or {})
    if fits is None:
        return None, "parser_error"
    if contract.answer_path is None and space.type == "json":
        return (strictjson.dumps(value), None) if fits else (None, "wrong_type")
    try:
        answer = strictjson.at(value, answer_path(contract))
    except LookupError:
        return None, "missing_key"
    return _typed(answer, space) if fits else (None, "wrong_type")


def answer_path(contract: Contract) -> str:
    """Where the answer is in a JSON reply, as a JSON pointer."""
    return contract.answer_path or "/" + contract.field.replace("~", "~0").replace("/", "~1")


def _typed(value: Any, space: AnswerSpace) -> Token:
    """A string; for tasks of those types also a JSON number or boolean; for json tasks anything."""
    if space.type == "json":
        return strictjson.dumps(value), None
    if isinstance(value, strictjson.Number):
        return (str(value), None) if space.type == "number" else (None, "wrong_type")
    if isinstance(value, bool):
        return ("true" if value else "false", None) if space.type == "boolean" else (None, "wrong_type")
    return (value, None) if isinstance(value, str) else (None, "wrong_type")


def _fields(text: str, contract: Contract, space: AnswerSpace) -> Token:
    if text.startswith(FENCE):
        return None, "code_fence"
    key = f"{contract.field}:"
    if reason := _not_once(text, key):
        return None, reason
    lines = text.split("\n")
    if not all(_LINE.fullmatch(line) for line in lines if not line.startswith(key)):
        return None, "extra_text"
    return _after_key(next(line for line in lines if line.startswith(key)), contract)


def _not_once(text: str, key: str) -> Reason | None:
    """Why not exactly one line starts with the key."""
    count = f"\n{text}".count(f"\n{key}")
    return None if count == 1 else "duplicate_field" if count else "field_missing"


def _after_key(line: str, contract: Contract) -> Token:
    value = line[len(contract.field) + 1 :]
    if not value:
        return None, "no_answer"
    return (value[1:], None) if value.startswith(" ") else (None, "not_canonical")


def _block(text: str, contract: Contract, space: AnswerSpace) -> Token:
    if text.startswith(FENCE):
        return None, "code_fence"
    begin, end = f"{contract.begin}\n", f"\n{contract.end}"
    if contract.begin not in text or contract.end not in text:
        return None, "block_missing"
    if not (text.startswith(begin) and text.endswith(end) and len(text) >= len(begin) + len(end)):
        return None, "extra_text"
    inside = text[len(begin) : len(text) - len(end)]
    if reason := _not_once(inside, f"{contract.field}:"):
        return None, reason
    return (None, "extra_text") if "\n" in inside else _after_key(inside, contract)


def _final_line(text: str, contract: Contract, space: AnswerSpace) -> Token:
    last = text[text.rfind("\n") + 1 :]
    key = f"{contract.field}:"
    if last.startswith(key):
        return _after_key(last, contract)
    return None, "extra_text" if f"\n{key}" in f"\n{text}" else "field_missing"


_CONTRACTS: dict[str, Callable[[str, Contract, AnswerSpace], Token]] = {
    "text": _text,
    "json": _json,
    "fields": _fields,
    "block": _block,
    "final_line": _final_line,
}


def why_not(token: str, space: AnswerSpace) -> Reason:
    """Why a token is not a canonical value of the space."""
    bare = token.strip()
    if not bare:
        return "no_answer"
    if bare != token and exact(bare, space) is not None:
        return "extra_text"
    if space.type == "json":
        return "invalid_json"
    reading = read_value(bare, space)
    if reading is not None and len(reading.values) == 1:
        return "extra_text" if EXTRA.intersection(reading.needed) else "not_canonical"
    if is_placeholder(bare):
        return "placeholder_echo"
    if reading is not None:
        return "conflicting_answers"
    return "no_answer" if is_nullish(bare) else _outside(bare, space)


def _outside(text: str, space: AnswerSpace) -> Reason:
    if space.type in ("choice", "label"):
        if len(text) <= 80 and text.split(None, 1) == [text]:
            return "not_in_choices"
        # "A" and "I" are words of their own in prose.
        labels = index(space).exact - {"A", "I"}
        return "no_answer" if labels.isdisjoint(text.translate(_MARKS).split()) else "extra_text"
    if space.type == "number":
        return "extra_text" if _DIGIT.search(text) else "no_answer"
    words = frozenset(text.casefold().translate(_MARKS).split())
    return "no_answer" if words.isdisjoint({"true", "false", "yes", "no"}) else "extra_text"
