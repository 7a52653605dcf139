"""Where lanes may be: what a lane of the outcome needs of its nodes, and which lanes a plan may and must start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lloom_gitops.model.errors import Finding
from lloom_gitops.model.inventory import ObservedNode
from lloom_gitops.model.plan import PlannedLane, Step
from lloom_gitops.model.recipe import Recipe
from lloom_gitops.model.words import LaneState, NodeState, Residency, StepKind, StopReason

from .plan_codes import at, fault
from .plan_memory import same_gib
from .plan_recipes import compute_archs
from .plan_scene import LaneFacts, Scene
from .plan_sums import Sums


def lane_findings(scene: Scene, sums: Sums) -> Iterator[Finding]:
    """Facts of planned lanes, lanes where none may be, and starts that may not or must be."""
    for name, planned in scene.plan.lanes.items():
        yield from _facts(scene.lanes[name], planned)
        yield from _placed(scene, scene.lanes[name])
    for index, step in enumerate(scene.plan.steps):
        if step.kind is StepKind.MANUAL or step.lane is None:
            continue
        lane = scene.lanes[step.lane]
        if not lane.managed and step.kind is not StepKind.DRAIN:
            yield fault("planUnmanagedStep", at("steps", index), f"{step.id}: a person starts and stops {lane.id}")
        if step.kind in (StepKind.START, StepKind.INSTALL):
            yield from _start(scene, index, step, lane)
    yield from _once_a_model(scene)
    yield from _missing_starts(scene, sums)


def _facts(lane: LaneFacts, planned: PlannedLane) -> Iterator[Finding]:
    pointer = at("lanes", lane.id)
    if planned.nodes != lane.nodes or planned.models != lane.models:
        yield fault(
            "planLaneFacts",
            pointer,
            f"{lane.id} is another lane than the plan says",
            wanted=f"{', '.join(lane.models)} on {', '.join(lane.nodes)}",
            found=f"{', '.join(planned.models)} on {', '.join(planned.nodes)}",
        )
    for key in sorted(set(lane.memory) | set(planned.memory_gb)):
        mib = lane.memory.get(key)
        if not same_gib(mib, planned.memory_gb.get(key)):
            yield fault(
                "planLaneFacts",
                at("lanes", lane.id, "memoryGb", key),
                f"{lane.id} does not take what the plan says on {key}",
                wanted=f"{mib} MiB",
                found=f"{planned.memory_gb.get(key)} GiB",
            )


def _placed(scene: Scene, lane: LaneFacts) -> Iterator[Finding]:
    """A lane of the outcome is on living nodes, and it is not one that is being stopped for good."""
    pointer = at("lanes", lane.id)
    for node in lane.nodes:
        if scene.gone(node):
            yield fault("planLaneOnLostNode", pointer, f"{lane.id} counts on {node}, which is lost or left")
    if lane.id in scene.left:
        yield fault("planLaneStopped", pointer, f"{lane.id} is in the outcome and is stopped")


def obstacle(scene: Scene, lane: LaneFacts) -> str | None:
    """What keeps a lane that is not loaded from being loaded, apart from memory and the state of its nodes."""
    if lane.latched:
        return "latched"
    if set(lane.excluded_nodes) & set(lane.nodes):
        return "excluded"
    if lane.document.state == "stopped":
        return "askedStopped"
    pairs = [(a, b) for i, a in enumerate(lane.nodes) for b in lane.nodes[i + 1 :]]
    common = frozenset.intersection(*(scene.fabrics(*pair) for pair in pairs)) if pairs else None
    if common is not None and not common:
        return f"notLinked: {', '.join(lane.nodes)}"
    recipe = scene.desired.recipes.get(lane.recipe or "")
    if recipe is not None:
        for name in lane.nodes:
            mismatch = _mismatch(recipe, lane, scene.inventory.nodes.get(name, ObservedNode()))
            if mismatch:
                return f"{mismatch}: {name}"
    return None


def _mismatch(recipe: Recipe, lane: LaneFacts, node: ObservedNode) -> str | None:
    """A requirement that a node does not meet. Of an installed lane's node only what is known speaks against it."""
    needs = recipe.spec.requirements
    accelerators = node.accelerators or ()
    words = {word.lower() for acc in accelerators for word in (acc.kind, acc.name or "") if word}
    wanted = compute_archs(recipe) if lane.installs else frozenset(needs.compute_archs)
    archs = {acc.compute_arch for acc in accelerators if acc.compute_arch}
    checks = (
        ("platform", node.platform is not None, not needs.platforms or node.platform in needs.platforms),
        ("accelerator", bool(words), not needs.accelerators or bool({w.lower() for w in needs.accelerators} & words)),
        ("computeArch", bool(archs), not wanted or bool(wanted & archs)),
        ("commands", node.commands is not None, set(needs.commands) <= set(node.commands or ())),
        ("image", node.images is not None, lane.installs or _image_there(recipe, node)),
    )
    for reason, known, met in checks:
        if not met and (known or lane.installs):
            return reason
    return "disk" if lane.installs and not _room_on_disk(recipe, node) else None


