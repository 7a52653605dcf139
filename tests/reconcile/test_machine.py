"""The ApplyMachine, told as tables: what each fault of a call or a fact makes of a plan."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lloom_gitops.model.plan import Plan, Read
from lloom_gitops.model.status import StepStatus
from lloom_gitops.model.words import Outcome, Residency, Result
from lloom_gitops.reconcile.machine import ApplyMachine, ApplyPolicy
from lloom_gitops.reconcile.machine_events import Answer, AnswerKind, Carry, Entry, EntryKind, Look, Observed, Taken

from .plans import (
    HEAD,
    POLICY,
    Driver,
    FactPool,
    by_hand,
    drain,
    install,
    plan_of,
    route,
    start,
    stop,
    swap,
)


def run(plan: Plan, pool: FactPool, policy: ApplyPolicy = POLICY) -> tuple[Result, dict[str, StepStatus]]:
    return Driver(pool, plan, [], policy).run().result()


def outcomes(steps: dict[str, StepStatus]) -> dict[str, str]:
    return {name: status.outcome.value for name, status in steps.items()}


ALL_DONE = {"start:new": "done", "route:chat": "done", "drain:old": "already", "stop:old": "done"}


@pytest.mark.parametrize(
    ("faults", "wanted", "result", "calls"),
    [
        pytest.param({}, ALL_DONE, "succeeded", 1, id="nothing goes wrong"),
        pytest.param({"start__new": ["later"]}, ALL_DONE, "succeeded", 2, id="busy once: tried again"),
        pytest.param({"start__new": ["unreachable", "later"]}, ALL_DONE, "succeeded", 3, id="third try works"),
        pytest.param({"start__new": ["lost"]}, ALL_DONE, "succeeded", 1, id="answer lost, effect there: not again"),
        pytest.param({"start__new": ["undone"]}, ALL_DONE, "succeeded", 2, id="answer lost, effect absent: again"),
        pytest.param(
            {"start__new": ["never"]},
            {"start:new": "failed", "route:chat": "skipped", "drain:old": "skipped", "stop:old": "skipped"},
            "failed",
            1,
            id="refused for good: nothing is stopped for a start that failed",
        ),
        pytest.param(
            {"start__new": ["later", "later", "later"]},
            {"start:new": "failed", "route:chat": "skipped", "drain:old": "skipped", "stop:old": "skipped"},
            "failed",
            3,
            id="busy three times: given up for now",
        ),
        pytest.param(
            {"start__new": ["lie"]},
            {"start:new": "failed", "route:chat": "skipped", "drain:old": "skipped", "stop:old": "skipped"},
            "failed",
            1,
            id="200 is no proof",
        ),
        pytest.param(
            {"route__chat": ["never"]},
            {"start:new": "done", "route:chat": "failed", "drain:old": "skipped", "stop:old": "skipped"},
            "partial",
            1,
            id="a route that fails keeps the old lane",
        ),
    ],
)
def test_faults_of_calls(faults: dict[str, list[str]], wanted: dict[str, str], result: str, calls: int) -> None:
    pool = FactPool(free=120, **faults)
    got, steps = run(swap(), pool)
    assert outcomes(steps) == wanted
    assert got == result
    assert pool.calls.count("start:new") == calls
    assert not pool.called_although_done


@pytest.mark.parametrize(
    ("script", "retry"),
    [(["never"], "never"), (["later"] * 3, "later"), (["unreachable"] * 3, "later"), (["lie"], "later")],
)
def test_a_failed_step_says_whether_another_apply_may_try(script: list[str], retry: str) -> None:
    _, steps = run(swap(), FactPool(free=120, start__new=script))
    assert steps["start:new"].retry == retry


def test_what_holds_already_is_not_done_again() -> None:
    pool = FactPool(free=120)
    first, _ = run(swap(), pool)
    pool.calls.clear()
    again, steps = run(swap(), pool)
    assert (first, again) == (Result.SUCCEEDED, Result.SUCCEEDED)
    assert set(outcomes(steps).values()) == {"already"}
    assert pool.calls == []


def test_a_stale_step_names_node_field_expected_found_and_remedy() -> None:
    pool = FactPool(free=50)  # old and the pair hold 20 each: 10 free, 40 needed
    result, steps = run(plan_of(*swap().steps, start("other", node="n3")), pool)
    assert outcomes(steps)["start:new"] == "stale"
    assert steps["start:new"].says == (
        "n2: memoryDomains/0/freeGb expected at least 40, found 10; "
        "run `lloom-gitops plan --write` to plan from what is there now"
    )
    assert outcomes(steps)["route:chat"] == "skipped"
    assert outcomes(steps)["start:other"] == "done", "an independent branch finishes"
    assert result is Result.PARTIAL


def test_a_stop_reads_again_that_its_replacement_is_routed() -> None:
    pool = FactPool(free=120)
    late = stop("old", reads=[Read(at="/aliases/chat/lanes/0", equals="new")])
    _, steps = run(plan_of(late), pool)
    assert outcomes(steps) == {"stop:old": "stale"}
    assert "alias chat: lanes/0 expected new, found old" in (steps["stop:old"].says or "")
    assert pool.tree["lanes"]["old"]["state"] == "running"


def test_reads_count_on_the_plans_order() -> None:
    """`route:image` needs `new` up but names no dependency: it waits for the start that stands before it."""
    pool = FactPool(free=120)
    result, steps = run(plan_of(start("new", needs=40), route("image", "new")), pool)
    assert outcomes(steps) == {"start:new": "done", "route:image": "done"}
    assert result is Result.SUCCEEDED


def test_one_load_a_node_in_the_plans_order() -> None:
    pool = FactPool(free=200)
    pool.tree["lanes"]["third"] = pool._lane("n2", "stopped")
    plan = plan_of(start("new"), start("third"), start("other", node="n3"))
    machine = ApplyMachine.resume(plan, (), pool.facts(), POLICY)
    assert [action.step.id for action in machine.ready() if isinstance(action, Look)] == ["start:new", "start:other"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_steps_in_hand_than_allowed(most: int) -> None:
    pool = FactPool(free=200)
    plan = plan_of(start("new"), start("other", node="n3"), route("chat", None), route("image", None))
    machine = ApplyMachine.resume(plan, (), pool.facts(), ApplyPolicy(head=HEAD, concurrency=most))
    assert len(machine.ready()) == most
    for action in machine.ready():
        assert isinstance(action, Look)
        machine = machine.on(Taken(action.step.id))
    assert len(machine.ready()) == most, "steps in hand are looked at, no further one begins"


def test_a_lane_that_is_loading_already_is_waited_for() -> None:
    pool = FactPool(free=120)
    pool.tree["lanes"]["new"]["state"] = "loading"
    driver = Driver(pool, plan_of(start("new", residency=None), route("chat", "new", after=["start:new"])), [])
    machine = driver.machine.on(Taken("start:new")).on(Observed("start:new", pool.facts(), 1.0))
    assert [type(action) for action in machine.ready()] == [Look]
    pool.tree["lanes"]["new"]["state"] = "running"
    driver.machine = machine
    result, steps = driver.run().result()
    assert result is Result.SUCCEEDED
    assert outcomes(steps) == {"start:new": "already", "route:chat": "done"}
    assert pool.calls == ["route:chat"]


def test_a_load_that_never_ends_fails_for_now() -> None:
    pool = FactPool(free=120)
    pool.tree["lanes"]["new"]["state"] = "loading"
    _, steps = run(plan_of(start("new")), pool)
    assert (steps["start:new"].outcome, steps["start:new"].retry) == (Outcome.FAILED, "later")
    assert "time limit of 900 s" in (steps["start:new"].says or "")


def test_a_lane_that_failed_after_an_ok_is_not_waited_for() -> None:
    pool = FactPool(free=120, start__new=["lie"])
    pool.tree["lanes"]["new"]["latched"] = True
    _, steps = run(plan_of(start("new")), pool)
    assert "memory guard" in (steps["start:new"].says or "")


def test_an_unreadable_node_proves_nothing() -> None:
    """Last known facts of a node that does not answer are no evidence: neither that it worked nor that it did not."""
    pool = FactPool(free=120, start__new=["lost"])
    driver = Driver(pool, plan_of(start("new"), route("chat", "new", after=["start:new"])), [])

    def call_then_vanish(step: object) -> Answer:
        pool.tree["nodes"]["n2"]["seen"] = "unknown"
        return Answer(kind=AnswerKind.LOST)

    pool.call = call_then_vanish  # type: ignore[method-assign]
    result, steps = driver.run().result()
    assert outcomes(steps) == {"start:new": "unknown", "route:chat": "skipped"}
    assert result is Result.FAILED


def test_a_node_that_does_not_answer_is_not_touched() -> None:
    pool = FactPool(free=120)
    pool.tree["nodes"]["n2"]["seen"] = "unknown"
    _, steps = run(plan_of(stop("old")), pool)
    assert outcomes(steps) == {"stop:old": "stale"}
    assert "n2: seen expected present, found unknown" in (steps["stop:old"].says or "")
    assert pool.calls == []


def test_a_start_does_not_ask_for_a_residency_that_a_person_sets() -> None:
    """An old build on another node: `residency:new` is by hand, and the start must not wait for it."""
    pool = FactPool(free=120)
    plan = plan_of(
        by_hand("residency", "new", residency=Residency.ALWAYS),
        start("new", needs=40),
        route("chat", "new", after=["start:new"]),
    )
    result, steps = run(plan, pool)
    assert outcomes(steps) == {"residency:new": "waiting", "start:new": "done", "route:chat": "done"}
    assert result is Result.WAITING
    assert pool.tree["lanes"]["new"]["residency"] == "auto"


# What a person does ------------------------------------------------------------------------------------------------


def manual_plan() -> Plan:
    return plan_of(
        start("new", needs=40),
        route("chat", "new", after=["start:new"]),
        drain("pair", node="n1", after=["route:chat"]),
        by_hand("stop", "pair", node="n1", after=["drain:pair"]),
    )


@pytest.mark.parametrize(
    ("policy", "change", "outcome", "result"),
    [
        pytest.param(POLICY, {}, "waiting", "waiting", id="waits"),
        pytest.param(ApplyPolicy(head=HEAD, manual_steps="skip"), {}, "skipped", "partial", id="skipped by policy"),
        pytest.param(POLICY, {"state": "stopped"}, "already", "succeeded", id="observed done"),
        pytest.param(
            ApplyPolicy(head=HEAD, confirmed=frozenset({"stop:pair"})), {}, "done", "succeeded", id="confirmed"
        ),
    ],
)
def test_a_manual_step(policy: ApplyPolicy, change: dict[str, str], outcome: str, result: str) -> None:
    pool = FactPool(free=120)
    pool.tree["lanes"]["pair"].update(change)
    got, steps = run(manual_plan(), pool, policy)
    assert outcomes(steps)["stop:pair"] == outcome
    assert got == result
    assert "stop:pair" not in pool.calls, "the agent never does a person's step"


def test_a_manual_step_on_a_lost_node_falls_away() -> None:
    pool = FactPool(free=120)
    pool.tree["nodes"]["n1"].update(liveness="lost", seen="unknown")
    result, steps = run(plan_of(start("new", needs=40), by_hand("stop", "pair", node="n1")), pool)
    assert result is Result.SUCCEEDED
    assert steps["stop:pair"].outcome is Outcome.SKIPPED
    assert "lost" in (steps["stop:pair"].says or "")


def test_a_waiting_step_keeps_only_its_dependents_waiting() -> None:
    pool = FactPool(free=120)
    plan = plan_of(by_hand("stop", "pair", node="n1"), start("new", after=["stop:pair"]), start("other", node="n3"))
    result, steps = run(plan, pool)
    assert outcomes(steps) == {"stop:pair": "waiting", "start:new": "waiting", "start:other": "done"}
    assert result is Result.WAITING


# Installs: the one kind that must never be carried out twice ---------------------------------------------------------


def test_an_install_whose_answer_was_lost_is_not_begun_again() -> None:
    pool = FactPool(free=120, install__fresh=["undone"])
    result, steps = run(plan_of(install("fresh"), start("fresh", after=["install:fresh"])), pool)
    assert outcomes(steps) == {"install:fresh": "unknown", "start:fresh": "skipped"}
    assert pool.calls == ["install:fresh"]
    assert result is Result.FAILED


# Safe points ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "wanted", "result"),
    [
        pytest.param("start:new", {"start:new": "done", "route:chat": "skipped"}, "superseded", id="between"),
        pytest.param("stop:old", {"start:new": "done", "stop:old": "done"}, "succeeded", id="nothing left"),
    ],
)
def test_a_stop_ends_at_a_safe_point(after: str, wanted: dict[str, str], result: str) -> None:
    driver = Driver(FactPool(free=120), swap(), [])
    driver.stop_after = {after: "1a2b3c4"}
    got, steps = driver.run().result()
    assert outcomes(steps).items() >= wanted.items()
    assert got == result
    if result == "superseded":
        assert steps["route:chat"].says == "not begun: superseded by 1a2b3c4"


def test_the_step_in_hand_is_finished_and_proved() -> None:
    from lloom_gitops.reconcile.machine_events import StopAsked

    pool = FactPool(free=120)
    machine = ApplyMachine.resume(swap(), (), pool.facts(), POLICY)
    machine = machine.on(Taken("start:new")).on(Observed("start:new", pool.facts(), 0))
    (carry,) = machine.ready()
    assert isinstance(carry, Carry)
    machine = machine.on(Entry(step="start:new", kind=EntryKind.INTENT)).on(StopAsked("SIGTERM"))
    assert not machine.settled
    answer = pool.call(carry.step)
    machine = machine.on(Entry(step="start:new", kind=EntryKind.EFFECT, answer=answer))
    assert [type(action) for action in machine.ready()] == [Look]
    driver = Driver(pool, swap(), [])
    driver.machine = machine
    result, steps = driver.run().result()
    assert result is Result.SUPERSEDED
    assert outcomes(steps)["start:new"] == "done"


# Restart -------------------------------------------------------------------------------------------------------------


def test_after_a_crash_it_looks_before_it_acts() -> None:
    pool = FactPool(free=120)
    journal = [Entry(step="start:new", kind=EntryKind.INTENT)]
    pool.tree["lanes"]["new"].update(state="running", residency="always")
    machine = ApplyMachine.resume(swap(), journal, pool.facts(), POLICY)
    assert [type(action) for action in machine.ready()] == [Look]
    _, steps = Driver(pool, swap(), journal).run().result()
    assert steps["start:new"].outcome is Outcome.DONE
    assert "start:new" not in pool.calls


def test_a_start_that_was_half_done_needs_no_room_any_more() -> None:
    """Killed between the load and its residency: the lane's own memory must not make its step stale."""
    pool = FactPool(free=80)  # 40 are free before the load, 20 after it
    journal = [Entry(step="start:new", kind=EntryKind.INTENT)]
    pool.tree["lanes"]["new"]["state"] = "running"
    _, steps = Driver(pool, swap(), journal).run().result()
    assert steps["start:new"].outcome is Outcome.DONE
    assert pool.tree["lanes"]["new"]["residency"] == "always"


