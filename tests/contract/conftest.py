"""One pool a backend: the simulated builds, and the real gateway where LLOOM_GATEWAY names its command."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lloom_gitops.sim.pool import PoolSpec, start_pool
from tests.contract.world import N1, SCALE, Gateways, configs

REAL = "LLOOM_GATEWAY"


@pytest.fixture(scope="session", params=["snapshot", "newer", "real"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    backend: str = request.param
    command = shlex.split(os.environ.get(REAL, ""))
    if backend == "real" and not command:
        pytest.skip(f"{REAL} does not name the command of a real gateway, e.g. 'node bin/lloom.mjs serve'")
    folder = tmp_path_factory.mktemp(backend)
    pids = folder / "pids"
    pids.mkdir()
    build = "snapshot" if backend == "real" else backend
    spec = PoolSpec(configs(pids), build=build, time_scale=SCALE, command=command if backend == "real" else None)
    try:
        with start_pool(spec, folder) as pool:
            health = pool.client.get(pool.urls[N1] + "/health").json()
            gateways = Gateways(pool, "newer" if "pid" in health else "snapshot", simulated=backend != "real")
            gateways.settle()
            yield gateways
    finally:
        # A real gateway's lanes outlive it.
        for pid in pids.iterdir():
            _kill(int(pid.name))


def _kill(pid: int) -> None:
    try:
        if b"fake_lane.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    except OSError:
        return


@pytest.fixture
def gateways(running: Gateways) -> Gateways:
    """The pool with everything down but its pins."""
    running.reset()
    return running
