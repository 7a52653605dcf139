"""Feasibility, objective, search and explanation: desired state and inventory to a plan. Pure."""

from __future__ import annotations

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.errors import Refused
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.words import Seen

from .document import assemble
from .request import PlanRequest, effective
from .wishes import best_with_wishes

__all__ = ["PlanRequest", "effective", "plan"]


def plan(desired: Desired, inventory: Inventory, request: PlanRequest | None = None) -> Plan:
    """The plan for a desired state and what was seen: same input, same bytes.

    Raises Refused: `nothingSeen` where no node could be read (absence is not evidence), `wishImpossible` where a pin or
    the active profile can never be met.
    """
    request = request or PlanRequest()
    if not any(node.seen is Seen.PRESENT for node in inventory.nodes.values()):
        raise Refused(
            code="nothingSeen",
            message="no node of the inventory could be read, so nothing can be told apart from an outage",
            hint="lloom-gitops inventory --write",
        )
    asked = effective(desired, request)
    world, found, unmet = best_with_wishes(asked, inventory)
    return assemble(desired, inventory, world, found, unmet, request.what_if)
