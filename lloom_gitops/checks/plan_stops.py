"""Stops: a running lane is stopped only to vacate, for room, because its model moved, or because people asked."""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import LaneState, Residency, StepKind, StopReason

from .plan_codes import at, fault
from .plan_graph import Graph
from .plan_hard import names, pins
from .plan_lanes import loaded_after
from .plan_scene import LaneFacts, Scene, is_stop


def stop_findings(scene: Scene, graph: Graph) -> Iterator[Finding]:
    """Stops without a reason that holds, and lanes that must leave and stay."""
    for index, step in enumerate(scene.plan.steps):
        if step.lane is None or not (is_stop(step) or step.kind is StepKind.DRAIN):
            continue
        lane = scene.lanes[step.lane]
        if any(scene.gone(node) for node in lane.nodes):
            yield fault("planStopLost", at("steps", index), f"{step.id}: nobody answers on a lost node")
        elif scene.hands_off(lane):
            yield fault("planStopHandsOff", at("steps", index), f"{step.id}: a node of it is on hold or unreadable")
        elif is_stop(step):
            yield from _reason(scene, graph, index, step, lane)
    for name in sorted(scene.lanes):
        yield from _must_leave(scene, scene.lanes[name])


def _reason(scene: Scene, graph: Graph, index: int, step: Step, lane: LaneFacts) -> Iterator[Finding]:
    pointer = at("steps", index)
    if not lane.state.holds_memory:
        yield fault("planStopIdle", pointer, f"{step.id}: {lane.id} holds nothing", found=lane.state.value)
        return
    already = lane.state in (LaneState.DRAINING, LaneState.STOPPING)
    checks = {
        StopReason.VACATE: _may_vacate,
        StopReason.MOVED: _has_moved,
        StopReason.ASKED: _is_asked,
    }
    if step.why is None:
        yield fault("planStopReason", pointer, f"{step.id} gives no reason")
    elif step.why is StopReason.ROOM:
        missing = None if already else _room_fault(scene, graph, step, lane)
        if missing:
            yield fault("planStopReason", pointer, f"{step.id}: {missing}", found=step.why.value)
    elif not already:
        missing = checks[step.why](scene, lane)
        if missing:
            yield fault("planStopReason", pointer, f"{step.id}: {missing}", found=step.why.value)


def _naming(scene: Scene, lane: LaneFacts) -> list[str]:
    return [name for name, alias in scene.desired.aliases.items() if set(alias.models) & set(lane.models)]


def _may_vacate(scene: Scene, lane: LaneFacts) -> str | None:
    """From a cordoned node only when every alias that names a model of it is served without it."""
    if not scene.vacating(lane):
        return "none of its nodes is cordoned or draining"
    if scene.draining_node(lane):
        return None
    aliases = _naming(scene, lane)
    if not aliases:
        return "no alias names it, so it stays"
    bare = [name for name in aliases if not _served_without(scene, name, lane.id)]
    return f"{', '.join(bare)} would be left with nothing" if bare else None


def _served_without(scene: Scene, alias: str, lane: str) -> bool:
    planned = scene.plan.routes.get(alias)
    return planned is not None and any(entry != lane for entry in planned.lanes)


def _has_moved(scene: Scene, lane: LaneFacts) -> str | None:
    """Its models are served elsewhere by lanes that are up, and it is ours to retire."""
    elsewhere = _elsewhere(scene, lane)
    if not elsewhere:
        return "no other planned lane serves its model"
    down = [other.id for other in elsewhere if not loaded_after(scene, other)]
    if down:
        return f"{', '.join(down)} is not up"
    pinned_away = any(
        key.rpartition("@")[0] in lane.models and set(key.rpartition("@")[2].split("+")) != set(lane.nodes)
        for key in pins(scene)
    )
    if not (lane.managed and lane.started_by == "agent") and not pinned_away:
        return "people started it, and no pin puts its model elsewhere"
    return None


def _elsewhere(scene: Scene, lane: LaneFacts) -> list[LaneFacts]:
    """Other lanes of the outcome's routes that serve a model of this lane; none while it is routed itself."""
    if lane.id in scene.led_to:
        return []
    return [
        scene.lanes[name]
        for model in lane.models
        for name in scene.lanes_of_model.get(model, ())
        if name != lane.id and name in scene.routed
    ]


def _is_asked(scene: Scene, lane: LaneFacts) -> str | None:
    if lane.document.state == "stopped":
        return None
    if lane.document.when_unrouted != "stop":
        return "nobody asked for it"
    return "it is still in a route" if lane.id in scene.led_to else None


def _room_fault(scene: Scene, graph: Graph, step: Step, lane: LaneFacts) -> str | None:
    """Something that waits for the stop is loaded into its memory, and an always lane comes back afterwards."""
    waiting = [
        scene.lanes[other.lane]
        for other in scene.plan.steps
        if other.kind is StepKind.START and other.lane is not None and step.id in graph.before[other.id]
    ]
    if not any(set(other.memory) & set(lane.memory) and other.id != lane.id for other in waiting):
        return "nothing that waits for it is loaded in its place"
    if scene.residency[lane.id] is Residency.ALWAYS and lane.id not in scene.started:
        return "it is to be kept loaded and is not started again"
    return None


def _ours_alone(scene: Scene, lane: LaneFacts) -> bool:
    """Started by the agent, where it may stay, and named by no pin."""
    started = lane.managed and lane.started_by == "agent"
    return started and not scene.vacating(lane) and not _pinned(scene, lane)


def _pinned(scene: Scene, lane: LaneFacts) -> bool:
    return any(names(key, lane) for key in pins(scene))


def _must_leave(scene: Scene, lane: LaneFacts) -> Iterator[Finding]:
    """Lanes that a drain, a cordon, people, or a move of their model send away."""
    if not lane.state.holds_memory or lane.id in scene.stops or scene.hands_off(lane) or scene.dead(lane):
        return
    pointer = at("diff", "stop")
    if lane.document.state == "stopped":
        yield fault("planStopMissing", pointer, f"{lane.id} is to be stopped, and is not", wanted="asked")
    elif scene.draining_node(lane):
        yield fault("planStopMissing", pointer, f"{lane.id} is on a draining node and stays", wanted="vacate")
    elif scene.vacating(lane) and _may_vacate(scene, lane) is None:
        yield fault("planStopMissing", pointer, f"{lane.id} is on a cordoned node and is not needed", wanted="vacate")
    elif lane.document.when_unrouted == "stop" and lane.id not in scene.led_to and not _pinned(scene, lane):
        yield fault("planStopMissing", pointer, f"{lane.id} is in no route any more", wanted="asked")
    elif _ours_alone(scene, lane) and _has_moved(scene, lane) is None:
        yield fault("planStopMissing", pointer, f"the model of {lane.id} moved", wanted="moved")
