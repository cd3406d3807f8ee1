"""Measures how much an LLM's score depends on the wrapper around the question.

The Python API: `run(Study(...))` and `load(path)` give a `Report`, `gate(...)` a `Verdict` and the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.audit import run
    from auditor.gating import gate
    from auditor.report.value import Report
    from auditor.results import load
    from auditor.study import Study
    from auditor.verdict import Rules, Verdict

__version__ = "0.1.0"
__all__ = ["Report", "Rules", "Study", "Verdict", "gate", "load", "run"]

_PLACES = {
    "Report": "auditor.report.value",
    "Rules": "auditor.verdict",
    "Study": "auditor.study",
    "Verdict": "auditor.verdict",
    "gate": "auditor.gating",
    "load": "auditor.results",
    "run": "auditor.audit",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `auditor --help` must not pay for numpy."""
    if name not in _PLACES:
        raise AttributeError(f"module 'auditor' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PLACES[name]), name)
