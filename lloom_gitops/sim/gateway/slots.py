"""Request slots of a lane: how many requests it serves at once, and who waits."""

from __future__ import annotations

from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import GatewayRefusal
from lloom_gitops.sim.gateway.tasks import Flow, When


def slots_of(node: Node, lane: str) -> int:
    entry = node.config.runtime(lane) or {}
    return max(1, int(entry.get("maxConcurrency", 1)))


def acquire(node: Node, lane: str) -> Flow:
    """Wait for a slot, first come first served. Newer builds bound the queue (429 RUNTIME_QUEUE_FULL)."""
    state = node.state(lane)
    state.last_requested_at = node.now
    token = object()
    if node.newer and len(state.waiting) >= _queue_limit(node, lane):
        raise GatewayRefusal(
            f"runtime {lane} queue is full",
            status=429,
            code="RUNTIME_QUEUE_FULL",
            kind="runtime_queue_error",
            retry_after=2,
        )
    state.waiting.append(token)
    try:
        yield When(lambda: not state.paused and state.waiting[0] is token and state.in_flight < slots_of(node, lane))
    finally:
        state.waiting.remove(token)
    state.active += 1


def release(node: Node, lane: str) -> None:
    state = node.state(lane)
    state.active = max(0, state.active - 1)
    if state.in_flight == 0:
        state.last_idle_at = node.now


def drain(node: Node, lane: str, timeout_ms: int = 300_000) -> Flow:
    """Let the requests in flight end while new ones wait. Raises when they don't in time; stays paused."""
    state = node.state(lane)
    state.paused = True
    node.set_status(lane, "draining", "eviction")
    if not (yield When(lambda: state.in_flight == 0, until=node.now + timeout_ms)):
        raise GatewayRefusal(f"timed out draining runtime {lane}")


def resume(node: Node, lane: str) -> None:
    node.state(lane).paused = False


def _queue_limit(node: Node, lane: str) -> int:
    entry = node.config.runtime(lane) or {}
    return int(entry.get("maxQueuedRequests", max(8, 4 * slots_of(node, lane))))
