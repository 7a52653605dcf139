"""What a plan says about one name: an alias, a lane, a model or a node. Read from the plan alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from lloom_gitops.model.plan import (
    Cause,
    DomainBudget,
    Gap,
    Note,
    Plan,
    PlannedLane,
    PlannedNode,
    PlannedRoute,
    RouteChange,
    StartChange,
    Step,
    StopChange,
)
from lloom_gitops.model.words import Residency

Kept = tuple[str, tuple[Cause, ...]]


class Facts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is said of any name. `costs` are its shares of the levels, by the field of the plan's costs."""

    name: str
    word: str
    costs: dict[str, int] = {}
    steps: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


class AliasFacts(Facts, frozen=True, kw_only=True):
    """An alias: its planned route (None: nothing serves it), and what keeps models of its order out."""

    word: str = "alias"
    route: PlannedRoute | None = None
    change: RouteChange | None = None
    causes: tuple[Cause, ...] = ()
    gaps: tuple[Gap, ...] = ()


class LaneFacts(Facts, frozen=True, kw_only=True):
    """A lane: `answers` has the aliases with its place in their routes; `kept_out` those it is kept from."""

    word: str = "lane"
    planned: PlannedLane | None = None
    answers: tuple[tuple[str, int], ...] = ()
    residency: tuple[tuple[Residency, Residency, Cause | None], ...] = ()
    start: StartChange | None = None
    stop: StopChange | None = None
    kept_out: tuple[Kept, ...] = ()


class ModelFacts(Facts, frozen=True, kw_only=True):
    """A model: the planned lanes that serve it, and the aliases it answers or is kept from."""

    word: str = "model"
    lanes: tuple[tuple[str, PlannedLane], ...] = ()
    answers: tuple[tuple[str, int], ...] = ()
    kept_out: tuple[Kept, ...] = ()


class NodeFacts(Facts, frozen=True, kw_only=True):
    """A node: its memory, the lanes planned there, and what keeps each other lane off it."""

    word: str = "node"
    role: PlannedNode | None = None
    budget: tuple[DomainBudget, ...] = ()
    lanes: tuple[tuple[str, PlannedLane], ...] = ()
    kept_off: tuple[Kept, ...] = ()


Subject = AliasFacts | LaneFacts | ModelFacts | NodeFacts


def explained(plan: Plan, name: str) -> tuple[Subject, ...]:
    """All that a name stands for in a plan: alias, lane, model, node, in this order; empty: the plan has none."""
    found: list[Subject] = []
    if name in _aliases(plan):
        found.append(_alias(plan, name))
    if name in _lanes(plan):
        found.append(_lane(plan, name))
    if name in _models(plan):
        found.append(_model(plan, name))
    if name in _nodes(plan):
        found.append(_node(plan, name))
    return tuple(found)


def names(plan: Plan) -> tuple[str, ...]:
    """All names that `explained` knows, sorted."""
    return tuple(sorted(_aliases(plan) | _lanes(plan) | _models(plan) | _nodes(plan)))


def _aliases(plan: Plan) -> set[str]:
    return {*plan.routes, *plan.uncovered, *(change.alias for change in plan.diff.routes)}


def _lanes(plan: Plan) -> set[str]:
    stopped = {change.lane for change in plan.diff.stop}
    return {*plan.lanes, *stopped, *(cause.lane for _, causes in _all_causes(plan) for cause in causes if cause.lane)}


def _models(plan: Plan) -> set[str]:
    served = {model for planned in plan.lanes.values() for model in planned.models}
    routed = {model for route in plan.routes.values() for model in route.route}
    return served | routed | {cause.model for _, causes in _all_causes(plan) for cause in causes if cause.model}


def _nodes(plan: Plan) -> set[str]:
    return {*plan.budget, *plan.nodes, *(node for planned in plan.lanes.values() for node in planned.nodes)}


def _all_causes(plan: Plan) -> Iterator[Kept]:
    """Causes by alias: of what nothing serves, and of what is left out of routes."""
    for alias, causes in plan.uncovered.items():
        yield alias, causes
    for alias, route in plan.routes.items():
        if alias not in plan.uncovered and route.because:
            yield alias, route.because


def _kept(plan: Plan, field: str, value: str) -> tuple[Kept, ...]:
    rows = [(alias, tuple(c for c in causes if getattr(c, field) == value)) for alias, causes in _all_causes(plan)]
    return tuple((alias, causes) for alias, causes in rows if causes)


def _alias(plan: Plan, name: str) -> AliasFacts:
    route = plan.routes.get(name)
    return AliasFacts(
        name=name,
        route=route,
        change=next((change for change in plan.diff.routes if change.alias == name), None),
        causes=plan.uncovered.get(name) or (route.because if route else ()),
        gaps=tuple(gap for gap in plan.gaps if gap.alias == name),
        costs=_costs(plan, name, "uncovered", "external", "slo_misses", "order", "below_wish", "latency"),
        steps=_steps(plan, lambda step: step.alias == name),
        notes=tuple(note for note in plan.notes if note.alias == name),
    )


def _lane(plan: Plan, name: str) -> LaneFacts:
    return LaneFacts(
        name=name,
        planned=plan.lanes.get(name),
        answers=_answers(plan, [route.lanes for route in plan.routes.values()], name),
        residency=tuple((row.before, row.after, row.because) for row in plan.diff.residency if row.lane == name),
        start=next((change for change in plan.diff.start if change.lane == name), None),
        stop=next((change for change in plan.diff.stop if change.lane == name), None),
        kept_out=_kept(plan, "lane", name),
        costs=_costs(plan, name, "loads"),
        steps=_steps(plan, lambda step: step.lane == name),
        notes=tuple(note for note in plan.notes if note.lane == name),
    )


def _model(plan: Plan, name: str) -> ModelFacts:
    lanes = tuple((lane, planned) for lane, planned in plan.lanes.items() if name in planned.models)
    return ModelFacts(
        name=name,
        lanes=lanes,
        answers=_answers(plan, [route.route for route in plan.routes.values()], name),
        kept_out=_kept(plan, "model", name),
    )


def _node(plan: Plan, name: str) -> NodeFacts:
    away = [(lane, planned.because.rejected.get(name, ())) for lane, planned in plan.lanes.items()]
    return NodeFacts(
        name=name,
        role=plan.nodes.get(name),
        budget=plan.budget.get(name, ()),
        lanes=tuple((lane, planned) for lane, planned in plan.lanes.items() if name in planned.nodes),
        kept_off=tuple((lane, causes) for lane, causes in away if causes),
        steps=_steps(plan, lambda step: step.node == name),
        notes=tuple(note for note in plan.notes if note.node == name),
    )


def _answers(plan: Plan, rows: Sequence[tuple[str | None, ...]], name: str) -> tuple[tuple[str, int], ...]:
    placed = zip(plan.routes, rows, strict=True)
    return tuple((alias, row.index(name)) for alias, row in placed if name in row)


def _steps(plan: Plan, about: Callable[[Step], bool]) -> tuple[str, ...]:
    return tuple(step.id for step in plan.steps if about(step))


def _costs(plan: Plan, name: str, *fields: str) -> dict[str, int]:
    shares = {field: getattr(plan.verdict.costs, field).get(name, 0) for field in fields}
    return {field: share for field, share in shares.items() if share}
