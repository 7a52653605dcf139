"""Routes that only newer builds have, gathered."""

from __future__ import annotations

from lloom_gitops.sim.gateway import fencing, installs, maintenance, profiles, residency
from lloom_gitops.sim.gateway.cluster import lane_rows, node_blocks
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, bad_request
from lloom_gitops.sim.gateway.tasks import Flow
from lloom_gitops.sim.gateway.wire import Handler, Request


def _readiness(node: Node, request: Request) -> Flow:
    """Fresh probes of one lane and of every node it needs."""
    lane = request.query.get("runtime")
    if not lane or node.config.runtime(lane) is None:
        raise bad_request("a known runtime is required", code="invalid_request")
    group = lane if node.config.is_group(lane) else node.config.group_of(lane)
    needed = sorted(node.config.resources_by_node(group or lane))
    blocks: dict[str, Doc] = yield from node_blocks(node, [n for n in needed if n != node.node_id], fresh=True)
    rows: dict[str, Doc] = yield from lane_rows(node)
    row = rows[group or lane]
    reachable = all(block["reachable"] for block in blocks.values())
    serving = row["healthy"]
    control = reachable and row.get("controlHealthy", serving)
    return {
        "ok": bool(serving and control),
        "runtimeId": lane,
        "groupRuntimeId": group,
        "scope": "group" if group else "node",
        "requiredNodes": needed,
        "readyForServing": serving,
        "readyForControl": reachable,
        "servingHealthy": serving,
        "controlHealthy": control,
        "availabilityState": "healthy" if serving and control else "management-degraded" if serving else "unavailable",
        "configErrors": [],
        "optionalWarnings": [],
        "diagnostics": [],
        "nodeEvidence": {name: {"reachable": name == node.node_id or blocks[name]["reachable"]} for name in needed},
    }


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "gateway/cluster/readiness"): _readiness,
    **residency.ROUTES,
    **profiles.ROUTES,
    **maintenance.ROUTES,
    **installs.ROUTES,
    **fencing.ROUTES,
}
