"""Which running lanes are stopped for good: asked for by people, or moved elsewhere (lifecycle.md, Stops)."""

from __future__ import annotations

from collections.abc import Collection

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import StopReason
from lloom_gitops.reconcile.transition import answering

from .world import LaneRole, NodeRole, World


def touchable(world: World, variant: Variant) -> bool:
    """Whether anything may be changed about a lane: none of its nodes is on hold, unreadable or gone."""
    roles = {world.nodes.get(node, NodeRole.FROZEN) for node in variant.nodes}
    return not roles & {NodeRole.FROZEN, NodeRole.GONE}


def why_retire(world: World, variant: Variant, routed: Collection[str], up: Collection[str]) -> StopReason | None:
    """Why a running lane that no route uses is stopped for good; None: it keeps running.

    `routed` are the lanes of all planned routes, `up` those that are loaded now or will be.
    """
    if not variant.state.holds_memory or not touchable(world, variant):
        return None
    if variant.declared.state == "stopped":
        return StopReason.ASKED
    if variant.id in routed or variant.id in world.hard or _meets_a_pin(world, variant, routed):
        return None
    if variant.declared.when_unrouted == "stop":
        return StopReason.ASKED
    return StopReason.MOVED if _moved(world, variant, routed, up) else None


def _meets_a_pin(world: World, variant: Variant, routed: Collection[str]) -> bool:
    """Whether a pin is met by this lane and by no lane of the routes."""
    return any(variant.id in lanes and not set(lanes) & set(routed) for lanes in world.pinned.values())


def _moved(world: World, variant: Variant, routed: Collection[str], up: Collection[str]) -> bool:
    """A further running lane of a model is stopped if the agent started it, or a pin puts the model elsewhere."""
    if not variant.managed or world.roles[variant.id] is not LaneRole.FREE:
        return False
    kin = {lane for model in variant.models for lane in world.by_model.get(model, ())}
    elsewhere = [lane for lane in kin if lane != variant.id and lane in routed]
    if not elsewhere or not all(lane in up for lane in elsewhere):
        return False
    return variant.started_by_agent or any(_pinned_elsewhere(world, variant, model) for model in variant.models)


def _pinned_elsewhere(world: World, variant: Variant, model: str) -> bool:
    """Whether pins put a model on other nodes than the lane's, and none on these."""
    places = [set(world.variants[lane].nodes) for lane in world.pinned.get(model, ())]
    return bool(places) and set(variant.nodes) not in places


def answering_now(world: World, alias: str) -> str | None:
    """The lane that answers an alias now."""
    return answering(world.current.get(alias, ((), ())), world.variants, world.externals)


def kept_lanes(world: World, covered: Collection[str]) -> frozenset[str]:
    """Lanes in routes that the plan leaves as they are: of aliases nothing covers, and of those not declared here."""
    removes, covered = world.desired.unlisted == "remove", frozenset(covered)
    return frozenset(
        lane
        for alias, (_, lanes) in world.current.items()
        if alias not in covered and not (removes and alias not in world.desired.aliases)
        for lane in lanes
        if lane is not None
    )


def takes_over(world: World, lane: str, alias: str) -> bool:
    """Whether a lane that becomes an alias's first answer takes over from a running lane that counts."""
    before = answering_now(world, alias)
    now = world.current.get(alias, ((), ()))[1]
    if before in (None, lane) or now[:1] == (lane,):
        return False
    return world.roles[str(before)] is not LaneRole.OUT
