"""A node as its own gateway shows it (pure): hardware, memory domains, links, admission, build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from lloom_gitops.catalog.sighting_wire import amount, choice, items, last_part, table, whole, word
from lloom_gitops.catalog.sighting_words import features
from lloom_gitops.model.desired import Desired, Link, Node
from lloom_gitops.model.inventory import (
    Accelerator,
    Admission,
    Disk,
    GatewayBuild,
    MemoryDomain,
    ObservedNode,
    Weights,
)
from lloom_gitops.model.pool import LivenessRule
from lloom_gitops.model.words import DomainKind, Liveness, Seen

_GIB = 1024**3
_ROUNDING_GB = Decimal("0.2")
_UNIFIED_TAGS = frozenset({"gb10", "dgx-spark"})
_VENDORS = ("NVIDIA ", "Apple ", "AMD ")


class NodeBodies(msgspec.Struct, frozen=True, kw_only=True):
    """What one gateway answered, by route; None where a route gave no usable answer.

    `has_profiles`: whether the build knows fleet profiles. `node` is the answer to `/gateway/node?inventory=1`.
    """

    node: dict[str, Any]
    status: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    routing: dict[str, Any] | None = None
    models: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None
    profile: dict[str, Any] | None = None
    has_profiles: bool | None = None

    @property
    def block(self) -> dict[str, Any]:
        """The node's own block."""
        return table(self.node.get("node"))

    @property
    def machine(self) -> dict[str, Any]:
        """The machine profile."""
        return table(self.block.get("profile")) or (self.profile or {})

    @property
    def inventory(self) -> dict[str, Any]:
        """The structured inventory of newer builds; empty on older ones, whose machine profile must do (INV-3)."""
        return table(self.block.get("inventory"))


def liveness(rule: LivenessRule, seconds_without_answer: float) -> Liveness:
    """Liveness of a node by the time since it last answered."""
    if seconds_without_answer >= rule.lost_seconds:
        return Liveness.LOST
    return Liveness.SUSPECT if seconds_without_answer >= rule.suspect_seconds else Liveness.READY


def silent_node(rule: LivenessRule, previous: ObservedNode | None, seconds: float | None) -> ObservedNode:
    """A node that did not answer: its last known facts, unseen (lifecycle.md, Nodes).

    `seconds` since its last answer; None where nobody knows, which makes it suspect, unless it was lost or left.
    """
    known = previous or ObservedNode()
    if seconds is None:
        state = known.liveness if known.liveness.gone else Liveness.SUSPECT
    else:
        state = liveness(rule, seconds)
    return msgspec.structs.replace(known, seen=Seen.UNKNOWN, liveness=state)


def seen_node(
    name: str, desired: Desired, previous: ObservedNode | None, bodies: NodeBodies, foreign_gb: Decimal | None
) -> ObservedNode:
    """A node that answered. `foreign_gb` is what the machine uses beyond our lanes, where that could be told."""
    inventory, machine = bodies.inventory, bodies.machine
    declared = desired.nodes.get(name)
    known = previous or ObservedNode()
    found = features(bodies.node, bodies.routing, bodies.has_profiles)
    return ObservedNode(
        member=known.member,
        state=known.state,
        platform=word(inventory.get("platform")) or word(machine.get("platformId")),
        accelerators=_accelerators(inventory, machine),
        memory_domains=_domains(bodies, known, declared, foreign_gb),
        disks=_disks(inventory),
        weights=_weights(inventory),
        commands=_names(inventory, "commands"),
        images=_names(inventory, "images"),
        links=_links(name, desired, inventory, machine),
        admission=_admission(name, bodies, known),
        gateway=known.gateway if found is None else GatewayBuild(features=found),
    )


