"""Study -> everything it names, found, read and checked before anything is written or spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from auditor import catalogue, plan, reading, tasks
from auditor.constraints import applies
from auditor.errors import UsageError
from auditor.figures import Check
from auditor.parsing import Reader, canonical, gold_reply
from auditor.prompts import TRIED_PADDING, TRIED_TOKENS, filler, has_slot, render
from auditor.records import Item, Message, Parser, Reply, Task, Wrapper
from auditor.study import Study, TaskOptions

_SPARE = 8
"""Worked examples beyond those shown: an item is never shown its own question."""
_SHORTEST_LIMIT = 64
_ANSWER_ROOM = 32
_SCRATCHPAD_ROOM = 64
"""What `--max-tokens auto` leaves beyond the longest valid reply: for prose around it, and for reasoning before it."""


class Tokenizer(Protocol):
    """The endpoint's own tokenizer."""

    def context(self) -> int | None:
        """Tokens of a prompt and its reply together, at most."""

    def count(self, text: str) -> int:
        """Tokens of a text."""

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation as the model sees it."""


class Prepared(Struct, frozen=True):
    """What a study names. `pools` are whole tasks, `tasks` the items drawn from them (and examples for shots)."""

    study: Study
    pools: tuple[Task, ...]
    tasks: tuple[Task, ...]
    wrappers: tuple[Wrapper, ...]
    readers: tuple[tuple[Parser, Reader], ...]


def prepare(study: Study, commits: Mapping[str, str] = {}) -> Prepared:
    """Find and check everything. `commits` are those that an earlier part of the run read sets of the hub at, by task:
    they are read there again. Raises UsageError, FileError."""
    pools = tuple(_task(study, f"{name}@{commits[name]}" if name in commits else name) for name in study.tasks)
    names = [task.name for task in pools]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"two tasks are called {sorted(twice)[0]!r}", "a task file is called by its stem: rename one")
    wrappers = catalogue.wrappers(study.wrappers, _columns(pools))
    if study.pad != "none":
        _check_slots(wrappers)
    for enforce in study.enforce:
        if not any(applies(enforce, wrapper.contract) for wrapper in wrappers):
            raise UsageError(f"--enforce {enforce}: none of the wrappers asks for JSON", "name one that does: json")
    return Prepared(
        study, pools, tuple(_sampled(study, task) for task in pools), wrappers, reading.readers(study.parsers)
    )


def preflight(prepared: Prepared, limits: Sequence[int], tokenizers: Mapping[str, Tokenizer]) -> list[Check]:
    """What would spoil the run: a parser that cannot read a wrapper's own gold reply, a limit that cuts a valid one,
    padding that a chat template trims away."""
    checks = [
        _readable(prepared, wrapper, parser, reader)
        for wrapper in prepared.wrappers
        for parser, reader in prepared.readers
    ]
    for model, tokenizer in tokenizers.items():
        for limit in limits:
            checks += [_fits(prepared, wrapper, model, limit, tokenizer) for wrapper in prepared.wrappers]
        checks.append(_has_room(prepared, model, max(limits), tokenizer))
        if prepared.study.pad != "none":
            checks += [_survives(prepared, wrapper, model, tokenizer) for wrapper in prepared.wrappers]
    study = prepared.study
    if study.temperature == 0 and study.seeds > 1:
        message = (
            f"{study.seeds} seeds at temperature 0 mostly repeat each other: they measure the server, not the model"
        )
        checks.append(Check("seeds", "warning", message))
    return checks


def sufficient_limit(prepared: Prepared, tokenizers: Mapping[str, Tokenizer]) -> int:
    """`--max-tokens auto`: the longest valid reply with room around it; 64 where no tokenizer can be asked."""
    room = _SCRATCHPAD_ROOM if any(w.contract.kind == "final_line" for w in prepared.wrappers) else _ANSWER_ROOM
    longest = [
        _longest_gold(prepared, wrapper, tokenizer)[0]
        for tokenizer in tokenizers.values()
        for wrapper in prepared.wrappers
    ]
    return max(_SHORTEST_LIMIT, max(longest) + room) if longest else _SHORTEST_LIMIT


class GuessedTokens:
    """Where no tokenizer can be asked: two characters a token, which is many."""

    def context(self) -> int | None:
        """Nobody says it."""
        return None

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return len(text) // 2 + 1

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of a conversation."""
        return sum(self.count(message.content) for message in messages)


