"""The closed vocabulary of steps."""

from __future__ import annotations

from typing import Any

import msgspec

from auditor.errors import unknown
from auditor.parsing.classify import classify_reply, refuse_cut
from auditor.parsing.contracts import exact_contract, exact_token
from auditor.parsing.filters import (
    ExactMatch,
    Map,
    MultipleChoice,
    Regex,
    canonical_value,
    lowercase,
    remove_whitespace,
    take_first,
    uppercase,
)
from auditor.parsing.leaks import drop_leading_think, drop_leaks
from auditor.parsing.normalized import DeclareLanguage, locate_contract, one_value, strict_first
from auditor.parsing.paper import appendix_b, contract_field
from auditor.parsing.state import Step
from auditor.records import ParserStep

STEPS: dict[str, Step] = {
    "classify_reply": classify_reply,
    "refuse_cut": refuse_cut,
    "exact_contract": exact_contract,
    "exact_token": exact_token,
    "contract_field": contract_field,
    "appendix_b": appendix_b,
    "strict_first": strict_first,
    "drop_leading_think": drop_leading_think,
    "drop_leaks": drop_leaks,
    "locate_contract": locate_contract,
    "one_value": one_value,
    "take_first": take_first,
    "remove_whitespace": remove_whitespace,
    "lowercase": lowercase,
    "uppercase": uppercase,
    "canonical_value": canonical_value,
}
"""Steps that need to be told nothing. A step takes a state and hands on another, or ends with an outcome."""

TOLD: dict[str, Any] = {
    "declare_language": DeclareLanguage,
    "regex": Regex,
    "multi_choice_regex": MultipleChoice,
    "map": Map,
    "exact_match": ExactMatch,
}
"""Steps that are told something: what they may be told are the fields of the class, and its instances are the steps."""


def explained() -> dict[str, str]:
    """What each step does."""
    return {name: " ".join((step.__doc__ or "").split()) for name, step in (STEPS | TOLD).items()}


def step_of(spec: ParserStep) -> Step:
    """The step that a parser file asks for. Raises UsageError for an unknown name, ValueError for wrong options."""
    if spec.name in STEPS:
        if spec.options:
            raise ValueError(f"it is told nothing, and here {', '.join(spec.options)}")
        return STEPS[spec.name]
    if spec.name not in TOLD:
        raise unknown("parser step", spec.name, STEPS | TOLD)
    try:
        made: Step = msgspec.convert(spec.options, TOLD[spec.name])
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace(" - at `$.", ": `")) from error
    return made
