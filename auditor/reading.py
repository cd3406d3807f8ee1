"""The parsers that a study names, compiled: files of ours and the user's, lm-eval's filters, the user's functions."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import catalogue
from auditor.extractor import extractor
from auditor.parsing import Reader, compile_parser
from auditor.records import Parser
from auditor.study import FUNCTION


def readers(names: Sequence[str]) -> tuple[tuple[Parser, Reader], ...]:
    """The parsers of a study in its order, compiled. Raises UsageError, FileError."""
    parsers: list[Parser] = []
    functions: dict[str, tuple[Parser, Reader]] = {}
    for name in dict.fromkeys(names):
        if name.startswith(FUNCTION):
            functions[name] = extractor(name)
            parsers.append(functions[name][0])
        else:
            parsers += catalogue.parsers([name])
    return tuple(
        functions.get(parser.name) or (parser, compile_parser(parser))
        for parser in catalogue.distinct("parser", parsers)
    )


def ours(names: Sequence[str]) -> list[str]:
    """Those that are in our catalogue; of the user's own a run knows the name and not the file."""
    known = catalogue.names("parsers")
    return [name for name in names if name in known]
