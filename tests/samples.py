"""Small values that several tests share."""

from __future__ import annotations

import json
from pathlib import Path

from auditor.measure import TallyRow
from auditor.records import AnswerSpace, Attempt, Fault, Generation, Item, Message, Reply, Request

SHARED = Path(__file__).resolve().parents[2] / "shared"

LETTERS = AnswerSpace("choice", ("A", "B", "C", "D"), ("car", "apple", "hammer", "cloud"))

MICRO = {
    # (model, task): wrapper -> (parsed, correct), a digit an item; the worked example of the statistics page
    ("m0", "t0"): {"plain": ("1111", "1000"), "json": ("1000", "1000"), "xml": ("1111", "1110")},
    ("m0", "t1"): {"plain": ("1111", "1001"), "json": ("1000", "1000"), "xml": ("1111", "1011")},
    ("m1", "t0"): {"plain": ("1111", "0100"), "json": ("1100", "1000"), "xml": ("1110", "0110")},
    ("m1", "t1"): {"plain": ("1111", "1000"), "json": ("1110", "0110"), "xml": ("1100", "1100")},
}


def micro_rows() -> list[dict[str, object]]:
    """The worked example as scored rows."""
    return [
        {"model": model, "task": task, "item": f"{task}-{i}", "wrapper": wrapper, "seed": 0,
         "parsed": parsed[i] == "1", "correct": correct[i] == "1"}
        for (model, task), wrappers in MICRO.items()
        for wrapper, (parsed, correct) in wrappers.items()
        for i in range(4)
    ]  # fmt: skip


def tallies(*rows: tuple[int, int, int, int, int | None], cut: frozenset[int] = frozenset()) -> list[TallyRow]:
    """Rows (cell, item, how many, parsed, correct or None) as the journal tells them: each takes the next seeds of its
    cell and item. The seeds of rows number `cut` ended at the token limit."""
    used: dict[tuple[int, int], int] = {}
    told: list[TallyRow] = []
    for place, (cell, item_, count, parsed, correct) in enumerate(rows):
        first = used.get((cell, item_), 0)
        used[cell, item_] = first + count
        seeds = sum(1 << seed for seed in range(first, first + count))
        right, value = -1 if correct is None else correct, f"value {place}" if parsed else None
        told.append((cell, item_, 0, seeds, seeds if place in cut else 0, parsed, right, value))
    return told


def item(id_: str = "q1", gold: str | None = "B", space: AnswerSpace = LETTERS) -> Item:
    """One item."""
    return Item(id=id_, question="Which of these is a fruit?", space=space, gold=gold)


def request(item: str = "q1", wrapper: str = "plain", seed: int = 0, digest: str = "d") -> Request:
    """One request, as the plan would make it."""
    return Request(
        model="m",
        task="t",
        item=item,
        wrapper=wrapper,
        arm="none",
        seed=seed,
        digest=digest,
        prompt=f"p-{wrapper}-{item}",
        messages=(Message("user", f"{wrapper} {item}"),),
        max_tokens=64,
        temperature=0.7,
        top_p=1.0,
    )


def answered(request: Request, text: str | None, finish: str = "stop", tokens: int | None = 10) -> Generation:
    """A request that was answered at the first try."""
    reply = Reply(text, finish, prompt_tokens=tokens, completion_tokens=3)
    return Generation(request, reply, None, (Attempt(1.0, 2.0, 200, None, b"{}", b'{"model":"m"}'),))


def missing(request: Request, tries: int = 2) -> Generation:
    """A request that was never answered."""
    attempts = tuple(Attempt(1.0, 2.0, 503, "unavailable", b"", b'{"model":"m"}') for _ in range(tries))
    return Generation(request, None, Fault("unavailable", "HTTP 503", True), attempts)


def write_jsonl(path: Path, rows: list[dict[str, object]]) -> Path:
    """Rows as JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
