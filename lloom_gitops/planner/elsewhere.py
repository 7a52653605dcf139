"""What keeps a lane, or a model without one, off each other node: every reason, in a fixed order (PLN-9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from lloom_gitops.catalog.fit import unfit
from lloom_gitops.catalog.installs import devices_of, shapes
from lloom_gitops.catalog.links import fabrics, linked_sets
from lloom_gitops.catalog.memory import DomainKeys, gib, keys_of_nodes
from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.plan import Cause
from lloom_gitops.model.recipe import Recipe
from lloom_gitops.model.words import Liveness, NodeState, Residency, Seen

from .memory_sums import Sums
from .world import NodeRole, World

EACH_NODE = 24
"""In pools of up to so many nodes each one is listed; above that the reason that all others share."""

OTHERS = "others"
"""Stands for all other nodes of a large pool."""


class Elsewhere:
    """Answers for one outcome; `planned` are its sums."""

    def __init__(self, world: World, planned: Sums) -> None:
        self.world = world
        self.planned = planned
        self.keys: DomainKeys = keys_of_nodes(world.limits)

    def nodes(self, lane: str, residency: Residency) -> dict[str, tuple[Cause, ...]]:
        """Causes by node, for each node that has no lane of the lane's models; `others` in a large pool."""
        variant = self.world.variants[lane]
        if len(self.world.nodes) > EACH_NODE:
            cause = self._fixed(variant)
            return {} if cause is None else {OTHERS: (cause,)}
        taken = {
            node
            for model in variant.models
            for other in self.world.by_model.get(model, ())
            for node in self.world.variants[other].nodes
        }
        rows = {name: tuple(self._at(variant, residency, name)) for name in self.world.nodes if name not in taken}
        return {name: causes for name, causes in rows.items() if causes}

    def _fixed(self, variant: Variant) -> Cause | None:
        """What holds a lane to its nodes, whatever others are like."""
        if not variant.managed:
            return Cause(reason="runByHand", lane=variant.id)
        if variant.installed and not self.world.desired.pool.planning.consider_installs:
            return Cause(reason="notInstalled", lane=variant.id)
        return None

    def _at(self, variant: Variant, residency: Residency, node: str) -> Iterator[Cause]:
        yield from state_causes(self.world, node)
        recipe = self.world.desired.recipes.get(variant.recipe or "")
        if self.world.inventory.nodes.get(node) is None:
            return
        if recipe is not None:
            for cause in unfit(recipe, node, self.world.inventory.nodes[node], installed=False):
                yield msgspec.structs.replace(cause, lane=variant.id)
        needs, has = len(_ranks(variant, variant.nodes[0])), len(devices_of(self.keys, node))
        if has < needs:
            yield Cause(reason="devicesTooFew", lane=variant.id, node=node, needs=str(needs), has=str(has))
        yield from self._memory(variant, residency, node)
        for model in variant.models:
            lanes = self.world.pinned.get(model, ())
            if lanes:
                yield Cause(reason="pinnedElsewhere", lane=variant.id, model=model, says=", ".join(lanes))
        fixed = self._fixed(variant)
        if fixed is not None:
            yield msgspec.structs.replace(fixed, node=node)

    def _memory(self, variant: Variant, residency: Residency, node: str) -> Iterator[Cause]:
        """What the roomiest domain of the node lacks for one rank beside what the outcome keeps there."""
        need = max(_ranks(variant, variant.nodes[0]).values(), default=0)
        rooms = [(self._room(key, residency), key) for key in devices_of(self.keys, node)]
        known = [(room, key) for room, key in rooms if room is not None]
        if not known:
            yield Cause(reason="capacityUnknown", lane=variant.id, domain=self._name(rooms[0][1]), needs_gb=gib(need))
            return
        room, key = max(known, key=lambda row: row[0])
        if room < need:
            yield Cause(
                reason="memory",
                lane=variant.id,
                domain=self._name(key),
                short_gb=gib(need - room),
                needs_gb=gib(need),
                has_gb=gib(max(0, room)),
            )

    def _room(self, key: str, residency: Residency) -> int | None:
        """MiB of a domain's budget that are left for a lane of a residency; None: unknown."""
        budget = self.world.limits[key].budget_mib
        if budget is None:
            return None
        beside = 0 if residency is Residency.AUTO else self.planned.preferred.get(key, 0)
        return budget - self.planned.always.get(key, 0) - beside

    def _name(self, key: str) -> str:
        limit = self.world.limits[key]
        return f"{limit.node}/{limit.domain}"


