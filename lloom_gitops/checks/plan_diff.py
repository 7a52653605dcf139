"""The plan's own account: its diff is the difference between what runs and the outcome, its counts add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lloom_gitops.model.errors import Finding
from lloom_gitops.model.words import Feature, StepKind

from .plan_codes import at, fault
from .plan_memory import same_gib
from .plan_objective import changed_residency, changed_route
from .plan_scene import LaneFacts, Scene


def diff_findings(scene: Scene) -> Iterator[Finding]:
    """Every entry that is missing, too many, or says another thing than the outcome."""
    yield from _starts(scene)
    yield from _stops(scene)
    yield from _residency(scene)
    yield from _routes(scene)
    yield from _manual(scene)
    yield from _verdict(scene)
    yield from _nothing(scene)


def _sets(code: str, part: str, wanted: Iterable[str], found: Iterable[str]) -> Iterator[Finding]:
    """One finding for each name that stands on one side only, or twice."""
    need, have = Counter(list(wanted)), Counter(list(found))
    for name in sorted((need - have) | (have - need)):
        yield fault(
            code,
            at("diff", part),
            f"{name}: the diff and the outcome differ",
            wanted=f"{need[name]} times",
            found=f"{have[name]} times",
        )


def _starts(scene: Scene) -> Iterator[Finding]:
    diff = scene.plan.diff.start
    yield from _sets("planDiffStart", "start", scene.started, (change.lane for change in diff))
    for index, change in enumerate(diff):
        lane = scene.lanes.get(change.lane)
        if lane is None:
            continue
        wanted = (lane.nodes, scene.residency[lane.id], lane.load_ms // 1000)
        found = (change.nodes, change.residency, change.load_seconds or 0)
        if wanted != found or not same_gib(sum(lane.memory.values()), change.load_gb):
            yield fault(
                "planDiffStart",
                at("diff", "start", index),
                f"the start of {lane.id} is another one",
                wanted=f"{wanted}, {sum(lane.memory.values())} MiB",
                found=f"{found}, {change.load_gb} GiB",
            )


def _stops(scene: Scene) -> Iterator[Finding]:
    diff = scene.plan.diff.stop
    yield from _sets("planDiffStop", "stop", scene.stops, (change.lane for change in diff))
    for index, change in enumerate(diff):
        step = scene.stops.get(change.lane)
        if step is not None and (step.why is not change.why or change.nodes != scene.lanes[change.lane].nodes):
            yield fault("planDiffStop", at("diff", "stop", index), f"the stop of {change.lane} is another one")


def _residency(scene: Scene) -> Iterator[Finding]:
    changed = set(changed_residency(scene))
    diff = scene.plan.diff.residency
    listed = [change.lane for change in diff if change.before is not change.after]
    # The start of a lane carries its residency; naming the change once more is allowed.
    optional = set(scene.started) - set(listed)
    yield from _sets("planDiffResidency", "residency", changed - optional, listed)
    for index, change in enumerate(diff):
        lane = scene.lanes.get(change.lane)
        if lane is None:
            yield fault("planDiffResidency", at("diff", "residency", index), f"no lane {change.lane} exists")
        elif (change.before, change.after) != (lane.residency, scene.residency[lane.id]):
            yield fault(
                "planDiffResidency",
                at("diff", "residency", index),
                f"the residency of {lane.id} changes otherwise",
                wanted=f"{lane.residency.value} to {scene.residency[lane.id].value}",
                found=f"{change.before.value} to {change.after.value}",
            )
        elif change.before is not change.after:
            yield from _restart(scene, lane, index, change.restarts)


def _restart(scene: Scene, lane: LaneFacts, index: int, said: bool) -> Iterator[Finding]:
    """A build without live residency restarts a running lane for it (REC-11); one that is stopped first is not."""
    restarts = lane.loaded and not scene.has(lane.owner, Feature.RESIDENCY)
    if said != restarts and not (restarts and lane.id in scene.stops):
        yield fault(
            "planDiffResidency",
            at("diff", "residency", index, "restarts"),
            f"whether {lane.id} restarts for its residency depends on its gateway's build",
            wanted=str(restarts).lower(),
            found=str(said).lower(),
        )


def _routes(scene: Scene) -> Iterator[Finding]:
    names = {*scene.routes_before, *scene.plan.routes}
    diff = scene.plan.diff.routes
    changed = [name for name in names if changed_route(scene, name)]
    yield from _sets("planDiffRoutes", "routes", changed, (change.alias for change in diff))
    for index, change in enumerate(diff):
        before = scene.routes_before.get(change.alias, ((), ()))[0]
        after = scene.routes_after.get(change.alias, ((), ()))[0]
        if (change.before, change.after) != (before, after):
            yield fault(
                "planDiffRoutes",
                at("diff", "routes", index),
                f"the route of {change.alias} changes otherwise",
                wanted=f"{', '.join(before)} to {', '.join(after)}",
                found=f"{', '.join(change.before)} to {', '.join(change.after)}",
            )


def _manual(scene: Scene) -> Iterator[Finding]:
    steps = {step.id: step for step in scene.plan.steps if step.kind is StepKind.MANUAL}
    diff = scene.plan.diff.manual
    yield from _sets("planDiffManual", "manual", steps, (change.step for change in diff))
    for index, change in enumerate(diff):
        step = steps.get(change.step)
        if step is not None and (step.does, step.says) != (change.does, change.says):
            yield fault("planDiffManual", at("diff", "manual", index), f"{change.step} asks for something else")
    for index, step in enumerate(scene.plan.steps):
        if step.kind is StepKind.MANUAL and not step.says:
            yield fault("planDiffManual", at("steps", index), f"{step.id} does not say what to do")


def _verdict(scene: Scene) -> Iterator[Finding]:
    verdict = scene.plan.verdict
    served = {name: scene.plan.routes[name] for name in scene.desired.aliases if name in scene.plan.routes}
    lanes = [name for name, route in served.items() if any(route.lanes)]
    external = [name for name, route in served.items() if route.route and not any(route.lanes)]
    nothing = len(scene.desired.aliases) - len(lanes) - len(external)
    started = [scene.lanes[name] for name in scene.started]
    wanted = {
        "aliases": (len(lanes), len(external), nothing),
        "start": len(scene.started),
        "stop": len(scene.stops),
        "loadSeconds": sum(lane.load_ms for lane in started) // 1000,
    }
    found = {
        "aliases": (verdict.aliases.covered, verdict.aliases.external, verdict.aliases.uncovered),
        "start": verdict.start,
        "stop": verdict.stop,
        "loadSeconds": verdict.load_seconds,
    }
    for name, value in wanted.items():
        if value != found[name]:
            yield fault(
                "planVerdict", at("verdict", name), f"{name} does not add up", wanted=str(value), found=str(found[name])
            )
    load = sum(mib for lane in started for mib in lane.memory.values())
    if not same_gib(load, verdict.load_gb):
        yield fault(
            "planVerdict",
            at("verdict", "loadGb"),
            "loadGb does not add up",
            wanted=f"{load} MiB",
            found=f"{verdict.load_gb}",
        )


def _nothing(scene: Scene) -> Iterator[Finding]:
    diff = scene.plan.diff
    said = [change for change in diff.residency if change.before is not change.after]
    changes = bool(diff.start or diff.stop or diff.routes or diff.manual or said)
    if changes != bool(scene.plan.steps):
        yield fault("planNothing", at("steps"), "a plan has steps exactly when it changes something")
    if not scene.plan.steps and not scene.plan.says:
        yield fault("planNothing", at("says"), "nothing to do, and no sentence says why")
