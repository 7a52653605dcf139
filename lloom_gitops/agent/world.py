"""What a turn of the agent touches, as ports: the fleet's store, the pool's eyes and hands, clock, own folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lloom_gitops.agent.apply import Keeper, Watcher
from lloom_gitops.agent.settings import AgentSettings
from lloom_gitops.agent.state import Memory
from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.history import LoggedCommit
from lloom_gitops.gitstore.lease import Sighting
from lloom_gitops.gitstore.remote import PushOutcome, RefUpdate
from lloom_gitops.gitstore.store import Published
from lloom_gitops.gitstore.trees import Tree
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.ports import Clock, Gateway, GatewayConfig


class FleetStore(Protocol):
    """The clone and its remote, as `gitstore.GitStore` has them."""

    branch_ref: str

    def fetch(self, *refs: str) -> str | None: ...

    def tip(self, ref: str | None = None) -> str | None: ...

    def read_tree(self, rev: str, prefixes: Sequence[str] = ()) -> Tree: ...

    def read_file(self, rev: str, path: str) -> bytes | None: ...

    def is_ancestor(self, older: str, newer: str) -> bool: ...

    def log(
        self, rev: str, paths: Sequence[str] = (), *, limit: int | None = None, first_parent: bool = False
    ) -> list[LoggedCommit]: ...

    def commits_touching(self, rev: str, prefixes: Sequence[str]) -> list[str]: ...

    def history_of(self, rev: str, path: str) -> list[tuple[str, str]]: ...

    def find_content(self, rev: str, path: str, matches: Callable[[bytes], bool]) -> tuple[str, bytes] | None: ...

    def commit(self, parent: str | None, draft: Draft, author: Author) -> str | None: ...

    def list_remote(self, refs: Sequence[str]) -> dict[str, str]: ...

    def push(self, updates: Sequence[RefUpdate], *, rewind: bool = False) -> PushOutcome: ...

    def publish(
        self, build: Callable[[str | None], Draft | None], author: Author, *, ref: str | None = None
    ) -> Published: ...

    def write_note_ref(self, ref: str, draft: Draft, author: Author) -> str | None: ...

    def fast_forward_worktree(self, target: str) -> bool: ...

    def sight_lease(self, before: Sighting | None, now: float) -> Sighting: ...

    def take_lease(
        self, seen: Sighting, holder: str, nonce: str, ttl_seconds: float, now: float, author: Author
    ) -> Sighting: ...

    def release_lease(self, mine: Sighting, author: Author) -> None: ...


class Observation(Protocol):
    """What one look at the pool found, as `drivers.observe.Observation` has it."""

    @property
    def inventory(self) -> Inventory: ...

    @property
    def answered(self) -> frozenset[str]: ...

    @property
    def failed(self) -> bool: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


class PoolObserver(Protocol):
    """Looks at gateways, as `drivers.observe.Observer` does."""

    def observe(self, previous: Inventory, last_answer: Mapping[str, float]) -> Observation: ...


class StateKeeper(Protocol):
    """The agent's memory (`agent.state.StateFolder`)."""

    def recall(self) -> Memory: ...

    def remember(self, memory: Memory) -> None: ...


class ApplyJournal(Keeper, Protocol):
    """The journal of the apply in hand (`agent.journal.Journal`)."""

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything outside the decisions. `observer` makes an observer of some nodes (None: all), `gateways` the ports
    of the nodes with an endpoint, `config` that of the head's config file (None: the agent was not told where it lies).
    `author` says who commits now. `stop` names the signal that asks for an end. `tell` says a line to a person."""

    store: FleetStore
    settings: AgentSettings
    state: StateKeeper
    journal: ApplyJournal
    clock: Clock
    author: Callable[[], Author]
    observer: Callable[[Desired, Collection[str] | None], PoolObserver]
    gateways: Callable[[Desired], Mapping[str, Gateway]]
    config: Callable[[Desired], GatewayConfig | None]
    stop: Callable[[], str | None]
    tell: Callable[[str], None]
    watchers: Sequence[Watcher] = ()
