"""Study -> keyed requests, lazily."""

import hashlib
import itertools
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import catalogue
from auditor.plan import (
    Padding,
    Sampling,
    budgets,
    character_padding,
    no_padding,
    pairs,
    planned,
    requests,
    shots_of,
)
from auditor.records import (
    AnswerSpace,
    Arm,
    Constraint,
    Contract,
    ContractKind,
    Enforcement,
    Item,
    Message,
    Request,
    Task,
    Wrapper,
)

BOOLEAN = AnswerSpace("boolean")
FREE = Arm("none", "none", 24)
SAMPLING = Sampling(model="m", model_id="lab/model", arms=(FREE,), temperature=0.7, top_p=1.0, seeds=2)


def gold_reply(contract: Contract, value: str, space: AnswerSpace) -> str:
    return f"{contract.kind}: {value}"


def wrapper(name: str, content: str, contract: Contract = Contract("text")) -> Wrapper:  # noqa: B008
    turns = (Message("user", content),)
    return Wrapper(name, 1, "own", "", "", turns, contract, (), "", "\n\n", f"{name}.toml", "d")


def task(name: str, *questions: str, examples: tuple[Item, ...] = ()) -> Task:
    items = tuple(Item(f"{name}-{i}", question, BOOLEAN, "true") for i, question in enumerate(questions))
    return Task(name, items, examples)


SHORT = wrapper("short", "{{content}}\n{{pad}}\nGo.")
LONG = wrapper("long", "{{content}}\n{{pad}}\nTake your time.")
TASKS = (task("metals", "Is copper a metal?", "Is wood one?"), task("sums", "Is 2 + 2 = 4?"))


def plan(
    sampling: Sampling = SAMPLING,
    tasks: tuple[Task, ...] = TASKS,
    wrappers: tuple[Wrapper, ...] = (SHORT, LONG),
    padding: Padding = no_padding,
) -> Iterator[Request]:
    return requests(sampling, tasks, wrappers, padding, gold_reply)


def changed(**fields: object) -> Sampling:
    return msgspec.structs.replace(SAMPLING, **fields)


def first(sampling: Sampling = SAMPLING, wrappers: tuple[Wrapper, ...] = (SHORT,)) -> Request:
    return next(plan(sampling, wrappers=wrappers))


# What is planned -----------------------------------------------------------------------------------------------


def test_order_is_balanced() -> None:
    """All wrappers of an item stand together, tasks take turns, and seeds go outermost."""
    walked = [(r.seed, r.item, r.wrapper) for r in plan()]
    items = ["metals-0", "sums-0", "metals-1"]
    assert walked == [(seed, item, name) for seed in (0, 1) for item in items for name in ("short", "long")]


def test_a_request_says_everything() -> None:
    """A request carries its identity, its messages and every parameter of the study."""
    request = first(changed(stop=("\n",), extra_body={"provider": {"order": ["x"]}}))
    assert request.identity == ("m", "metals", "metals-0", "short", "none", 0)
    assert request.messages == (Message("user", "Is copper a metal?\n\nGo."),)
    assert (request.max_tokens, request.temperature, request.top_p) == (24, 0.7, 1.0)
    assert (request.stop, request.shots, request.api) == (("\n",), 0, "chat")
    assert request.extra_body == {"provider": {"order": ["x"]}}


def test_identities_are_unique() -> None:
    """No two requests of a plan are one generation."""
    identities = [request.identity for request in plan()]
    assert len(set(identities)) == len(identities)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.lists(st.sampled_from(["text", "json", "block", "fields", "final_line"]), max_size=4),
    st.lists(st.sampled_from(["none", "json_object", "json_schema", "grammar"]), unique=True),
    st.lists(st.integers(1, 300), min_size=1, max_size=3, unique=True),
    st.integers(1, 3),
)
def test_planned_is_the_length(
    sizes: list[int], kinds: list[ContractKind], enforced: list[Enforcement], limits: list[int], seeds: int
) -> None:
    """`planned` counts what `requests` gives, and no two of them are one generation."""
    tasks = tuple(task(f"t{i}", *["q?"] * size) for i, size in enumerate(sizes))
    named = tuple(wrapper(f"w{i}", "{{content}}", Contract(kind)) for i, kind in enumerate(kinds))
    arms = tuple(Arm(f"{enforce}@{limit}", enforce, limit) for enforce in enforced for limit in limits)
    found = list(plan(changed(seeds=seeds, arms=arms), tasks, named))
    assert planned(tasks, named, arms, seeds) == len(found) == len({request.identity for request in found})


