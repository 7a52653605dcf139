"""`python -m lloom_gitops.sim.gateway --config FILE --build snapshot|newer`: a simulated gateway as a process.

Prints one line with its URL when it listens; SIGTERM ends it with 0. With `--state-file` its lanes survive it, as the
model servers of a real gateway do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from lloom_gitops.sim.gateway.admit import boot
from lloom_gitops.sim.gateway.auth import is_loopback
from lloom_gitops.sim.gateway.control import seed_metrics
from lloom_gitops.sim.gateway.document import Build, GatewayConfig
from lloom_gitops.sim.gateway.hardware import machine_block, total_gb
from lloom_gitops.sim.gateway.http import GatewayApp
from lloom_gitops.sim.gateway.machine import Machine
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.reading import InvalidConfig, read_config
from lloom_gitops.sim.gateway.runner import Runner, restore_state


def main(argv: Sequence[str] | None = None) -> int:
    """Run one gateway until SIGTERM or SIGINT; 1 when the config can't be used."""
    options = _parser().parse_args(argv)
    build = Build(options.build)
    try:
        config = read_config(json.loads(options.config.read_text()), build, os.environ)
    except (OSError, ValueError, InvalidConfig) as error:
        print(f"{options.config.name}: {error}", file=sys.stderr)
        return 1
    server = config.doc["server"]
    if not is_loopback(server["host"]) and config.doc["security"]["allowNonLoopbackBind"] is not True:
        print(f"Refusing to bind to non-loopback host {server['host']}.", file=sys.stderr)
        return 1
    node = make_node(config, wall_ms(), time_scale=options.time_scale)
    if options.state_file is None or not restore_state(node, options.state_file):
        furnish(node)
    asyncio.run(_serve(node, options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lloom_gitops.sim.gateway", description="A simulated LLooM gateway."
    )
    parser.add_argument("--config", type=Path, required=True, help="the gateway's JSON config")
    parser.add_argument("--build", choices=[build.value for build in Build], default=Build.SNAPSHOT.value)
    parser.add_argument("--time-scale", type=float, default=1.0, help="divides load, warm-up and request times")
    parser.add_argument("--state-file", type=Path, help="where lanes and metrics outlive the process")
    parser.add_argument("--poll-ms", type=int, default=500, help="how often the config file is looked at")
    return parser


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def make_node(config: GatewayConfig, now: int, *, time_scale: float = 1.0) -> Node:
    """A node over the machine that the config's `sim` block describes, nothing running yet."""
    block = machine_block(config)
    sim = config.doc.get("sim") or {}
    machine = Machine(total_gb=total_gb(config), foreign_gb=float(block.get("foreignGb", 0)), time_scale=time_scale)
    for name, facts in (sim.get("unmanaged") or {}).items():
        machine.unmanaged[name] = facts.get("up", True) is True
        machine.unmanaged_gb[name] = float(facts.get("memoryGb", 0))
    return Node(config, machine, now, pid=os.getpid(), boot_id=f"{os.getpid()}-{now}")


def furnish(node: Node) -> None:
    """What is there already the first time: lanes with `sim.running`, requests of `sim.served`."""
    config = node.config
    for lane, entry in config.runtimes.items():
        if config.is_local(lane) and (entry.get("sim") or {}).get("running") is True:
            _put_up(node, lane)
    seed_metrics(node, list((config.doc.get("sim") or {}).get("served") or []))


def _put_up(node: Node, lane: str) -> None:
    """A lane that runs already when the gateway comes up, started by it as far as anybody can tell."""
    process = node.machine.spawn(lane, node.traits(lane), node.now)
    process.ready_at = node.now
    state = node.state(lane)
    state.child, state.starts, state.started_at = process.pid, 1, node.now
    node.set_status(lane, "running")


class _Server(uvicorn.Server):
    """Leaves signals to us: uvicorn would raise them again after its shutdown and end with the signal's status."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(node: Node, options: argparse.Namespace) -> None:
    runner = Runner(node, options.config, options.state_file, wall_ms)
    address = node.config.doc["server"]
    settings = uvicorn.Config(
        GatewayApp(runner),
        host=address["host"],
        port=address["port"],
        http="h11",
        ws="none",
        lifespan="off",
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
    server = _Server(settings)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)
    serving = asyncio.create_task(server.serve())
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    if server.started:
        print(f"simulated {node.build} gateway listening on http://{address['host']}:{address['port']}", flush=True)
    node.run(boot(node))
    runner.kick()
    watching = asyncio.create_task(runner.watch_config(options.poll_ms / 1000))
    await serving
    watching.cancel()
    await runner.close()
