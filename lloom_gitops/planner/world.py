"""The planner's view of the pool: nodes by what may be done there, lanes by what may be decided about them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from lloom_gitops.catalog.facts import lanes_of_route
from lloom_gitops.catalog.fit import unfit
from lloom_gitops.catalog.installs import install_variants
from lloom_gitops.catalog.links import fabrics, unlinked
from lloom_gitops.catalog.memory import DomainLimit, keys_of_nodes, limits
from lloom_gitops.catalog.performance import Figures, expected
from lloom_gitops.catalog.variants import Variant, variants
from lloom_gitops.model.desired import Alias, Desired, Needs
from lloom_gitops.model.inventory import Inventory, ObservedNode
from lloom_gitops.model.plan import Cause
from lloom_gitops.model.words import Feature, Liveness, NodeState, Residency, Seen


class NodeRole(StrEnum):
    """What may be done on a node: free: anything; frozen: nothing changes; leaving: lanes go."""

    FREE = "free"
    FROZEN = "frozen"
    LEAVING = "leaving"
    DRAINING = "draining"
    GONE = "gone"


class LaneRole(StrEnum):
    """What the planner decides of a lane.

    `free`: its residency; `fixed`: nothing, it counts as it is; `leaving`: it goes once it is not needed; `out`:
    nothing, it can't serve (the cause is in `World.out`).
    """

    FREE = "free"
    FIXED = "fixed"
    LEAVING = "leaving"
    OUT = "out"


class Entry(msgspec.Struct, frozen=True):
    """One entry of an alias's own order: a model of ours, or an external one."""

    model: str
    external: bool


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the search reads, computed once. Maps are sorted by id; memory is MiB, time ms."""

    desired: Desired
    inventory: Inventory
    limits: dict[str, DomainLimit]
    nodes: dict[str, NodeRole]
    variants: dict[str, Variant]
    roles: dict[str, LaneRole]
    out: dict[str, Cause]
    entries: dict[str, tuple[Entry, ...]]
    by_model: dict[str, tuple[str, ...]]
    lanes_on: dict[str, tuple[str, ...]]
    aliases_of: dict[str, tuple[str, ...]]
    current: dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]]
    externals: frozenset[str]
    features: dict[str, frozenset[Feature]]
    hard: dict[str, Residency]
    shared_pins: tuple[tuple[tuple[str, ...], Residency], ...]
    pinned: dict[str, tuple[str, ...]]

    def naming(self, lane: str) -> tuple[str, ...]:
        """Aliases that name a model of a lane, by id."""
        models = self.variants[lane].models
        if len(models) == 1:
            return self.aliases_of.get(models[0], ())
        return tuple(sorted({alias for model in models for alias in self.aliases_of.get(model, ())}))

    @property
    def head(self) -> str:
        """The node whose gateway clients talk to."""
        return self.desired.pool.head

    def has_feature(self, node: str, feature: Feature) -> bool:
        """Whether a node's gateway build has a feature; a node never seen is taken to have it."""
        seen = self.inventory.nodes.get(node)
        return seen is None or feature in seen.gateway.features

    def figures(self, model: str, lane: str | None) -> Figures | None:
        """Warm figures of a model from a lane, or of an external one; None: nothing is known (CAT-4)."""
        if lane is None:
            return expected(self.desired, self.inventory, model)
        return self.variants[lane].figures.get(model)

    def alias(self, name: str) -> Alias:
        """The alias's document."""
        return self.desired.aliases[name]


