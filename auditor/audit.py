"""The conductor, the only module that knows every stage: plan -> send -> store -> parse -> measure -> report."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

import auditor
from auditor import estimate, lanes, prepare, probing
from auditor.endpoints import Endpoint, Pool
from auditor.endpoints.tokenizers import build_of
from auditor.errors import BudgetError, ConflictError, EndpointError, Interrupted, PreflightError, RequestRefused
from auditor.estimate import Estimate
from auditor.figures import Check
from auditor.folders import default_folder, describe, opened
from auditor.journal import Journal
from auditor.lanes import Model, Planned
from auditor.pacing import Budget
from auditor.plan import pairs
from auditor.prepare import Prepared
from auditor.records import Findings, Generation, Price, Request
from auditor.report.value import Report
from auditor.results import finish
from auditor.send import Lane, Meter, Retry, free, send
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
        _put_content(store, prepared)
        models = lanes.opened(study, where, stack, say)
        plans, checks = _planned(store, prepared, models)
        for line in lanes.partly(prepared, plans):
            say(line)
        if earlier is not None and reuse is not None:
            say(f"{_reused(store, earlier, prepared, plans, folder, reuse.name):,} replies taken from {reuse}")
        counts = [_left(store, prepared, one, folder) for one in plans]
        if any(left.requests for left in counts):
            _ask_first(store, prepared, plans, counts, say, confirm)
            _describe(store, prepared, plans)
            plans = _probed(store, prepared, plans, say)
            counts = [_left(store, prepared, one, folder) for one in plans]
        else:
            _describe(store, prepared, plans)
        _tell(store, study, [*checks, *_found(store, study)], say)
        _send(store, prepared, plans, counts, folder, say, progress)
        return finish(store, folder, prepared.readers)


def plan(study: Study, out: Path | None = None, *, say: Say = quiet) -> Estimate:
    """What a run would take. Asks no model and needs no key; at most the price list is fetched. `out` is a run to be
    gone on with. Raises what `run` raises before it asks."""
    folder = out or default_folder(study.title)
    prepared = prepare.prepare(study, _commits(folder))
    where = lanes.spots(study, say, asking=False)
    listed: dict[str, Price | None] = {}
    found = []
    with ExitStack() as stack:
        store = stack.enter_context(Store(folder, writable=False)) if (folder / FILE).is_file() else None
        if store is not None:
            _check_same(store, study, folder)
        arms = study.arms(lanes.guessed_limits(store, prepared))
        for spec, text, spot in zip(study.specs, study.models, where, strict=True):
            place = None if isinstance(spot, Path) else spot[0]
            cost = lanes.price(study, spec, text, place, listed, say, asking=False)
            padding, budgets = prepare.guessed_padding(prepared, store.budgets() if store else {})
            one = Planned(Model(spec, Pool([]), None, cost), lanes.sampling(study, spec, arms), padding)
            if store is not None:
                one = lanes.without_refused(one, _of_model(store, spec.alias))
            left = one.count(prepared) if store is None else _left(store, prepared, one, folder, exact=False).requests
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


def _put_content(store: Store, prepared: Prepared) -> None:
    """Wrappers and items, held against what the run has already used. Raises ConflictError."""
    store.put_wrappers(prepared.wrappers)
    for task in prepared.tasks:
        store.put_items(task.name, task.items)


def _describe(store: Store, prepared: Prepared, plans: Sequence[Planned]) -> None:
    """What the run is from now on: not before the user has agreed, since a run that is declined stays as it was."""
    study = prepared.study
    store.put_cells(
        (one.model.spec.alias, task.name, wrapper.name, arm.name)
        for one in plans
        for task in prepared.tasks
        for wrapper, arm in pairs(prepared.wrappers, one.sampling.arms)
    )
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
    """Each model's plan, without the arms that its servers are known to refuse, and what can be checked without a
    completion."""
    tokenizers = {model.spec.alias: model.tokenizer for model in models if model.tokenizer is not None}
    limits = lanes.limits(store, prepared, tokenizers)
    plans = lanes.planned(store, prepared, models, prepared.study.arms(limits))
    return (
        [lanes.without_refused(one, _of_model(store, one.model.spec.alias)) for one in plans],
        prepare.preflight(prepared, limits, tokenizers),
    )


def _of_model(store: Store, model: str) -> list[Findings]:
    return [found for found in store.findings().values() if found.model == model]


def _found(store: Store, study: Study) -> list[Check]:
    """What preflight knows, of this part of the run and of earlier ones."""
    return [check for one in store.findings().values() for check in probing.checks(one, study.seeds > 1)]


def _probed(store: Store, prepared: Prepared, plans: Sequence[Planned], say: Say) -> list[Planned]:
    """Preflight on every server that was not asked before, or is another build now; the plans without the arms that a
    server refuses. Raises RequestRefused where nothing is left of any of them."""
    kept, refusals = [], []
    try:
        for one in plans:
            found = [_probe(store, prepared, one, endpoint) for endpoint in one.model.pool.endpoints]
            known = [findings for findings in found if findings is not None]
            kept.append(lanes.without_refused(one, known))
            refusals += [f"{c.enforce}: {c.said}" for f in known for c in f.canaries if c.verdict == "refused"]
            if (rate := lanes.expected_rate(prepared.study, known)) is not None:
                say(f"{one.model.spec.alias} answers; at first about {rate:,.1f} generations a second")
    except KeyboardInterrupt:
        raise Interrupted("stopped before the first question", "run the same command again") from None
    if not any(one.sampling.arms for one in kept):
        raise RequestRefused(f"every arm of the study is refused: {refusals[0]}", "--enforce none asks without")
    return kept


def _probe(store: Store, prepared: Prepared, one: Planned, endpoint: Endpoint) -> Findings | None:
    """What preflight finds out about one server: everything, or only what an earlier one has not."""
    study, alias = prepared.study, one.model.spec.alias
    known = store.findings().get((alias, endpoint.base_url))
    if known is not None:
        endpoint.adaptations = {found.parameter: found for found in known.adaptations}
        endpoint.routing = known.routing
    if not study.preflight:
        return known
    question = lanes.question(prepared, one)
    build = build_of(endpoint.place)
    same = known is not None and known.build in (build, None if build else known.build)
    open_canaries = probing.unproved(known, question) if known is not None and same else question
    if known is not None and same and not open_canaries.held:
        return known
    _check_affordable(store, study, one, len(open_canaries.held))

    def log(purpose: str, generation: Generation) -> None:
        store.put_calls([(purpose, generation)])

    async def ask() -> Findings:
        try:
            if known is not None and same:
                return await probing.prove(endpoint, known, open_canaries, log, Retry())
            return await probing.probe(endpoint, question, build, log, Retry())
        finally:
            await endpoint.close()

    findings = asyncio.run(ask())
    store.put_findings(findings)
    return findings


_CALLS, _CALL_TOKENS = 4, (600, 128)
"""Preflight's calls before canaries, and what one takes at most: tokens of its prompt and its reply."""


