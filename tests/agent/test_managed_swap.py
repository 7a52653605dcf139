"""A whole swap of managed lanes, on simulated gateways of both builds and (LLOOM_GATEWAY) on real ones: start, route,
drain, stop, each proved at the node that owns it."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.control.lifecycle import Way
from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.model.words import Outcome, Result
from lloom_gitops.sim.pool import SIM_KEY_ENV, PoolSpec, SimPool, start_pool
from tests.pools import REPO

from .fleet import INVENTORY, Fleet, environment

REAL = "LLOOM_GATEWAY"
HEAD, OTHER = "n1", "n2"
FAKE_LANE = REPO / "tests" / "contract" / "fake_lane.py"


@pytest.fixture(params=["newer", "snapshot", "real"])
def two(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimPool]:
    """Two sovereign gateways: the head with lane `a` up, the other with lane `b` down, which the head knows as
    `n2/model-b`."""
    build: str = request.param
    command = shlex.split(os.environ.get(REAL, ""))
    if build == "real" and not command:
        pytest.skip(f"{REAL} does not name the command of a real gateway, e.g. 'node bin/lloom.mjs serve'")
    pids = tmp_path / "pids"
    pids.mkdir()
    configs = {HEAD: config(HEAD, "a", pids, build), OTHER: config(OTHER, "b", pids, build)}
    real = build == "real"
    spec = PoolSpec(configs, build="snapshot" if real else build, time_scale=200.0, command=command if real else None)
    try:
        with start_pool(spec, tmp_path / "pool") as pool:
            for name, value in environment(tmp_path, pool).items():
                monkeypatch.setenv(name, value)
            pool.call(HEAD, "POST", "/gateway/runtimes/a/start", {"force": False})
            yield pool
    finally:
        for pid in pids.iterdir():  # a real gateway's lanes outlive it
            if (status := Path(f"/proc/{pid.name}/cmdline")).exists() and b"fake_lane.py" in status.read_bytes():
                os.kill(int(pid.name), signal.SIGKILL)


def config(node: str, lane: str, pids: Path, build: str) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    runtime = {
        "enabled": True,
        "node": node,
        "command": sys.executable,
        "args": [str(FAKE_LANE), "--port", str(port), "--pids", str(pids), "--load-seconds", "0.3"],
        "port": port,
        "healthUrl": f"http://127.0.0.1:{port}/health",
        "memoryGb": 1,
        "startupTimeoutMs": 30000,
        "sim": {"loadSeconds": 30, "rssGb": 0.1},
    }
    model = {"id": f"model-{lane}", "name": lane, "kind": "chat", "backend": lane, "runtime": lane}
    proxy = {"proxy": {"models": [{"id": "model-b", "kind": "chat", "remoteRuntime": "b"}]}}
    nodes: dict[str, Any] = {node: {"resources": {"memoryGb": 128, "memoryBudgetGb": 100}}}
    aliases: dict[str, Any] = {}
    if node == HEAD:
        nodes[OTHER] = {"resources": {"memoryGb": 128}, **proxy}
        aliases = {"chat": {"members": ["model-a"]} if build == "newer" else {"target": "model-a"}}
    return {
        "name": node,
        "community": {"hostUrl": None, "autoStartLocalHost": False},
        "runtimePolicy": {"autoEvict": True},
        "cluster": {"id": node, "nodeId": node, "leaderNode": node, "nodes": nodes},
        "backends": {lane: {"type": "openai", "baseUrl": f"http://127.0.0.1:{port}/v1"}},
        "runtimes": {lane: runtime},
        "models": [{**model, "contextWindow": 32768}],
        "aliases": aliases,
    }


def documents(pool: SimPool) -> dict[str, str]:
    def document(kind: str, name: str, spec: str) -> str:
        return f"apiVersion: lloom-gitops/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"

    small = "{system: {reserveGb: 1, headroomGb: 0}, unified: {reserveGb: 1, headroomGb: 0}}"
    nodes = {
        f"fleet/nodes/{name}.yaml": document("Node", name, f"{{endpoint: '{url}', apiKeyEnv: {SIM_KEY_ENV}}}")
        for name, url in pool.urls.items()
    }
    alias = "{aliases: {chat: {models: [model-a, model-b]}}}"
    seconds = "{drain: 5, start: 60}"
    return {
        **nodes,
        "fleet/pool.yaml": document(
            "Pool",
            "two",
            f"{{head: {HEAD}, memory: {small}, apply: {{stepTimeoutSeconds: {seconds}}}, writeBack: {{plan: agent}}}}",
        ),
        "fleet/aliases.yaml": document("Aliases", "aliases", alias),
    }


def test_a_cordoned_head_hands_over(two: SimPool, tmp_path: Path) -> None:
    here = Fleet(tmp_path, two, documents(two), head=HEAD)
    first = here.turn()
    assert first.exit_code == 0, first.says
    assert here.route("chat")[0] == "model-a"
    here.pull()
    here.write(f"fleet/nodes/{HEAD}.yaml", _cordoned(here, HEAD))
    here.commit("Cordon the head")
    report = here.turn()
    assert (report.way, report.result) == (Way.PLANNED, Result.SUCCEEDED), report
    assert {name: step.outcome for name, step in report.steps.items()} == {
        "start:b": Outcome.DONE,
        "route:chat": Outcome.DONE,
        "drain:a": Outcome.ALREADY,
        "stop:a": Outcome.DONE,
    }
    assert here.route("chat")[0] == "n2/model-b"
    assert here.lane(OTHER, "b")["healthy"] is True
    assert here.lane(HEAD, "a")["healthy"] is False
    before = here.tip()
    assert here.turn().way is Way.NOTHING
    assert here.tip() == before
    assert "state: stopped" in (here.show("main", INVENTORY) or "")


@pytest.fixture
def swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Two gateways of the newer build at rest, and the head's cordon merged; `b` is as the test's parameter has it."""
    pids = tmp_path / "pids"
    pids.mkdir()
    configs = {HEAD: config(HEAD, "a", pids, "newer"), OTHER: config(OTHER, "b", pids, "newer")}
    configs[OTHER]["runtimes"]["b"]["sim"].update(getattr(request, "param", {}))
    with start_pool(PoolSpec(configs, time_scale=200.0), tmp_path / "pool") as pool:
        for name, value in environment(tmp_path, pool).items():
            monkeypatch.setenv(name, value)
        pool.call(HEAD, "POST", "/gateway/runtimes/a/start", {"force": False})
        here = Fleet(tmp_path, pool, documents(pool), head=HEAD)
        here.turn()
        here.pull()
        here.write(f"fleet/nodes/{HEAD}.yaml", _cordoned(here, HEAD))
        here.commit("Cordon the head")
        yield here


