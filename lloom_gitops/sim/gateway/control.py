"""Faults and fixtures for tests: `POST /sim/control` on a simulated gateway. A real gateway has no such route."""

from __future__ import annotations

from collections.abc import Callable

from lloom_gitops.sim.gateway.ledger import Served
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, bad_request
from lloom_gitops.sim.gateway.stamps import iso

_HOUR_MS = 3_600_000


def act(node: Node, body: Doc) -> Doc:
    """Carry out one control action. Raises a 400 for an unknown one or a missing field."""
    action = _ACTIONS.get(str(body.get("action")))
    if action is None:
        raise bad_request(f"unknown action; one of {', '.join(sorted(_ACTIONS))}")
    try:
        action(node, body)
    except KeyError as missing:
        raise bad_request(f"action {body['action']} needs {missing}") from None
    return {"ok": True}


def _kill_lane(node: Node, body: Doc) -> None:
    node.process_gone(body["lane"], error="process exited code=137 signal=SIGKILL", signal="SIGKILL")


def _start_unmanaged(node: Node, body: Doc) -> None:
    node.machine.unmanaged[body["id"]] = True


def _stop_unmanaged(node: Node, body: Doc) -> None:
    node.machine.unmanaged[body["id"]] = False


def _set_active(node: Node, body: Doc) -> None:
    state = node.state(body["lane"])
    state.held = int(body["count"])
    if state.held:
        state.last_requested_at = node.now
    elif state.in_flight == 0:
        state.last_idle_at = node.now


def _set_foreign(node: Node, body: Doc) -> None:
    node.machine.foreign_gb = float(body["gb"])


def _latch(node: Node, body: Doc) -> None:
    lane = body["lane"]
    message = f"runtime {lane} load aborted by the memory guard at {body['usedGb']} GB used"
    node.process_gone(lane, error=message, signal="SIGKILL")
    state = node.state(lane)
    state.latch = {"at": iso(node.now), "usedGb": body["usedGb"], "consumedGb": body["consumedGb"], "message": message}
    node.set_status(lane, "failed", "memory-safety-abort")
    state.last_error = message


def _unlatch(node: Node, body: Doc) -> None:
    node.state(body["lane"]).latch = None


def _hang(node: Node, body: Doc) -> None:
    _set_hung(node, body["lane"], True)


def _unhang(node: Node, body: Doc) -> None:
    _set_hung(node, body["lane"], False)


def _set_hung(node: Node, lane: str, hung: bool) -> None:
    process = node.machine.processes.get(lane)
    if process is None:
        raise bad_request(f"lane {lane} has no process here")
    process.hung = hung


def _served(node: Node, body: Doc) -> None:
    seed_metrics(node, [body])


def seed_metrics(node: Node, rows: list[Doc]) -> None:
    """Put served requests into the metrics, evenly over the last `hours` (24).

    A row is `{model, requested?, count, ttftMs?, tokensPerSecond?, outputTokens?, hours?, recent?}`; `recent` is how
    many of its last ones are listed among the recent requests (all). Without `ttftMs` no first content was seen.
    """
    served: list[tuple[Served, bool]] = []
    for row in rows:
        hours, count = float(row.get("hours", 24)), int(row["count"])
        begin = node.now - round(hours * _HOUR_MS)
        node.ledger.since = min(node.ledger.since, begin)
        listed = count - int(row.get("recent", count))
        times = [begin + round((i + 1) * hours * _HOUR_MS / count) for i in range(count)]
        served += [(_one(node, row, at), i >= listed) for i, at in enumerate(times)]
    for request, listed_too in sorted(served, key=lambda pair: pair[0].at):
        node.ledger.count += 1
        node.ledger.end(node.ledger.count, request, listed=listed_too)


def _one(node: Node, row: Doc, at: int) -> Served:
    model: Doc = next((m for m in node.config.doc["models"] if m["id"] == row["model"]), {})
    first, tokens = row.get("ttftMs"), int(row.get("outputTokens", 0))
    speed = row.get("tokensPerSecond")
    kind = model.get("kind", "chat")
    route = "/v1/embeddings" if kind == "embedding" else "/v1/chat/completions" if kind == "chat" else f"/v1/{kind}"
    return Served(
        at=at,
        route=route,
        model=row["model"],
        requested=str(row.get("requested", row["model"])),
        upstream=str(model.get("upstreamModel", row["model"])),
        kind=kind,
        backend=model.get("backend", ""),
        runtime=model.get("runtime"),
        target="default",
        node=None,
        status=200,
        stream=bool(speed),
        duration_ms=int(first or 0) + (round(1000 * (tokens - 1) / speed) if speed else 0),
        first_ms=first,
        input_tokens=10,
        output_tokens=tokens,
    )


_ACTIONS: dict[str, Callable[[Node, Doc], None]] = {
    "kill-lane": _kill_lane,
    "start-unmanaged": _start_unmanaged,
    "stop-unmanaged": _stop_unmanaged,
    "set-active": _set_active,
    "set-foreign": _set_foreign,
    "latch": _latch,
    "unlatch": _unlatch,
    "hang": _hang,
    "unhang": _unhang,
    "served": _served,
}
