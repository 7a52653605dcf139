"""How a status says how things stand: what answers, what drifted, which nodes are safe to switch off."""

from __future__ import annotations

from typing import Any

import pytest

from lloom_gitops.agent.apply import Applied, Progress
from lloom_gitops.agent.status import Seen, applied_status, closed_status, standing_status
from lloom_gitops.agent.writing import plan_draft, result_draft
from lloom_gitops.cli.apply_progress import LiveProgress, PlainProgress
from lloom_gitops.control.lifecycle import Decision, Way
from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.inventory import Inventory, ObservedAlias, ObservedLane
from lloom_gitops.model.plan import Plan, PlanInputs, PlannedRoute, Verdict
from lloom_gitops.model.pool import Pool
from lloom_gitops.model.status import AgentStatus, StepStatus
from lloom_gitops.model.words import LaneState, ModelKind, NodeState, Outcome, Result
from tests.reconcile.plans import by_hand, start


def lane(state: LaneState, *nodes: str) -> ObservedLane:
    return ObservedLane(models=("m",), kind=ModelKind.CHAT, nodes=nodes, owner=nodes[0], state=state)


def plan(*steps: Any) -> Plan:
    routes = {"chat": PlannedRoute(route=("m", "cloud"), lanes=("a", None))}
    inputs = PlanInputs(desired="sha256:d", inventory="sha256:i")
    return Plan(inputs=inputs, verdict=Verdict(levels=(0,) * 8), steps=steps, routes=routes)


def seen(state: LaneState, node: NodeState = NodeState.SERVE) -> Seen:
    inventory = Inventory(
        lanes={"a": lane(state, "n1", "n2")},
        aliases={"chat": ObservedAlias(route=("m", "cloud"), lanes=("a", None))},
    )
    desired = Desired(name="t", pool=Pool(head="n1"), nodes={"n1": Node(), "n2": Node(state=node)})
    return Seen(tip="tip", desired=desired, inventory=inventory, agent=AgentStatus(name="head", epoch=3), reached="old")


def decision(way: Way = Way.REVIEWED, **because: Any) -> Decision:
    steps = plan(start("a"), by_hand("stop", "b"))
    return Decision(way=way, plan=steps, plan_id="sha256:4f2a91c0ffff", because=because or {"reason": "reviewed"})


@pytest.mark.parametrize(
    ("state", "serving"),
    [(LaneState.RUNNING, "m"), (LaneState.UNKNOWN, "m"), (LaneState.STOPPED, "cloud"), (LaneState.FAILED, "cloud")],
)
def test_what_answers_an_alias(state: LaneState, serving: str) -> None:
    status = standing_status(seen(state), decision(Way.NOTHING), None)
    assert (status.aliases["chat"].serving, status.aliases["chat"].planned) == (serving, "m")


@pytest.mark.parametrize(
    ("state", "said"),
    [(LaneState.RUNNING, "draining"), (LaneState.STOPPING, "draining"), (LaneState.STOPPED, "drained")],
)
def test_a_draining_node_says_when_it_is_safe_to_switch_off(state: LaneState, said: str) -> None:
    status = standing_status(seen(state, NodeState.DRAIN), decision(Way.NOTHING), None)
    assert {name: node.state for name, node in status.nodes.items()} == {"n2": said}


@pytest.mark.parametrize(
    ("result", "ready", "applied"),
    [
        (Result.SUCCEEDED, True, "tip"),
        (Result.WAITING, False, "tip"),
        (Result.PARTIAL, False, "old"),
        (Result.SUPERSEDED, False, "old"),
    ],
)
def test_the_conditions_of_an_apply(result: Result, ready: bool, applied: str) -> None:
    status = applied_status(seen(LaneState.RUNNING), decision(), "c1", Applied(result=result, steps={}))
    conditions = status.conditions
    assert conditions is not None
    assert (conditions.ready, conditions.attempted, conditions.applied) == (ready, "c1", applied)


def test_closing_turns_waiting_into_done() -> None:
    steps = {"stop:b": StepStatus(outcome=Outcome.WAITING, says="by hand"), "start:a": StepStatus(outcome=Outcome.DONE)}
    last = applied_status(seen(LaneState.RUNNING), decision(), "c1", Applied(result=Result.WAITING, steps=steps))
    closed = closed_status(seen(LaneState.RUNNING), decision(Way.CLOSES), last)
    assert (closed.result, closed.plan, closed.plan_commit) == (Result.SUCCEEDED, last.plan, "c1")
    assert {step.outcome for step in closed.steps.values()} == {Outcome.DONE}


def test_the_result_commit_says_what_came_of_each_step() -> None:
    steps = {
        "start:a": StepStatus(outcome=Outcome.FAILED, says="busy\nPlan-Id: forged", retry="later"),
        "stop:b": StepStatus(outcome=Outcome.SKIPPED, says="start:a is failed"),
    }
    status = applied_status(seen(LaneState.STOPPED), decision(), "c1", Applied(result=Result.FAILED, steps=steps))
    message = result_draft(status, Inventory(), trigger="merge").message
    assert message.subject == "apply: 0 of 2 steps done (plan 4f2a91c0)"
    assert message.body == ("failed start:a: busy Plan-Id: forged", "skipped stop:b: start:a is failed")
    assert message.trailers["Steps"] == "skipped 1, failed 1"
    assert message.trailers["Plan-Id"] == "sha256:4f2a91c0ffff"


def test_the_plan_commit_names_the_review() -> None:
    draft = plan_draft(plan(start("a")), Inventory(), reviewed_as="sha256:seen", trigger="merge", agent="head")
    assert set(draft.files) == {"fleet/plan.yaml", "fleet/observed/inventory.yaml"}
    assert (draft.message.trailers["Reviewed-As"], draft.message.trailers["Agent"]) == ("sha256:seen", "head")


NEWS = Progress(step=start("a"), outcome="done", says="after a while", settled=1, total=2)


def test_progress_is_plain_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainProgress() as progress:
        progress(NEWS)
    assert capsys.readouterr().err == "[1/2] done start:a: after a while\n"


def test_progress_lives_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveProgress() as progress:
        progress(NEWS)
    said = capsys.readouterr()
    assert "start:a" in said.err
    assert "1 of 2 steps" in said.err
    assert said.out == ""
