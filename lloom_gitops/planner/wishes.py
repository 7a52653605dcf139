"""Hard wishes: pins and the active profile's residencies. Unmet now is suspended; never possible is refused."""

from __future__ import annotations

import msgspec

from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.errors import Finding, Refused
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Cause, Unmet
from lloom_gitops.model.words import LaneState, Liveness, Management, NodeState, Residency, Seen

from .best import find
from .explain import shortage_cause
from .search import Found
from .world import LaneRole, World, build


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A hard wish by its key in the documents (`pin MODEL@NODE`, `profile NAME: LANE`)."""

    key: str
    target: str
    residency: Residency | None
    pin: bool


def wishes_of(desired: Desired) -> tuple[Wish, ...]:
    """All hard wishes, pins first, by key."""
    profile = desired.profiles.get(desired.pool.active_profile or "")
    pins = {**(profile.pins if profile else {}), **desired.pins}
    wishes = [
        Wish(key=f"pin {key}", target=key, residency=pin.residency, pin=True) for key, pin in sorted(pins.items())
    ]
    for target, residency in sorted(profile.residency.items() if profile else ()):
        key = f"profile {desired.pool.active_profile}: {target}"
        wishes.append(Wish(key=key, target=target, residency=residency, pin=False))
    return tuple(wishes)


def lane_of(world: World, target: str) -> str | None:
    """The lane a wish names: by id, or the one in use that serves MODEL on exactly NODE[+NODE]."""
    return next(iter(lanes_of(world, target)), None)


def lanes_of(world: World, target: str) -> list[str]:
    """All lanes a wish fits, those that can serve and are in use first."""
    if target in world.variants:
        return [target]
    model, _, nodes = target.rpartition("@")
    members = sorted(nodes.split("+"))
    matching = [name for name in world.by_model.get(model, ()) if sorted(world.variants[name].nodes) == members]
    routed = {lane for _, lanes in world.current.values() for lane in lanes}

    def fitness(name: str) -> tuple[bool, bool, bool, bool, str]:
        variant, role = world.variants[name], world.roles[name]
        serves = role in (LaneRole.FREE, LaneRole.FIXED)
        return (not serves, not variant.installed, name not in routed, not variant.loaded, name)

    return sorted(matching, key=fitness)


def with_wishes(world: World, wishes: tuple[Wish, ...]) -> World:
    """The world with some wishes made hard."""
    hard: dict[str, Residency] = {}
    pinned: dict[str, tuple[str, ...]] = {}
    shared: list[tuple[tuple[str, ...], Residency]] = []
    for wish in wishes:
        lanes = tuple(lanes_of(world, wish.target))
        if not lanes:
            continue
        if wish.residency is not None and len(lanes) == 1:
            hard[lanes[0]] = wish.residency
        elif wish.residency is not None:
            shared.append((lanes, wish.residency))
        if wish.pin:
            model = wish.target.rpartition("@")[0] or world.variants[lanes[0]].models[0]
            pinned[model] = (*pinned.get(model, ()), *lanes)
    return msgspec.structs.replace(
        world, hard=dict(sorted(hard.items())), shared_pins=tuple(shared), pinned=dict(sorted(pinned.items()))
    )


def hopeless(world: World, wish: Wish) -> Cause | None:
    """Why a wish can't be met whatever else is decided; None: it may be."""
    lane = lane_of(world, wish.target)
    if lane is None:
        return Cause(reason="noLane", model=wish.target.rpartition("@")[0] or wish.target)
    role, variant = world.roles[lane], world.variants[lane]
    if role is LaneRole.OUT:
        return world.out[lane]
    if role is LaneRole.LEAVING:
        node = next(node for node in variant.nodes if world.nodes[node].value in ("leaving", "draining"))
        return Cause(reason="cordoned", node=node, lane=lane)
    if role is LaneRole.FIXED and wish.residency not in (None, variant.residency):
        return Cause(reason="fixedAsItIs", lane=lane, has=variant.residency.value, needs=str(wish.residency))
    return None


def best_with_wishes(desired: Desired, inventory: Inventory) -> tuple[World, Found, tuple[Unmet, ...]]:
    """The best outcome that meets every wish that can be met now, and the suspended ones with their causes.

    Raises Refused `wishImpossible` for wishes that could not be met even with every node ready and serving.
    """
    world = build(desired, inventory)
    world, found, unmet = _suspend(world, wishes_of(desired))
    if unmet:
        keys = {row.wish for row in unmet}
        suspended = tuple(wish for wish in wishes_of(desired) if wish.key in keys)
        _refuse_impossible(desired, inventory, suspended)
    return world, found, unmet


