"""Names and digests of a plan: everything it names exists, and it says truly what it was made from."""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.codec.values import digest
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import StepKind

from .plan_codes import at, fault
from .plan_scene import Scene


def reference_findings(scene: Scene) -> Iterator[Finding]:
    """Lanes, nodes, aliases and steps that do not exist; steps that wait in a circle. Other rules need these whole."""
    yield from _lanes(scene)
    yield from _routes(scene)
    for index, step in enumerate(scene.plan.steps):
        yield from _step(scene, index, step)
    yield from _waiting(scene)


def _lanes(scene: Scene) -> Iterator[Finding]:
    for name, planned in scene.plan.lanes.items():
        if name not in scene.lanes:
            yield fault("planUnknownLane", at("lanes", name), f"no lane {name} exists, and no step installs it")
        for node in planned.nodes:
            if not _known_node(scene, node):
                yield fault("planUnknownNode", at("lanes", name, "nodes"), f"{name} names the unknown node {node}")
    for node in scene.plan.budget:
        if not _known_node(scene, node):
            yield fault("planUnknownNode", at("budget", node), f"the budget names the unknown node {node}")


def _routes(scene: Scene) -> Iterator[Finding]:
    for name, planned in scene.plan.routes.items():
        if name not in scene.desired.aliases and name not in scene.inventory.aliases:
            yield fault("planUnknownAlias", at("routes", name), f"no alias {name} is declared or seen")
        if len(planned.lanes) != len(planned.route):
            yield fault(
                "planRouteLane",
                at("routes", name, "lanes"),
                f"the route of {name} does not name the lane behind each entry",
                wanted=f"{len(planned.route)} entries",
                found=f"{len(planned.lanes)} entries",
            )
        for index, lane in enumerate(planned.lanes):
            if lane is not None and lane not in scene.lanes:
                yield fault("planUnknownLane", at("routes", name, "lanes", index), f"no lane {lane} exists")
            elif lane is not None and lane not in scene.plan.lanes:
                yield fault("planUnknownLane", at("routes", name, "lanes", index), f"lane {lane} is not in the plan")
    for name in scene.plan.uncovered:
        if name not in scene.desired.aliases:
            yield fault("planUnknownAlias", at("uncovered", name), f"no alias {name} is declared")
    for index, gap in enumerate(scene.plan.gaps):
        if gap.alias not in scene.desired.aliases and gap.alias not in scene.inventory.aliases:
            yield fault("planUnknownAlias", at("gaps", index), f"no alias {gap.alias} is declared or seen")


def _step(scene: Scene, index: int, step: Step) -> Iterator[Finding]:
    pointer = at("steps", index)
    about_alias = step.kind is StepKind.ROUTE or step.does == "route"
    if about_alias:
        if step.alias not in scene.desired.aliases and step.alias not in scene.inventory.aliases:
            yield fault("planUnknownAlias", pointer, f"{step.id} is about the unknown alias {step.alias}")
    elif step.lane not in scene.lanes:
        yield fault("planUnknownLane", pointer, f"{step.id} is about the unknown lane {step.lane}")
    if step.node is not None and not _known_node(scene, step.node):
        yield fault("planUnknownNode", pointer, f"{step.id} asks the unknown node {step.node}")
    if step.kind is StepKind.MANUAL and step.does not in ("start", "stop", "residency", "route"):
        yield fault("planStepName", pointer, f"{step.id} asks a person for an unknown thing", found=str(step.does))
    for lane in step.lanes or ():
        if lane is not None and lane not in scene.lanes:
            yield fault("planUnknownLane", pointer, f"{step.id} routes to the unknown lane {lane}")


def _waiting(scene: Scene) -> Iterator[Finding]:
    """Ids come from content and are unique; `after` names steps that stand earlier in the list, so it has no circle."""
    uses: dict[str, int] = {}
    known = {step.id for step in scene.plan.steps}
    earlier: set[str] = set()
    for index, step in enumerate(scene.plan.steps):
        base = f"{step.does if step.kind is StepKind.MANUAL else step.kind.value}:{step.lane or step.alias}"
        uses[base] = uses.get(base, 0) + 1
        wanted = base if uses[base] == 1 else f"{base}~{uses[base]}"
        if step.id in earlier:
            yield fault("planStepRepeated", at("steps", index, "id"), f"{step.id} is the id of two steps")
        elif step.id != wanted:
            yield fault(
                "planStepName",
                at("steps", index, "id"),
                "the id does not say the content",
                wanted=wanted,
                found=step.id,
            )
        for other in step.after:
            if other not in known:
                yield fault("planUnknownStep", at("steps", index, "after"), f"{step.id} waits for the unknown {other}")
            elif other not in earlier:
                yield fault("planStepOrder", at("steps", index, "after"), f"{step.id} is listed before {other}")
        earlier.add(step.id)


def input_findings(scene: Scene) -> Iterator[Finding]:
    """The digests a plan names are those of what it is judged against; what-if flags change the desired state."""
    inputs = scene.plan.inputs
    named = [("inventory", inputs.inventory, digest(scene.inventory))]
    if not inputs.what_if:
        named.append(("desired", inputs.desired, digest(scene.desired)))
    for name, found, wanted in named:
        if found != wanted:
            yield fault("planInputs", at("inputs", name), f"made from another {name}", wanted=wanted, found=found)


def _known_node(scene: Scene, node: str) -> bool:
    return node in scene.desired.nodes or node in scene.inventory.nodes