def _image_there(recipe: Recipe, node: ObservedNode) -> bool:
    """The image itself, or one of its repository that can't be compared: a tag here, a digest there."""
    wanted = recipe.spec.backend.image
    there = node.images or ()
    if wanted is None or wanted in there:
        return True
    name = re.compile(r"(:[^:/@]*)?(@.*)?$")
    kin = [image for image in there if name.sub("", image) == name.sub("", wanted)]
    return any(("@" in image) is not ("@" in wanted) for image in kin)


def _room_on_disk(recipe: Recipe, node: ObservedNode) -> bool:
    cached = {weights.model for weights in node.weights or ()}
    need = recipe.spec.requirements.disk_gb
    if need is None or all(model.model in cached for model in recipe.spec.models):
        return True
    return any(disk.free_gb is not None and disk.free_gb >= need for disk in node.disks or ())


def _start(scene: Scene, index: int, step: Step, lane: LaneFacts) -> Iterator[Finding]:
    pointer = at("steps", index)
    for node in lane.nodes:
        undeclared = node not in scene.desired.nodes
        if undeclared or not scene.ready(node) or scene.node_state(node) is not NodeState.SERVE:
            yield fault(
                "planStartNotServing",
                pointer,
                f"{step.id}: nothing starts on {node}",
                wanted="ready, serve",
                found=_node_words(scene, node),
            )
    blocked = None if lane.loaded else obstacle(scene, lane)
    if blocked:
        yield fault("planStartBlocked", pointer, f"{step.id}: {lane.id} can't be started", found=blocked)
    for key in lane.memory:
        limit = scene.limits.get(key)
        if (limit is None or limit.limit_mib is None) and not lane.state.holds_memory:
            yield fault("planStartBlocked", pointer, f"{step.id}: the capacity of {key} is unknown", found="capacity")
    if step.kind is StepKind.START and not _wanted(scene, lane):
        yield fault("planStartNeedless", pointer, f"{step.id}: nothing in the plan needs {lane.id} loaded")


def _node_words(scene: Scene, node: str) -> str:
    seen = scene.inventory.nodes.get(node)
    return f"{seen.liveness.value if seen else 'unknown'}, {scene.node_state(node).value}"


def _wanted(scene: Scene, lane: LaneFacts) -> bool:
    """Kept loaded, restored, a load under way, taking over an alias, or pinned."""
    if lane.state is LaneState.LOADING or scene.residency[lane.id] is not Residency.AUTO:
        return True
    stop = scene.stops.get(lane.id)
    if stop is not None and stop.why is StopReason.ROOM:
        return True
    pinned = any(key.split("@")[0] in lane.models for key in scene.desired.pins)
    return pinned or any(True for _ in _taken_over(scene, lane))


def _taken_over(scene: Scene, lane: LaneFacts) -> Iterator[tuple[str, LaneFacts | None]]:
    """Aliases that a lane answers first in the outcome and did not before, with the lane that did."""
    for alias, (_, behind) in scene.routes_after.items():
        if not behind or behind[0] != lane.id:
            continue
        before = scene.routes_before.get(alias, ((), ()))[1]
        first = scene.lanes.get(before[0] or "") if before else None
        if first is None or first.id != lane.id:
            yield alias, first


def _once_a_model(scene: Scene) -> Iterator[Finding]:
    starting: dict[str, str] = {}
    for name in scene.started:
        for model in scene.lanes[name].models:
            if model in starting:
                yield fault(
                    "planStartTwice", at("diff", "start"), f"{model} is started as {starting[model]} and as {name}"
                )
            starting[model] = name


def _missing_starts(scene: Scene, sums: Sums) -> Iterator[Finding]:
    for name in sorted(scene.plan.lanes):
        lane = scene.lanes[name]
        idle = lane.managed and not lane.loaded and name not in scene.started and name in scene.routed
        if not idle or not _startable(scene, lane):
            continue
        if scene.residency[name] is Residency.ALWAYS:
            yield fault("planStartMissing", at("lanes", name), f"{name} is to be kept loaded and nothing loads it")
        elif scene.residency[name] is Residency.PREFERRED and _fits_beside_all(scene, sums, lane):
            yield fault("planStartMissing", at("lanes", name), f"{name} is preferred, fits, and nothing loads it")
        for alias, first in _taken_over(scene, lane):
            running = first is not None and first.loaded and not scene.dead(first)
            if running and scene.residency[name] is Residency.AUTO:
                yield fault("planStartMissing", at("lanes", name), f"{name} takes {alias} over and nothing loads it")


def _startable(scene: Scene, lane: LaneFacts) -> bool:
    served = all(scene.ready(node) and scene.node_state(node) is NodeState.SERVE for node in lane.nodes)
    known = all(key in scene.limits and scene.limits[key].limit_mib is not None for key in lane.memory)
    return served and known and obstacle(scene, lane) is None


def _fits_beside_all(scene: Scene, sums: Sums, lane: LaneFacts) -> bool:
    """Whether its load fits beside all that is loaded when the plan is done."""
    for key, peak in lane.peak.items():
        held = sum(other.memory[key] for other in sums.lanes_on[key] if loaded_after(scene, other))
        if held + peak > (scene.limits[key].limit_mib or 0):
            return False
    return True


def loaded_after(scene: Scene, lane: LaneFacts) -> bool:
    """Whether a lane holds memory when every step is done."""
    if lane.id in scene.started:
        return True
    return lane.state.holds_memory and lane.id not in scene.stops
