"""The objective's levels of an outcome, as whole numbers in strict order (documents.md, Objective)."""

from __future__ import annotations

from fractions import Fraction

from lloom_gitops.model.desired import Alias
from lloom_gitops.model.words import Feature, Residency
from lloom_gitops.reconcile.room import Room
from lloom_gitops.reconcile.transition import Transition

from .memory_sums import Sums, sums
from .outcome import Outcome, Served
from .world import NodeRole, World

Levels = tuple[int, ...]


def milli(figure: object) -> int:
    """A weight or demand in whole thousandths, rounded down."""
    return int(Fraction(str(figure)) * 1000)


def static_levels(world: World, outcome: Outcome) -> Levels:
    """Levels 1 to 5: coverage, externals, SLO misses, steps down the order, residency below the wish."""
    uncovered = external = misses = steps = below = 0
    for alias, row in outcome.served.items():
        document = world.alias(alias)
        if alias in outcome.held or not row.entries:
            uncovered += document.priority
        if not row.entries:
            continue
        if _misses(world, document, row):
            misses += demand_milli(world, alias)
        if alias in outcome.held:
            continue
        if row.first is None:
            external += document.priority
            continue
        model = row.entries[0][0]
        position = document.models.index(model) if model in document.models else len(document.models)
        steps += document.priority * position
        below += document.priority if _below_wish(world, outcome, document, row.first) else 0
    return (uncovered, external, misses, steps, below)


def levels(world: World, outcome: Outcome, change: Transition, room: Room) -> Levels:
    """All eight levels; ties beyond them are broken by stable ids (`tie_break`)."""
    waits = sum(latency(world, outcome, alias, row) for alias, row in outcome.served.items() if row.entries)
    churn = sum(churn_of(world, name) for name in (*change.starts, *room.restarts, *restarted(change, room)))
    room_stops = [name for name in room.stopped if name not in change.stops]
    moves = len(change.starts) + len(room.restarts) + len(change.stops) + len(room_stops)
    moves += len(change.changed_routes) + len(change.removed) + len(change.changes)
    return (*static_levels(world, outcome), waits + churn, moves, -tightest_room(world, outcome, change))


def churn_of(world: World, lane: str) -> int:
    """What loading a lane counts on level 6."""
    return milli(world.desired.pool.objective.churn_seconds_weight) * (world.variants[lane].load_ms or 0)


def restarted(change: Transition, room: Room) -> tuple[str, ...]:
    """Loaded lanes that a residency edit restarts on this gateway build (REC-11); those that stop are not."""
    return tuple(
        name
        for name in change.changes
        if change.variants[name].loaded
        and name not in change.stops
        and name not in room.stopped
        and not change.can(change.variants[name].owner, Feature.RESIDENCY)
    )


def demand_milli(world: World, alias: str) -> int:
    """Requests an hour of an alias in thousandths; without demand, the pool's floor."""
    demand = world.inventory.demand.get(alias)
    return milli(demand.requests_per_hour if demand else world.desired.pool.objective.demand_floor)


def _misses(world: World, alias: Alias, row: Served) -> bool:
    """Whether warm figures miss the SLO; an unknown figure is no miss."""
    figures = world.figures(*row.entries[0])
    if figures is None:
        return False
    slow = alias.slo.ttft_ms is not None and figures.ttft_ms is not None and figures.ttft_ms > alias.slo.ttft_ms
    wanted, has = alias.slo.tokens_per_second, figures.tokens_per_second
    return slow or (wanted is not None and has is not None and has < wanted)


def _below_wish(world: World, outcome: Outcome, alias: Alias, lane: str) -> bool:
    variant = world.variants[lane]
    if not variant.managed and variant.loaded:
        return False
    return outcome.residency[lane].rank < alias.residency.rank


def latency(world: World, outcome: Outcome, alias: str, row: Served) -> int:
    """Demand times expected milliseconds of a request at what answers first."""
    rules = world.desired.pool.objective
    model, lane = row.entries[0]
    figures = world.figures(model, lane)
    ttft = figures.ttft_ms if figures and figures.ttft_ms is not None else rules.default_ttft_ms
    speed = figures.tokens_per_second if figures and figures.tokens_per_second else rules.default_tokens_per_second
    demand = world.inventory.demand.get(alias)
    tokens = demand.output_tokens if demand and demand.output_tokens else 0
    generation = int(Fraction(1000 * tokens) / Fraction(str(speed))) if tokens else 0
    return demand_milli(world, alias) * (ttft + _cold(world, outcome, lane) + generation)


def _cold(world: World, outcome: Outcome, lane: str | None) -> int:
    if lane is None or not world.variants[lane].managed:
        return 0
    chance = world.desired.pool.objective.cold_chance
    share = {
        Residency.ALWAYS: Fraction(0),
        Residency.PREFERRED: Fraction(str(chance.preferred)),
        Residency.AUTO: Fraction(str(chance.auto)),
    }[outcome.residency[lane]]
    return int(share * (world.variants[lane].load_ms or 0))


def kept_sums(world: World, outcome: Outcome, change: Transition) -> Sums:
    """Sums of the lanes that are left when every stop is done, also those that a person does."""
    kept = {name: residency for name, residency in outcome.residency.items() if name not in change.stops}
    return sums(world, kept)


def tightest_room(world: World, outcome: Outcome, change: Transition) -> int:
    """Budget less always and preferred lanes in the tightest domain, MiB; domains of lost nodes do not count."""
    return min((room for room, _ in rooms(world, outcome, change)), default=0)


def rooms(world: World, outcome: Outcome, change: Transition) -> list[tuple[int, str]]:
    """Room of each domain of a known budget, MiB, with the domain's key."""
    planned = kept_sums(world, outcome, change)
    return [
        (limit.budget_mib - planned.always.get(key, 0) - planned.preferred.get(key, 0), key)
        for key, limit in world.limits.items()
        if limit.budget_mib is not None and world.nodes.get(limit.node) is not NodeRole.GONE
    ]


def tie_break(outcome: Outcome) -> tuple[object, ...]:
    """The last word between equal levels: the stronger residency for the smaller id, then lanes by id."""
    strengths = tuple(-outcome.residency[name].rank for name in outcome.residency)
    lanes = tuple(tuple(str(lane) for _, lane in row.entries) for row in outcome.served.values())
    return (strengths, lanes)
