"""Planted faults: routes, residency, stops and hard wishes."""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from lloom_gitops.model.desired import Lane, Needs, Pin
from lloom_gitops.model.inventory import ObservedAlias
from lloom_gitops.model.plan import (
    Cause,
    PlannedRoute,
    Unmet,
)
from lloom_gitops.model.words import (
    LaneState,
    Liveness,
    NodeState,
    Seen,
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
    alias,
    desired,
    lane,
    more_steps,
    no_route,
    node,
    on_plan,
    order,
    plan,
    pool,
    route,
    seen,
    seen_lane,
    seen_node,
    step,
)
from tests.judge.plans import ALWAYS, AUTO, CLOUD, PREFERRED, as_it_is, cordoned

FAULTS: list[Fault] = [
    # routes
    ("a lane that serves another model", "planRouteLane", as_it_is, (route("hear", lanes=("spark03-tts",)),)),
    ("a route without lanes", "planRouteLane", as_it_is, (route("hear", lanes=()),)),
    ("a lane without the context", "planRouteNeeds", as_it_is, (seen_lane(BIG, context_window=131_072),)),
    ("a lane with an unknown figure", "planRouteNeeds", as_it_is, (seen_lane(BIG, max_sequences=None),)),
    ("a route to a latched lane", "planRouteUnavailable", as_it_is, (seen_lane(BIG, latched=True),)),
    (
        "a route to a person's lane that is down",
        "planRouteUnavailable",
        as_it_is,
        (seen_lane(PAIR, state=LaneState.STOPPED),),
    ),
    ("a route to a cordoned lane", "planRouteUnavailable", as_it_is, (node("macbook-local", state=NodeState.CORDON),)),
    (
        "a route to a lane without memory",
        "planRouteUnavailable",
        cordoned,
        (seen_lane("video-03", memory_gb={"spark-node-03": Decimal(43)}),),
    ),
    (
        "a lane over its bound for an alias that is not its own",
        "planRouteUnavailable",
        as_it_is,
        (
            seen_lane("video-03", memory_gb={"spark-node-03": Decimal(90)}),
            alias("music", models=("ltx-2.5", "ace-step-1.5-xl"), needs=Needs()),
            route("music", route=("ltx-2.5", "ace-step-1.5-xl"), lanes=("video-03", "music-03")),
        ),
    ),
    (
        "external before a lane",
        "planRouteOrder",
        as_it_is,
        (route("cognition", route=(CLOUD, "qwen3.8-flash-next", "qwen3.8-27b"), lanes=(None, PAIR, BIG)),),
    ),
    (
        "another order than people's",
        "planRouteOrder",
        as_it_is,
        (alias("cognition", models=("qwen3.8-27b", "qwen3.8-flash-next")),),
    ),
    (
        "a covered model left out",
        "planRouteMissing",
        as_it_is,
        (
            route(
                "embeddings",
                route=("qwen3-embedding-4b", "cloud/openrouter/qwen3-embedding-4b"),
                lanes=("qwen3-embedding-4b", None),
            ),
        ),
    ),
    (
        "the external model left out",
        "planRouteMissing",
        cordoned,
        (route("cognition", route=("qwen3.8-27b",), lanes=(BIG,)),),
    ),
    (
        "a list where one model goes",
        "planRouteOldBuild",
        as_it_is,
        (seen_node("spark-node-01", gateway=replace(as_it_is()[1].nodes["spark-node-01"].gateway, features=())),),
    ),
    (
        "a route of another's alias",
        "planRouteForeign",
        as_it_is,
        (
            seen(aliases={**as_it_is()[1].aliases, "x": ObservedAlias(route=("ltx-2.5",))}),
            on_plan(
                lambda p: replace(
                    p, routes={**p.routes, "x": PlannedRoute(route=("qwen-image-2.1",), lanes=("image-03",))}
                )
            ),
        ),
    ),
    (
        "an alias that should go",
        "planUnlisted",
        as_it_is,
        (seen(aliases={**as_it_is()[1].aliases, "x": ObservedAlias(route=("ltx-2.5",))}), desired(unlisted="remove")),
    ),
    ("an alias that nothing serves, in silence", "planUncovered", as_it_is, (no_route("video"),)),
    (
        "a served alias listed as uncovered",
        "planUncovered",
        as_it_is,
        (plan(uncovered={"video": (Cause(reason="memory"),)}),),
    ),
    (
        "promises that nobody measured",
        "planExpects",
        as_it_is,
        (route("embeddings", expects=replace(as_it_is()[2].routes["embeddings"].expects, ttft_ms=5)),),
    ),  # residency
    ("more than wished", "planResidencyTooMuch", as_it_is, (lane("music-03", residency=PREFERRED),)),
    ("less than wished without need", "planResidencyTooLittle", as_it_is, (lane("spark03-stt", residency=AUTO),)),
    ("less than wished, unsaid", "planResidencyUnsaid", as_it_is, (lane("spark03-stt", residency=PREFERRED),)),
    (
        "a lane on hold changed",
        "planResidencyChanged",
        as_it_is,
        (node("spark-node-03", state=NodeState.HOLD), lane("spark03-stt", residency=AUTO)),
    ),
    (
        "a lane in no route given more than it has",
        "planResidencyTooMuch",
        as_it_is,
        (no_route("video"), lane("video-03", residency=PREFERRED)),
    ),  # stops
    (
        "a lane in no route given less than it has",
        "planResidencyTooLittle",
        as_it_is,
        (no_route("hear"), lane("spark03-stt", residency=AUTO)),
    ),
    (
        "a vacate from a serving node",
        "planStopReason",
        cordoned,
        (node("spark-node-01", state=NodeState.SERVE), node("spark-node-02", state=NodeState.SERVE)),
    ),
    (
        "a vacate that leaves an alias bare",
        "planStopReason",
        cordoned,
        (alias("extra", models=("qwen3.8-flash-next",)),),
    ),
    ("a stop nobody asked for", "planStopReason", cordoned, (step(STOP, why=StopReason.ASKED),)),
    ("a model that moved from a person's lane", "planStopReason", cordoned, (step(STOP, why=StopReason.MOVED),)),
    ("room that nobody needs", "planStopReason", cordoned, (more_steps(*STOP_IMAGE),)),
    ("a stop without a reason", "planStopReason", cordoned, (step(STOP, why=None),)),
    ("a cordoned lane that stays", "planStopMissing", cordoned, (order(START, COGNITION, DEEP),)),
    (
        "a lane on a draining node that stays",
        "planStopMissing",
        as_it_is,
        (node("spark-node-03", state=NodeState.DRAIN),),
    ),
    (
        "a lane that people want stopped",
        "planStopMissing",
        as_it_is,
        (desired(lanes={**as_it_is()[0].lanes, "image-03": Lane(state="stopped")}),),
    ),
    (
        "an unrouted lane that people want stopped",
        "planStopMissing",
        as_it_is,
        (
            desired(lanes={**as_it_is()[0].lanes, "image-03": Lane(when_unrouted="stop")}),
            seen(aliases={name: row for name, row in as_it_is()[1].aliases.items() if name != "image"}),
            no_route("image"),
        ),
    ),
    (
        "our own lane of a model that moved",
        "planStopMissing",
        as_it_is,
        (
            seen(
                lanes={
                    **as_it_is()[1].lanes,
                    "tts-old": replace(
                        as_it_is()[1].lanes["spark03-tts"],
                        nodes=("macbook-local",),
                        owner="macbook-local",
                        memory_gb={"macbook-local": Decimal(6)},
                        started_by="agent",
                    ),
                }
            ),
        ),
    ),
    ("a drain on a lost node", "planStopLost", cordoned, (seen_node("spark-node-02", liveness=Liveness.LOST),)),
    (
        "a stop on an unreadable node",
        "planStopHandsOff",
        cordoned,
        (seen_node("spark-node-02", liveness=Liveness.SUSPECT, seen=Seen.UNKNOWN),),
    ),
    ("a stop on a node on hold", "planStopHandsOff", cordoned, (node("spark-node-02", state=NodeState.HOLD),)),
    ("a stop of what is stopped", "planStopIdle", cordoned, (seen_lane(PAIR, state=LaneState.STOPPED),)),
    ("a drain and no stop", "planDrainAlone", cordoned, (order(START, COGNITION, DEEP, DRAIN),)),  # hard wishes
    (
        "a pin neither met nor listed",
        "planWishUnmet",
        as_it_is,
        (desired(pins={"qwen3-embedding-4b@spark-node-01": Pin()}),),
    ),
    (
        "a pin with another residency",
        "planWishUnmet",
        as_it_is,
        (desired(pins={"ltx-2.5@spark-node-03": Pin(residency=ALWAYS)}),),
    ),
    ("a profile's residency neither met nor listed", "planWishUnmet", as_it_is, (pool(active_profile="standalone"),)),
    (
        "a wish that is met listed as unmet",
        "planWishMet",
        as_it_is,
        (
            desired(pins={"ltx-2.5@spark-node-03": Pin()}),
            plan(unmet=(Unmet(wish="ltx-2.5@spark-node-03", causes=(Cause(reason="latched"),)),)),
        ),
    ),
    (
        "a wish that nobody has",
        "planWishMet",
        as_it_is,
        (plan(unmet=(Unmet(wish="x@y", causes=(Cause(reason="latched"),)),)),),
    ),
    (
        "an unmet wish without a cause",
        "planWishCause",
        as_it_is,
        (desired(pins={"x@spark-node-03": Pin()}), plan(unmet=(Unmet(wish="x@spark-node-03", causes=()),))),
    ),
]
