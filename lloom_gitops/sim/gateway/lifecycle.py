"""Start, stop and warm up a lane: the flows behind the lifecycle routes, per build."""

from __future__ import annotations

from lloom_gitops.sim.gateway import groups
from lloom_gitops.sim.gateway.cluster import remote_action
from lloom_gitops.sim.gateway.document import is_external
from lloom_gitops.sim.gateway.guard import breached, guard_limits
from lloom_gitops.sim.gateway.machine import Process
from lloom_gitops.sim.gateway.node import LaneState, Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, under_maintenance
from lloom_gitops.sim.gateway.stamps import iso
from lloom_gitops.sim.gateway.tasks import Flow, When, locked, pause

_BY_HAND = frozenset({"admin-start", "admin-admit"})
RESUMED = "resumed"
_HEALTH_POLL_MS = 500
_STOP_MS = 100
_NO_PIDS: Doc = {"roots": [], "pids": [], "terminated": [], "killed": [], "survivors": [], "failed": []}


def start(node: Node, lane: str, *, force: bool, warmup: bool, reason: str) -> Flow:
    """Bring a lane up and hold until it is healthy. Never checks memory (the newer guard does, while it loads)."""
    return locked(node.state(lane).lock, _start(node, lane, force, warmup, reason))


def _start(node: Node, lane: str, force: bool, warmup: bool, reason: str) -> Flow:
    entry = node.config.runtime(lane)
    if entry is None:
        return {"runtimeId": lane, "started": False, "reason": "unknown-runtime"}
    state = node.state(lane)
    state.abort = None
    check_maintenance(node, lane, reason)
    if node.config.is_group(lane):
        return (yield from groups.start(node, lane, force=force, warmup=warmup, reason=reason))
    if not node.config.is_local(lane):
        return (yield from _start_elsewhere(node, lane, force, warmup, reason))
    if node.healthy(lane):
        node.set_status(lane, "running")
        warmed = {"warmup": (yield from warm_up(node, lane))} if warmup else {}
        return {"runtimeId": lane, "started": False, "healthy": True, "reason": "already-healthy", **warmed}
    if entry.get("enabled") is not True and not force:
        return {"runtimeId": lane, "started": False, "healthy": False, "reason": "runtime-disabled"}
    if not entry.get("command"):
        raise GatewayRefusal(f"runtime {lane} is enabled but has no command")
    _check_latch(node, lane, reason)
    if not node.owns_process(lane):
        _spawn(node, lane, entry, force, reason)
    pid = state.child
    result = yield from _until_healthy(node, lane, entry)
    warmed = {"warmup": (yield from warm_up(node, lane))} if warmup and entry.get("warmup") else {}
    return {**result, "started": True, "pid": pid, **warmed}


def check_maintenance(node: Node, lane: str, reason: str) -> None:
    """A suspended lane refuses every start, forced ones too, but the one that resumes it."""
    if node.newer and reason != RESUMED and (node.config.runtime(lane) or {}).get("maintenance"):
        raise under_maintenance(lane)


def _start_elsewhere(node: Node, lane: str, force: bool, warmup: bool, reason: str) -> Flow:
    node.set_status(lane, "starting", reason)
    body: Doc = {"force": force, "warmup": warmup, "reason": reason}
    result: Doc = yield from remote_action(node, lane, "start", body)
    state = node.state(lane)
    state.starts += result.get("started") is not False
    state.started_at = node.now
    node.set_status(lane, "failed" if result.get("healthy") is False else "running", reason)
    return {**result, "runtimeId": lane, "node": node.config.node_of(lane), "remote": True}


def _check_latch(node: Node, lane: str, reason: str) -> None:
    state = node.state(lane)
    if state.latch is None:
        return
    if reason not in _BY_HAND and guard_limits(node).mode != "yolo":
        raise _guard_refusal(state.latch["message"])
    state.latch = None


