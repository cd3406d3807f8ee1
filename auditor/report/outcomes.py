"""What `auditor parse` says of rows: one JSON line per row and parser, and the rows on which parsers differ."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.records import Outcome, Row
from auditor.tally import Said, is_known


def line(
    row: Row, parser: str, outcome: Outcome, correct: bool | None, fields: Mapping[str, bool | None] = {}
) -> dict[str, object]:
    """The keys of one line, in their order; `fields` only where answers are compared field by field."""
    return {
        "model": row.model,
        "task": row.task,
        "item": row.item,
        "wrapper": row.wrapper,
        "seed": row.seed,
        "parser": parser,
        "outcome": outcome.outcome,
        "value": outcome.value,
        "candidates": outcome.candidates,
        "reason": outcome.reason,
        "needed": outcome.needed,
        "correct": correct,
        **({"fields": fields} if fields else {}),
    }


def disagreement(row: Row, said: Mapping[str, Said], label: Said | None) -> dict[str, object] | None:
    """A row on which not all parsers, and its hand label, give the same value; None where they do. `label` is there
    only for a labelled row; `values` and, for what has none, `reasons` are by parser."""
    known = {parser: outcome for parser, (outcome, _) in said.items() if is_known(outcome)}
    given = [*known.values(), *([label[0]] if label else [])]
    if not known or len({outcome.value for outcome in given}) < 2:
        return None
    return {
        "model": row.model,
        "task": row.task,
        "item": row.item,
        "wrapper": row.wrapper,
        "arm": row.arm,
        "seed": row.seed,
        "text": row.text,
        "gold": row.gold,
        **({} if label is None else {"label": label[0].value, "ambiguous": label[0].outcome == "ambiguous"}),
        "values": {parser: outcome.value for parser, outcome in known.items()},
        "reasons": {
            parser: outcome.reason or outcome.outcome for parser, outcome in known.items() if outcome.value is None
        },
    }