def _accelerators(inventory: Mapping[str, Any], machine: Mapping[str, Any]) -> tuple[Accelerator, ...] | None:
    if "accelerators" in inventory:
        rows = [table(row) for row in items(inventory["accelerators"])]
        return tuple(
            Accelerator(
                kind=kind,
                name=word(row.get("name")),
                compute_arch=word(row.get("computeArch")),
                count=whole(row.get("count")) or 1,
            )
            for row in rows
            if (kind := word(row.get("kind"))) is not None
        )
    if machine.get("isAppleSilicon") is True and not items(machine.get("devices")):
        brand = word(machine.get("cpuBrand")) or ""
        name = brand.removeprefix("Apple ") if brand.startswith("Apple ") else None
        return (Accelerator(kind="metal", name=name, compute_arch="apple-metal"),)
    if (not items(machine.get("devices")) and items(machine.get("accelerators"))) or "devices" not in machine:
        return None
    counts = Counter(filter(None, (_device(table(row)) for row in items(machine["devices"]))))
    return tuple(msgspec.structs.replace(device, count=count) for device, count in counts.items())


def _device(row: Mapping[str, Any]) -> Accelerator | None:
    kind, name = word(row.get("backend")) or word(row.get("kind")), word(row.get("name"))
    if kind is None:
        return None
    for vendor in _VENDORS:
        name = name.removeprefix(vendor) if name else name
    capability = word(row.get("computeCapability"))
    arch = f"sm_{capability.replace('.', '')}" if capability else "apple-metal" if kind == "metal" else None
    return Accelerator(kind=kind, name=name, compute_arch=arch)


def _domains(
    bodies: NodeBodies, known: ObservedNode, declared: Node | None, foreign_gb: Decimal | None
) -> tuple[MemoryDomain, ...]:
    reported = items(bodies.inventory.get("memoryDomains")) or items(bodies.machine.get("memoryDomains"))
    rows = [domain for row in map(table, reported) if (domain := _domain(row)) is not None]
    if _is_unified(bodies) or any(domain.kind is DomainKind.UNIFIED for domain in rows):
        rows = [_unified(bodies, rows, declared)]
    if not rows:
        return known.memory_domains
    host = next((index for index, row in enumerate(rows) if row.kind is not DomainKind.DEVICE), None)
    if host is None or any("foreignGb" in table(row) for row in reported):
        return tuple(rows)
    if foreign_gb is None or len(rows) > 1:
        before = {domain.id: domain.foreign_gb for domain in known.memory_domains}
        foreign_gb = before.get(rows[host].id, Decimal(0))
    rows[host] = msgspec.structs.replace(rows[host], foreign_gb=foreign_gb)
    return tuple(rows)


def _domain(row: Mapping[str, Any]) -> MemoryDomain | None:
    name, kind = word(row.get("id")), choice(row.get("kind"), DomainKind)
    if name is None or kind is None:
        return None
    return MemoryDomain(
        id=name,
        kind=kind,
        capacity_gb=amount(row.get("capacityGb")) or None,
        foreign_gb=amount(row.get("foreignGb")) or Decimal(0),
    )


def _is_unified(bodies: NodeBodies) -> bool:
    """A GB10 and Apple silicon have one memory for all, whatever domains the gateway lists."""
    machine = bodies.machine
    tags = {str(tag).lower() for tag in items(machine.get("accelerators"))}
    for device in map(table, items(machine.get("devices"))):
        tags |= {str(tag).lower() for tag in items(device.get("accelerators"))}
        tags |= {"gb10"} if "GB10" in str(device.get("name")) else set()
    return machine.get("isAppleSilicon") is True or bool(tags & _UNIFIED_TAGS)


def _unified(bodies: NodeBodies, rows: list[MemoryDomain], declared: Node | None) -> MemoryDomain:
    """One domain: its own figure where there is one, else the machine's total, else what people declared."""
    own = next((row for row in rows if row.kind is DomainKind.UNIFIED), None)
    memory = table(table(bodies.block.get("telemetry")).get("memory"))
    live = amount(memory.get("totalBytes"), 0)
    total = amount(bodies.machine.get("totalMemoryGb")) or (amount(live / _GIB) if live else None)
    capacity = (own.capacity_gb if own else None) or total or (declared.assume_memory_gb if declared else None)
    return MemoryDomain(
        id=own.id if own else "unified:0",
        kind=DomainKind.UNIFIED,
        capacity_gb=capacity,
        foreign_gb=own.foreign_gb if own else Decimal(0),
    )


