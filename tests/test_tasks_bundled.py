"""The bundled tasks: their bytes, their balance, and that their answers are right."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import msgspec
import pytest

from auditor.errors import UsageError
from auditor.parsing import canonical
from auditor.records import AnswerSpace, Item, Task
from auditor.tasks.bundled import BUNDLED, bundled_task
from auditor.tasks.words import CATEGORIES, KEYS, LABELS, article


def task_of(name: str, seed: int = 0) -> Task:
    return bundled_task(name, seed, canonical)


def everything(task: Task) -> list[Item]:
    return [*task.items, *task.examples]


def asked(item: Item) -> tuple[object, ...]:
    """What a reader sees, whatever the order of the options."""
    return (item.question, frozenset(item.space.texts), item.parts)


GOLDEN: dict[str, tuple[Item, str]] = {
    "categories": (
        Item(
            "categories-0001",
            "Which of these is a piece of clothing?",
            AnswerSpace("choice", ("A", "B", "C", "D"), ("cat", "bus", "scarf", "violin")),
            "C",
            "piece of clothing",
        ),
        "c49affca2bd66c17f754c3d421b4508829cbe107bb7089b95fea6766651ef427",
    ),
    "comparisons": (
        Item("comparisons-0001", "Is 54 less than 49?", AnswerSpace("boolean"), "false", "numbers"),
        "4daf5ec08be086b74bc59c1b365ec56d053f79185791ef4863075317a5f736c7",
    ),
    "arithmetic": (
        Item(
            "arithmetic-0001",
            "David buys 6 red shells and 6 blue shells. How many shells is that in total?",
            AnswerSpace("number"),
            "12",
            "plus",
        ),
        "d0ad86e89c4d236f82e4af69a6877874f8c6f6ad7a0fd9913e24949f48adc9f1",
    ),
    "groups": (
        Item(
            "groups-0001",
            "Laura talks about a dog. Which group does a dog belong to?"
            "\n- animal\n- fruit\n- vehicle\n- instrument\n- tool",
            AnswerSpace("label", ("animal", "fruit", "vehicle", "instrument", "tool")),
            "animal",
            "animal",
        ),
        "244dd9aaeb868787574564895225f696ac0b80129a359c7ac2a9ac25db3ca367",
    ),
    "lookup": (
        Item(
            "lookup-0001",
            "What is the value of button?",
            AnswerSpace("number"),
            "906",
            "position 3",
            parts=("orchard: 608", "pillow: 956", "button: 906", "mirror: 272", "tunnel: 242"),
        ),
        "2121837e8e25993900d3e5a1f1b2d0d36d70940cc934e634be02cdca2aa069b2",
    ),
}


@pytest.mark.parametrize("name", BUNDLED)
def test_golden_bytes(name: str) -> None:
    """Seed 0 gives these items on every version of Python; a new hash means that published numbers can change."""
    task = task_of(name)
    first, digest = GOLDEN[name]
    assert task.items[0] == first
    assert hashlib.sha256(msgspec.json.encode(task)).hexdigest() == digest


@pytest.mark.parametrize("name", BUNDLED)
def test_a_function_of_the_seed(name: str) -> None:
    """Equal seeds give equal tasks, other seeds other questions."""
    assert task_of(name, 1) == task_of(name, 1)
    assert task_of(name, 1).items != task_of(name, 2).items


@pytest.mark.parametrize("name", BUNDLED)
def test_size_and_ids(name: str) -> None:
    """400 items and 10 examples, each with an id of its own that tells the task."""
    task = task_of(name)
    assert (len(task.items), len(task.examples)) == (400, 10)
    assert [item.id for item in task.items] == [f"{name}-{number:04}" for number in range(1, 401)]
    assert len({item.id for item in everything(task)}) == 410


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("seed", range(5))
def test_no_question_twice(name: str, seed: int) -> None:
    """No item is asked twice, and no worked example is an item."""
    items = everything(task_of(name, seed))
    assert len({asked(item) for item in items}) == len(items)


@pytest.mark.parametrize("name", BUNDLED)
def test_gold_is_canonical(name: str) -> None:
    """Each answer is in its item's space, in its canonical form."""
    assert all(item.gold and canonical(item.gold, item.space) == item.gold for item in everything(task_of(name)))


