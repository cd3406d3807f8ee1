"""A parser, compiled: the steps in order, run over one reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from auditor.errors import FileError, UsageError
from auditor.parsing.paper import appendix_b, does_not_apply
from auditor.parsing.state import Found, State, Step, not_there, start
from auditor.parsing.steps import step_of
from auditor.records import AnswerSpace, Contract, Outcome, Parser, Reply


class Reader(Struct, frozen=True):
    """Reads replies with one parser; made by `compile_parser`."""

    name: str
    steps: tuple[Step, ...]
    faults: Callable[[], Mapping[str, int]] = dict
    """Why it gave no reading (`parser_error`) of how many replies, where it can tell."""

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
    """The reader for a parser file. Raises `FileError` for a step that does not exist or cannot be told what it is."""
    return Reader(parser.name, tuple(_compiled(parser, number) for number in range(len(parser.steps))))


def _compiled(parser: Parser, number: int) -> Step:
    spec = parser.steps[number]
    where = f"parser {parser.name!r}, step {number + 1}"
    try:
        return step_of(spec)
    except UsageError as error:
        raise FileError(parser.path, f"{where}: {error.message}", error.hint) from None
    except ValueError as error:
        raise FileError(parser.path, f"{where} ({spec.name}): {error}") from None


def explain(
    parser: Parser, reader: Reader, reply: Reply, contract: Contract, space: AnswerSpace
) -> list[tuple[str, str]]:
    """What each step did with a reply, as (step, one short sentence), up to the step that ended it."""
    told: list[tuple[str, str]] = []
    state = start(reply, contract, space)
    names = [spec.name for spec in parser.steps]
    for name, step in zip(names, reader.steps, strict=True):
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


def _piece(found: Found) -> str:
    return repr(found.text[:60]) + (f" ({', '.join(found.needed)})" if found.needed else "")


def _change(before: State, after: State) -> str:
    if before == after:
        return "nothing to do"
    names = ", ".join(after.needed[len(before.needed) :])
    if after.found != before.found:
        pieces = " and ".join(_piece(each) for each in after.found[:4])
        return f"found {pieces}" + (f" ({names})" if names else "")
    if after.text != before.text:
        return f"left {after.text[:60]!r}" + (f" ({names})" if names else "")
    return f"noted {names}" if names else "nothing to do"