def _spawn(node: Node, lane: str, entry: Doc, force: bool, reason: str) -> None:
    if node.newer and breached(node):
        _guard_abort(node, lane, None)
    state = node.state(lane)
    node.set_status(lane, "starting", reason)
    state.last_error = None
    process = node.machine.spawn(lane, node.traits(lane), node.now)
    state.child = process.pid
    state.starts += 1
    state.started_at = node.now
    node.record(lane, "start", pid=process.pid, reason=reason, force=force, effectiveArgs=list(entry.get("args") or []))


def _until_healthy(node: Node, lane: str, entry: Doc) -> Flow:
    """Hold until the lane answers its health check. Health is polled, so this rounds up to the next poll."""
    machine, state = node.machine, node.state(lane)
    poll = max(1, machine.scaled(_HEALTH_POLL_MS))
    begun = node.now
    deadline = begun + int(entry.get("startupTimeoutMs", 300_000))
    process = machine.processes.get(lane)
    while True:
        if state.abort is not None:
            raise GatewayRefusal(state.abort)
        if process is not None and machine.processes.get(lane) is not process:
            raise _failed(state, f"runtime {lane} exited before becoming healthy")
        if process is not None and _dies_now(node, process):
            raise _failed(state, f"runtime {lane} exited before becoming healthy")
        if node.newer and breached(node):
            _guard_abort(node, lane, process)
        on_poll = (node.now - begun) % poll == 0
        if on_poll and node.healthy(lane):
            node.set_status(lane, "running")
            node.record(lane, "healthy")
            return {"runtimeId": lane, "healthy": True}
        if node.now >= deadline:
            raise _failed(state, f"runtime {lane} did not become healthy before timeout")
        yield When(
            lambda: _disturbed(node, lane, process),
            until=min(deadline, _next_look(node, process, begun, poll)),
        )


