"""The memory guard of newer builds: it watches the host while a lane loads."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc

GUARD_CEILING = 0.9


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """The memory guard's limits on one machine (newer builds)."""

    mode: str
    ceiling: float
    min_available_gb: float
    poll_ms: int

    @classmethod
    def of(cls, policy: Doc, total_gb: float) -> GuardLimits:
        own = policy.get("memorySafety") or {}
        ceiling = min(own.get("maxMemoryUtilization", GUARD_CEILING), policy.get("maxMemoryUtilization") or 1.0)
        if "maxMemoryUtilization" not in own:
            ceiling = min(ceiling, GUARD_CEILING)
        least = own.get("minAvailableMemoryGb", min(policy.get("reserveMemoryGb", 8), 0.15 * total_gb))
        poll = max(50, min(1000, int(own.get("pollIntervalMs", 250))))
        return cls(str(own.get("mode", "enforce")), ceiling, least, poll)

    def margin_gb(self, total_gb: float) -> float:
        """What has to stay free under the ceiling, rounded up to whole GiB."""
        return float(math.ceil(round((1 - self.ceiling) * total_gb, 6)))

    def breached(self, total_gb: float, available_gb: float) -> bool:
        if self.mode == "yolo":
            return False
        used = total_gb - available_gb
        return available_gb < self.min_available_gb or used > self.ceiling * total_gb


def guard_limits(node: Node) -> GuardLimits:
    return GuardLimits.of(node.config.policy, node.machine.total_gb)


def breached(node: Node) -> bool:
    """Whether the machine stands beyond the limits right now."""
    total = node.machine.total_gb
    return guard_limits(node).breached(total, node.machine.available_gb(node.now))
