"""A gateway's words for lanes and builds, in ours (pure). A word that is new to us is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from lloom_gitops.catalog.sighting_wire import amount, items, table, text
from lloom_gitops.model.words import Feature, LaneState, Residency

_STATES = {
    "running": LaneState.RUNNING,
    "external": LaneState.RUNNING,
    "healthy": LaneState.RUNNING,
    "starting": LaneState.LOADING,
    "warming": LaneState.LOADING,
    "queued": LaneState.LOADING,
    "draining": LaneState.DRAINING,
    "stopping": LaneState.STOPPING,
    "stopped": LaneState.STOPPED,
    "idle": LaneState.STOPPED,
    "exited": LaneState.STOPPED,
    "created": LaneState.STOPPED,
    "failed": LaneState.FAILED,
    "dead": LaneState.FAILED,
}


def lane_state(row: Mapping[str, Any]) -> LaneState:
    """State of a lane from its status row. A healthy lane runs, whatever a word new to us says."""
    state = _STATES.get(str(row.get("status")))
    if state is None:
        return LaneState.RUNNING if row.get("healthy") is True else LaneState.UNKNOWN
    if state in (LaneState.STOPPED, LaneState.FAILED) and row.get("healthy") is True:
        return LaneState.RUNNING
    return state


def lane_residency(row: Mapping[str, Any]) -> Residency:
    """Residency of a lane from its status or plan row."""
    if row.get("keepWarm") is True:
        return Residency.ALWAYS
    return Residency.PREFERRED if row.get("preferredWarm") is True else Residency.AUTO


def lane_latched(row: Mapping[str, Any]) -> bool:
    """Whether a guard abort keeps the lane from starting by itself; builds before the flag show only the reason."""
    if "memorySafetyLatched" in row:
        return row["memorySafetyLatched"] is True
    return row.get("status") == "failed" and row.get("transitionReason") == "memory-safety-abort"


def abort_gb(row: Mapping[str, Any]) -> Decimal | None:
    """GiB that the load had taken when the guard aborted it: a lower bound of what it needs.

    `usedGb` is all that was used on the host, so it bounds nothing by itself.
    """
    return amount(table(row.get("lastMemorySafetyAbort")).get("consumedGb"))


def measured_gb(row: Mapping[str, Any]) -> Decimal | None:
    """GiB measured for the lane, where the build measures (`?memoryUsage=1`)."""
    return amount(table(row.get("memoryUsage")).get("residentGb"))


def requests_in_flight(row: Mapping[str, Any]) -> int | None:
    """Requests that a stop would cut or strand: served ones and those in line for a slot."""
    counts = [row.get("activeRequests"), row.get("queuedRequests", 0)]
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
    return sum(known) if len(known) == len(counts) else None


def runtime_rows(body: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Lane rows of a `/gateway/node` or `/gateway/status` body by lane id."""
    holder = table((body or {}).get("node")) or (body or {})
    rows = table(table(holder.get("runtimeManager")).get("runtimes"))
    return {name: table(row) for name, row in rows.items() if text(name) == name}


def is_group(row: Mapping[str, Any]) -> bool:
    """Whether a row is a distributed lane."""
    return row.get("distributed") is True or table(row.get("placement")).get("mode") == "distributed"


def group_members(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ranks of a distributed lane (node, runtime, resources), as configured."""
    return [table(member) for member in items(row.get("members") or table(row.get("placement")).get("members"))]


def features(
    node: Mapping[str, Any], routing: Mapping[str, Any] | None, has_profiles: bool | None
) -> tuple[Feature, ...] | None:
    """What the build can do, from `/gateway/node`, `/gateway/routing` and whether it knows fleet profiles.

    Lane rows are the better evidence; a gateway without lanes is judged by the profiles route, which came later than
    both residency and suspension. None where an answer that it takes is missing.
    """
    rows = runtime_rows(node).values()
    if routing is None or (not rows and has_profiles is None):
        return None
    manager = table(table(node.get("node")).get("runtimeManager"))
    evidence = {
        Feature.RESIDENCY: _in_rows(rows, "preferredWarm", has_profiles),
        Feature.ROUTE_MEMBERS: "routes" in routing,
        Feature.SUSPEND: _in_rows(rows, "maintenance", has_profiles),
        Feature.MEMORY_GUARD: "memorySafety" in manager,
    }
    return tuple(feature for feature in Feature if evidence[feature])


def _in_rows(rows: Iterable[Mapping[str, Any]], key: str, otherwise: bool | None) -> bool:
    known = list(rows)
    return any(key in row for row in known) if known else bool(otherwise)
