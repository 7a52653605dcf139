"""What a turn came to, in values and in a sentence."""

from __future__ import annotations

from typing import Any

import msgspec

from lloom_gitops.agent.apply import Applied
from lloom_gitops.agent.writing import short
from lloom_gitops.control.lifecycle import Decision, Way
from lloom_gitops.model.errors import ExitCode
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.status import StepStatus
from lloom_gitops.model.words import Result


class TurnReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a turn did. `commit` is the result commit, `planCommit` the plan's; None where none was made or needed.
    `intervalSeconds` is when the next turn is due."""

    way: Way
    says: str
    because: dict[str, Any]
    plan: str | None = None
    reviewed_as: str | None = None
    result: Result | None = None
    steps: dict[str, StepStatus] = {}
    superseded_by: str | None = None
    plan_commit: str | None = None
    commit: str | None = None
    advice: str | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()
    interval_seconds: int = 0

    @property
    def exit_code(self) -> ExitCode:
        """By docs/reference/cli.md: waiting for a person is 0, and the sentence says so."""
        if self.way is Way.REFUSED:
            return ExitCode.REFUSED
        if self.result in (Result.PARTIAL, Result.FAILED, Result.SUPERSEDED):
            return ExitCode.PARTIAL
        return ExitCode.OK


def report_of(decision: Decision, notes: tuple[str, ...], **more: Any) -> TurnReport:
    """The report of a turn that applied nothing."""
    return TurnReport(
        way=decision.way,
        says=more.pop("says", None) or decision_sentence(decision),
        because=decision.because,
        plan=decision.plan_id,
        reviewed_as=decision.reviewed_as,
        hint=decision.hint,
        notes=notes,
        **more,
    )


def decision_sentence(decision: Decision) -> str:
    """What the agent makes of the tip, before it does anything."""
    plan, says = short(decision.plan_id), decision.because.get("says")
    match decision.way:
        case Way.NOTHING if decision.because["reason"] == "waits":
            return f"nothing to do now: waits for {', '.join(decision.because['steps'])}"
        case Way.NOTHING:
            return str(says)
        case Way.CLOSES:
            return "what waited for a person is done: nothing is left to do"
        case Way.REVIEWED:
            return f"the reviewed plan {plan} is to be applied: {_size(decision.plan)}"
        case Way.REFRESHED:
            seen = short(decision.reviewed_as or decision.plan_id)
            return f"the review of {seen} stands: plan {plan} is to be applied, {_size(decision.plan)}"
        case Way.PLANNED:
            return f"plan {plan} is to be committed and applied: {_size(decision.plan)}"
        case Way.ADVISED | Way.REPORTED:
            return f"unplanned ({decision.because['reason']}): {_size(decision.plan)} would have to be taken"
        case Way.HELD:
            return f"held ({decision.because['reason']})" + (f": {says}" if says else "")
        case Way.REFUSED:
            return f"refused: {says}"


def applied_sentence(plan_id: str, applied: Applied) -> str:
    """What became of an apply."""
    good = sum(step.outcome in ("done", "already") for step in applied.steps.values())
    said = f"plan {short(plan_id)} {applied.result}: {good} of {len(applied.steps)} steps done"
    waiting = [name for name, step in applied.steps.items() if step.outcome == "waiting"]
    if waiting:
        said += f"; waits for a person: {', '.join(waiting)}"
    return said + (f"; superseded by {applied.stopped_by}" if applied.result is Result.SUPERSEDED else "")


def _size(plan: Plan) -> str:
    return f"{len(plan.steps)} step{'' if len(plan.steps) == 1 else 's'}"
