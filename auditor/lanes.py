"""A study's models, made ready: where each is asked, its tokenizer, price, plan and pace."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from auditor import plan, prepare
from auditor.constraints import applies, constraint
from auditor.endpoints import PROVIDERS, Endpoint, Place, Pool, local, openrouter, places
from auditor.endpoints.asking import Asker
from auditor.endpoints.network import network_for
from auditor.endpoints.tokenizers import Tokenizer, tokenizer_of
from auditor.endpoints.transport import TRANSPORTS
from auditor.errors import EndpointError, UsageError
from auditor.estimate import Load
from auditor.pacing import FIRST, Pace
from auditor.parsing import gold_reply
from auditor.prepare import Prepared
from auditor.probing import Question
from auditor.prompts import characters, render
from auditor.records import Arm, Constraint, Enforcement, Findings, Message, Price, Request
from auditor.store import Store
from auditor.study import ModelSpec, Study

Say = Callable[[str], None]
Spot = tuple[Place, ...] | Path
"""Where a model is: servers, or the weights of one that this machine runs."""


class Model(Struct, frozen=True):
    """One model of a study, ready to be asked. `price` is None where nobody says it."""

    spec: ModelSpec
    pool: Pool
    tokenizer: Tokenizer | None
    price: Price | None


class Planned(Struct, frozen=True):
    """A model and its plan."""

    model: Model
    sampling: plan.Sampling
    padding: plan.Padding

    def requests(self, prepared: Prepared) -> Iterator[Request]:
        """The plan, walked from the start at each call."""
        return plan.requests(self.sampling, prepared.tasks, prepared.wrappers, self.padding, gold_reply)

    def count(self, prepared: Prepared) -> int:
        """How many generations it has."""
        return plan.planned(prepared.tasks, prepared.wrappers, self.sampling.arms, self.sampling.seeds)


def spots(study: Study, say: Say, asking: bool = True) -> list[Spot]:
    """Where each model is. What is only planned needs no key, and no weights. Raises UsageError, before anything is
    written."""
    return [_spot(study, spec, text, say, asking) for spec, text in zip(study.specs, study.models, strict=True)]


def _spot(study: Study, spec: ModelSpec, text: str, say: Say, asking: bool) -> Spot:
    if spec.provider == "local":
        return local.weights(spec.id, say) if asking else Path(spec.id)
    options = study.about(study.endpoints, spec, text) or study.endpoint
    found = places(spec.provider, spec.id, spec.base_urls, options, asking=asking)
    for enforce in study.enforce:
        if enforce not in (can := PROVIDERS[spec.provider].enforces):
            known = ", ".join(sorted(can - {"none"}))
            hint = f"{spec.provider} takes {known}; a server of vLLM or llama.cpp takes grammar under its own provider"
            raise UsageError(f"{text} cannot be asked to enforce {enforce}", hint)
    return found


def opened(study: Study, where: Sequence[Spot], stack: ExitStack, say: Say) -> list[Model]:
    """The models, started where they are this machine's. Raises UsageError, EndpointDown."""
    listed: dict[str, Price | None] = {}
    models = []
    for spec, text, spot in zip(study.specs, study.models, where, strict=True):
        if isinstance(spot, Path):
            say(f"starting llama.cpp with {spot.name} on loopback")
            slots = min(8 if study.concurrency == "auto" else study.concurrency, 8)
            server = stack.enter_context(local.LocalServer(spot, spec.alias, slots=slots))
            spot = (Place("local", spec.alias, server.base_url, server.key),)
        cost = price(study, spec, text, spot[0], listed, say)
        pool = Pool([_endpoint(study, place, cost) for place in spot])
        tokenizer = tokenizer_of(spot[0])
        if tokenizer is not None:
            stack.callback(tokenizer.close)
        models.append(Model(spec, pool, tokenizer, cost))
    return models


def _endpoint(study: Study, place: Place, cost: Price | None) -> Endpoint:
    transport = TRANSPORTS[study.transport](network_for(place.base_url))
    return Endpoint(place, transport, price=cost, timeout=study.timeout)


