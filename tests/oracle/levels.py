"""The eight levels of an outcome and its moves (documents.md, Objective), in whole numbers."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal

from lloom_gitops.model.inventory import Performance

from .moves import Moves
from .outcome import ALWAYS, AUTO, PREFERRED, Domain, Outcome
from .world import AliasFacts, LaneFacts


def first_five(outcome: Outcome) -> tuple[int, ...]:
    """Levels 1 to 5: they need no moves."""
    nothing = external = misses = down = unmet = 0
    for name, alias in outcome.world.aliases.items():
        route, priority = outcome.routes[name], alias.wish.priority
        first = outcome.world.lanes[route[0][1]] if route and route[0][1] else None
        if not route or outcome.held(name):
            nothing += priority
        elif first is not None:
            down += priority * _steps_down(alias, route[0][0])
            unmet += priority * _below_wish(outcome, alias, first)
        elif all(lane is None for _, lane in route):
            external += priority
        if route:
            misses += _demand(outcome, alias) * _misses(outcome, alias, route[0][0])
    return nothing, external, misses, down, unmet


def last_three(outcome: Outcome, moves: Moves | None) -> tuple[int, int, int]:
    """Levels 6 to 8; without moves a lower bound of them."""
    world = outcome.world
    served = [alias for name, alias in world.aliases.items() if outcome.routes[name]]
    latency = sum(_latency(outcome, alias) * _demand(outcome, alias) for alias in served)
    changes = sum(outcome.routes[alias.name] != (alias.now or ()) for alias in served) + len(outcome.gone)
    if world.desired.unlisted == "remove":
        changes += len(set(world.inventory.aliases) - set(world.aliases))
    if moves is not None:
        managed = [lane for lane in world.lanes.values() if lane.managed]
        edits = {lane.id for lane in managed if outcome.residency[lane.id] is not lane.residency}
        weight = _thousandths(world.desired.pool.objective.churn_seconds_weight)
        latency += weight * sum(world.lanes[name].load_ms for name in moves.starts | moves.restarts)
        changes += len(moves.starts) + len(moves.room) + len(edits - moves.starts)
    return latency, changes, -_room(outcome)


def _steps_down(alias: AliasFacts, model: str) -> int:
    """Steps down the alias's own order; a model that only a profile names comes after all of them."""
    models = alias.wish.models
    return models.index(model) if model in models else len(models)


def _below_wish(outcome: Outcome, alias: AliasFacts, lane: LaneFacts) -> int:
    """1 where the lane has less than the alias's own wish; a running unmanaged lane meets any."""
    return int(lane.managed and outcome.residency[lane.id].rank < alias.wish.residency.rank)


def _thousandths(figure: Decimal) -> int:
    return int((figure * 1000).to_integral_value(ROUND_FLOOR))


def _demand(outcome: Outcome, alias: AliasFacts) -> int:
    """Requests an hour, in thousandths."""
    seen = outcome.world.inventory.demand.get(alias.name)
    return _thousandths(seen.requests_per_hour if seen else outcome.world.desired.pool.objective.demand_floor)


def _figures(outcome: Outcome, model: str) -> Performance:
    return outcome.world.inventory.performance.get(model, Performance())


def _misses(outcome: Outcome, alias: AliasFacts, model: str) -> int:
    """1 where a known warm figure misses a goal."""
    seen, goal = _figures(outcome, model), alias.wish.slo
    late = None not in (goal.ttft_ms, seen.ttft_ms) and seen.ttft_ms > goal.ttft_ms  # type: ignore[operator]
    slow = (
        None not in (goal.tokens_per_second, seen.tokens_per_second) and seen.tokens_per_second < goal.tokens_per_second  # type: ignore[operator]
    )
    return int(late or slow)


def _latency(outcome: Outcome, alias: AliasFacts) -> int:
    """Milliseconds of one request to what answers first."""
    policy = outcome.world.desired.pool.objective
    model, behind = outcome.routes[alias.name][0]
    seen = _figures(outcome, model)
    demand = outcome.world.inventory.demand.get(alias.name)
    tokens = (demand.output_tokens if demand else None) or 0
    ttft = policy.default_ttft_ms if seen.ttft_ms is None else seen.ttft_ms
    speed = policy.default_tokens_per_second if seen.tokens_per_second is None else seen.tokens_per_second
    cold = _cold_ms(outcome, outcome.world.lanes[behind]) if behind else 0
    return ttft + cold + int((1000 * tokens / speed).to_integral_value(ROUND_FLOOR))


def _cold_ms(outcome: Outcome, lane: LaneFacts) -> int:
    """The chance that the lane is not loaded, times its load."""
    if not lane.managed:
        return 0
    chances = outcome.world.desired.pool.objective.cold_chance
    chance = {ALWAYS: Decimal(0), PREFERRED: chances.preferred, AUTO: chances.auto}[outcome.residency[lane.id]]
    return int((chance * lane.load_ms).to_integral_value(ROUND_FLOOR))


def _room(outcome: Outcome) -> int:
    """Least room of any known domain: budget less always and preferred lanes, MiB."""
    world = outcome.world
    rooms = []
    for key in world.known_domains:
        domain = Domain(outcome, key)
        rooms.append(domain.budget - domain.total(domain.after, (ALWAYS, PREFERRED)))
    return min(rooms, default=0)
