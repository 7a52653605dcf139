"""Admission carried out: the admit route, keep-warm and preferred passes, and starts that a client's request causes."""

from __future__ import annotations

from lloom_gitops.sim.gateway import lifecycle
from lloom_gitops.sim.gateway.admission import make_plan
from lloom_gitops.sim.gateway.cluster import lane_rows, node_blocks
from lloom_gitops.sim.gateway.document import Build
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, bad_request
from lloom_gitops.sim.gateway.slots import drain, resume
from lloom_gitops.sim.gateway.tasks import Flow, When, locked
from lloom_gitops.sim.gateway.verdict import refusal_of

_GIB = 1024**3
_UNCONFIRMED = (
    "Refusing to apply runtime admission plan without yes=true. "
    "Re-run with --apply --yes after reviewing the dry-run plan."
)


def plan(node: Node, lane: str | None, *, requester: str | None = None, evict: bool = True) -> Flow:
    """The admission plan as things are now."""
    rows: dict[str, Doc] = yield from lane_rows(node)
    others = [name for name in node.config.nodes if name != node.node_id]
    blocks: dict[str, Doc] = yield from node_blocks(node, others)
    telemetry = {name: _reading(block) for name, block in blocks.items()}
    machine = node.machine
    telemetry[node.node_id] = {
        "reachable": True,
        "totalMemoryGb": machine.total_gb,
        "availableMemoryGb": machine.available_gb(node.now),
    }
    return make_plan(node.config, rows, telemetry, lane, requester, evict)


def _reading(block: Doc) -> Doc:
    memory = (block.get("telemetry") or {}).get("memory") or {}
    total, available = memory.get("totalBytes"), memory.get("availableBytes")
    return {
        "reachable": block["reachable"],
        "totalMemoryGb": None if total is None else total / _GIB,
        "availableMemoryGb": None if available is None else available / _GIB,
    }


def admit_route(node: Node, lane: str, body: Doc) -> Flow:
    """The admit route: a dry run, or the plan carried out under the gateway-wide admission lock."""
    if body.get("apply") is not True:
        found: Doc = yield from plan(node, lane)
        return {"dryRun": True, "plan": found, "results": [{**a, "status": "planned"} for a in found["actions"]]}
    force, warmup = body.get("force") is not False, body.get("warmup") is not False
    try:
        if body.get("yes") is not True:
            raise bad_request(_UNCONFIRMED)
        return (yield from apply(node, lane, force=force, warmup=warmup, reason="admin-admit"))
    except GatewayRefusal as refusal:
        if node.build is Build.SNAPSHOT or refusal.status == 500:
            raise bad_request(refusal.message) from None
        raise


def apply(node: Node, lane: str, *, force: bool, warmup: bool, reason: str, evict: bool = True) -> Flow:
    """Admit a lane: evict what the plan names, then start it. Raises the refusal of the build."""
    flow = _apply(node, lane, force, warmup, reason, evict)
    return locked(node.admission_lock, flow)


def _apply(node: Node, lane: str, force: bool, warmup: bool, reason: str, evict: bool) -> Flow:
    lifecycle.check_maintenance(node, lane, reason)
    if node.newer:
        yield from _await_leaving(node, lane)
    found: Doc = yield from plan(node, lane, evict=evict)
    refusal = refusal_of(found, node.build)
    if refusal is not None:
        raise refusal
    if not found["policy"]["enabled"]:
        result = yield from lifecycle.start(node, lane, force=force, warmup=warmup, reason=reason)
        return {"dryRun": False, "plan": found, "results": [result]}
    results: list[Doc] = []
    for action in found["actions"]:
        if action["type"] == "stop":
            result = yield from _evict(node, action["runtimeId"])
        else:
            result = yield from lifecycle.start(node, lane, force=force, warmup=warmup, reason=reason)
        results.append({**action, "status": "applied", "result": result})
    if not any(result["type"] == "start" for result in results):
        result = yield from lifecycle.start(node, lane, force=force, warmup=warmup, reason=reason)
        already = {"type": "start", "runtimeId": lane, "reason": "already-admitted", "status": "applied"}
        results.append({**already, "result": result})
    return {"dryRun": False, "plan": found, "results": results}


