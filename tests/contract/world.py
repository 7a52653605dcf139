"""The pool that the contract is tried on: three gateways, their lanes, and a handle to ask them."""

from __future__ import annotations

import functools
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from lloom_gitops.sim.pool import SimPool

Doc = dict[str, Any]
SCALE = 20.0
"""How much faster a simulated lane is than its `sim` block says; the waits of a gateway itself shrink with it."""
N1, N2, N3 = "spark-node-01", "spark-node-02", "spark-node-03"
NODES = (N1, N2, N3)
INFERENCE_KEY = "inference-key"

# lane: (node, memoryGb, extra fields, load seconds, sim block, extra arguments of the real lane)
LANES: dict[str, tuple[str, float, Doc, float, Doc, list[str]]] = {
    "embed-01": (N1, 12, {"keepWarm": True, "policy": {"priority": 200}}, 0.1, {}, []),
    "chat-a-01": (N1, 40, {"policy": {"priority": 50}, "warmup": True}, 0.25, {}, []),
    "chat-a-02": (N2, 40, {}, 0.25, {}, []),
    "flash-head": (N1, 0, {}, 0.2, {}, []),
    "flash-worker": (N2, 0, {}, 0.2, {}, []),
    "image-03": (N3, 30, {}, 0.2, {}, []),
    "big-03": (N3, 100, {}, 0.2, {}, []),
    "pinned-03": (N3, 20, {"keepWarm": True}, 0.1, {}, []),
    "crash-03": (N3, 1, {}, 0.2, {"failStart": "out of luck"}, ["--exit-after", "0.2", "--load-seconds", "60"]),
    "slow-03": (N3, 1, {"startupTimeoutMs": 300}, 0.2, {"hang": True}, ["--load-seconds", "60"]),
    "huge-03": (N3, 500, {}, 0.2, {}, []),
    "disabled-03": (N3, 1, {"enabled": False}, 0.2, {}, []),
    "external-03": (N3, 1, {"management": "external"}, 0.2, {}, []),
}
_MODELS = {
    "acme/embed-4b": ("embedding", "embed-01"),
    "acme/big": ("chat", "big-03"),
    "acme/image": ("image", "image-03"),
    "acme/pinned": ("chat", "pinned-03"),
    "acme/huge": ("chat", "huge-03"),
    "acme/disabled": ("chat", "disabled-03"),
}
_QUICK: Doc = {"rssGb": 0.1, "requestSeconds": 0.5, "tokensPerSecond": 10}
_GROUP: Doc = {
    "enabled": True,
    "maxConcurrency": 4,
    "placement": {
        "mode": "distributed",
        "members": [
            {"node": N2, "runtime": "flash-worker", "role": "worker", "order": 10, "resources": {"memoryGb": 84}},
            {"node": N1, "runtime": "flash-head", "role": "head", "order": 20, "resources": {"memoryGb": 84}},
        ],
    },
}


def configs(pids: Path) -> dict[str, Doc]:
    """One config a node. Lanes carry both: a command for a real gateway and a `sim` block for a simulated one."""
    ports = dict(zip(LANES, _free_ports(len(LANES)), strict=True))
    runtimes = {lane: _runtime(lane, ports[lane], pids) for lane in LANES}
    runtimes["flash-tp2"] = {**_GROUP, "healthUrl": f"http://127.0.0.1:{ports['flash-head']}/health"}
    backends: Doc = {lane: {"type": "openai", "baseUrl": f"http://127.0.0.1:{port}/v1"} for lane, port in ports.items()}
    models = [_model(name, kind, lane) for name, (kind, lane) in _MODELS.items()]
    models.append({**_model("acme/flash", "chat", "flash-tp2"), "backend": "flash-head"})
    models.append(_two_targets())
    shared: Doc = {
        "security": {"adminApiKeys": ["${LLOOM_SIM_KEY}"], "apiKeys": [INFERENCE_KEY], "allowMissingAuth": True},
        "community": {"hostUrl": None, "autoStartLocalHost": False},
        "defaults": {"chatModel": "acme/chat-a", "embeddingModel": "acme/embed-4b"},
        "runtimePolicy": {"autoEvict": True, "admissionWaitMs": 200},
        "cluster": {
            "id": "loopback",
            "leaderNode": N1,
            "statusCacheMs": 200,
            "nodes": {node: _node(node) for node in NODES},
        },
        "backends": backends,
        "runtimes": runtimes,
        "models": models,
        "aliases": {
            "chat": {"target": "acme/chat-a", "description": "default chat lane"},
            "embeddings": "acme/embed-4b",
        },
    }
    return {node: {"name": node, **shared} for node in NODES}


def _node(node: str) -> Doc:
    role = "leader" if node == N1 else "worker"
    return {"labels": {"role": role}, "resources": {"memoryGb": 128, "memoryBudgetGb": 112}}


