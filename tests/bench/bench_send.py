"""CPU per generation, all-in, as a slope: (CPU of 5,000 - CPU of 100) / 4,900, beside a raw aiohttp loop's.

Both talk to the same loopback server without latency, which runs in a process of its own. `auditor run` renders, sends,
commits, reads with three parsers, measures and writes the report; what does not grow with the plan cancels out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SMALL, LARGE = 100, 5_000
WRAPPERS = 5
TESTS = Path(__file__).resolve().parents[1]

RAW = """
import asyncio, json, sys
import aiohttp

async def main(url, count, workers):
    left = iter(range(count))
    async with aiohttp.ClientSession() as session:
        async def work():
            for seed in left:
                body = {"model": "m", "messages": [{"role": "user", "content": "x" * 500}], "max_tokens": 64,
                        "temperature": 0.7, "top_p": 1.0, "seed": seed, "stream": False}
                async with session.post(url + "/chat/completions", data=json.dumps(body).encode()) as reply:
                    json.loads(await reply.read())["choices"][0]["message"]["content"]
        await asyncio.gather(*(work() for _ in range(workers)))

asyncio.run(main(sys.argv[1], int(sys.argv[2]), 16))
"""


def cpu(command: list[str]) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of one command."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, time.perf_counter() - start


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = Path(folder) / "cases.jsonl"
        rows = (
            {
                "id": str(i),
                "question": f"Case {i}: which of these is a fruit?",
                "choices": ["car", "apple", "hammer", "cloud"],
                "answer": "B",
            }
            for i in range(LARGE // WRAPPERS)
        )
        tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
        server = subprocess.Popen(
            [sys.executable, str(TESTS / "loopback.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            _table(url, tasks, Path(folder))
        finally:
            server.communicate()


def _table(url: str, tasks: Path, folder: Path) -> None:
    def audit(count: int, transport: str) -> list[str]:
        out = folder / f"run-{time.monotonic_ns()}"
        options = ["--models", f"compat/m@{url}", "--tasks", str(tasks), "--items", str(count // WRAPPERS)]
        options += ["--seeds", "1", "--out", str(out), "--transport", transport, "--quiet"]
        return [sys.executable, "-m", "auditor.cli", "run", *options]

    commands = {
        "raw aiohttp loop": lambda count: [sys.executable, "-c", RAW, url, str(count)],
        "auditor run (aiohttp)": lambda count: audit(count, "aiohttp"),
        "auditor run (httpx)": lambda count: audit(count, "httpx"),
    }
    slopes: dict[str, list[float]] = {name: [] for name in commands}
    fixed: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(3):
        for name, command in commands.items():
            small, large = cpu(command(SMALL))[0], cpu(command(LARGE))[0]
            slopes[name].append((large - small) / (LARGE - SMALL) * 1000)
            fixed[name].append(small)
    raw = statistics.median(slopes["raw aiohttp loop"])
    print(f"{'':<24}{'ms CPU a generation':>22}{'times raw':>12}{'CPU s at 100':>15}")
    for name, values in slopes.items():
        median = statistics.median(values)
        print(f"{name:<24}{median:>22.3f}{median / raw:>12.2f}{statistics.median(fixed[name]):>15.2f}")


if __name__ == "__main__":
    main()