def _next_look(node: Node, process: Process | None, begun: int, poll: int) -> int:
    """The next moment at which anything can have changed: a health poll after readiness, a memory step, a death."""
    looks = [node.machine.next_change(node.now) if node.newer else None]
    ready = process.ready_at if process is not None else None
    if process is not None and process.dies_at is not None:
        looks.append(process.dies_at)
    elif ready is None or ready <= node.now:
        looks.append(node.now + poll - (node.now - begun) % poll)
    else:
        looks.append(begun + -(-(ready - begun) // poll) * poll)
    return min(at for at in looks if at is not None)


def _disturbed(node: Node, lane: str, process: Process | None) -> bool:
    gone = process is not None and node.machine.processes.get(lane) is not process
    return gone or node.state(lane).abort is not None or (node.newer and breached(node))


def _dies_now(node: Node, process: Process) -> bool:
    if process.dies_at is None or process.dies_at > node.now:
        return False
    error = node.traits(process.lane).fails or "failed"
    node.record(process.lane, "stderr", message=error)
    node.process_gone(process.lane, error=f"process exited code=1; stderr={error}")
    return True


def _failed(state: LaneState, message: str) -> GatewayRefusal:
    state.status = "failed"
    state.last_error = message
    return GatewayRefusal(message)


def _guard_abort(node: Node, lane: str, process: Process | None) -> None:
    """Kill the load, remember it per lane (the latch) and fail the start with what was used and consumed."""
    used = round(node.machine.used_gb(node.now), 1)
    consumed = round(process.memory_gb(node.now), 1) if process is not None else 0.0
    message = f"runtime {lane} load aborted by the memory guard at {used} GB used"
    node.process_gone(lane, error=message, signal="SIGKILL")
    state = node.state(lane)
    state.latch = {"at": iso(node.now), "usedGb": used, "consumedGb": consumed, "message": message}
    node.set_status(lane, "failed", "memory-safety-abort")
    state.last_error = message
    node.record(lane, "memory-safety-abort", usedGb=used, consumedGb=consumed, message=message)
    raise _guard_refusal(message)


def _guard_refusal(message: str) -> GatewayRefusal:
    return GatewayRefusal(
        message, status=503, code="runtime_memory_safety_abort", kind="runtime_memory_safety_error", retry_after=2
    )


def warm_up(node: Node, lane: str) -> Flow:
    """Send the lane's warm-up request; its failure leaves the lane running."""
    entry = node.config.runtime(lane) or {}
    if not (entry.get("warmup") or {}).get("url"):
        return {"runtimeId": lane, "warmed": False, "reason": "no-warmup"}
    node.set_status(lane, "warming", "warmup")
    latency = node.machine.scaled(node.traits(lane).warmup_ms)
    yield from pause(node.tasks, latency)
    alive = node.healthy(lane) or node.config.is_group(lane)
    result: Doc = {"runtimeId": lane, "warmed": alive, "latencyMs": latency}
    result |= {"status": 200} if alive else {"error": "fetch failed"}
    node.state(lane).last_warmup = result
    node.record(lane, "warmup", **{key: value for key, value in result.items() if key != "runtimeId"})
    node.set_status(lane, "running", None if alive else "warmup-failed")
    return result


def warmup_route(node: Node, lane: str) -> Flow:
    if node.config.runtime(lane) is None:
        return {"runtimeId": lane, "warmed": False, "reason": "unknown-runtime"}
    if not node.config.is_group(lane) and not node.config.is_local(lane):
        return (yield from remote_action(node, lane, "warmup", {}))
    if not (groups.healthy_here(node, lane) if node.config.is_group(lane) else node.healthy(lane)):
        result = {"runtimeId": lane, "warmed": False, "reason": "not-healthy"}
        node.state(lane).last_warmup = result
        return result
    return (yield from warm_up(node, lane))


def stop(node: Node, lane: str) -> Flow:
    """Take a lane down at once, requests in flight with it. Waits for a running start; newer builds abort that."""
    if node.newer and node.state(lane).status == "starting":
        node.state(lane).abort = f"runtime {lane} start aborted by stop"
    return locked(node.state(lane).lock, _stop(node, lane))


def _stop(node: Node, lane: str) -> Flow:
    entry = node.config.runtime(lane)
    state = node.state(lane)
    if entry is not None and node.config.is_group(lane):
        return (yield from groups.stop(node, lane))
    if entry is not None and not node.config.is_local(lane):
        node.set_status(lane, "stopping", "stop")
        result: Doc = yield from remote_action(node, lane, "stop", {})
        node.set_status(lane, "stopped")
        state.stops += result.get("stopped") is not False
        state.stopped_at = node.now
        return {**result, "runtimeId": lane, "node": node.config.node_of(lane), "remote": True}
    if entry is not None and is_external(entry):
        return {"runtimeId": lane, "stopped": False, "reason": "externally-managed"}
    process = node.machine.processes.get(lane)
    mine = node.owns_process(lane)
    if process is not None:
        state.status = "stopping" if mine else state.status
        yield from pause(node.tasks, node.machine.scaled(_STOP_MS))
        node.process_gone(lane, error=None, signal="SIGTERM")
    killed = _killed(process) if process is not None else _NO_PIDS
    port = (entry or {}).get("port")
    port_result = None if port is None else {"port": port, **(_NO_PIDS if mine else killed)}
    # A stop leaves the reason and the time of the last transition as they were.
    state.status = "stopped"
    state.child, state.held, state.stopped_at = None, 0, node.now
    state.stops += 1
    result = {"processResult": killed if mine else None, "portResult": port_result}
    node.record(lane, "stop", **result)
    return {"runtimeId": lane, "stopped": True, **result}


def _killed(process: Process) -> Doc:
    return {**_NO_PIDS, "roots": [process.pid], "pids": [process.pid], "terminated": [process.pid]}


def stop_all(node: Node) -> Flow:
    """Every lane of the config, of any node, in the snapshot; only lanes this gateway owns in newer builds."""
    config = node.config
    lanes = [lane for lane in config.runtimes if config.group_of(lane) is None]
    if node.newer:
        lanes = [lane for lane in lanes if config.owner(lane) == node.node_id]
    results = []
    for lane in lanes:
        results.append((yield from stop(node, lane)))
    stopped = sum(result.get("stopped") is True for result in results)
    return {"stopped": stopped, "total": len(lanes), "results": results}
