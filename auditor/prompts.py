"""Item x wrapper -> messages. Placeholders are replaced in one pass, so inserted text is never scanned again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from auditor.catalogue import PLACEHOLDER, placeholders
from auditor.records import AnswerSpace, Contract, Item, Message, Wrapper

GoldReply = Callable[[Contract, str, AnswerSpace], str]
"""The shortest reply that fulfils a contract with a value."""

_FILLER = "   \n"


TRIED_PADDING, TRIED_TOKENS = 400, 5
"""How much padding preflight tries, and what so much costs at least where it is not trimmed away."""


def filler(characters: int) -> str:
    """White space of so many characters, for a slot under `--pad chars` and `item`.

    Lines of three spaces cost about one token for four characters, as words do; a run of spaces alone costs next to
    none, and prompts of equal length would not be prompts of equal cost.
    """
    return (_FILLER * (characters // len(_FILLER) + 1))[:characters]


def render(wrapper: Wrapper, item: Item, shots: Sequence[Item], gold_reply: GoldReply, pad: str) -> tuple[Message, ...]:
    """The messages of one prompt. `shots` are worked examples, `pad` what goes into the wrapper's slot.

    Without an `{{examples}}` placeholder the worked examples stand before the last user turn.
    """
    values = {**item.columns, **_values(wrapper, item), "pad": pad}
    values["examples"] = wrapper.separator.join(_example(wrapper, shot, gold_reply) for shot in shots)
    messages = [Message(role=turn.role, content=fill(turn.content, values)) for turn in wrapper.messages]
    if shots and not _asks(wrapper, "examples"):
        last = messages.pop()
        messages.append(Message(role=last.role, content=values["examples"] + wrapper.separator + last.content))
    return tuple(messages)


def fill(template: str, values: dict[str, str]) -> str:
    """Replace each {{name}} that `values` has, once; `\\{{` becomes `{{`."""
    return PLACEHOLDER.sub(lambda match: "{{" if match[1] is None else values.get(match[1], match[0]), template)


def content(item: Item, separator: str) -> str:
    """An item as every wrapper shows it: its parts, the question, its lettered choices."""
    blocks = [separator.join(item.parts)] if item.parts else []
    blocks.append(item.question)
    return "\n".join(blocks + _choice_lines(item))


def answer_hint(space: AnswerSpace) -> str:
    """What an answer can be, in words that fit after `is` or `:`."""
    match space.type:
        case "choice" | "label" if space.labels:
            return f"one of {', '.join(space.labels)}"
        case "boolean":
            return "true or false"
        case "number":
            return "a number"
        case "json":
            return "an object that fits the schema"
        case _:
            return "the answer"


def characters(messages: Sequence[Message]) -> int:
    """The length of a prompt under `--pad chars`: characters over all its messages."""
    return sum(len(message.content) for message in messages)


def has_slot(wrapper: Wrapper) -> bool:
    """Whether a wrapper says where its padding goes."""
    return _asks(wrapper, "pad")


def _asks(wrapper: Wrapper, name: str) -> bool:
    return any(name in placeholders(turn.content) for turn in wrapper.messages)


def _values(wrapper: Wrapper, item: Item) -> dict[str, str]:
    return {
        "content": content(item, wrapper.separator),
        "question": item.question,
        "choices": "\n".join(_choice_lines(item)),
        "separator": wrapper.separator,
        "answer_hint": answer_hint(item.space),
        "schema": json.dumps(wrapper.contract.schema) if wrapper.contract.schema is not None else "",
    }


def _choice_lines(item: Item) -> list[str]:
    return [f"{label}. {text}" for label, text in zip(item.space.labels, item.space.texts, strict=False)]


def _example(wrapper: Wrapper, shot: Item, gold_reply: GoldReply) -> str:
    gold = gold_reply(wrapper.contract, shot.gold or "", shot.space)
    template = wrapper.example or "{{content}}\n{{reply}}"
    return fill(template, {**shot.columns, **_values(wrapper, shot), "reply": gold, "pad": "", "examples": ""})
