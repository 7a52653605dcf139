"""From what the gateways answered to an inventory (pure): every rule of what is known, carried over, or unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from lloom_gitops.catalog.performance import METRICS, benchmarked
from lloom_gitops.catalog.sighting_heads import Behind, behind_head, head_models, observed_aliases
from lloom_gitops.catalog.sighting_lanes import Lanes, declared_lane, gateway_lanes
from lloom_gitops.catalog.sighting_metrics import demand, performance, period_of
from lloom_gitops.catalog.sighting_nodes import NodeBodies, seen_node, silent_node
from lloom_gitops.catalog.sighting_routes import effective_routes
from lloom_gitops.catalog.sighting_wire import amount, by_id, choice, table
from lloom_gitops.catalog.sighting_words import runtime_rows
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Demand, Inventory, ObservedAlias, ObservedNode, Performance
from lloom_gitops.model.words import LaneState, Management, ModelKind, NodeState, Residency

_GIB = 1024**3
_LEAVING = frozenset({NodeState.CORDON, NodeState.DRAIN})
_AT_REST = frozenset({LaneState.RUNNING, LaneState.STOPPED, LaneState.FAILED})


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of the pool, and what people should know of how it was seen."""

    inventory: Inventory
    notes: tuple[str, ...] = ()


def sight(
    desired: Desired,
    previous: Inventory,
    bodies: Mapping[str, NodeBodies],
    silent: Mapping[str, float | None],
    health: Mapping[str, LaneState],
) -> Sighting:
    """The inventory now.

    `bodies` holds the declared nodes that answered, `silent` those that did not with the seconds since their last
    answer (None: nobody knows), `health` what the health addresses of hand-run lanes tell. A node in neither was not
    asked. What a node can't be asked now, or does not tell this time, stays as `previous` has it; what its build can't
    tell at all is unknown.
    """
    found, notes = gateway_lanes(desired, previous.lanes, bodies)
    lanes = {name: lane for name, lane in previous.lanes.items() if lane.owner not in bodies}
    # A lane of a node that is neither declared nor a member any more is nobody's.
    lanes = {
        name: lane for name, lane in lanes.items() if lane.owner in desired.nodes or _is_member(previous, lane.owner)
    }
    lanes = _with_declared(desired, previous, {**lanes, **found}, bodies, health)
    head = bodies.get(desired.pool.head)
    leaving = frozenset(name for name, node in desired.nodes.items() if node.state in _LEAVING)
    behind = behind_head(head.models, lanes, leaving) if head is not None and head.models is not None else None
    if behind is not None:
        ids = head_models(behind)
        lanes = {name: msgspec.structs.replace(lane, head_model=ids.get(name)) for name, lane in lanes.items()}
    aliases = previous.aliases
    if head is not None and head.routing is not None and behind is not None:
        aliases = observed_aliases(effective_routes(head.routing), behind, lanes)
    nodes = _nodes(desired, previous, bodies, silent, lanes)
    known = msgspec.structs.replace(previous, nodes=nodes)
    inventory = Inventory(
        nodes=nodes,
        lanes={name: lanes[name] for name in sorted(lanes)},
        aliases=aliases,
        performance=_performance(desired, known, bodies, behind, lanes, aliases),
        demand=_demand(desired, previous, head, aliases),
    )
    return Sighting(inventory=inventory, notes=notes)


def _is_member(previous: Inventory, node: str) -> bool:
    return node in previous.nodes and previous.nodes[node].member


def _with_declared(
    desired: Desired,
    previous: Inventory,
    lanes: Lanes,
    bodies: Mapping[str, NodeBodies],
    health: Mapping[str, LaneState],
) -> Lanes:
    """Add the lanes that people run by hand; one that a gateway lists too keeps that gateway's facts."""
    result = dict(lanes)
    for name, declared in desired.lanes.items():
        if declared.management is not Management.UNMANAGED:
            continue
        if name in lanes and (declared.pool is None or name in runtime_rows(_node_body(bodies, lanes[name].owner))):
            result[name] = msgspec.structs.replace(
                lanes[name], management=Management.UNMANAGED, residency=Residency.ALWAYS
            )
        elif declared.pool is not None:
            state = health.get(name)
            # A health address that is silent together with its node proves nothing.
            if state is LaneState.UNKNOWN and any(node not in bodies for node in declared.pool.nodes):
                state = None
            result[name] = declared_lane(declared, declared.pool, previous.lanes.get(name), state)
    return result


