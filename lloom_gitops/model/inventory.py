"""Inventory: what was seen of the pool. What can't be told is unknown (None or absent), never a guess or a zero."""

from __future__ import annotations

from decimal import Decimal

from .desired import Link
from .document import Spec
from .words import DomainKind, Feature, LaneState, Liveness, Management, ModelKind, NodeState, Residency, Seen


class Accelerator(Spec):
    """One kind of accelerator of a node."""

    kind: str
    name: str | None = None
    compute_arch: str | None = None
    count: int = 1


class MemoryDomain(Spec):
    """A memory domain. `foreignGb` (GiB) is used by what we don't own; reclaimable cache is not use."""

    id: str
    kind: DomainKind
    capacity_gb: Decimal | None = None
    foreign_gb: Decimal = Decimal(0)


class Disk(Spec):
    """Free disk of a model root: the root's name, never a path. GB."""

    root: str
    free_gb: Decimal | None = None


class Weights(Spec):
    """Weights of an artifact on a node's disk."""

    model: str
    revision: str | None = None


class Admission(Spec):
    """The node's own admission settings, as far as it reports them (GiB and shares)."""

    reserve_gb: Decimal | None = None
    max_utilization: Decimal | None = None
    guard_ceiling: Decimal | None = None
    budget_gb: Decimal | None = None


class GatewayBuild(Spec):
    """What a node's gateway build can do, found by probe."""

    features: tuple[Feature, ...] = ()


class ObservedNode(Spec):
    """What was seen of a node. Absent lists (None) are unknown, empty lists are known to be empty."""

    seen: Seen = Seen.PRESENT
    liveness: Liveness = Liveness.READY
    member: bool = False
    state: NodeState | None = None
    platform: str | None = None
    accelerators: tuple[Accelerator, ...] | None = None
    memory_domains: tuple[MemoryDomain, ...] = ()
    disks: tuple[Disk, ...] | None = None
    weights: tuple[Weights, ...] | None = None
    commands: tuple[str, ...] | None = None
    images: tuple[str, ...] | None = None
    links: tuple[Link, ...] = ()
    admission: Admission = Admission()
    gateway: GatewayBuild = GatewayBuild()


class LaneRecipe(Spec):
    """Where a lane came from."""

    id: str
    version: int | None = None
    digest: str | None = None


class ObservedLane(Spec, kw_only=True):
    """A lane as seen. Memory maps (GiB) are keyed by node, or `node/domain` where the node has several domains."""

    models: tuple[str, ...]
    kind: ModelKind
    nodes: tuple[str, ...]
    management: Management = Management.MANAGED
    owner: str
    state: LaneState = LaneState.UNKNOWN
    residency: Residency = Residency.AUTO
    memory_gb: dict[str, Decimal] = {}
    measured_gb: dict[str, Decimal] = {}
    abort_gb: dict[str, Decimal] = {}
    load_peak_gb: dict[str, Decimal] = {}
    latched: bool = False
    excluded_nodes: tuple[str, ...] = ()
    context_window: int | None = None
    max_sequences: int | None = None
    load_seconds: Decimal | None = None
    start_timeout_seconds: int | None = None
    head_model: str | None = None
    recipe: LaneRecipe | None = None
    started_by: str | None = None


class ObservedAlias(Spec):
    """An alias's route as the head's gateway has it. `lanes` may be left out: the only lane of each model."""

    route: tuple[str, ...]
    lanes: tuple[str | None, ...] | None = None


class Performance(Spec):
    """Warm figures of a model and where they come from (metrics, benchmark, scaled)."""

    ttft_ms: int | None = None
    tokens_per_second: Decimal | None = None
    source: str = "metrics"


class Demand(Spec):
    """Demand of an alias by requested id."""

    requests_per_hour: Decimal
    output_tokens: int | None = None


class Inventory(Spec):
    """Spec of the Inventory document. Maps are keyed by node id, lane id, alias, model."""

    nodes: dict[str, ObservedNode] = {}
    lanes: dict[str, ObservedLane] = {}
    aliases: dict[str, ObservedAlias] = {}
    performance: dict[str, Performance] = {}
    demand: dict[str, Demand] = {}
