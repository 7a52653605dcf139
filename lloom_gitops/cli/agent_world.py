"""Ports to drivers for the agent's turns: the real clock, clone, gateways and state folder."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lloom_gitops.agent.apply import Watcher
from lloom_gitops.agent.journal import Journal
from lloom_gitops.agent.lease import Lease
from lloom_gitops.agent.settings import AgentSettings, load_settings
from lloom_gitops.agent.state import StateFolder
from lloom_gitops.agent.world import World
from lloom_gitops.cli.output import tell
from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.drivers.gateway_config import GatewayConfigFile
from lloom_gitops.drivers.gateway_http import HttpGateway
from lloom_gitops.drivers.gateway_http_key import gateway_key
from lloom_gitops.drivers.observe import Observer
from lloom_gitops.gitstore.commits import Author, Identity
from lloom_gitops.gitstore.store import GitStore
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.words import Management
from lloom_gitops.ports import Clock, Gateway


def settings_for(repo: Path, **flags: Any) -> AgentSettings:
    """The local settings: flags, environment, the local file, defaults."""
    return load_settings(repo, os.environ, flags)


@contextmanager
def agent_world(
    repo: Path,
    settings: AgentSettings,
    *,
    stop: Callable[[], str | None],
    watchers: Sequence[Watcher] = (),
    clock: Clock | None = None,
) -> Iterator[tuple[World, Lease]]:
    """The world of one agent process, which holds its state folder meanwhile, and its lease, given back at the end."""
    state = StateFolder(Path(settings.state_dir), lambda: secrets.token_hex(8))
    pool = _Pool(settings, clock or SystemClock())
    with state.held():
        memory = state.recall()
        state.remember(memory)
        world = World(
            store=GitStore(repo, settings.remote, settings.branch),
            settings=settings,
            state=state,
            journal=Journal(Path(settings.state_dir)),
            clock=pool.clock,
            author=lambda: _author(settings, pool.clock),
            observer=pool.observer,
            gateways=pool.gateways,
            config=pool.config,
            stop=stop,
            tell=tell,
            watchers=watchers,
        )
        lease = Lease(world.store, settings, memory.nonce, pool.clock, world.author)
        try:
            yield world, lease
        finally:
            lease.give_back()
            pool.close()


class _Pool:
    """Drivers for the gateways of a desired state; connections are kept while the endpoints stay the same."""

    def __init__(self, settings: AgentSettings, clock: Clock) -> None:
        self.clock = clock
        self._settings = settings
        self._made: dict[str, HttpGateway] = {}
        self._made_for: Desired | None = None

    def observer(self, desired: Desired, nodes: Collection[str] | None) -> Observer:
        here = self._here(desired)
        return Observer(here, lambda node: gateway_key(node, os.environ), self.clock, nodes=nodes)

    def gateways(self, desired: Desired) -> Mapping[str, Gateway]:
        if desired != self._made_for:
            self.close()
            self._made = dict(self._make(self._here(desired)))
            self._made_for = desired
        return self._made

    def config(self, desired: Desired) -> GatewayConfigFile | None:
        path, head = self._settings.gateway_config, desired.pool.head
        if path is None or head not in self.gateways(desired):
            return None
        return GatewayConfigFile(Path(path), self._made[head], self.clock)

    def close(self) -> None:
        for gateway in self._made.values():
            gateway.close()
        self._made, self._made_for = {}, None

    def _make(self, here: Desired) -> Iterator[tuple[str, HttpGateway]]:
        health = {
            name: lane.pool.health_url
            for name, lane in here.lanes.items()
            if lane.management is Management.UNMANAGED and lane.pool is not None and lane.pool.health_url is not None
        }
        for name, node in here.nodes.items():
            if node.endpoint is not None:
                key = gateway_key(node, os.environ)
                yield name, HttpGateway(node.endpoint, key, self.clock, health_urls=health)

    def _here(self, desired: Desired) -> Desired:
        """`desired` with the addresses by which this machine reaches the nodes."""
        replace = msgspec.structs.replace
        moved = {
            name: replace(node, endpoint=self._settings.endpoints.get(name, node.endpoint))
            for name, node in desired.nodes.items()
        }
        return replace(desired, nodes=moved)


def _author(settings: AgentSettings, clock: Clock) -> Author:
    return Author(Identity(settings.author_name, settings.author_email), clock.now(), settings.signing_key)


class Signals:
    """SIGTERM and SIGINT as a wish to end at the next safe point; a second SIGINT ends at once."""

    def __init__(self) -> None:
        self._asked: str | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on)

    def asked(self) -> str | None:
        """The name of the signal that asked for an end."""
        return self._asked

    def _on(self, number: int, _frame: object) -> None:
        if self._asked is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._asked = signal.Signals(number).name
