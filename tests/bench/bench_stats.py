"""From the store to every statistic: `python tests/bench/bench_stats.py [--items 200] [--parsers 3] [--folder F]`.

A run of 4 models x 7 tasks x 5 wrappers x ITEMS items x 5 seeds is simulated into a store (200 items: 140,000
generations; 20,000: 14 million), then measured as `auditor report` does it: aggregate query, statistics with 10,000
resamples, the report as HTML. Prints seconds of each, in a process of its own, and its peak memory. `--twice` measures
again and compares the bytes.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from auditor.store import FILE, Store

MODELS, TASKS, WRAPPERS, SEEDS = 4, 7, 5, 5
PARSERS = ("strict", "paper", "normalized")
TEXT = "The question asks for one letter. I think that it is the following one: {}"
BATCH = 100_000


def simulate(folder: Path, items: int, parsers: int) -> None:
    """Replies that are right in 30 to 60 % and parsed in 80 to 100 %, under an item effect."""
    folder.mkdir(parents=True, exist_ok=True)
    with Store(folder, writable=True, create=True) as store:
        store.set_meta(name="simulated", created="2026-01-01T00:00:00Z", auditor_version="0", seed="0")
        ids = [store.parser(name, "simulated") for name in PARSERS[:parsers]]
    db = sqlite3.connect(folder / FILE, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    cells = list(product(range(MODELS), range(TASKS), range(WRAPPERS)))
    names = [(f"m{m}", f"t{t}", f"w{w}", "none") for m, t, w in cells]
    db.executemany("INSERT INTO cell (model, task, wrapper, arm) VALUES (?, ?, ?, ?)", names)
    space = '{"type":"choice","labels":["A","B","C","D"],"texts":[]}'
    told = ((f"t{t}", f"i{i}", space, "A") for t in range(TASKS) for i in range(items))
    db.executemany("INSERT INTO item (task, item, space, gold) VALUES (?, ?, ?, ?)", told)
    generation = (
        "INSERT INTO generation (cell, item, seed, digest, answered, text, finish_reason, prompt_tokens,"
        " completion_tokens, attempts) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, 1)"
    )
    outcome = "INSERT INTO outcome (parser, generation, outcome, value, reason, correct) VALUES (?, ?, ?, ?, ?, ?)"
    first = 1
    for rows in batches(cells, items):
        asked = [
            (cell, item, seed, f"{first + at:064d}", TEXT.format("ABCD"[value]), finish, 100 + cell % 7, 20)
            for at, (cell, item, seed, value, finish, _) in enumerate(rows)
        ]
        db.executemany(generation, asked)
        for parser in ids:
            read = (
                (parser, first + at, "parsed", "ABCD"[value], None, int(value == 0))
                if known
                else (parser, first + at, "unparseable", None, "no_answer", 0)
                for at, (_, _, _, value, _, known) in enumerate(rows)
            )
            db.executemany(outcome, read)
        first += len(rows)
    db.execute("COMMIT")
    db.close()


def batches(cells: list[tuple[int, int, int]], items: int) -> Iterator[list[tuple[int, int, int, int, str, bool]]]:
    """(cell id, item id, seed, value, finish reason, parsed): all wrappers of an item together, as in a run."""
    rng = np.random.default_rng(0)
    batch: list[tuple[int, int, int, int, str, bool]] = []
    for model, task in product(range(MODELS), range(TASKS)):
        chance = rng.uniform(0.3, 0.6, WRAPPERS)[:, None] + rng.uniform(-0.3, 0.3, items)
        right = rng.random((SEEDS, WRAPPERS, items)) < chance
        value = np.where(right, 0, rng.integers(1, 4, right.shape))
        parsed = rng.random(right.shape) < rng.uniform(0.8, 1, WRAPPERS)[:, None]
        for seed, item, wrapper in product(range(SEEDS), range(items), range(WRAPPERS)):
            known, said = bool(parsed[seed, wrapper, item]), int(value[seed, wrapper, item])
            finish = "stop" if known or item % 2 else "length"
            cell = cells.index((model, task, wrapper)) + 1
            batch.append((cell, task * items + item + 1, seed, said, finish, known))
            if len(batch) == BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


def timed(folder: Path) -> None:
    """What one process takes, imports included."""
    start = time.perf_counter()
    from auditor import results
    from auditor.report import html, tables

    imported = time.perf_counter()
    report = results.load(folder)
    loaded = time.perf_counter()
    page = html.render_html(report.summary, report.examples, report.study)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (folder / "summary.json").write_bytes(tables.summary_json(report.summary))
    print(f"{report.summary.counts.answered:,} generations, {len(report.summary.parsers)} parsers")
    print(f"imports {imported - start:.2f} s, from the store to every statistic {loaded - imported:.2f} s")
    print(f"HTML {done - loaded:.2f} s, {len(page) / 1e6:.1f} MB; peak memory {peak:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200, help="items a task (200)")
    parser.add_argument("--parsers", type=int, default=3, help="parsers (3)")
    parser.add_argument("--folder", type=Path, help="keep the simulated run there, and use it again")
    parser.add_argument("--twice", action="store_true", help="measure twice, compare the bytes")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        timed(options.folder)
        return
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        if not (folder / FILE).exists():
            start = time.perf_counter()
            simulate(folder, options.items, options.parsers)
            size = (folder / FILE).stat().st_size / 1e6
            print(f"simulated in {time.perf_counter() - start:.0f} s, {size:,.0f} MB", flush=True)
        seen = []
        for _ in range(1 + options.twice):
            subprocess.run([sys.executable, __file__, "--measure", "--folder", folder], check=True)
            seen.append((folder / "summary.json").read_bytes())
        if options.twice:
            print("the same bytes" if seen[0] == seen[1] else "OTHER BYTES")


if __name__ == "__main__":
    main()
