"""Desired state: what people write (nodes, aliases, lanes, profiles, pins, policies) and the whole of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from .document import Spec
from .pool import Memory, Pool
from .recipe import Recipe
from .words import Management, ModelKind, NodeState, Residency


class Link(Spec):
    """A direct link to a peer node over a fabric; symmetric."""

    peer: str
    fabric: str


class Node(Spec):
    """Spec of a Node document. `apiKeyEnv` and `apiKeyFile` name where the key is; never the key."""

    endpoint: str | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    state: NodeState = NodeState.SERVE
    reason: str | None = None
    drain_seconds: int = 1800
    assume_memory_gb: Decimal | None = None
    links: tuple[Link, ...] = ()
    memory: Memory = Memory()


class Needs(Spec):
    """What an alias needs of a model; left out: anything will do."""

    kind: ModelKind | None = None
    context_window: int | None = None
    sequences: int | None = None


class Slo(Spec):
    """Latency goals of an alias, warm."""

    ttft_ms: int | None = None
    tokens_per_second: Decimal | None = None


class Alias(Spec):
    """An alias: models in order of preference, external ones as a fallback (documents.md, Aliases)."""

    models: tuple[str, ...]
    external: tuple[str, ...] = ()
    needs: Needs = Needs()
    slo: Slo = Slo()
    residency: Residency = Residency.AUTO
    interim: str = "local"
    priority: int = 100


class Aliases(Spec):
    """Spec of an Aliases document."""

    unlisted: str = "keep"
    aliases: dict[str, Alias] = {}


class ManualWords(Spec):
    """What a person must do to start or stop an unmanaged lane; printed in manual steps."""

    start: str | None = None
    stop: str | None = None


class PoolFacts(Spec):
    """Facts of an unmanaged lane that let the planner reason about it. `memoryGb` is GiB per node."""

    models: tuple[str, ...]
    kind: ModelKind
    nodes: tuple[str, ...]
    memory_gb: Decimal
    context_window: int | None = None
    max_sequences: int | None = None
    load_seconds: int | None = None
    health_url: str | None = None


class Lane(Spec):
    """Spec of a Lane document: a lane LLooM does not manage, or settings of one that it does."""

    management: Management = Management.MANAGED
    state: str = "any"
    when_unrouted: str = "keep"
    manual: ManualWords = ManualWords()
    pool: PoolFacts | None = None


class Profile(Spec):
    """Spec of a Profile: hard routes, residency (by lane id or MODEL@NODE) and pins while it is active."""

    routes: dict[str, tuple[str, ...]] = {}
    residency: dict[str, Residency] = {}
    pins: dict[str, Pin] = {}


class Pin(Spec):
    """A hard wish that a model is served from a node (MODEL@NODE or MODEL@NODE+NODE)."""

    residency: Residency | None = None
    recipe: str | None = None
    reason: str | None = None
    expires: str | None = None


class Confirmation(Spec):
    """Permission for a plan's stops or gaps, or word that a manual step (by id) is done."""

    plan: str
    allows: tuple[str, ...]
    reason: str | None = None


class Suspend(Spec):
    """Whether applying is suspended, and why."""

    on: bool = False
    reason: str | None = None


class Holds(Spec):
    """Spec of the Holds document."""

    suspend: Suspend = Suspend()


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """The whole desired state (the desired digest covers exactly this), plus nothing that approving would change.

    Maps are keyed by document name (or alias, or pin key); all are sorted by key when they come from the codec.
    """

    name: str
    pool: Pool
    nodes: dict[str, Node] = {}
    node_labels: dict[str, dict[str, str]] = {}
    unlisted: str = "keep"
    aliases: dict[str, Alias] = {}
    lanes: dict[str, Lane] = {}
    profiles: dict[str, Profile] = {}
    pins: dict[str, Pin] = {}
    policies: dict[str, dict[str, Any]] = {}
    recipes: dict[str, Recipe] = {}
