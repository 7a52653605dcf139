"""What one gateway knows of the others: node blocks with a short cache, rows of all lanes, calls to owners."""

from __future__ import annotations

from urllib.parse import quote

from lloom_gitops.sim.gateway import hardware, rows
from lloom_gitops.sim.gateway.catalogue import advertised
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal
from lloom_gitops.sim.gateway.tasks import Answer, Ask, Asks, Flow

_READ_MS = 5_000
_LOAD_MS = 1_800_000
_ACT_MS = 120_000


def local_rows(node: Node, *, measured: bool = False) -> dict[str, Doc]:
    """The lanes on this node; groups are not among them."""
    lanes = [lane for lane in node.config.runtimes if node.config.is_local(lane)]
    return {lane: rows.local_row(node, lane, measured=measured) for lane in lanes}


def local_block(node: Node, *, measured: bool = False) -> Doc:
    """This node as `/gateway/node` shows it."""
    block: Doc = {
        **_identity(node, node.node_id),
        "local": True,
        "reachable": True,
        **_declared(node, node.node_id),
        "system": hardware.system(node),
        "profile": hardware.profile(node),
        "models": advertised(node.config, aliases=False, disabled=True),
        "telemetry": hardware.telemetry(node),
        "runtimeManager": {"runtimes": local_rows(node, measured=measured), "events": list(node.events)},
    }
    if node.newer:
        block["runtimeManager"]["memorySafety"] = hardware.memory_safety(node)
    return block


def _identity(node: Node, name: str) -> Doc:
    return {"id": name, "name": node.config.nodes.get(name, {}).get("name", name)}


def _declared(node: Node, name: str) -> Doc:
    entry = node.config.nodes.get(name, {})
    return {"labels": entry.get("labels") or {}, "resources": entry.get("resources") or {}}


def node_blocks(node: Node, names: list[str], *, fresh: bool = False, path: str = "/gateway/node") -> Flow:
    """Blocks of other nodes, asked in parallel; each answer, good or bad, holds for `cluster.statusCacheMs`."""
    ttl = int(node.config.doc["cluster"].get("statusCacheMs", 1000))
    stale = [n for n in names if fresh or n not in node.remote or node.now - node.remote[n][0] >= ttl]
    if stale:
        calls = tuple(Ask(name, "GET", path, timeout_ms=_READ_MS) for name in stale)
        answers: list[Answer] = yield Asks(calls)
        for name, answer in zip(stale, answers, strict=True):
            node.remote[name] = (node.now, _remote_block(node, name, answer))
    return {name: node.remote[name][1] for name in names}


def _remote_block(node: Node, name: str, answer: Answer) -> Doc:
    own = {**_identity(node, name), "local": False, **_declared(node, name)}
    if answer.body is not None and "node" in answer.body:
        return {**answer.body["node"], **own, "reachable": True}
    return {
        **own,
        "reachable": False,
        "telemetry": None,
        "runtimeManager": {"runtimes": {}},
        "error": answer.error or "fetch failed",
    }


def lane_rows(node: Node, *, measured: bool = False) -> Flow:
    """Rows of every lane of the config: own, of other nodes, then groups."""
    config = node.config
    ordinary = [lane for lane in config.runtimes if not config.is_group(lane)]
    elsewhere = sorted({n for lane in ordinary if (n := config.node_of(lane)) is not None and n != node.node_id})
    blocks: dict[str, Doc] = yield from node_blocks(node, elsewhere)
    found: dict[str, Doc] = {}
    for lane in ordinary:
        if config.is_local(lane):
            found[lane] = rows.local_row(node, lane, measured=measured)
        else:
            found[lane] = rows.remote_row(node, lane, blocks[config.node_of(lane) or ""])
    for group in config.runtimes:
        if config.is_group(group):
            found[group] = rows.group_row(node, group, found)
    return found


def cluster_status(node: Node, *, measured: bool = False) -> Flow:
    """The body of `/gateway/cluster`."""
    others = [name for name in node.config.nodes if name != node.node_id]
    blocks: dict[str, Doc] = yield from node_blocks(node, others)
    own = local_block(node, measured=measured)
    return {
        "enabled": bool(node.config.doc["cluster"]["nodes"]),
        "id": node.config.doc["cluster"].get("id", "local"),
        "nodeId": node.node_id,
        "leaderNode": node.config.leader,
        "nodes": {name: own if name == node.node_id else blocks[name] for name in node.config.nodes},
    }


def require_nodes(node: Node, names: set[str]) -> Flow:
    """Newer builds: every other node of a group has to answer before its lifecycle is touched."""
    blocks: dict[str, Doc] = yield from node_blocks(node, sorted(names - {node.node_id}), fresh=True)
    for name, block in blocks.items():
        if not block["reachable"]:
            raise GatewayRefusal(
                f"cluster node {name} does not answer",
                status=503,
                code="RUNTIME_CONTROL_UNAVAILABLE",
                kind="runtime_control_error",
                retry_after=5,
            )


def remote_action(node: Node, lane: str, action: str, body: Doc) -> Flow:
    """Have a lane's own gateway act. Its refusal or silence becomes a plain 500 here."""
    where = node.config.node_of(lane) or ""
    limit = _LOAD_MS if action in ("start", "warmup") else _ACT_MS
    requester = node.node_id if node.newer else None
    path = f"/gateway/runtimes/{quote(lane, safe='')}/{action}"
    answers: list[Answer] = yield Asks((Ask(where, "POST", path, body, limit, requester),))
    node.remote.pop(where, None)
    if answers[0].body is None:
        raise GatewayRefusal(answers[0].error or "fetch failed")
    return answers[0].body
