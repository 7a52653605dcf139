"""The levels of a plan, recomputed from the outcome it describes (documents.md, Objective), in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Decimal

from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import Costs, PlannedRoute
from lloom_gitops.model.words import Residency

from .plan_codes import at, fault
from .plan_routes import EMPTY
from .plan_scene import LaneFacts, Scene
from .plan_sums import Sums

LEVELS = (
    "aliases that nothing serves",
    "aliases on external only",
    "misses of latency goals",
    "steps down the aliases' orders",
    "residency wishes not met",
    "latency and loads",
    "changes",
    "room in the tightest domain, negated",
)


def level_findings(scene: Scene, sums: Sums) -> Iterator[Finding]:
    """Each level that is not the recomputed one, or is not what its shares add up to."""
    said = scene.plan.verdict.levels
    yield from _shares(scene)
    for index, level in enumerate(levels(scene, sums)):
        if index >= len(said) or said[index] != level:
            found = str(said[index]) if index < len(said) else "nothing"
            yield fault(
                "planLevels",
                at("verdict", "levels", index),
                f"level {index + 1} ({LEVELS[index]})",
                wanted=str(level),
                found=found,
            )


def _shares(scene: Scene) -> Iterator[Finding]:
    """The costs of a plan add up to its first six levels; a plan that gives none claims nothing."""
    said, costs = scene.plan.verdict.levels, scene.plan.verdict.costs
    shares = (costs.uncovered, costs.external, costs.slo_misses, costs.order, costs.below_wish)
    totals = [sum(share.values()) for share in shares]
    totals.append(sum(costs.latency.values()) + sum(costs.loads.values()))
    for index, total in enumerate(totals if costs != Costs() else []):
        if index < len(said) and said[index] != total:
            yield fault(
                "planCosts",
                at("verdict", "costs"),
                f"the shares of level {index + 1} ({LEVELS[index]}) do not add up",
                wanted=str(said[index]),
                found=str(total),
            )


def levels(scene: Scene, sums: Sums) -> tuple[int, ...]:
    """The eight levels of the outcome; stable ids, which come after them, are no number."""
    nothing = external = misses = down = unmet = latency = 0
    for name, alias in scene.desired.aliases.items():
        planned = scene.plan.routes.get(name, EMPTY)
        lane = scene.first_lane(name)
        if not planned.route or scene.held_on_cordoned(name):
            nothing += alias.priority
        elif lane is None and not any(planned.lanes):
            external += alias.priority
        elif lane is not None:
            down += alias.priority * _steps_down(alias.models, planned.route[0])
            unmet += alias.priority if _less_than_wished(scene, lane, alias.residency) else 0
        if planned.route:
            misses += _demand(scene, name) * _misses(scene, name, planned)
            latency += _demand(scene, name) * _latency(scene, name, planned, lane)
    return (
        nothing,
        external,
        misses,
        down,
        unmet,
        latency + _churn(scene),
        _changes(scene),
        -min(_room(scene, sums), default=0),
    )


def _thousandths(value: Decimal) -> int:
    return int((value * 1000).to_integral_value(ROUND_FLOOR))


def _demand(scene: Scene, alias: str) -> int:
    seen = scene.inventory.demand.get(alias)
    return _thousandths(seen.requests_per_hour if seen else scene.desired.pool.objective.demand_floor)


def _steps_down(models: tuple[str, ...], model: str) -> int:
    return models.index(model) if model in models else len(models)


def _less_than_wished(scene: Scene, lane: LaneFacts, wish: Residency) -> bool:
    if not lane.managed:
        return not lane.loaded
    return scene.residency[lane.id].rank < wish.rank


def _misses(scene: Scene, alias: str, planned: PlannedRoute) -> int:
    """1 where a known warm figure (planExpects checks it) misses a goal; an unknown figure is no miss."""
    slo = scene.desired.aliases[alias].slo
    figures = planned.expects
    slow = slo.ttft_ms is not None and figures.ttft_ms is not None and figures.ttft_ms > slo.ttft_ms
    wanted, speed = slo.tokens_per_second, figures.tokens_per_second
    return int(slow or (wanted is not None and speed is not None and speed < wanted))


def _latency(scene: Scene, alias: str, planned: PlannedRoute, lane: LaneFacts | None) -> int:
    """Milliseconds of a request: first token, the chance of a cold load, and the tokens."""
    policy = scene.desired.pool.objective
    figures = planned.expects
    ttft = policy.default_ttft_ms if figures.ttft_ms is None else figures.ttft_ms
    speed = figures.tokens_per_second or policy.default_tokens_per_second
    demand = scene.inventory.demand.get(alias)
    tokens = (demand.output_tokens if demand else None) or 0
    return ttft + _cold(scene, lane) + int((Decimal(1000 * tokens) / speed).to_integral_value(ROUND_FLOOR))


def _cold(scene: Scene, lane: LaneFacts | None) -> int:
    if lane is None or not lane.managed:
        return 0
    chances = scene.desired.pool.objective.cold_chance
    residency = scene.residency[lane.id]
    chance = {Residency.ALWAYS: Decimal(0), Residency.PREFERRED: chances.preferred, Residency.AUTO: chances.auto}
    return _thousandths(chance[residency]) * lane.load_ms // 1000


def _churn(scene: Scene) -> int:
    """Load time of every lane that the plan starts or restarts, once a lane."""
    restarts = {change.lane for change in scene.plan.diff.residency if change.restarts}
    weight = _thousandths(scene.desired.pool.objective.churn_seconds_weight)
    return weight * sum(scene.lanes[name].load_ms for name in {*scene.started, *restarts} if name in scene.lanes)


def _changes(scene: Scene) -> int:
    """Starts, stops, changed routes, and residency changes of lanes that the plan does not start."""
    routes = [name for name in {*scene.routes_before, *scene.plan.routes} if changed_route(scene, name)]
    residency = [name for name in changed_residency(scene) if name not in scene.started]
    return len(scene.started) + len(scene.stops) + len(routes) + len(residency)


def changed_route(scene: Scene, alias: str) -> bool:
    """Whether the outcome gives an alias another route, or other lanes behind it."""
    return scene.routes_after.get(alias, ((), ())) != scene.routes_before.get(alias, ((), ()))


def changed_residency(scene: Scene) -> list[str]:
    """Lanes that exist and get another residency, sorted."""
    return [
        name
        for name, lane in sorted(scene.lanes.items())
        if lane.managed and not lane.installs and scene.residency[name] is not lane.residency
    ]


def _room(scene: Scene, sums: Sums) -> Iterator[int]:
    for key, limit in scene.limits.items():
        if limit.budget_mib is not None and not scene.gone(limit.node):
            both = (Residency.ALWAYS, Residency.PREFERRED)
            yield limit.budget_mib - sum(sums.resident(key, which) for which in both)
