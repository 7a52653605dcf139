"""An alias that goes round a lane which makes room comes back to the route that it had."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lloom_gitops.checks.plan import judge
from lloom_gitops.model.desired import Alias, Desired, Node
from lloom_gitops.model.inventory import (
    GatewayBuild,
    Inventory,
    MemoryDomain,
    ObservedAlias,
    ObservedLane,
    ObservedNode,
)
from lloom_gitops.model.pool import Pool
from lloom_gitops.model.words import DomainKind, Feature, LaneState, ModelKind, Residency
from lloom_gitops.planner import plan


def lane(model: str, gib: int, state: LaneState, peak: int | None = None) -> ObservedLane:
    return ObservedLane(
        models=(model,),
        kind=ModelKind.CHAT,
        nodes=("n",),
        owner="n",
        state=state,
        memory_gb={"n": Decimal(gib)},
        load_peak_gb={} if peak is None else {"n": Decimal(peak)},
        load_seconds=Decimal(10),
    )


@pytest.mark.parametrize(
    ("kept", "peak", "routes"),
    [
        (45, 55, [("route:a", ("small",), True), ("route:a~2", ("small", "large"), False)]),
        (60, 60, [("route:a", ("small",), False)]),
    ],
    ids=["it comes back", "it can't be loaded any more"],
)
def test_a_route_goes_round_a_lane_that_makes_room(kept: int, peak: int, routes: list[tuple[object, ...]]) -> None:
    node = ObservedNode(
        memory_domains=(MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=Decimal("121.7")),),
        gateway=GatewayBuild(features=tuple(Feature)),
    )
    desired = Desired(
        name="p",
        pool=Pool(head="n"),
        nodes={"n": Node()},
        aliases={"a": Alias(models=("small", "large")), "b": Alias(models=("kept",), residency=Residency.ALWAYS)},
    )
    inventory = Inventory(
        nodes={"n": node},
        lanes={
            "small": lane("small", 10, LaneState.STOPPED),
            "large": lane("large", 60, LaneState.RUNNING),
            "kept": lane("kept", kept, LaneState.STOPPED, peak),
        },
        aliases={"a": ObservedAlias(route=("small", "large"))},
    )
    made = plan(desired, inventory)
    assert not judge(desired, inventory, made)
    assert [(step.id, step.route, step.interim) for step in made.steps if step.alias == "a"] == routes
