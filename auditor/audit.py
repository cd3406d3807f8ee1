"""The conductor, the only module that knows every stage: plan -> send -> store -> parse -> measure -> report."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import msgspec

import auditor
from auditor import estimate, lanes, prepare, probing
from auditor.endpoints import Endpoint, Pool
from auditor.endpoints.tokenizers import build_of
from auditor.errors import BudgetError, ConflictError, Interrupted, PreflightError
from auditor.estimate import Estimate
from auditor.figures import Check
from auditor.folders import default_folder, describe, opened
from auditor.journal import Journal
from auditor.lanes import Model, Planned
from auditor.pacing import Budget
from auditor.plan import pairs
from auditor.prepare import Prepared
from auditor.records import Arm, Findings, Generation, Price, Request
from auditor.report.value import Report
from auditor.results import finish
from auditor.send import Lane, Meter, Retry, send
from auditor.store import FILE, Store
from auditor.study import Study

Say = Callable[[str], None]
Progress = Callable[[Meter], AbstractContextManager[None]]
Confirm = Callable[[Estimate, bool], bool]
"""(what the run takes, whether a model's provider asks for money) -> whether to go on."""


def quiet(_: str) -> None:
    """Say nothing."""


def no_progress(_: Meter) -> AbstractContextManager[None]:
    """Show nothing."""
    return nullcontext()


def go_on(_: Estimate, __: bool) -> bool:
    """Ask nobody."""
    return True


def run(
    study: Study,
    out: Path | None = None,
    *,
    reuse: Path | None = None,
    say: Say = quiet,
    progress: Progress = no_progress,
    confirm: Confirm = go_on,
) -> Report:
    """Audit: send what is not answered yet, read it, measure, write everything into `out`. `reuse` is an earlier run
    whose replies to equal requests are taken.

    Raises UsageError and FileError before anything is written, EndpointDown and RequestRefused when an endpoint ends
    the run, BudgetError when the money or the time does, Interrupted on Ctrl-C; what was answered until then is kept.
    """
    folder = out or default_folder(study.title)
    prepared = prepare.prepare(study, _commits(folder))
    where = lanes.spots(study, say)
    with ExitStack() as stack:
        earlier = None if reuse is None else stack.enter_context(Store(reuse, writable=False))
        store = stack.enter_context(opened(folder))
        _check_same(store, study, folder)
        _describe(store, study, prepared)
        models = lanes.opened(study, where, stack, say)
        plans, checks = _planned(store, prepared, models)
        if earlier is not None and reuse is not None:
            say(f"{_reused(store, earlier, prepared, plans, folder, reuse.name):,} replies taken from {reuse}")
        counts = [_left(store, prepared, one, folder) for one in plans]
        if any(counts):
            try:
                plans, found = _probed(store, prepared, plans)
            except KeyboardInterrupt:
                raise Interrupted("stopped before the first question", "run the same command again") from None
            counts = [_left(store, prepared, one, folder) for one in plans]
        else:
            found = [known for one in plans for known in _known(store, one).values()]
        checks += [check for one in found for check in probing.checks(one, study.seeds > 1)]
        _tell(store, study, checks, say)
        if any(counts):
            _ask_first(store, prepared, plans, counts, found, say, confirm)
        _send(store, prepared, plans, counts, folder, say, progress)
        return finish(store, folder, prepared.readers)


def plan(study: Study, out: Path | None = None, *, say: Say = quiet) -> Estimate:
    """What a run would take. Asks no model; at most the price list is fetched. `out` is a run to be gone on with."""
    folder = out or default_folder(study.title)
    prepared = prepare.prepare(study, _commits(folder))
    where = lanes.spots(study, say)
    listed: dict[str, Price | None] = {}
    limits = study.limits or (prepare.sufficient_limit(prepared, {"": prepare.GuessedTokens()}),)
    arms = study.arms(limits)
    found = []
    with ExitStack() as stack:
        store = stack.enter_context(Store(folder, writable=False)) if (folder / FILE).is_file() else None
        for spec, text, spot in zip(study.specs, study.models, where, strict=True):
            place = None if isinstance(spot, Path) else spot[0]
            cost = lanes.price(study, spec, text, place, listed, say)
            model = Model(spec, Pool([]), None, cost)
            padding, budgets = prepare.guessed_padding(prepared, store.budgets() if store else {})
            one = Planned(model, lanes.sampling(study, spec, arms), padding)
            left = one.count(prepared) if store is None else _left(store, prepared, one, folder)
            load = lanes.load(prepared, one, budgets, left)
            found.append(estimate.estimate(spec.alias, load, cost, None, store.rate(spec.alias) if store else None))
    return Estimate(tuple(found))


def _commits(folder: Path) -> dict[str, str]:
    """Task -> the commit at which a run that is gone on with has read it from the hub, however the hub moved on."""
    if not (folder / FILE).is_file():
        return {}
    with Store(folder, writable=False) as store:
        sources: dict[str, str] = msgspec.json.decode(store.meta("sources") or "{}")
    found = {name: re.match(r"hub: [^@]+@([0-9a-f]{40})", source) for name, source in sources.items()}
    return {name: match[1] for name, match in found.items() if match}


_FIXED = ("temperature", "top_p", "pad", "shots", "stop", "seed")
"""What an extended run must keep; more seeds, items, wrappers, enforcement and models are welcome."""


def _check_same(store: Store, study: Study, folder: Path) -> None:
    known = store.meta("study")
    if known is None:
        if store.meta("created") is not None:
            raise ConflictError(f"--out {folder} holds imported generations", "name another --out")
        return
    before = msgspec.json.decode(known, type=Study)
    for field in _FIXED:
        was, now = getattr(before, field), getattr(study, field)
        if was != now:
            hint = f"name another --out, or keep {field}"
            raise ConflictError(f"--out {folder} holds another study's run: {field} was {was}, now {now}", hint)
    limit = store.meta("max_tokens")
    now = ",".join(map(str, study.limits))
    if now and limit is not None and limit != now:
        message = f"--out {folder} holds another study's run: max_tokens was {limit}, now {now}"
        raise ConflictError(message, f"keep max_tokens, or name another --out and take its replies: --reuse {folder}")
    for alias, body in study.extra_bodies.items():
        was_body = before.extra_bodies.get(alias, body)
        if was_body != body:
            message = f"--out {folder}: the body of model {alias!r} was {was_body}, now {body}"
            raise ConflictError(message, "name another --out, or keep the body")
    ids = {spec.alias: (spec.provider, spec.id) for spec in before.specs}
    for spec in study.specs:
        if ids.get(spec.alias, (spec.provider, spec.id)) != (spec.provider, spec.id):
            was_id = "/".join(ids[spec.alias])
            message = f"--out {folder}: model {spec.alias!r} was {was_id}, now {spec.provider}/{spec.id}"
            raise ConflictError(message, "give the new one an alias: --models name=provider/id")


def _describe(store: Store, study: Study, prepared: Prepared) -> None:
    store.put_wrappers(prepared.wrappers)
    for task in prepared.tasks:
        store.put_items(task.name, task.items)
    describe(store, study.title)
    store.set_meta(
        study=msgspec.json.encode(study).decode(),
        study_digest=study.digest,
        seed=str(study.seed),
        auditor_version=auditor.__version__,
        sources=msgspec.json.encode({task.name: task.source for task in prepared.tasks}).decode(),
    )


# Plans and preflight -------------------------------------------------------------------------------------------


def _planned(store: Store, prepared: Prepared, models: Sequence[Model]) -> tuple[list[Planned], list[Check]]:
    """Each model's plan, and what can be checked without a completion."""
    tokenizers = {model.spec.alias: model.tokenizer for model in models if model.tokenizer is not None}
    limits = lanes.limits(store, prepared, tokenizers)
    arms = prepared.study.arms(limits)
    _put_cells(store, prepared, arms)
    return lanes.planned(store, prepared, models, arms), prepare.preflight(prepared, limits, tokenizers)


def _put_cells(store: Store, prepared: Prepared, arms: Sequence[Arm]) -> None:
    store.put_cells(
        (spec.alias, task.name, wrapper.name, arm.name)
        for spec in prepared.study.specs
        for task in prepared.tasks
        for wrapper, arm in pairs(prepared.wrappers, arms)
    )


def _known(store: Store, one: Planned) -> dict[Endpoint, Findings]:
    """What earlier preflights found out about a model's servers."""
    known = store.findings()
    keys = {endpoint: (one.model.spec.alias, endpoint.base_url) for endpoint in one.model.pool.endpoints}
    return {endpoint: known[key] for endpoint, key in keys.items() if key in known}


def _probed(store: Store, prepared: Prepared, plans: Sequence[Planned]) -> tuple[list[Planned], list[Findings]]:
    """Preflight on every server that was not asked before, or is another build now; the plans without the arms that
    a server refuses."""
    kept, everything = [], []
    for one in plans:
        question = lanes.question(prepared, one)
        found = []
        for endpoint in one.model.pool.endpoints:
            findings = _probe(store, prepared.study, one, endpoint, question)
            if findings is not None:
                endpoint.adaptations = {known.parameter: known for known in findings.adaptations}
                endpoint.routing = findings.routing
                found.append(findings)
        kept.append(lanes.without_refused(one, found))
        everything += found
    return kept, everything


def _probe(store: Store, study: Study, one: Planned, endpoint: Endpoint, question: probing.Question) -> Findings | None:
    known = _known(store, one).get(endpoint)
    if not study.preflight:
        return known
    build = build_of(endpoint.place)
    if known is not None and known.build in (build, None if build else known.build):
        judged = {canary.enforce for canary in known.canaries}
        if judged >= set(question.held):
            return known

    def log(purpose: str, generation: Generation) -> None:
        store.put_calls([(purpose, generation)])

    async def ask() -> Findings:
        try:
            return await probing.probe(endpoint, question, build, log, Retry())
        finally:
            await endpoint.close()

    findings = asyncio.run(ask())
    store.put_findings(findings)
    return findings


def _tell(store: Store, study: Study, checks: Sequence[Check], say: Say) -> None:
    store.put_preflight(checks)
    bad = [check for check in checks if check.status != "ok"]
    if bad and study.strict_preflight:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise PreflightError(f"preflight: {bad[0].message}{more}", "mend it, or go on without --strict-preflight")
    for check in bad:
        say(f"preflight: {check.message}")


# What is left --------------------------------------------------------------------------------------------------


def _pending(store: Store, requests: Iterator[Request], folder: Path) -> Iterator[Request]:
    """What is not answered yet. Raises ConflictError for a generation that was asked in other words."""
    for request in requests:
        state = store.state(request.identity)
        if state is not None and state[0] != request.digest:
            where = f"{request.model}, {request.task}, {request.item}, {request.wrapper}, seed {request.seed}"
            message = f"--out {folder} holds another request for {where}: its prompt or parameters changed"
            raise ConflictError(message, "name another --out for the new study")
        if state is None or not state[1]:
            yield request


def _left(store: Store, prepared: Prepared, one: Planned, folder: Path) -> int:
    if not store.has_answers():
        return one.count(prepared)
    return sum(1 for _ in _pending(store, one.requests(prepared), folder))


def _reused(store: Store, earlier: Store, prepared: Prepared, plans: Sequence[Planned], folder: Path, name: str) -> int:
    """Take the replies of an earlier run to requests that are equal to the byte; returns how many."""
    answers, taken = earlier.answers(), 0
    for one in plans:
        wanted = (r for r in _pending(store, one.requests(prepared), folder) if r.digest in answers)
        while batch := list(itertools.islice(wanted, 1000)):
            store.append_reused(((request, *earlier.reply(answers[request.digest])) for request in batch), name)
            taken += len(batch)
    return taken


def _ask_first(
    store: Store,
    prepared: Prepared,
    plans: Sequence[Planned],
    counts: Sequence[int],
    found: Sequence[Findings],
    say: Say,
    confirm: Confirm,
) -> None:
    """Say what the run takes, and let the user stop it. Raises Interrupted."""
    study, estimates = prepared.study, []
    for one, left in zip(plans, counts, strict=True):
        alias = one.model.spec.alias
        rate = store.rate(alias) or lanes.expected_rate(study, [known for known in found if known.model == alias])
        load = lanes.load(prepared, one, store.budgets(), left)
        estimates.append(estimate.estimate(alias, load, one.model.price, lanes.characters_a_token(prepared, one), rate))
    total = Estimate(tuple(estimates))
    say(estimate.sentence(total))
    if not confirm(total, any(one.model.pool.endpoints[0].place.dialect.key_needed for one in plans)):
        raise Interrupted("not started", "--max-cost USD sets a limit, --yes asks nothing")


# Sending -------------------------------------------------------------------------------------------------------


def _send(
    store: Store,
    prepared: Prepared,
    plans: Sequence[Planned],
    counts: Sequence[int],
    folder: Path,
    say: Say,
    progress: Progress,
) -> None:
    study, resumed, left = prepared.study, store.has_answers(), sum(counts)
    planned = sum(one.count(prepared) for one in plans)
    store.set_meta(planned=str(max(planned, int(store.meta("planned") or 0))))
    before = f", {planned - left:,} answered before" if resumed else ""
    say(f"{planned:,} generations planned{before}, into {folder}")
    if not left:
        return
    ways = [_lane(store, prepared, one, resumed, folder) for one in plans]
    budget = Budget(study.max_cost, store.counts()["cost_usd"] or 0.0, study.max_minutes and study.max_minutes * 60)
    meter, journal = Meter(total=left), Journal(store)
    try:
        with progress(meter):
            asyncio.run(_fan_out(ways, plans, journal, meter, budget))
    except KeyboardInterrupt:
        kept = f"{planned - left + meter.answered:,} of {planned:,} generations are kept"
        raise Interrupted(f"stopped: {kept} in {folder}", "run the same command again to go on") from None
    if budget.over is not None:
        kept = f"{planned - left + meter.answered:,} of {planned:,} generations are kept in {folder}"
        spent = f"${budget.spent:.4f} of ${study.max_cost:.4f} spent, " if study.max_cost else ""
        hint = "raise the limit and run the same command again; auditor report shows what is there"
        raise BudgetError(f"stopped by the budget ({budget.over}): {spent}{kept}", hint)


def _lane(store: Store, prepared: Prepared, one: Planned, resumed: bool, folder: Path) -> Lane:
    requests = one.requests(prepared)
    price = one.model.price
    return Lane(
        one.model.spec.alias,
        one.model.pool,
        _pending(store, requests, folder) if resumed else requests,
        lanes.pace(prepared.study),
        answered_before=store.has_answers(one.model.spec.alias),
        **({} if price is None else {"most": lambda request: estimate.most_usd(price, request)}),
    )


async def _fan_out(ways: list[Lane], plans: Sequence[Planned], journal: Journal, meter: Meter, budget: Budget) -> None:
    try:
        await send(ways, journal.commit, meter, budget=budget, abandon=journal.abandon)
    finally:
        for one in plans:
            await one.model.pool.close()