def test_a_huge_plan_is_not_walked() -> None:
    """The first requests of a plan of a billion seeds cost three prompts, not the plan."""
    padded = []

    def pad(task: str, item: str, wrapper: Wrapper, length: int) -> str:
        padded.append(item)
        return ""

    sampling = changed(seeds=10**9)
    assert planned(TASKS, (SHORT, LONG), sampling.arms, sampling.seeds) == 6 * 10**9
    assert len(list(itertools.islice(plan(sampling, padding=pad), 3))) == 3
    assert len(padded) == 3


# Digests -------------------------------------------------------------------------------------------------------


def test_the_digest_is_golden() -> None:
    """Digests are SHA-256 over this JSON; another value would make every earlier run ask again."""
    messages = '[{"role":"user","content":"Is copper a metal?\\n\\nGo."}]'
    prompt = hashlib.sha256(messages.encode()).hexdigest()
    fixed = (
        '{"api":"chat","arm":"none","extra_body":{"a":{"b":2,"c":1},"z":null},"max_tokens":24,"shots":0,'
        '"stop":["\\n"],"temperature":0.7,"top_p":1.0}'
    )
    body = f'["lab/model","{prompt}",0,{fixed}]'
    request = first(changed(stop=("\n",), extra_body={"z": None, "a": {"c": 1, "b": 2}}))
    assert request.prompt == prompt
    assert request.digest == hashlib.sha256(body.encode()).hexdigest()
    assert request.digest == "cde33ce4b352ba385ca6c94cb4c48516dce55937cab1d1b79c52642545af1638"


def test_the_digest_is_stable() -> None:
    """The same plan gives the same requests, and a whole number is the same temperature as a float."""
    assert list(plan()) == list(plan())
    assert first(changed(temperature=1, top_p=1)).digest == first(changed(temperature=1.0)).digest


@pytest.mark.parametrize(
    "change",
    [
        {"model_id": "lab/other"},
        {"arms": (Arm("none", "none", 25),)},
        {"temperature": 0.0},
        {"top_p": 0.9},
        {"stop": ("\n",)},
        {"shots": 1},
        {"extra_body": {"provider": {"order": ["x"]}}},
    ],
)
def test_the_digest_follows_what_is_asked(change: dict[str, object]) -> None:
    """Everything a model is told is in the digest."""
    assert first(changed(**change)).digest != first().digest


def test_the_digest_follows_messages_and_seed() -> None:
    """Other words, other padding or another seed are another digest; the prompt's own is over the words alone."""
    by_seed = [request for request in plan(wrappers=(SHORT,)) if request.item == "metals-0"]
    assert by_seed[0].digest != by_seed[1].digest
    assert by_seed[0].prompt == by_seed[1].prompt
    assert first(wrappers=(LONG,)).digest != first().digest
    padded = next(plan(padding=lambda *_: " "))
    assert (padded.digest != first().digest, padded.prompt != first().prompt) == (True, True)


def test_the_digest_leaves_out_names() -> None:
    """An alias, the names of wrapper, task and item, and how many seeds there are do not change what is asked."""
    renamed = wrapper("renamed", SHORT.messages[0].content)
    assert first(changed(model="alias", seeds=9)).digest == first().digest
    assert first(wrappers=(renamed,)).digest == first().digest
    other = next(plan(tasks=(task("other", "Is copper a metal?"),), wrappers=(SHORT,)))
    assert other.digest == first().digest


# Arms ----------------------------------------------------------------------------------------------------------

JSON = wrapper("json", "{{content}} As JSON.", Contract("json"))
ARMS = (FREE, Arm("json_schema", "json_schema", 24), Arm("grammar", "grammar", 24))


def test_arms_of_an_item_stand_together() -> None:
    """A run that stops early has measured every wrapper in every arm on the same items."""
    walked = [(r.item, r.wrapper, r.arm) for r in plan(changed(arms=ARMS, seeds=1), wrappers=(SHORT, JSON))]
    of_one = [
        ("short", "none"),
        ("short", "grammar"),
        ("json", "none"),
        ("json", "json_schema"),
        ("json", "grammar"),
    ]
    assert walked == [(item, *pair) for item in ("metals-0", "sums-0", "metals-1") for pair in of_one]


