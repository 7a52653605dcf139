"""One row a lane, as admission plans list them, and what protects a lane from eviction, per build."""

from __future__ import annotations

from lloom_gitops.sim.gateway.document import Build, GatewayConfig, declared_gb
from lloom_gitops.sim.gateway.refusals import Doc

_LOADED = frozenset({"running", "external", "starting"})
_LEAVING = frozenset({"draining", "stopping"})
_REQUESTED_PRIORITY = 100000


def is_loaded(row: Doc, build: Build) -> bool:
    if row.get("healthy") is True or row.get("status") in _LOADED:
        return True
    return build is Build.NEWER and row.get("status") in _LEAVING


def plan_rows(config: GatewayConfig, statuses: dict[str, Doc], requested: str | None) -> list[Doc]:
    """One row a declared lane, as plans list them."""
    return [_plan_row(config, lane, statuses.get(lane) or {}, lane == requested) for lane in config.runtimes]


def _plan_row(config: GatewayConfig, lane: str, status: Doc, requested: bool) -> Doc:
    entry = config.runtimes[lane]
    policy = entry.get("policy") or {}
    keep_warm = entry.get("keepWarm") is True
    in_group = config.group_of(lane) is not None
    priority = policy.get("priority", entry.get("priority"))
    row: Doc = {
        "runtimeId": lane,
        "enabled": entry.get("enabled") is True,
        "requested": requested,
        "keepWarm": keep_warm,
        "loaded": is_loaded(status, config.build),
        "healthy": status.get("healthy") is True,
        "status": status.get("status", "unknown"),
        "activeRequests": status.get("activeRequests", 0),
        "queuedRequests": status.get("queuedRequests", 0),
        "lastRequestedAt": status.get("lastRequestedAt"),
        "lastIdleAt": status.get("lastIdleAt"),
        "memoryGb": 0 if in_group else plain(declared_gb(entry)),
        "resourcesByNode": {} if in_group else config.resources_by_node(lane),
        "ownedByDistributedGroup": in_group,
        "priority": _REQUESTED_PRIORITY if requested else priority if priority is not None else 100 * keep_warm,
        "command": entry.get("command"),
        "port": entry.get("port"),
    }
    if config.build is Build.SNAPSHOT:
        row["evictable"] = policy.get("evictable") is not False and entry.get("evictable") is not False
    else:
        owner = config.owner(lane)
        row |= {
            "preferredWarm": entry.get("preferredWarm") is True,
            "admissionQueuedRequests": status.get("admissionQueuedRequests", 0),
            "statusSince": status.get("statusSince"),
            "authority": authority(config, lane),
            "authorityProtected": owner != config.node_id,
        }
    return row


def authority(config: GatewayConfig, lane: str) -> Doc:
    group = lane if config.is_group(lane) else config.group_of(lane)
    return {"owner": config.owner(lane), "scope": "node" if group is None else "group", "group": group}


def plain(value: float) -> float:
    return int(value) if value == int(value) else value


def protected_reasons(row: Doc, policy: Doc, build: Build) -> list[str]:
    reasons = ["requested"] if row["requested"] else []
    if build is Build.NEWER:
        if row["authorityProtected"]:
            reasons.append(f"authority-owner:{row['authority']['owner']}")
        if row["keepWarm"]:
            reasons.append("keep-warm-pin")
    if row.get("evictable") is False:
        reasons.append("pinned")
    if policy["protectActiveRequests"] and row["activeRequests"] > 0:
        reasons.append("active-requests")
    if build is Build.SNAPSHOT and row["keepWarm"]:
        reasons.append("keep-warm")
    return reasons
