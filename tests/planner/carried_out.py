"""What the inventory shows once every step of a plan is carried out; manual starts stay undone (levels are without)."""

from __future__ import annotations

from msgspec.structs import replace

from lloom_gitops.model.inventory import Inventory, ObservedAlias
from lloom_gitops.model.plan import Plan, Step
from lloom_gitops.model.words import LaneState, Residency, StepKind


def carried_out(inventory: Inventory, plan: Plan) -> Inventory:
    """The inventory after the plan, with manual stops and settings done by a person."""
    for step in plan.steps:
        if step.kind is StepKind.MANUAL and step.does == "start":
            continue
        inventory = _after(inventory, step)
    return inventory


def _after(inventory: Inventory, step: Step) -> Inventory:
    does = step.does if step.kind is StepKind.MANUAL else step.kind.value
    if does == "route":
        assert step.alias is not None
        aliases = dict(inventory.aliases)
        aliases.pop(step.alias, None)
        if step.route:
            aliases[step.alias] = ObservedAlias(route=step.route, lanes=step.lanes)
        return replace(inventory, aliases=aliases)
    if does in ("drain", "install"):
        return inventory
    assert step.lane is not None
    lane = inventory.lanes[step.lane]
    if does == "start":
        residency = Residency(step.residency) if step.residency else lane.residency
        started_by = "agent" if step.kind is StepKind.START else lane.started_by
        lane = replace(lane, state=LaneState.RUNNING, residency=residency, started_by=started_by)
    elif does == "stop":
        lane = replace(lane, state=LaneState.STOPPED)
    elif does == "residency":
        assert step.residency is not None
        lane = replace(lane, residency=step.residency)
    return replace(inventory, lanes={**inventory.lanes, step.lane: lane})
