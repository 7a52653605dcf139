"""A plan that its independent judge passes: the only kind that leaves the program."""

from __future__ import annotations

from lloom_gitops.checks.plan import judge
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.errors import LloomGitopsError
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.planner import plan as planned
from lloom_gitops.planner.request import PlanRequest, effective


def legal_plan(desired: Desired, inventory: Inventory, request: PlanRequest | None = None) -> Plan:
    """A plan that its judge found legal. Raises `illegalPlan` (exit 1): what it finds is a bug of the planner."""
    request = request or PlanRequest()
    made = planned(desired, inventory, request)
    faults = judge(effective(desired, request), inventory, made)
    if faults:
        raise LloomGitopsError(
            code="illegalPlan",
            message="this is a bug in lloom-gitops: the planner made a plan that its judge refuses",
            hint="report it with the documents and the inventory that it was made from; nothing was done",
            findings=faults,
        )
    return made