def _runtime(lane: str, port: int, pids: Path) -> Doc:
    node, memory, extra, load, sim, arguments = LANES[lane]
    fields = dict(extra)
    if fields.pop("warmup", False):
        fields["warmup"] = {"url": f"http://127.0.0.1:{port}/v1/chat/completions", "body": {"messages": []}}
    script = Path(__file__).with_name("fake_lane.py")
    own = arguments or ["--load-seconds", str(load)]
    return {
        "enabled": True,
        "maxConcurrency": 2,
        "node": node,
        "command": sys.executable,
        "args": [str(script), "--port", str(port), "--pids", str(pids), *own],
        "port": port,
        "healthUrl": f"http://127.0.0.1:{port}/health",
        "startupTimeoutMs": 30000,
        **({"memoryGb": memory} if memory else {}),
        **fields,
        "sim": {"loadSeconds": SCALE * (load if lane.startswith("chat") else load / 4), **_QUICK, **sim},
    }


def _model(name: str, kind: str, lane: str) -> Doc:
    upstream = name.removeprefix("acme/")
    return {
        "id": name,
        "name": name,
        "kind": kind,
        "backend": lane,
        "runtime": lane,
        "upstreamModel": upstream,
        "contextWindow": 32768,
    }


def _two_targets() -> Doc:
    targets = [{"id": node, "node": node, "backend": lane, "runtime": lane, "weight": 1} for node, lane in _CHAT]
    body: Doc = {"id": "acme/chat-a", "name": "chat-a", "kind": "chat", "upstreamModel": "chat-a"}
    return {**body, "contextWindow": 32768, "targets": targets}


_CHAT = [(N1, "chat-a-01"), (N2, "chat-a-02")]


def _free_ports(count: int) -> list[int]:
    holders = [socket.socket() for _ in range(count)]
    for holder in holders:
        holder.bind(("127.0.0.1", 0))
    found = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return found


@dataclass
class Gateways:
    """A running pool of one backend. `build` is snapshot or newer; `simulated` tells whether faults can be injected."""

    pool: SimPool
    build: str
    simulated: bool

    @property
    def newer(self) -> bool:
        return self.build == "newer"

    def call(
        self, node: str, method: str, path: str, body: Doc | None = None, *, key: str | None = "admin", **more: Any
    ) -> httpx.Response:
        headers = {} if key is None else {"authorization": f"Bearer {self.pool.key if key == 'admin' else key}"}
        timeout = more.pop("timeout", 30)
        url = self.pool.urls[node] + path
        return self.pool.client.request(method, url, json=body, headers=headers, timeout=timeout, **more)

    def get(self, node: str, path: str) -> Doc:
        answer = self.call(node, "GET", path)
        assert answer.status_code == 200, answer.text
        body: Doc = answer.json()
        return body

    def act(self, lane: str, action: str, body: Doc | None = None, *, via: str | None = None) -> httpx.Response:
        """A lifecycle call to the gateway that owns the lane (`via` another one)."""
        return self.call(via or self.owner(lane), "POST", f"/gateway/runtimes/{lane}/{action}", body or {})

    def owner(self, lane: str) -> str:
        return LANES[lane][0] if lane in LANES else N1

    def row(self, lane: str) -> Doc:
        """A lane's row as its own gateway shows it now."""
        if lane not in LANES:
            return self.get(N1, "/gateway/status")["runtimeManager"]["runtimes"][lane]
        return self.get(self.owner(lane), "/gateway/node")["node"]["runtimeManager"]["runtimes"][lane]

    def plan(self, lane: str, node: str | None = None) -> Doc:
        return self.get(node or self.owner(lane), f"/gateway/runtimes/plan?runtime={lane}")

    def up(self, *lanes: str) -> None:
        for lane in lanes:
            answer = self.act(lane, "start", {"force": False, "warmup": False})
            assert answer.json()["healthy"] is True, answer.text

    def settle(self) -> None:
        """Wait until every gateway sees every other one; what it saw last holds for a while."""
        for node in NODES:
            wait_until(functools.partial(self._sees_all, node), what=f"{node} seeing the others")

    def _sees_all(self, node: str) -> bool:
        blocks = self.get(node, "/gateway/cluster")["cluster"]["nodes"]
        return all(block["reachable"] for block in blocks.values())

    def revive(self, node: str) -> None:
        """Start a gateway that was killed, and let the others notice."""
        self.pool.start(node)
        self.settle()

    def reset(self) -> None:
        """Everything down but the pins, which are up."""
        for node in NODES:
            for lane, row in self.get(node, "/gateway/node")["node"]["runtimeManager"]["runtimes"].items():
                if row["keepWarm"] and not row["healthy"]:
                    self.up(lane)
                elif not row["keepWarm"] and (row["healthy"] or row["pid"] is not None):
                    self.stop_for_leader(lane)

    def stop_for_leader(self, lane: str) -> httpx.Response:
        """Stop a lane at its own gateway; newer builds let only the leader stop a group's member."""
        headers = self.pool.headers()
        if lane in ("flash-head", "flash-worker"):
            headers["x-lloom-requester-node"] = N1
        url = f"{self.pool.urls[self.owner(lane)]}/gateway/runtimes/{lane}/stop"
        return self.pool.client.post(url, headers=headers, timeout=30)


def wait_until(condition: Callable[[], bool], seconds: float = 10.0, what: str = "it") -> None:
    """Poll until `condition` holds; fails when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
