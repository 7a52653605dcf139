"""From an outcome to what must change: starts, stops with their reason, residencies, routes (lifecycle.md, Stops)."""

from __future__ import annotations

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import LaneState, Residency, StopReason
from lloom_gitops.reconcile.transition import Change, Route, Transition

from .outcome import Outcome
from .world import LaneRole, NodeRole, World


def transition(world: World, outcome: Outcome) -> Transition:
    """Everything that changes from the inventory to the outcome."""
    after = {alias: outcome.route(alias) for alias, row in outcome.served.items() if row.entries}
    starts, stops = _starts(world, outcome, after), _stops(world, outcome)
    variants = {
        name: variant for name, variant in world.variants.items() if variant.installed or name in outcome.residency
    }
    return Transition(
        variants=variants,
        limits=world.limits,
        head=world.head,
        aliases=world.desired.aliases,
        before=world.current,
        after=after,
        removed=_removed(world),
        residency=outcome.residency,
        starts=starts,
        stops=stops,
        changes=_changes(world, outcome, starts, stops),
        manual_starts=_manual_starts(world, outcome),
        features={name: frozenset(seen.gateway.features) for name, seen in world.inventory.nodes.items()},
        timeouts=world.desired.pool.apply.step_timeout_seconds,
        drain_seconds=_drain_seconds(world),
        untouchable=frozenset(name for name in variants if not _touchable(world, variants[name])),
    )


def _touchable(world: World, variant: Variant) -> bool:
    roles = {world.nodes.get(node, NodeRole.FROZEN) for node in variant.nodes}
    return not roles & {NodeRole.FROZEN, NodeRole.GONE}


def _removed(world: World) -> tuple[str, ...]:
    if world.desired.unlisted == "keep":
        return ()
    return tuple(alias for alias in world.current if alias not in world.desired.aliases)


def _starts(world: World, outcome: Outcome, after: dict[str, Route]) -> tuple[str, ...]:
    """Managed lanes to load, the most needed first: always, auto that takes over, preferred where it fits."""
    firsts: dict[str, int] = {}
    for alias, row in outcome.served.items():
        if row.first is not None:
            firsts[row.first] = max(firsts.get(row.first, 0), world.alias(alias).priority)
    firsts = {**dict.fromkeys(world.hard, 0), **firsts}
    wanted = []
    for name, residency in outcome.residency.items():
        if world.roles[name] is not LaneRole.FREE or name in outcome.shortages or name not in firsts:
            continue
        variant = world.variants[name]
        if variant.state in (LaneState.RUNNING, LaneState.UNKNOWN):
            continue
        takes_over = _takes_over(world, name, after)
        if variant.state is LaneState.LOADING and not takes_over:
            continue
        if residency is Residency.ALWAYS or takes_over:
            wanted.append((-firsts[name], name))
    starts = [name for _, name in sorted(wanted)]
    preferred = [
        (-firsts[name], name)
        for name, residency in outcome.residency.items()
        if residency is Residency.PREFERRED
        and name in firsts
        and name not in starts
        and name not in outcome.shortages
        and world.roles[name] is LaneRole.FREE
        and not world.variants[name].state.holds_memory
    ]
    for _, name in sorted(preferred):
        if _fits_beside(world, name, starts):
            starts.append(name)
    return tuple(starts)


def _takes_over(world: World, lane: str, after: dict[str, Route]) -> bool:
    """Whether a lane becomes the first answer of an alias that a running lane answers now."""
    for alias, (_, lanes) in after.items():
        if lanes and lanes[0] == lane:
            now = world.current.get(alias, ((), ()))[1]
            answering = next((n for n in now if n is None or world.variants[n].loaded), None)
            gone = answering is not None and world.roles[answering] is LaneRole.OUT
            if answering not in (None, lane) and not gone and now[:1] != (lane,):
                return True
    return False


def _fits_beside(world: World, lane: str, starts: list[str]) -> bool:
    """A preferred lane that is not loaded starts only where it fits beside all that is loaded and will be."""
    variant = world.variants[lane]
    loaded = [v for v in world.variants.values() if v.state.holds_memory or v.id in starts]
    for key, mib in variant.peak.items():
        limit = world.limits.get(key)
        used = sum(v.memory.get(key, 0) for v in loaded)
        if limit is None or limit.limit_mib is None or used + mib > limit.limit_mib:
            return False
    return True


