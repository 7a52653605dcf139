"""The Pool document: policy of the whole pool. Field meanings: docs/reference/documents.md."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from .document import Spec
from .words import DomainKind, Mode


class MemoryRule(Spec):
    """Memory policy of one kind of domain. `guardCeiling` is a share of capacity; the others are GiB."""

    guard_ceiling: Decimal
    reserve_gb: Decimal
    headroom_gb: Decimal


_HOST_RULE = MemoryRule(guard_ceiling=Decimal("0.9"), reserve_gb=Decimal(8), headroom_gb=Decimal(2))
_DEVICE_RULE = MemoryRule(guard_ceiling=Decimal("0.95"), reserve_gb=Decimal(1), headroom_gb=Decimal("0.5"))


class MemoryRuleOverride(Spec):
    """As MemoryRule, every field optional: what is left out keeps the wider setting."""

    guard_ceiling: Decimal | None = None
    reserve_gb: Decimal | None = None
    headroom_gb: Decimal | None = None

    def over(self, rule: MemoryRule) -> MemoryRule:
        """`rule` with the fields of this override put over it."""
        return MemoryRule(
            guard_ceiling=rule.guard_ceiling if self.guard_ceiling is None else self.guard_ceiling,
            reserve_gb=rule.reserve_gb if self.reserve_gb is None else self.reserve_gb,
            headroom_gb=rule.headroom_gb if self.headroom_gb is None else self.headroom_gb,
        )


class Memory(Spec):
    """Memory policy by kind of domain; `basis`: declared or measured (documents.md, Memory)."""

    unified: MemoryRuleOverride = MemoryRuleOverride()
    system: MemoryRuleOverride = MemoryRuleOverride()
    device: MemoryRuleOverride = MemoryRuleOverride()
    basis: str | None = None
    margin_gb: Decimal | None = None

    def rule(self, kind: DomainKind) -> MemoryRule:
        """The rule of one kind of domain, with the pool's defaults filled in."""
        default = _DEVICE_RULE if kind is DomainKind.DEVICE else _HOST_RULE
        return self.override(kind).over(default)

    def override(self, kind: DomainKind) -> MemoryRuleOverride:
        """What this document itself says of one kind of domain."""
        return {DomainKind.UNIFIED: self.unified, DomainKind.SYSTEM: self.system, DomainKind.DEVICE: self.device}[kind]

    @property
    def measured_basis(self) -> bool:
        """True when the measured footprint decides where it is known."""
        return self.basis == "measured"

    @property
    def margin(self) -> Decimal:
        """GiB added to a measured footprint."""
        return Decimal(2) if self.margin_gb is None else self.margin_gb


class LivenessRule(Spec):
    """Seconds without an answer until a node is suspect, then lost."""

    suspect_seconds: int = 60
    lost_seconds: int = 300


class Planning(Spec):
    """Whether recipes that are not installed count, and how hard the planner searches."""

    consider_installs: bool = False
    effort: str = "normal"


class ColdChance(Spec):
    """Chance that a request finds the lane unloaded, by residency."""

    preferred: Decimal = Decimal("0.05")
    auto: Decimal = Decimal("0.5")


class Objective(Spec):
    """Figures of the objective (documents.md, Objective)."""

    demand_window_hours: int = 24
    demand_floor: Decimal = Decimal(1)
    cold_chance: ColdChance = ColdChance()
    default_ttft_ms: int = 2000
    default_tokens_per_second: Decimal = Decimal(20)
    churn_seconds_weight: Decimal = Decimal(1)


class Backoff(Spec):
    """Exponential back-off in seconds."""

    first: int = 60
    factor: int = 2
    max: int = 3600


class Controller(Spec):
    """What the controller may do by itself, and how slowly."""

    mode: Mode = Mode.ADVISE
    interval_seconds: int = 30
    confirm_turns: int = 3
    residency_confirm_turns: int = 20
    cooldown_seconds: int = 600
    load_budget_gb_per_hour: Decimal = Decimal(200)
    failure_backoff_seconds: Backoff = Backoff()


class Window(Spec):
    """A maintenance window: when applies may (allow) or may not (deny) run."""

    kind: str
    cron: str
    duration_minutes: int
    timezone: str = "UTC"
    bypass: tuple[str, ...] = ()


class StepTimeouts(Spec):
    """Time limits of steps in seconds, by kind."""

    install: int = 7200
    start: int = 1800
    residency: int = 60
    route: int = 30
    drain: int = 300
    stop: int = 180


class Apply(Spec):
    """How a plan is applied."""

    concurrency: int = 2
    manual_steps: str = "wait"
    max_stops: int = 3
    soak_seconds: int = 0
    windows: tuple[Window, ...] = ()
    step_timeout_seconds: StepTimeouts = StepTimeouts()


class WriteBack(Spec):
    """Who commits plans (`pr` or `agent`), and where results go (`commit` on the branch, or `branch`)."""

    plan: str = "pr"
    results: str = "commit"
    results_branch: str | None = None


class Pool(Spec):
    """Spec of the Pool document. `head` is the gateway that clients talk to."""

    head: str
    active_profile: str | None = None
    memory: Memory = Memory()
    co_resident: tuple[tuple[str, ...], ...] = ()
    liveness: LivenessRule = LivenessRule()
    planning: Planning = Planning()
    objective: Objective = Objective()
    controller: Controller = Controller()
    apply: Apply = Apply()
    write_back: WriteBack = msgspec.field(default=WriteBack())
