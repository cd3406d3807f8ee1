"""What the parsing tests share: our four parsers, one contract of each kind, and a few answer spaces."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from auditor.parsing import compile_parser
from auditor.records import AnswerSpace, Contract, Parser, ParserExample

FOLDER = Path(__file__).resolve().parents[1] / "parsers"


def load(name: str) -> Parser:
    """A parser file of ours, read without the catalogue."""
    tree = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    examples = msgspec.convert(tree["examples"], tuple[ParserExample, ...])
    return Parser(tree["name"], tree["version"], tree["summary"], tuple(tree["steps"]), examples, "", "")


PARSERS = {name: load(name) for name in ("strict", "paper", "paper_unscoped", "normalized")}
READERS = {name: compile_parser(parser) for name, parser in PARSERS.items()}
STRICT, PAPER, UNSCOPED, NORMALIZED = READERS.values()

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
