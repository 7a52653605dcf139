"""Whether a plan is authentic: it re-derives from the desired state and the inventory that it names (lifecycle.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lloom_gitops.checks.plan import judge
from lloom_gitops.codec.values import encode
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import PLANNER_VERSION, Plan
from lloom_gitops.planner import plan as planned
from lloom_gitops.planner.request import PlanRequest

EXACT = "exact"
"""The engine whose plans are unique, so that the same question gives the same bytes."""


def faults_of(desired: Desired, inventory: Inventory, plan: Plan) -> tuple[Finding, ...]:
    """Why `plan` is not authentic; empty: it is. The caller has found `desired` and `inventory` by the plan's digests.

    A plan of the engine `exact` is made again and compared whole. Any other one is never searched again: the judge,
    which recomputes its levels, must find it legal.
    """
    inputs = plan.inputs
    if inputs.what_if:
        flags = ", ".join(inputs.what_if)
        return (_fault("whatIfPlan", "/spec/inputs/whatIf", "a what-if plan only shows", None, flags),)
    if inputs.planner != PLANNER_VERSION:
        message = "another version of the planner made it"
        return (_fault("otherPlanner", "/spec/inputs/planner", message, str(PLANNER_VERSION), str(inputs.planner)),)
    if inputs.engine != EXACT:
        return judge(desired, inventory, plan)
    again = planned(desired, inventory, PlanRequest())
    first = next(_differences(encode(again), encode(plan), "/spec"), None)
    if first is None:
        return ()
    pointer, wanted, found = first
    return (_fault("notAuthentic", pointer, "it does not re-derive from what it names", _short(wanted), _short(found)),)


def _fault(code: str, pointer: str, message: str, wanted: str | None, found: str | None) -> Finding:
    return Finding(code=code, message=message, pointer=pointer, wanted=wanted, found=found)


def _differences(wanted: Any, found: Any, at: str) -> Iterator[tuple[str, Any, Any]]:
    """Each smallest place in which two trees of plain data differ, as pointer, wanted, found."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            token = str(key).replace("~", "~0").replace("/", "~1")
            yield from _differences(wanted.get(key), found.get(key), f"{at}/{token}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for place, pair in enumerate(zip(wanted, found, strict=True)):
            yield from _differences(*pair, f"{at}/{place}")
    elif wanted != found:
        yield at, wanted, found


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
