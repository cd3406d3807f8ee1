"""Five procedural tasks that need no download and carry no licence, each a pure function of a seed.

Only `Random.random` is used, whose sequence Python promises to keep for a seed; `choice`, `shuffle` and `sample` may
change between versions. What makes up the balance (the correct letter, true or false, the group) comes from a deck
that is dealt to the end before it is shuffled again, so every prefix of a task is balanced as well as it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from auditor.errors import unknown
from auditor.records import AnswerSpace, Item, Task
from auditor.tasks.choices import Canonical
from auditor.tasks.words import CATEGORIES, KEYS, LABELS, PEOPLE, THINGS, article

T = TypeVar("T")

ITEMS = 400
EXAMPLES = 10
PAIRS = 5

BOOLEAN = AnswerSpace("boolean")
NUMBER = AnswerSpace("number")
GROUP = AnswerSpace("label", tuple(LABELS))


class Draft(NamedTuple):
    """An item before it has an id; `answer` is not canonical yet."""

    question: str
    space: AnswerSpace
    answer: str
    group: str
    parts: tuple[str, ...] = ()


BUNDLED: dict[str, str] = {
    "categories": "choice: which of four words is an animal, a fruit, a tool, ...",
    "comparisons": "boolean: is one number greater than another, is a dog an animal",
    "arithmetic": "number: small sums and differences in words",
    "groups": "label: which of five groups a thing belongs to",
    "lookup": f"number: {PAIRS} key-value pairs, joined by the wrapper's separator, and one key asked",
}


def bundled_task(name: str, seed: int, canonical: Canonical) -> Task:
    """The bundled task `name`: 400 items and 10 examples, no two of them alike; equal seeds give equal bytes.

    Raises UsageError for a name that is not in `BUNDLED`.
    """
    if name not in BUNDLED:
        raise unknown("task", name, BUNDLED)
    drafts = distinct(Random(f"{name}:{seed}"), *RECIPES[name])
    items = tuple(finished(f"{name}-{number:04}", next(drafts), canonical) for number in range(1, ITEMS + 1))
    examples = tuple(finished(f"{name}-example-{n:02}", next(drafts), canonical) for n in range(1, EXAMPLES + 1))
    return Task(name, items, examples, source=f"bundled, seed {seed}")


def finished(identity: str, draft: Draft, canonical: Canonical) -> Item:
    """The draft as an item with canonical gold."""
    gold = canonical(draft.answer, draft.space)
    if gold is None:
        raise ValueError(f"{identity}: {draft.answer!r} is not a canonical {draft.space.type}")
    return Item(identity, draft.question, draft.space, gold, group=draft.group, parts=draft.parts)


def distinct(rng: Random, cards: Sequence[Any], make: Callable[[Random, Any], Draft]) -> Iterator[Draft]:
    """A draft per card dealt. One that asks what was asked before, be it with the options in another order, is made
    again from the same card, so that the balance stays."""
    seen = set()
    for card in deal(rng, cards):
        while (asked := question_of(draft := make(rng, card))) in seen:
            pass
        seen.add(asked)
        yield draft


def question_of(draft: Draft) -> tuple[object, ...]:
    """What tells a question from another."""
    return draft.question, frozenset(draft.space.texts), draft.parts


# Drawing -------------------------------------------------------------------------------------------------------


def below(rng: Random, n: int) -> int:
    """An integer in 0..n-1."""
    return int(rng.random() * n)


def pick(rng: Random, values: Sequence[T]) -> T:
    """One of the values."""
    return values[below(rng, len(values))]


def draw(rng: Random, values: Sequence[T], count: int) -> list[T]:
    """`count` of the values without replacement, in random order."""
    rest = list(values)
    return [rest.pop(below(rng, len(rest))) for _ in range(count)]


def deal(rng: Random, cards: Sequence[T]) -> Iterator[T]:
    """The cards in random order, without end: each comes once before any comes again."""
    while True:
        yield from draw(rng, cards, len(cards))


# The tasks -----------------------------------------------------------------------------------------------------


def category(rng: Random, position: int) -> Draft:
    """Four words of four categories; the question names the category of the word at `position`."""
    wanted, *others = draw(rng, tuple(CATEGORIES), 4)
    words = [pick(rng, CATEGORIES[other]) for other in others]
    words.insert(position, pick(rng, CATEGORIES[wanted]))
    space = AnswerSpace("choice", tuple("ABCD"), tuple(words))
    return Draft(f"Which of these is {article(wanted)}?", space, "ABCD"[position], wanted)


def comparison(rng: Random, card: tuple[str, bool]) -> Draft:
    """A question about two numbers, or about a word and a category, with the answer of the card."""
    kind, truth = card
    question = number_question(rng, truth) if kind == "numbers" else word_question(rng, truth)
    return Draft(question, BOOLEAN, "true" if truth else "false", kind)


def number_question(rng: Random, truth: bool) -> str:
    """`Is 7 greater than 3?`"""
    low, high = sorted(draw(rng, range(100), 2))
    relation = pick(rng, ("greater", "less"))
    first, second = (high, low) if (relation == "greater") == truth else (low, high)
    return f"Is {first} {relation} than {second}?"


def word_question(rng: Random, truth: bool) -> str:
    """`Is a dog an animal?`"""
    own, other = draw(rng, tuple(CATEGORIES), 2)
    return f"Is {article(pick(rng, CATEGORIES[own]))} {article(own if truth else other)}?"


def calculation(rng: Random, operation: str) -> Draft:
    """A sum or difference up to twelve, told as a small story."""
    person, thing = pick(rng, PEOPLE), pick(rng, THINGS)
    rest, change = 2 + below(rng, 5), 2 + below(rng, 5)
    if operation == "plus":
        story = f"{person} buys {rest} red {thing} and {change} blue {thing}. How many {thing} is that in total?"
        return Draft(story, NUMBER, str(rest + change), operation)
    story = f"{person} has {rest + change} {thing} and loses {change} of them. How many {thing} are left?"
    return Draft(story, NUMBER, str(rest), operation)


def grouped(rng: Random, label: str) -> Draft:
    """A thing someone talks about, and the five groups it may belong to."""
    thing = article(pick(rng, CATEGORIES[LABELS[label]]))
    groups = "".join(f"\n- {name}" for name in LABELS)
    question = f"{pick(rng, PEOPLE)} talks about {thing}. Which group does {thing} belong to?{groups}"
    return Draft(question, GROUP, label, label)


def pairs(rng: Random, position: int) -> Draft:
    """Pairs of a word and a three-digit number, and a question about the pair at `position`."""
    keys = draw(rng, KEYS, PAIRS)
    values = draw(rng, range(100, 1000), PAIRS)
    parts = tuple(f"{key}: {value}" for key, value in zip(keys, values, strict=True))
    return Draft(
        f"What is the value of {keys[position]}?", NUMBER, str(values[position]), f"position {position + 1}", parts
    )


RECIPES: dict[str, tuple[Sequence[Any], Callable[[Random, Any], Draft]]] = {
    "categories": (range(4), category),
    "comparisons": ([(kind, truth) for kind in ("numbers", "words") for truth in (True, False)], comparison),
    "arithmetic": (("plus", "minus"), calculation),
    "groups": (tuple(LABELS), grouped),
    "lookup": (range(PAIRS), pairs),
}
"""Name -> what is to be balanced, and how an item with it is made."""