def _suspend(world: World, wishes: tuple[Wish, ...]) -> tuple[World, Found, tuple[Unmet, ...]]:
    unmet = {wish.key: cause for wish in wishes if (cause := hopeless(world, wish)) is not None}
    kept = tuple(wish for wish in wishes if wish.key not in unmet)
    found = find(with_wishes(world, kept))
    if found is None or _missed(world, found, kept):
        kept, found = _largest_met(world, kept, unmet)
    if found is None:
        raise Refused(code="noOutcome", message="no outcome keeps every hard rule", hint="lloom-gitops check")
    rows = tuple(Unmet(wish=key, causes=(cause,)) for key, cause in sorted(unmet.items()))
    return with_wishes(world, kept), found, rows


def _largest_met(
    world: World, wishes: tuple[Wish, ...], unmet: dict[str, Cause]
) -> tuple[tuple[Wish, ...], Found | None]:
    """Add wishes one by one in order; one that breaks what is met so far is suspended."""
    kept: tuple[Wish, ...] = ()
    best = find(with_wishes(world, ()))
    for wish in wishes:
        tried = (*kept, wish)
        found = find(with_wishes(world, tried))
        missed = _missed(world, found, tried) if found is not None else {}
        if found is not None and not missed:
            kept, best = tried, found
            continue
        unmet[wish.key] = missed.get(wish.key) or Cause(
            reason="conflict", says=f"with {kept[-1].key}" if kept else None
        )
    return kept, best


def _missed(world: World, found: Found, wishes: tuple[Wish, ...]) -> dict[str, Cause]:
    """Wishes whose lane could not be loaded in an outcome, with the shortage."""
    missed = {}
    for wish in wishes:
        lanes = lanes_of(world, wish.target)
        short = [lane for lane in lanes if lane in found.outcome.shortages]
        serving = [lane for lane in lanes if world.roles[lane] in (LaneRole.FREE, LaneRole.FIXED)]
        if short and set(serving) <= set(short):
            missed[wish.key] = shortage_cause(short[0], found.outcome.shortages[short[0]], world)
    return missed


def _refuse_impossible(desired: Desired, inventory: Inventory, wishes: tuple[Wish, ...]) -> None:
    ideal_desired, ideal_inventory = _ideal(desired, inventory)
    world = build(ideal_desired, ideal_inventory)
    impossible = {wish.key: cause for wish in wishes if (cause := hopeless(world, wish)) is not None}
    rest = tuple(wish for wish in wishes_of(desired) if wish.key not in impossible)
    _largest_met(world, tuple(w for w in rest if hopeless(world, w) is None), impossible)
    named = {wish.key for wish in wishes}
    findings = tuple(
        Finding(
            code="wishImpossible",
            message=f"{key} can't be met even with every node ready and serving: {cause.reason}",
            hint="change the pin or profile, or give the lane the memory it needs",
        )
        for key, cause in sorted(impossible.items())
        if key in named
    )
    if findings:
        raise Refused(code="wishImpossible", message=findings[0].message, hint=findings[0].hint, findings=findings)


def _ideal(desired: Desired, inventory: Inventory) -> tuple[Desired, Inventory]:
    """Every node ready and serving, nothing latched, excluded or foreign, unmanaged lanes running."""
    replace = msgspec.structs.replace
    nodes: dict[str, Node] = {name: replace(node, state=NodeState.SERVE) for name, node in desired.nodes.items()}
    seen = {
        name: replace(
            node,
            seen=Seen.PRESENT,
            liveness=Liveness.READY,
            state=None,
            memory_domains=tuple(replace(domain, foreign_gb=0 * domain.foreign_gb) for domain in node.memory_domains),
        )
        for name, node in inventory.nodes.items()
    }
    lanes = {
        name: replace(
            lane,
            latched=False,
            excluded_nodes=(),
            state=LaneState.RUNNING if lane.management is Management.UNMANAGED else lane.state,
        )
        for name, lane in inventory.lanes.items()
    }
    return replace(desired, nodes=nodes), replace(inventory, nodes=seen, lanes=lanes)
