"""One simulated three-Spark pool for all tests here, put back to its first state before each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.sim.pool import SimPool, start_pool
from lloom_gitops.sim.three_spark import HEAD, NODES, set_pair, three_spark_configs, three_spark_spec

from .fleet import Fleet, PairServer, environment, three_spark_documents

TIME_SCALE = 2000.0
"""A load of three minutes takes 90 ms."""


@pytest.fixture(scope="session")
def running_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPool]:
    with start_pool(three_spark_spec(time_scale=TIME_SCALE), tmp_path_factory.mktemp("pool")) as pool:
        yield pool


@pytest.fixture
def pool(running_pool: SimPool) -> SimPool:
    """The pool as its fixture describes it."""
    put_pool_back(running_pool)
    return running_pool


def put_pool_back(running_pool: SimPool) -> None:
    """Routes, residencies, lanes and memory as at the pool's start."""
    for node in NODES:
        if running_pool.processes[node].poll() is not None:
            running_pool.start(node)
    set_pair(running_pool, up=True)
    first = three_spark_configs()
    aliases = first[HEAD]["aliases"]
    if not _routed(running_pool, aliases):
        running_pool.edit(HEAD, {"aliases": aliases})
        wait_for(lambda: _routed(running_pool, aliases))
    for node, config in first.items():
        running_pool.control(node, "set-foreign", gb=config["sim"]["machine"].get("foreignGb", 0))
        for lane, entry in config.get("runtimes", {}).items():
            _put_back(running_pool, node, lane, entry)


@pytest.fixture
def pair() -> Iterator[PairServer]:
    server = PairServer()
    yield server
    server.stop()


@pytest.fixture
def fleet(tmp_path: Path, pool: SimPool, pair: PairServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Fleet]:
    """Makes the fleet of this test; keywords go into fleet/pool.yaml (`pool_text`)."""
    for name, value in environment(tmp_path, pool).items():
        monkeypatch.setenv(name, value)
    return lambda **spec: Fleet(tmp_path, pool, three_spark_documents(pool, pair, **spec))


def wait_for(seen: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def _routed(pool: SimPool, wanted: dict[str, Any]) -> bool:
    """Whether the head routes as its first config says."""
    seen = pool.call(HEAD, "GET", "/gateway/routing").json()["aliases"]
    return {name: entry.get("members") for name, entry in seen.items()} == {
        name: entry["members"] for name, entry in wanted.items()
    }


def _put_back(pool: SimPool, node: str, lane: str, entry: dict[str, Any]) -> None:
    rows = pool.call(node, "GET", "/gateway/node").json()["node"]["runtimeManager"]["runtimes"]
    row = rows[lane]
    wanted = "always" if entry.get("keepWarm") else "preferred" if entry.get("preferredWarm") else "auto"
    seen = "always" if row.get("keepWarm") else "preferred" if row.get("preferredWarm") else "auto"
    pool.control(node, "set-active", lane=lane, count=0)
    pool.control(node, "unlatch", lane=lane)
    if seen != wanted:
        path = f"/gateway/runtimes/{lane}/residency"
        pool.call(node, "POST", path, {"policy": wanted, "yes": True})
        wait_for(lambda: pool.call(node, "GET", path).json()["job"]["status"] != "pending")
    if entry["sim"]["running"] and not row["healthy"]:
        pool.call(node, "POST", f"/gateway/runtimes/{lane}/start", {"force": False})
    if not entry["sim"]["running"] and row["healthy"]:
        pool.call(node, "POST", f"/gateway/runtimes/{lane}/stop", {})
