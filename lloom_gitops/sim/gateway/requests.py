"""Inference as far as it matters to who plans: which lane answers, slots, cold starts, refusals."""

from __future__ import annotations

from dataclasses import dataclass

from lloom_gitops.sim.gateway import admit, lifecycle
from lloom_gitops.sim.gateway.catalogue import candidates
from lloom_gitops.sim.gateway.cluster import lane_rows, node_blocks
from lloom_gitops.sim.gateway.document import targets_of
from lloom_gitops.sim.gateway.ledger import Served
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, bad_request
from lloom_gitops.sim.gateway.slots import acquire, release
from lloom_gitops.sim.gateway.tasks import Flow, When, pause

_READY = frozenset({"running", "external"})
_KIND_NAMES = {"chat": "a chat", "embedding": "an embedding"}
_RETRY_MS = 2_000


@dataclass(slots=True, kw_only=True)
class Call:
    """A request on its way. Either `lane` of this node answers it, or the server behind `backend` does."""

    route: str
    requested: str
    model: Doc
    target: Doc
    stream: bool
    bytes_in: int
    begun: int
    connection: int
    lane: str | None = None
    slot: bool = False
    pid: int | None = None

    @property
    def upstream(self) -> str:
        return str(self.target.get("upstreamModel") or self.model["id"])


def open_call(node: Node, route: str, kind: str, requested: str | None, *, stream: bool, bytes_in: int) -> Flow:
    """Find who answers a request and wait for a slot there. Returns a `Call` to be closed; raises the refusal."""
    requested = requested or node.config.doc["defaults"].get(f"{kind}Model")
    found = candidates(node.config, requested)
    if not found:
        name = requested or "(missing)"
        raise GatewayRefusal(f"unknown local model: {name}", status=404, code="unknown_model", model=name)
    if found[0].get("kind", "chat") != kind:
        text = f"model {requested} is not {_KIND_NAMES.get(kind, kind)} model"
        refusal = bad_request(text, code="wrong_model_kind")
        refusal.model = requested
        raise refusal
    model, target = yield from _choose(node, found)
    lane = target.get("runtime")
    here = lane is not None and (node.config.is_local(lane) or node.config.is_group(lane))
    facts = _facts(route, requested or "", model, target, stream, bytes_in)
    call = Call(
        route=route,
        requested=requested or "",
        model=model,
        target=target,
        stream=stream,
        bytes_in=bytes_in,
        begun=node.now,
        connection=node.ledger.begin(node.now, facts),
        lane=lane if here else None,
    )
    if lane is None:
        return call
    try:
        lifecycle.check_maintenance(node, lane, "model-request")
        yield from acquire(node, lane)
        call.slot = True
        yield from _ensure(node, lane)
    except GatewayRefusal as refusal:
        close_call(node, call, status=502, first_ms=None, error=refusal.message)
        raise
    call.pid = _pid(node, lane)
    return call


def _facts(route: str, requested: str, model: Doc, target: Doc, stream: bool, bytes_in: int) -> Doc:
    return {
        "route": route,
        "model": model["id"],
        "requestedModel": requested,
        "upstreamModel": target.get("upstreamModel"),
        "kind": model.get("kind", "chat"),
        "backend": target["backend"],
        "runtime": target.get("runtime"),
        "target": target["id"],
        "node": target.get("node"),
        "caller": None,
        "requestBytes": bytes_in,
        "stream": stream,
    }


def _choose(node: Node, found: list[Doc]) -> Flow:
    """The first model that is ready; none ready: the first. Within a model: the least busy ready target."""
    pairs = [(model, target) for model in found for target in targets_of(model)]
    if len(pairs) == 1:
        return pairs[0]
    rows: dict[str, Doc] = yield from lane_rows(node)
    watched = sorted({t["node"] for _, t in pairs if t.get("node") and t["node"] != node.node_id})
    blocks: dict[str, Doc] = yield from node_blocks(node, watched)
    for model in found:
        ready = [target for target in targets_of(model) if _is_ready(rows, blocks, target)]
        if ready:
            return model, min(ready, key=lambda t: rows.get(t.get("runtime") or "", {}).get("activeRequests", 0))
    return pairs[0]


