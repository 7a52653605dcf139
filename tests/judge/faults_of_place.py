"""Planted faults: names, lanes, starts and memory."""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from lloom_gitops.model.desired import Lane
from lloom_gitops.model.words import (
    LaneState,
    Liveness,
    NodeState,
    Seen,
    StepKind,
)
from tests.judge.changes import (
    BIG,
    COGNITION,
    DEEP,
    DRAIN,
    GHOST,
    PAIR,
    START,
    START_VIDEO,
    STOP,
    Fault,
    desired,
    first_steps,
    lane,
    more_steps,
    node,
    on_plan,
    order,
    pool,
    seen,
    seen_lane,
    seen_node,
    step,
)
from tests.judge.plans import AUTO, PREFERRED, as_it_is, cordoned, row

FAULTS: list[Fault] = [
    # names and steps
    (
        "a lane nobody has",
        "planUnknownLane",
        as_it_is,
        (on_plan(lambda p: replace(p, lanes={**p.lanes, "ghost": GHOST})),),
    ),
    ("a step for a lane nobody has", "planUnknownLane", cordoned, (step(START, lane="ghost"),)),
    ("a node nobody has", "planUnknownNode", as_it_is, (lane(BIG, nodes=("spark-node-09",)),)),
    (
        "an alias nobody has",
        "planUnknownAlias",
        as_it_is,
        (on_plan(lambda p: replace(p, routes={**p.routes, "x": p.routes["hear"]})),),
    ),
    ("a step to wait for that is not there", "planUnknownStep", cordoned, (step(DRAIN, after=("route:x",)),)),
    ("an id twice", "planStepRepeated", cordoned, (order(START, START, COGNITION, DEEP, DRAIN, STOP),)),
    ("an id that lies", "planStepName", cordoned, (step(STOP, id="halt:qwen38-pair"),)),
    ("a list that is no order", "planStepOrder", cordoned, (order(COGNITION, START, DEEP, DRAIN, STOP),)),
    ("another inventory", "planInputs", as_it_is, (seen(demand={}),)),
    ("another desired state", "planInputs", as_it_is, (desired(unlisted="remove"),)),  # lanes and starts
    ("a lane with other memory", "planLaneFacts", as_it_is, (lane(BIG, memory_gb={"spark-node-03": Decimal(39)}),)),
    ("a lane with other models", "planLaneFacts", as_it_is, (lane(BIG, models=("qwen3.8-27b", "x")),)),
    ("a lane on a lost node", "planLaneOnLostNode", as_it_is, (seen_node("macbook-local", liveness=Liveness.LOST),)),
    (
        "a stopped lane in the outcome",
        "planLaneStopped",
        cordoned,
        (on_plan(lambda p: replace(p, lanes={**p.lanes, PAIR: as_it_is()[2].lanes[PAIR]})),),
    ),
    ("a start on a cordoned node", "planStartNotServing", cordoned, (node("spark-node-03", state=NodeState.CORDON),)),
    ("a start on a node on hold", "planStartNotServing", cordoned, (node("spark-node-03", state=NodeState.HOLD),)),
    (
        "a start on an unreadable node",
        "planStartNotServing",
        cordoned,
        (seen_node("spark-node-03", seen=Seen.UNKNOWN, liveness=Liveness.SUSPECT),),
    ),
    ("a start of a latched lane", "planStartBlocked", cordoned, (seen_lane(BIG, latched=True),)),
    ("a start where starts failed", "planStartBlocked", cordoned, (seen_lane(BIG, excluded_nodes=("spark-node-03",)),)),
    (
        "a start where the capacity is unknown",
        "planStartBlocked",
        cordoned,
        (seen_node("spark-node-03", memory_domains=()),),
    ),
    (
        "a start across nodes without a link",
        "planStartBlocked",
        cordoned,
        (seen_lane(BIG, nodes=("spark-node-03", "macbook-local")), lane(BIG, nodes=("spark-node-03", "macbook-local"))),
    ),
    ("a start of what is to be stopped", "planStartBlocked", cordoned, (desired(lanes={BIG: Lane(state="stopped")}),)),
    ("a start without need", "planStartNeedless", cordoned, (more_steps(START_VIDEO),)),
    (
        "a model started twice",
        "planStartTwice",
        cordoned,
        (seen_lane("video-03", models=("ltx-2.5", "qwen3.8-27b")), more_steps(START_VIDEO)),
    ),
    (
        "an always lane that nothing loads",
        "planStartMissing",
        cordoned,
        (step(COGNITION, after=()), step(DEEP, after=()), order(COGNITION, DEEP, DRAIN, STOP)),
    ),
    (
        "a preferred lane that fits and is not loaded",
        "planStartMissing",
        as_it_is,
        (seen_lane("image-03", state=LaneState.STOPPED),),
    ),
    (
        "a takeover by a lane that is not loaded",
        "planStartMissing",
        cordoned,
        (
            lane(BIG, residency=AUTO),
            step(COGNITION, after=()),
            step(DEEP, after=()),
            order(COGNITION, DEEP, DRAIN, STOP),
        ),
    ),
    (
        "a stop of ours for a person's lane",
        "planUnmanagedStep",
        cordoned,
        (step(STOP, kind=StepKind.STOP, does=None, timeout_seconds=180),),
    ),  # memory
    (
        "always and preferred over the budget",
        "planOverResidency",
        cordoned,
        (seen_lane(BIG, memory_gb={"spark-node-03": Decimal(45)}),),
    ),
    (
        "preferred over the budget",
        "planOverResidency",
        as_it_is,
        (lane("video-03", residency=PREFERRED), lane("music-03", residency=PREFERRED)),
    ),
    (
        "an auto lane that never fits",
        "planOverOnDemand",
        cordoned,
        (seen_lane("video-03", memory_gb={"spark-node-03": Decimal(43)}),),
    ),
    (
        "a set that does not fit together",
        "planOverCoResident",
        cordoned,
        (pool(co_resident=(("ace-step-1.5-xl", "ltx-2.5"),)),),
    ),
    (
        "a load peak over the limit",
        "planOverLoadPeak",
        cordoned,
        (seen_lane("video-03", load_peak_gb={"spark-node-03": Decimal(45)}),),
    ),
    (
        "a load without room on the way",
        "planMemoryOnTheWay",
        cordoned,
        (seen_lane("video-03", state=LaneState.RUNNING),),
    ),
    (
        "a load peak without room on the way",
        "planMemoryOnTheWay",
        cordoned,
        (seen_lane(BIG, load_peak_gb={"spark-node-03": Decimal(47)}),),
    ),
    (
        "a load beside a lane that is stopping",
        "planMemoryOnTheWay",
        cordoned,
        (seen_lane("video-03", state=LaneState.STOPPING),),
    ),
    (
        "two loads at once without room",
        "planMemoryOnTheWay",
        cordoned,
        (
            seen_lane("image-03", state=LaneState.STOPPED),
            first_steps(replace(START_VIDEO, id="start:image-03", lane="image-03", residency=PREFERRED)),
            seen_lane(BIG, load_peak_gb={"spark-node-03": Decimal(47)}),
        ),
    ),
    (
        "a budget figure that is off",
        "planBudgetFigure",
        as_it_is,
        (on_plan(lambda p: replace(p, budget={**p.budget, "macbook-local": row("64", 0, 0, 5, "64")})),),
    ),
    (
        "a domain left out",
        "planBudgetFigure",
        as_it_is,
        (on_plan(lambda p: replace(p, budget={"macbook-local": p.budget["macbook-local"]})),),
    ),
]
