"""The Plan document: the committed decision with its reasons, diff and ordered steps."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from .document import Spec
from .words import Liveness, NodeState, Residency, StepKind, StopReason

PLANNER_VERSION = 1


class PlanInputs(Spec):
    """What the plan was made from. `whatIf` names what-if flags; such a plan only shows."""

    desired: str
    inventory: str
    planner: int = PLANNER_VERSION
    effort: str = "normal"
    engine: str = "exact"
    what_if: tuple[str, ...] = ()


class AliasCount(Spec):
    """How many aliases are covered by a lane, by an external model only, or by nothing."""

    covered: int = 0
    external: int = 0
    uncovered: int = 0


class Costs(Spec):
    """What the first six levels are made of: by alias, and `loads` (of level 6) by lane that is started or restarted.

    What costs nothing is left out. `tightest` names the domain that level 8 is about.
    """

    uncovered: dict[str, int] = {}
    external: dict[str, int] = {}
    slo_misses: dict[str, int] = {}
    order: dict[str, int] = {}
    below_wish: dict[str, int] = {}
    latency: dict[str, int] = {}
    loads: dict[str, int] = {}
    tightest: str | None = None


class Verdict(Spec):
    """The objective's levels (documents.md, Objective) and the plan in figures.

    `proof` is `optimal` or `bounded`; the latter carries `bound` (a lower bound a level) and `gapPercent`.
    `loadGb` and `loadSeconds` add up the lanes that the plan starts.
    """

    levels: tuple[int, ...]
    proof: str = "optimal"
    bound: tuple[int, ...] | None = None
    gap_percent: Decimal | None = None
    aliases: AliasCount = AliasCount()
    start: int = 0
    stop: int = 0
    load_gb: Decimal = Decimal(0)
    load_seconds: int = 0
    costs: Costs = Costs()


class Cause(Spec):
    """One reason from the closed list, with its numbers. Which fields are set depends on `reason`."""

    reason: str
    node: str | None = None
    lane: str | None = None
    recipe: str | None = None
    model: str | None = None
    alias: str | None = None
    domain: str | None = None
    short_gb: Decimal | None = None
    needs_gb: Decimal | None = None
    has_gb: Decimal | None = None
    has: str | None = None
    needs: str | None = None
    says: str | None = None


class Because(Spec):
    """Why a lane is in the plan as it is, and what kept each alternative out (lane or node id to causes)."""

    reason: str
    rejected: dict[str, tuple[Cause, ...]] = {}


class PlannedLane(Spec):
    """A lane of the planned outcome. Memory is GiB a domain key (node, or node/domain)."""

    models: tuple[str, ...]
    nodes: tuple[str, ...]
    residency: Residency
    memory_gb: dict[str, Decimal]
    because: Because


class Expects(Spec):
    """Warm figures of what answers first; None: unknown.

    `source` is metrics, benchmark, or scaled (a benchmark of `hardware`, carried over by memory bandwidth).
    """

    ttft_ms: int | None = None
    tokens_per_second: Decimal | None = None
    source: str | None = None
    hardware: str | None = None


class PlannedRoute(Spec):
    """An alias's planned route; `lanes` is parallel to `route`, None for external entries.

    `because` says what keeps each model of the alias's own order out of the route, in that order.
    """

    route: tuple[str, ...]
    lanes: tuple[str | None, ...]
    expects: Expects = Expects()
    because: tuple[Cause, ...] = ()


class Gap(Spec):
    """A time in which an alias answers with nothing: only with a confirmation, `interim: gap` or `drain`."""

    alias: str
    seconds: int
    because: str


class DomainBudget(Spec):
    """Memory of one domain in the planned outcome, GiB (documents.md, Memory)."""

    domain: str
    budget_gb: Decimal | None = None
    always_gb: Decimal = Decimal(0)
    preferred_gb: Decimal = Decimal(0)
    largest_auto_gb: Decimal = Decimal(0)
    free_gb: Decimal | None = None
    before_gb: Decimal = Decimal(0)
    after_gb: Decimal = Decimal(0)


class PlannedNode(Spec):
    """A node that is not simply ready and serving: why nothing, or not everything, may be done there."""

    state: NodeState = NodeState.SERVE
    liveness: Liveness = Liveness.READY
    declared: bool = True


class StartChange(Spec):
    """A lane that the plan starts."""

    lane: str
    nodes: tuple[str, ...]
    residency: Residency
    load_gb: Decimal
    load_seconds: int | None = None


class StopChange(Spec):
    """A running lane that the plan stops, and why."""

    lane: str
    nodes: tuple[str, ...]
    why: StopReason


class ResidencyChange(Spec):
    """A lane's residency before and after; `restarts`: this gateway build restarts the lane for it (REC-11).

    `wished` is set with `because` where memory forces less than people wished.
    """

    lane: str
    before: Residency
    after: Residency
    wished: Residency | None = None
    because: Cause | None = None
    restarts: bool = False


class RouteChange(Spec):
    """An alias's route before and after; an empty `after` removes the alias."""

    alias: str
    before: tuple[str, ...]
    after: tuple[str, ...]