def price(
    study: Study,
    spec: ModelSpec,
    text: str,
    place: Place | None,
    listed: dict[str, Price | None],
    say: Say,
    asking: bool = True,
) -> Price | None:
    """What a model costs: as the study says, else as OpenRouter lists it (fetched once, into `listed`), else nothing
    on a server of one's own. Raises UsageError where `--max-cost` cannot be kept for want of a price."""
    found = study.about(study.prices, spec, text)
    if found is None and spec.provider == "openrouter" and place is not None:
        if not listed:
            listed.update(_listed(place, say))
        found = listed.get(spec.id)
    if found is None:
        found = PROVIDERS[spec.provider].price if spec.provider in PROVIDERS else None
    if found is None and study.max_cost is not None and asking:
        hint = f'write [models."{text}".price] with prompt and completion in USD per million tokens, or --prices FILE'
        raise UsageError(f"--max-cost cannot be kept: the price of {text} is not known", hint)
    return found


def _listed(place: Place, say: Say) -> dict[str, Price | None]:
    asker = Asker(place, place.base_url)
    try:
        entries = asker.get("/models").get("data")
    except EndpointError as error:
        say(f"prices: {error.message}")
        return {"": None}
    finally:
        asker.close()
    rows = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    return {"": None} | {str(one.get("id")): openrouter.price(one) for one in rows}


# Plans ---------------------------------------------------------------------------------------------------------


def limits(store: Store, prepared: Prepared, tokenizers: dict[str, Tokenizer]) -> tuple[int, ...]:
    """The token limits, fixed at the first plan."""
    if known := _fixed_limits(store):
        return known
    found = prepared.study.limits or (prepare.sufficient_limit(prepared, tokenizers),)
    store.set_meta(max_tokens=",".join(map(str, found)))
    return found


def guessed_limits(store: Store | None, prepared: Prepared) -> tuple[int, ...]:
    """The token limits of a run that is gone on with, or those that a first one would most likely have."""
    if store is not None and (known := _fixed_limits(store)):
        return known
    return prepared.study.limits or (prepare.sufficient_limit(prepared, {"": prepare.GuessedTokens()}),)


def _fixed_limits(store: Store) -> tuple[int, ...]:
    known = store.meta("max_tokens")
    return () if known is None else tuple(map(int, known.split(",")))


def partly(prepared: Prepared, plans: Sequence[Planned]) -> list[str]:
    """Which arms have cells for a part of the wrappers only."""
    arms = {arm.enforce: arm for one in plans for arm in one.sampling.arms}
    found = []
    for enforce, arm in arms.items():
        names = [wrapper.name for wrapper, _ in plan.pairs(prepared.wrappers, [arm])]
        if len(names) < len(prepared.wrappers):
            found.append(f"{enforce} is enforced where JSON is asked for: {', '.join(names)}")
    return found


def planned(store: Store, prepared: Prepared, models: Sequence[Model], arms: Sequence[Arm]) -> list[Planned]:
    """Each model's plan. The padding budgets are fixed at the first one."""
    found = []
    for model in models:
        padding, new = prepare.padding(prepared, store.budgets(), model.tokenizer)
        store.put_budgets(new)
        found.append(Planned(model, sampling(prepared.study, model.spec, arms), padding))
    return found


def sampling(study: Study, spec: ModelSpec, arms: Sequence[Arm]) -> plan.Sampling:
    """What every request of a model has in common."""
    return plan.Sampling(
        model=spec.alias,
        model_id=spec.alias if spec.provider == "local" else spec.id,
        arms=tuple(arms),
        temperature=study.temperature,
        top_p=study.top_p,
        seeds=study.seeds,
        shots=study.shots,
        stop=study.stop,
        extra_body=study.extra_bodies[spec.alias],
    )


