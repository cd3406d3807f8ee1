"""20,000 generations against a server that fails in every documented way, in 15 % of its attempts.

What must come out: every generation answered, every cell equal to the truth behind the server, no failure scored, and
as many attempts counted as the server saw. The server runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from hostile_truth import ITEMS, SEEDS, study, wrong_cells  # noqa: E402

from auditor import audit  # noqa: E402


def main() -> None:
    """Run it and print what was seen."""
    command = [sys.executable, str(TESTS / "hostile.py"), "--truth", "simulated:reply", "--faults", "0.15"]
    command += ["--hang", "3", "--latency", "0.005"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        report = audit.run(study(url, Path(folder), ITEMS, SEEDS, timeout=1.5), Path(folder) / "run", say=print)
        seconds = time.perf_counter() - start
        wrong = wrong_cells(report, Path(folder) / "run")
    told = json.loads(server.communicate()[0].splitlines()[-1])
    counts = report.summary.counts
    print(f"{counts.answered:,} of {counts.planned:,} generations answered, {counts.missing} missing, {seconds:.0f} s")
    print(f"attempts counted {counts.attempts:,}, requests the server saw {told['posts']:,}")
    print(f"cells that differ from the truth: {wrong or 'none'}")
    print(f"faults met: {told['faults']}")


if __name__ == "__main__":
    main()