@pytest.mark.parametrize("kind", ["text", "fields", "block", "final_line"])
@pytest.mark.parametrize("enforce", ["json_object", "json_schema"])
def test_json_is_enforced_only_where_it_is_asked_for(kind: ContractKind, enforce: Enforcement) -> None:
    """Another contract has no request in a JSON arm."""
    other = wrapper("other", "{{content}}", Contract(kind))
    arm = Arm(enforce, enforce, 24)
    assert [(w.name, a.name) for w, a in pairs((other, JSON), (FREE, arm))] == [
        ("other", "none"),
        ("json", "none"),
        ("json", enforce),
    ]
    assert {r.wrapper for r in plan(changed(arms=(arm,)), wrappers=(other, JSON))} == {"json"}


def test_the_prompt_is_the_same_in_all_arms() -> None:
    """Only what decoding is held to differs: words, padding and the prompt's digest do not."""
    padded = wrapper("json", "{{content}}\n{{pad}}\nAs JSON.", Contract("json"))
    arms = (*ARMS, Arm("json_object", "json_object", 24), Arm("none@256", "none", 256))
    padding = character_padding({("metals", ""): 60, ("sums", ""): 60}, per_item=False)
    found = [r for r in plan(changed(arms=arms, seeds=1), wrappers=(padded,), padding=padding) if r.item == "metals-0"]
    assert len(found) == 5
    assert len({(r.messages, r.prompt) for r in found}) == 1
    assert len({r.digest for r in found}) == 5
    assert [(r.max_tokens, r.constraint and r.constraint.kind) for r in found] == [
        (24, None),
        (24, "json_schema"),
        (24, "grammar"),
        (24, "json_object"),
        (256, None),
    ]


def test_an_enforced_request_hashes_its_constraint() -> None:
    """The body of an enforced arm is that of the free one with the arm and what it is held to."""
    request = next(plan(changed(arms=(Arm("json_object", "json_object", 24),)), wrappers=(JSON,)))
    fixed = (
        '{"api":"chat","arm":"json_object","constraint":"{\\"kind\\":\\"json_object\\",\\"schema\\":null,\\"grammar\\":[]}",'
        '"extra_body":{},"max_tokens":24,"shots":0,"stop":[],"temperature":0.7,"top_p":1.0}'
    )
    assert request.constraint == Constraint("json_object")
    assert request.digest == hashlib.sha256(f'["lab/model","{request.prompt}",0,{fixed}]'.encode()).hexdigest()


def test_the_digest_follows_the_constraint() -> None:
    """Another answer space under the same words is held to something else, and is another request."""
    choice = AnswerSpace("choice", ("A", "B"), ("x", "y"))
    label = AnswerSpace("label", ("A", "C"))
    first, second = (Task("t", (Item("i", "Which?", space, "A"),)) for space in (choice, label))
    arms = changed(arms=(Arm("grammar", "grammar", 24),))
    bare = wrapper("bare", "{{question}}")
    one, other = (next(plan(arms, (task,), (bare,))) for task in (first, second))
    assert one.prompt == other.prompt
    assert one.digest != other.digest


def test_the_digest_leaves_out_the_name_of_the_arm() -> None:
    """`none` at 24 tokens alone and `none@24` beside `none@256` are the same request, and differ in their arm."""
    alone = next(plan(changed(arms=(Arm("grammar", "grammar", 24),))))
    several = changed(arms=(Arm("grammar@24", "grammar", 24), Arm("grammar@256", "grammar", 256)))
    beside = list(itertools.islice(plan(several), 2))
    assert alone.digest == beside[0].digest != beside[1].digest
    assert (alone.arm, beside[0].arm, beside[1].arm) == ("grammar", "grammar@24", "grammar@256")


# Shots ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.sampled_from("abcdef"), st.integers(0, 6))
def test_shots_never_show_the_item_itself(ids: list[str], asked: str, shots: int) -> None:
    """The examples of an item are the task's first that are neither it nor its question under another id, at most as
    many as asked for."""
    examples = tuple(Item(id_, f"{id_}?", BOOLEAN, "true") for id_ in ids)
    again = Item("another id", f"{asked}?", BOOLEAN, "true")
    found = shots_of(Task("t", (), (again, *examples)), Item(asked, f"{asked}?", BOOLEAN), shots)
    others = [id_ for id_ in ids if id_ != asked]
    assert [example.id for example in found] == others[:shots]


def test_shots_are_in_the_prompt() -> None:
    """With shots the task's own examples stand before the question, each with its gold reply."""
    shown = (Item("e0", "Is tin a metal?", BOOLEAN, "true"), Item("e1", "Is air one?", BOOLEAN, "false"))
    tasks = (task("metals", "Is copper a metal?", examples=shown),)
    request = next(plan(changed(shots=2), tasks, (SHORT,)))
    assert request.messages[0].content == (
        "Is tin a metal?\ntext: true\n\nIs air one?\ntext: false\n\nIs copper a metal?\n\nGo."
    )
    assert request.shots == 2


