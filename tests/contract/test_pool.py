"""Pools of real processes: nothing is left running, and the three-Spark pool is observed as the fleet has it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from lloom_gitops.codec.desired import load_desired
from lloom_gitops.codec.documents import load_document
from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.drivers.observe import Observer
from lloom_gitops.model.document import Kind
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.sim.pool import PoolError, PoolSpec, SimPool, start_pool
from lloom_gitops.sim.three_spark import pair_health_url, set_pair, three_spark_spec

ROOT = Path(__file__).parents[2]
ADDRESSES = {
    "10.10.10.1": "spark-node-01",
    "10.10.10.2": "spark-node-02",
    "10.10.10.3": "spark-node-03",
    "10.10.10.9": "macbook-local",
}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_nothing_is_left_running_when_the_block_fails(tmp_path: Path) -> None:
    pids: list[int] = []

    def break_off() -> None:
        with start_pool(_small(), tmp_path) as pool:
            pids.extend(process.pid for process in pool.processes.values())
            pool.pause("a")
            assert all(alive(pid) for pid in pids)
            raise RuntimeError("a test that breaks")

    with pytest.raises(RuntimeError, match="a test that breaks"):
        break_off()
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)


def test_a_gateway_that_can_not_start_says_why_and_takes_the_others_down(tmp_path: Path) -> None:
    spec = _small()
    spec.configs["b"]["aliases"] = {"chat": {"target": "none"}}
    with pytest.raises(PoolError, match="alias chat targets unknown model none"), start_pool(spec, tmp_path):
        pytest.fail("it must not come up")


def test_a_gateway_ends_cleanly_when_asked(tmp_path: Path) -> None:
    with start_pool(_small(), tmp_path) as pool:
        processes = list(pool.processes.values())
    assert [process.returncode for process in processes] == [0, 0]
    assert "simulated snapshot gateway listening on http://127.0.0.1:" in pool.log("a")


def _small() -> PoolSpec:
    nodes: dict[str, dict[str, object]] = {"a": {}, "b": {}}
    return PoolSpec({name: {"cluster": {"nodes": dict(nodes)}} for name in nodes}, build="snapshot")


def observe(pool: SimPool, previous: Inventory) -> Inventory:
    """What an observer of the project's own fleet sees, its addresses being those of the pool."""
    files = {}
    for path in [*(ROOT / "fleet").rglob("*.yaml"), *(ROOT / "recipes").rglob("*.yaml")]:
        text = path.read_text()
        for address, node in ADDRESSES.items():
            text = text.replace(f"http://{address}:8100", pool.urls[node])
        text = re.sub(r"http://10\.10\.10\.1:8205/health", pair_health_url(pool.urls), text)
        files[str(path.relative_to(ROOT))] = text.encode()
    loaded = load_desired(files)
    assert loaded.desired is not None, loaded.findings
    return Observer(loaded.desired, lambda _: pool.key, SystemClock()).observe(previous, {}).inventory


def test_the_three_spark_pool_is_observed_as_the_fleet_has_it(tmp_path: Path) -> None:
    document = load_document(Kind.INVENTORY, (ROOT / "fleet/observed/inventory.yaml").read_bytes(), "inventory.yaml")
    wanted: Inventory = document.spec
    with start_pool(three_spark_spec(), tmp_path) as pool:
        seen = observe(pool, wanted)
        assert seen.lanes == wanted.lanes
        assert seen.aliases == wanted.aliases
        assert seen.demand == wanted.demand
        assert {name: _facts(node) for name, node in seen.nodes.items()} == {
            name: _facts(node) for name, node in wanted.nodes.items()
        }
        set_pair(pool, up=False)
        assert observe(pool, wanted).lanes["qwen38-pair"].state != "running"


def _facts(node: msgspec.Struct) -> dict[str, object]:
    """A node without the budget, which the gateway works out of the other figures."""
    return {name: getattr(node, name) for name in node.__struct_fields__ if name != "admission"}