def build(desired: Desired, inventory: Inventory) -> World:
    """The world of an effective desired state and an inventory."""
    domain_limits = limits(desired, inventory)
    keys = keys_of_nodes(domain_limits)
    nodes = {name: _node_role(desired, inventory, name) for name in sorted(set(desired.nodes) | set(inventory.nodes))}
    by_id = variants(desired, inventory, keys)
    if desired.pool.planning.consider_installs:
        free = tuple(name for name, role in nodes.items() if role is NodeRole.FREE)
        by_id.update(install_variants(desired, inventory, keys, free))
    by_id = dict(sorted(by_id.items()))
    roles, out = _lane_roles(desired, inventory, by_id, nodes)
    _leave_out_blind(by_id, domain_limits, roles, out)
    by_model = _lanes_by_model(by_id)
    profile = desired.profiles.get(desired.pool.active_profile or "")
    routes = profile.routes if profile else {}
    entries = {name: _entries(alias, routes.get(name), by_model) for name, alias in sorted(desired.aliases.items())}
    return World(
        desired=desired,
        inventory=inventory,
        limits=domain_limits,
        nodes=nodes,
        variants=by_id,
        roles=roles,
        out=out,
        entries=entries,
        by_model={model: tuple(names) for model, names in sorted(by_model.items())},
        lanes_on=lanes_by_domain(by_id),
        aliases_of=aliases_by_model(entries),
        current={
            name: (alias.route, lanes_of_route(inventory, alias)) for name, alias in sorted(inventory.aliases.items())
        },
        externals=_externals(desired, inventory, by_model),
        features={name: frozenset(seen.gateway.features) for name, seen in inventory.nodes.items()},
        hard={},
        shared_pins=(),
        pinned={},
    )


