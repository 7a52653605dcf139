"""Distributed lanes: one logical lane over member lanes on several nodes."""

from __future__ import annotations

from lloom_gitops.sim.gateway import lifecycle
from lloom_gitops.sim.gateway.cluster import lane_rows, require_nodes
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal
from lloom_gitops.sim.gateway.tasks import Flow

_UP = frozenset({"running", "external", "starting"})


def healthy_here(node: Node, group: str) -> bool:
    """Whether the group answers, as far as this node's own members tell."""
    local = [m["runtime"] for m in node.config.members(group) if node.config.is_local(m["runtime"])]
    return bool(local) and all(node.healthy(lane) for lane in local)


def start(node: Node, group: str, *, force: bool, warmup: bool, reason: str) -> Flow:
    """Members in ascending order, each to health. Snapshot: what runs stays. Newer: force stops all members first."""
    members = sorted(node.config.members(group), key=lambda m: m["order"])
    if node.newer:
        yield from require_nodes(node, {m["node"] for m in members})
        settled = yield from _settle_newer(node, group, members, force)
        if settled is not None:
            return settled
    node.set_status(group, "starting", reason)
    started: list[Doc] = []
    try:
        for member in members:
            lane = member["runtime"]
            result: Doc = yield from lifecycle.start(node, lane, force=force, warmup=False, reason=f"{reason}:{group}")
            if not result.get("healthy"):
                why = result.get("reason", "unknown")
                raise GatewayRefusal(
                    f"distributed runtime {group} member {lane} on {member['node']} did not become healthy ({why})"
                )
            started.append({**member, "result": result})
    except GatewayRefusal as failure:
        yield from _take_back(node, members if node.newer else [m for m in started if m["result"]["started"]])
        node.state(group).last_error = failure.message
        node.set_status(group, "failed", reason)
        raise
    state = node.state(group)
    state.starts += 1
    state.started_at = node.now
    node.set_status(group, "running", reason)
    entry = node.config.runtimes[group]
    warmed = {"warmup": (yield from lifecycle.warm_up(node, group))} if warmup and entry.get("warmup") else {}
    return {"runtimeId": group, "started": True, "healthy": True, "distributed": True, "members": started, **warmed}


def _settle_newer(node: Node, group: str, members: list[Doc], force: bool) -> Flow:
    """Newer builds: an answer where nothing is to be started, else all members are down and None."""
    rows: dict[str, Doc] = yield from lane_rows(node)
    healthy = rows[group]["healthy"]
    up = [m for m in members if rows[m["runtime"]]["status"] in _UP]
    if not force and len(up) == len(members):
        reason = "already-healthy" if healthy else "startup-adopted"
        return {"runtimeId": group, "started": False, "healthy": healthy, "distributed": True, "reason": reason}
    if up:
        yield from _take_back(node, members)
    return None


def _take_back(node: Node, members: list[Doc]) -> Flow:
    for member in reversed(members):
        try:
            yield from lifecycle.stop(node, member["runtime"])
        except GatewayRefusal as failure:
            node.record(member["runtime"], "error", message=failure.message)


def stop(node: Node, group: str) -> Flow:
    """Members in descending order."""
    members = sorted(node.config.members(group), key=lambda m: -m["order"])
    if node.newer:
        yield from require_nodes(node, {m["node"] for m in members})
    node.set_status(group, "stopping", "stop")
    results = []
    for member in members:
        results.append({**member, "result": (yield from lifecycle.stop(node, member["runtime"]))})
    node.set_status(group, "stopped")
    state = node.state(group)
    state.stops += 1
    state.stopped_at = node.now
    return {"runtimeId": group, "stopped": True, "distributed": True, "members": results}
