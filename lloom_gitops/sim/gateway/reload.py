"""What a gateway does when its config file changed, per build."""

from __future__ import annotations

from lloom_gitops.sim.gateway import lifecycle
from lloom_gitops.sim.gateway.admit import apply
from lloom_gitops.sim.gateway.document import LIVE_FIELDS, GatewayConfig
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal
from lloom_gitops.sim.gateway.slots import drain, resume
from lloom_gitops.sim.gateway.tasks import Flow, locked


def changed_lanes(old: GatewayConfig, new: GatewayConfig) -> list[str]:
    """Lanes of this node (groups: of the leader) that the edit restarts or stops."""
    names = [*old.runtimes, *(lane for lane in new.runtimes if lane not in old.runtimes)]
    changed = {lane for lane in names if _weighty(old, lane) != _weighty(new, lane)}
    for lane in names:
        members = [m["runtime"] for config in (old, new) for m in config.members(lane)]
        if changed & set(members):
            changed.add(lane)
    return [lane for lane in names if lane in changed and _concerns(new if lane in new.runtimes else old, lane)]


def _weighty(config: GatewayConfig, lane: str) -> Doc | None:
    """What of an entry counts as a change: all of it in the snapshot, not the live fields in newer builds."""
    entry = config.runtime(lane)
    if entry is None or config.build == "snapshot":
        return entry
    return {key: value for key, value in entry.items() if key not in LIVE_FIELDS}


def _concerns(config: GatewayConfig, lane: str) -> bool:
    if config.is_group(lane):
        return config.leader == config.node_id
    return config.is_local(lane)


def reload(node: Node, new: GatewayConfig) -> Flow:
    """Take a config over: drain and stop what changed, switch, start again what ran or is pinned."""
    return locked(node.reload_lock, _reload(node, new))


def _reload(node: Node, new: GatewayConfig) -> Flow:
    old = node.config
    if node.newer and node.fence.closed:
        return {"changed": [], "skipped": "deployment-fence"}
    changed = changed_lanes(old, new)
    if node.newer and changed and _topology(old) != _topology(new):
        raise GatewayRefusal(
            "cluster endpoints or keys changed together with a runtime",
            status=409,
            code="RUNTIME_CONTROL_TOPOLOGY_CHANGED",
        )
    for lane in changed:
        if node.state(lane).lock:
            node.state(lane).abort = "superseded by config reload"
            node.record(lane, "lifecycle-abort", reason="superseded by config reload")
    ran = {lane: lane in old.runtimes and _runs(node, lane) for lane in changed}
    try:
        for lane in changed:
            yield from drain(node, lane)
        for lane in sorted((lane for lane in changed if lane in old.runtimes), key=lambda name: not old.is_group(name)):
            yield from lifecycle.stop(node, lane)
        _take_over(node, new)
        for lane in sorted(changed, key=lambda name: not new.is_group(name)):
            if _starts_again(old, new, lane, ran[lane], changed):
                yield from _start_again(node, lane)
    finally:
        for lane in changed:
            resume(node, lane)
    return {"changed": changed}


def _topology(config: GatewayConfig) -> Doc:
    cluster = config.doc["cluster"]
    keys = ("endpoint", "apiKeyEnv", "apiKey")
    return {name: [node.get(key, cluster.get(key)) for key in keys] for name, node in cluster["nodes"].items()}


def _runs(node: Node, lane: str) -> bool:
    if node.config.is_group(lane):
        members = [m["runtime"] for m in node.config.members(lane) if node.config.is_local(m["runtime"])]
        return any(node.healthy(member) or node.owns_process(member) for member in members)
    return node.healthy(lane) or node.owns_process(lane)


def _take_over(node: Node, new: GatewayConfig) -> None:
    node.config = new
    node.remote.clear()


def _starts_again(old: GatewayConfig, new: GatewayConfig, lane: str, ran: bool, changed: list[str]) -> bool:
    entry = new.runtime(lane)
    if entry is None or new.group_of(lane) in changed:
        return False
    if new.build == "snapshot":
        return ran or entry.get("keepWarm") is True
    if entry.get("enabled") is False or entry.get("maintenance"):
        return False
    pinned, was_pinned = entry.get("keepWarm") is True, (old.runtime(lane) or {}).get("keepWarm") is True
    return pinned or (ran and not was_pinned)


def _start_again(node: Node, lane: str) -> Flow:
    """Snapshot: a plain forced start. Newer: through admission. A failure is in the lane's row and events."""
    try:
        if node.newer:
            yield from apply(node, lane, force=True, warmup=True, reason="config-reload")
        else:
            yield from lifecycle.start(node, lane, force=True, warmup=True, reason="config-reload")
    except GatewayRefusal as refusal:
        node.record(lane, "error", message=refusal.message)