def test_being_killed_is_not_held_against_a_step() -> None:
    pool = FactPool(free=120)
    journal = [Entry(step="start:new", kind=EntryKind.INTENT)] * 9
    _, steps = Driver(pool, swap(), journal).run().result()
    assert steps["start:new"].outcome is Outcome.DONE


def test_an_unknown_of_the_last_run_is_told_again_from_the_journal() -> None:
    pool = FactPool(free=120)
    journal = [
        Entry(step="start:new", kind=EntryKind.INTENT),
        Entry(step="start:new", kind=EntryKind.UNKNOWN, says="can't be told"),
    ]
    _, steps = Driver(pool, swap(), journal).run().result()
    assert outcomes(steps)["start:new"] == "unknown"


def test_a_step_that_is_barred_keeps_what_became_of_it() -> None:
    last = StepStatus(outcome=Outcome.FAILED, says="runtime_memory_safety_abort", retry="never")
    policy = ApplyPolicy(head=HEAD, barred={"start:new": last})
    pool = FactPool(free=120)
    result, steps = run(plan_of(*swap().steps, start("other", node="n3")), pool, policy)
    assert steps["start:new"] == last
    assert outcomes(steps)["route:chat"] == "skipped"
    assert outcomes(steps)["start:other"] == "done"
    assert result is Result.PARTIAL


def test_only_resume_makes_one() -> None:
    with pytest.raises(TypeError, match="resume"):
        ApplyMachine()


def test_a_plan_that_depends_on_a_later_step_is_no_plan() -> None:
    with pytest.raises(ValueError, match="route:chat is not an earlier step"):
        ApplyMachine.resume(
            plan_of(drain("old", after=["route:chat"]), route("chat", None)), (), FactPool().facts(), POLICY
        )


def test_an_empty_plan_is_nothing() -> None:
    assert run(plan_of(), FactPool()) == (Result.NOTHING, {})


def test_memory_reads_are_exact() -> None:
    read = Read(at="/nodes/n2/memoryDomains/0/freeGb", at_least=Decimal("80.000001"))
    pool = FactPool(free=120)
    _, steps = run(plan_of(start("new", reads=(read,))), pool)
    assert outcomes(steps) == {"start:new": "stale"}
