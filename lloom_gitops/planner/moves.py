"""From an outcome to what must change: starts, stops with their reason, residencies, routes (lifecycle.md, Stops)."""

from __future__ import annotations

from collections.abc import Collection

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import LaneState, Residency, StopReason
from lloom_gitops.reconcile.transition import Change, Route, Transition

from .leaving import kept_lanes, takes_over, touchable, why_retire
from .outcome import Outcome
from .world import LaneRole, NodeRole, World


def transition(
    world: World, outcome: Outcome, *, freed: frozenset[str] = frozenset(), ahead: bool = True
) -> Transition:
    """Everything that changes from the inventory to the outcome; `freed` lanes stop to make room for it.

    Without `ahead`, auto lanes that take over are left to load on request.
    """
    after = {alias: outcome.route(alias) for alias, row in outcome.served.items() if row.entries}
    asked = frozenset(name for name in _stops(world, outcome, ()) if world.variants[name].managed)
    starts = _starts(world, outcome, after, freed | asked, ahead=ahead)
    stops = _stops(world, outcome, starts)
    variants = world.variants
    if world.desired.pool.planning.consider_installs:
        variants = {name: row for name, row in variants.items() if row.installed or name in outcome.residency}
    return Transition(
        variants=variants,
        limits=world.limits,
        head=world.head,
        aliases=world.desired.aliases,
        before=world.current,
        externals=world.externals,
        after=after,
        removed=_removed(world),
        residency=outcome.residency,
        installs=tuple(name for name in sorted(outcome.routed) if not world.variants[name].installed),
        starts=starts,
        stops=stops,
        changes=_changes(world, outcome, starts, stops),
        manual_starts=_manual_starts(world, outcome),
        features=world.features,
        timeouts=world.desired.pool.apply.step_timeout_seconds,
        drain_seconds=_drain_seconds(world),
        untouchable=frozenset(name for name in variants if not touchable(world, variants[name])),
    )


def _removed(world: World) -> tuple[str, ...]:
    if world.desired.unlisted == "keep":
        return ()
    return tuple(alias for alias in world.current if alias not in world.desired.aliases)


def _starts(
    world: World, outcome: Outcome, after: dict[str, Route], leaving: frozenset[str], *, ahead: bool
) -> tuple[str, ...]:
    """Managed lanes to load, the most needed first: always, auto that takes over, preferred where it fits."""
    firsts: dict[str, int] = {}
    for alias, row in outcome.served.items():
        if row.first is not None:
            firsts[row.first] = max(firsts.get(row.first, 0), world.alias(alias).priority)
    firsts = {**dict.fromkeys(world.hard, 0), **firsts}
    ahead_of = _taking_over(world, after) if ahead else frozenset()
    wanted = []
    for name, residency in outcome.residency.items():
        if world.roles[name] is not LaneRole.FREE or name in outcome.shortages or name not in firsts:
            continue
        variant = world.variants[name]
        if variant.state in (LaneState.RUNNING, LaneState.UNKNOWN):
            continue
        if variant.state is LaneState.LOADING and name not in ahead_of:
            continue
        if residency is Residency.ALWAYS or name in ahead_of:
            wanted.append((-firsts[name], name))
    starts = dict.fromkeys(name for _, name in sorted(wanted))
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
        if _fits_beside(world, name, starts, leaving):
            starts[name] = None
    return tuple(starts)


def _taking_over(world: World, after: dict[str, Route]) -> frozenset[str]:
    """Lanes that become the first answer of an alias that a running lane answers now."""
    firsts = ((alias, lanes[0]) for alias, (_, lanes) in after.items() if lanes)
    return frozenset(lane for alias, lane in firsts if lane is not None and takes_over(world, lane, alias))


def _fits_beside(world: World, lane: str, starts: Collection[str], leaving: frozenset[str]) -> bool:
    """A preferred lane that is not loaded starts only where it fits beside all that is loaded and will be.

    What this plan itself stops makes room; what a person has to stop does not yet.
    """
    variant = world.variants[lane]
    for key, mib in variant.peak.items():
        limit = world.limits.get(key)
        there = (world.variants[name] for name in world.lanes_on[key])
        loaded = (v for v in there if (v.state.holds_memory and v.id not in leaving) or v.id in starts)
        used = sum(v.memory[key] for v in loaded)
        if limit is None or limit.limit_mib is None or used + mib > limit.limit_mib:
            return False
    return True


def _stops(world: World, outcome: Outcome, starts: tuple[str, ...]) -> dict[str, StopReason]:
    """Running lanes to stop for their own sake, by id."""
    routed = outcome.routed | kept_lanes(world, [alias for alias, row in outcome.served.items() if row.entries])
    up = {*starts, *(name for name in routed if world.variants[name].loaded)}
    stops: dict[str, StopReason] = {}
    for name, variant in world.variants.items():
        vacates = name in outcome.leaving and variant.state.holds_memory and touchable(world, variant)
        reason = StopReason.VACATE if vacates else why_retire(world, variant, routed, up)
        if reason is not None:
            stops[name] = reason
    return stops


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