def _node_body(bodies: Mapping[str, NodeBodies], node: str) -> Mapping[str, Any] | None:
    return bodies[node].node if node in bodies else None


def _nodes(
    desired: Desired,
    previous: Inventory,
    bodies: Mapping[str, NodeBodies],
    silent: Mapping[str, float | None],
    lanes: Lanes,
) -> dict[str, ObservedNode]:
    nodes = {name: node for name, node in previous.nodes.items() if node.member and name not in desired.nodes}
    for name in desired.nodes:
        known = previous.nodes.get(name)
        if name in bodies:
            nodes[name] = seen_node(name, desired, known, bodies[name], _foreign_gb(name, bodies[name], lanes))
        elif name in silent or known is None:
            nodes[name] = silent_node(desired.pool.liveness, known, silent.get(name))
        else:
            nodes[name] = known
    return {name: nodes[name] for name in sorted(nodes)}


def _foreign_gb(node: str, bodies: NodeBodies, lanes: Lanes) -> Decimal | None:
    """Whole GiB in use beyond our lanes, reclaimable cache apart; None while a lane moves or its size is unknown."""
    memory = table(table(bodies.block.get("telemetry")).get("memory"))
    total, available = amount(memory.get("totalBytes"), 0), amount(memory.get("availableBytes"), 0)
    if not total or available is None:
        return None
    ours = Decimal(0)
    for lane in lanes.values():
        if node not in lane.nodes or lane.state is LaneState.STOPPED:
            continue
        size = lane.measured_gb.get(node, lane.memory_gb.get(node))
        if lane.state not in _AT_REST or size is None:
            return None
        ours += size if lane.state is LaneState.RUNNING else 0
    return Decimal(max(0, math.floor((total - available) / _GIB - ours)))


def _performance(
    desired: Desired,
    previous: Inventory,
    bodies: Mapping[str, NodeBodies],
    behind: Behind | None,
    lanes: Lanes,
    aliases: Mapping[str, ObservedAlias],
) -> dict[str, Performance]:
    """Live figures (the head's, as clients see them, else the owner's), else those of before, else a benchmark."""
    here = {model for lane in lanes.values() for model in lane.models}
    here |= {entry for alias in aliases.values() for entry in alias.route}
    figures = {model: known for model, known in previous.performance.items() if model in here}
    for lane in lanes.values():
        for model in lane.models:
            known = figures.get(model)
            recipe = lane.recipe.id if lane.recipe else None
            published = benchmarked(desired, previous.nodes, model, lane.nodes, recipe)
            if published is not None and (known is None or known.source != METRICS):
                figures[model] = Performance(
                    ttft_ms=published.ttft_ms,
                    tokens_per_second=published.tokens_per_second,
                    source=published.source,
                )
    for node, answered in sorted(bodies.items(), key=lambda entry: entry[0] == desired.pool.head):
        if answered.metrics is None:
            continue
        names = _names_at(node, answered, desired, behind, lanes)
        kinds = {shown: kind for shown, (_, kind) in names.items()}
        for shown, figure in performance(answered.metrics, kinds).items():
            if names[shown][0] in here:
                figures[names[shown][0]] = figure
    return {model: figures[model] for model in sorted(figures)}


def _names_at(
    node: str, bodies: NodeBodies, desired: Desired, behind: Behind | None, lanes: Lanes
) -> dict[str, tuple[str, ModelKind]]:
    """Model ids of a gateway with our name and the kind of each."""
    if node != desired.pool.head:
        return {model: (model, lane.kind) for lane in lanes.values() if lane.owner == node for model in lane.models}
    rows = by_id(table(bodies.models).get("models"))
    models = {name: row for name, row in rows.items() if not row.get("alias")}
    kinds = {name: choice(row.get("kind", ModelKind.CHAT.value), ModelKind) for name, row in models.items()}
    ours = {name: places[0][1] for name, places in (behind or {}).items()}
    return {name: (ours.get(name, name), kind) for name, kind in kinds.items() if kind is not None}


def _demand(
    desired: Desired, previous: Inventory, head: NodeBodies | None, aliases: Mapping[str, ObservedAlias]
) -> dict[str, Demand]:
    known = {alias: figure for alias, figure in previous.demand.items() if alias in aliases}
    if head is None or head.metrics is None or head.routing is None:
        return known
    period = period_of(desired.pool.objective.demand_window_hours)
    found = demand(head.metrics, period, effective_routes(head.routing))
    return known if found is None else found
