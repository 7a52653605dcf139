"""The newcomer's command: it gets to its end, twice in a row, and leaves nothing behind however it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pools import REPO

LIMIT_SECONDS = 180
"""For a machine that has other things to do; alone it takes a tenth of that."""
SUBJECTS = [
    "apply: 5 of 5 steps done",
    "apply: 4 of 5 steps done",
    "Merge the firmware day",
    "Cordon the pair for new firmware",
    "Describe the pool",
]
DEMO = [sys.executable, "-m", "lloom_gitops.cli.main", "demo"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A newcomer's environment: nobody has told git who they are, and the temporary folder is the test's own."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LLOOM_", "XDG_"))}
    return {**kept, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}


@pytest.fixture
def nothing_left(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Asserts, also when the test ends: no process that names the temporary folder, no file in it or in the home."""

    def look() -> None:
        assert running(tmp_path / "tmp") == []
        assert [*(tmp_path / "tmp").iterdir(), *(tmp_path / "home").iterdir()] == []

    yield look
    look()


def running(folder: Path) -> list[str]:
    """Processes that name a folder in their words or their environment."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            words, env = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words + env:
            found.append(words.replace(b"\0", b" ").decode())
    return found


def excerpts() -> list[str]:
    """The lines of README.md's tour."""
    blocks = re.findall(r"```console\n(.*?)```", (REPO / "README.md").read_text("utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def bare(text: str) -> str:
    """A text without the ids of commits and plans, which are others each time."""
    return re.sub(r"\b[0-9a-f]{7,}\b", "…", text)


def test_the_tour_of_the_readme_is_there() -> None:
    assert len([line for line in excerpts() if line.startswith("$ ")]) > 5


def test_it_gets_to_its_end_twice(env: dict[str, str], tmp_path: Path, nothing_left: Callable[[], None]) -> None:
    asked = [*DEMO, "--speed", "300", "--json"]
    first = subprocess.run(asked, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)["demo"]
    assert told["answers"] == {"alias": "cognition", "before": "qwen3.8-flash-next", "after": "qwen3.8-27b"}
    assert [turn["result"] for turn in told["turns"]] == ["waiting", "succeeded", "succeeded"]
    assert [bool(turn["commit"]) for turn in told["turns"]] == [True, True, False]
    assert set(told["turns"][-1]["steps"].values()) == {"done"}
    subjects = [commit["subject"].split(" (")[0] for commit in told["commits"]]
    assert subjects == SUBJECTS
    nothing_left()

    asked = [*DEMO, "--speed", "300", "--keep"]
    second = subprocess.run(asked, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert second.returncode == 0, second.stderr
    for words in (
        "$ lloom-gitops plan --write",
        "+ qwen38-27b-03  spark-node-03  always",
        "fleet/plan.yaml is authentic and current.",
        "waiting  stop:qwen38-pair: stop the pair's server on both nodes",
        "cognition is answered by qwen3.8-27b",
        "Nothing is left running.",
    ):
        assert words in second.stdout
    assert [line for line in excerpts() if bare(line) not in bare(second.stdout)] == [], (
        "README.md shows what is printed"
    )
    assert "\x1b[" not in second.stdout + second.stderr, "there is no terminal"
    (folder,) = (tmp_path / "tmp").iterdir()
    assert f"{folder} is kept" in second.stdout
    log = subprocess.run(["git", "log", "--format=%s"], cwd=folder / "fleet", capture_output=True, text=True)
    assert [subject.split(" (")[0] for subject in log.stdout.splitlines()] == SUBJECTS
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("until", "number"),
    [
        pytest.param("Everything is in", signal.SIGINT, id="while gateways start"),
        pytest.param("What reviewers read", signal.SIGTERM, id="in a command"),
        pytest.param("The agent takes a turn", signal.SIGINT, id="in a load"),
    ],
)
def test_broken_off_it_leaves_nothing(
    env: dict[str, str], nothing_left: Callable[[], None], until: str, number: int
) -> None:
    with subprocess.Popen([*DEMO, "--speed", "30"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        assert any(until in line.decode() for line in demo.stdout), "it ended before"
        time.sleep(0.3)
        demo.send_signal(number)
        _, err = demo.communicate(timeout=LIMIT_SECONDS)
    assert demo.returncode == 130, err
    assert b"Interrupted. Nothing is left running." in err
    assert b"Traceback" not in err


def test_without_git_it_says_so(env: dict[str, str], nothing_left: Callable[[], None], tmp_path: Path) -> None:
    without = {**env, "PATH": str(tmp_path)}
    done = subprocess.run(DEMO, env=without, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode != 0
    assert "there is no `git` command" in done.stderr
    assert "Traceback" not in done.stderr
