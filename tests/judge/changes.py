"""One thing changed in a plan that is right, or in what it is judged against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lloom_gitops.model.desired import Alias
from lloom_gitops.model.plan import Because, Plan, PlannedLane, Read, Step
from lloom_gitops.model.words import StepKind, StopReason
from tests.judge.plans import AUTO, Case

Change = Callable[[Case], Case]
# What is wrong in words, the code to be found, the case that is right, and what is changed in it.
Fault = tuple[str, str, Callable[[], Case], tuple[Change, ...]]
BIG, PAIR = "qwen38-27b-03", "qwen38-pair"
START, COGNITION, DEEP, DRAIN, STOP = range(5)
GHOST = PlannedLane(
    models=("ghost",), nodes=("spark-node-03",), residency=AUTO, memory_gb={}, because=Because(reason="firstChoice")
)
STOP_IMAGE = (
    Step(id="drain:image-03", kind=StepKind.DRAIN, lane="image-03", timeout_seconds=300),
    Step(
        id="stop:image-03",
        kind=StepKind.STOP,
        lane="image-03",
        why=StopReason.ROOM,
        timeout_seconds=180,
        after=("drain:image-03",),
        reads=(Read(at="/lanes/image-03/state", equals="running"),),
    ),
)
START_VIDEO = Step(
    id="start:video-03",
    kind=StepKind.START,
    lane="video-03",
    residency=AUTO,
    timeout_seconds=900,
    reads=(Read(at="/nodes/spark-node-03/liveness", equals="ready"),),
)
SAYS = ("hands", "off")


def plan(**fields: Any) -> Change:
    """Other fields in the plan's spec."""
    return lambda case: (case[0], case[1], replace(case[2], **fields))


def on_plan(change: Callable[[Plan], Plan]) -> Change:
    """A change of the plan alone."""
    return lambda case: (case[0], case[1], change(case[2]))


def step(index: int, **fields: Any) -> Change:
    """Other fields in one step."""

    def change(made: Plan) -> Plan:
        steps = list(made.steps)
        steps[index] = replace(steps[index], **fields)
        return replace(made, steps=tuple(steps))

    return on_plan(change)


def order(*indexes: int) -> Change:
    """These steps, in this order."""
    return on_plan(lambda made: replace(made, steps=tuple(made.steps[i] for i in indexes)))


def more_steps(*steps: Step) -> Change:
    """More steps at the end."""
    return on_plan(lambda made: replace(made, steps=(*made.steps, *steps)))


def first_steps(*steps: Step) -> Change:
    """More steps at the front."""
    return on_plan(lambda made: replace(made, steps=(*steps, *made.steps)))


def lane(name: str, **fields: Any) -> Change:
    """Other fields in a planned lane."""
    return on_plan(lambda made: replace(made, lanes={**made.lanes, name: replace(made.lanes[name], **fields)}))


def route(alias: str, **fields: Any) -> Change:
    """Other fields in a planned route."""
    return on_plan(lambda made: replace(made, routes={**made.routes, alias: replace(made.routes[alias], **fields)}))


def no_route(alias: str) -> Change:
    """No route for an alias."""
    return on_plan(lambda made: replace(made, routes={k: v for k, v in made.routes.items() if k != alias}))


def verdict(**fields: Any) -> Change:
    """Other fields in the verdict."""
    return on_plan(lambda made: replace(made, verdict=replace(made.verdict, **fields)))


def diff(**fields: Any) -> Change:
    """Other fields in the diff."""
    return on_plan(lambda made: replace(made, diff=replace(made.diff, **fields)))


def seen_lane(name: str, **fields: Any) -> Change:
    """The inventory has another lane than the plan was made for."""

    def change(case: Case) -> Case:
        lanes = {**case[1].lanes, name: replace(case[1].lanes[name], **fields)}
        return case[0], replace(case[1], lanes=lanes), case[2]

    return change


def seen_node(name: str, **fields: Any) -> Change:
    """The inventory has another node than the plan was made for."""

    def change(case: Case) -> Case:
        nodes = {**case[1].nodes, name: replace(case[1].nodes[name], **fields)}
        return case[0], replace(case[1], nodes=nodes), case[2]

    return change


def seen(**fields: Any) -> Change:
    """Other fields in the inventory."""
    return lambda case: (case[0], replace(case[1], **fields), case[2])


def node(name: str, **fields: Any) -> Change:
    """People say something else of a node."""

    def change(case: Case) -> Case:
        nodes = {**case[0].nodes, name: replace(case[0].nodes[name], **fields)}
        return replace(case[0], nodes=nodes), case[1], case[2]

    return change


def alias(name: str, **fields: Any) -> Change:
    """People wish something else of an alias."""

    def change(case: Case) -> Case:
        found = case[0].aliases.get(name, Alias(models=()))
        return replace(case[0], aliases={**case[0].aliases, name: replace(found, **fields)}), case[1], case[2]

    return change


def desired(**fields: Any) -> Change:
    """Other fields in the desired state."""
    return lambda case: (replace(case[0], **fields), case[1], case[2])


def pool(**fields: Any) -> Change:
    """Other fields in the pool."""
    return lambda case: (replace(case[0], pool=replace(case[0].pool, **fields)), case[1], case[2])


def built(base: Callable[[], Case], *changes: Change) -> Case:
    """A case with changes applied in turn."""
    case = base()
    for change in changes:
        case = change(case)
    return case
