"""Preflight on the network: a handful of calls per model and server say what it does with what every request has.

The key and the model are good; refused parameters are left out from here on; the seed decides the reply or does not;
padding reaches the model; enforcement is real (a canary, whose prompt and constraint disagree).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Struct

from auditor.endpoints import Endpoint, openrouter
from auditor.endpoints.asking import Asker
from auditor.endpoints.grammars import regex
from auditor.errors import EndpointError
from auditor.figures import Check
from auditor.pacing import Pace
from auditor.prompts import TRIED_PADDING, TRIED_TOKENS, filler
from auditor.records import (
    Canary,
    Constraint,
    Enforcement,
    Findings,
    Generation,
    Message,
    Part,
    Reply,
    Request,
    Verdict,
)
from auditor.send import Lane, Meter, Retry, send

Log = Callable[[str, Generation], None]
"""Told of every call: its purpose and what became of it."""

_ROOM = 128
"""Tokens for a canary's reply: any that is held to a constraint without free text ends within them."""


class Question(Struct, frozen=True):
    """What a model is to be asked for real: `template` has the study's parameters, `held` what its arms hold replies
    to, by enforcement; `padded` where prompts are padded and no tokenizer says whether that survives."""

    template: Request
    held: dict[Enforcement, tuple[Constraint, ...]]
    system: bool
    padded: bool


async def probe(endpoint: Endpoint, question: Question, build: str | None, log: Log, retry: Retry) -> Findings:
    """Everything, on one server. Raises RequestRefused for a bad key or model, EndpointDown where nothing answers."""
    asker = _Prober(endpoint, question, log, retry)
    place = endpoint.place
    first = await asker.ask("seed", 0)
    free = place.provider == "openrouter" and not openrouter.pinned(question.template.extra_body)
    if free:
        endpoint.routing = _route(endpoint, first)
    again, other = await asker.ask("seed", 0), await asker.ask("seed", 1)
    seed, said = _seed("seed" in endpoint.adaptations, question.template.temperature, first, again, other)
    bare = await asker.ask("padding", 0, pad=False) if question.padded else None
    canaries = await _canaries(asker, question)
    latencies = [one.attempts[-1].latency_ms for one in (first, again, other) if one.reply is not None]
    return Findings(
        model=question.template.model,
        server=place.base_url,
        provider=place.provider,
        build=build or (first.reply.system_fingerprint if first.reply else None),
        adaptations=tuple(endpoint.adaptations.values()),
        routing=endpoint.routing,
        upstream="any" if free and not endpoint.routing else "",
        seed=seed,
        seed_said=said,
        padding=_survives(first, bare),
        latency_ms=sum(latencies) / len(latencies) if latencies else None,
        canaries=canaries,
    )


def unproved(known: Findings, question: Question) -> Question:
    """What of a question a server's canaries have not answered, or have answered about other constraints."""
    proved = {(one.enforce, one.held) for one in known.canaries if one.verdict != "unknown"}
    left = {enforce: held for enforce, held in question.held.items() if (enforce, _digest(held)) not in proved}
    return msgspec.structs.replace(question, held=left)


async def prove(endpoint: Endpoint, known: Findings, question: Question, log: Log, retry: Retry) -> Findings:
    """What is known of a server, with the canaries that were left."""
    new = await _canaries(_Prober(endpoint, question, log, retry), question)
    kept = [one for one in known.canaries if one.enforce not in question.held]
    return msgspec.structs.replace(known, canaries=(*kept, *new), adaptations=tuple(endpoint.adaptations.values()))


async def _canaries(asker: _Prober, question: Question) -> tuple[Canary, ...]:
    found = [await _canary(asker, enforce, held) for enforce, held in question.held.items()]
    return tuple(msgspec.structs.replace(one, held=_digest(question.held[one.enforce])) for one in found)


def _digest(held: Sequence[Constraint]) -> str:
    return hashlib.sha256(msgspec.json.encode(held)).hexdigest()[:16]


def checks(findings: Findings, several_seeds: bool) -> list[Check]:
    """What the user must know of it."""
    where = f"{findings.model} at {findings.server}"
    found = [Check(f"{where} answers", "ok", f"the key and the model are good{_built(findings)}")]
    for one in findings.adaptations:
        how = f"sent {one.sent}" if one.sent.startswith("as ") else one.sent
        message = f"{where} refused {one.parameter} = {one.requested}: it is {how} from now on ({one.why})"
        found.append(Check(f"{where}: {one.parameter}", "warning", message))
    if findings.routing:
        only = ", ".join(findings.routing.get("only", ()))
        found.append(Check(f"{where}: upstream", "ok", f"{where} is answered by {only}"))
    elif findings.upstream == "any":
        message = f"{where}: any upstream provider may answer, since the first one's slug was not found"
        hint = 'name one in the study: provider = {only = ["..."]}'
        found.append(Check(f"{where}: upstream", "warning", f"{message}; {hint}"))
    bad_seed = findings.seed == "ignored" and several_seeds
    message = f"{where}: the seed is {findings.seed}: {findings.seed_said}"
    found.append(Check(f"{where}: seed", "warning" if bad_seed else "ok", message))
    if findings.padding is False:
        message = (
            f"{where}: padding does not reach the model, so prompts of equal length differ in tokens: see the spread"
        )
        found.append(Check(f"{where}: padding", "warning", message))
    for canary in findings.canaries:
        held = canary.verdict == "enforced"
        so = "; the arm is left out" if canary.verdict == "refused" else ""
        said = f"{where}: {canary.enforce} is {canary.verdict.replace('_', ' ')}: {canary.said}{so}"
        found.append(Check(f"{where}: {canary.enforce}", "ok" if held else "warning", said))
    return found


