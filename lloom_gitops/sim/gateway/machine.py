"""The simulated machine under a gateway: its memory and the model processes on it.

A process belongs to the machine, not to the gateway: it survives a restart of the gateway, which then finds it healthy
without having started it. Memory climbs in ten steps to the load peak and settles on the resident size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lloom_gitops.sim.gateway.refusals import Doc

_LOAD_STEPS = 10


@dataclass(slots=True)
class LaneTraits:
    """How a lane behaves here: the `sim` block of its runtime entry."""

    load_ms: int = 1000
    rss_gb: float = 0.0
    peak_gb: float = 0.0
    fails: str | None = None
    hangs: bool = False
    warmup_ms: int = 50
    request_ms: int = 100
    tokens_per_second: float = 40.0
    measured: bool = False
    """Whether the gateway can tell its resident size: where the sim block gives one."""

    @classmethod
    def of(cls, entry: Doc, declared_gb: float) -> LaneTraits:
        sim = entry.get("sim") or {}
        rss = float(sim.get("rssGb", declared_gb))
        return cls(
            load_ms=round(float(sim.get("loadSeconds", 1)) * 1000),
            rss_gb=rss,
            peak_gb=max(rss, float(sim.get("peakGb", rss))),
            fails=sim.get("failStart"),
            hangs=bool(sim.get("hang", False)),
            warmup_ms=round(float(sim.get("warmupSeconds", 0.05)) * 1000),
            request_ms=round(float(sim.get("requestSeconds", 0.1)) * 1000),
            tokens_per_second=float(sim.get("tokensPerSecond", 40)),
            measured="rssGb" in sim,
        )


@dataclass(slots=True)
class Process:
    """One model server. `ready_at` None: it never answers its health check."""

    lane: str
    pid: int
    started_at: int
    ready_at: int | None
    dies_at: int | None
    rss_gb: float
    peak_gb: float
    load_ms: int
    hung: bool = False

    def healthy(self, now: int) -> bool:
        return not self.hung and self.ready_at is not None and now >= self.ready_at

    def memory_gb(self, now: int) -> float:
        if self.dies_at is not None and now >= self.dies_at:
            return 0.0
        if self.ready_at is not None and now >= self.ready_at:
            return self.rss_gb
        step = self._step(now)
        return self.peak_gb * step / _LOAD_STEPS

    def next_change(self, now: int) -> int | None:
        """When its memory or health changes next, by itself."""
        if self.ready_at is not None and now >= self.ready_at:
            return None
        step = self._step(now)
        if step >= _LOAD_STEPS:
            return self.ready_at
        return self.started_at + -(-self.load_ms * (step + 1) // _LOAD_STEPS)

    def _step(self, now: int) -> int:
        if self.load_ms <= 0:
            return _LOAD_STEPS
        return max(0, min(_LOAD_STEPS, (now - self.started_at) * _LOAD_STEPS // self.load_ms))


@dataclass(slots=True)
class Machine:
    """Memory and processes; `time_scale` divides the durations of model work, never the gateway's own time limits."""

    total_gb: float
    foreign_gb: float = 0.0
    time_scale: float = 1.0
    processes: dict[str, Process] = field(default_factory=dict)
    unmanaged: dict[str, bool] = field(default_factory=dict)
    unmanaged_gb: dict[str, float] = field(default_factory=dict)
    next_pid: int = 20001

    def scaled(self, duration_ms: int) -> int:
        return round(duration_ms / self.time_scale)

    def spawn(self, lane: str, traits: LaneTraits, now: int) -> Process:
        load = self.scaled(traits.load_ms)
        process = Process(
            lane=lane,
            pid=self.next_pid,
            started_at=now,
            ready_at=None if traits.hangs or traits.fails else now + load,
            dies_at=now + load if traits.fails else None,
            rss_gb=traits.rss_gb,
            peak_gb=traits.peak_gb,
            load_ms=load,
        )
        self.next_pid += 1
        self.processes[lane] = process
        return process

    def kill(self, lane: str) -> Process | None:
        return self.processes.pop(lane, None)

    def healthy(self, lane: str, now: int) -> bool:
        process = self.processes.get(lane)
        return process is not None and process.healthy(now)

    def next_change(self, now: int) -> int | None:
        times = [t for p in self.processes.values() if (t := p.next_change(now)) is not None and t > now]
        return min(times, default=None)

    def used_gb(self, now: int) -> float:
        lanes = sum(p.memory_gb(now) for p in self.processes.values())
        unmanaged = sum(gb for name, gb in self.unmanaged_gb.items() if self.unmanaged.get(name))
        return min(self.total_gb, self.foreign_gb + lanes + unmanaged)

    def available_gb(self, now: int) -> float:
        return self.total_gb - self.used_gb(now)

    def snapshot(self) -> Doc:
        """What survives a restart of the gateway, as JSON."""
        return {
            "nextPid": self.next_pid,
            "foreignGb": self.foreign_gb,
            "unmanaged": dict(self.unmanaged),
            "processes": [{f: getattr(p, f) for f in Process.__dataclass_fields__} for p in self.processes.values()],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        self.next_pid = saved["nextPid"]
        self.foreign_gb = saved["foreignGb"]
        self.unmanaged.update(saved["unmanaged"])
        self.processes = {p["lane"]: Process(**p) for p in saved["processes"]}
