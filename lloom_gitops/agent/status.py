"""How things stand, as a Status document: from the last apply, what is planned and what is seen. Plain values."""

from __future__ import annotations

import msgspec

from lloom_gitops.agent.apply import Applied
from lloom_gitops.catalog.facts import lanes_of_route
from lloom_gitops.control.lifecycle import Decision, Way
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.status import (
    AgentStatus,
    AliasStatus,
    Conditions,
    ControllerStatus,
    Drift,
    NodeStatus,
    Status,
    StepStatus,
)
from lloom_gitops.model.words import NodeState, Outcome, Result

_DECISIONS = {
    Way.NOTHING: "nothing",
    Way.CLOSES: "nothing",
    Way.REVIEWED: "apply",
    Way.REFRESHED: "apply",
    Way.PLANNED: "apply",
    Way.ADVISED: "unplanned",
    Way.REPORTED: "unplanned",
    Way.HELD: "hold",
    Way.REFUSED: "refuse",
}
_REASONS = {
    Result.SUCCEEDED: "Applied",
    Result.NOTHING: "NothingToDo",
    Result.WAITING: "WaitingForPerson",
    Result.PARTIAL: "StepFailed",
    Result.FAILED: "StepFailed",
    Result.SUPERSEDED: "Superseded",
}
_WAY_REASONS = {
    Way.ADVISED: "Unplanned",
    Way.REPORTED: "Unplanned",
    Way.HELD: "Held",
    Way.REFUSED: "Refused",
}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a status says beside the apply: the tip, the pool as seen, who writes, and the revision reached before."""

    tip: str
    desired: Desired
    inventory: Inventory
    agent: AgentStatus
    reached: str | None = None


def applied_status(seen: Seen, decision: Decision, plan_commit: str, applied: Applied) -> Status:
    """The status of an apply that ended."""
    result = applied.result
    ready = result in (Result.SUCCEEDED, Result.NOTHING)
    reached = ready or result is Result.WAITING
    return Status(
        plan=decision.plan_id,
        plan_commit=plan_commit,
        reviewed_as=decision.reviewed_as,
        superseded_by=applied.stopped_by if result is Result.SUPERSEDED else None,
        result=result,
        steps=applied.steps,
        aliases=_aliases(decision.plan, seen.inventory),
        nodes=_nodes(seen.desired, seen.inventory),
        controller=_controller(seen.desired, decision),
        conditions=Conditions(
            ready=ready,
            reason=_REASONS[result],
            attempted=plan_commit,  # not the tip: that moves with each of our own commits
            applied=seen.tip if reached else seen.reached,
        ),
        agent=seen.agent,
    )


def closed_status(seen: Seen, decision: Decision, last: Status) -> Status:
    """The status that ends a waiting apply: what waited is done."""
    steps = {
        name: StepStatus(outcome=Outcome.DONE) if step.outcome is Outcome.WAITING else step
        for name, step in last.steps.items()
    }
    now = standing_status(seen, decision, last)
    return msgspec.structs.replace(
        now,
        result=Result.SUCCEEDED,
        steps=steps,
        conditions=Conditions(ready=True, reason="Applied", attempted=last.plan_commit, applied=seen.tip),
    )


def standing_status(seen: Seen, decision: Decision, last: Status | None) -> Status:
    """How it stands without an apply: the last result, and what the agent makes of the tip."""
    last = last or Status()
    reason = _WAY_REASONS.get(decision.way) or _REASONS[last.result]
    ready = decision.way in (Way.NOTHING, Way.CLOSES) and last.result in (Result.SUCCEEDED, Result.NOTHING)
    at_rest = decision.way in (Way.NOTHING, Way.CLOSES)
    return msgspec.structs.replace(
        last,
        aliases=_aliases(decision.plan, seen.inventory),
        nodes=_nodes(seen.desired, seen.inventory),
        drift=_drift(decision.plan) if decision.because.get("reason") == "drift" else (),
        controller=_controller(seen.desired, decision),
        conditions=Conditions(
            ready=ready, reason=reason, attempted=seen.tip, applied=seen.tip if at_rest else seen.reached
        ),
        agent=seen.agent,
    )


def timeless(status: Status) -> Status:
    """A status without the lease's epoch, which alone is no news."""
    agent = None if status.agent is None else msgspec.structs.replace(status.agent, epoch=0)
    return msgspec.structs.replace(status, agent=agent)


def failed_status(last: Status | None, tip: str | None, reason: str, says: str, agent: AgentStatus) -> Status:
    """The status of a turn that could not be taken: `reason` is the code of what went wrong."""
    last = last or Status()
    reached = last.conditions.applied if last.conditions is not None else None
    mode = last.controller.mode if last.controller is not None else None
    because = {"reason": reason, "says": says}
    controller = None if mode is None else ControllerStatus(mode=mode, decision="refuse", because=because)
    return msgspec.structs.replace(
        last,
        controller=controller,
        conditions=Conditions(ready=False, reason=reason[:1].upper() + reason[1:], attempted=tip, applied=reached),
        agent=agent,
    )


def _controller(desired: Desired, decision: Decision) -> ControllerStatus:
    mode = desired.pool.controller.mode
    hint = {} if decision.hint is None else {"hint": decision.hint}
    return ControllerStatus(mode=mode, decision=_DECISIONS[decision.way], because={**decision.because, **hint})


def _aliases(plan: Plan, inventory: Inventory) -> dict[str, AliasStatus]:
    names = sorted({*plan.routes, *inventory.aliases})
    return {name: AliasStatus(serving=_serving(name, inventory), planned=_planned(name, plan)) for name in names}


def _serving(alias: str, inventory: Inventory) -> str | None:
    """The first entry of the route that answers now: its lane is loaded, or it is external."""
    seen = inventory.aliases.get(alias)
    if seen is None:
        return None
    for model, lane in zip(seen.route, lanes_of_route(inventory, seen), strict=True):
        if lane is None or (lane in inventory.lanes and inventory.lanes[lane].state.loaded):
            return model
    return None


def _planned(alias: str, plan: Plan) -> str | None:
    planned = plan.routes.get(alias)
    return next(iter(planned.route), None) if planned is not None else None


def _nodes(desired: Desired, inventory: Inventory) -> dict[str, NodeStatus]:
    """Draining nodes: `drained` (safe to switch off) once nothing runs there."""
    found = {}
    for name, node in desired.nodes.items():
        seen = inventory.nodes.get(name)
        states = [node.state] if seen is None or seen.state is None else [node.state, seen.state]
        if max(states, key=lambda state: state.strictness) is NodeState.DRAIN:
            busy = any(lane.state.holds_memory and name in lane.nodes for lane in inventory.lanes.values())
            found[name] = NodeStatus(state="draining" if busy else "drained")
    return found


def _drift(plan: Plan) -> tuple[Drift, ...]:
    """What a fresh plan would change although nobody asked for a change."""
    diff = plan.diff
    rows = [Drift(lane=row.lane, field="state", planned="running", seen="stopped") for row in diff.start]
    rows += [Drift(lane=row.lane, field="state", planned="stopped", seen="running") for row in diff.stop]
    rows += [
        Drift(lane=row.lane, field="residency", planned=row.after.value, seen=row.before.value)
        for row in diff.residency
    ]
    rows += [
        Drift(alias=row.alias, field="route", planned=list(row.after), seen=list(row.before)) for row in diff.routes
    ]
    return tuple(rows)