def _stops(world: World, outcome: Outcome) -> dict[str, StopReason]:
    """Running lanes to stop for their own sake, by id."""
    routed = {lane for row in outcome.served.values() for _, lane in row.entries if lane is not None}
    stops: dict[str, StopReason] = {}
    for name, variant in world.variants.items():
        if not variant.state.holds_memory or not _touchable(world, variant):
            continue
        reason = _why_stop(world, outcome, variant, routed)
        if reason is not None:
            stops[name] = reason
    return stops


def _why_stop(world: World, outcome: Outcome, variant: Variant, routed: set[str]) -> StopReason | None:
    if variant.id in outcome.leaving:
        return StopReason.VACATE
    if variant.declared.state == "stopped":
        return StopReason.ASKED
    if variant.id in routed or variant.id in outcome.staying:
        return None
    if variant.declared.when_unrouted == "stop":
        return StopReason.ASKED
    return StopReason.MOVED if _moved(world, variant, routed) else None


def _moved(world: World, variant: Variant, routed: set[str]) -> bool:
    """A further running lane of a model is stopped if the agent started it, or a pin puts the model elsewhere."""
    if not variant.managed or world.roles[variant.id] is not LaneRole.FREE:
        return False
    elsewhere = [
        lane for lane in routed if lane != variant.id and set(world.variants[lane].models) & set(variant.models)
    ]
    served = {model for lane in elsewhere for model in world.variants[lane].models}
    if not elsewhere or not set(variant.models) <= served:
        return False
    pinned = any(variant.id not in world.pinned.get(model, (variant.id,)) for model in variant.models)
    return variant.started_by_agent or pinned


def _changes(
    world: World, outcome: Outcome, starts: tuple[str, ...], stops: dict[str, StopReason]
) -> dict[str, Change]:
    """Residency changes of lanes that are not started (a start sets its own).

    A managed lane that is stopped for good goes to auto first, or its gateway's keep-warm pass would load it again.
    """
    after = {name: residency for name, residency in outcome.residency.items() if world.roles[name] is LaneRole.FREE}
    after.update({name: Residency.AUTO for name in stops if world.variants[name].managed})
    return {
        name: Change(before=world.variants[name].residency, after=residency)
        for name, residency in sorted(after.items())
        if name not in starts and world.variants[name].residency is not residency
    }


def _manual_starts(world: World, outcome: Outcome) -> tuple[str, ...]:
    """Stopped unmanaged lanes a person should start: earlier in an alias's order than what answers, and they fit."""
    wanted = []
    for name, variant in world.variants.items():
        free = all(world.nodes.get(node) is NodeRole.FREE for node in variant.nodes)
        stopped = not variant.managed and not variant.state.holds_memory and variant.declared.state == "any"
        if stopped and free and _earlier(world, outcome, variant) and _fits_manual(world, outcome, variant):
            wanted.append(name)
    return tuple(wanted)


def _earlier(world: World, outcome: Outcome, variant: Variant) -> bool:
    for alias, entries in world.entries.items():
        answers = outcome.served[alias].entries[:1]
        for entry in entries:
            if answers and entry.model == answers[0][0]:
                break
            if not entry.external and entry.model in variant.models:
                return True
    return False


def _fits_manual(world: World, outcome: Outcome, variant: Variant) -> bool:
    for key, mib in variant.memory.items():
        limit = world.limits.get(key)
        always = sum(
            world.variants[lane].memory.get(key, 0)
            for lane, residency in outcome.residency.items()
            if residency is not Residency.AUTO
        )
        if limit is None or limit.budget_mib is None or always + mib > limit.budget_mib:
            return False
    return True


def _drain_seconds(world: World) -> dict[str, int]:
    """Drain limits of lanes on draining nodes: the node's own `drainSeconds`."""
    result = {}
    for name, variant in world.variants.items():
        seconds = [
            world.desired.nodes[node].drain_seconds
            for node in variant.nodes
            if world.nodes.get(node) is NodeRole.DRAINING and node in world.desired.nodes
        ]
        if seconds:
            result[name] = max(seconds)
    return result
