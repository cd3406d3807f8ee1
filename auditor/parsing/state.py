"""What the steps of a parser hand each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from auditor.parsing.language import UNDECLARED, Language
from auditor.parsing.numbers import Reading
from auditor.records import AnswerSpace, Contract, Outcome, Reason, Reply

CUT = frozenset({"length", "max_tokens"})
"""Finish reasons that say the reply was stopped by its token limit."""


class Found(Struct, frozen=True, gc=False):
    """A piece of the reply that stands where an answer should. `firm`: a field, a tag or a box; otherwise a phrase in
    prose, which is read with more suspicion. `end`: where it ends in the text. `reading`: what it says, where it was
    read to be found."""

    text: str
    needed: tuple[str, ...] = ()
    firm: bool = True
    end: int = 0
    reading: Reading | None = None


class State(Struct, frozen=True, gc=False):
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
    return replace(state, text=text, needed=state.needed + needed)


def with_found(state: State, found: Iterable[Found]) -> State:
    """The state with pieces located."""
    return replace(state, found=tuple(found))


def with_language(state: State, language: Language) -> State:
    """The state with a language declared."""
    return replace(state, language=language)


def parsed(value: str, needed: tuple[str, ...] = ()) -> Outcome:
    """A value, and the tolerances it took, each once, in the order they were applied."""
    return Outcome("parsed", value, needed=tuple(dict.fromkeys(needed)) if needed else ())


def unparseable(reason: Reason) -> Outcome:
    """No value, and why."""
    return Outcome("unparseable", reason=reason)


def ambiguous(candidates: Iterable[str], needed: Iterable[str] = ()) -> Outcome:
    """More than one value could be meant."""
    return Outcome("ambiguous", candidates=tuple(dict.fromkeys(candidates)), needed=tuple(dict.fromkeys(needed)))


def not_there(state: State, reason: Reason) -> Outcome:
    """Nothing stands where the answer should; in a reply that was cut off, that is why."""
    return unparseable("truncated" if state.cut else reason)
