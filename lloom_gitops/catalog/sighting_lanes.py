"""Lanes as their owners show them (pure): managed ones, distributed ones, and those that people run by hand."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from lloom_gitops.catalog.sighting_nodes import NodeBodies
from lloom_gitops.catalog.sighting_wire import amount, by_id, choice, items, table, text, whole, word
from lloom_gitops.catalog.sighting_words import (
    abort_gb,
    group_members,
    is_group,
    lane_latched,
    lane_residency,
    lane_state,
    measured_gb,
    runtime_rows,
)
from lloom_gitops.model.desired import Desired, Lane, PoolFacts
from lloom_gitops.model.inventory import LaneRecipe, ObservedLane
from lloom_gitops.model.words import LaneState, Management, ModelKind, Residency

_MEASURED_IS_DECLARED_GB = 2
"""A measurement that falls short of the declared size by no more than this says nothing new."""

_COUNTS_SEQUENCES = frozenset({ModelKind.CHAT, ModelKind.EMBEDDING})

Lanes = dict[str, ObservedLane]


def gateway_lanes(
    desired: Desired, previous: Mapping[str, ObservedLane], bodies: Mapping[str, NodeBodies]
) -> tuple[Lanes, tuple[str, ...]]:
    """The lanes that answering gateways have, and notes. Ranks of distributed lanes are no lanes of their own."""
    ranks = _ranks(bodies)
    lanes: Lanes = {}
    notes: list[str] = []
    for node in _head_first(desired, bodies):
        rows = {name: row for name, row in runtime_rows(bodies[node].node).items() if not is_group(row)}
        rows |= _own_groups(node, bodies)
        for name, row in sorted(rows.items()):
            if name in ranks or not _counts(row):
                continue
            if name in lanes:
                notes.append(f"{node}: a lane {name} exists on {lanes[name].owner} too; lane ids must differ")
                continue
            lanes[name] = _lane(name, node, row, bodies[node], desired, previous.get(name))
    return lanes, tuple(notes)


def declared_lane(lane: Lane, facts: PoolFacts, previous: ObservedLane | None, state: LaneState | None) -> ObservedLane:
    """A lane that people run by hand, from its document; `state` from its health address, None where nobody asked."""
    known = previous or ObservedLane(models=facts.models, kind=facts.kind, nodes=facts.nodes, owner=facts.nodes[0])
    return msgspec.structs.replace(
        known,
        models=facts.models,
        kind=facts.kind,
        nodes=facts.nodes,
        owner=facts.nodes[0],
        management=lane.management,
        state=known.state if state is None else state,
        # Nothing evicts what no gateway manages.
        residency=Residency.ALWAYS if lane.management is Management.UNMANAGED else known.residency,
        memory_gb=dict.fromkeys(facts.nodes, facts.memory_gb),
        context_window=facts.context_window,
        max_sequences=facts.max_sequences,
        load_seconds=known.load_seconds if facts.load_seconds is None else Decimal(facts.load_seconds),
    )


def _head_first(desired: Desired, bodies: Mapping[str, NodeBodies]) -> list[str]:
    return sorted(bodies, key=lambda node: (node != desired.pool.head, node))


def _counts(row: Mapping[str, Any]) -> bool:
    """A disabled lane can't be started; it counts only while it still holds memory."""
    return row.get("enabled") is not False or lane_state(row).holds_memory


def _ranks(bodies: Mapping[str, NodeBodies]) -> frozenset[str]:
    found: set[str] = set()
    for answered in bodies.values():
        for row in _groups(answered).values():
            found |= {str(member.get("runtime")) for member in group_members(row)}
        for name, row in runtime_rows(answered.node).items():
            group = table(row.get("authority")).get("group")
            if group is not None and group != name:
                found.add(name)
    return frozenset(found)


def _groups(bodies: NodeBodies) -> dict[str, dict[str, Any]]:
    """Distributed lanes are listed by `/gateway/status` alone."""
    return {name: row for name, row in runtime_rows(bodies.status).items() if is_group(row)}


def _own_groups(node: str, bodies: Mapping[str, NodeBodies]) -> dict[str, dict[str, Any]]:
    """The distributed lanes that a node owns: the leader's, of which every node that declares them shows a copy."""
    answered = bodies[node]
    leader = text(table(table(answered.status).get("cluster")).get("leaderNode")) or node
    return {
        name: row
        for name, row in _groups(answered).items()
        if (text(table(row.get("authority")).get("owner")) or leader) == node
    }