def guessed_padding(
    prepared: Prepared, fixed: Mapping[tuple[str, str], int]
) -> tuple[plan.Padding, dict[tuple[str, str], int]]:
    """`padding` and every budget for a plan that asks nobody: token padding is not padded."""
    if prepared.study.pad == "tokens":
        return plan.no_padding, {}
    how, new = padding(prepared, fixed, None)
    return how, {**new, **fixed}


def padding(
    prepared: Prepared, fixed: Mapping[tuple[str, str], int], tokenizer: Tokenizer | None
) -> tuple[plan.Padding, dict[tuple[str, str], int]]:
    """How prompts are padded, and the new character budgets: those of an earlier plan stay. Raises UsageError."""
    study = prepared.study
    if study.pad == "none":
        return plan.no_padding, {}
    if study.pad == "tokens":
        if tokenizer is None:
            raise UsageError(
                "--pad tokens needs the endpoint's tokenizer",
                "local, llamacpp and vllm have one; else --pad chars",
            )
        return _token_padding(prepared, tokenizer), {}
    per_item = study.pad == "item"
    found = plan.budgets(prepared.tasks if per_item else prepared.pools, prepared.wrappers, study.shots, gold_reply)
    new = {key: size for key, size in found.items() if bool(key[1]) == per_item and key not in fixed}
    return plan.character_padding({**found, **new, **fixed}, per_item), new


# Tasks and wrappers --------------------------------------------------------------------------------------------


def _task(study: Study, name: str) -> Task:
    options = (
        study.task_options.get(name.partition("@")[0])
        or study.task_options.get(name)
        or study.task_options.get("*")
        or TaskOptions()
    )
    return tasks.load_task(name, study.seed, options.columns, canonical, options.answer_type, study.shots)


def _sampled(study: Study, task: Task) -> Task:
    """The drawn items, and examples for shots: the task's own, or items from the far end of the same drawing."""
    whole = tasks.sample(task, len(task.items), study.seed)
    examples = [item for item in task.examples or whole.items[::-1] if item.gold is not None][: _SPARE + study.shots]
    kind, needed = ("examples", study.shots) if task.examples else ("items", study.shots + 1)
    if study.shots and len(examples) < needed:
        raise UsageError(f"--shots {study.shots}: task {task.name!r} has only {len(examples)} {kind}")
    return Task(task.name, whole.items[: study.items], tuple(examples), task.source)


def _columns(pools: Sequence[Task]) -> set[str]:
    """The columns that every item has, which a wrapper may name."""
    common = [set.intersection(*(set(item.columns) for item in task.items)) for task in pools]
    return set.intersection(*common)


def _check_slots(wrappers: Sequence[Wrapper]) -> None:
    for wrapper in wrappers:
        if not has_slot(wrapper):
            hint = "add a line {{pad}} between two lines of its text, or run with --pad none"
            raise UsageError(f"{wrapper.path}: wrapper {wrapper.name!r} has no {{{{pad}}}} slot to pad", hint)


# Preflight -----------------------------------------------------------------------------------------------------


def golds(prepared: Prepared) -> Iterator[Item]:
    """One item per task and distinct gold answer, at most 40 a task."""
    for task in prepared.tasks:
        seen: dict[str, Item] = {}
        for item in task.items:
            if item.gold is not None and len(seen) < 40:
                seen.setdefault(item.gold, item)
        yield from seen.values()


def _readable(prepared: Prepared, wrapper: Wrapper, parser: Parser, reader: Reader) -> Check:
    name = f"{parser.name} reads {wrapper.name}'s gold replies"
    for item in golds(prepared):
        if item.gold is None or reader.applies(item.space) is not None:
            continue
        reply = gold_reply(wrapper.contract, item.gold, item.space)
        outcome = reader.read(Reply(reply, "stop"), wrapper.contract, item.space)
        if outcome.value != item.gold:
            said = f"{outcome.outcome} {outcome.value or outcome.reason or outcome.candidates}"
            return Check(name, "warning", f"{parser.name} cannot read {wrapper.name}'s own {reply!r}: {said}")
    return Check(name, "ok", "every gold reply is read as its answer")


