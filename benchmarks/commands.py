"""What a command costs as a whole process, against a bare interpreter: `python benchmarks/commands.py [--runs N]`.

Times of one machine say little; the ratio to `python -c pass`, taken in the same run and in turns, says more. The
median of all runs is shown, with the fastest, on the three-Spark fleet of this repository.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
BARE = "python -c pass"
OURS = [sys.executable, "-m", "lloom_gitops.cli.main"]
COMMANDS: dict[str, list[str]] = {
    BARE: [sys.executable, "-c", "pass"],
    "--version": [*OURS, "--version"],
    "check": [*OURS, "check"],
    "plan --offline": [*OURS, "plan", "--offline"],
    "plan --offline, pair cordoned": [
        *OURS,
        *("plan", "--offline", "--cordon", "spark-node-01", "--cordon", "spark-node-02"),
    ],
    "diff": [*OURS, "diff"],
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print the table; 1 when a command fails."""
    parser = argparse.ArgumentParser(description="Whole-process times of everyday commands.")
    parser.add_argument("--runs", type=int, default=15, help="of each command (15)")
    runs = parser.parse_args(argv).runs
    with tempfile.TemporaryDirectory(prefix="lloom-gitops-bench-") as folder:
        fleet = _fleet(Path(folder))
        for command in COMMANDS.values():  # caches of the system, and compiled files
            _seconds(command, fleet)
        taken = _in_turns(runs, fleet)
    sys.stdout.write(table(taken))
    return 0


def table(taken: Mapping[str, Sequence[float]]) -> str:
    """Rows of `command  median ms  fastest ms  ratio`; the ratio is that of the medians."""
    bare = statistics.median(taken[BARE])
    width = max(map(len, taken))
    lines = [f"{'command':<{width}}  {'median ms':>9}  {'fastest ms':>10}  {'ratio':>5}"]
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        row = f"{name:<{width}}  {1000 * median:>9.0f}  {1000 * min(seconds):>10.0f}  {median / bare:>5.1f}"
        lines.append(row)
    return "\n".join(lines) + "\n"


def _in_turns(runs: int, fleet: Path) -> dict[str, list[float]]:
    """One of each, again and again, so that what else the machine does falls on all alike."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            taken[name].append(_seconds(command, fleet))
    return taken


def _seconds(command: Sequence[str], fleet: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=fleet, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def _fleet(folder: Path) -> Path:
    """A repository with the fleet, and a written plan for `diff`."""
    for part in ("fleet", "recipes"):
        shutil.copytree(REPO / part, folder / part)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    named = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Describe the pool"]):
        subprocess.run([*named, *words], cwd=folder, check=True, env=env)
    write = [*COMMANDS["plan --offline, pair cordoned"], "--out", "fleet/plan.yaml"]
    subprocess.run(write, cwd=folder, check=True, capture_output=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