def _disks(inventory: Mapping[str, Any]) -> tuple[Disk, ...] | None:
    if "disks" not in inventory:
        return None
    rows = map(table, items(inventory["disks"]))
    named = ((last_part(row.get("root")), amount(row.get("freeGb"), 0)) for row in rows)
    return tuple(Disk(root=root, free_gb=free) for root, free in named if root is not None)


def _weights(inventory: Mapping[str, Any]) -> tuple[Weights, ...] | None:
    if "weights" not in inventory:
        return None
    rows = map(table, items(inventory["weights"]))
    named = ((word(row.get("model")), word(row.get("revision"))) for row in rows)
    return tuple(Weights(model=model, revision=revision) for model, revision in named if model is not None)


def _names(inventory: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    if key not in inventory:
        return None
    return tuple(sorted({name for value in items(inventory[key]) if (name := word(value)) is not None}))


def _links(name: str, desired: Desired, inventory: Mapping[str, Any], machine: Mapping[str, Any]) -> tuple[Link, ...]:
    """Links to nodes of the pool: reported ones and declared ones, each of which holds both ways."""
    reported = [(word(row.get("peer")), word(row.get("fabric"))) for row in map(table, items(inventory.get("links")))]
    reported += _cluster_links(name, table(machine.get("cluster")))
    declared = {(link.peer, link.fabric) for node, link in _declared_links(desired) if node == name}
    declared |= {(node, link.fabric) for node, link in _declared_links(desired) if link.peer == name}
    known = {(peer, fabric) for peer, fabric in reported if peer in desired.nodes and peer != name and fabric}
    return tuple(Link(peer=str(peer), fabric=str(fabric)) for peer, fabric in sorted(known | declared, key=str))


def _declared_links(desired: Desired) -> Iterable[tuple[str, Link]]:
    return ((name, link) for name, node in desired.nodes.items() for link in node.links)


def _cluster_links(name: str, cluster: Mapping[str, Any]) -> list[tuple[str | None, str | None]]:
    """Neighbours found by the gateway's own discovery; older builds know only pairs."""
    fabric = word(cluster.get("provider"))
    if "links" in cluster:
        return [(word(row.get("peerNodeId")), fabric) for row in map(table, items(cluster["links"]))]
    peers = table(cluster.get("nodes")) if cluster.get("detected") is True else {}
    return [(word(peer), fabric) for peer in peers if peer not in (name, cluster.get("nodeId"))]


def _admission(name: str, bodies: NodeBodies, known: ObservedNode) -> Admission:
    guard = table(table(bodies.block.get("runtimeManager")).get("memorySafety"))
    ceiling = amount(guard.get("maxMemoryUtilization"), 3)
    if bodies.plan is None:
        return msgspec.structs.replace(known.admission, guard_ceiling=ceiling)
    admission = table(bodies.plan.get("admission"))
    own_id = bodies.block.get("id")
    nodes = table(admission.get("nodes"))
    mine = table(nodes.get(name) or nodes.get(str(own_id))) if "nodes" in admission else admission
    reserve = amount(mine.get("reserveMemoryGb"))
    share = amount(mine.get("maxMemoryUtilization"), 3) or None
    return Admission(
        reserve_gb=reserve,
        max_utilization=share,
        guard_ceiling=ceiling,
        budget_gb=_own_budget(mine, reserve, share, ceiling),
    )


def _own_budget(
    mine: Mapping[str, Any], reserve: Decimal | None, share: Decimal | None, ceiling: Decimal | None
) -> Decimal | None:
    """The node's absolute budget, where it is stricter than what its other settings come to.

    Gateways show the budget that they work with, which mostly is just that.
    """
    budget, total = amount(mine.get("memoryBudgetGb")), amount(mine.get("totalMemoryGb"))
    if budget is None or total is None:
        return budget
    bounds = [total * bound for bound in (share, ceiling) if bound is not None]
    bounds += [total - reserve] if reserve is not None and share is None else []
    return None if bounds and budget >= min(bounds) - _ROUNDING_GB else budget
