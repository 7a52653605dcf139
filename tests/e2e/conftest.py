"""Worlds with planted keys and backend addresses: whatever a test does, it can ask whether one of them got out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.sim.hand_run import HandRunServer
from lloom_gitops.sim.pool import start_pool
from lloom_gitops.sim.three_spark import HEAD, three_spark_configs, three_spark_spec

from .leaks import leaks, leaks_beside_peoples
from .world import World

TIME_SCALE = 600.0
"""A load of three minutes takes 0.3 s."""

ADMIN_KEY = "sk-planted-admin-5b1cf0a3e9d24c77"
CLOUD_KEY = "sk-or-v1-planted-0123456789abcdef0123456789abcdef"
LITERAL_KEY = "planted-literal-6f0e8d1c2b3a4958"
TOKEN = "hf_plantedTokenOfALaneQ7w8E9r0T1"
BACKEND = "planted-backend.internal"
HEALTH_PATH = "/planted-health-path"
SECRET = (ADMIN_KEY, CLOUD_KEY, LITERAL_KEY, TOKEN, BACKEND)
"""What must stand nowhere."""


def planted(build: str) -> dict[str, Any]:
    """The pool's gateway configs, with keys and addresses in every place that real ones have them."""
    configs = three_spark_configs(build=build)
    head = configs[HEAD]
    head["security"] = {"adminApiKeys": ["${LLOOM_SIM_KEY}", LITERAL_KEY]}
    head["backends"]["openrouter"] = {"type": "openai", "baseUrl": f"https://{BACKEND}/v1", "apiKey": CLOUD_KEY}
    for lane, entry in configs["spark-node-03"]["runtimes"].items():
        entry["env"] = {"HF_TOKEN": TOKEN}
        entry["args"] = [*entry["args"], "--api-key", LITERAL_KEY, "--peer", f"http://{BACKEND}:9099/{lane}"]
    return configs


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes the world of this test: `build` of the gateways, `change` of their configs."""
    with ExitStack() as stack:

        def make(build: str = "newer", change: Callable[[dict[str, Any]], None] | None = None) -> World:
            configs = planted(build)
            if change is not None:
                change(configs)
            spec = three_spark_spec(build=build, time_scale=TIME_SCALE)
            spec = replace(spec, configs=configs, key=ADMIN_KEY, env={"OPENROUTER_SIM_KEY": CLOUD_KEY})
            pool = stack.enter_context(start_pool(spec, tmp_path / "gateways"))
            pair = stack.enter_context(HandRunServer(HEALTH_PATH))
            return World(tmp_path, pool, pair)

        yield make


def assert_nothing_leaked(world: World) -> None:
    """No key and no backend's address anywhere; no gateway's or health address but in people's own documents."""
    repositories, folders = [world.remote, world.desk, world.home], [world.state]
    assert leaks(SECRET, repositories, folders, world.heard) == set()
    addresses = [HEALTH_PATH, *(url.removeprefix("http://") for url in world.pool.urls.values())]
    assert leaks_beside_peoples(addresses, repositories, folders, world.heard) == set()
