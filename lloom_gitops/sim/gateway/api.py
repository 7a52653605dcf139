"""The routes of a gateway as flows over a node: what an HTTP call asks for, and the reply. Pure.

`answer` is all that another gateway, an HTTP server or a simulation needs. Inference is not here: it streams.
"""

# ruff: noqa: ARG001 - route handlers share one signature
from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from lloom_gitops.sim.gateway import admit, auth, cluster, fencing, hardware, lifecycle, newer, profiles
from lloom_gitops.sim.gateway.catalogue import advertised
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, authority_forbidden, no_route
from lloom_gitops.sim.gateway.stamps import iso
from lloom_gitops.sim.gateway.tasks import Flow
from lloom_gitops.sim.gateway.wire import Handler, Reply, Request, at_once, refused

PROFILE_TYPE = "application/vnd.lloom.machine-profile+json;version=1; charset=utf-8"
_VERSION_NAME = "lloom"


def answer(node: Node, request: Request) -> Flow:
    """Let a call in, carry it out, word the reply. Never raises for what the gateway itself refuses."""
    try:
        denied = auth.refuse(node.config, request.method, request.path, request.headers)
        if denied is not None:
            raise denied
        handler, arguments = _find(node, request)
        request = replace(request, arguments=arguments)
        fencing.check_fence(node, request.method, request.path)
        reply = yield from handler(node, request)
    except GatewayRefusal as refusal:
        return refused(refusal)
    return reply if isinstance(reply, Reply) else Reply(200, reply)


def _find(node: Node, request: Request) -> tuple[Handler, tuple[str, ...]]:
    segments = [unquote(part) for part in request.path[1:].split("/")]
    tables = [_ROUTES, newer.ROUTES] if node.newer else [_ROUTES]
    for table in tables:
        for (method, pattern), handler in table.items():
            parts = pattern.split("/")
            if method != request.method or len(parts) != len(segments):
                continue
            if all(p.startswith(":") or p == s for p, s in zip(parts, segments, strict=True)):
                return handler, tuple(s for p, s in zip(parts, segments, strict=True) if p.startswith(":"))
    raise no_route(request.path)


def _flag(request: Request, name: str) -> bool:
    return request.query.get(name) in ("1", "true")


def _health(node: Node, request: Request) -> Flow:
    body: Doc = {"ok": True, "name": node.config.doc.get("name", _VERSION_NAME)}
    return at_once({**body, "pid": node.pid} if node.newer else body)


def _security(node: Node, request: Request) -> Flow:
    return at_once(auth.public_status(node.config))


def _status(node: Node, request: Request) -> Flow:
    measured = node.newer and _flag(request, "memoryUsage")
    rows = yield from cluster.lane_rows(node, measured=measured)
    block = yield from cluster.cluster_status(node, measured=measured)
    manager: Doc = {"runtimes": rows, "events": list(node.events)}
    server = node.config.doc["server"]
    body: Doc = {
        "ok": True,
        "server": {"host": server["host"], "port": server["port"]},
        "defaults": node.config.doc["defaults"],
        "runtimeManager": manager,
        "cluster": block,
    }
    if node.newer:
        manager["memorySafety"] = hardware.memory_safety(node)
        body["deploymentFence"] = fencing.fence_state(node)
    return body


def _node(node: Node, request: Request) -> Flow:
    block = cluster.local_block(node, measured=node.newer and _flag(request, "memoryUsage"))
    if node.newer and _flag(request, "inventory"):
        block["inventory"] = hardware.inventory(node)
    return at_once({"ok": True, "node": block})


def _cluster(node: Node, request: Request) -> Flow:
    found: Doc = yield from cluster.cluster_status(node)
    if node.newer and _flag(request, "inventory"):
        others = [name for name in node.config.nodes if name != node.node_id]
        cached = dict(node.remote)
        blocks: dict[str, Doc] = yield from cluster.node_blocks(
            node, others, fresh=True, path="/gateway/node?inventory=1"
        )
        node.remote = cached
        for name, block in blocks.items():
            found["nodes"][name]["inventory"] = block.get("inventory")
        found["nodes"][node.node_id]["inventory"] = hardware.inventory(node)
    return {"ok": True, "cluster": found}