def question(prepared: Prepared, one: Planned) -> Question:
    """What preflight asks a model for: the study's parameters, and what its arms hold replies to."""
    sampling, study = one.sampling, prepared.study
    template = Request(
        model=sampling.model,
        task="",
        item="",
        wrapper="",
        arm="none",
        seed=0,
        digest="",
        prompt="",
        messages=(Message("user", ""),),
        max_tokens=24,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        stop=sampling.stop,
        extra_body=sampling.extra_body,
    )
    enforced = [enforce for enforce in study.enforce if enforce != "none"]
    return Question(
        template,
        {enforce: _held(prepared, enforce) for enforce in enforced},
        system=any(turn.role == "system" for wrapper in prepared.wrappers for turn in wrapper.messages),
        padded=study.pad != "none" and one.model.tokenizer is None,
    )


def _held(prepared: Prepared, enforce: Enforcement) -> tuple[Constraint, ...]:
    """Constraints of the study, few: every contract once, and every answer type once."""
    contracts = [wrapper.contract for wrapper in prepared.wrappers if applies(enforce, wrapper.contract)]
    spaces = list({task.items[0].space.type: task.items[0].space for task in prepared.tasks}.values())
    count = max(len(contracts), len(spaces))
    pairs = itertools.islice(zip(itertools.cycle(contracts), itertools.cycle(spaces), strict=False), count)
    held = [constraint(enforce, contract, space) for contract, space in pairs]
    return tuple(one for one in held if one is not None and one.kind != "json_object")


def without_refused(one: Planned, findings: Sequence[Findings]) -> Planned:
    """The plan without the arms that a server refuses: every request of theirs would be."""
    refused = {canary.enforce for found in findings for canary in found.canaries if canary.verdict == "refused"}
    arms = tuple(arm for arm in one.sampling.arms if arm.enforce not in refused)
    return Planned(one.model, msgspec.structs.replace(one.sampling, arms=arms), one.padding)


def pace(study: Study) -> Pace:
    """How fast a model is asked."""
    return Pace(None if study.concurrency == "auto" else study.concurrency, study.rpm, study.tpm)


def load(prepared: Prepared, one: Planned, budgets: Mapping[tuple[str, str], int], left: int) -> Load:
    """What is left of a model's plan, on average per request. Padded prompts are as long as their budget; of others a
    few items of each task are looked at."""
    sizes: list[tuple[int, float]] = []
    for task in prepared.tasks:
        match prepared.study.pad:
            case "chars":
                mean = float(budgets[task.name, ""])
            case "item":
                mean = statistics.fmean(budgets[task.name, item.id] for item in task.items)
            case _:
                few = task.items[:: max(1, len(task.items) // _LOOKED_AT)]
                mean = statistics.fmean(
                    characters(render(wrapper, item, plan.shots_of(task, item, prepared.study.shots), gold_reply, ""))
                    for item in few
                    for wrapper in prepared.wrappers
                )
        sizes.append((len(task.items), mean))
    total = sum(count for count, _ in sizes)
    pairs = plan.pairs(prepared.wrappers, one.sampling.arms)
    limit = statistics.fmean(arm.max_tokens for _, arm in pairs) if pairs else 0.0
    return Load(left, sum(count * mean for count, mean in sizes) / total, limit)


def characters_a_token(prepared: Prepared, one: Planned) -> float | None:
    """Measured on a few prompts as they are sent, where a tokenizer can be asked."""
    if one.model.tokenizer is None:
        return None
    if not (some := list(itertools.islice(one.requests(prepared), 5))):
        return None
    return sum(characters(r.messages) for r in some) / sum(one.model.tokenizer.count_prompt(r.messages) for r in some)


_LOOKED_AT = 40


def expected_rate(study: Study, findings: Sequence[Findings]) -> float | None:
    """Generations a second that the latency of preflight's calls promises, under the study's limits."""
    latencies = [found.latency_ms for found in findings if found.latency_ms]
    if not latencies:
        return None
    slots = FIRST if study.concurrency == "auto" else study.concurrency
    rate = slots / (sum(latencies) / len(latencies) / 1000)
    return min(rate, study.rpm / 60) if study.rpm else rate
