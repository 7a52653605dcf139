"""Lane rows as `/gateway/status` and `/gateway/node` list them, per build."""

from __future__ import annotations

from lloom_gitops.sim.gateway.document import declared_gb, is_external
from lloom_gitops.sim.gateway.node import LaneState, Node
from lloom_gitops.sim.gateway.planrows import authority
from lloom_gitops.sim.gateway.refusals import Doc
from lloom_gitops.sim.gateway.slots import slots_of
from lloom_gitops.sim.gateway.stamps import iso

_UP = frozenset({"running", "external", "starting"})
_OPTIONAL = ("command", "args", "cwd", "port", "healthUrl", "startupTimeoutMs")
_WATCHDOG: Doc = {
    "enabled": False,
    "failureThreshold": 2,
    "failureWindowMs": 600000,
    "minNoProgressMs": 120000,
    "cooldownMs": 600000,
    "drainTimeoutMs": 30000,
    "failureStatuses": [499, 502, 504],
}
_WATCHDOG_COUNTERS: Doc = {
    "consecutiveFailures": 0,
    "lastFailureAt": None,
    "restartPending": False,
    "restartRequestedAt": None,
    "lastRestartAt": None,
    "restarts": 0,
    "restartFailures": 0,
    "lastError": None,
}
_QUEUE_DEFAULTS: Doc = {
    "queueTimeoutMs": 240000,
    "queueRetryAfterSeconds": 2,
    "requestStartupWaitMs": 1000,
    "startupRetryAfterSeconds": 15,
    "healthTimeoutMs": 1500,
    "interactiveReservedSlots": 0,
    "interactiveReservedQueueSlots": 0,
}


def declared(node: Node, lane: str) -> Doc:
    """The part of a row that comes from the config."""
    entry = node.config.runtimes[lane]
    row: Doc = {
        "enabled": entry.get("enabled") is True,
        "keepWarm": entry.get("keepWarm") is True,
        "maxConcurrency": slots_of(node, lane),
        **{key: entry[key] for key in _OPTIONAL if key in entry},
        "effectiveArgs": list(entry.get("args") or []),
        "watchdog": {**_WATCHDOG, **(entry.get("watchdog") or {})},
        "sessionCache": entry.get("sessionCache"),
        "adapter": entry.get("adapter"),
        "management": "external" if is_external(entry) else "managed",
        "containerName": entry.get("containerName"),
        "recipe": entry.get("recipe"),
        "bootstrap": entry.get("bootstrap"),
        "cachePersistence": {
            "supported": False,
            "persistence": "none",
            "kind": None,
            "reason": "runtime does not declare a supported session-cache adapter",
        },
        "node": entry.get("node") or (entry.get("placement") or {}).get("node"),
        "placement": entry.get("placement"),
    }
    return {**row, **_declared_newer(node, lane, entry)} if node.newer else row


def _declared_newer(node: Node, lane: str, entry: Doc) -> Doc:
    return {
        "preferredWarm": entry.get("preferredWarm") is True,
        "maintenance": entry.get("maintenance"),
        "memoryGb": declared_gb(entry),
        "requiredNodes": sorted(node.config.resources_by_node(lane)),
        "authority": authority(node.config, lane),
        "maxQueuedRequests": entry.get("maxQueuedRequests", max(8, 4 * slots_of(node, lane))),
        **{key: entry.get(key, default) for key, default in _QUEUE_DEFAULTS.items()},
    }


def _counters(state: LaneState) -> Doc:
    return {
        "starts": state.starts,
        "stops": state.stops,
        **gateway_counters(state),
        "statusSince": iso(state.status_since),
        "transitionReason": state.reason,
        "startedAt": iso(state.started_at),
        "stoppedAt": iso(state.stopped_at),
        "lastWarmup": state.last_warmup,
        "lastError": state.last_error,
    }


def gateway_counters(state: LaneState) -> Doc:
    """Counters of the gateway that answers, also on rows of lanes elsewhere."""
    return {
        "activeRequests": state.in_flight,
        "queuedRequests": len(state.waiting),
        "admissionQueuedRequests": state.admission_queued,
        "lastRequestedAt": iso(state.last_requested_at),
        "lastIdleAt": iso(state.last_idle_at),
    }


def local_row(node: Node, lane: str, *, measured: bool = False) -> Doc:
    """A lane of this node. `measured` adds what it really uses (newer builds, on request)."""
    state = node.state(lane)
    row = declared(node, lane)
    row["watchdog"] = {**row["watchdog"], **_WATCHDOG_COUNTERS}
    process = node.machine.processes.get(lane)
    row |= {
        "pid": state.child if process is not None else None,
        "healthy": node.healthy(lane),
        "status": node.visible_status(lane),
        **_counters(state),
        "container": None,
    }
    if node.newer:
        row["memorySafetyLatched"] = state.latch is not None
        row["lastMemorySafetyAbort"] = state.latch
        if measured and process is not None and node.traits(lane).measured:
            row["memoryUsage"] = {"residentGb": process.memory_gb(node.now), "source": "process"}
    return row


def remote_row(node: Node, lane: str, block: Doc) -> Doc:
    """A lane of another node, from that node's last answer and this gateway's own counters."""
    own = gateway_counters(node.state(lane))
    seen = (block.get("runtimeManager") or {}).get("runtimes", {}).get(lane)
    where = node.config.node_of(lane)
    if seen is not None:
        for key in ("lastRequestedAt", "lastIdleAt"):
            own[key] = own[key] or seen.get(key)
        return {**seen, "node": where, "remote": True, **own}
    return {
        **declared(node, lane),
        "node": where,
        "remote": True,
        "healthy": False,
        "status": "unknown" if block.get("reachable") else "unreachable",
        "error": block.get("error"),
        **own,
    }


def group_row(node: Node, group: str, rows: dict[str, Doc]) -> Doc:
    """A distributed lane, from the rows of its members."""
    state = node.state(group)
    members = [
        {
            **member,
            "status": rows.get(member["runtime"], {}).get("status", "unknown"),
            "healthy": rows.get(member["runtime"], {}).get("healthy") is True,
        }
        for member in node.config.members(group)
    ]
    control = bool(members) and all(m["healthy"] for m in members)
    healthy = _logical_health(node, group, members) if node.newer else control
    loaded = any(m["status"] in _UP for m in members)
    queued = "queued" if state.status == "queued" else "stopped"
    row: Doc = {
        **declared(node, group),
        "node": None,
        "remote": False,
        "distributed": True,
        "members": members,
        "resourcesByNode": node.config.resources_by_node(group),
        "healthy": healthy,
        "status": "running" if healthy else "starting" if loaded else queued,
        **_counters(state),
    }
    if node.newer:
        degraded = "management-degraded" if healthy else "unavailable"
        row |= {
            "servingHealthy": healthy,
            "controlHealthy": control,
            "availabilityState": "healthy" if healthy and control else degraded,
        }
    return row


def _logical_health(node: Node, group: str, members: list[Doc]) -> bool:
    """Newer builds ask the group's own health URL alone: that of the member which serves it (the last in order)."""
    url = node.config.runtimes[group].get("healthUrl")
    if not url:
        return bool(members) and all(m["healthy"] for m in members)
    serving = [m for m in members if (node.config.runtime(m["runtime"]) or {}).get("healthUrl") == url]
    head = serving[-1] if serving else max(members, key=lambda m: m["order"])
    return bool(head["healthy"])