def _check_affordable(store: Store, study: Study, one: Planned, canaries: int) -> None:
    """Raises BudgetError where preflight alone could cross the limit."""
    if study.max_cost is None or one.model.price is None:
        return
    spent = store.counts()["cost_usd"] or 0.0
    most = (_CALLS + 6 * canaries) * one.model.price.of(*_CALL_TOKENS)
    if spent + most > study.max_cost:
        message = f"preflight could cost up to ${most:.4f}, and ${spent:.4f} of ${study.max_cost:.4f} are spent"
        raise BudgetError(message, "raise --max-cost, or skip it: --no-preflight")


def _tell(store: Store, study: Study, checks: Sequence[Check], say: Say) -> None:
    store.put_preflight(checks)
    bad = [check for check in checks if check.status != "ok"]
    for check in bad:
        if check.status != "skipped":
            say(f"preflight: {check.message}")
    worse = [check for check in bad if check.status != "skipped"]
    if worse and study.strict_preflight:
        more = f" (and {len(worse) - 1} more, above)" if len(worse) > 1 else ""
        raise PreflightError(f"preflight: {worse[0].message}{more}", "without --strict-preflight these are warnings")


# What is left --------------------------------------------------------------------------------------------------


def _pending(store: Store, requests: Iterator[Request], folder: Path) -> Iterator[Request]:
    """What is not answered yet. Raises ConflictError for a generation that was asked in other words."""
    return (request for request in requests if not _answered(store, request, folder))


def _answered(store: Store, request: Request, folder: Path, exact: bool = True) -> bool | None:
    """Whether a request is answered; None where it was never asked. Raises ConflictError where `exact` and the run
    holds it in other words."""
    state = store.state(request.identity)
    if state is None:
        return None
    if exact and state[0] != request.digest:
        where = f"{request.model}, {request.task}, {request.item}, {request.wrapper}, seed {request.seed}"
        message = f"--out {folder} holds another request for {where}: its prompt or parameters changed"
        raise ConflictError(message, "name another --out for the new study")
    return state[1]


class Left(Struct, frozen=True):
    """What of a plan is not answered: so many requests, of which so many were asked before and are missing."""

    requests: int
    missing: int = 0


def _left(store: Store, prepared: Prepared, one: Planned, folder: Path, exact: bool = True) -> Left:
    """`exact` holds each request against what was asked before; a plan that guesses at padding cannot."""
    if store.is_empty():
        return Left(one.count(prepared))
    states = Counter(_answered(store, request, folder, exact) for request in one.requests(prepared))
    return Left(states[None] + states[False], states[False])