def _is_ready(rows: dict[str, Doc], blocks: dict[str, Doc], target: Doc) -> bool:
    block = blocks.get(target.get("node") or "", {})
    if block.get("reachable") is False:
        return False
    row = rows.get(target.get("runtime") or "")
    if row is not None and row.get("maintenance"):
        return False
    if target.get("remoteRuntime"):
        row = block.get("runtimeManager", {}).get("runtimes", {}).get(target["remoteRuntime"], {})
    return row is None or row.get("healthy") is True or row.get("status") in _READY


def _ensure(node: Node, lane: str) -> Flow:
    """Have the lane up. Newer builds start a cold lane in the background and send the client away."""
    if node.config.is_local(lane) and node.healthy(lane):
        return
    flow = _start_for_request(node, lane)
    if not node.newer:
        yield from flow
        return
    entry = node.config.runtime(lane) or {}
    task = node.run(flow)
    waited = node.now + int(entry.get("requestStartupWaitMs", 1000))
    if not (yield When(lambda: task.done, until=waited)):
        raise GatewayRefusal(
            f"runtime {lane} is starting",
            status=429,
            code="RUNTIME_STARTING",
            kind="runtime_starting_error",
            retry_after=int(entry.get("startupRetryAfterSeconds", 15)),
        )
    if task.error is not None:
        raise task.error


def _start_for_request(node: Node, lane: str) -> Flow:
    """With `autoEvict` through admission, waiting `admissionWaitMs` for busy lanes; else an unchecked start."""
    if node.config.policy.get("autoEvict") is not True:
        return (yield from lifecycle.start(node, lane, force=False, warmup=True, reason="model-request"))
    deadline = node.now + int(node.config.policy.get("admissionWaitMs", 120_000))
    state = node.state(lane)
    queued = False
    try:
        while True:
            try:
                return (yield from admit.apply(node, lane, force=False, warmup=True, reason="model-request"))
            except GatewayRefusal as refusal:
                if refusal.code != "runtime_capacity_busy" or node.now >= deadline:
                    raise
            if not queued:
                queued = True
                state.admission_queued += 1
                if node.visible_status(lane) not in ("running", "starting", "warming"):
                    node.set_status(lane, "queued", "waiting-for-capacity")
            yield from pause(node.tasks, min(_RETRY_MS, deadline - node.now))
    finally:
        state.admission_queued -= queued
        if queued and state.admission_queued == 0 and state.status == "queued":
            node.set_status(lane, "idle")


def _pid(node: Node, lane: str) -> int | None:
    members = [m["runtime"] for m in node.config.members(lane) if node.config.is_local(m["runtime"])]
    process = node.machine.processes.get(members[-1] if members else lane)
    return process.pid if process is not None else None


def is_cut(node: Node, call: Call) -> bool:
    """Whether the lane that answers a call is gone: its client sees a truncated answer."""
    return call.lane is not None and _pid(node, call.lane) != call.pid


def close_call(
    node: Node,
    call: Call,
    *,
    status: int,
    first_ms: int | None,
    input_tokens: int = 0,
    output_tokens: int = 0,
    bytes_out: int = 0,
    error: str | None = None,
) -> None:
    """Count a request that ended and give its slot back."""
    lane = call.target.get("runtime")
    if call.slot and lane is not None:
        release(node, lane)
    node.ledger.end(
        call.connection,
        Served(
            at=node.now,
            route=call.route,
            model=call.model["id"],
            requested=call.requested,
            upstream=call.upstream,
            kind=call.model.get("kind", "chat"),
            backend=call.target["backend"],
            runtime=call.target.get("runtime"),
            target=call.target["id"],
            node=call.target.get("node"),
            status=status,
            stream=call.stream,
            duration_ms=node.now - call.begun,
            first_ms=first_ms,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            bytes_in=call.bytes_in,
            bytes_out=bytes_out,
            error=error,
        ),
    )
