"""The way of a change (lifecycle.md) as a table: what the agent does about a tip."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lloom_gitops.control.lifecycle import CommittedPlan, Decision, Tip, Way, decide
from lloom_gitops.control.lifecycle_moves import barred_steps, moves, steps_left
from lloom_gitops.model.desired import Alias, Confirmation, Desired
from lloom_gitops.model.plan import Gap, Plan, PlanInputs, Verdict
from lloom_gitops.model.pool import Apply, Controller, Pool, WriteBack
from lloom_gitops.model.status import Status, StepStatus
from lloom_gitops.model.words import Mode, Outcome, Residency, Result
from tests.reconcile.plans import by_hand, drain, route, start, stop

DESIRED, OLDER = "sha256:now", "sha256:before"


def plan(*steps: Any, made_from: str = DESIRED, stops: int = 0, **rest: Any) -> Plan:
    inputs = PlanInputs(desired=made_from, inventory="sha256:i", what_if=rest.pop("what_if", ()))
    return Plan(inputs=inputs, verdict=Verdict(levels=(0,) * 8, stop=stops), steps=steps, **rest)


MERGED = plan(start("new"), route("chat", "new", after=["start:new"]), drain("old", after=["route:chat"]),
              by_hand("stop", "old", after=["drain:old"]))  # fmt: skip
OLD_MERGED = plan(*MERGED.steps, made_from=OLDER)
LEFT = plan(route("chat", "new"), drain("old", after=["route:chat"]), by_hand("stop", "old", after=["drain:old"]))
ONLY_HAND = plan(drain("old"), by_hand("stop", "old", after=["drain:old"]))
MORE = plan(*MERGED.steps, start("other", node="n3"))
EMPTY = plan(says="nothing to do: what runs is what is wanted")


def desired(mode: Mode = Mode.ADVISE, plan_by: str = "pr", **rest: Any) -> Desired:
    pool = Pool(
        head="n1", controller=Controller(mode=mode), write_back=WriteBack(plan=plan_by), apply=Apply(max_stops=3)
    )
    return Desired(name="t", pool=pool, **rest)


def committed(of: Plan, name: str = "A", **rest: Any) -> CommittedPlan:
    return CommittedPlan(commit=f"c{name}", id=f"sha256:{name}", plan=of, **rest)


def status(result: Result, steps: dict[str, StepStatus] | None = None, name: str = "A", **rest: Any) -> Status:
    return Status(plan=f"sha256:{name}", plan_commit=f"c{name}", result=result, steps=steps or {}, **rest)


def tip(fresh: Plan, **rest: Any) -> Tip:
    plan, last = rest.get("committed"), rest.get("last")
    applied = plan is not None and last is not None and (last.plan, last.plan_commit) == (plan.id, plan.commit)
    given = {"desired": desired(), "commit": "tip", "digest": DESIRED, "fresh_id": "sha256:fresh", **rest}
    return Tip(fresh=fresh, has_result=applied, **given)


WAITS = {"stop:old": StepStatus(outcome=Outcome.WAITING)}
DEAD = {"start:new": StepStatus(outcome=Outcome.FAILED, retry="never")}
LATER = {"start:new": StepStatus(outcome=Outcome.FAILED, retry="later")}

TABLE = [
    ("nothing to do", tip(EMPTY), Way.NOTHING, "nothingToDo"),
    ("nothing to do although a plan waits to be applied", tip(EMPTY, committed=committed(MERGED)), Way.NOTHING, None),
    (
        "nothing to do closes a waiting apply",
        tip(EMPTY, committed=committed(MERGED), last=status(Result.WAITING, WAITS), last_plan=MERGED),
        Way.CLOSES,
        "nothingToDo",
    ),
    (
        "nothing to do after a success is silent",
        tip(EMPTY, committed=committed(MERGED), last=status(Result.SUCCEEDED), last_plan=MERGED),
        Way.NOTHING,
        None,
    ),
    ("reviewed: current, authentic, no result", tip(MERGED, committed=committed(MERGED)), Way.REVIEWED, "reviewed"),
    ("reviewed, although a fresh plan differs", tip(MORE, committed=committed(MERGED)), Way.REVIEWED, None),
    (
        "a newer plan than the applied one",
        tip(MORE, committed=committed(MORE, "B"), last=status(Result.SUPERSEDED), last_plan=MERGED),
        Way.REVIEWED,
        None,
    ),
    (
        "not current, but its moves hold all that is to be done",
        tip(
            LEFT,
            committed=committed(m := msgspec.structs.replace(MERGED, inputs=PlanInputs(desired=OLDER, inventory="i"))),
            merged=(committed(m),),
        ),
        Way.REFRESHED,
        "reviewStands",
    ),
    (
        "half applied: what is left is among the last applied plan",
        tip(LEFT, committed=committed(MERGED), last=status(Result.PARTIAL, LATER), last_plan=MERGED),
        Way.REFRESHED,
        "reviewStands",
    ),
    (
        "only a person's step and its drain are left",
        tip(ONLY_HAND, committed=committed(MERGED), last=status(Result.WAITING, WAITS), last_plan=MERGED),
        Way.NOTHING,
        "waits",
    ),
    (
        "only what failed for good and its dependents are left",
        tip(MERGED, committed=committed(MERGED), last=status(Result.FAILED, DEAD), last_plan=MERGED),
        Way.NOTHING,
        "waits",
    ),
    (
        "what failed for now is tried again",
        tip(MERGED, committed=committed(MERGED), last=status(Result.FAILED, LATER), last_plan=MERGED),
        Way.REFRESHED,
        None,
    ),
    (
        "the same moves after a success are drift, not a review",
        tip(MERGED, committed=committed(MERGED), last=status(Result.SUCCEEDED), last_plan=MERGED),
        Way.ADVISED,
        "drift",
    ),
    (
        "more than was reviewed",
        tip(MORE, committed=committed(MERGED), last=status(Result.PARTIAL, LATER), last_plan=MERGED),
        Way.ADVISED,
        "drift",
    ),
    ("no plan, advise", tip(MERGED), Way.ADVISED, "noPlan"),
    ("no plan, off", tip(MERGED, desired=desired(Mode.OFF)), Way.REPORTED, "noPlan"),
    ("no plan, auto", tip(MERGED, desired=desired(Mode.AUTO)), Way.PLANNED, "noPlan"),
    (
        "a what-if plan is never applied",
        tip(MERGED, committed=committed(plan(*MERGED.steps, what_if=("cordon=n1",)))),
        Way.ADVISED,
        "whatIf",
    ),
    (
        "not authentic",
        tip(MORE, committed=committed(MERGED), not_authentic="it does not re-derive"),
        Way.ADVISED,
        "notAuthentic",
    ),
    (
        "plan by the agent: the merge is the approval, mode off",
        tip(MERGED, desired=desired(Mode.OFF, "agent"), asked=True),
        Way.PLANNED,
        "merged",
    ),
    (
        "plan by the agent: drift is the mode's business",
        tip(MERGED, desired=desired(Mode.OFF, "agent")),
        Way.REPORTED,
        None,
    ),
    (
        "what a person took back is not done again",
        tip(MERGED, desired=desired(Mode.AUTO), reverted=moves(MERGED)),
        Way.HELD,
        "reverted",
    ),
    ("suspended", tip(MERGED, committed=committed(MERGED), suspended="firmware day"), Way.HELD, "suspended"),
    ("suspended with nothing to do", tip(EMPTY, suspended="firmware day"), Way.NOTHING, None),
    ("a rewritten branch", tip(MERGED, committed=committed(MERGED), descends=False), Way.REFUSED, "notDescendant"),
]


@pytest.mark.parametrize(("facts", "way", "reason"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_the_way_of_a_change(facts: Tip, way: Way, reason: str | None) -> None:
    decision = decide(facts)
    assert decision.way is way
    if reason is not None:
        assert decision.because["reason"] == reason


def test_a_reviewed_plan_is_applied_as_it_is() -> None:
    decision = decide(tip(MORE, committed=committed(MERGED, "A", reviewed_as="sha256:first", trigger="drift")))
    assert (decision.plan, decision.plan_id, decision.plan_commit) == (MERGED, "sha256:A", "cA")
    assert (decision.commits, decision.reviewed_as, decision.trigger) == (False, "sha256:first", "drift")


def test_a_refreshed_plan_names_the_review_people_saw() -> None:
    last = status(Result.PARTIAL, LATER, "B", reviewed_as="sha256:A")
    decision = decide(tip(LEFT, committed=committed(MERGED, "B", reviewed_as="sha256:A"), last=last, last_plan=MERGED))
    assert (decision.way, decision.plan, decision.reviewed_as) == (Way.REFRESHED, LEFT, "sha256:A")
    assert decision.commits


def test_the_same_plan_again_makes_no_commit() -> None:
    last = status(Result.FAILED, LATER)
    facts = tip(MERGED, fresh_id="sha256:A", committed=committed(MERGED), last=last, last_plan=MERGED)
    decision = decide(facts)
    assert (decision.way, decision.commits, decision.plan_commit, decision.reviewed_as) == (
        Way.REFRESHED,
        False,
        "cA",
        None,
    )


def test_a_refreshed_plan_bars_what_failed_for_good() -> None:
    fresh = plan(*MERGED.steps, start("other", node="n3"))
    last = status(Result.PARTIAL, DEAD | {"start:other": StepStatus(outcome=Outcome.FAILED, retry="later")})
    decision = decide(tip(fresh, committed=committed(fresh), last=last, last_plan=fresh))
    assert decision.way is Way.REFRESHED
    assert set(decision.barred) == {"start:new"}


CONFIRMED = Confirmation(plan="sha256:A", allows=("stops", "gaps"), reason="agreed")


@pytest.mark.parametrize(
    ("stops", "confirmations", "way"),
    [
        (3, (), Way.REVIEWED),
        (4, (), Way.REFUSED),
        (4, (CONFIRMED,), Way.REVIEWED),
        (4, (msgspec.structs.replace(CONFIRMED, plan="sha256:other"),), Way.REFUSED),
    ],
    ids=["at the cap", "over it", "confirmed", "another plan's confirmation"],
)
def test_stops_over_the_cap(stops: int, confirmations: tuple[Confirmation, ...], way: Way) -> None:
    big = plan(start("new"), stop("old", after=["start:new"]), stops=stops)
    decision = decide(tip(big, committed=committed(big), confirmations=confirmations))
    assert decision.way is way
    if way is Way.REFUSED:
        assert decision.because == {"reason": "overStops", "says": f"the plan stops {stops} lanes, apply.maxStops is 3"}
        assert "sha256:A" in (decision.hint or "")


def test_a_confirmation_holds_for_the_refreshed_plan() -> None:
    big = plan(start("new"), stop("old", after=["start:new"]), stops=4)
    last = status(Result.FAILED, LATER)
    decision = decide(tip(big, committed=committed(big), last=last, last_plan=big, confirmations=(CONFIRMED,)))
    assert (decision.way, decision.reviewed_as) == (Way.REFRESHED, "sha256:A")


@pytest.mark.parametrize(
    ("gap", "aliases", "way"),
    [
        (Gap(alias="chat", seconds=60, because="room:new"), {}, Way.REFUSED),
        (
            Gap(alias="chat", seconds=60, because="room:new"),
            {"chat": Alias(models=("m",), interim="gap")},
            Way.REVIEWED,
        ),
        (Gap(alias="chat", seconds=0, because="drain:old"), {}, Way.REVIEWED),
    ],
    ids=["nobody allowed it", "interim: gap", "a draining node's"],
)
def test_gaps_need_a_yes(gap: Gap, aliases: dict[str, Alias], way: Way) -> None:
    with_gap = plan(*MERGED.steps, gaps=(gap,))
    assert decide(tip(with_gap, committed=committed(with_gap), desired=desired(aliases=aliases))).way is way


def test_a_confirmed_manual_step_closes_the_apply() -> None:
    done = Confirmation(plan="sha256:A", allows=("stop:old",), reason="seen it")
    last = status(Result.WAITING, WAITS)
    facts = tip(ONLY_HAND, committed=committed(MERGED), last=last, last_plan=MERGED, confirmations=(done,))
    decision = decide(facts)
    assert (decision.way, decision.confirmed) == (Way.CLOSES, {"stop:old"})


# Moves and steps -----------------------------------------------------------------------------------------------------


def test_moves_are_ends_not_ways() -> None:
    with_bridge = plan(
        route("chat", None, interim=True), drain("old"), start("new"), route("chat", "new", id="route:chat~2")
    )
    assert moves(with_bridge) == {
        ("start", "new", "always"),
        ("route", "chat", "model-new", "by", "new"),
    }


def test_a_person_and_the_agent_make_the_same_move() -> None:
    assert moves(plan(by_hand("stop", "old"))) == moves(plan(stop("old")))


def test_residency_is_part_of_a_move() -> None:
    kept = plan(start("new", residency=Residency.PREFERRED))
    assert not moves(kept) <= moves(MERGED)


@pytest.mark.parametrize(
    ("of", "without", "left"),
    [
        (MERGED, set(), ["start:new", "route:chat", "drain:old", "stop:old"]),
        (MERGED, {"stop:old"}, ["start:new", "route:chat"]),
        (MERGED, {"start:new"}, []),
        (ONLY_HAND, {"stop:old"}, []),
        (plan(drain("old")), set(), ["drain:old"]),
    ],
    ids=[
        "all",
        "its drain goes with a person's stop",
        "dependents go with a start",
        "nothing",
        "a drain for its own sake",
    ],
)
def test_steps_left(of: Plan, without: set[str], left: list[str]) -> None:
    assert [step.id for step in steps_left(of, without)] == left


def test_what_is_barred() -> None:
    last = status(Result.PARTIAL, WAITS | DEAD | {"route:chat": StepStatus(outcome=Outcome.FAILED, retry="later")})
    assert set(barred_steps(MERGED, last)) == {"stop:old", "start:new"}


def test_every_way_has_a_row() -> None:
    assert {row[2] for row in TABLE} == set(Way)


def test_decisions_are_values() -> None:
    facts = tip(MERGED, committed=committed(MERGED))
    assert isinstance(decide(facts), Decision)
    assert decide(facts) == decide(facts)
