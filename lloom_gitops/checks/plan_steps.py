"""Steps one by one and in pairs: asked of the right node, with a time limit, and make before break (REC-1 to REC-3)."""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import Feature, LaneState, NodeState, StepKind

from .plan_codes import at, fault
from .plan_graph import Graph
from .plan_scene import Scene, is_stop

Placed = tuple[int, Step]


def step_findings(scene: Scene, graph: Graph) -> Iterator[Finding]:
    """Each step's own fields, and the orders that hold in every plan."""
    for index, step in enumerate(scene.plan.steps):
        yield from _asked(scene, index, step)
        if is_route(step):
            yield from _route(scene, graph, index, step)
        elif step.kind is StepKind.START:
            yield from _start(scene, graph, index, step)
        elif step.kind is StepKind.DRAIN and step.lane not in scene.stops:
            yield fault("planDrainAlone", at("steps", index), f"{step.id} has no stop after it")
        elif is_residency(step):
            yield from _residency(scene, index, step)
        elif is_stop(step):
            yield from _stop(scene, graph, index, step)


def is_route(step: Step) -> bool:
    """A route that we write, or that a person is asked to write."""
    return step.kind is StepKind.ROUTE or (step.kind is StepKind.MANUAL and step.does == "route")


def is_residency(step: Step) -> bool:
    """A residency that we set, or that a person is asked to set."""
    return step.kind is StepKind.RESIDENCY or (step.kind is StepKind.MANUAL and step.does == "residency")


def _asked(scene: Scene, index: int, step: Step) -> Iterator[Finding]:
    pointer = at("steps", index)
    lane = scene.lanes.get(step.lane or "")
    wanted = scene.desired.pool.head if is_route(step) else lane.owner if lane else None
    if step.node is not None and step.node != wanted:
        yield fault("planStepNode", pointer, f"{step.id} asks the wrong gateway", wanted=wanted, found=step.node)
    if step.kind is StepKind.MANUAL:
        return
    if step.timeout_seconds is None or step.timeout_seconds <= 0:
        yield fault("planStepTimeout", pointer, f"{step.id} has no time limit")
    draining = [n for n in lane.nodes if scene.node_state(n) is NodeState.DRAIN] if lane else []
    if step.kind is StepKind.DRAIN and draining:
        seconds = max(scene.desired.nodes[n].drain_seconds for n in draining if n in scene.desired.nodes)
        if step.timeout_seconds != seconds:
            yield fault(
                "planStepTimeout",
                pointer,
                f"{step.id}: the node gives lanes another time to drain",
                wanted=str(seconds),
                found=str(step.timeout_seconds),
            )


def _route(scene: Scene, graph: Graph, index: int, step: Step) -> Iterator[Finding]:
    """The last route of an alias is the planned one, and no route leads first to a lane that is not up yet."""
    pointer = at("steps", index)
    mine = [other for other in graph.of_alias.get(step.alias or "", ()) if is_route(other)]
    planned = scene.plan.routes.get(step.alias or "")
    if step is mine[-1]:
        wanted = (planned.route, planned.lanes) if planned else ((), ())
        if step.route != wanted[0] or (step.lanes is not None and step.lanes != wanted[1]) or step.interim:
            yield fault(
                "planStepRoute",
                pointer,
                f"{step.id} is not the planned route",
                wanted=", ".join(wanted[0]),
                found=", ".join(step.route or ()),
            )
    elif not step.interim:
        yield fault("planStepRoute", pointer, f"{step.id} is written over later and does not say so")
    lanes = step.lanes if step.lanes is not None else planned.lanes if planned else ()
    first = scene.lanes.get(lanes[0] or "") if lanes else None
    if first is None or first.loaded:
        return
    starts = [other for other in graph.of_lane.get(first.id, ()) if other.kind is StepKind.START]
    if starts and not any(graph.precedes(other, step) for other in starts):
        yield fault("planOrderStartRoute", pointer, f"{step.id} does not wait for {starts[0].id}")


def _start(scene: Scene, graph: Graph, index: int, step: Step) -> Iterator[Finding]:
    pointer = at("steps", index)
    planned = scene.plan.lanes.get(step.lane or "")
    if step.residency is not None and planned is not None and step.residency is not planned.residency:
        yield fault("planStepResidency", pointer, f"{step.id} gives another residency than planned")
    for other in graph.of_lane.get(step.lane or "", ()):
        if other.kind is StepKind.INSTALL and not graph.precedes(other, step):
            yield fault("planOrderBeforeStart", pointer, f"{step.id} does not wait for {other.id}")
        # What a person is asked for blocks nothing else (REC-8), so here the place in the list is all there is.
        if other.kind is StepKind.MANUAL and other.does == "residency" and scene.plan.steps.index(other) > index:
            yield fault("planOrderBeforeStart", pointer, f"{other.id} is listed after {step.id}")
    if not step.reads:
        yield fault("planStepReads", pointer, f"{step.id} reads nothing before it loads a lane")


