"""What the parsing tests share: our four parsers, one contract of each kind, and a few answer spaces."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from auditor.parsing import compile_parser
from auditor.records import AnswerSpace, Contract, Parser, ParserExample, ParserStep

FOLDER = Path(__file__).resolve().parents[1] / "parsers"


def load(name: str) -> Parser:
    """A parser file of ours, read without the catalogue."""
    tree = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    examples = msgspec.convert(tree["examples"], tuple[ParserExample, ...])
    return Parser(tree["name"], tree["version"], tree["summary"], steps(*tree["steps"]), examples, "", "")


def steps(*told: str | dict[str, Any]) -> tuple[ParserStep, ...]:
    """Steps as a parser file tells them."""
    tables = ({"step": one} if isinstance(one, str) else one for one in told)
    return tuple(ParserStep(one["step"], {key: one[key] for key in one if key != "step"}) for one in tables)


_NAMES = (
    "strict", "paper", "paper_unscoped", "normalized", "lm_eval_first_line", "custom_extract", "lm_eval_multi_choice",
)  # fmt: skip
PARSERS = {name: load(name) for name in _NAMES}
READERS = {name: compile_parser(parser) for name, parser in PARSERS.items()}
STRICT, PAPER, UNSCOPED, NORMALIZED = list(READERS.values())[:4]

CONTRACTS = {
    "text": Contract("text"),
    "json": Contract("json"),
    "fields": Contract("fields"),
    "block": Contract("block", begin="<BEGIN ANSWER>", end="<END ANSWER>"),
    "final_line": Contract("final_line"),
}

METALS = AnswerSpace("choice", ("A", "B", "C", "D"), ("iron", "copper", "tin", "lead"))
LETTERS = AnswerSpace("choice", ("A", "B", "C", "D"))
TEN = AnswerSpace("choice", tuple("ABCDEFGHIJ"))
SPECIES = AnswerSpace("choice", tuple("ABCDE"), ("yeast", "E. coli", "a virus", "moss", "algae"))
YES_NO = AnswerSpace("choice", ("yes", "no"))
BOOLEAN = AnswerSpace("boolean")
NUMBER = AnswerSpace("number")
TEXT = AnswerSpace("text")
JSON = AnswerSpace("json")
LABEL = AnswerSpace("label", ("card_payment", "card_arrival", "extra_charge"))