def _ranks(variant: Variant, node: str) -> Mapping[str, int]:
    """Memory of a lane's ranks on a node by domain key, without the host's own."""
    here = {key: mib for key, mib in variant.memory.items() if key.partition("/")[0] == node}
    devices = {key: mib for key, mib in here.items() if not key.partition("/")[2].startswith("system")}
    return devices or here


def state_causes(world: World, node: str) -> Iterator[Cause]:
    """What keeps anything new off a node, by its state and liveness."""
    role, seen, declared = world.nodes[node], world.inventory.nodes.get(node), world.desired.nodes.get(node)
    if role is NodeRole.GONE:
        yield Cause(reason="nodeLost", node=node)
    elif declared is None:
        yield Cause(reason="undeclaredNode", node=node)
    elif role is NodeRole.LEAVING:
        yield Cause(reason="cordoned", node=node)
    elif role is NodeRole.DRAINING:
        yield Cause(reason="draining", node=node)
    if role is NodeRole.FROZEN and declared is not None:
        on_hold = NodeState.HOLD in (declared.state, seen.state if seen else None)
        unreadable = seen is None or seen.seen is Seen.UNKNOWN or seen.liveness is Liveness.SUSPECT
        if on_hold:
            yield Cause(reason="onHold", node=node)
        if unreadable:
            yield Cause(reason="nodeUnreadable", node=node)


def model_causes(world: World, model: str) -> tuple[Cause, ...]:
    """Why no recipe brings a model to a node: there is none, installs are not considered, or what each node lacks."""
    recipes = {
        name: recipe
        for name, recipe in sorted(world.desired.recipes.items())
        if any(served.gateway_model == model for served in recipe.spec.models)
    }
    if not world.desired.pool.planning.consider_installs:
        if recipes and not world.by_model.get(model):
            return (Cause(reason="installable", model=model, recipe=", ".join(recipes)),)
        return ()
    return tuple(cause for name, recipe in recipes.items() for cause in _recipe_causes(world, name, recipe))


def _recipe_causes(world: World, name: str, recipe: Recipe) -> Iterator[Cause]:
    """What keeps a recipe off each node; of a large pool the first node of each reason."""
    keys, told, able = keys_of_nodes(world.limits), set(), []
    fewest = min(shape.devices for shape in shapes(recipe))
    for node, role in world.nodes.items():
        causes = list(state_causes(world, node))
        if role is NodeRole.FREE:
            causes += unfit(recipe, node, world.inventory.nodes[node], installed=False)
        has = len(devices_of(keys, node))
        if has < fewest:
            causes.append(Cause(reason="devicesTooFew", node=node, needs=str(fewest), has=str(has)))
        able += [] if causes else [node]
        for cause in causes:
            if len(world.nodes) <= EACH_NODE or cause.reason not in told:
                told.add(cause.reason)
                yield msgspec.structs.replace(cause, recipe=name)
    for shape in shapes(recipe):
        fit = [node for node in able if len(devices_of(keys, node)) >= shape.devices]
        for cause in _link_causes(world, fit, shape.nodes):
            yield msgspec.structs.replace(cause, recipe=name)
    if recipe.spec.requirements.memory_gb is None and able:
        yield Cause(reason="memoryUnknown", recipe=name)


def _link_causes(world: World, nodes: list[str], size: int) -> Iterator[Cause]:
    """Of nodes that ranks could share, those without a direct link to others of them."""
    if size == 1 or not nodes:
        return
    desired, inventory, told = world.desired, world.inventory, False
    if len(world.nodes) <= EACH_NODE:
        for place, node in enumerate(nodes):
            apart = [other for other in nodes[place + 1 :] if not fabrics(desired, inventory, node, other)]
            if apart:
                told = True
                yield Cause(reason="noLink", node=node, needs=", ".join(apart))
    if not told and not any(linked_sets(desired, inventory, nodes, size)):
        yield Cause(reason="noLink", node=nodes[0], needs=f"one fabric among {size} nodes")
