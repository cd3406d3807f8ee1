"""Replies a second of every parser on the corpus, and the slowest text of a million characters, each on one core.

The yardstick is `json.loads` and one search per reply, measured in the same run: where the machine is slower, both are.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "corpus")]

from corpus import cases  # noqa: E402
from parsing_samples import BOOLEAN, CONTRACTS, METALS, NUMBER, READERS  # noqa: E402
from test_parsing_laws import HOSTILE  # noqa: E402

from auditor.records import AnswerSpace, Contract, Outcome, Reply  # noqa: E402

Asked = tuple[Reply, Contract, AnswerSpace]
RUNS, SECONDS, MILLION = 5, 0.3, 1_000_000
LIMITED = ("strict", "normalized", "paper", "paper_unscoped")
_ANSWER = re.compile(r"answer\W+(\w+)", re.I)


def yardstick(reply: Reply, contract: Contract, space: AnswerSpace) -> None:
    try:
        json.loads(reply.text or "")
    except ValueError:
        _ANSWER.search(reply.text or "")


def rate(read: Callable[[Reply, Contract, AnswerSpace], Outcome | None], asked: list[Asked]) -> float:
    """Replies a second of processor time: the median of five runs."""
    rates = []
    for _ in range(RUNS):
        count, begin = 0, time.process_time()
        while (spent := time.process_time() - begin) < SECONDS:
            for reply, contract, space in asked:
                read(reply, contract, space)
            count += len(asked)
        rates.append(count / spent)
    return statistics.median(rates)


def hostile() -> Iterator[tuple[str, Asked]]:
    """Every hostile shape at a million characters, in an object that never closes or after an answer, with every
    contract and space, whole and cut off."""
    for unit, first in product([*HOSTILE, "`", "1", "}"], ('{"answer": "', "Answer: B\n")):
        text = first + unit * (MILLION // len(unit))
        for kind in ("text", "json", "block", "final_line"):
            for space in (METALS, NUMBER, BOOLEAN):
                for finish in ("stop", "length"):
                    name = f"{first[:1]} {unit!r} {kind} {space.type} {finish}"
                    yield name, (Reply(text, finish), CONTRACTS[kind], space)


def milliseconds(read: Callable[[Reply, Contract, AnswerSpace], Outcome], asked: Asked) -> float:
    begin = time.process_time()
    read(*asked)
    return 1000 * (time.process_time() - begin)


def slowest(read: Callable[[Reply, Contract, AnswerSpace], Outcome]) -> str:
    """The milliseconds of the slowest text, and its name; the slowest five are read three times more."""
    spent = sorted(((milliseconds(read, asked), name, asked) for name, asked in hostile()), key=lambda one: one[0])
    again = [(min(milliseconds(read, asked) for _ in range(3)), name) for _, name, asked in spent[-5:]]
    return "{:10.0f}  {}".format(*max(again))


def main() -> None:
    """Print the table."""
    asked = [(case.reply, case.contract, case.space) for case in cases()]
    measure = rate(yardstick, asked)
    print(f"{len(asked)} replies of the corpus, and one of a million characters (milliseconds)")
    print(f"{'':<22}{'a second':>10}{'of yardstick':>14}{'slowest':>10}")
    print(f"{'yardstick':<22}{measure:>10,.0f}{1:>14.3f}")
    for name, reader in READERS.items():
        reached = rate(reader.read, asked)
        worst = slowest(reader.read) if name in LIMITED else ""
        print(f"{name:<22}{reached:>10,.0f}{reached / measure:>14.3f}{worst}", flush=True)


if __name__ == "__main__":
    main()
