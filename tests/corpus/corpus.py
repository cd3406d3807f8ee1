"""The corpus of replies: one case a line, with its truth and what every parser of ours says of it.

`python tests/corpus/corpus.py` fills in and aligns the columns of lines that have only
`contract | space | how | truth | reply`, and says where a line that is complete no longer holds. What it fills in is
what the parsers say now: read it before you keep it. With `table` it says how often each parser is right.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import parsing_samples  # noqa: E402
from parsing_samples import READERS  # noqa: E402

from auditor.parsing import Reader  # noqa: E402
from auditor.records import AnswerSpace, Contract, Outcome, Reply  # noqa: E402

PARSERS = tuple(READERS)
COLUMNS = ("contract", "space", "how", "truth", *PARSERS, "needed", "reply")


def choice(labels: str, *texts: str) -> AnswerSpace:
    return AnswerSpace("choice", tuple(labels), texts)


SPACES = {
    "metals": choice("ABCD", "iron", "copper", "tin", "lead"),
    "letters": choice("ABCD"),
    "five": choice("ABCDE"),
    "ten": choice("ABCDEFGHIJ"),
    "species": choice("ABCDE", "yeast", "E. coli", "a virus", "moss", "algae"),
    "sentences": choice("ABCD", "It rains.", "It is dry", "The sun, mostly", "None of the above"),
    "yes_no": AnswerSpace("choice", ("yes", "no")),
    "numbers4": choice("ABCD", "4", "5", "45", "50"),
    "boolean": AnswerSpace("boolean"),
    "number": AnswerSpace("number"),
    "label": AnswerSpace("label", ("card_payment", "card_arrival", "extra_charge")),
    "animals": AnswerSpace("label", ("dog", "cat", "grey-seal", "sea lion")),
    "text": AnswerSpace("text"),
    "json": AnswerSpace("json"),
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "result": {
            "type": "object",
            "properties": {"label": {}},
            "required": ["label"],
            "additionalProperties": False,
        },
        "note": {"type": "string"},
    },
    "required": ["result", "note"],
    "additionalProperties": False,
}
CONTRACTS = parsing_samples.CONTRACTS | {"schema": Contract("json", schema=_SCHEMA, answer_path="/result/label")}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "s": " ", "\\": "\\", "|": "|"}


class Case(Struct, frozen=True):
    """One line. `told` are its columns as they stand there, only five where it is not filled in yet."""

    where: str
    told: dict[str, str]

    @property
    def truth(self) -> str:
        """A value, `?` (two could be meant) or `!` (there is none)."""
        return self.told["truth"]

    @property
    def contract(self) -> Contract:
        return CONTRACTS[self.told["contract"]]

    @property
    def space(self) -> AnswerSpace:
        return SPACES[self.told["space"]]

    @property
    def reply(self) -> Reply:
        text = None if self.told["reply"] == "-" else unescaped(self.told["reply"])
        finish, _, extra = self.told["how"].partition("+")
        return Reply(
            text,
            finish,
            reasoning="The answer is B." if extra == "reasoning" else None,
            refusal="I will not answer." if extra == "refusal" else None,
            tool_calls='{"answer": "B"}' if finish == "tool_calls" else None,
        )

    def outcome(self, reader: Reader) -> Outcome | None:
        """None where the parser says nothing about the space."""
        return None if reader.applies(self.space) else reader.read(self.reply, self.contract, self.space)


def unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _PLAIN.get(match[1]) or chr(int(match[1][1:], 16)), text)


def escaped(text: str) -> str:
    kept = "".join(f"\\u{ord(c):04X}" if c in "\ufeff\u200b\u00a0" or "\ud800" <= c <= "\udfff" else c for c in text)
    return kept.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def said(outcome: Outcome | None) -> str:
    """An outcome as a cell: the value, `?` with the candidates, `!` with the reason, `-` where there is none."""
    if outcome is None:
        return "-"
    if outcome.outcome == "ambiguous":
        return escaped("?" + " / ".join(outcome.candidates)).replace("|", "¦")
    return escaped(outcome.value if outcome.value is not None else f"!{outcome.reason}").replace("|", "¦")


def kind(cell: str) -> str:
    """A cell of a parser as a truth: the value, `?` or `!`."""
    return cell[:1] if cell[:1] in ("?", "!") else cell


def cases() -> Iterator[Case]:
    """Every case of every file."""
    for path in sorted(HERE.glob("*.txt")):
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            if line and not line.startswith("#"):
                yield Case(f"{path.name}:{number}", _told(line))


def _told(line: str) -> dict[str, str]:
    cells = line.split(" | ", len(COLUMNS) - 1)
    if len(cells) < len(COLUMNS):
        cells = line.split(" | ", 4)
        return dict(zip(("contract", "space", "how", "truth", "reply"), map(str.strip, cells), strict=True))
    return dict(zip(COLUMNS, map(str.strip, cells), strict=True))


def filled(case: Case) -> dict[str, str]:
    """The columns with what the parsers say now."""
    outcomes = {name: case.outcome(reader) for name, reader in READERS.items()}
    normalized = outcomes["normalized"]
    needed = "+".join(normalized.needed) if normalized and normalized.outcome == "parsed" else ""
    return case.told | {name: said(outcome) for name, outcome in outcomes.items()} | {"needed": needed or "-"}


def table() -> str:
    """How often each parser is right, by kind of error; `held.txt` apart."""
    lines = []
    for name in PARSERS:
        counts: Counter[str] = Counter()
        for case in cases():
            if case.told[name] == "-":
                continue
            got = kind(case.told[name])
            part = "held" if case.where.startswith("held") else "rest"
            none = got in ("?", "!")
            counts[f"{part} {'right' if got == case.truth else 'no value' if none else 'wrong value'}"] += 1
            counts[f"{part} n"] += 1
        lines.append(f"{name:<22}" + ", ".join(f"{key} {counts[key]}" for key in sorted(counts)))
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:] == ["table"]:
        print(table())
        return
    for path in sorted(HERE.glob("*.txt")):
        lines = path.read_text("utf-8").split("\n")
        told = [None if not line or line.startswith("#") else filled(Case("", _told(line))) for line in lines]
        for number, (line, now) in enumerate(zip(lines, told, strict=True), 1):
            if now is not None and len(line.split(" | ")) >= len(COLUMNS) and _told(line) != now:
                print(f"{path.name}:{number} said {_told(line)}, and now {now}")
        rows = [one for one in told if one is not None]
        width = {name: max(min(len(row[name]), 28) for row in rows) for name in COLUMNS}
        width = {name: max(width[name], len(name) + 2) for name in width}
        head = " | ".join(("# " * (not place) + name).ljust(width[name]) for place, name in enumerate(COLUMNS))
        text = [head.rstrip()]
        for line, row in zip(lines, told, strict=True):
            if row is not None:
                cells = [row[name].ljust(width[name]) for name in COLUMNS[:-1]]
                text.append(" | ".join([*cells, row["reply"]]))
            elif line.startswith("# ") and " | " not in line:
                text.append(line)
        path.write_text("\n".join(text) + "\n", "utf-8")


if __name__ == "__main__":
    main()
