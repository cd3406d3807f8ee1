"""Throughput under a server that lets 50 requests in and answers 429 beyond: adaptive concurrency beside fixed ones.

The server answers after 0.1 s whatever the load, and runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from hostile_truth import study  # noqa: E402

from auditor import audit  # noqa: E402

ALLOW, LATENCY = 50, 0.1
GENERATIONS = 10_000


def rate(concurrency: int | str) -> float:
    """Generations a second."""
    command = [sys.executable, str(TESTS / "hostile.py"), "--truth", "simulated:reply"]
    command += ["--allow", str(ALLOW), "--latency", str(LATENCY)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    with tempfile.TemporaryDirectory() as folder:
        asked = study(url, Path(folder), GENERATIONS // 10, 2, concurrency=concurrency, preflight=False)
        start = time.perf_counter()
        report = audit.run(asked, Path(folder) / "run")
        seconds = time.perf_counter() - start
    told = server.communicate()[0].splitlines()[-1]
    counts = report.summary.counts
    print(f"{concurrency!s:>6}  {counts.answered / seconds:8.0f}  {counts.retries:8,}  {counts.missing:8,}", flush=True)
    assert told
    return counts.answered / seconds


def main() -> None:
    """Print the table."""
    print(f"{'':>6}  {'a second':>8}  {'retries':>8}  {'missing':>8}")
    fixed = {concurrency: rate(concurrency) for concurrency in (16, 32, 45, 50, 64)}
    adaptive = rate("auto")
    best = max(fixed, key=lambda concurrency: fixed[concurrency])
    print(f"adaptive reaches {adaptive / fixed[best]:.0%} of the best fixed setting ({best})")


if __name__ == "__main__":
    main()