def _lanes_by_model(by_id: dict[str, Variant]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for variant in by_id.values():
        for model in variant.models:
            found.setdefault(model, []).append(variant.id)
    return found


def _leave_out_blind(
    by_id: dict[str, Variant], limits: dict[str, DomainLimit], roles: dict[str, LaneRole], out: dict[str, Cause]
) -> None:
    """Idle lanes on domains of unknown capacity serve nothing: nothing new is placed there."""
    for name, variant in by_id.items():
        blind = next((key for key in variant.memory if _unknown(limits, key)), None)
        if roles[name] is LaneRole.FREE and blind is not None and not variant.loaded:
            roles[name] = LaneRole.OUT
            out[name] = Cause(reason="capacityUnknown", lane=name, domain=blind)


def lanes_by_domain(by_id: dict[str, Variant]) -> dict[str, tuple[str, ...]]:
    """Lanes with memory on each domain, by domain key."""
    found: dict[str, list[str]] = {}
    for name, variant in by_id.items():
        for key in variant.memory:
            found.setdefault(key, []).append(name)
    return {key: tuple(names) for key, names in found.items()}


def aliases_by_model(entries: dict[str, tuple[Entry, ...]]) -> dict[str, tuple[str, ...]]:
    """Aliases that name each model of ours."""
    found: dict[str, dict[str, None]] = {}
    for alias, rows in entries.items():
        for entry in rows:
            if not entry.external:
                found.setdefault(entry.model, {})[alias] = None
    return {model: tuple(names) for model, names in found.items()}


def blind(world: World, lane: str) -> bool:
    """Whether the capacity of one of the lane's domains is unknown."""
    return any(_unknown(world.limits, key) for key in world.variants[lane].memory)


def _externals(desired: Desired, inventory: Inventory, by_model: dict[str, list[str]]) -> frozenset[str]:
    """External models: those that aliases name as such, and names in routes that are no model of ours."""
    ours = {model for alias in desired.aliases.values() for model in alias.models} | set(by_model)
    named = {model for alias in desired.aliases.values() for model in alias.external}
    routed = {model for alias in inventory.aliases.values() for model in alias.route}
    return frozenset(named | (routed - ours))


def _unknown(domain_limits: dict[str, DomainLimit], key: str) -> bool:
    """Whether a domain's capacity is unknown: what runs there stays, nothing new is placed there."""
    return key not in domain_limits or domain_limits[key].limit_mib is None


def _node_role(desired: Desired, inventory: Inventory, name: str) -> NodeRole:
    seen, declared = inventory.nodes.get(name), desired.nodes.get(name)
    if seen is None:
        return NodeRole.FROZEN
    if seen.liveness.gone:
        return NodeRole.GONE
    if declared is None:
        # Enrolled only: nobody has said how to reach it, so nothing can be changed there (PLN-11).
        return NodeRole.FROZEN
    state = max((declared.state, seen.state or NodeState.SERVE), key=lambda s: s.strictness)
    unreadable = seen.seen is Seen.UNKNOWN or seen.liveness is Liveness.SUSPECT
    if state is NodeState.HOLD or unreadable:
        return NodeRole.FROZEN
    return {NodeState.DRAIN: NodeRole.DRAINING, NodeState.CORDON: NodeRole.LEAVING}.get(state, NodeRole.FREE)


def _lane_roles(
    desired: Desired, inventory: Inventory, by_id: dict[str, Variant], nodes: dict[str, NodeRole]
) -> tuple[dict[str, LaneRole], dict[str, Cause]]:
    roles: dict[str, LaneRole] = {}
    out: dict[str, Cause] = {}
    for name, variant in by_id.items():
        at = {node: nodes.get(node, NodeRole.FROZEN) for node in variant.nodes}
        cause = next(causes_out(desired, inventory, variant, at), None)
        if cause is not None:
            roles[name], out[name] = LaneRole.OUT, cause
        elif NodeRole.FROZEN in at.values():
            roles[name] = LaneRole.FIXED
        elif NodeRole.LEAVING in at.values() or NodeRole.DRAINING in at.values():
            roles[name] = LaneRole.LEAVING
        else:
            roles[name] = LaneRole.FREE if variant.managed else LaneRole.FIXED
    return roles, out


def causes_out(desired: Desired, inventory: Inventory, variant: Variant, at: dict[str, NodeRole]) -> Iterator[Cause]:
    """All that keeps a lane from serving whatever is decided, in a fixed order; no latch counts of a running lane.

    `at` has the role of each of its nodes.
    """
    for node, role in at.items():
        if role is NodeRole.GONE:
            yield Cause(reason="nodeLost", node=node, lane=variant.id)
    for node in at:
        if node not in desired.nodes:
            yield Cause(reason="undeclaredNode", node=node, lane=variant.id)
    if variant.declared.state == "stopped":
        yield Cause(reason="stoppedByRequest", lane=variant.id)
    if not variant.managed and not variant.loaded:
        yield Cause(reason="notRunning", lane=variant.id, node=variant.owner)
    if variant.loaded:
        return
    if variant.latched:
        yield Cause(reason="latched", lane=variant.id, node=variant.owner)
    for node in variant.nodes:
        if node in variant.excluded_nodes:
            yield Cause(reason="excludedAfterFailure", lane=variant.id, node=node)
    if variant.managed:
        yield from _misfits(desired, inventory, variant)


def _misfits(desired: Desired, inventory: Inventory, variant: Variant) -> Iterator[Cause]:
    """What an idle lane's nodes lack for it: links between its ranks, or what its recipe requires."""
    pair = unlinked(desired, inventory, variant.nodes)
    if pair is not None:
        other = ", ".join(sorted(fabrics(desired, inventory, *pair)))
        yield Cause(reason="noLink", lane=variant.id, node=pair[0], needs=pair[1], has=other or None)
    recipe = desired.recipes.get(variant.recipe or "")
    if recipe is None or not variant.installed:
        return
    for name in variant.nodes:
        for cause in unfit(recipe, name, inventory.nodes.get(name, ObservedNode()), installed=True):
            yield msgspec.structs.replace(cause, lane=variant.id)


def _entries(alias: Alias, profile_route: tuple[str, ...] | None, by_model: dict[str, list[str]]) -> tuple[Entry, ...]:
    """The alias's own order; an active profile's route stands in its place."""
    if profile_route is None:
        own = tuple(Entry(model, False) for model in alias.models)
        return own + tuple(Entry(model, True) for model in alias.external)
    return tuple(
        Entry(model, model in alias.external or (model not in alias.models and model not in by_model))
        for model in profile_route
    )


def unsuitable(variant: Variant, needs: Needs) -> Cause | None:
    """Why a lane does not meet an alias's needs; unknown is never enough. None: it does."""
    if needs.kind is not None and variant.kind is not needs.kind:
        return Cause(reason="wrongKind", lane=variant.id, needs=needs.kind.value, has=variant.kind.value)
    if needs.context_window is not None and (variant.context_window or 0) < needs.context_window:
        return _too_small("contextTooSmall", variant, needs.context_window, variant.context_window)
    if needs.sequences is not None and (variant.sequences or 0) < needs.sequences:
        return _too_small("sequencesTooFew", variant, needs.sequences, variant.sequences)
    return None


def _too_small(reason: str, variant: Variant, needs: int, has: int | None) -> Cause:
    return Cause(reason=reason, lane=variant.id, needs=str(needs), has="unknown" if has is None else str(has))
