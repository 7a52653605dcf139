"""Memory on the way, in every order that `after` allows and with two loads at once: exact for each pair of loads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import LaneState, StepKind

from .plan_codes import at, fault
from .plan_graph import Graph
from .plan_scene import Scene, is_stop
from .plan_sums import Sums

# Above this many other loads in one domain only the fold's own orders are tried, not every subset.
OTHER_LOADS = 8


def room_findings(scene: Scene, graph: Graph, sums: Sums) -> Iterator[Finding]:
    """Loads, alone or in pairs that may run at once, for which some allowed order leaves too little memory."""
    starts = [step for step in scene.plan.steps if step.kind is StepKind.START]
    places = {step.id: index for index, step in enumerate(scene.plan.steps)}
    for step in starts:
        for key in scene.lanes[step.lane or ""].peak:
            limit = scene.limits.get(key)
            if limit is None or limit.limit_mib is None:
                continue
            here = DomainLoads(scene, graph, sums, key)
            bound = max(limit.limit_mib, here.usage((), ()))
            worst, beside = max(here.worst(loading) for loading in here.loading_with(step))
            if worst > bound:
                others = f" while {beside}" if beside else ""
                yield fault(
                    "planMemoryOnTheWay",
                    at("steps", places[step.id]),
                    f"{step.id} may load where {key} is too full{others}",
                    wanted=f"at most {bound} MiB",
                    found=f"{worst} MiB",
                )


class DomainLoads:
    """The loads and stops that touch one domain."""

    def __init__(self, scene: Scene, graph: Graph, sums: Sums, key: str) -> None:
        self.scene, self.graph, self.key = scene, graph, key
        self.lanes = sums.lanes_on.get(key, ())
        touching = [step for lane in self.lanes for step in graph.of_lane.get(lane.id, ())]
        self.steps = [step for step in touching if step.kind is StepKind.START or is_stop(step)]

    def loading_with(self, step: Step) -> Iterator[tuple[Step, ...]]:
        """The step alone, and with each other load of this domain that may run at the same time."""
        yield (step,)
        if self.scene.desired.pool.apply.concurrency < 2:
            return
        for other in self.steps:
            apart = other.kind is StepKind.START and other.lane != step.lane
            if apart and not self.graph.precedes(other, step) and not self.graph.precedes(step, other):
                yield (step, other)

    def worst(self, loading: tuple[Step, ...]) -> tuple[int, str]:
        """Most memory in use while these load, over all sets of steps that may be done by then; and beside what."""
        before = set(chain.from_iterable(self.graph.before[step.id] for step in loading))
        busy = {step.id for step in loading}
        others = [
            step
            for step in self.steps
            if step.kind is StepKind.START
            and step.id not in before
            and step.id not in busy
            and not busy & self.graph.before[step.id]
        ]
        most = len(others) if len(others) <= OTHER_LOADS else 1
        worst = 0
        for chosen in chain.from_iterable(combinations(others, size) for size in range(most + 1)):
            done = before.union(*(self.graph.before[step.id] | {step.id} for step in chosen))
            worst = max(worst, self.usage(done, loading))
        return worst, ", ".join(step.id for step in loading[1:])

    def usage(self, done: set[str] | tuple[()], loading: tuple[Step, ...]) -> int:
        """MiB in use when these steps are done and those loads are at their peak."""
        use = {
            lane.id: lane.peak[self.key] if lane.state is LaneState.LOADING else lane.memory[self.key]
            for lane in self.lanes
            if lane.state.holds_memory
        }
        for step in self.steps:
            if step.id in done:
                use[step.lane or ""] = 0 if is_stop(step) else self.scene.lanes[step.lane or ""].memory[self.key]
        for step in loading:
            use[step.lane or ""] = self.scene.lanes[step.lane or ""].peak[self.key]
        return sum(use.values())
