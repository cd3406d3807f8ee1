"""Options as they are typed -> study fields. Nothing is checked here that `settings` checks."""

from __future__ import annotations

from typing import Any

SAME = ("seeds", "items", "temperature", "pad", "shots", "rpm", "tpm", "timeout", "max_cost", "max_minutes",
         "preflight", "strict_preflight", "transport")  # fmt: skip
"""Options that are study fields as they are."""


def _number(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


def study_fields(given: dict[str, Any]) -> dict[str, Any]:
    """The options of `run` and `gate` as study fields; None stays None, so that files and defaults can speak."""
    options: dict[str, Any] = {name: given.get(name) for name in SAME}
    for name in ("models", "tasks", "wrappers", "parsers", "enforce"):
        options[name] = split(given.get(name)) if not isinstance(given.get(name), list) else None
    limits = [_number(text) for text in split(given["max_tokens"]) or ()]
    options["max_tokens"] = None if not limits else limits[0] if len(limits) == 1 else tuple(limits)
    options["concurrency"] = None if given["concurrency"] is None else _number(given["concurrency"])
    if given.get("prices") is not None:
        from auditor import settings

        options["prices"] = settings.read_prices(given["prices"])
    if given["columns"]:
        options["task_options"] = {"*": {"columns": _pairs(given["columns"])}}
    return options


def split(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(text: str) -> dict[str, str]:
    from auditor.errors import UsageError

    parts = [part.partition("=") for part in text.split(",")]
    for name, equals, column in parts:
        if not (name and equals and column):
            raise UsageError(
                f"--columns {text!r} is not name=column,...", "for example --columns question=prompt,answer=label"
            )
    return {name.strip(): column.strip() for name, _, column in parts}
