"""Planted faults: the plan's own account of itself, its steps, and what comes of them."""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from lloom_gitops.model.inventory import ObservedAlias
from lloom_gitops.model.plan import (
    Costs,
    Gap,
    ManualChange,
    Read,
    ResidencyChange,
    Step,
    StopChange,
)
from lloom_gitops.model.words import (
    NodeState,
    StepKind,
    StopReason,
)
from tests.judge.changes import (
    BIG,
    COGNITION,
    DEEP,
    DRAIN,
    PAIR,
    START,
    STOP,
    STOP_IMAGE,
    Fault,
    diff,
    first_steps,
    lane,
    more_steps,
    node,
    order,
    plan,
    seen,
    step,
    verdict,
)
from tests.judge.plans import ALWAYS, AUTO, PREFERRED, as_it_is, cordoned

RESTART = Step(
    id="residency:spark03-stt", kind=StepKind.RESIDENCY, lane="spark03-stt", residency=AUTO, timeout_seconds=60
)

FAULTS: list[Fault] = [
    # the plan's own account
    ("a start that the diff hides", "planDiffStart", cordoned, (diff(start=()),)),
    (
        "a start with another size",
        "planDiffStart",
        cordoned,
        (diff(start=(replace(cordoned()[2].diff.start[0], load_gb=Decimal(4)),)),),
    ),
    ("a stop that the diff hides", "planDiffStop", cordoned, (diff(stop=()),)),
    (
        "a stop with another reason",
        "planDiffStop",
        cordoned,
        (diff(stop=(StopChange(lane=PAIR, nodes=("spark-node-01", "spark-node-02"), why=StopReason.ROOM),)),),
    ),
    (
        "a residency change that is none",
        "planDiffResidency",
        cordoned,
        (diff(residency=(ResidencyChange(lane="image-03", before=PREFERRED, after=AUTO),)),),
    ),
    ("a residency change that the diff hides", "planDiffResidency", as_it_is, (lane("spark03-stt", residency=AUTO),)),
    ("a route change that the diff hides", "planDiffRoutes", cordoned, (diff(routes=cordoned()[2].diff.routes[:1]),)),
    (
        "a route change from another route",
        "planDiffRoutes",
        cordoned,
        (diff(routes=tuple(replace(c, before=()) for c in cordoned()[2].diff.routes)),),
    ),
    ("a person's part that the diff hides", "planDiffManual", cordoned, (diff(manual=()),)),
    (
        "a person told something else",
        "planDiffManual",
        cordoned,
        (diff(manual=(ManualChange(step="stop:qwen38-pair", does="stop", says="nothing"),)),),
    ),
    ("a person told nothing", "planDiffManual", cordoned, (step(STOP, says=None),)),
    ("starts that do not add up", "planVerdict", cordoned, (verdict(start=2),)),
    ("loads that do not add up", "planVerdict", cordoned, (verdict(load_gb=Decimal(10)),)),
    (
        "aliases that do not add up",
        "planVerdict",
        cordoned,
        (verdict(aliases=replace(cordoned()[2].verdict.aliases, covered=7)),),
    ),
    ("changes without steps", "planNothing", cordoned, (plan(steps=()),)),
    ("nothing to do, unsaid", "planNothing", as_it_is, (plan(says=""),)),
    *[
        (
            f"level {i + 1} off by one",
            "planLevels",
            cordoned,
            (verdict(levels=tuple(v + (i == j) for j, v in enumerate(cordoned()[2].verdict.levels))),),
        )
        for i in range(8)
    ],
    ("levels cut short", "planLevels", cordoned, (verdict(levels=(0, 0, 0)),)),  # steps
    ("shares that do not add up", "planCosts", cordoned, (verdict(costs=Costs(order={"cognition": 1})),)),
    ("a step for the wrong gateway", "planStepNode", cordoned, (step(START, node="spark-node-01"),)),
    ("a route on a node that is not the head", "planStepNode", cordoned, (step(DEEP, node="spark-node-03"),)),
    ("no time limit", "planStepTimeout", cordoned, (step(START, timeout_seconds=None),)),
    ("a drain cut short", "planStepTimeout", cordoned, (node("spark-node-01", state=NodeState.DRAIN),)),
    ("a route step with another route", "planStepRoute", cordoned, (step(DEEP, route=("qwen3.8-27b",), lanes=(BIG,)),)),
    ("a last route that is only for now", "planStepRoute", cordoned, (step(DEEP, interim=True),)),
    ("a start with another residency", "planStepResidency", cordoned, (step(START, residency=AUTO),)),
    (
        "a person asked for what the gateway can",
        "planStepResidency",
        cordoned,
        (
            first_steps(
                Step(
                    id="residency:qwen38-27b-03",
                    kind=StepKind.MANUAL,
                    does="residency",
                    lane=BIG,
                    residency=ALWAYS,
                    says="set it",
                )
            ),
        ),
    ),
    ("a start that reads nothing", "planStepReads", cordoned, (step(START, reads=()),)),
    ("a stop that does not read the routes", "planStepReads", cordoned, (step(STOP, reads=()),)),
    ("a route before its start", "planOrderStartRoute", cordoned, (step(DEEP, after=()),)),
    ("a drain before a route", "planOrderRouteDrain", cordoned, (step(DRAIN, after=("route:cognition",)),)),
    ("a stop before its drain", "planOrderDrainStop", cordoned, (step(STOP, after=("route:cognition-deep",)),)),
    (
        "a residency by hand after its start",
        "planOrderBeforeStart",
        cordoned,
        (
            more_steps(
                Step(
                    id="residency:qwen38-27b-03",
                    kind=StepKind.MANUAL,
                    does="residency",
                    lane=BIG,
                    residency=ALWAYS,
                    says="set it",
                )
            ),
        ),
    ),
    (
        "a downgrade after a stop",
        "planOrderResidencyStop",
        cordoned,
        (
            more_steps(
                *STOP_IMAGE,
                Step(
                    id="residency:image-03",
                    kind=StepKind.RESIDENCY,
                    lane="image-03",
                    residency=AUTO,
                    timeout_seconds=60,
                ),
            ),
        ),
    ),  # the fold
    (
        "a read that its own plan breaks",
        "planReadFails",
        cordoned,
        (step(STOP, reads=(Read(at="/aliases/cognition/lanes/0", equals=PAIR),)),),
    ),
    (
        "a read of room that is not there",
        "planReadFails",
        cordoned,
        (step(START, reads=(Read(at="/nodes/spark-node-03/memoryDomains/0/freeGb", at_least=Decimal(50)),)),),
    ),
    (
        "a read of what is not there",
        "planReadFails",
        cordoned,
        (step(START, reads=(Read(at="/nodes/spark-node-09/liveness", equals="ready"),)),),
    ),
    (
        "an alias left with nothing",
        "planAliasStranded",
        cordoned,
        (seen(aliases={**as_it_is()[1].aliases, "x": ObservedAlias(route=("qwen3.8-flash-next",))}),),
    ),
    (
        "an alias left with nothing in another order",
        "planAliasStranded",
        cordoned,
        (
            step(DRAIN, after=()),
            seen(aliases={**as_it_is()[1].aliases, "cognition": ObservedAlias(route=("qwen3.8-flash-next",))}),
        ),
    ),
    (
        "an alias left with nothing while a lane restarts",
        "planAliasStranded",
        cordoned,
        (
            first_steps(RESTART),
            diff(residency=(ResidencyChange(lane="spark03-stt", before=ALWAYS, after=AUTO, restarts=True),)),
        ),
    ),
    (
        "a gap that nobody sees",
        "planGapUnseen",
        cordoned,
        (plan(gaps=(Gap(alias="speech", seconds=5, because="swap"),)),),
    ),
    ("a residency that no step gives", "planOutcome", as_it_is, (lane("spark03-stt", residency=AUTO),)),
    (
        "a route that no step gives",
        "planOutcome",
        cordoned,
        (order(START, COGNITION, DRAIN, STOP), step(2, after=("route:cognition",))),
    ),
]
