"""The deployment fence (newer builds): no new work while somebody updates the software."""

# ruff: noqa: ARG001 - route handlers share one signature
from __future__ import annotations

import re

from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, bad_request
from lloom_gitops.sim.gateway.stamps import iso
from lloom_gitops.sim.gateway.tasks import Flow, When
from lloom_gitops.sim.gateway.wire import Handler, Request, at_once

_OPERATION_ID = re.compile(r"[A-Za-z0-9._:/-]{1,128}")


def check_fence(node: Node, method: str, path: str) -> None:
    """While the fence is closed new work is refused; reads and the fence's own routes go on."""
    if node.newer and node.fence.closed and method == "POST" and not path.startswith("/gateway/deployment-fence/"):
        raise GatewayRefusal(
            "the gateway is fenced for a deployment",
            status=503,
            code="deployment_fenced",
            kind="deployment_fence_error",
            retry_after=5,
        )


def fence_state(node: Node) -> Doc:
    fence = node.fence
    operation = fence.operation
    return {
        "protocol": 1,
        "fenceProtocolVersion": 1,
        "ok": True,
        "state": operation["state"] if operation is not None and fence.closed else "open",
        "fenced": fence.closed,
        "drained": _in_flight(node) == 0,
        "persistent": True,
        "generation": fence.generation,
        "operation": operation,
        "identity": {"bootId": node.boot_id, "pid": node.pid, "nodeId": node.node_id, "startedAt": iso(node.booted_at)},
        "activeHandlers": _in_flight(node),
        "canaryInFlight": 0,
        "persistenceError": None,
        "lastError": None,
    }


def _in_flight(node: Node) -> int:
    return sum(state.in_flight for state in node.lanes.values())


def _status(node: Node, request: Request) -> Flow:
    return at_once(fence_state(node))


def _prepare(node: Node, request: Request) -> Flow:
    body = request.body()
    name = body.get("opId")
    if not isinstance(name, str) or not _OPERATION_ID.fullmatch(name):
        raise bad_request("opId must be 1 to 128 of letters, digits, . _ : / -")
    fence = node.fence
    if fence.closed and fence.operation is not None:
        if fence.operation["state"] == "preparing":
            raise _fence_error(409, "deployment_fence_busy", "another prepare is in progress")
        raise _fence_error(503, "deployment_fenced", "the gateway is already fenced")
    fence.generation += 1
    fence.operation = {
        "opId": name,
        "generation": fence.generation,
        "state": "preparing",
        "preparedAt": None,
        "createdAt": iso(node.now),
        "releasedAt": None,
        "ownerBootId": node.boot_id,
        "error": None,
    }
    return _await_drain(node, fence.operation, int(body.get("timeoutMs", 300_000)))


def _await_drain(node: Node, operation: Doc, timeout_ms: int) -> Flow:
    if not (yield When(lambda: _in_flight(node) == 0, until=node.now + timeout_ms)):
        operation |= {"state": "failed", "error": "drain timed out"}
        raise _fence_error(409, "deployment_fence_drain_timeout", "requests in flight did not end in time")
    operation |= {"state": "prepared", "preparedAt": iso(node.now)}
    return fence_state(node)


def _release(node: Node, request: Request) -> Flow:
    body, operation = request.body(), node.fence.operation
    if operation is None or operation["opId"] != body.get("opId"):
        raise _fence_error(409, "deployment_fence_operation_mismatch", "another operation holds the fence")
    if operation["generation"] != body.get("generation"):
        raise _fence_error(409, "deployment_fence_generation_mismatch", "the generation does not match")
    if node.fence.closed:
        operation |= {"state": "released", "releasedAt": iso(node.now)}
    return at_once({**fence_state(node), "released": True})


def _fence_error(status: int, code: str, message: str) -> GatewayRefusal:
    return GatewayRefusal(message, status=status, code=code, kind="deployment_fence_error")


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "gateway/deployment-fence/status"): _status,
    ("POST", "gateway/deployment-fence/prepare"): _prepare,
    ("POST", "gateway/deployment-fence/release"): _release,
}
