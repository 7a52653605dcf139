"""What the agent does about the tip of the branch: the first way of lifecycle.md that matches. Pure.

The caller gathers the facts (history, status, a fresh plan of the tip); nothing here reads a clock or a repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from lloom_gitops.control.lifecycle_moves import Move, barred_steps, moves, steps_left
from lloom_gitops.model.desired import Confirmation, Desired
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.status import Status, StepStatus
from lloom_gitops.model.words import Mode, Result, StepKind


class Way(StrEnum):
    """What is done about a tip.

    nothing: no step is to be taken. closes: nor is there, and that ends a waiting apply. reviewed: the committed plan
    is applied as it is. refreshed: its fresh form is committed and applied. planned: a plan that the merge (or mode
    auto) asks for is committed and applied. advised: a pull request holds the plan. reported: the status says what to
    run. held: something keeps the agent from a plan it would apply. refused: a person has to look.
    """

    NOTHING = "nothing"
    CLOSES = "closes"
    REVIEWED = "reviewed"
    REFRESHED = "refreshed"
    PLANNED = "planned"
    ADVISED = "advised"
    REPORTED = "reported"
    HELD = "held"
    REFUSED = "refused"


class CommittedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of the branch: the commit that put it into fleet/plan.yaml, and that commit's trailers."""

    commit: str
    id: str
    plan: Plan
    reviewed_as: str | None = None
    trigger: str | None = None

    @property
    def review(self) -> str:
        """The id of the plan that people saw."""
        return self.reviewed_as or self.id