def _residency(scene: Scene, index: int, step: Step) -> Iterator[Finding]:
    """An older build takes residency from its file: ours to write on the head, a person's elsewhere."""
    lane = scene.lanes[step.lane or ""]
    pointer = at("steps", index)
    if not lane.managed:
        yield fault("planUnmanagedStep", pointer, f"{step.id}: LLooM does not manage {lane.id}")
    elif scene.hands_off(lane) or scene.dead(lane):
        yield fault("planStopHandsOff", pointer, f"{step.id}: a node of it is on hold or unreadable")
    by_hand = step.kind is StepKind.MANUAL
    ours = scene.has(lane.owner, Feature.RESIDENCY) or lane.owner == scene.desired.pool.head
    if by_hand is ours:
        yield fault(
            "planStepResidency",
            pointer,
            f"{step.id}: who sets it depends on the gateway of {lane.owner}",
            wanted="residency" if by_hand else "manual",
            found=step.kind.value,
        )


def _stop(scene: Scene, graph: Graph, index: int, step: Step) -> Iterator[Finding]:
    lane = scene.lanes[step.lane or ""]
    pointer = at("steps", index)
    if lane.managed == (step.kind is StepKind.MANUAL):
        yield fault("planUnmanagedStep", pointer, f"{step.id}: a person stops unmanaged lanes, and only those")
    drains = [other for other in graph.of_lane.get(lane.id, ()) if other.kind is StepKind.DRAIN]
    if lane.state not in (LaneState.DRAINING, LaneState.STOPPING):
        if not any(graph.precedes(drain, step) for drain in drains):
            yield fault("planOrderDrainStop", pointer, f"{step.id} does not wait for a drain of {lane.id}")
        yield from _routes_first(scene, graph, pointer, step, drains)
    for place, other in enumerate(scene.plan.steps):
        if is_residency(other) and other.lane is not None and other.residency is not None:
            yield from _downgrade_first(scene, graph, (index, step), (place, other))


def _routes_first(scene: Scene, graph: Graph, pointer: str, step: Step, drains: list[Step]) -> Iterator[Finding]:
    """Every alias that leaves the lane has left it before it is drained, and the stop reads so once more."""
    lane = step.lane or ""
    leaving = [
        other
        for other in scene.plan.steps
        if is_route(other)
        and lane in scene.routes_before.get(other.alias or "", ((), ()))[1]
        and lane not in scene.routes_after.get(other.alias or "", ((), ()))[1]
        and not other.interim
        # Room is made before what takes over can be up; the fold judges what that leaves without an answer.
        and not graph.precedes(step, other)
    ]
    for route in leaving:
        for drain in drains:
            if not graph.precedes(route, drain):
                yield fault("planOrderRouteDrain", pointer, f"{drain.id} does not wait for {route.id}")
    if leaving and not any(read.at.startswith("/aliases/") for read in step.reads):
        yield fault("planStepReads", pointer, f"{step.id} does not read that {lane} is out of the routes")


def _downgrade_first(scene: Scene, graph: Graph, stop: Placed, change: Placed) -> Iterator[Finding]:
    """Residency downgrades come before stops: always for the lane itself, in the list for its neighbours."""
    (index, step), (place, other) = stop, change
    lane, changed = scene.lanes[step.lane or ""], scene.lanes[other.lane or ""]
    if other.residency is None or other.residency.rank >= changed.residency.rank:
        return
    # A neighbour's downgrade may have to wait for what the stop makes room for.
    restarts = changed.loaded and not scene.has(changed.owner, Feature.RESIDENCY)
    if restarts and changed.id in scene.stops:
        return  # such an edit would restart the lane that is about to be stopped: it comes after the stop
    late = (
        not graph.precedes(other, step) if changed.id == lane.id else place > index and not graph.precedes(step, other)
    )
    if late and set(changed.memory) & set(lane.memory):
        yield fault("planOrderResidencyStop", at("steps", index), f"{step.id} comes before the downgrade {other.id}")