def _reused(store: Store, earlier: Store, prepared: Prepared, plans: Sequence[Planned], folder: Path, name: str) -> int:
    """Take the replies of an earlier run to requests that are equal, of the same provider's model; returns how many."""
    told = earlier.meta("study")
    specs = msgspec.json.decode(told, type=Study).specs if told else ()
    same = {(spec.provider, spec.id) for spec in specs}
    answers, taken = earlier.answers(), 0
    for one in plans:
        if (one.model.spec.provider, one.model.spec.id) not in same:
            continue
        wanted = (r for r in _pending(store, one.requests(prepared), folder) if r.digest in answers)
        while batch := list(itertools.islice(wanted, 1000)):
            store.append_reused(((request, *earlier.reply(answers[request.digest])) for request in batch), name)
            taken += len(batch)
    return taken


def _ask_first(
    store: Store, prepared: Prepared, plans: Sequence[Planned], counts: Sequence[Left], say: Say, confirm: Confirm
) -> None:
    """Say what the run takes, and let the user stop it before a call is made. Raises Interrupted."""
    estimates = []
    for one, left in zip(plans, counts, strict=True):
        alias = one.model.spec.alias
        load = lanes.load(prepared, one, store.budgets(), left.requests)
        per_token = lanes.characters_a_token(prepared, one)
        estimates.append(estimate.estimate(alias, load, one.model.price, per_token, store.rate(alias)))
    total = Estimate(tuple(estimates))
    say(estimate.sentence(total))
    if not confirm(total, any(one.model.pool.endpoints[0].place.dialect.key_needed for one in plans)):
        raise Interrupted("not started", "--max-cost USD sets a limit, --yes asks nothing")


# Sending -------------------------------------------------------------------------------------------------------


def _send(
    store: Store,
    prepared: Prepared,
    plans: Sequence[Planned],
    counts: Sequence[Left],
    folder: Path,
    say: Say,
    progress: Progress,
) -> None:
    study, resumed, left = prepared.study, not store.is_empty(), sum(one.requests for one in counts)
    planned = sum(one.count(prepared) for one in plans)
    kept = store.counts()
    # What the run holds outside this plan counts too: an earlier part may have asked other models or more items.
    outside = kept["missing"] - sum(one.missing for one in counts)
    store.set_meta(planned=str(kept["answered"] + left + outside))
    before = f", {planned - left:,} answered before" if resumed else ""
    say(f"{planned:,} generations planned{before}, into {folder}")
    if not left:
        return
    ways = [_lane(store, prepared, one, resumed, folder) for one in plans]
    budget = Budget(study.max_cost, store.counts()["cost_usd"] or 0.0, study.max_minutes and study.max_minutes * 60)
    meter, journal = Meter(total=left), Journal(store)

    def stored() -> str:
        return f"{planned - left + meter.answered:,} of {planned:,} generations are kept in {folder}"

    try:
        with progress(meter):
            asyncio.run(_fan_out(ways, plans, journal, meter, budget))
    except KeyboardInterrupt:
        raise Interrupted(f"stopped: {stored()}", "run the same command again to go on") from None
    except EndpointError as error:
        if not (meter.answered or resumed):
            raise
        raise type(error)(f"{error.message} ({stored()})", error.hint) from None
    finally:
        _remember(store, plans)
    if budget.over is not None:
        spent = f"${budget.spent:.4f} of ${study.max_cost:.4f} spent, " if study.max_cost else ""
        hint = "raise the limit and run the same command again; auditor report shows what is there"
        raise BudgetError(f"stopped by the budget ({budget.over}): {spent}{stored()}", hint)


def _lane(store: Store, prepared: Prepared, one: Planned, resumed: bool, folder: Path) -> Lane:
    requests = one.requests(prepared)
    price = one.model.price
    return Lane(
        one.model.spec.alias,
        one.model.pool,
        _pending(store, requests, folder) if resumed else requests,
        lanes.pace(prepared.study),
        answered_before=store.has_answers(one.model.spec.alias),
        probed=bool(_of_model(store, one.model.spec.alias)),
        key_variable=one.model.pool.endpoints[0].place.key_variable,
        most=free if price is None else partial(estimate.most_usd, price),
    )


async def _fan_out(ways: list[Lane], plans: Sequence[Planned], journal: Journal, meter: Meter, budget: Budget) -> None:
    try:
        await send(ways, journal.commit, meter, Retry(), budget, journal.abandon)
    finally:
        for one in plans:
            await one.model.pool.close()


def _remember(store: Store, plans: Sequence[Planned]) -> None:
    """Adaptations that preflight did not meet: a resumed run and the report must know them."""
    known = store.findings()
    for one in plans:
        for endpoint in one.model.pool.endpoints:
            alias, adapted = one.model.spec.alias, tuple(endpoint.adaptations.values())
            found = known.get((alias, endpoint.base_url)) or Findings(alias, endpoint.base_url, endpoint.place.provider)
            if adapted != found.adaptations:
                store.put_findings(msgspec.structs.replace(found, adaptations=adapted))