def _evict(node: Node, lane: str) -> Flow:
    try:
        yield from drain(node, lane)
        return (yield from lifecycle.stop(node, lane))
    finally:
        resume(node, lane)


def _await_leaving(node: Node, lane: str) -> Flow:
    """Newer builds: lanes that are stopping here still hold their memory, so a start on this node waits for them."""
    if node.node_id not in node.config.resources_by_node(lane):
        return
    leaving = [
        other
        for other in node.config.runtimes
        if other != lane and node.config.is_local(other) and node.visible_status(other) == "stopping"
    ]
    yield When(lambda: all(node.visible_status(other) != "stopping" for other in leaving))


def keep_warm_pass(node: Node) -> Flow:
    """Load every pinned lane that this node owns, highest priority first; nothing loaded is evicted for it."""
    entries = node.config.runtimes
    pins = [lane for lane, entry in entries.items() if entry.get("keepWarm") is True]
    pins.sort(key=lambda lane: -_priority(entries[lane]))
    results: list[Doc] = []
    for lane in pins:
        why = _not_ours(node, lane)
        if why is not None:
            results.append({"runtimeId": lane, "started": False, "reason": why})
        else:
            results.append((yield from _keep_one(node, lane, "keep-warm")))
    return pins, results


def _keep_one(node: Node, lane: str, reason: str) -> Flow:
    try:
        return (yield from apply(node, lane, force=False, warmup=True, reason=reason, evict=False))
    except GatewayRefusal as refusal:
        capacity = refusal.code.startswith("runtime_capacity_") or refusal.code == "runtime_keep_warm_conflict"
        facts: Doc = {
            "started": False,
            "status": "skipped",
            "reason": "insufficient-memory" if capacity else "start-failed",
            "warning": refusal.message,
        }
        node.record(lane, f"{reason}-skipped", **facts)
        return {"runtimeId": lane, **facts}


def _priority(entry: Doc) -> float:
    policy: Doc = entry.get("policy") or {}
    priority = policy.get("priority", entry.get("priority"))
    return 100.0 if priority is None else float(priority)


def _not_ours(node: Node, lane: str) -> str | None:
    config = node.config
    if config.runtimes[lane].get("enabled") is not True:
        return "runtime-disabled"
    group = config.group_of(lane)
    if group is not None and (node.newer or config.runtimes[group].get("keepWarm") is True):
        return "distributed-runtime-owned"
    if config.is_group(lane):
        return None if config.leader == node.node_id else "leader-owned"
    return None if config.is_local(lane) else "node-owned"


def keep_warm_route(node: Node) -> Flow:
    pins, results = yield from keep_warm_pass(node)
    if not node.newer:
        return {"keepWarm": pins, "results": results}
    preferred = yield from preferred_pass(node)
    return {"keepWarm": pins, "preferredWarm": preferred, "results": results}


def preferred_pass(node: Node) -> Flow:
    """Newer builds: load preferred lanes into free memory, only when every owned pin is healthy."""
    entries = node.config.runtimes
    owned = [lane for lane in entries if _not_ours(node, lane) is None and not entries[lane].get("maintenance")]
    preferred = sorted(
        (lane for lane in owned if entries[lane].get("preferredWarm") is True),
        key=lambda lane: -_priority(entries[lane]),
    )
    rows: dict[str, Doc] = yield from lane_rows(node)
    if any(entries[lane].get("keepWarm") is True and not rows[lane]["healthy"] for lane in owned):
        return preferred
    for lane in preferred:
        if not rows[lane]["healthy"]:
            yield from _keep_one(node, lane, "preferred-warm")
    return preferred


def boot(node: Node) -> Flow:
    """What a gateway does after it listens: pins, then (newer) preferred lanes, restored from time to time."""
    _, results = yield from keep_warm_pass(node)
    if not node.newer:
        return
    if not any(result.get("status") == "skipped" for result in results):
        yield from preferred_pass(node)
    while True:
        yield When(lambda: False, until=node.now + max(100, node.machine.scaled(_RESTORE_MS)))
        if not node.fence.closed:
            yield from preferred_pass(node)


_RESTORE_MS = 30_000
