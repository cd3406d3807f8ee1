"""Reading replies: named steps over a frozen state, compiled from the parser files in `parsers/`. No I/O.

`compile_parser(parser).read(reply, contract, space)` gives an `Outcome` for any text.
"""

from auditor.parsing.gold import gold_reply
from auditor.parsing.reader import Reader, compile_parser, explain
from auditor.parsing.steps import explained
from auditor.parsing.values import canonical, is_correct

__all__ = ["Reader", "canonical", "compile_parser", "explain", "explained", "gold_reply", "is_correct"]
