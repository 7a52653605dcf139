"""Gathers the facts of a turn from the branch's history, for `control.lifecycle.decide`."""

from __future__ import annotations

from lloom_gitops.agent.branch import (
    Branch,
    committed_plan,
    descends,
    digest_at,
    has_result,
    inventory_named,
    merged_since,
    plan_at,
    reverted_moves,
)
from lloom_gitops.agent.world import FleetStore
from lloom_gitops.codec import plan_id
from lloom_gitops.control.authentic import faults_of
from lloom_gitops.control.lifecycle import CommittedPlan, Tip
from lloom_gitops.model.plan import Plan


def gather(store: FleetStore, branch: Branch, fresh: Plan, applied: str | None, reached: str | None) -> Tip:
    """The facts about a tip. `applied` is the last commit that this machine applied something of, `reached` the
    revision at which all that was asked for was last there."""
    last = branch.status
    committed, fault = committed_plan(store, branch)
    done = committed is not None and has_result(store, branch, committed)
    last_plan = plan_at(store, last.plan_commit) if last is not None and last.plan_commit is not None else None
    return Tip(
        commit=branch.commit,
        desired=branch.desired,
        digest=branch.digest,
        fresh=fresh,
        fresh_id=plan_id(fresh),
        committed=committed,
        has_result=done,
        not_authentic=fault if committed is None or done else _why_not_authentic(store, branch, committed),
        last=last,
        last_plan=None if last_plan is None else last_plan.plan,
        merged=merged_since(store, branch),
        asked=_asked(store, branch, last_plan, reached),
        descends=applied is None or descends(store, applied, branch.commit),
        suspended=branch.suspended,
        confirmations=branch.confirmations,
        reverted=reverted_moves(store, branch),
    )


def _asked(store: FleetStore, branch: Branch, last_plan: CommittedPlan | None, reached: str | None) -> bool:
    """Whether the desired state changed since it was last reached."""
    if reached is not None:
        return reached != branch.commit and digest_at(store, reached) != branch.digest
    return last_plan is None or last_plan.plan.inputs.desired != branch.digest


def _why_not_authentic(store: FleetStore, branch: Branch, committed: CommittedPlan) -> str | None:
    if committed.plan.inputs.desired != branch.digest:
        return None
    inventory = inventory_named(store, branch, committed.plan.inputs.inventory)
    if inventory is None:
        return "no inventory in the history has the digest that it names"
    faults = faults_of(branch.desired, inventory, committed.plan)
    return f"{faults[0].pointer}: {faults[0].message}" if faults else None
