"""The closed vocabulary of steps."""

from __future__ import annotations

from auditor.parsing.classify import classify_reply, refuse_cut
from auditor.parsing.contracts import exact_contract, exact_token
from auditor.parsing.leaks import drop_leading_think, drop_leaks
from auditor.parsing.normalized import locate_contract, one_value, strict_first
from auditor.parsing.paper import appendix_b, contract_field
from auditor.parsing.state import Step

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
}
"""Every step by its name. A step takes a state and hands on another, or ends with an outcome."""
