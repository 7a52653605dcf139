"""One turn of the agent: fetch, read, observe, plan, decide, apply what is merged, write back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lloom_gitops.agent.apply import Applied, ApplyPorts, apply_plan
from lloom_gitops.agent.branch import (
    Branch,
    digest_at,
    own_status,
    read_branch,
    results_ref,
)
from lloom_gitops.agent.carrying import StepCarrier
from lloom_gitops.agent.gathering import gather
from lloom_gitops.agent.journal import ApplyKey
from lloom_gitops.agent.lease import Lease
from lloom_gitops.agent.observing import Eyes
from lloom_gitops.agent.state import Memory
from lloom_gitops.agent.status import Seen, applied_status, closed_status, failed_status, standing_status, timeless
from lloom_gitops.agent.turn_report import TurnReport, applied_sentence, report_of
from lloom_gitops.agent.watching import Watch
from lloom_gitops.agent.world import World
from lloom_gitops.agent.writing import note_draft, plan_draft, result_draft, status_bytes
from lloom_gitops.catalog.facts import facts
from lloom_gitops.catalog.settle import damp, settle
from lloom_gitops.codec.desired import PATHS
from lloom_gitops.control.legal import legal_plan
from lloom_gitops.control.lifecycle import Decision, Way, decide
from lloom_gitops.gitstore.commits import Draft
from lloom_gitops.gitstore.remote import Pushed, RefUpdate
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Conflict, LloomGitopsError, Refused, Unreachable
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.status import AgentStatus, Status
from lloom_gitops.model.words import Result
from lloom_gitops.ports import Gateway
from lloom_gitops.reconcile.machine import ApplyPolicy

ADVICE_REF = "refs/heads/lloom/advice"
_ATTEMPTS = 3
"""Times that a turn begins anew because the branch moved before its plan could be committed."""


class _Moved(Exception):
    """The branch is not where this turn read it."""


def once(world: World, lease: Lease, *, by_person: bool = False) -> TurnReport:
    """One turn: at most one plan is applied. `by_person`: only what was reviewed counts, anything else is refused.

    Raises `LloomGitopsError` where it must not or can't act; what it says is on the agent's own ref then too.
    """
    lease.take()
    for _ in range(_ATTEMPTS):
        try:
            return _Turn(world, lease).take(by_person=by_person)
        except _Moved:
            continue
    raise Conflict(
        code="branchMoves",
        message=f"the branch moved at each of {_ATTEMPTS} attempts to commit a plan to it",
        hint="the next turn tries again",
    )


def look(world: World, lease: Lease) -> TurnReport:
    """What a turn would do now; nothing is written anywhere."""
    turn = _Turn(world, lease)
    turn.fetch()
    decision, branch, *_ = turn.decided()
    return report_of(decision, turn.notes, interval_seconds=branch.desired.pool.controller.interval_seconds)


class _Turn:
    """The turn in hand. `tip` is the branch as fetched, `own` what the agent said last, `notes` are for people."""

    def __init__(self, world: World, lease: Lease) -> None:
        self._world = world
        self._store = world.store
        self._lease = lease
        self._memory: Memory = world.state.recall()
        self._own: Status | None = None
        self._tip: str | None = None
        self.notes: tuple[str, ...] = ()

    def take(self, *, by_person: bool) -> TurnReport:
        try:
            self.fetch()
            decision, branch, eyes, inventory = self.decided()
            if by_person:
                _only_reviewed(decision)
            report = self._act(decision, branch, eyes, inventory, "manual" if by_person else decision.trigger)
        except LloomGitopsError as error:
            self._say(failed_status(self._own, self._tip, error.code, error.message, self._agent()))
            raise
        seconds = 0 if report.result is Result.SUPERSEDED else branch.desired.pool.controller.interval_seconds
        return msgspec.structs.replace(report, interval_seconds=seconds)

    # Reading and deciding

    def fetch(self) -> None:
        """Fetch the branch and the agent's own ref: one network call."""
        self._tip = self._store.fetch(self._world.settings.own_ref)
        if self._tip is None:
            raise Refused(
                code="noBranch",
                message=f"the remote has no branch {self._world.settings.branch}",
                hint="push one, or name another with --branch",
            )
        self._own = own_status(self._store, self._world.settings.own_ref)

    def decided(self) -> tuple[Decision, Branch, Eyes, Inventory]:
        """What to do about the tip, and what that rests on; the inventory is the one that was planned from."""
        assert self._tip is not None
        branch = read_branch(self._store, self._tip)
        eyes = Eyes(branch.desired, branch.inventory, self._memory.answered, self._world.observer, self._world.clock)
        self.notes = eyes.look_around()
        inventory = damp(branch.inventory, eyes.known)
        fresh = legal_plan(branch.desired, inventory)
        decision = decide(gather(self._store, branch, fresh, self._memory.applied, self._reached()))
        return decision, branch, eyes, inventory

    # Acting

    def _act(self, decision: Decision, branch: Branch, eyes: Eyes, inventory: Inventory, trigger: str) -> TurnReport:
        if decision.applies:
            return self._apply(decision, branch, eyes, inventory, trigger)
        seen = self._seen(branch, eyes)
        more: dict[str, Any] = {}
        if decision.way is Way.CLOSES and branch.status is not None:
            status = closed_status(seen, decision, branch.status)
            more["commit"] = self._publish_result(branch, status, settle(branch.inventory, eyes.known), trigger)
            more["result"] = status.result
        else:
            status = standing_status(seen, decision, branch.status)
        if decision.way in (Way.NOTHING, Way.CLOSES):
            # A run that was killed after its result had landed left its journal behind.
            self._world.journal.end()
        if decision.way is Way.ADVISED:
            more["advice"] = self._advise(decision, branch, inventory)
        self._say(status)
        self._remember(eyes)
        return report_of(decision, self.notes, **more)

    def _apply(self, decision: Decision, branch: Branch, eyes: Eyes, inventory: Inventory, trigger: str) -> TurnReport:
        plan_commit, known = decision.plan_commit, branch.inventory
        if decision.commits:
            plan_commit, known = self._publish_plan(decision, branch, inventory, trigger), inventory
        assert plan_commit is not None
        applied = self._carry_out(decision, branch, eyes)
        if not self._lease.held:
            raise Conflict(
                code="leaseLost",
                message="the lease was lost while a plan was applied: nothing was written back",
                hint="what was done is in the journal; the agent that holds the lease plans from what is there now",
            )
        self._look_again(eyes)
        status = applied_status(self._seen(branch, eyes), decision, plan_commit, applied)
        commit = self._publish_result(branch, status, settle(known, eyes.known), trigger)
        self._world.journal.end()
        self._remember(eyes, applied=self._store.tip())
        self._say(status)
        return report_of(
            decision,
            self.notes,
            says=applied_sentence(decision.plan_id, applied),
            result=applied.result,
            steps=applied.steps,
            superseded_by=status.superseded_by,
            plan_commit=plan_commit,
            commit=commit,
        )

    def _carry_out(self, decision: Decision, branch: Branch, eyes: Eyes) -> Applied:
        world, desired = self._world, branch.desired
        gateways: Mapping[str, Gateway] = world.gateways(desired)
        watch = Watch(
            self._store,
            world.clock,
            self._lease,
            world.stop,
            tip=self._store.tip() or branch.commit,
            asks_anew=lambda tip: self._asks_anew(branch, tip),
        )
        driver = StepCarrier(
            head=desired.pool.head,
            gateways=gateways,
            config=world.config(desired),
            clock=world.clock,
            known=lambda: eyes.known,
            stopping=lambda: watch.asked is not None,
        )
        ports = ApplyPorts(
            journal=world.journal,
            driver=driver,
            look=lambda step: eyes.facts_of(step, gateways),
            clock=world.clock,
            stop=watch,
            watchers=world.watchers,
        )
        key = ApplyKey(plan=decision.plan_id, since=branch.status_digest)
        return apply_plan(decision.plan, key, facts(desired, eyes.known), _policy(decision, desired), ports)

    def _asks_anew(self, branch: Branch, tip: str) -> bool:
        if branch.desired.pool.write_back.plan != "agent":
            return False
        return digest_at(self._store, tip) not in (None, branch.digest)

    def _look_again(self, eyes: Eyes) -> None:
        try:
            self.notes = eyes.look_around()
        except Unreachable as error:
            # The steps' own looks are known; what was done must be written back all the same.
            self.notes = (*self.notes, error.message)

    # Writing

    def _publish_plan(self, decision: Decision, branch: Branch, inventory: Inventory, trigger: str) -> str:
        ref = results_ref(branch.desired)
        read_at = branch.commit if ref is None else self._store.tip(ref)
        draft = plan_draft(
            decision.plan,
            inventory,
            reviewed_as=decision.reviewed_as,
            trigger=trigger,
            agent=self._world.settings.name,
        )

        moved = False

        def build(tip: str | None) -> Draft | None:
            nonlocal moved
            moved = tip != read_at
            return None if moved else draft

        published = self._store.publish(build, self._world.author(), ref=ref)
        if moved:
            raise _Moved
        # The file may hold this very plan already: what was once applied was undone by hand.
        return published.oid or self._store.history_of(published.tip or branch.commit, PATHS[Kind.PLAN])[0][0]

    def _publish_result(self, branch: Branch, status: Status, inventory: Inventory, trigger: str) -> str | None:
        if branch.status is not None and _same(branch.status, status) and inventory == branch.inventory:
            return None  # tried again, with the same result
        draft = result_draft(status, inventory, trigger=trigger)
        published = self._store.publish(lambda _: draft, self._world.author(), ref=results_ref(branch.desired))
        return published.oid

    def _advise(self, decision: Decision, branch: Branch, inventory: Inventory) -> str | None:
        """The advice branch, with the plan upon the tip; None where it holds that plan already."""
        draft = plan_draft(
            decision.plan, inventory, reviewed_as=None, trigger=decision.trigger, agent=self._world.settings.name
        )
        old = self._store.list_remote([ADVICE_REF]).get(ADVICE_REF)
        if old is not None:
            self._store.fetch(ADVICE_REF)
            if all(self._store.read_file(old, path) == data for path, data in draft.files.items()):
                return None
        new = self._store.commit(branch.commit, draft, self._world.author())
        if new is None or isinstance(self._store.push([RefUpdate(ADVICE_REF, new, old)], rewind=True), Pushed):
            return new
        self._world.tell("the advice branch could not be pushed; the next turn tries again")
        return None

    def _say(self, status: Status) -> None:
        """Put `status` on the agent's own ref, unless it says so already. Nothing rests on it, so a failure is told."""
        before = self._own
        if before is not None and _same(before, status):
            return
        try:
            self._store.write_note_ref(self._world.settings.own_ref, note_draft(status), self._world.author())
        except LloomGitopsError as error:
            self._world.tell(f"the status could not be put on {self._world.settings.own_ref}: {error.message}")

    def _remember(self, eyes: Eyes, applied: str | None = None) -> None:
        memory = msgspec.structs.replace(self._memory, answered=eyes.answered, applied=applied or self._memory.applied)
        if memory != self._memory:
            self._world.state.remember(memory)

    def _seen(self, branch: Branch, eyes: Eyes) -> Seen:
        return Seen(
            tip=branch.commit,
            desired=branch.desired,
            inventory=eyes.known,
            agent=self._agent(),
            reached=self._reached(),
        )

    def _reached(self) -> str | None:
        """The revision at which all that was asked for was last there."""
        conditions = None if self._own is None else self._own.conditions
        return None if conditions is None else conditions.applied

    def _agent(self) -> AgentStatus:
        return AgentStatus(name=self._world.settings.name, epoch=self._lease.epoch)


def _policy(decision: Decision, desired: Desired) -> ApplyPolicy:
    return ApplyPolicy(
        head=desired.pool.head,
        concurrency=desired.pool.apply.concurrency,
        manual_steps=desired.pool.apply.manual_steps,
        confirmed=decision.confirmed,
        barred=decision.barred,
    )


def _same(one: Status, other: Status) -> bool:
    return status_bytes(timeless(one)) == status_bytes(timeless(other))


def _only_reviewed(decision: Decision) -> None:
    """A person's `apply` carries out what was merged, or says what keeps it from that."""
    if decision.way in (Way.REVIEWED, Way.REFRESHED, Way.NOTHING, Way.CLOSES):
        return
    reason = str(decision.because.get("reason"))
    says = decision.because.get("says") or _REFUSALS.get(reason, reason)
    raise Refused(code=reason, message=f"nothing is applied: {says}", hint=decision.hint)


_REFUSALS = {
    "noPlan": "there is no committed plan",
    "notCurrent": "the committed plan was made from another desired state",
    "whatIf": "the committed plan is a what-if plan, which only shows",
    "drift": "the committed plan was applied already, and what differs now is in no plan",
    "merged": "no plan covers what was merged",
    "reverted": "a person took these moves back",
}