def test_gold_that_is_not_canonical() -> None:
    """A task whose own answer cannot be read is a defect, found when the task is made."""
    with pytest.raises(ValueError, match=r"groups-0001: '\w+' is not a canonical label"):
        bundled_task("groups", 0, lambda text, space: None)


def test_unknown_name() -> None:
    """A name that is not bundled comes with the nearest ones."""
    with pytest.raises(UsageError, match="unknown task 'group'"):
        task_of("group")


@pytest.mark.parametrize(
    ("name", "golds"),
    [("categories", 4), ("comparisons", 2), ("groups", len(LABELS))],
)
@pytest.mark.parametrize("first", [60, 200, 400])
def test_balance(name: str, golds: int, first: int) -> None:
    """Letters, truth values and labels are equally frequent as gold, in any prefix to within one deal."""
    counts = Counter(item.gold for item in task_of(name).items[:first])
    assert len(counts) == golds
    assert max(counts.values()) - min(counts.values()) <= 2


def test_balance_within_kinds() -> None:
    """True and false are as frequent among comparisons of numbers as among those of words."""
    counts = Counter((item.group, item.gold) for item in task_of("comparisons").items)
    assert set(counts.values()) == {100}


def test_places_are_balanced() -> None:
    """Lookup asks for every place in the list equally often."""
    counts = Counter(item.group for item in task_of("lookup").items)
    assert counts == {f"position {place}": 80 for place in range(1, 6)}


# The answers are right -----------------------------------------------------------------------------------------


def test_categories_have_one_answer() -> None:
    """Exactly one option belongs to the category asked for, and it is the gold."""
    for item in everything(task_of("categories")):
        category = re.fullmatch(r"Which of these is an? (.+)\?", item.question)
        assert category
        right = [
            label
            for label, text in zip(item.space.labels, item.space.texts, strict=True)
            if text in CATEGORIES[category[1]]
        ]
        assert right == [item.gold]


def test_comparisons_are_right() -> None:
    """The truth of each comparison, worked out from its words."""
    for item in everything(task_of("comparisons")):
        if numbers := re.fullmatch(r"Is (\d+) (greater|less) than (\d+)\?", item.question):
            first, second = int(numbers[1]), int(numbers[3])
            truth = first > second if numbers[2] == "greater" else first < second
            assert first != second
        else:
            words = re.fullmatch(r"Is an? ([a-z]+) an? ([a-z ]+)\?", item.question)
            assert words
            truth = words[1] in CATEGORIES[words[2]]
        assert item.gold == str(truth).lower()


def test_arithmetic_is_right() -> None:
    """The sum or difference of each story, worked out from its words."""
    for item in everything(task_of("arithmetic")):
        first, second = map(int, re.findall(r"\d+", item.question))
        assert item.gold == str(first + second if "in total" in item.question else first - second)


def test_groups_are_right() -> None:
    """The label of each word is the one whose list it stands in, out of the same five for every item."""
    for item in everything(task_of("groups")):
        thing = re.match(r"\w+ talks about (an? (\w+))\. Which group does \1 belong to\?\n- animal\n", item.question)
        assert thing
        assert item.space == AnswerSpace("label", tuple(LABELS))
        assert [label for label, category in LABELS.items() if thing[2] in CATEGORIES[category]] == [item.gold]


def test_lookup_is_right_and_not_guessable() -> None:
    """The value stands beside its key in the parts and nowhere in the question; keys and values do not repeat."""
    for item in everything(task_of("lookup")):
        pairs = dict(part.split(": ") for part in item.parts)
        key = re.fullmatch(r"What is the value of (\w+)\?", item.question)
        assert key
        assert pairs[key[1]] == item.gold
        assert len(pairs) == len(set(pairs.values())) == 5
        assert not re.search(r"\d", item.question)


def test_word_lists() -> None:
    """No word stands twice, no key contains another, and articles fit."""
    words = [word for members in CATEGORIES.values() for word in members]
    assert len(set(words)) == len(words)
    assert not [(a, b) for a in KEYS for b in KEYS if a != b and a in b]
    assert (article("apple"), article("dog")) == ("an apple", "a dog")
