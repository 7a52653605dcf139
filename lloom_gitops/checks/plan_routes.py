"""Routes of the outcome: every covered model in the alias's own order, external ones last, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.model.desired import Alias
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import PlannedRoute
from lloom_gitops.model.words import Feature

from .plan_codes import at, fault
from .plan_figures import expects_findings
from .plan_hard import pins
from .plan_lanes import obstacle
from .plan_scene import LaneFacts, Scene
from .plan_sums import Sums

EMPTY = PlannedRoute(route=(), lanes=())


def route_findings(scene: Scene, sums: Sums) -> Iterator[Finding]:
    """Each alias's route against what covers it; what is listed as uncovered against what is."""
    for name, alias in scene.desired.aliases.items():
        planned = scene.plan.routes.get(name, EMPTY)
        yield from _entries(scene, sums, name, alias, planned)
        yield from _order(scene, sums, name, planned)
        yield from _uncovered(scene, name, planned)
        yield from expects_findings(scene, name, planned)
    for name in scene.plan.routes:
        if name not in scene.desired.aliases and scene.routes_after.get(name) != scene.routes_before.get(name):
            yield fault("planRouteForeign", at("routes", name), f"{name} is not declared here; its route is not ours")
    yield from _removed(scene)


def _entries(scene: Scene, sums: Sums, name: str, alias: Alias, planned: PlannedRoute) -> Iterator[Finding]:
    """What each entry claims: the lane serves the model, meets the needs, and can be loaded."""
    _, external = scene.wished_order(name)
    for index, (model, lane_id) in enumerate(zip(planned.route, planned.lanes, strict=True)):
        pointer = at("routes", name, "lanes", index)
        if (lane_id is None) != (model in external):
            yield fault("planRouteLane", pointer, f"{model} of {name}: a lane behind each model, none behind external")
        if lane_id is None:
            continue
        lane = scene.lanes[lane_id]
        if model not in lane.models:
            yield fault("planRouteLane", pointer, f"{lane_id} does not serve {model}")
        if not scene.meets(lane, alias):
            yield fault("planRouteNeeds", pointer, f"{lane_id} does not meet the needs of {name}")
        unfit = unavailable(scene, sums, lane, name)
        if unfit:
            yield fault("planRouteUnavailable", pointer, f"{name} counts on {lane_id}, which can't serve", found=unfit)


def unavailable(scene: Scene, sums: Sums, lane: LaneFacts, alias: str | None = None) -> str | None:
    """Why a lane can't cover an alias in this outcome; None where it can.

    A lane that was over a bound when the pool was adopted covers its aliases (those that lead to it now), and no other.
    """
    if scene.dead(lane):
        return "lost"
    if scene.undeclared(lane):
        return "undeclared"
    if lane.id in scene.left:
        return "stopped"
    if not lane.managed:
        return None if lane.loaded else "notRunning"
    if scene.vacating(lane) and not _held(scene, lane):
        return "cordoned"
    if lane.document.state == "stopped":
        return "askedStopped"
    if not lane.loaded:
        blocked = obstacle(scene, lane)
        if blocked:
            return blocked
    own = lane.id in (scene.routed_now if alias is None else scene.routes_before.get(alias, ((), ()))[1])
    for broken in sums.broken(lane.memory, loads=(lane.id,), adopted=(lane.id,) if own else ()):
        if broken.lanes and lane.id in broken.lanes:
            return f"memory: {broken.domain} {broken.mib} of {broken.bound} MiB"
    return None


def _held(scene: Scene, lane: LaneFacts) -> bool:
    """A lane on a cordoned node stays while an alias that names one of its models has nothing else."""
    return any(
        set(alias.models) & set(lane.models) and (scene.held_on_cordoned(name) or name not in scene.served)
        for name, alias in scene.desired.aliases.items()
    )