def _lane(
    name: str, node: str, row: Mapping[str, Any], bodies: NodeBodies, desired: Desired, previous: ObservedLane | None
) -> ObservedLane:
    state = lane_state(row)
    served = _served(name, bodies)
    models = tuple(served) if bodies.models is not None or previous is None else previous.models
    kind = _kind(served, previous)
    recipe = _recipe(row, previous)
    memory = _memory(name, node, row, bodies, previous)
    unmanaged = row.get("management") == "external"
    return ObservedLane(
        models=models,
        kind=kind,
        nodes=tuple(sorted(memory)) or (node,),
        management=Management.UNMANAGED if unmanaged else Management.MANAGED,
        owner=node,
        state=state,
        residency=Residency.ALWAYS if unmanaged else lane_residency(row),
        memory_gb={place: gb for place, gb in memory.items() if gb is not None},
        measured_gb=_measured(node, row, memory, previous, state),
        # A healthy start proves that the lane fits after all (CAT-3).
        abort_gb={} if state is LaneState.RUNNING else _aborted(node, row, previous),
        load_peak_gb=previous.load_peak_gb if previous else {},
        latched=lane_latched(row),
        excluded_nodes=previous.excluded_nodes if previous else (),
        context_window=_context(served, bodies, previous),
        max_sequences=whole(row.get("maxConcurrency")) if kind in _COUNTS_SEQUENCES else None,
        load_seconds=_load_seconds(name, recipe, bodies, desired, previous),
        start_timeout_seconds=_seconds(row.get("startupTimeoutMs")),
        head_model=previous.head_model if previous else None,
        recipe=recipe,
        started_by=previous.started_by if previous and state.holds_memory else None,
    )


def _served(lane: str, bodies: NodeBodies) -> dict[str, Mapping[str, Any]]:
    """The models a lane serves, by their id at its own gateway; aliases and models of other gateways are none."""
    rows = by_id(table(bodies.models).get("models"))
    return {
        name: row
        for name, row in sorted(rows.items())
        if not row.get("alias") and lane in [shown.get("runtime") for shown in (row, *targets(row))]
    }


def targets(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Targets of a model row."""
    return [table(target) for target in items(model.get("targets"))]


def _kind(served: Mapping[str, Mapping[str, Any]], previous: ObservedLane | None) -> ModelKind:
    """The kind its models have; `chat` where they don't say, as the gateway reads it."""
    kinds = (choice(row.get("kind", ModelKind.CHAT.value), ModelKind) for row in served.values())
    return next(filter(None, kinds), previous.kind if previous else ModelKind.CHAT)


def _context(served: Mapping[str, Mapping[str, Any]], bodies: NodeBodies, previous: ObservedLane | None) -> int | None:
    if bodies.models is None and previous is not None:
        return previous.context_window
    windows = [window for row in served.values() if (window := whole(row.get("contextWindow")))]
    return min(windows, default=None)


def _memory(
    name: str, node: str, row: Mapping[str, Any], bodies: NodeBodies, previous: ObservedLane | None
) -> dict[str, Decimal | None]:
    """Declared GiB by node; None where a node's share is unknown. Older builds tell it in plan rows only."""
    if is_group(row):
        shares = table(row.get("resourcesByNode"))
        nodes = [text(member.get("node")) for member in group_members(row)]
        return {place: _declared(table(shares.get(place)).get("memoryGb")) for place in nodes if place is not None}
    planned = by_id(table(bodies.plan).get("runtimes"), "runtimeId").get(name, {})
    own = _declared(row.get("memoryGb", planned.get("memoryGb")))
    if own is None and bodies.plan is None and previous is not None:
        own = previous.memory_gb.get(node)
    return {node: own}


def _declared(value: Any) -> Decimal | None:
    """0 is how a gateway says that nobody declared a size."""
    return amount(value) or None


def _measured(
    node: str,
    row: Mapping[str, Any],
    declared: Mapping[str, Decimal | None],
    previous: ObservedLane | None,
    state: LaneState,
) -> dict[str, Decimal]:
    """GiB measured while the lane runs; the last figure stays when it does not."""
    found = measured_gb(row)
    if found is None or state is not LaneState.RUNNING:
        return previous.measured_gb if previous else {}
    said = declared.get(node)
    if said is not None and said - _MEASURED_IS_DECLARED_GB <= found <= said:
        return {}
    return {node: found}


def _aborted(node: str, row: Mapping[str, Any], previous: ObservedLane | None) -> dict[str, Decimal]:
    """What aborted loads had taken: the most of what is known, until a healthy start."""
    before = previous.abort_gb if previous else {}
    found = abort_gb(row)
    if found is None:
        return before
    return {**before, node: max(found, before.get(node, found))}


def _recipe(row: Mapping[str, Any], previous: ObservedLane | None) -> LaneRecipe | None:
    shown = table(row.get("recipe"))
    name, version = word(shown.get("id")), whole(shown.get("version"))
    if name is None:
        return None
    known = previous.recipe if previous else None
    same = known is not None and (known.id, known.version) == (name, version)
    return known if same else LaneRecipe(id=name, version=version)


def _load_seconds(
    lane: str, recipe: LaneRecipe | None, bodies: NodeBodies, desired: Desired, previous: ObservedLane | None
) -> Decimal | None:
    """What the build measured, else what the recipe says, else what was known."""
    measured = amount(table(bodies.inventory.get("loadSeconds")).get(lane), 0)
    if measured:
        return measured
    source = desired.recipes.get(recipe.id) if recipe else None
    if source is not None and source.spec.load_seconds is not None:
        return source.spec.load_seconds
    return previous.load_seconds if previous else None


def _seconds(milliseconds: Any) -> int | None:
    found = whole(milliseconds)
    return None if not found else -(-found // 1000)
