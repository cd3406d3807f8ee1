"""Study -> keyed requests, lazily. Pure: padding and limits come in resolved."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from auditor.constraints import applies, constraint
from auditor.prompts import GoldReply, characters, filler, has_slot, render
from auditor.records import Arm, Item, Message, Request, Task, Wrapper

Padding = Callable[[str, str, Wrapper, int], str]
"""(task, item, wrapper, characters of the unpadded prompt) -> what goes into the slot."""

_ENCODER = msgspec.json.Encoder(order="deterministic")


class Sampling(Struct, frozen=True):
    """What every request of a model has in common. `model_id` is what the endpoint calls the model."""

    model: str
    model_id: str
    arms: tuple[Arm, ...]
    temperature: float
    top_p: float
    seeds: int
    shots: int = 0
    stop: tuple[str, ...] = ()
    extra_body: dict[str, Any] = {}


def requests(
    sampling: Sampling,
    tasks: Sequence[Task],
    wrappers: Sequence[Wrapper],
    padding: Padding,
    gold_reply: GoldReply,
) -> Iterator[Request]:
    """Every generation of one model. All wrappers and arms of an item stand together and seeds go outermost, so that
    a run that stops early has measured all of them on the same items."""
    most = max((len(task.items) for task in tasks), default=0)
    for seed in range(sampling.seeds):
        for index in range(most):
            for task in tasks:
                if index < len(task.items):
                    for wrapper in wrappers:
                        yield from _requests(sampling, task, task.items[index], wrapper, seed, padding, gold_reply)


def planned(tasks: Sequence[Task], wrappers: Sequence[Wrapper], arms: Sequence[Arm], seeds: int) -> int:
    """How many generations one model is asked for."""
    return sum(len(task.items) for task in tasks) * len(pairs(wrappers, arms)) * seeds


def pairs(wrappers: Sequence[Wrapper], arms: Sequence[Arm]) -> list[tuple[Wrapper, Arm]]:
    """Which wrappers each arm has: JSON is enforced only where it is asked for."""
    return [(wrapper, arm) for arm in arms for wrapper in wrappers if applies(arm.enforce, wrapper.contract)]


def shots_of(task: Task, item: Item, shots: int) -> tuple[Item, ...]:
    """The worked examples an item is shown: never the item itself, nor its question under another id."""
    own = (item.question, item.space)
    others = (one for one in task.examples if one.id != item.id and (one.question, one.space) != own)
    return tuple(itertools.islice(others, shots))


def budgets(
    tasks: Sequence[Task], wrappers: Sequence[Wrapper], shots: int, gold_reply: GoldReply
) -> dict[tuple[str, str], int]:
    """(task, item) -> characters of its longest unpadded prompt over wrappers; (task, "") the longest over items."""
    found: dict[tuple[str, str], int] = {}
    for task in tasks:
        for item in task.items:
            examples = shots_of(task, item, shots)
            longest = max(characters(render(wrapper, item, examples, gold_reply, "")) for wrapper in wrappers)
            found[task.name, item.id] = longest
            found[task.name, ""] = max(longest, found.get((task.name, ""), 0))
    return found


def character_padding(budgets: Mapping[tuple[str, str], int], per_item: bool) -> Padding:
    """White space up to the task's budget (`--pad chars`, the FSI paper's protocol) or the item's (`--pad item`)."""

    def pad(task: str, item: str, wrapper: Wrapper, length: int) -> str:
        return filler(max(0, budgets[task, item if per_item else ""] - length))

    return pad


def no_padding(task: str, item: str, wrapper: Wrapper, length: int) -> str:
    """`--pad none`."""
    return ""


def _requests(
    sampling: Sampling,
    task: Task,
    item: Item,
    wrapper: Wrapper,
    seed: int,
    padding: Padding,
    gold_reply: GoldReply,
) -> Iterator[Request]:
    """One item under one wrapper in every arm: the prompt is the same in all of them."""
    shots = shots_of(task, item, sampling.shots)
    messages = render(wrapper, item, shots, gold_reply, "")
    if has_slot(wrapper):
        pad = padding(task.name, item.id, wrapper, characters(messages))
        messages = render(wrapper, item, shots, gold_reply, pad)
    prompt = _digest(messages)
    for arm in sampling.arms:
        if not applies(arm.enforce, wrapper.contract):
            continue
        held = constraint(arm.enforce, wrapper.contract, item.space)
        fixed = _fixed(sampling, arm)
        if held is not None:  # the order of a schema's properties is the order in which they are written
            fixed["constraint"] = msgspec.json.encode(held).decode()
        yield Request(
            model=sampling.model,
            task=task.name,
            item=item.id,
            wrapper=wrapper.name,
            arm=arm.name,
            seed=seed,
            digest=_digest((sampling.model_id, prompt, seed, fixed)),
            prompt=prompt,
            messages=messages,
            max_tokens=arm.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            stop=sampling.stop,
            shots=sampling.shots,
            extra_body=sampling.extra_body,
            constraint=held,
        )


def _fixed(sampling: Sampling, arm: Arm) -> dict[str, Any]:
    return {
        "api": "chat",
        "stop": sampling.stop,
        "max_tokens": arm.max_tokens,
        "temperature": float(sampling.temperature),
        "top_p": float(sampling.top_p),
        "arm": arm.enforce,
        "shots": sampling.shots,
        "extra_body": sampling.extra_body,
    }


def _digest(told: tuple[Message, ...] | tuple[object, ...]) -> str:
    return hashlib.sha256(_ENCODER.encode(told)).hexdigest()
