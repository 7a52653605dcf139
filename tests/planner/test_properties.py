"""Properties of every plan, on random small pools."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, assume, given, settings
from msgspec.structs import replace

from lloom_gitops.checks.plan import judge
from lloom_gitops.codec import digest
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.errors import Refused
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.words import LaneState
from lloom_gitops.planner import plan

from .carried_out import carried_out
from .small_pools import pools

lenient = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def planned(desired: Desired, inventory: Inventory) -> Plan:
    """The plan; pools whose pins can never be met are passed over, they have a test of their own."""
    try:
        return plan(desired, inventory)
    except Refused as refusal:
        assume(refusal.code != "wishImpossible")
        raise


@lenient
@given(pools())
def test_the_judge_passes_every_plan(pool: tuple[Desired, Inventory]) -> None:
    found = judge(pool[0], pool[1], planned(*pool))
    assert not found, "\n".join(f"{f.code} {f.pointer}: {f.message} ({f.wanted} / {f.found})" for f in found)


@lenient
@given(pools())
def test_a_plan_against_its_own_outcome_is_empty(pool: tuple[Desired, Inventory]) -> None:
    """Applied, a plan leaves nothing to do, but what only a person can start."""
    desired, inventory = pool
    first = planned(desired, inventory)
    assume(not any(step.does == "stop" for step in first.steps))  # memory that a person frees may start a lane
    assume(not any(lane.state is LaneState.LOADING for lane in inventory.lanes.values()))  # its peak passes
    after = carried_out(inventory, first)
    second = planned(desired, after)
    assert [step.id for step in second.steps if step.does != "start"] == []


@lenient
@given(pools())
def test_the_order_of_the_input_changes_no_byte(pool: tuple[Desired, Inventory]) -> None:
    desired, inventory = pool
    first = planned(desired, inventory)
    chance = random.Random(7)

    def shuffled(table: dict) -> dict:
        rows = list(table.items())
        chance.shuffle(rows)
        return dict(rows)

    again = plan(
        replace(desired, aliases=shuffled(desired.aliases), nodes=shuffled(desired.nodes)),
        replace(
            inventory,
            nodes=shuffled(inventory.nodes),
            lanes=shuffled(inventory.lanes),
            aliases=shuffled(inventory.aliases),
        ),
    )
    assert digest(again) == digest(first)
