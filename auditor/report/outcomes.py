"""What `auditor parse` says: one JSON line per row and parser, and a table of how the parsers compare."""

from __future__ import annotations

from collections import Counter

from auditor.records import Outcome, Row


def line(row: Row, parser: str, outcome: Outcome, correct: bool | None) -> dict[str, object]:
    """The keys of one line, in their order."""
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
    }


class Table:
    """Counts per parser, and on how many rows two parsers agree (same value, or both none)."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._agree: Counter[tuple[str, str]] = Counter()
        self._rows: Counter[tuple[str, str]] = Counter()
        self._current: Row | None = None
        self._values: dict[str, str | None] = {}

    def add(self, row: Row, parser: str, outcome: Outcome, correct: bool | None) -> None:
        """Count one line; the lines of a row follow each other."""
        if row is not self._current:
            self._current, self._values = row, {}
        counts = self._counts.setdefault(parser, Counter())
        counts[outcome.outcome] += 1
        counts["correct"] += correct is True
        counts["judged"] += correct is not None
        if outcome.outcome == "missing":
            return
        for other, value in self._values.items():
            self._rows[other, parser] += 1
            self._agree[other, parser] += value == outcome.value
        self._values[parser] = outcome.value

    def text(self) -> str:
        """Plain lines that fit 80 columns."""
        head = f"{'parser':<22}{'parsed':>9}{'ambig.':>9}{'unparse.':>9}{'missing':>9}{'correct':>11}"
        lines = [head]
        for parser, counts in self._counts.items():
            correct = f"{counts['correct']}/{counts['judged']}" if counts["judged"] else "no gold"
            kinds = "".join(f"{counts[kind]:>9}" for kind in ("parsed", "ambiguous", "unparseable", "missing"))
            lines.append(f"{parser:<22}{kinds}{correct:>11}")
        for (one, other), rows in self._rows.items():
            agree = self._agree[one, other]
            lines.append(f"{one} and {other} agree on {agree} of {rows} ({agree / rows:.1%})")
        return "\n".join(lines)
