"""What of an observation makes a commit: only what a plan depends on, and only when it matters."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.catalog.settle import damp, settle
from lloom_gitops.model.inventory import Demand, Disk, Inventory, ObservedLane, Performance
from lloom_gitops.model.words import LaneState, Liveness, Residency, Seen
from tests.pools import three_spark

_, COMMITTED = three_spark()
THIRD = "spark-node-03"
Change = Callable[[Inventory], Inventory]


def lane(name: str, **facts: Any) -> Change:
    return lambda inventory: msgspec.structs.replace(
        inventory, lanes={**inventory.lanes, name: msgspec.structs.replace(inventory.lanes[name], **facts)}
    )


def node(name: str, **facts: Any) -> Change:
    return lambda inventory: msgspec.structs.replace(
        inventory, nodes={**inventory.nodes, name: msgspec.structs.replace(inventory.nodes[name], **facts)}
    )


def domain(**facts: Any) -> Change:
    (only,) = COMMITTED.nodes[THIRD].memory_domains
    return node(THIRD, memory_domains=(msgspec.structs.replace(only, **facts),))


def rate(requests: str, tokens: int | None = 600) -> Change:
    figure = Demand(requests_per_hour=Decimal(requests), output_tokens=tokens)
    return lambda inventory: msgspec.structs.replace(inventory, demand={**inventory.demand, "cognition": figure})


def figures(ttft: int, speed: str, source: str = "metrics") -> Change:
    figure = Performance(ttft_ms=ttft, tokens_per_second=Decimal(speed), source=source)
    return lambda inventory: msgspec.structs.replace(
        inventory, performance={**inventory.performance, "qwen3.8-flash-next": figure}
    )


QUIET = {
    "nothing": lambda inventory: inventory,
    "demand by half": rate("60"),
    "demand down by a third": rate("26.7"),
    "tokens by half": rate("40", 900),
    "speed by half": figures(1200, "60"),
    "measured memory by 2": lane("image-03", measured_gb={THIRD: Decimal("33.2")}),
    "foreign memory by 2": domain(foreign_gb=Decimal(2)),
    "reported capacity by a little": domain(capacity_gb=Decimal("121.6")),
    "disk by 10": node(THIRD, disks=(Disk(root="models", free_gb=Decimal(790)),)),
    "load time by half": lane("image-03", load_seconds=Decimal(273)),
    "a suspect node": node(THIRD, seen=Seen.UNKNOWN, liveness=Liveness.SUSPECT),
    "a short silence": node(THIRD, seen=Seen.UNKNOWN),
    "an auto lane loads by itself": lane("music-03", state=LaneState.RUNNING),
    "an auto lane fails by itself": lane("music-03", state=LaneState.FAILED),
}
LOUD = {
    "demand by more": rate("60.1"),
    "demand down by more": rate("26.6"),
    "speed by more": figures(830, "67.9"),
    "another source": figures(830, "45.2", "benchmark"),
    "measured memory by more": lane("image-03", measured_gb={THIRD: Decimal("33.3")}),
    "measured for the first time": lane("spark03-tts", measured_gb={THIRD: Decimal(7)}),
    "foreign memory by more": domain(foreign_gb=Decimal("2.1")),
    "disk by more": node(THIRD, disks=(Disk(root="models", free_gb=Decimal(789)),)),
    "declared memory, by however little": lane("image-03", memory_gb={THIRD: Decimal(39)}),
    "a lost node": node(THIRD, seen=Seen.UNKNOWN, liveness=Liveness.LOST),
    "a node that left": node(THIRD, liveness=Liveness.LEFT),
    "a kept lane stops": lane("spark03-tts", state=LaneState.STOPPED),
    "a preferred lane stops": lane("image-03", state=LaneState.STOPPED),
    "residency": lane("music-03", residency=Residency.PREFERRED),
    "an auto lane becomes kept and runs": lane("music-03", residency=Residency.ALWAYS, state=LaneState.RUNNING),
    "a latch": lane("music-03", latched=True),
    "a lane is gone": lambda inventory: msgspec.structs.replace(
        inventory, lanes={name: lane for name, lane in inventory.lanes.items() if name != "music-03"}
    ),
}


@pytest.mark.parametrize("change", QUIET.values(), ids=QUIET)
def test_this_makes_no_commit(change: Change) -> None:
    assert settle(COMMITTED, change(COMMITTED)) is COMMITTED


@pytest.mark.parametrize("change", LOUD.values(), ids=LOUD)
def test_this_makes_one(change: Change) -> None:
    fresh = change(COMMITTED)
    assert settle(COMMITTED, fresh) == fresh


def test_what_is_committed_anyway_carries_true_states_and_settled_numbers() -> None:
    fresh = lane("music-03", state=LaneState.RUNNING)(rate("50")(lane("image-03", state=LaneState.STOPPED)(COMMITTED)))
    settled = settle(COMMITTED, fresh)
    assert settled.lanes["music-03"].state is LaneState.RUNNING
    assert settled.lanes["image-03"].state is LaneState.STOPPED
    assert settled.demand["cognition"].requests_per_hour == 40


def test_slow_drift_is_committed_in_the_end() -> None:
    """Each figure is compared with the committed one, not with the last one seen."""
    committed, commits = COMMITTED, 0
    for requests in range(40, 200, 4):
        after = settle(committed, rate(str(requests))(COMMITTED))
        commits += after is not committed
        committed = after
    assert commits == 3
    assert committed.demand["cognition"].requests_per_hour == 152


def test_plans_are_made_on_what_is_loaded_now() -> None:
    fresh = lane("music-03", state=LaneState.RUNNING)(node(THIRD, liveness=Liveness.SUSPECT)(rate("50")(COMMITTED)))
    damped = damp(COMMITTED, fresh)
    assert damped.lanes["music-03"].state is LaneState.RUNNING
    assert damped.nodes[THIRD].liveness is Liveness.SUSPECT
    assert damped.demand["cognition"].requests_per_hour == 40


def test_all_is_committed_at_first() -> None:
    assert settle(Inventory(), COMMITTED) == COMMITTED


changes = st.lists(st.sampled_from([*QUIET.values(), *LOUD.values()]), max_size=5)


@settings(max_examples=100, deadline=None)
@given(first=changes, second=changes)
def test_settling_twice_is_settling_once(first: list[Change], second: list[Change]) -> None:
    """No commit leads to another by itself: what was settled is quiet when the same is seen again."""
    before, fresh = COMMITTED, COMMITTED
    for change in first:
        before = change(before) if "music-03" in before.lanes else before
    for change in second:
        fresh = change(fresh) if "music-03" in fresh.lanes else fresh
    settled = settle(before, fresh)
    assert settle(settled, fresh) is settled
    assert all(isinstance(found, ObservedLane) for found in settled.lanes.values())