class Tip(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a turn.

    `committed`: the plan at the tip; `has_result`: it was applied since it came there. `not_authentic`: why that plan
    (or a file that is none) is not to be trusted; None: it is, or nobody asked because it is not current. `fresh`:
    planning the tip from what is seen now. `last`: the committed status, `last_plan` the plan it names. `merged`: plans
    that reached the branch since the last applied one, newest first. `asked`: the desired state changed since it was
    last reached. `descends`: the tip descends from the last applied commit. `reverted`: moves of the agent's own plans
    that a person took back.
    """

    commit: str
    desired: Desired
    digest: str
    fresh: Plan
    fresh_id: str
    committed: CommittedPlan | None = None
    has_result: bool = False
    not_authentic: str | None = None
    last: Status | None = None
    last_plan: Plan | None = None
    merged: tuple[CommittedPlan, ...] = ()
    asked: bool = False
    descends: bool = True
    suspended: str | None = None
    confirmations: tuple[Confirmation, ...] = ()
    reverted: frozenset[Move] = frozenset()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, with which plan, and why. `because` holds `reason` (a closed word) and its facts.

    `commits`: the plan goes to the branch before it is applied. `barred`: steps not tried again, with what became of
    them. `confirmed`: manual steps that a person says are done. `hint` is for people.
    """

    way: Way
    plan: Plan
    plan_id: str
    because: dict[str, Any]
    plan_commit: str | None = None
    reviewed_as: str | None = None
    commits: bool = False
    trigger: str = "merge"
    barred: Mapping[str, StepStatus] = {}
    confirmed: frozenset[str] = frozenset()
    hint: str | None = None

    @property
    def applies(self) -> bool:
        """Whether a plan is carried out."""
        return self.way in (Way.REVIEWED, Way.REFRESHED, Way.PLANNED)


def decide(tip: Tip) -> Decision:
    """The first way that matches."""
    if not tip.descends:
        return _refused(
            tip,
            "notDescendant",
            f"the branch does not descend from the last applied commit {_applied(tip)}",
            "restore the branch, or move the agent's state folder away to start over from what is there now",
        )
    found = _nothing(tip) or _reviewed(tip) or _refreshed(tip) or _unplanned(tip)
    return _guarded(tip, found) if found.applies else found


def _nothing(tip: Tip) -> Decision | None:
    confirmed = _confirmed(tip)
    if steps_left(tip.fresh, confirmed):
        return None
    waiting = tip.last is not None and tip.last.result is Result.WAITING
    says = tip.fresh.says or "nothing to do: what is left was confirmed"
    return _fresh(tip, Way.CLOSES if waiting else Way.NOTHING, {"reason": "nothingToDo", "says": says})


def _reviewed(tip: Tip) -> Decision | None:
    plan = tip.committed
    if plan is None or _why_not(tip) is not None:
        return None
    return Decision(
        way=Way.REVIEWED,
        plan=plan.plan,
        plan_id=plan.id,
        plan_commit=plan.commit,
        reviewed_as=plan.reviewed_as,
        trigger=plan.trigger or "merge",
        because={"reason": "reviewed"},
        confirmed=_confirmed(tip),
    )


def _why_not(tip: Tip) -> str | None:
    """Why the plan at the tip is not applied as it is; None: it is."""
    plan = tip.committed
    if plan is None:
        return "noPlan" if tip.not_authentic is None else "notAuthentic"
    if plan.plan.inputs.what_if:
        return "whatIf"
    if plan.plan.inputs.desired != tip.digest:
        return "notCurrent"
    if tip.has_result:
        return "hasResult"
    return "notAuthentic" if tip.not_authentic is not None else None


def _refreshed(tip: Tip) -> Decision | None:
    review = _review_that_stands(tip)
    if review is None:
        return None
    barred = barred_steps(tip.fresh, tip.last) if tip.last is not None else {}
    if not steps_left(tip.fresh, frozenset(barred) | _confirmed(tip)):
        return _fresh(tip, Way.NOTHING, {"reason": "waits", "steps": sorted(barred)})
    same = tip.committed is not None and tip.committed.id == tip.fresh_id
    return Decision(
        way=Way.REFRESHED,
        plan=tip.fresh,
        plan_id=tip.fresh_id,
        plan_commit=tip.committed.commit if same and tip.committed is not None else None,
        reviewed_as=None if review == tip.fresh_id else review,
        commits=not same,
        because={"reason": "reviewStands", "reviewed": review},
        barred=barred,
        confirmed=_confirmed(tip),
    )


def _review_that_stands(tip: Tip) -> str | None:
    """The id of a merged plan that holds all moves of the fresh one, the newest first; None: there is none."""
    wanted = moves(tip.fresh)
    for merged in tip.merged:
        if wanted <= moves(merged.plan):
            return merged.review
    last = tip.last
    if last is None or tip.last_plan is None or last.plan is None or last.result is Result.SUCCEEDED:
        return None
    return (last.reviewed_as or last.plan) if wanted <= moves(tip.last_plan) else None


def _unplanned(tip: Tip) -> Decision:
    why = _why_not(tip)
    # A plan that was applied already says nothing about what differs now.
    reason = "drift" if why == "hasResult" else why
    because: dict[str, Any] = {"reason": reason, "says": tip.not_authentic}
    if tip.desired.pool.write_back.plan == "agent" and tip.asked:
        return _fresh(tip, Way.PLANNED, {"reason": "merged"}, commits=True)
    if tip.desired.pool.controller.mode is Mode.AUTO:
        return _fresh(tip, Way.PLANNED, because, commits=True, trigger="merge" if tip.asked else "drift")
    if tip.desired.pool.controller.mode is Mode.ADVISE:
        return _fresh(tip, Way.ADVISED, because, hint="merge the pull request from lloom/advice")
    return _fresh(tip, Way.REPORTED, because, hint="`lloom-gitops plan --write`, and merge what it writes")


def _guarded(tip: Tip, decision: Decision) -> Decision:
    """`decision`, unless it is suspended, was taken back by a person, or needs a confirmation that is not there."""
    if tip.suspended is not None:
        return _instead(
            decision,
            Way.HELD,
            {"reason": "suspended", "says": tip.suspended},
            "set `suspend: {on: false}` in fleet/holds.yaml",
        )
    if decision.way is not Way.REVIEWED and moves(decision.plan) & tip.reverted:
        return _instead(
            decision,
            Way.HELD,
            {"reason": "reverted"},
            "a change of the wishes, or of fleet/holds.yaml, lets the agent go on",
        )
    allowed = _allowed(tip, decision)
    stops, most = decision.plan.verdict.stop, tip.desired.pool.apply.max_stops
    if stops > most and "stops" not in allowed:
        says = f"the plan stops {stops} lanes, apply.maxStops is {most}"
        return _instead(decision, Way.REFUSED, {"reason": "overStops", "says": says}, _confirm(decision, "stops"))
    gaps = [gap.alias for gap in decision.plan.gaps if not _allowed_gap(tip, gap.alias, gap.because)]
    if gaps and "gaps" not in allowed:
        says = f"nothing answers {', '.join(gaps)} for a while"
        return _instead(decision, Way.REFUSED, {"reason": "gaps", "says": says}, _confirm(decision, "gaps"))
    return decision


def _allowed_gap(tip: Tip, alias: str, because: str) -> bool:
    wished = tip.desired.aliases.get(alias)
    return because.startswith("drain:") or (wished is not None and wished.interim == "gap")


def _allowed(tip: Tip, decision: Decision) -> frozenset[str]:
    """What the confirmations of this plan, or of the plan it was refreshed from, allow."""
    ids = {decision.plan_id, decision.reviewed_as}
    return frozenset(word for row in tip.confirmations if row.plan in ids for word in row.allows)


def _confirmed(tip: Tip) -> frozenset[str]:
    """Manual steps of the plan in hand that a person says are done."""
    ids = {tip.fresh_id}
    if tip.committed is not None:
        ids |= {tip.committed.id, tip.committed.review}
    if tip.last is not None:
        ids |= {tip.last.plan or "", tip.last.reviewed_as or ""}
    manual = {step.id for step in tip.fresh.steps if step.kind is StepKind.MANUAL}
    if tip.committed is not None:
        manual |= {step.id for step in tip.committed.plan.steps if step.kind is StepKind.MANUAL}
    return frozenset(word for row in tip.confirmations if row.plan in ids for word in row.allows) & manual


def _confirm(decision: Decision, word: str) -> str:
    return f"commit to fleet/confirmations.yaml: {{plan: {decision.plan_id!r}, allows: [{word}], reason: …}}"


def _fresh(tip: Tip, way: Way, because: dict[str, Any], **rest: Any) -> Decision:
    facts = {name: value for name, value in because.items() if value is not None}
    return Decision(way=way, plan=tip.fresh, plan_id=tip.fresh_id, because=facts, confirmed=_confirmed(tip), **rest)


def _refused(tip: Tip, reason: str, says: str, hint: str) -> Decision:
    return _fresh(tip, Way.REFUSED, {"reason": reason, "says": says}, hint=hint)


def _instead(decision: Decision, way: Way, because: dict[str, Any], hint: str) -> Decision:
    return msgspec.structs.replace(decision, way=way, because=because, hint=hint, commits=False)


def _applied(tip: Tip) -> str:
    return ((tip.last.plan_commit if tip.last is not None else None) or "")[:8]
