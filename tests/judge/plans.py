"""Plans of the three-Spark fleet, written by hand from the specification: what the judge must find nothing in."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

from msgspec.structs import replace

from lloom_gitops.codec import digest
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import (
    AliasCount,
    Because,
    Diff,
    DomainBudget,
    Expects,
    ManualChange,
    Plan,
    PlanInputs,
    PlannedLane,
    PlannedRoute,
    Read,
    RouteChange,
    StartChange,
    Step,
    StopChange,
    Verdict,
)
from lloom_gitops.model.words import NodeState, Residency, StepKind, StopReason
from tests.pools import three_spark

ALWAYS, PREFERRED, AUTO = Residency.ALWAYS, Residency.PREFERRED, Residency.AUTO
FIRST = Because(reason="firstChoice")
CLOUD = "cloud/openrouter/q38fn"
STANDALONE = ("qwen3.8-27b", CLOUD)
PAIR = ("qwen3.8-flash-next", "qwen3.8-27b", CLOUD)
STOP_WORDS = "stop the pair's server on both nodes"

# Values are frozen, so one reading of the files serves all cases.
pool = cache(three_spark)
Case = tuple[Desired, Inventory, Plan]


def lane(model: str, node: str, residency: Residency, gib: int) -> PlannedLane:
    """A lane of one model on one node."""
    return PlannedLane(
        models=(model,), nodes=(node,), residency=residency, memory_gb={node: Decimal(gib)}, because=FIRST
    )


def lanes(big: Residency) -> dict[str, PlannedLane]:
    """All lanes but the pair; `big` is the residency of the 27B on node 03."""
    spark = "spark-node-03"
    return {
        "qwen38-27b-03": lane("qwen3.8-27b", spark, big, 40),
        "qwen3-embedding-4b": lane("qwen3-embedding-4b", spark, ALWAYS, 12),
        "spark03-tts": lane("qwen3-tts-1.7b", spark, ALWAYS, 6),
        "spark03-stt": lane("whisper-large-v3-turbo", spark, ALWAYS, 6),
        "image-03": lane("qwen-image-2.1", spark, PREFERRED, 38),
        "music-03": lane("ace-step-1.5-xl", spark, AUTO, 35),
        "video-03": lane("ltx-2.5", spark, AUTO, 42),
        "mac-embedding": lane("mac/qwen3-embedding-4b", "macbook-local", AUTO, 4),
    }


def route(names: tuple[str, ...], behind: tuple[str | None, ...], expects: Expects | None = None) -> PlannedRoute:
    """A route with the lanes behind it."""
    return PlannedRoute(route=names, lanes=behind, expects=expects or Expects())


def other_routes() -> dict[str, PlannedRoute]:
    """Routes of all aliases but the cognition ones."""
    return {
        "embeddings": route(
            ("qwen3-embedding-4b", "mac/qwen3-embedding-4b", "cloud/openrouter/qwen3-embedding-4b"),
            ("qwen3-embedding-4b", "mac-embedding", None),
            Expects(ttft_ms=57),
        ),
        "speech": route(("qwen3-tts-1.7b",), ("spark03-tts",)),
        "hear": route(("whisper-large-v3-turbo",), ("spark03-stt",)),
        "image": route(("qwen-image-2.1",), ("image-03",)),
        "music": route(("ace-step-1.5-xl",), ("music-03",)),
        "video": route(("ltx-2.5",), ("video-03",)),
    }


def row(budget: str, always: int, preferred: int, auto: int, free: str) -> tuple[DomainBudget, ...]:
    """The budget block of a node with one unified domain."""
    return (
        DomainBudget(
            domain="unified:0",
            budget_gb=Decimal(budget),
            always_gb=Decimal(always),
            preferred_gb=Decimal(preferred),
            largest_auto_gb=Decimal(auto),
            free_gb=Decimal(free),
        ),
    )


@cache
def as_it_is() -> Case:
    """The pair serves cognition; nothing is to do."""
    desired, inventory = pool()
    fast = Expects(ttft_ms=830, tokens_per_second=Decimal("45.2"))
    pair = PlannedLane(
        models=("qwen3.8-flash-next",),
        nodes=("spark-node-01", "spark-node-02"),
        residency=ALWAYS,
        memory_gb={"spark-node-01": Decimal(96), "spark-node-02": Decimal(96)},
        because=FIRST,
    )
    cognition = route(PAIR, ("qwen38-pair", "qwen38-27b-03", None), fast)
    latency = (
        40_000 * (830 + 13_274)  # 600 tokens at 45.2 a second
        + 4_000 * (830 + 44_247)  # 2,000 tokens
        + 300_000 * 57
        + 1_000 * (2000 + 2000)  # speech and hear: the pool's defaults, one request an hour
        + 6_000 * (2000 + 9_100)  # image: preferred, one load of 182 s in twenty
        + 1_000 * (2000 + 20_000)  # music: auto, half of 40 s
        + 500 * (2000 + 30_000)  # video: auto, half of 60 s
    )
    plan = Plan(
        inputs=PlanInputs(desired=digest(desired), inventory=digest(inventory)),
        verdict=Verdict(levels=(0, 0, 0, 0, 0, latency, 0, -10_956), aliases=AliasCount(covered=8)),
        lanes={"qwen38-pair": pair, **lanes(AUTO)},
        routes={"cognition": cognition, "cognition-deep": cognition, **other_routes()},
        budget={
            "spark-node-01": row("106.7", 96, 0, 0, "10.7"),
            "spark-node-02": row("106.7", 96, 0, 0, "10.7"),
            "spark-node-03": row("106.7", 24, 38, 42, "44.7"),
            "macbook-local": row("64", 0, 0, 4, "64"),
        },
        says="nothing to do: every alias is served as wished",
    )
    return desired, inventory, plan


@cache
def cordoned() -> Case:
    """01 and 02 are cordoned: the 27B takes over, and the pair gets a manual stop."""
    desired, inventory = pool()
    nodes = {
        name: replace(node, state=NodeState.CORDON) if name in ("spark-node-01", "spark-node-02") else node
        for name, node in desired.nodes.items()
    }
    desired = replace(desired, nodes=nodes)
    cognition = route(STANDALONE, ("qwen38-27b-03", None), Expects(ttft_ms=1000, tokens_per_second=Decimal("20.8")))
    latency = (
        40_000 * (1000 + 28_846)  # 600 tokens at 20.8 a second
        + 4_000 * (1000 + 96_153)
        + 300_000 * 57
        + 1_000 * (2000 + 2000)
        + 6_000 * (2000 + 9_100)
        + 1_000 * (2000 + 20_000)
        + 500 * (2000 + 30_000)
        + 1_000 * 180_000  # the load of the 27B
    )
    plan = Plan(
        inputs=PlanInputs(desired=digest(desired), inventory=digest(inventory)),
        verdict=Verdict(
            levels=(0, 0, 0, 180, 0, latency, 4, -4_812),
            aliases=AliasCount(covered=8),
            start=1,
            stop=1,
            load_gb=Decimal(40),
            load_seconds=180,
        ),
        lanes=lanes(ALWAYS),
        routes={"cognition": cognition, "cognition-deep": cognition, **other_routes()},
        budget={
            "spark-node-01": row("106.7", 0, 0, 0, "106.7"),
            "spark-node-02": row("106.7", 0, 0, 0, "106.7"),
            "spark-node-03": row("106.7", 64, 38, 42, "4.7"),
            "macbook-local": row("64", 0, 0, 4, "64"),
        },
        diff=cordoned_diff(),
        steps=cordoned_steps(),
    )
    return desired, inventory, plan


def cordoned_diff() -> Diff:
    """What changes when 01 and 02 are cordoned."""
    return Diff(
        start=(
            StartChange(
                lane="qwen38-27b-03",
                nodes=("spark-node-03",),
                residency=ALWAYS,
                load_gb=Decimal(40),
                load_seconds=180,
            ),
        ),
        stop=(StopChange(lane="qwen38-pair", nodes=("spark-node-01", "spark-node-02"), why=StopReason.VACATE),),
        routes=tuple(RouteChange(alias=a, before=PAIR, after=STANDALONE) for a in ("cognition", "cognition-deep")),
        manual=(ManualChange(step="stop:qwen38-pair", does="stop", says=STOP_WORDS),),
    )


def cordoned_steps() -> tuple[Step, ...]:
    """Start, route both aliases, drain, and the manual stop."""
    start = Step(
        id="start:qwen38-27b-03",
        kind=StepKind.START,
        node="spark-node-03",
        lane="qwen38-27b-03",
        residency=ALWAYS,
        timeout_seconds=900,
        reads=(
            Read(at="/nodes/spark-node-03/liveness", equals="ready"),
            Read(at="/nodes/spark-node-03/memoryDomains/0/freeGb", at_least=Decimal(40)),
        ),
    )
    routes = tuple(
        Step(
            id=f"route:{alias}",
            kind=StepKind.ROUTE,
            node="spark-node-01",
            alias=alias,
            route=STANDALONE,
            lanes=("qwen38-27b-03", None),
            timeout_seconds=30,
            after=("start:qwen38-27b-03",),
            reads=(Read(at="/lanes/qwen38-27b-03/state", equals="running"),),
        )
        for alias in ("cognition", "cognition-deep")
    )
    drain = Step(
        id="drain:qwen38-pair",
        kind=StepKind.DRAIN,
        node="spark-node-01",
        lane="qwen38-pair",
        timeout_seconds=300,
        after=("route:cognition", "route:cognition-deep"),
    )
    stop = Step(
        id="stop:qwen38-pair",
        kind=StepKind.MANUAL,
        lane="qwen38-pair",
        does="stop",
        why=StopReason.VACATE,
        says=STOP_WORDS,
        after=("drain:qwen38-pair",),
        reads=(Read(at="/aliases/cognition/lanes/0", equals="qwen38-27b-03"),),
    )
    return start, *routes, drain, stop
