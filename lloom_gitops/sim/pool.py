"""Start a pool of simulated gateways as real processes on loopback, and leave nothing running."""

from __future__ import annotations

import copy
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

Doc = dict[str, Any]

SIM_KEY_ENV = "LLOOM_SIM_KEY"
"""Name of the environment variable that holds the pool's admin key, for nodes that call each other and for clients."""

_READY_SECONDS = 30.0
_STOP_SECONDS = 5.0


class PoolError(Exception):
    """A gateway of the pool did not come up, or a control action was refused."""


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """What to start: a gateway config per node id.

    Ports, `cluster.nodes.<id>.endpoint` and the key are filled in by `start_pool`; `{url:<node>}` in any text of a
    config becomes that node's URL. `command` replaces the simulated gateway, e.g. by a real one's command.
    """

    configs: Mapping[str, Doc]
    build: str = "newer"
    time_scale: float = 1.0
    poll_ms: int = 50
    key: str = "sim-admin-key"
    command: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SimPool:
    """A running pool. Kills and restarts single gateways; lanes survive that, as they do in reality."""

    spec: PoolSpec
    folder: Path
    urls: dict[str, str]
    configs: dict[str, Path]
    key: str
    client: httpx.Client
    """Keeps no connection open, so that a gateway may go away between two calls."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """What a client of the pool needs in its environment."""
        return {SIM_KEY_ENV: self.key}

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    def call(self, node: str, method: str, path: str, body: Doc | None = None, timeout: float = 60.0) -> httpx.Response:
        """One admin call to one gateway."""
        return self.client.request(method, self.urls[node] + path, json=body, headers=self.headers(), timeout=timeout)

    def control(self, node: str, action: str, **facts: Any) -> None:
        """Inject a fault or a fixture; see `lloom_gitops.sim.gateway.control`."""
        answer = self.call(node, "POST", "/sim/control", {"action": action, **facts})
        if answer.status_code != 200:
            raise PoolError(f"control {action} on {node}: {answer.text}")

    def edit(self, node: str, change: Mapping[str, Any]) -> None:
        """Merge top-level sections into a node's config file, by rename."""
        path = self.configs[node]
        document = json.loads(path.read_text())
        document.update(copy.deepcopy(dict(change)))
        _write(path, document)

    def start(self, *nodes: str) -> None:
        """Start gateways (again) and wait until they answer."""
        for node in nodes:
            self._launch(node)
        for node in nodes:
            self._await_health(node)

    def kill(self, node: str) -> None:
        """End one gateway without warning. Its lanes live on."""
        self._signal(node, signal.SIGKILL)
        self.processes[node].wait()

    def pause(self, node: str) -> None:
        """Freeze one gateway, as a hung machine would."""
        self._signal(node, signal.SIGSTOP)

    def unpause(self, node: str) -> None:
        self._signal(node, signal.SIGCONT)

    def stop(self) -> None:
        """End every gateway: asked first, then made to."""
        for node, process in self.processes.items():
            if process.poll() is None:
                self._signal(node, signal.SIGCONT)
                self._signal(node, signal.SIGTERM)
        for node, process in self.processes.items():
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._signal(node, signal.SIGKILL)
                process.wait()

    def log(self, node: str) -> str:
        return (self.folder / f"{node}.log").read_text(errors="replace")

    def _launch(self, node: str) -> None:
        with (self.folder / f"{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                [*self._command(node), "--config", str(self.configs[node])],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self._environment(node),
                start_new_session=True,
            )

    def _command(self, node: str) -> list[str]:
        if self.spec.command is not None:
            return list(self.spec.command)
        return [
            sys.executable,
            "-m",
            "lloom_gitops.sim.gateway",
            *("--build", self.spec.build),
            *("--time-scale", str(self.spec.time_scale)),
            *("--poll-ms", str(self.spec.poll_ms)),
            *("--state-file", str(self.folder / f"{node}.state.json")),
        ]

    def _environment(self, node: str) -> dict[str, str]:
        home = self.folder / f"{node}.home"
        home.mkdir(exist_ok=True)
        return {
            **os.environ,
            **self.spec.env,
            **self.env,
            "HOME": str(home),
            "LLOOM_HOME": str(home),
            "LLOOM_METRICS_PATH": str(home / "metrics.json"),
            "LLOOM_NODE_ID": node,
            "NODE_ENV": "production",
        }

    def _await_health(self, node: str) -> None:
        process = self.processes[node]
        deadline = time.perf_counter() + _READY_SECONDS
        while time.perf_counter() < deadline:
            if process.poll() is not None:
                raise PoolError(f"gateway {node} ended with {process.returncode}: {self.log(node)[-2000:]}")
            try:
                if self.client.get(self.urls[node] + "/health", timeout=2.0).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.02)
        raise PoolError(f"gateway {node} did not answer: {self.log(node)[-2000:]}")

    def _signal(self, node: str, number: signal.Signals) -> None:
        try:
            os.killpg(self.processes[node].pid, number)
        except ProcessLookupError:
            return


@contextmanager
def start_pool(spec: PoolSpec, folder: Path) -> Iterator[SimPool]:
    """Start the gateways of `spec` with their files in `folder`; all are gone when the block ends, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    ports = dict(zip(spec.configs, _free_ports(len(spec.configs)), strict=True))
    urls = {node: f"http://127.0.0.1:{port}" for node, port in ports.items()}
    for node, config in spec.configs.items():
        _write(folder / f"{node}.json", _placed(config, node, ports[node], urls))
    files = {node: folder / f"{node}.json" for node in spec.configs}
    with httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)) as client:
        pool = SimPool(spec, folder, urls, files, spec.key, client)
        try:
            pool.start(*spec.configs)
            yield pool
        finally:
            pool.stop()


def _placed(config: Doc, node: str, port: int, urls: Mapping[str, str]) -> Doc:
    """A node's config with its own address and everybody's endpoints."""
    text = json.dumps(config)
    for name, url in urls.items():
        text = text.replace("{url:" + name + "}", url)
    document: Doc = json.loads(text)
    document["server"] = {**document.get("server", {}), "host": "127.0.0.1", "port": port}
    security = document.setdefault("security", {})
    security.setdefault("adminApiKeys", ["${" + SIM_KEY_ENV + "}"])
    cluster = document.setdefault("cluster", {})
    cluster.setdefault("nodeId", node)
    cluster.setdefault("apiKeyEnv", SIM_KEY_ENV)
    for name, entry in cluster.get("nodes", {}).items():
        if name in urls:
            entry["endpoint"] = urls[name]
    return document


def _free_ports(count: int) -> list[int]:
    holders = [socket.socket() for _ in range(count)]
    try:
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [int(holder.getsockname()[1]) for holder in holders]
    finally:
        for holder in holders:
            holder.close()


def _write(path: Path, document: Doc) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(document, indent=2) + "\n")
    temporary.replace(path)