class ManualChange(Spec):
    """Something a person must do: `does` is start, stop, residency or route."""

    step: str
    does: str
    says: str


class Diff(Spec):
    """What the plan changes from what runs now."""

    start: tuple[StartChange, ...] = ()
    stop: tuple[StopChange, ...] = ()
    residency: tuple[ResidencyChange, ...] = ()
    routes: tuple[RouteChange, ...] = ()
    manual: tuple[ManualChange, ...] = ()


class Read(Spec):
    """A fact a step relies on: a JSON Pointer into the inventory's `spec` and what must hold there."""

    at: str
    equals: Any = msgspec.UNSET
    at_least: Decimal | msgspec.UnsetType = msgspec.UNSET


class Step(Spec):
    """One action of a plan. Its id comes from its content (`stop:qwen38-pair`; a repeat gets `~2`).

    `after` names steps that must be done first. A manual step has `does` (start, stop, residency, route) and `says`.
    `node` is the owner whose gateway is asked; for a route it is the head.
    """

    id: str
    kind: StepKind
    node: str | None = None
    lane: str | None = None
    alias: str | None = None
    route: tuple[str, ...] | None = None
    lanes: tuple[str | None, ...] | None = None
    residency: Residency | None = None
    recipe: str | None = None
    does: str | None = None
    why: StopReason | None = None
    says: str | None = None
    interim: bool = False
    timeout_seconds: int | None = None
    after: tuple[str, ...] = ()
    reads: tuple[Read, ...] = ()


class Note(Spec):
    """Something people should know that changes nothing; `code` is from a closed list.

    `setting` (`from` on the wire) is the launch setting that a requirement was inferred from.
    """

    code: str
    node: str | None = None
    lane: str | None = None
    alias: str | None = None
    recipe: str | None = None
    setting: str | None = msgspec.field(default=None, name="from")
    says: str | None = None


class Unmet(Spec):
    """A hard wish that is suspended for now (lifecycle.md): a pin, or an entry of the active profile."""

    wish: str
    causes: tuple[Cause, ...]


class Plan(Spec):
    """Spec of the Plan document; the plan id is the digest of all of it."""

    inputs: PlanInputs
    verdict: Verdict
    nodes: dict[str, PlannedNode] = {}
    lanes: dict[str, PlannedLane] = {}
    routes: dict[str, PlannedRoute] = {}
    uncovered: dict[str, tuple[Cause, ...]] = {}
    unmet: tuple[Unmet, ...] = ()
    gaps: tuple[Gap, ...] = ()
    budget: dict[str, tuple[DomainBudget, ...]] = {}
    diff: Diff = Diff()
    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    says: str = ""
