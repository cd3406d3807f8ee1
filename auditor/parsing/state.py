"""What the steps of a parser hand each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from auditor.parsing.language import UNDECLARED, Language
from auditor.records import AnswerSpace, Contract, Outcome, Reason, Reply

CUT = frozenset({"length", "max_tokens"})
"""Finish reasons that say the reply was stopped by its token limit."""


class Found(Struct, frozen=True):
    """A piece of the reply that stands where an answer should. `firm`: a field, a tag or a box; otherwise a phrase in
    prose, which is read with more suspicion. `end`: where it ends in the text."""

    text: str
    needed: tuple[str, ...] = ()
    firm: bool = True
    end: int = 0


class State(Struct, frozen=True):
    """A reply on its way through the steps: the text that is left, what was found in it, what that needed."""

    text: str
    reply: Reply
    contract: Contract
    space: AnswerSpace
    cut: bool = False
    found: tuple[Found, ...] = ()
    needed: tuple[str, ...] = ()
    language: Language = UNDECLARED


Step: TypeAlias = Callable[[State], State | Outcome]


def start(reply: Reply, contract: Contract, space: AnswerSpace) -> State:
    """The state before the first step."""
    return State(reply.text or "", reply, contract, space, reply.finish_reason in CUT)


def with_text(state: State, text: str, *needed: str) -> State:
    """The state with another text, and the tolerances that led to it."""
    return State(
        text, state.reply, state.contract, state.space, state.cut, state.found, state.needed + needed, state.language
    )


def with_found(state: State, found: Iterable[Found]) -> State:
    """The state with pieces located."""
    return State(
        state.text, state.reply, state.contract, state.space, state.cut, tuple(found), state.needed, state.language
    )


def with_language(state: State, language: Language) -> State:
    """The state with a language declared."""
    return State(state.text, state.reply, state.contract, state.space, state.cut, state.found, state.needed, language)


def parsed(value: str, needed: Iterable[str] = ()) -> Outcome:
    """A value, and the tolerances it took, each once, in the order they were applied."""
    return Outcome("parsed", value, needed=tuple(dict.fromkeys(needed)))


def unparseable(reason: Reason) -> Outcome:
    """No value, and why."""
    return Outcome("unparseable", reason=reason)


def ambiguous(candidates: Iterable[str], needed: Iterable[str] = ()) -> Outcome:
    """More than one value could be meant."""
    return Outcome("ambiguous", candidates=tuple(dict.fromkeys(candidates)), needed=tuple(dict.fromkeys(needed)))


def not_there(state: State, reason: Reason) -> Outcome:
    """Nothing stands where the answer should; in a reply that was cut off, that is why."""
    return unparseable("truncated" if state.cut else reason)