def _plan(node: Node, request: Request) -> Flow:
    names = ("runtime", "runtime_id", "runtime-id")
    lane = next((request.query[name] for name in names if request.query.get(name)), None)
    return admit.plan(node, lane, requester=request.headers.get("x-lloom-requester-node"))


def _models(node: Node, request: Request) -> Flow:
    return at_once({"models": advertised(node.config)})


def _routing(node: Node, request: Request) -> Flow:
    doc = node.config.doc
    body: Doc = {"aliases": doc["aliases"], "defaults": doc["defaults"]}
    if node.newer:
        body |= {
            "routes": {name: profiles.route_view(name, alias) for name, alias in doc["aliases"].items()},
            "targetBackoffs": {},
            "runtimeRecoveryBackoffs": {},
            "rateLimits": {},
        }
    return at_once(body)


def _metrics(node: Node, request: Request) -> Flow:
    model = request.arguments[0] if request.arguments else request.query.get("model")
    period = request.query.get("period", "all")
    body = node.ledger.body(node.now, newer=node.newer, period=period, model=model)
    body["persistence"] = {"enabled": True, "scope": "all-time", "since": iso(node.ledger.since)}
    return at_once(body if request.arguments else {**body, "host": hardware.telemetry(node)})


def _profile(node: Node, request: Request) -> Flow:
    return at_once(Reply(200, hardware.profile(node), {"content-type": PROFILE_TYPE}))


def _check_authority(node: Node, request: Request, lane: str) -> None:
    """Newer builds: only a lane's owner may act on it, and the caller may say who it acts for."""
    if not node.newer or node.config.runtime(lane) is None:
        return
    owner = node.config.owner(lane)
    if request.headers.get("x-lloom-requester-node", node.node_id) != owner:
        raise authority_forbidden(lane, owner)


def _start(node: Node, request: Request) -> Flow:
    lane, body = request.arguments[0], request.body()
    _check_authority(node, request, lane)
    force, warmup = body.get("force") is not False, body.get("warmup") is not False
    return lifecycle.start(node, lane, force=force, warmup=warmup, reason="admin-start")


def _stop(node: Node, request: Request) -> Flow:
    request.body()
    _check_authority(node, request, request.arguments[0])
    return lifecycle.stop(node, request.arguments[0])


def _admit(node: Node, request: Request) -> Flow:
    body = request.body()
    if body.get("apply") is True:
        _check_authority(node, request, request.arguments[0])
    return admit.admit_route(node, request.arguments[0], body)


def _warmup(node: Node, request: Request) -> Flow:
    _check_authority(node, request, request.arguments[0])
    return lifecycle.warmup_route(node, request.arguments[0])


def _stop_all(node: Node, request: Request) -> Flow:
    return lifecycle.stop_all(node)


def _keep_warm(node: Node, request: Request) -> Flow:
    return admit.keep_warm_route(node)


_ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "health"): _health,
    ("GET", "gateway/security"): _security,
    ("GET", "gateway/status"): _status,
    ("GET", "gateway/node"): _node,
    ("GET", "gateway/cluster"): _cluster,
    ("GET", "gateway/runtimes/plan"): _plan,
    ("GET", "gateway/models"): _models,
    ("GET", "gateway/routing"): _routing,
    ("GET", "gateway/metrics"): _metrics,
    ("GET", "gateway/metrics/models/:model"): _metrics,
    ("GET", "gateway/profile"): _profile,
    ("POST", "gateway/runtimes/stop-all"): _stop_all,
    ("POST", "gateway/runtimes/keep-warm"): _keep_warm,
    ("POST", "gateway/runtimes/:lane/start"): _start,
    ("POST", "gateway/runtimes/:lane/stop"): _stop,
    ("POST", "gateway/runtimes/:lane/admit"): _admit,
    ("POST", "gateway/runtimes/:lane/warmup"): _warmup,
}
