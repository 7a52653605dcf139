"""Moves: what a plan changes, apart from how it was found; and which of its steps are still worth trying."""

from __future__ import annotations

from collections.abc import Set

from lloom_gitops.model.plan import Plan, Step
from lloom_gitops.model.status import Status, StepStatus
from lloom_gitops.model.words import Outcome, StepKind

Move = tuple[str | None, ...]
"""What is done, to what, and what it is to become."""


def moves(plan: Plan) -> frozenset[Move]:
    """Starts, stops, final routes and residencies of a plan's steps, a person's included. Interim routes and drains are
    ways, not ends."""
    return frozenset(move for step in plan.steps if (move := _move(step)) is not None)


def _move(step: Step) -> Move | None:
    match step.does if step.kind is StepKind.MANUAL else step.kind.value:
        case "start" | "residency" as what:
            wanted = None if step.residency is None else step.residency.value
            return (what, step.lane, wanted)
        case "stop" | "install" as what:
            return (what, step.lane)
        case "route" if not step.interim:
            return ("route", step.alias, *(step.route or ()), "by", *(step.lanes or ()))
    return None


def barred_steps(plan: Plan, last: Status) -> dict[str, StepStatus]:
    """Steps that wait for a person, or failed for good, with what became of them in the last apply."""
    manual = {step.id for step in plan.steps if step.kind is StepKind.MANUAL}
    barred = {}
    for step in plan.steps:
        status = last.steps.get(step.id)
        if status is None:
            continue
        by_person = step.id in manual and status.outcome in (Outcome.WAITING, Outcome.SKIPPED)
        if by_person or (status.outcome is Outcome.FAILED and status.retry == "never"):
            barred[step.id] = status
    return barred


def steps_left(plan: Plan, without: Set[str]) -> tuple[Step, ...]:
    """Steps worth an apply: none of `without`, none that depends on one of them, and no drain that only they need."""
    dead: set[str] = set(without)
    for step in plan.steps:
        if dead.intersection(step.after):
            dead.add(step.id)
    for step in reversed(plan.steps):
        needed = [other.id for other in plan.steps if step.id in other.after]
        if step.kind is StepKind.DRAIN and needed and dead.issuperset(needed):
            dead.add(step.id)
    return tuple(step for step in plan.steps if step.id not in dead)
