"""Orders of steps: every one the judge tries is allowed, and its worst memory on the way is that of all orders."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.checks.plan_graph import Graph
from lloom_gitops.checks.plan_room import DomainLoads
from lloom_gitops.checks.plan_scene import Scene, is_stop
from lloom_gitops.checks.plan_sums import Sums
from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.inventory import Inventory, MemoryDomain, ObservedLane, ObservedNode
from lloom_gitops.model.plan import Plan, PlanInputs, Step, Verdict
from lloom_gitops.model.pool import Pool
from lloom_gitops.model.words import DomainKind, LaneState, ModelKind, StepKind, StopReason

SIZES = {"a": 10, "b": 20, "c": 30, "d": 40}


@st.composite
def plans(draw: st.DrawFn) -> tuple[dict[str, LaneState], tuple[Step, ...]]:
    """States of four lanes, and up to six steps that start and stop them, each after some earlier ones."""
    states = {name: draw(st.sampled_from([LaneState.RUNNING, LaneState.STOPPED])) for name in SIZES}
    steps: list[Step] = []
    last: dict[str, str] = {}
    running = {name: state is LaneState.RUNNING for name, state in states.items()}
    for number in range(draw(st.integers(1, 6))):
        lane = draw(st.sampled_from(sorted(SIZES)))
        kind = StepKind.STOP if running[lane] else StepKind.START
        running[lane] = not running[lane]
        waits = {step.id for step in steps if draw(st.booleans())} | ({last[lane]} if lane in last else set())
        step = Step(
            id=f"{kind.value}:{lane}:{number}",
            kind=kind,
            lane=lane,
            why=StopReason.ROOM if kind is StepKind.STOP else None,
            after=tuple(sorted(waits)),
        )
        last[lane] = step.id
        steps.append(step)
    return states, tuple(steps)


def scene_of(states: dict[str, LaneState], steps: tuple[Step, ...]) -> Scene:
    """One node with the four lanes; each needs 7 GiB more while it loads."""
    domain = MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=Decimal(100))
    lanes = {
        name: ObservedLane(
            models=(name,),
            kind=ModelKind.CHAT,
            nodes=("n",),
            owner="n",
            state=state,
            memory_gb={"n": Decimal(SIZES[name])},
            load_peak_gb={"n": Decimal(SIZES[name] + 7)},
        )
        for name, state in states.items()
    }
    return Scene(
        Desired(name="p", pool=Pool(head="n"), nodes={"n": Node()}),
        Inventory(nodes={"n": ObservedNode(memory_domains=(domain,))}, lanes=lanes),
        Plan(inputs=PlanInputs(desired="", inventory=""), verdict=Verdict(levels=()), steps=steps),
    )


def brute_force(states: dict[str, LaneState], steps: tuple[Step, ...], start: Step) -> int:
    """Most GiB in use while `start` loads, alone or beside one other load, over all sets of steps done by then."""
    worst = 0
    for size in range(len(steps)):
        for chosen in combinations(steps, size):
            done = {step.id for step in chosen}
            if any(not done.issuperset(step.after) for step in chosen):
                continue
            free = [step for step in steps if step.id not in done and done.issuperset(step.after)]
            if start not in free:
                continue
            others = [s for s in free if s.kind is StepKind.START and s.lane != start.lane]
            for loading in [(start,), *((start, other) for other in others)]:
                held = {name: SIZES[name] if state.holds_memory else 0 for name, state in states.items()}
                for step in chosen:
                    held[step.lane or ""] = 0 if is_stop(step) else SIZES[step.lane or ""]
                for step in loading:
                    held[step.lane or ""] = SIZES[step.lane or ""] + 7
                worst = max(worst, sum(held.values()))
    return worst


@settings(max_examples=150, deadline=None, derandomize=True)
@given(plans())
def test_the_worst_load_on_the_way_is_that_of_all_orders(plan: tuple[dict[str, LaneState], tuple[Step, ...]]) -> None:
    states, steps = plan
    scene = scene_of(states, steps)
    loads = DomainLoads(scene, Graph(steps), Sums(scene), "n")
    for step in steps:
        if step.kind is StepKind.START:
            found = max(loads.worst(loading)[0] for loading in loads.loading_with(step))
            assert found == brute_force(states, steps, step) * 1024, step.id


@settings(max_examples=150, deadline=None, derandomize=True)
@given(plans())
def test_every_order_tried_is_allowed(plan: tuple[dict[str, LaneState], tuple[Step, ...]]) -> None:
    _, steps = plan
    for order in Graph(steps).orders():
        assert sorted(step.id for step in order) == sorted(step.id for step in steps)
        done: set[str] = set()
        for step in order:
            assert done.issuperset(step.after)
            done.add(step.id)