def _fits(prepared: Prepared, wrapper: Wrapper, model: str, max_tokens: int, tokenizer: Tokenizer) -> Check:
    tokens, reply = _longest_gold(prepared, wrapper, tokenizer)
    name = f"{wrapper.name} fits {model}'s limit of {max_tokens}"
    if tokens > max_tokens:
        message = f"{wrapper.name}: {reply!r} is valid, needs {tokens} tokens of {model} and is cut at {max_tokens}"
        return Check(name, "warning", message)
    return Check(name, "ok", f"the longest gold reply needs {tokens} of {max_tokens} tokens")


def _has_room(prepared: Prepared, model: str, max_tokens: int, tokenizer: Tokenizer) -> Check:
    """Over the longest item of each task, under the first wrapper and without padding."""
    name, room = f"{model} has room for prompt and reply", tokenizer.context()
    if room is None:
        return Check(name, "skipped", "the server does not say how long its context is")
    longest = 0
    for task in prepared.tasks:
        item = max(task.items, key=lambda item: len(item.question))
        shots = plan.shots_of(task, item, prepared.study.shots)
        longest = max(longest, tokenizer.count_prompt(render(prepared.wrappers[0], item, shots, gold_reply, "")))
    if longest + max_tokens > room:
        message = f"{model}: a prompt of {longest} tokens and a reply of {max_tokens} exceed its context of {room}"
        return Check(name, "warning", message)
    return Check(name, "ok", f"the longest prompt seen needs {longest} tokens, a reply at most {max_tokens}, of {room}")


def _survives(prepared: Prepared, wrapper: Wrapper, model: str, tokenizer: Tokenizer) -> Check:
    task = prepared.tasks[0]
    shots = plan.shots_of(task, task.items[0], prepared.study.shots)
    bare, padded = (
        tokenizer.count_prompt(render(wrapper, task.items[0], shots, gold_reply, pad))
        for pad in ("", filler(TRIED_PADDING))
    )
    name = f"padding of {wrapper.name} reaches {model}"
    cost = f"{TRIED_PADDING} characters of padding cost {padded - bare} tokens"
    if padded < bare + TRIED_TOKENS:
        return Check(name, "warning", f"{wrapper.name}: {cost}: {model} trims them")
    return Check(name, "ok", cost)


def _longest_gold(prepared: Prepared, wrapper: Wrapper, tokenizer: Tokenizer) -> tuple[int, str]:
    """Tokens with the end-of-turn token, and the reply. Only the longest few texts are asked for."""
    replies = {gold_reply(wrapper.contract, item.gold, item.space) for item in golds(prepared) if item.gold is not None}
    longest = sorted(replies, key=len, reverse=True)[:5]
    return max(((tokenizer.count(reply) + 1, reply) for reply in longest), default=(1, ""))


# Padding by tokens ---------------------------------------------------------------------------------------------

_FILLER = " \n"
"""One token for a few characters in any tokenizer; a run of spaces would be one token in all."""


def _token_padding(prepared: Prepared, tokenizer: Tokenizer) -> plan.Padding:
    """Equal token counts over an item's wrappers, within one token."""
    items = {(task.name, item.id): (task, item) for task in prepared.tasks for item in task.items}
    targets: dict[tuple[str, str], int] = {}
    known: dict[tuple[str, str, str], str] = {}

    def tokens(task: Task, item: Item, wrapper: Wrapper, pad: str) -> int:
        shots = plan.shots_of(task, item, prepared.study.shots)
        return tokenizer.count_prompt(render(wrapper, item, shots, gold_reply, pad))

    def pad(task_name: str, item_id: str, wrapper: Wrapper, length: int) -> str:
        task, item = items[task_name, item_id]
        key = (task_name, item_id)
        if key not in targets:
            targets[key] = max(tokens(task, item, other, "") for other in prepared.wrappers)
        if (*key, wrapper.name) not in known:
            known[*key, wrapper.name] = _fill_to(targets[key], lambda text: tokens(task, item, wrapper, text))
        return known[*key, wrapper.name]

    return pad


def _fill_to(target: int, count: Callable[[str], int]) -> str:
    """The filler that comes closest to a count, by bisection."""
    low, high = 0, 4
    while count(_FILLER * high) < target and high < 1 << 14:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(_FILLER * middle) < target else (low, middle)
    tries = [_FILLER * low, _FILLER * low + " ", _FILLER * low + "\n", _FILLER * high]
    return min(tries, key=lambda text: abs(count(text) - target))
