"""kill -9 of the agent's process at the boundaries of an apply: the restart ends where the undisturbed agent does, no
step is carried out twice, and git is left without a lock."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from lloom_gitops.model.words import Outcome
from lloom_gitops.sim.three_spark import HEAD
from tests.pools import REPO

from .conftest import put_pool_back
from .fleet import Fleet, git

LANE = "qwen38-27b-03"
DONE = {
    "start:qwen38-27b-03": Outcome.DONE,
    "route:cognition": Outcome.DONE,
    "route:cognition-deep": Outcome.DONE,
    "drain:qwen38-pair": Outcome.DONE,
    "stop:qwen38-pair": Outcome.WAITING,
}


def run_turn(fleet: Fleet, dies_at: int) -> int | None:
    """A turn in a process of its own. None: it was killed; else the number of boundaries it crossed."""
    words = [str(fleet.home), str(fleet.room / "state"), str(fleet.pool.configs[HEAD]), str(dies_at)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.agent.killed_turn", *words], cwd=REPO, capture_output=True, text=True, check=False
    )
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def merged_change(fleet: Fleet) -> int:
    """A reviewed plan on the branch; how often the lane was started before."""
    fleet.cordon_pair()
    fleet.plan_write()
    fleet.commit("Cordon the pair")
    return int(fleet.lane("spark-node-03", LANE)["starts"])


def assert_as_undisturbed(fleet: Fleet, starts_before: int, merged: str) -> None:
    lane = fleet.lane("spark-node-03", LANE)
    assert (lane["healthy"], lane["keepWarm"]) == (True, True)
    assert lane["starts"] == starts_before + 1, "no step twice"
    assert fleet.route("cognition") == fleet.route("cognition-deep")
    assert fleet.route("cognition") == ["spark-node-03/qwen3.8-27b", "cloud/openrouter/q38fn"]
    status = fleet.status()
    assert status is not None
    assert {name: step.outcome for name, step in status.steps.items()} == DONE
    assert len(git(fleet.remote, "rev-list", f"{merged}..main").split()) == 1, "one result commit"
    assert fleet.locks() == []
    assert not (fleet.room / "state" / "journal.jsonl").exists()
    git(fleet.home, "fsck", "--strict", "--no-dangling")
    before = fleet.tip()
    again = fleet.turn()
    assert again.way == "nothing"
    assert fleet.tip() == before


def test_killed_again_and_again(fleet: Callable[..., Fleet]) -> None:
    """The first run dies at its first boundary, the second at its second, and so on until one gets to the end."""
    here = fleet()
    starts = merged_change(here)
    merged = here.tip()
    crossed, dies_at = None, 0
    while crossed is None:
        dies_at += 1
        assert dies_at < 60, "no run got to the end"
        crossed = run_turn(here, dies_at)
    assert dies_at > 8, "the runs died before they got far"
    assert_as_undisturbed(here, starts, merged)


@pytest.mark.slow
def test_killed_once_at_each_boundary(fleet: Callable[..., Fleet]) -> None:
    """Every boundary of an undisturbed apply, one kill and one restart at each."""
    here = fleet()
    starts = merged_change(here)
    merged = here.tip()
    total = run_turn(here, 0)
    assert total is not None
    assert total > 30
    assert_as_undisturbed(here, starts, merged)
    for boundary in range(1, total + 1):
        _back(here, merged)
        starts = int(here.lane("spark-node-03", LANE)["starts"])
        assert run_turn(here, boundary) is None, f"boundary {boundary} was not reached"
        assert run_turn(here, 0) is not None
        assert_as_undisturbed(here, starts, merged)


def _back(fleet: Fleet, merged: str) -> None:
    """Pool, branch and the agent's folders as after the merge."""
    put_pool_back(fleet.pool)
    git(fleet.remote, "update-ref", "refs/heads/main", merged)
    for ref in ("refs/lloom/lease", "refs/lloom/agent/head"):
        git(fleet.remote, "update-ref", "-d", ref)
    shutil.rmtree(fleet.room / "state")
    shutil.rmtree(fleet.home)
    git(fleet.room, "clone", "-q", str(fleet.remote), "agent")