def _built(findings: Findings) -> str:
    return f" ({findings.build})" if findings.build else ""


class _Prober:
    """Asks one server with the study's parameters."""

    def __init__(self, endpoint: Endpoint, question: Question, log: Log, retry: Retry) -> None:
        self._endpoint = endpoint
        self._question = question
        self._log = log
        self._retry = retry
        self._answered = False

    async def ask(self, purpose: str, seed: int, *, pad: bool = True) -> Generation:
        """A short sentence, over a padded prompt."""
        white = f"\n{filler(TRIED_PADDING)}\n" if pad else " "
        return await self.say(purpose, f"Write one short sentence.{white}It may be about anything.", seed, 24, None)

    async def say(self, purpose: str, text: str, seed: int, most: int, held: Constraint | None) -> Generation:
        """One call, with retries; only the first may end the run."""
        turns = (Message("system", "You are brief."),) if self._question.system else ()
        request = msgspec.structs.replace(
            self._question.template,
            seed=seed,
            messages=(*turns, Message("user", text)),
            max_tokens=most,
            constraint=held,
        )
        kept: list[Generation] = []

        async def keep(generation: Generation) -> None:
            kept.append(generation)
            self._log(purpose, generation)

        lane = Lane(request.model, self._endpoint, iter([request]), Pace(1), self._answered)
        await send([lane], keep, Meter(1), self._retry, abandon=partial(self._log, purpose))
        self._answered = True
        return kept[0]


def _route(endpoint: Endpoint, first: Generation) -> dict[str, Any]:
    """The provider that answered first answers from now on; unasked, every request may go to another one."""
    name = first.reply.provider if first.reply else None
    asker = Asker(endpoint.place, endpoint.place.base_url)
    try:
        listed = asker.get(f"/models/{endpoint.place.model_id.partition(':')[0]}/endpoints")
    except EndpointError:
        listed = {}
    finally:
        asker.close()
    tag = openrouter.tag(listed, name or "")
    return {"only": [tag]} if tag else {}


Seed = Literal["honoured", "ignored", "unclear"]


def _seed(
    refused: bool, temperature: float, first: Generation, again: Generation, other: Generation
) -> tuple[Seed, str]:
    texts = [one.reply.text if one.reply else None for one in (first, again, other)]
    if refused:
        return "ignored", "the endpoint does not take one"
    if not all(texts):
        return "unclear", "not every call was answered with text"
    if texts[0] != texts[1]:
        return "ignored", "asked twice with one seed, it gave two replies"
    if texts[0] == texts[2]:
        why = "at temperature 0 they mostly do" if temperature == 0 else "it may still honour it"
        return "unclear", f"two seeds gave one reply ({why})"
    return "honoured", "one seed gave one reply, another seed another"


def _survives(padded: Generation, bare: Generation | None) -> bool | None:
    counts = [one.reply.prompt_tokens if one and one.reply else None for one in (padded, bare)]
    if counts[0] is None or counts[1] is None:
        return None
    return counts[0] >= counts[1] + TRIED_TOKENS


# Canaries ------------------------------------------------------------------------------------------------------

_SAY = "Reply with the single word banana. Write plain text, not JSON."
_ANIMALS = ("zebra", "giraffe")
_SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string", "enum": list(_ANIMALS)}},
    "required": ["animal"],
    "additionalProperties": False,
}
_DISAGREE: dict[str, Constraint] = {
    "json_object": Constraint("json_object"),
    "json_schema": Constraint("json_schema", schema=_SCHEMA),
    "grammar": Constraint("grammar", grammar=(Part("one_of", _ANIMALS),)),
}


async def _canary(asker: _Prober, enforce: Enforcement, held: Sequence[Constraint]) -> Canary:
    """First a constraint that any server can take, then the study's own: what a server cannot compile it may drop."""
    purpose, simple = f"canary {enforce}", _DISAGREE[enforce]
    verdict, said = _judged(await asker.say(purpose, _SAY, 0, _ROOM, simple), simple)
    if verdict != "enforced" or enforce == "json_object":
        return Canary(enforce, verdict, said)
    for constraint in held:
        own, own_said = _judged(await asker.say(purpose, _SAY, 0, _ROOM, constraint), constraint)
        if own == "refused":
            return Canary(enforce, "refused", own_said)
        if own == "ignored":
            return Canary(enforce, "fails_open", f"a simple constraint holds, but for one of the study's {own_said}")
    return Canary(enforce, verdict, said)


def _judged(generation: Generation, held: Constraint) -> tuple[Verdict, str]:
    if generation.fault is not None:
        refused = not generation.fault.retryable
        return ("refused" if refused else "unknown"), generation.fault.message
    reply = generation.reply or Reply(None)
    text = (reply.text or "").strip()
    if not text:
        return "unknown", "the reply had no text"
    if fulfils(text, held) or (held.kind == "json_object" and reply.finish_reason == "length" and text[0] == "{"):
        return "enforced", f"told to say banana, it replied {text[:80]!r}"
    if reply.finish_reason == "length":
        return "unknown", f"the reply was cut: {text[:80]!r}"
    return "ignored", f"it replied {text[:80]!r}"


def fulfils(text: str, held: Constraint) -> bool:
    """Whether a whole reply is what decoding was to be held to."""
    if held.kind == "grammar" and held.schema is None:
        return re.fullmatch(regex(held.grammar), text) is not None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if held.schema is None:
        return isinstance(value, dict)
    import jsonschema

    try:
        return bool(jsonschema.Draft202012Validator(held.schema).is_valid(value))
    except Exception:  # a schema of the user's own that the validator cannot take says nothing of the reply
        return True
