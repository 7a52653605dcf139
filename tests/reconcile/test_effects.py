"""Effects told from facts alone: the table of kinds and states."""

from __future__ import annotations

from typing import Any

import pytest

from lloom_gitops.model.plan import Read, Step
from lloom_gitops.model.words import Residency, StepKind
from lloom_gitops.reconcile.effects import Effect, judge, nodes_of, touches

from .plans import HEAD, FactPool, by_hand, drain, install, plan_of, residency, route, start, stop

STATES = ("running", "loading", "draining", "stopping", "stopped", "failed", "unknown")


def facts(**lane: Any) -> dict[str, Any]:
    pool = FactPool()
    pool.tree["lanes"]["new"].update(lane)
    return dict(pool.facts())


@pytest.mark.parametrize(
    ("step", "effects"),
    [
        (start("new", residency=None), "holds underWay absent absent absent absent untold"),
        (stop("new"), "absent absent underWay underWay holds holds untold"),
        (by_hand("start", "new"), "holds underWay absent absent absent absent untold"),
        (by_hand("stop", "new"), "absent absent underWay underWay holds holds untold"),
        (residency("new", Residency.AUTO), "holds holds holds holds holds holds holds"),
        (drain("new"), "absent absent absent absent holds holds absent"),
    ],
    ids=["start", "stop", "start by hand", "stop by hand", "residency", "drain"],
)
def test_states(step: Step, effects: str) -> None:
    pool = FactPool()
    pool.busy["new"] = 2
    found = []
    for state in STATES:
        pool.tree["lanes"]["new"]["state"] = state
        found.append(judge(step, pool.facts(), HEAD).value)
    assert found == effects.split()


@pytest.mark.parametrize(
    ("step", "change", "effect"),
    [
        (start("new"), {"state": "running", "residency": "always"}, Effect.HOLDS),
        (start("new"), {"state": "running", "residency": "auto"}, Effect.ABSENT),
        (by_hand("residency", "new", residency=Residency.ALWAYS), {"residency": "always"}, Effect.HOLDS),
        (by_hand("residency", "new", residency=Residency.ALWAYS), {}, Effect.ABSENT),
        (drain("new"), {"state": "running"}, Effect.HOLDS),
        (stop("gone"), {}, Effect.HOLDS),
        (start("gone"), {}, Effect.ABSENT),
        (install("new"), {}, Effect.HOLDS),
        (install("gone"), {}, Effect.ABSENT),
        (route("chat", "old"), {}, Effect.HOLDS),
        (route("chat", "new"), {}, Effect.ABSENT),
        (Step(id="r", kind=StepKind.ROUTE, node=HEAD, alias="chat", route=("model-old",), lanes=("new",)), {},
         Effect.ABSENT),
        (Step(id="r", kind=StepKind.ROUTE, node=HEAD, alias="chat", route=("model-old",)), {}, Effect.HOLDS),
        (Step(id="r", kind=StepKind.ROUTE, node=HEAD, alias="chat", route=(), lanes=()), {}, Effect.ABSENT),
        (Step(id="r", kind=StepKind.ROUTE, node=HEAD, alias="none", route=(), lanes=()), {}, Effect.HOLDS),
        (Step(id="m", kind=StepKind.MANUAL), {}, Effect.ABSENT),
    ],
    ids=["up with its residency", "up without it", "residency by hand", "not yet", "nothing in flight", "no such lane",
         "nothing to start", "installed", "not installed", "routed", "routed elsewhere", "same models, other lane",
         "any lane", "alias still there", "alias removed", "a person's business"],
)  # fmt: skip
def test_effects(step: Step, change: dict[str, Any], effect: Effect) -> None:
    assert judge(step, facts(**change), HEAD) is effect


@pytest.mark.parametrize("step", [start("new"), stop("new"), drain("new"), residency("new", Residency.AUTO)])
def test_nothing_is_told_of_a_node_that_does_not_answer(step: Step) -> None:
    pool = FactPool()
    pool.tree["nodes"]["n2"]["seen"] = "unknown"
    assert judge(step, pool.facts(), HEAD) is Effect.UNREADABLE


def test_what_must_be_seen_afresh() -> None:
    """The owner, the lane's nodes, and all that the reads speak of, with the owners of lanes on a node that is read."""
    pool = FactPool()
    assert nodes_of(start("new", needs=40), pool.facts(), HEAD) == {"n1", "n2"}, "the pair takes memory on n2"
    assert nodes_of(route("chat", "other"), pool.facts(), HEAD) == {"n1", "n3"}
    assert nodes_of(stop("old", reads=[Read(at="/aliases/chat/lanes/0", equals="new")]), pool.facts(), HEAD) == {
        "n1",
        "n2",
    }
    assert nodes_of(install("gone", node="n3"), pool.facts(), HEAD) == {"n3"}


def test_what_a_step_can_change() -> None:
    steps = {step.id: step for step in plan_of(start("new"), route("chat", "new")).steps}
    tree = FactPool().facts()
    assert touches(steps["start:new"], Read(at="/lanes/new/state", equals="running"), tree)
    assert touches(steps["start:new"], Read(at="/nodes/n2/memoryDomains/0/freeGb", equals=1), tree)
    assert not touches(steps["start:new"], Read(at="/nodes/n3/memoryDomains/0/freeGb", equals=1), tree)
    assert touches(steps["route:chat"], Read(at="/aliases/chat/lanes/0", equals="new"), tree)
    assert not touches(steps["route:chat"], Read(at="/nodes/n1/liveness", equals="ready"), tree)
