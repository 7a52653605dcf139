"""Which refusals of a gateway pass by themselves and which don't; how an admission plan that does not fit is read."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from lloom_gitops.catalog.sighting_wire import amount, items, prose, table, text
from lloom_gitops.ports import GatewayAnswer

LATER = "later"
NEVER = "never"

RETRY_OF_CODE = {
    "runtime_capacity_busy": LATER,
    "runtime_capacity_impossible": NEVER,
    "runtime_keep_warm_conflict": NEVER,
    "runtime_eviction_forbidden": NEVER,
    "runtime_authority_conflict": NEVER,
    "runtime_memory_safety_abort": NEVER,
    "RUNTIME_AUTHORITY_FORBIDDEN": NEVER,
    "RUNTIME_MAINTENANCE": LATER,
    "RUNTIME_ADMISSION_BUSY": LATER,
    "RUNTIME_ADMISSION_PREEMPTED": LATER,
    "RUNTIME_CONTROL_UNAVAILABLE": LATER,
    "RUNTIME_QUEUE_FULL": LATER,
    "RUNTIME_QUEUE_TIMEOUT": LATER,
    "RUNTIME_RECONFIGURING": LATER,
    "RUNTIME_STARTING": LATER,
    "RUNTIME_UNAVAILABLE": LATER,
    "MODEL_TARGET_BACKOFF": LATER,
    "MODEL_TARGET_NOT_CONFIGURED": NEVER,
    "deployment_fenced": LATER,
}
"""The gateway's own codes. Its `retry-after` header says nothing: permanent refusals carry it too."""

NOT_STARTED = frozenset({"unknown-runtime", "runtime-disabled", "externally-managed", "no-runtime"})
"""Reasons with which a 200 answer says that nothing was or will be started."""

_PASSING_STATUS = frozenset({408, 409, 425, 429})
_BUSY = "active-requests"


def retry_of(status: int, code: str | None) -> str:
    """`later` or `never` for a refusal: by the gateway's code, else by the HTTP status."""
    if code in RETRY_OF_CODE:
        return RETRY_OF_CODE[code]
    return LATER if status >= 500 or status in _PASSING_STATUS else NEVER


def refused(code: str, says: str, retry: str, body: dict[str, Any] | None = None) -> GatewayAnswer:
    """A refusal in our words, or in the gateway's."""
    return GatewayAnswer(kind="refused", code=code, says=says, retry=retry, body=body or {})


def admission_refusal(lane: str, plan: Mapping[str, Any]) -> GatewayAnswer | None:
    """Why a dry admission plan must not be applied as it is; None when it may.

    An admission that would stop other lanes is refused here, because `admit` carries evictions out whatever `autoEvict`
    says. Numbers decide between temporary and permanent: the oldest builds call a refusal temporary as soon as any lane
    anywhere is busy.
    """
    errors = [said for error in items(plan.get("validationErrors")) if (said := prose(error))]
    if errors or plan.get("ok") is False:
        down = any(table(node).get("reachable") is False for node in _touched_nodes(plan).values())
        code, retry = ("nodeUnreachable", LATER) if down else ("invalidPlan", NEVER)
        return refused(code, "; ".join(errors) or "the gateway calls the admission plan invalid", retry)
    stops = [text(row.get("runtimeId")) or "?" for row in map(table, items(plan.get("actions"))) if _is_stop(row)]
    if stops:
        says = f"loading {lane} would make the gateway stop {', '.join(stops)}"
        return refused("wouldEvict", says, LATER, {"lanes": stops})
    if table(plan.get("admission")).get("allowed") is False:
        return _does_not_fit(lane, plan)
    return None


def _is_stop(action: Mapping[str, Any]) -> bool:
    return action.get("type") == "stop"


def _touched_nodes(plan: Mapping[str, Any]) -> dict[str, Any]:
    nodes = table(table(plan.get("admission")).get("nodes"))
    return {name: node for name, node in nodes.items() if amount(table(node).get("requestedAddsMemoryGb"))}


def _does_not_fit(lane: str, plan: Mapping[str, Any]) -> GatewayAnswer:
    """Temporary if what is merely busy would free enough on every node that is over budget, else permanent."""
    reasons = {
        text(row.get("runtimeId")): items(row.get("protectedReasons"))
        for row in map(table, items(plan.get("protected")))
    }
    busy = [row for row in map(table, items(plan.get("runtimes"))) if _only_busy(reasons, row)]
    short = _shortfalls(plan)
    worst = max(short.values(), default=Decimal(0))
    says = f"{lane} is {worst} GB over the memory budget"
    if busy and all(_memory(busy, node) >= over for node, over in short.items()):
        names = ", ".join(sorted(text(row.get("runtimeId")) or "?" for row in busy))
        return refused("runtime_capacity_busy", f"{says} while busy lanes hold theirs: {names}", LATER)
    return refused("runtime_capacity_impossible", says, NEVER)


def _only_busy(reasons: Mapping[str | None, list[Any]], row: Mapping[str, Any]) -> bool:
    return reasons.get(text(row.get("runtimeId"))) == [_BUSY]


def _shortfalls(plan: Mapping[str, Any]) -> dict[str | None, Decimal]:
    """GB over budget by node; by None where the gateway counts for one machine only."""
    admission = table(plan.get("admission"))
    if "nodes" not in admission:
        return {None: amount(admission.get("overBudgetGb")) or Decimal(0)}
    nodes = table(admission.get("nodes"))
    over = {name: amount(table(node).get("overBudgetGb")) for name, node in nodes.items()}
    return {name: gb for name, gb in over.items() if gb}


def _memory(rows: list[dict[str, Any]], node: str | None) -> Decimal:
    if node is None:
        return sum((amount(row.get("memoryGb")) or Decimal(0) for row in rows), Decimal(0))
    at_node = (table(table(row.get("resourcesByNode")).get(node)).get("memoryGb") for row in rows)
    return sum((amount(gb) or Decimal(0) for gb in at_node), Decimal(0))
