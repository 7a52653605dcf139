"""The simulated three-Spark pool, running as real processes on loopback, and how tests reach it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.drivers.gateway_http import HttpGateway
from lloom_gitops.model.desired import Desired
from lloom_gitops.sim.pool import SimPool, start_pool
from lloom_gitops.sim.three_spark import HEAD, pair_health_url, three_spark_spec
from tests.pools import three_spark

TIME_SCALE = 400.0
THIRD = "spark-node-03"
NOBODY = "http://127.0.0.1:9"


@contextmanager
def running(folder: Path, build: str, *nodes: str, recipes: dict[str, Any] | None = None) -> Iterator[SimPool]:
    """The named gateways of the three-Spark pool, the others being down; loading `video-03` always fails.

    `recipes` is what can be installed there.
    """
    spec = three_spark_spec(build=build, time_scale=TIME_SCALE)
    configs = {node: copy.deepcopy(spec.configs[node]) for node in nodes}
    for config in configs.values():
        config["sim"]["recipes"] = recipes or {}
        for other in config["cluster"]["nodes"].values():
            other["endpoint"] = NOBODY
    if THIRD in configs:
        configs[THIRD]["runtimes"]["video-03"]["sim"]["failStart"] = "out of luck"
    with start_pool(dataclasses.replace(spec, configs=configs), folder) as pool:
        yield pool


@pytest.fixture
def third_newer(tmp_path: Path) -> Iterator[SimPool]:
    with running(tmp_path / "pool", "newer", THIRD) as pool:
        yield pool


@pytest.fixture
def third_snapshot(tmp_path: Path) -> Iterator[SimPool]:
    with running(tmp_path / "pool", "snapshot", THIRD) as pool:
        yield pool


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[SimPool]:
    """The head alone, of the newer build, for a test that ends it."""
    with running(tmp_path / "pool", "newer", HEAD) as pool:
        yield pool


@pytest.fixture
def head_snapshot(tmp_path: Path) -> Iterator[SimPool]:
    with running(tmp_path / "pool", "snapshot", HEAD) as pool:
        yield pool


def gateway(pool: SimPool, node: str) -> HttpGateway:
    """The driver of one gateway of the pool."""
    return HttpGateway(pool.urls[node], pool.key, SystemClock())


def placed(pool: SimPool) -> Desired:
    """The three-Spark fleet's desired state with the addresses of a running pool."""
    desired, _ = three_spark()
    nodes = {name: msgspec.structs.replace(node, endpoint=pool.urls[name]) for name, node in desired.nodes.items()}
    pair = desired.lanes["qwen38-pair"]
    assert pair.pool is not None
    facts = msgspec.structs.replace(pair.pool, health_url=pair_health_url(pool.urls))
    lanes = {**desired.lanes, "qwen38-pair": msgspec.structs.replace(pair, pool=facts)}
    return msgspec.structs.replace(desired, nodes=nodes, lanes=lanes)
