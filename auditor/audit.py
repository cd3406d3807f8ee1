"""The conductor, the only module that knows every stage: plan -> send -> store -> parse -> measure -> report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import msgspec

import auditor
from auditor import plan, prepare
from auditor.endpoints import PROVIDERS, Endpoint, local, resolve
from auditor.endpoints.llamacpp import Tokenizer
from auditor.endpoints.transport import TRANSPORTS, Transport
from auditor.errors import ConflictError, Interrupted
from auditor.folders import default_folder, describe, opened
from auditor.parsing import gold_reply
from auditor.prepare import Prepared
from auditor.records import Generation, Request
from auditor.report.value import Report
from auditor.results import finish
from auditor.send import Lane, Meter, send
from auditor.store import Store
from auditor.study import ModelSpec, Study

Say = Callable[[str], None]
Progress = Callable[[Meter], AbstractContextManager[None]]
Walk = Callable[[], Iterator[Request]]
"""One model's plan, walked again from the start at each call."""


def quiet(_: str) -> None:
    """Say nothing."""


def no_progress(_: Meter) -> AbstractContextManager[None]:
    """Show nothing."""
    return nullcontext()


def run(study: Study, out: Path | None = None, *, say: Say = quiet, progress: Progress = no_progress) -> Report:
    """Audit: send what is not answered yet, read it, measure, write everything into `out`.

    Raises UsageError and FileError before anything is written, EndpointDown and RequestRefused when an endpoint ends
    the run, Interrupted on Ctrl-C; what was answered until then is kept.
    """
    prepared = prepare.prepare(study)
    places = [_place(spec, say) for spec in study.specs]
    folder = out or default_folder(study.title)
    with ExitStack() as stack:
        store = stack.enter_context(opened(folder))
        _check_same(store, study, folder)
        _describe(store, study, prepared)
        endpoints = [_endpoint(spec, place, study, stack, say) for spec, place in zip(study.specs, places, strict=True)]
        tokenizers = {
            spec.alias: tool for spec, place in zip(study.specs, endpoints, strict=True) if (tool := place[1])
        }
        limit = _limit(store, prepared, tokenizers)
        walks = _walks(store, prepared, [endpoint for endpoint, _ in endpoints], tokenizers, limit)
        checks = prepare.preflight(prepared, limit, tokenizers)
        store.put_preflight(checks)
        for check in checks:
            if check.status != "ok":
                say(f"preflight: {check.message}")
        _send(store, prepared, walks, folder, say, progress)
        return finish(store, folder, prepared.readers)


def _place(spec: ModelSpec, say: Say) -> tuple[str, str | None] | Path:
    """Where a model is: (URL, key), or its weights. Raises UsageError before anything is written."""
    if spec.provider == "local":
        return local.weights(spec.id, say)
    return resolve(spec.provider, spec.base_url)


_FIXED = ("temperature", "top_p", "pad", "shots", "stop", "seed")
"""What an extended run must keep; more seeds, items, wrappers and models are welcome."""


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
    if study.max_tokens != "auto" and limit is not None and int(limit) != study.max_tokens:
        message = f"--out {folder} holds another study's run: max_tokens was {limit}, now {study.max_tokens}"
        raise ConflictError(message, "name another --out, or keep max_tokens")
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
    store.put_cells(
        (spec.alias, task.name, wrapper.name, "none")
        for spec in study.specs
        for task in prepared.tasks
        for wrapper in prepared.wrappers
    )
    describe(store, study.title)
    store.set_meta(
        study=msgspec.json.encode(study).decode(),
        study_digest=study.digest,
        seed=str(study.seed),
        auditor_version=auditor.__version__,
    )


def _endpoint(
    spec: ModelSpec, place: tuple[str, str | None] | Path, study: Study, stack: ExitStack, say: Say
) -> tuple[Endpoint, Tokenizer | None]:
    """The endpoint of a model, started where it is this machine's, with its tokenizer where it has one."""
    if isinstance(place, Path):
        say(f"starting llama.cpp with {place.name} on loopback")
        server = stack.enter_context(local.LocalServer(place, spec.alias, slots=min(study.concurrency, 8)))
        place = (server.base_url, server.key)
    url, key = place
    transport: Transport = TRANSPORTS[study.transport]()
    model_id = spec.alias if spec.provider == "local" else spec.id
    endpoint = Endpoint(PROVIDERS[spec.provider], model_id, url, key, transport)
    if spec.provider not in ("local", "llamacpp"):
        return endpoint, None
    tokenizer = Tokenizer(url, endpoint.auth)
    stack.callback(tokenizer.close)
    return endpoint, tokenizer


