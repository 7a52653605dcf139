"""Suspend and resume (newer builds): the only way a client can drain a lane and then stop it."""

# ruff: noqa: ARG001 - route handlers share one signature
from __future__ import annotations

import hashlib

from lloom_gitops.sim.gateway import admit, lifecycle
from lloom_gitops.sim.gateway.document import route_of, targets_of
from lloom_gitops.sim.gateway.edits import edit_config
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, authority_forbidden, bad_request
from lloom_gitops.sim.gateway.slots import drain, resume
from lloom_gitops.sim.gateway.stamps import iso
from lloom_gitops.sim.gateway.tasks import Flow
from lloom_gitops.sim.gateway.wire import Handler, Request, at_once

_LONGEST_DRAIN_MS = 7_200_000


def _lanes_of(node: Node, name: str) -> list[str]:
    """The lanes behind a model, a single-model alias, or a lane's own id."""
    config = node.config
    if config.runtime(name) is not None:
        return [name]
    alias = config.doc["aliases"].get(name)
    if alias is not None and len(route_of(alias)) == 1:
        name = route_of(alias)[0]
    model = next((m for m in config.doc["models"] if m["id"] == name), None)
    lanes = [t["runtime"] for t in targets_of(model) if t.get("runtime")] if model is not None else []
    if not lanes:
        raise GatewayRefusal(f"{name} names no runtime that could be suspended")
    return lanes


def _plan(node: Node, name: str, action: str, lanes: list[str]) -> Doc:
    models = [m["id"] for m in node.config.doc["models"] if set(node.config.lanes_of_model(m)) & set(lanes)]
    aliases = [a for a, alias in node.config.doc["aliases"].items() if set(route_of(alias)) & set(models)]
    return {
        "requestedModel": name,
        "action": action,
        "runtimeIds": lanes,
        "affectedModelIds": models,
        "affectedAliases": aliases,
        "state": {lane: node.config.runtimes[lane].get("maintenance") for lane in lanes},
        "applied": False,
    }


def _route(node: Node, request: Request, name: str, action: str) -> Flow:
    body = request.body()
    lanes = _lanes_of(node, name)
    for lane in lanes:
        owner = node.config.owner(lane)
        if request.headers.get("x-lloom-requester-node", node.node_id) != owner:
            raise authority_forbidden(lane, owner)
    planned = _plan(node, name, action, lanes)
    if body.get("apply") is not True:
        return at_once(planned)
    if body.get("yes") is not True:
        raise bad_request("Refusing to change maintenance without yes=true.")
    limit = int(body.get("drainTimeoutMs", 300_000))
    if not 0 <= limit <= _LONGEST_DRAIN_MS:
        raise bad_request(f"drainTimeoutMs must be 0 to {_LONGEST_DRAIN_MS}")
    if action == "suspend":
        return _suspend(node, name, lanes, limit, planned)
    return _resume(node, name, lanes, planned)


def _mark(lanes: list[str], marker: Doc | None, document: Doc) -> None:
    for lane in lanes:
        document["runtimes"][lane].pop("maintenance", None)
        if marker is not None:
            document["runtimes"][lane]["maintenance"] = marker


def _marker(node: Node, name: str, state: str) -> Doc:
    digest = hashlib.sha256(f"{node.boot_id} {name} {node.now}".encode()).hexdigest()
    operation = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    return {"state": state, "requestedModel": name, "since": iso(node.now), "operationId": operation}


def _suspend(node: Node, name: str, lanes: list[str], limit: int, planned: Doc) -> Flow:
    """The marker first, so that nothing new comes; a drain that takes too long leaves the lane up and suspended."""
    changed = any(value is None for value in planned["state"].values())
    marker = _marker(node, name, "suspended")
    if changed:
        yield from edit_config(node, lambda document: _mark(lanes, marker, document))
    for lane in lanes:
        try:
            yield from drain(node, lane, limit)
            yield from lifecycle.stop(node, lane)
        finally:
            resume(node, lane)
    return _applied(node, planned, lanes, "suspended", changed)


def _resume(node: Node, name: str, lanes: list[str], planned: Doc) -> Flow:
    """Admit, wait for health, then take the marker off; a failure leaves the lanes suspended."""
    changed = any(value is not None for value in planned["state"].values())
    for lane in lanes if changed else []:
        yield from admit.apply(node, lane, force=True, warmup=True, reason=lifecycle.RESUMED)
    if changed:
        yield from edit_config(node, lambda document: _mark(lanes, None, document))
    return _applied(node, planned, lanes, "resumed", changed)


def _applied(node: Node, planned: Doc, lanes: list[str], status: str, changed: bool) -> Doc:
    state = {lane: node.config.runtimes[lane].get("maintenance") for lane in lanes}
    health = {lane: node.healthy(lane) for lane in lanes}
    return {**planned, "applied": True, "status": status, "changed": changed, "state": state, "health": health}


def _suspend_route(node: Node, request: Request) -> Flow:
    return _route(node, request, request.arguments[0], "suspend")


def _resume_route(node: Node, request: Request) -> Flow:
    return _route(node, request, request.arguments[0], "resume")


ROUTES: dict[tuple[str, str], Handler] = {
    ("POST", "gateway/models/:model/suspend"): _suspend_route,
    ("POST", "gateway/models/:model/resume"): _resume_route,
}
