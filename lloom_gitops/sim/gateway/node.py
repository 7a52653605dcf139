"""One simulated node: a gateway's state over the machine it runs on. Deterministic; time is handed in.

The operations on a node (start, stop, admit, reload, ...) are flows in the modules beside this one. A driver spawns
them with `Node.run`, moves time with `Node.advance` and settles `Node.tasks.outbox`: the HTTP server does so with real
time and real calls, a discrete-event simulation with virtual time and other `Node` values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lloom_gitops.sim.gateway.document import Build, GatewayConfig, declared_gb
from lloom_gitops.sim.gateway.ledger import Ledger
from lloom_gitops.sim.gateway.machine import LaneTraits, Machine
from lloom_gitops.sim.gateway.refusals import Doc
from lloom_gitops.sim.gateway.stamps import iso
from lloom_gitops.sim.gateway.tasks import Flow, Task, Tasks

_EVENTS_KEPT = 100


@dataclass(slots=True)
class LaneState:
    """What this gateway remembers of a lane; a restart of the gateway forgets it."""

    status_since: int
    status: str = "idle"
    reason: str | None = None
    starts: int = 0
    stops: int = 0
    active: int = 0
    held: int = 0
    """Requests in flight that a test put there."""
    waiting: deque[object] = field(default_factory=deque)
    admission_queued: int = 0
    last_requested_at: int | None = None
    last_idle_at: int | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    last_warmup: Doc | None = None
    last_error: str | None = None
    child: int | None = None
    """Pid of the process that this gateway started."""
    paused: bool = False
    abort: str | None = None
    latch: Doc | None = None
    """The guard abort that keeps automatic starts away: {at, usedGb, consumedGb, message}."""
    lock: deque[object] = field(default_factory=deque)

    @property
    def in_flight(self) -> int:
        return self.active + self.held


@dataclass(slots=True)
class Fence:
    """The deployment fence of newer builds; it survives restarts and must be released by who closed it."""

    generation: int = 0
    operation: Doc | None = None

    @property
    def closed(self) -> bool:
        return self.operation is not None and self.operation["state"] in ("preparing", "prepared")


class Node:
    """State of one gateway. `boot_id` tells boots apart; `pid` is the gateway's own."""

    def __init__(
        self, config: GatewayConfig, machine: Machine, now: int, *, pid: int = 1, boot_id: str = "boot"
    ) -> None:
        self.config = config
        self.machine = machine
        self.tasks = Tasks(now)
        self.booted_at = now
        self.pid = pid
        self.boot_id = boot_id
        self.lanes: dict[str, LaneState] = {}
        self.events: deque[Doc] = deque(maxlen=_EVENTS_KEPT)
        self.admission_lock: deque[object] = deque()
        self.reload_lock: deque[object] = deque()
        self.remote: dict[str, tuple[int, Doc]] = {}
        self.ledger = Ledger(since=now)
        self.fence = Fence()
        self.residency_jobs: dict[str, Doc] = {}
        self.residency_count = 0
        self.fleet_profiles: dict[str, Doc] = {}
        self.install_plans: dict[str, Doc] = {}
        self.install_job: Doc | None = None

    @property
    def build(self) -> Build:
        return self.config.build

    @property
    def newer(self) -> bool:
        return self.config.build is Build.NEWER

    @property
    def node_id(self) -> str:
        return self.config.node_id

    @property
    def now(self) -> int:
        return self.tasks.now

    def run(self, flow: Flow, on_done: Callable[[Task], None] | None = None) -> Task:
        return self.tasks.spawn(flow, on_done)

    def advance(self, now: int) -> None:
        """Let everything happen that is due up to `now` (epoch ms)."""
        self.tasks.advance(now)

    def next_due(self) -> int | None:
        return self.tasks.next_due()

    def state(self, lane: str) -> LaneState:
        if lane not in self.lanes:
            self.lanes[lane] = LaneState(status_since=self.now)
        return self.lanes[lane]

    def record(self, lane: str, event: str, **facts: object) -> None:
        self.events.appendleft({"at": iso(self.now), "runtimeId": lane, "event": event, **facts})

    def set_status(self, lane: str, status: str, reason: str | None = None) -> None:
        state = self.state(lane)
        if (state.status, state.reason) != (status, reason):
            state.status, state.reason, state.status_since = status, reason, self.now
            self.record(lane, "state", status=status, reason=reason)

    def traits(self, lane: str) -> LaneTraits:
        entry = self.config.runtime(lane) or {}
        return LaneTraits.of(entry, declared_gb(entry))

    def healthy(self, lane: str) -> bool:
        """What the lane's health URL says. Without a URL a lane is never healthy."""
        entry = self.config.runtime(lane) or {}
        if not entry.get("healthUrl"):
            return False
        return self.machine.healthy(lane, self.now) or self.machine.unmanaged.get(lane) is True

    def owns_process(self, lane: str) -> bool:
        process = self.machine.processes.get(lane)
        return process is not None and process.pid == self.state(lane).child

    def visible_status(self, lane: str) -> str:
        """A local lane's status as rows show it: what is remembered, corrected by what is seen."""
        state, healthy = self.state(lane), self.healthy(lane)
        mine = self.owns_process(lane)
        if state.status == "queued":
            return "queued"
        if state.status in ("stopping", "draining"):
            return state.status if mine or healthy else "stopped"
        if state.status in ("starting", "warming"):
            return "running" if healthy and state.status == "starting" else state.status
        if mine:
            return "running" if healthy else "starting"
        return "external" if healthy else state.status

    def process_gone(self, lane: str, *, error: str | None, signal: str | None = None) -> None:
        """A lane's process ended: by itself (`error` says how) or by a signal of ours."""
        process = self.machine.kill(lane)
        state = self.state(lane)
        if process is None or state.child != process.pid:
            return
        state.child = None
        state.held = 0
        state.stopped_at = self.now
        state.status = "stopped" if error is None else "failed"
        state.last_error = error
        self.record(lane, "exit", code=None if signal else 1, signal=signal, lastError=error)
