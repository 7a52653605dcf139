"""Assembles the Plan document from a search's result."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from lloom_gitops.catalog.memory import gib
from lloom_gitops.codec import digest
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import (
    AliasCount,
    Diff,
    DomainBudget,
    Expects,
    ManualChange,
    Plan,
    PlanInputs,
    PlannedLane,
    PlannedNode,
    PlannedRoute,
    ResidencyChange,
    RouteChange,
    StartChange,
    Step,
    StopChange,
    Unmet,
    Verdict,
)
from lloom_gitops.model.words import Liveness, NodeState, Residency, StepKind, StopReason
from lloom_gitops.reconcile.fold import fold
from lloom_gitops.reconcile.order import order

from .costs import costs
from .elsewhere import Elsewhere
from .explain import answers, because, below_wish, missing_models
from .leaving import kept_lanes
from .memory_sums import rules_of, sums
from .notes import all_gaps, notes
from .objective import kept_sums, restarted
from .search import Found
from .world import LaneRole, NodeRole, World


def assemble(
    desired: Desired,
    inventory: Inventory,
    world: World,
    found: Found,
    unmet: tuple[Unmet, ...],
    what_if: tuple[str, ...],
) -> Plan:
    """The plan of a search result. `desired` is the committed state that the digest names, without what-if flags."""
    steps, gaps = order(found.change, found.room)
    outcome = found.outcome
    gaps = all_gaps(found, gaps)
    if broken := fold(found.change, steps, gaps):
        says = "; ".join(f"{row.step}: {row.says}" for row in broken)
        raise AssertionError(f"the plan breaks its own rules on the way: {says}")
    uncovered = {
        alias: missing_models(world, outcome, alias) for alias, row in outcome.served.items() if not row.entries
    }
    return Plan(
        inputs=PlanInputs(
            desired=digest(desired),
            inventory=digest(inventory),
            effort=world.desired.pool.planning.effort,
            engine="exact" if found.exact else found.engine or "greedy",
            what_if=what_if,
        ),
        verdict=_verdict(world, found),
        nodes=_nodes(world),
        lanes=_lanes(world, found),
        routes=_routes(world, found),
        uncovered=uncovered,
        unmet=unmet,
        gaps=gaps,
        budget=_budget(world, found),
        diff=_diff(world, found, steps),
        steps=steps,
        notes=notes(world, found),
        says=_sentence(found) if steps else _nothing(world),
    )


def _sentence(found: Found) -> str:
    """What the plan does, in one sentence."""
    change, room = found.change, found.room
    starts = [*change.starts, *room.restarts]
    stops = sorted({*change.stops, *room.stopped})
    routes = [*change.changed_routes, *change.removed]
    parts = [
        *([f"starts {', '.join(starts)}"] if starts else []),
        *([f"stops {', '.join(stops)}"] if stops else []),
        *([f"changes the residency of {', '.join(change.changes)}"] if change.changes else []),
        *([f"routes {', '.join(routes)} anew"] if routes else []),
        *([f"asks for a start of {', '.join(change.manual_starts)} by hand"] if change.manual_starts else []),
    ]
    return "; ".join(parts)


def _nothing(world: World) -> str:
    frozen = [name for name, role in world.nodes.items() if role is NodeRole.FROZEN]
    if frozen:
        return (
            f"nothing to do: what runs is what is wanted, as far as can be seen ({', '.join(frozen)} stay as they are)"
        )
    return "nothing to do: what runs is what is wanted"


def _verdict(world: World, found: Found) -> Verdict:
    rows = found.outcome.served.values()
    starts = [found.change.variants[name] for name in (*found.change.starts, *found.room.restarts)]
    room_stops = [name for name in found.room.stopped if name not in found.change.stops]
    proven = found.exact or found.levels == found.bound
    return Verdict(
        levels=found.levels,
        proof="optimal" if proven else "bounded",
        bound=None if proven else found.bound,
        gap_percent=None if proven else _gap(found),
        aliases=AliasCount(
            covered=sum(row.first is not None for row in rows),
            external=sum(row.external_only for row in rows),
            uncovered=sum(not row.entries for row in rows),
        ),
        start=len(starts),
        stop=len(found.change.stops) + len(room_stops),
        load_gb=sum((gib(mib) for variant in starts for mib in variant.memory.values()), Decimal(0)),
        load_seconds=sum((variant.load_ms or 0) for variant in starts) // 1000,
        costs=costs(world, found),
    )


def _gap(found: Found) -> Decimal:
    """Percent by which the first level above its bound is above it; later bounds presuppose the earlier ones."""
    for level, least in zip(found.levels, found.bound, strict=False):
        if level != least:
            return (Decimal(100) * (level - least) / max(1, abs(least))).quantize(Decimal("0.01"), ROUND_CEILING)
    return Decimal(0)


def _nodes(world: World) -> dict[str, PlannedNode]:
    """Nodes that are not simply ready and serving."""
    rows = {}
    for name in world.nodes:
        seen, declared = world.inventory.nodes.get(name), world.desired.nodes.get(name)
        states = [each.state for each in (declared, seen) if each is not None and each.state is not None]
        rows[name] = PlannedNode(
            state=max(states, key=lambda state: state.strictness, default=NodeState.SERVE),
            liveness=Liveness.SUSPECT if seen is None else seen.liveness,
            declared=declared is not None,
        )
    return {name: row for name, row in rows.items() if row != PlannedNode()}


def _lanes(world: World, found: Found) -> dict[str, PlannedLane]:
    outcome = found.outcome
    elsewhere = Elsewhere(world, kept_sums(world, outcome, found.change))
    serves, beside = answers(outcome), (rules_of(world), sums(world, outcome.residency))
    return {
        name: PlannedLane(
            models=world.variants[name].models,
            nodes=world.variants[name].nodes,
            residency=residency,
            memory_gb={key: gib(mib) for key, mib in world.variants[name].memory.items()},
            because=because(world, outcome, name, elsewhere, serves.get(name, ([], [])), beside),
        )
        for name, residency in outcome.residency.items()
        if name not in found.change.stops
    }


def _routes(world: World, found: Found) -> dict[str, PlannedRoute]:
    routes = {}
    for alias, row in found.outcome.served.items():
        if not row.entries:
            continue
        route, lanes = found.change.after[alias]
        figures = world.figures(route[0], lanes[0])
        routes[alias] = PlannedRoute(
            route=route,
            lanes=lanes,
            expects=Expects(
                ttft_ms=figures.ttft_ms if figures else None,
                tokens_per_second=figures.tokens_per_second if figures else None,
                source=figures.source if figures else None,
                hardware=figures.hardware if figures else None,
            ),
            because=missing_models(world, found.outcome, alias),
        )
    return routes


def _budget(world: World, found: Found) -> dict[str, tuple[DomainBudget, ...]]:
    """Memory of every domain in the planned outcome; `before` and `after` are what is loaded now and at the end."""
    planned = kept_sums(world, found.outcome, found.change)
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    autos: dict[str, int] = {}
    stopped = {**found.room.stopped, **found.change.stops}
    up = {*found.change.starts, *found.room.restarts}
    on_request = _on_request(world, found)
    for name, variant in world.variants.items():
        gone = world.roles[name] is LaneRole.OUT and world.out[name].reason == "nodeLost"
        for key, mib in variant.memory.items():
            if variant.state.holds_memory and not gone:
                before[key] = before.get(key, 0) + mib
                after[key] = after.get(key, 0) + (mib if name not in stopped else 0)
            if name in up and (not variant.state.holds_memory or name in stopped):
                after[key] = after.get(key, 0) + mib
            if name in on_request:
                autos[key] = max(autos.get(key, 0), mib)
    result: dict[str, list[DomainBudget]] = {}
    for key, limit in world.limits.items():
        always, preferred = planned.always.get(key, 0), planned.preferred.get(key, 0)
        row = DomainBudget(
            domain=limit.domain,
            budget_gb=None if limit.budget_mib is None else gib(limit.budget_mib),
            always_gb=gib(always),
            preferred_gb=gib(preferred),
            largest_auto_gb=gib(autos.get(key, 0)),
            free_gb=None if limit.budget_mib is None else gib(limit.budget_mib - always - preferred),
            before_gb=gib(before.get(key, 0)),
            after_gb=gib(after.get(key, 0)),
        )
        result.setdefault(limit.node, []).append(row)
    return {node: tuple(rows) for node, rows in sorted(result.items())}


def _on_request(world: World, found: Found) -> set[str]:
    """Lanes that a request may load."""
    outcome = found.outcome
    routed = outcome.routed | kept_lanes(world, world.desired.aliases)
    autos = {name for name in routed if outcome.residency.get(name) is Residency.AUTO}
    return {name for name in autos if world.variants[name].managed}


def _diff(world: World, found: Found, steps: tuple[Step, ...]) -> Diff:
    change, rules = found.change, rules_of(world)
    planned = sums(world, found.outcome.residency)
    again = set(restarted(change, found.room))
    starts = [*change.starts, *found.room.restarts]
    reasons = {**dict.fromkeys(found.room.stopped, StopReason.ROOM), **change.stops}
    return Diff(
        start=tuple(_start(found, name) for name in starts),
        stop=tuple(
            StopChange(lane=name, nodes=change.variants[name].nodes, why=why) for name, why in sorted(reasons.items())
        ),
        residency=tuple(
            ResidencyChange(
                lane=name,
                before=row.before,
                after=row.after,
                wished=found.outcome.wished.get(name) if _less_than_wished(found, name) else None,
                because=below_wish(world, rules, found.outcome, name, planned)
                if name in found.outcome.residency
                else None,
                restarts=name in again,
            )
            for name, row in sorted(change.changes.items())
        ),
        routes=tuple(
            RouteChange(alias=alias, before=change.before.get(alias, ((), ()))[0], after=change.after[alias][0])
            for alias in change.changed_routes
        )
        + tuple(RouteChange(alias=alias, before=change.before[alias][0], after=()) for alias in change.removed),
        manual=tuple(
            ManualChange(step=step.id, does=step.does or "", says=step.says or "")
            for step in steps
            if step.kind is StepKind.MANUAL
        ),
    )


def _less_than_wished(found: Found, lane: str) -> bool:
    """Whether memory forces less residency on a lane than people wish."""
    wish = found.outcome.wished.get(lane)
    return wish is not None and lane in found.outcome.residency and found.outcome.residency[lane].rank < wish.rank


def _start(found: Found, name: str) -> StartChange:
    variant = found.change.variants[name]
    return StartChange(
        lane=name,
        nodes=variant.nodes,
        residency=found.change.residency.get(name, Residency.AUTO),
        load_gb=sum((gib(mib) for mib in variant.memory.values()), Decimal(0)),
        load_seconds=None if variant.load_ms is None else variant.load_ms // 1000,
    )
