"""A parser, compiled: the steps in order, run over one reply."""

from __future__ import annotations

from msgspec import Struct

from auditor.errors import UsageError, unknown
from auditor.parsing.paper import appendix_b, does_not_apply
from auditor.parsing.state import State, Step, not_there, start
from auditor.parsing.steps import STEPS
from auditor.records import AnswerSpace, Contract, Outcome, Parser, Reply


class Reader(Struct, frozen=True):
    """Reads replies with one parser; made by `compile_parser`."""

    name: str
    steps: tuple[Step, ...]

    def read(self, reply: Reply, contract: Contract, space: AnswerSpace) -> Outcome:
        """What the reply says under the contract, as a value of the space; total, in time linear in the text."""
        state = start(reply, contract, space)
        for step in self.steps:
            after = step(state)
            if isinstance(after, Outcome):
                return after
            state = after
        return not_there(state, "no_answer")

    def applies(self, space: AnswerSpace) -> str | None:
        """None where the parser can read the space, else why it cannot (then its results are null, not wrong)."""
        return does_not_apply(space) if appendix_b in self.steps else None


def compile_parser(parser: Parser) -> Reader:
    """The reader for a parser file. Raises `UsageError` for a step that does not exist, or when there are none."""
    if not parser.steps:
        raise UsageError(f"parser {parser.name!r} has no steps", f"known: {', '.join(sorted(STEPS))}")
    for name in parser.steps:
        if name not in STEPS:
            raise unknown("parser step", name, STEPS, f"in parser {parser.name!r}")
    return Reader(parser.name, tuple(STEPS[name] for name in parser.steps))


def explain(parser: Parser, reply: Reply, contract: Contract, space: AnswerSpace) -> list[tuple[str, str]]:
    """What each step did with a reply, as (step, one short sentence), up to the step that ended it."""
    told: list[tuple[str, str]] = []
    state = start(reply, contract, space)
    for name, step in zip(parser.steps, compile_parser(parser).steps, strict=True):
        after = step(state)
        if isinstance(after, Outcome):
            return [*told, (name, _ending(after))]
        told.append((name, _change(state, after)))
        state = after
    return told


def _ending(outcome: Outcome) -> str:
    match outcome.outcome:
        case "parsed":
            needed = f", needed {', '.join(outcome.needed)}" if outcome.needed else ""
            return f"parsed {outcome.value}{needed}"
        case "ambiguous":
            return f"ambiguous: {' or '.join(outcome.candidates)}"
        case _:
            return f"unparseable: {outcome.reason}"


def _change(before: State, after: State) -> str:
    if before == after:
        return "nothing to do"
    names = ", ".join(after.needed[len(before.needed) :])
    if after.found != before.found:
        pieces = " and ".join(repr(each.text[:60]) for each in after.found[:4])
        return f"found {pieces}" + (f" ({names})" if names else "")
    return f"dropped {names}" if names else "changed the text"