def _order(scene: Scene, sums: Sums, name: str, planned: PlannedRoute) -> Iterator[Finding]:
    """The route is the wished order without what is not covered; nothing that is covered is left out."""
    order, external = scene.wished_order(name)
    pointer = at("routes", name, "route")
    for model in planned.route:
        if model not in order:
            yield fault("planRouteOrder", pointer, f"{model} is not a model of {name}", found=model)
    kept = tuple(model for model in order if model in planned.route)
    if kept != planned.route and set(planned.route) <= set(order):
        yield fault("planRouteOrder", pointer, f"the route of {name} is not in order", wanted=", ".join(kept))
    old = not scene.has(scene.desired.pool.head, Feature.ROUTE_MEMBERS)
    if old and len(planned.route) > 1:
        yield fault("planRouteOldBuild", pointer, f"the head's build gives {name} one model, not a list")
    for model in order:
        if model in planned.route:
            continue
        covers = "external" if model in external else _covering(scene, sums, name, model)
        if not covers or _hidden(scene, covers):
            continue
        if not (old and planned.route and _after(order, model, planned.route[0])):
            yield fault("planRouteMissing", pointer, f"{model} is covered by {covers} and not in the route of {name}")
        elif not any(note.alias == name for note in scene.plan.notes):
            yield fault("planRouteOldBuild", pointer, f"{model} is not in the route of {name}; no note says so")


def _after(order: tuple[str, ...], model: str, first: str) -> bool:
    return first in order and order.index(model) > order.index(first)


def _hidden(scene: Scene, covers: str) -> bool:
    """Nothing hides an external model; what a node's hold or silence leaves untouched need not be offered anew."""
    lane = scene.lanes.get(covers)
    return lane is not None and scene.hands_off(lane) and not lane.loaded


def _covering(scene: Scene, sums: Sums, alias: str, model: str) -> str | None:
    """A lane that would cover a model in this outcome, recomputed; recipes that are not installed don't count."""
    if any(key.rpartition("@")[0] == model for key in pins(scene)):
        # A pin puts the model in one place; whether it is served from there is judged with the wishes.
        return None
    for name in scene.lanes_of_model.get(model, ()):
        lane = scene.lanes[name]
        unknown = any(key not in scene.limits or scene.limits[key].limit_mib is None for key in lane.memory)
        if not scene.meets(lane, scene.desired.aliases[alias]) or (unknown and not lane.loaded):
            continue
        if not scene.vacating(lane) and unavailable(scene, sums, lane, alias) is None:
            return name
    return None


def _uncovered(scene: Scene, name: str, planned: PlannedRoute) -> Iterator[Finding]:
    listed = scene.plan.uncovered.get(name)
    nothing = not planned.route or scene.held_on_cordoned(name)
    if nothing and listed is None and not _said_held(scene, planned):
        yield fault("planUncovered", at("uncovered", name), f"nothing serves {name}, and the plan does not say so")
    elif listed is not None and not nothing and None not in planned.lanes:
        yield fault("planUncovered", at("uncovered", name), f"{name} is served by {planned.route[0]}")
    elif listed is not None and not listed:
        yield fault("planUncovered", at("uncovered", name), f"the plan gives no cause for {name}")


def _said_held(scene: Scene, planned: PlannedRoute) -> bool:
    """Whether the lanes of a route say why they stay where none should be."""
    behind = [scene.plan.lanes[name] for name in planned.lanes if name is not None]
    return bool(behind) and all(lane.because.reason == "heldOnCordoned" for lane in behind)


def _removed(scene: Scene) -> Iterator[Finding]:
    """Aliases that the repository does not name are kept, or removed where the repository says so."""
    removed = {change.alias for change in scene.plan.diff.routes if not change.after}
    unlisted = set(scene.inventory.aliases) - set(scene.desired.aliases)
    wanted = unlisted if scene.desired.unlisted == "remove" else set()
    for name in sorted((removed & unlisted) ^ wanted):
        does = "keeps" if name in wanted else "removes"
        yield fault("planUnlisted", at("diff", "routes"), f"the plan {does} {name}, which is not declared")
