"""Fleets without one of their dimensions, to tell whether it decides anything there."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from msgspec.structs import replace

from lloom_gitops.model.desired import Desired, Link, Needs, Slo
from lloom_gitops.model.inventory import ObservedLane, ObservedNode
from lloom_gitops.model.pool import Memory
from lloom_gitops.model.words import DomainKind, Feature, LaneState, Liveness, Management, NodeState, Seen

from .oracle import best
from .small_fleets import Fleet

AMPLE = Decimal(64)


def _lanes(change: Callable[[ObservedLane], ObservedLane]) -> Callable[[Fleet], Fleet]:
    def apply(fleet: Fleet) -> Fleet:
        desired, inventory = fleet
        return desired, replace(inventory, lanes={name: change(lane) for name, lane in inventory.lanes.items()})

    return apply


def _nodes(change: Callable[[ObservedNode], ObservedNode]) -> Callable[[Fleet], Fleet]:
    def apply(fleet: Fleet) -> Fleet:
        desired, inventory = fleet
        return desired, replace(inventory, nodes={name: change(node) for name, node in inventory.nodes.items()})

    return apply


def _wanted(change: Callable[[Desired], Desired]) -> Callable[[Fleet], Fleet]:
    return lambda fleet: (change(fleet[0]), fleet[1])


def _aliases(**fields: object) -> Callable[[Fleet], Fleet]:
    return _wanted(lambda d: replace(d, aliases={name: replace(alias, **fields) for name, alias in d.aliases.items()}))


def _ample_devices(node: ObservedNode) -> ObservedNode:
    domains = [
        replace(domain, capacity_gb=10 * AMPLE) if domain.kind is DomainKind.DEVICE else domain
        for domain in node.memory_domains
    ]
    return replace(node, memory_domains=tuple(domains))


def _known(node: ObservedNode) -> ObservedNode:
    domains = [replace(domain, capacity_gb=domain.capacity_gb or AMPLE) for domain in node.memory_domains]
    return replace(node, memory_domains=tuple(domains))


def _all_linked(fleet: Fleet) -> Fleet:
    desired, inventory = fleet
    names = sorted(inventory.nodes)
    return desired, replace(
        inventory,
        nodes={
            name: replace(node, links=tuple(Link(peer=peer, fabric="sync") for peer in names if peer != name))
            for name, node in inventory.nodes.items()
        },
    )


def _modern(head: bool) -> Callable[[Fleet], Fleet]:
    def apply(fleet: Fleet) -> Fleet:
        desired, inventory = fleet
        modern = inventory.nodes[desired.pool.head].gateway.__class__(features=tuple(Feature))
        return desired, replace(
            inventory,
            nodes={
                name: replace(node, gateway=modern) if (name == desired.pool.head) is head else node
                for name, node in inventory.nodes.items()
            },
        )

    return apply


def _one_lane_a_model(fleet: Fleet) -> Fleet:
    desired, inventory = fleet
    lanes = {name: lane for name, lane in inventory.lanes.items() if name.endswith("-l0")}
    routes = {
        name: replace(
            alias, lanes=tuple(lane if lane in lanes else None for lane in alias.lanes or ()) if alias.lanes else None
        )
        for name, alias in inventory.aliases.items()
    }
    return replace(desired, lanes={name: lane for name, lane in desired.lanes.items() if name in lanes}), replace(
        inventory, lanes=lanes, aliases=routes
    )


WITHOUT: dict[str, Callable[[Fleet], Fleet]] = {
    "devices": _nodes(_ample_devices),
    "pairs": _lanes(lambda lane: replace(lane, nodes=lane.nodes[:1], owner=lane.nodes[0])),
    "links": _all_linked,
    "peaks": _lanes(lambda lane: replace(lane, load_peak_gb={})),
    "aborts": _lanes(lambda lane: replace(lane, abort_gb={})),
    "measured": _lanes(lambda lane: replace(lane, measured_gb={})),
    "basis": _wanted(lambda d: replace(d, pool=replace(d.pool, memory=Memory()))),
    "pins": _wanted(lambda d: replace(d, pins={})),
    "profile": _wanted(lambda d: replace(d, pool=replace(d.pool, active_profile=None))),
    "states": _wanted(
        lambda d: replace(d, nodes={name: replace(node, state=NodeState.SERVE) for name, node in d.nodes.items()})
    ),
    "silent": _nodes(lambda node: replace(node, seen=Seen.PRESENT, liveness=Liveness.READY)),
    "unknown": _nodes(_known),
    "shared": _lanes(lambda lane: replace(lane, models=lane.models[:1])),
    "sets": _wanted(lambda d: replace(d, pool=replace(d.pool, co_resident=()))),
    "external": _aliases(external=()),
    "goals": _aliases(slo=Slo()),
    "demand": lambda fleet: (fleet[0], replace(fleet[1], demand={})),
    "oldNode": _modern(head=False),
    "oldHead": _modern(head=True),
    "unmanaged": _lanes(lambda lane: replace(lane, management=Management.MANAGED)),
    "agent": _lanes(lambda lane: replace(lane, started_by=None)),
    "stops": _wanted(lambda d: replace(d, lanes={})),
    "latched": _lanes(lambda lane: replace(lane, latched=False, excluded_nodes=())),
    "foreign": _nodes(
        lambda node: replace(
            node, memory_domains=tuple(replace(domain, foreign_gb=Decimal(0)) for domain in node.memory_domains)
        )
    ),
    "further": _one_lane_a_model,
    "needs": _aliases(needs=Needs()),
    "unlisted": lambda fleet: (replace(fleet[0], unlisted="keep"), fleet[1]),
    "running": _lanes(lambda lane: replace(lane, state=LaneState.STOPPED)),
}
"""A fleet without one of its dimensions, by its name."""

Decision = tuple[object, ...]


def decision(fleet: Fleet) -> Decision | None:
    """What the best outcome decides: levels 1 to 5 and 7, routes, residencies, moves; None where nothing is legal."""
    found = best(*fleet)
    if found is None:
        return None
    outcome, moves = found.outcome, found.moves
    return (
        found.levels[:5],
        found.levels[6],
        sorted(outcome.routes.items()),
        sorted(outcome.residency.items()),
        sorted(outcome.gone),
        sorted(moves.starts | moves.restarts),
        sorted(moves.room),
    )


def decides(fleet: Fleet, dimension: str, whole: Decision | None = None) -> bool:
    """Whether the best outcome would be another one without this dimension."""
    without = WITHOUT[dimension](fleet)
    return without != fleet and decision(without) != (whole or decision(fleet))
