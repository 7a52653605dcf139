"""The Status document: result of the last apply, drift, the controller's reason."""

from __future__ import annotations

from typing import Any

from .document import Spec
from .words import Mode, Outcome, Result


class StepStatus(Spec):
    """What became of one step; `retry`: never for a permanent failure, later for a temporary one."""

    outcome: Outcome
    says: str | None = None
    retry: str | None = None


class AliasStatus(Spec):
    """What answers an alias now, and what the plan wants to answer; None: nothing."""

    serving: str | None = None
    planned: str | None = None


class NodeStatus(Spec):
    """State of a node that people wait for, e.g. `drained`: safe to switch off."""

    state: str


class Drift(Spec, kw_only=True):
    """A fact that differs from the plan without a plan having changed it."""

    lane: str | None = None
    alias: str | None = None
    field: str
    planned: Any = None
    seen: Any = None


class ControllerStatus(Spec):
    """The controller's last decision: `apply`, `wait`, `hold`, `nothing`, `unplanned`, `refuse`; and why."""

    mode: Mode
    decision: str
    because: dict[str, Any] = {}


class Conditions(Spec):
    """Ready or not, the closed reason, and the revision attempted versus the one applied."""

    ready: bool
    reason: str
    attempted: str | None = None
    applied: str | None = None


class AgentStatus(Spec):
    """Which agent wrote this, and the epoch of its lease."""

    name: str
    epoch: int = 0


class Status(Spec):
    """Spec of the Status document."""

    plan: str | None = None
    plan_commit: str | None = None
    reviewed_as: str | None = None
    superseded_by: str | None = None
    result: Result = Result.NOTHING
    steps: dict[str, StepStatus] = {}
    aliases: dict[str, AliasStatus] = {}
    nodes: dict[str, NodeStatus] = {}
    drift: tuple[Drift, ...] = ()
    controller: ControllerStatus | None = None
    conditions: Conditions | None = None
    agent: AgentStatus | None = None
