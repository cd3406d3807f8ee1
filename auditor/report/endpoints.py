"""What was requested against what was sent, and who answered."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from auditor.figures import EndpointRow, Summary
from auditor.records import Adaptation
from auditor.report.text import count, option, plural


class Place(Struct, frozen=True):
    """One model at one server in words. `upstreams`, `models` and `fingerprints` are the model's over all servers."""

    model: str
    server: str
    build: str | None
    upstreams: str
    models: str
    fingerprints: str
    changed: bool
    seed: str
    seed_warning: bool
    notes: tuple[str, ...]
    canaries: tuple[tuple[str, str, str], ...]
    """(enforcement, verdict, what the endpoint did)."""


def places(summary: Summary) -> tuple[Place, ...]:
    """Every endpoint of a run."""
    several_seeds = any(row.groups for row in summary.seed_disagreement)
    servers = [row.model for row in summary.endpoints]
    return tuple(_place(row, servers.count(row.model), several_seeds) for row in summary.endpoints)


def sent(adaptation: Adaptation) -> str:
    """`max_tokens = 24 was sent as max_completion_tokens: <why>`."""
    how = f"sent {adaptation.sent}" if adaptation.sent.startswith("as ") else adaptation.sent
    return f"{adaptation.parameter} = {adaptation.requested} was {how}: {adaptation.why}"


def _place(row: EndpointRow, servers: int, several_seeds: bool) -> Place:
    # Several servers or upstream providers each have a fingerprint of their own.
    changed = row.fingerprints > max(servers, len(row.upstreams), 1)
    return Place(
        model=row.model,
        server=row.server,
        build=row.build,
        upstreams=_counted(row.upstreams) or row.provider,
        models=_counted(row.models_returned),
        fingerprints=count(row.fingerprints) if row.fingerprints else "",
        changed=changed,
        seed=row.seed,
        seed_warning=several_seeds and row.seed.startswith("ignored"),
        notes=_notes(row),
        canaries=tuple((one.enforce, one.verdict.replace("_", " "), one.said) for one in row.canaries),
    )


def _notes(row: EndpointRow) -> tuple[str, ...]:
    notes = [sent(one) for one in row.adaptations]
    if row.routing:
        notes.append(f"provider = {option(row.routing)} was sent along")
    return tuple(notes)


def _counted(replies: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({plural(number, 'reply', 'replies')})" for name, number in replies.items())