def _limit(store: Store, prepared: Prepared, tokenizers: dict[str, Tokenizer]) -> int:
    """The token limit, fixed at the first plan."""
    known, asked = store.meta("max_tokens"), prepared.study.max_tokens
    if known is not None:
        return int(known)
    limit = prepare.sufficient_limit(prepared, tokenizers) if asked == "auto" else asked
    store.set_meta(max_tokens=str(limit))
    return limit


def _walks(
    store: Store, prepared: Prepared, endpoints: Sequence[Endpoint], tokenizers: dict[str, Tokenizer], limit: int
) -> list[tuple[Endpoint, Walk]]:
    """Each model's endpoint and plan."""
    study = prepared.study
    found = []
    for spec, endpoint in zip(study.specs, endpoints, strict=True):
        padding, new = prepare.padding(prepared, store.budgets(), tokenizers.get(spec.alias))
        store.put_budgets(new)
        sampling = plan.Sampling(
            model=spec.alias,
            model_id=endpoint.model_id,
            max_tokens=limit,
            temperature=study.temperature,
            top_p=study.top_p,
            seeds=study.seeds,
            shots=study.shots,
            stop=study.stop,
            extra_body=study.extra_bodies[spec.alias],
        )
        found.append((endpoint, _walk(sampling, prepared, padding)))
    return found


def _walk(sampling: plan.Sampling, prepared: Prepared, padding: plan.Padding) -> Walk:
    return lambda: plan.requests(sampling, prepared.tasks, prepared.wrappers, padding, gold_reply)


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


def _send(
    store: Store, prepared: Prepared, walks: Sequence[tuple[Endpoint, Walk]], folder: Path, say: Say, progress: Progress
) -> None:
    study, resumed = prepared.study, store.has_answers()
    planned = plan.planned(prepared.tasks, prepared.wrappers, study.seeds) * len(walks)
    left = sum(1 for _, walk in walks for _ in _pending(store, walk(), folder)) if resumed else planned
    store.set_meta(planned=str(max(planned, int(store.meta("planned") or 0))))
    before = f", {planned - left:,} answered before" if resumed else ""
    say(f"{planned:,} generations planned{before}, into {folder}")
    if not left:
        return
    lanes = [
        Lane(
            spec.alias,
            endpoint,
            _pending(store, walk(), folder) if resumed else walk(),
            study.concurrency,
            answered_before=store.has_answers(spec.alias),
        )
        for spec, (endpoint, walk) in zip(study.specs, walks, strict=True)
    ]
    meter = Meter(total=left)
    journal = _Journal(store)
    try:
        with progress(meter):
            asyncio.run(_fan_out(lanes, [endpoint for endpoint, _ in walks], journal, meter))
    except KeyboardInterrupt:
        kept = f"{planned - left + meter.answered:,} of {planned:,} generations are kept"
        raise Interrupted(f"stopped: {kept} in {folder}", "run the same command again to go on") from None


async def _fan_out(lanes: list[Lane], endpoints: Sequence[Endpoint], journal: _Journal, meter: Meter) -> None:
    try:
        await send(lanes, journal.commit, meter)
    finally:
        for endpoint in endpoints:
            await endpoint.close()


class _Journal:
    """Commits whatever is queued as soon as the loop is free, in one transaction, without a timer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: list[tuple[Generation, asyncio.Future[None]]] = []

    async def commit(self, generation: Generation) -> None:
        """Returns when the generation is in the journal."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.append((generation, done))
        if len(self._queue) == 1:
            loop.call_soon(self._flush)
        await done

    def _flush(self) -> None:
        queue, self._queue = self._queue, []
        try:
            self._store.append([generation for generation, _ in queue])
        except Exception as error:  # whatever it is, a worker that waits for ever would be worse
            for _, done in queue:
                if not done.done():
                    done.set_exception(error)
            return
        for _, done in queue:
            if not done.done():
                done.set_result(None)