def test_a_stop_waits_for_the_requests_in_flight(swap: Fleet) -> None:
    swap.pool.control(HEAD, "set-active", lane="a", count=2)
    journal = swap.room / "state" / "journal.jsonl"
    seen: list[bool] = []

    def busy_for_a_while() -> str | None:
        draining = journal.exists() and '"step":"drain:a","kind":"intent"' in journal.read_text()
        if draining and len(seen) < 3:
            seen.append(swap.lane(HEAD, "a")["healthy"])
            if len(seen) == 3:
                swap.pool.control(HEAD, "set-active", lane="a", count=0)
        return None

    report = swap.turn(stop=busy_for_a_while, clock=SystemClock())
    assert report.result is Result.SUCCEEDED, report
    assert (report.steps["drain:a"].outcome, report.steps["drain:a"].says) == (Outcome.DONE, None)
    assert seen == [True] * 3, "the lane is up while its requests are"
    assert swap.lane(HEAD, "a")["healthy"] is False


@pytest.mark.parametrize("swap", [{"failStart": "out of luck"}], indirect=True)
def test_nothing_is_stopped_for_a_start_that_failed(swap: Fleet) -> None:
    before = swap.route("chat")
    report = swap.turn()
    assert (report.result, report.exit_code) == (Result.FAILED, 9)
    start = report.steps["start:b"]
    assert (start.outcome, start.retry) == (Outcome.FAILED, "later")
    assert start.says == "startFailed: runtime b exited before becoming healthy"
    assert {step.outcome for name, step in report.steps.items() if name != "start:b"} == {Outcome.SKIPPED}
    assert swap.route("chat") == before
    assert swap.lane(HEAD, "a")["healthy"] is True
    assert swap.trailers()["Result"] == "failed"
    # Tried again turn by turn: what comes to the same makes no commit.
    assert swap.turn().result is Result.FAILED
    settled = swap.tip()
    for _ in range(2):
        assert swap.turn().result is Result.FAILED
        assert swap.tip() == settled


def test_a_gateway_that_restarts_under_the_apply(swap: Fleet) -> None:
    """The lane that was just loaded outlives its gateway, and shows as `external`: the apply goes on."""
    restarted: list[str] = []

    def restart_once_the_lane_is_up() -> str | None:
        if not restarted and swap.lane(OTHER, "b")["healthy"]:
            restarted.append(OTHER)
            swap.pool.kill(OTHER)
            swap.pool.start(OTHER)
        return None

    report = swap.turn(stop=restart_once_the_lane_is_up)
    assert restarted
    assert report.result is Result.SUCCEEDED, report
    assert swap.route("chat")[0] == "n2/model-b"
    assert swap.lane(OTHER, "b")["healthy"] is True


def _cordoned(fleet: Fleet, node: str) -> str:
    text = (fleet.desk / f"fleet/nodes/{node}.yaml").read_text()
    return text.replace("apiKeyEnv", "state: cordon, apiKeyEnv")