# Padding -------------------------------------------------------------------------------------------------------

FSI = catalogue.wrappers(["all"])
PADDED = (
    task("metals", "Is copper a metal?", "Is it true that tin, of all things, is a metal?", "Metal?"),
    task("sums", "2 + 2 = 4?", "2 + 2 = 5?"),
)


def lengths(padding: Padding, shots: int = 0) -> dict[tuple[str, str], set[int]]:
    """(task, item) -> the lengths of its prompts over wrappers and seeds."""
    found: dict[tuple[str, str], set[int]] = {}
    for request in plan(changed(shots=shots), PADDED, FSI, padding):
        size = sum(len(message.content) for message in request.messages)
        found.setdefault((request.task, request.item), set()).add(size)
    return found


def test_budgets_are_the_longest_unpadded_prompts() -> None:
    """An item's budget is its longest prompt over wrappers, a task's the longest over its items."""
    found = budgets(TASKS, (SHORT, LONG), 0, gold_reply)
    metals, wood, sums = (
        len(f"{q}\n\nTake your time.") for q in ("Is copper a metal?", "Is wood one?", "Is 2 + 2 = 4?")
    )
    assert found == {
        ("metals", "metals-0"): metals,
        ("metals", "metals-1"): wood,
        ("metals", ""): metals,
        ("sums", "sums-0"): sums,
        ("sums", ""): sums,
    }


def test_chars_makes_all_prompts_of_a_task_equal() -> None:
    """`--pad chars`: every prompt of a task has as many characters as its longest, and tasks differ."""
    fixed = budgets(PADDED, FSI, 0, gold_reply)
    found = lengths(character_padding(fixed, per_item=False))
    assert {key: {fixed[key[0], ""]} for key in found} == found
    assert fixed["metals", ""] != fixed["sums", ""]


def test_item_makes_all_prompts_of_an_item_equal() -> None:
    """`--pad item`: the prompts of one item are equally long, those of another item are not."""
    fixed = budgets(PADDED, FSI, 0, gold_reply)
    found = lengths(character_padding(fixed, per_item=True))
    assert {key: {fixed[key]} for key in found} == found
    assert fixed["metals", "metals-0"] != fixed["metals", "metals-1"]


def test_padding_counts_worked_examples() -> None:
    """Budgets are over prompts with their shots, so that few-shot prompts are equally long too."""
    shown = (Item("metals-0", "Is copper a metal?", BOOLEAN, "true"), Item("e1", "Tin?", BOOLEAN, "true"))
    tasks = (task("metals", "Is copper a metal?", "Metal?", examples=shown),)
    padding = character_padding(budgets(tasks, FSI, 1, gold_reply), per_item=False)
    sizes = {len(r.messages[0].content) for r in plan(changed(shots=1), tasks, FSI, padding)}
    assert len(sizes) == 1


def test_none_pads_nothing() -> None:
    """`--pad none`: prompts keep the lengths that their wrappers give them."""
    found = lengths(no_padding)
    assert all(len(sizes) > 1 for sizes in found.values())
    (request,) = itertools.islice(plan(), 1)
    assert request.messages[0].content == "Is copper a metal?\n\nGo."


def test_padding_is_white_space_in_the_slot() -> None:
    """What is added is white space in the wrapper's slot, and the text around it stays."""
    padding = character_padding({("metals", ""): 30, ("sums", ""): 30}, per_item=False)
    request = next(plan(padding=padding))
    assert request.messages[0].content == "Is copper a metal?\n" + "   \n   " + "\nGo."


def test_a_prompt_over_its_budget_is_left_alone() -> None:
    """A prompt that is longer than the budget of an earlier plan is sent as it is, not cut."""
    padding = character_padding({("metals", ""): 3, ("sums", ""): 3}, per_item=False)
    assert next(plan(padding=padding)).messages == first().messages


def test_a_wrapper_without_a_slot_is_not_padded() -> None:
    """Where a wrapper has no slot nothing is added, and no padding is worked out."""
    bare = wrapper("bare", "{{content}}")
    request = next(plan(wrappers=(bare,), padding=unasked))
    assert request.messages == (Message("user", "Is copper a metal?"),)


def unasked(task: str, item: str, wrapper: Wrapper, length: int) -> str:
    raise AssertionError(f"{wrapper.name} has no slot")
