"""Arms against each other: what enforcement does to parseability and accuracy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from auditor.figures import Caveat, EnforcementRow
from auditor.measure import Cell, Measured, common
from auditor.records import Findings
from auditor.stats import paired, sensitivity

Label = Literal["verified", "claimed", "ignored", "refused"]
Cells = dict[tuple[str, str], Cell]
"""(task, wrapper) -> cell, of one model and arm."""


def enforcement(measured: Measured, findings: Sequence[Findings]) -> list[EnforcementRow]:
    """A row for each model and enforced arm of a run."""
    arms: dict[tuple[str, str], Cells] = {}
    for cell in measured.cells:
        if cell.n is None:
            continue  # a comparison of arms is of generations
        arms.setdefault((cell.key.model, cell.key.arm), {})[cell.key.task, cell.key.wrapper] = cell
    rows = []
    for (model, arm), cells in arms.items():
        enforce, at, limit = arm.partition("@")
        if enforce != "none":
            base = arms.get((model, f"none{at}{limit}"), {})
            rows.append(_row(measured.parser, model, arm, cells, base, *label(model, enforce, findings)))
    measured_arms = {(row.model, row.arm.partition("@")[0]) for row in rows}
    for found in findings:
        for canary in found.canaries:
            if canary.verdict == "refused" and (found.model, canary.enforce) not in measured_arms:
                measured_arms.add((found.model, canary.enforce))
                rows.append(_row(measured.parser, found.model, canary.enforce, {}, {}, "refused", canary.said))
    return rows


def label(model: str, enforce: str, findings: Sequence[Findings]) -> tuple[Label, str]:
    """Whether enforcement was proved for a model on all of its servers, and what the canary says."""
    verdicts = [c for found in findings if found.model == model for c in found.canaries if c.enforce == enforce]
    if not verdicts:
        return "claimed", "no canary was asked"
    worst = max(verdicts, key=lambda c: ("enforced", "unknown", "fails_open", "ignored", "refused").index(c.verdict))
    labels: dict[str, Label] = {"enforced": "verified", "ignored": "ignored", "refused": "refused"}
    return labels.get(worst.verdict, "claimed"), f"{worst.verdict.replace('_', ' ')}: {worst.said}"


def caveats(rows: Sequence[EnforcementRow]) -> list[Caveat]:
    """Why a comparison has no number."""
    found = []
    if any(row.n_without == 0 for row in rows if row.label != "refused"):
        message = "enforcement is compared with the arm none, which this run does not have: --enforce none,..."
        found.append(Caveat("no_base_arm", message, _fields("parseability", "accuracy", "psi", "fsi")))
    found += [
        Caveat(
            "refused_arm",
            f"{row.model}: {row.arm} was asked for and refused, so it is not measured: {row.canary}",
            ("enforcement.parseability", "enforcement.accuracy", "enforcement.psi", "enforcement.fsi"),
        )
        for row in {(row.model, row.arm): row for row in rows if row.label == "refused"}.values()
    ]
    if any(len(row.wrappers) == 1 for row in rows):
        message = "where JSON alone is enforced, one wrapper is no range: --enforce grammar covers all of them"
        fields = ("enforcement.psi", "enforcement.fsi", *_fields("psi", "fsi"))
        found.append(Caveat("one_enforced_wrapper", message, fields))
    return found


def _fields(*names: str) -> tuple[str, ...]:
    """The fields that compare these with the arm none."""
    changes = [f"enforcement.{name}_change_ci" for name in names if name in ("parseability", "accuracy")]
    return (*(f"enforcement.{name}_without" for name in names), *changes)


def _row(parser: str, model: str, arm: str, cells: Cells, base: Cells, label: Label, canary: str) -> EnforcementRow:
    pairs = {key: (cell, base[key]) for key, cell in cells.items() if key in base}
    held = [cells[key] for key in (pairs or cells)]
    free = [pair[1] for pair in pairs.values()]
    tasks = list(dict.fromkeys(cell.key.task for cell in held))
    return EnforcementRow(
        model=model,
        arm=arm,
        parser=parser,
        label=label,
        canary=canary,
        wrappers=tuple(dict.fromkeys(cell.key.wrapper for cell in held)),
        tasks=len(tasks),
        n=sum(cell.n or 0 for cell in held),
        n_without=sum(cell.n or 0 for cell in free),
        parseability=_mean([cell.parseability for cell in held]),
        parseability_without=_mean([cell.parseability for cell in free]),
        parseability_change_ci=_change(pairs, tasks, "parsed"),
        accuracy=_mean([cell.accuracy for cell in held]),
        accuracy_without=_mean([cell.accuracy for cell in free]),
        accuracy_change_ci=_change(pairs, tasks, "correct"),
        psi=_range(held, tasks, lambda cell: cell.parseability),
        psi_without=_range(free, tasks, lambda cell: cell.parseability),
        fsi=_range(held, tasks, lambda cell: cell.accuracy),
        fsi_without=_range(free, tasks, lambda cell: cell.accuracy),
    )


def _mean(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return float(np.mean(known)) if known and len(known) == len(rates) else None


def _range(cells: Sequence[Cell], tasks: Sequence[str], rate: Callable[[Cell], float | None]) -> float | None:
    """Mean over tasks of the range over wrappers; None with one wrapper, or where a rate is not known."""
    ranges = []
    for task in tasks:
        rates = [rate(cell) for cell in cells if cell.key.task == task]
        known = [value for value in rates if value is not None]
        ranges.append(sensitivity.fsi(known).value if len(known) == len(rates) else None)
    return _mean(ranges)


def _change(
    pairs: Mapping[tuple[str, str], tuple[Cell, Cell]], tasks: Sequence[str], name: Literal["parsed", "correct"]
) -> tuple[float, float] | None:
    """Items that both arms answered under every wrapper; their differences averaged over wrappers."""
    per_task, clusters = [], []
    for task in tasks:
        sides = [pair for (where, _), pair in pairs.items() if where == task]
        shared = common([held for held, _ in sides] + [free for _, free in sides])
        rates = None if shared is None else getattr(shared, name)
        if shared is None or rates is None:
            return None
        held, free = np.split(rates, 2)
        per_task.append((held - free).mean(axis=0))
        clusters.append(shared.units)
    return paired.macro_difference(per_task, clusters=clusters)
