"""Which step comes after which: the partial order of a plan's steps, and some of the orders that it allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from heapq import heapify, heappop, heappush

from lloom_gitops.model.plan import Step

from .plan_scene import is_stop


class Graph:
    """Steps in listed order (which `after` allows: plan_references), with all that comes before each."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps = steps

    @cached_property
    def before(self) -> dict[str, frozenset[str]]:
        """All steps that are done before a step, directly or not."""
        result: dict[str, frozenset[str]] = {}
        for step in self.steps:
            earlier = set(step.after)
            for other in step.after:
                earlier |= result[other]
            result[step.id] = frozenset(earlier)
        return result

    @cached_property
    def of_lane(self) -> dict[str, tuple[Step, ...]]:
        """Steps about each lane, in listed order."""
        return _grouped((step.lane, step) for step in self.steps)

    @cached_property
    def of_alias(self) -> dict[str, tuple[Step, ...]]:
        """Steps about each alias, in listed order."""
        return _grouped((step.alias, step) for step in self.steps)

    def precedes(self, first: Step, then: Step) -> bool:
        """Whether one step is done before another in every order."""
        return first.id in self.before[then.id]

    def orders(self) -> Iterator[tuple[Step, ...]]:
        """The listed order, and the allowed ones that put most strain on memory and on routes. All, if few."""
        yield self.steps
        if all(set(a.after) >= {b.id} for a, b in zip(self.steps[1:], self.steps, strict=False)):
            return
        seen = {tuple(step.id for step in self.steps)}
        for rank in _STRAINS:
            order = self._greedy(rank)
            ids = tuple(step.id for step in order)
            if ids not in seen:
                seen.add(ids)
                yield order

    def _greedy(self, rank: Callable[[int, Step], tuple[int, int]]) -> tuple[Step, ...]:
        """The allowed order that always takes the step of the lowest rank among those that may run."""
        waiting = {step.id: len(set(step.after)) for step in self.steps}
        then: dict[str, list[int]] = {}
        for index, step in enumerate(self.steps):
            for other in set(step.after):
                then.setdefault(other, []).append(index)
        free = [(rank(index, step), index) for index, step in enumerate(self.steps) if not waiting[step.id]]
        heapify(free)
        order: list[Step] = []
        while free:
            step = self.steps[heappop(free)[1]]
            order.append(step)
            for index in then.get(step.id, ()):
                following = self.steps[index]
                waiting[following.id] -= 1
                if not waiting[following.id]:
                    heappush(free, (rank(index, following), index))
        return tuple(order)


def _grouped(steps: Iterable[tuple[str | None, Step]]) -> dict[str, tuple[Step, ...]]:
    groups: dict[str, list[Step]] = {}
    for name, step in steps:
        if name is not None:
            groups.setdefault(name, []).append(step)
    return {name: tuple(group) for name, group in groups.items()}


def _kind(step: Step) -> str:
    return "stop" if is_stop(step) else step.kind.value


def _favouring(*kinds: str, backwards: bool = False) -> Callable[[int, Step], tuple[int, int]]:
    def rank(index: int, step: Step) -> tuple[int, int]:
        kind = _kind(step)
        place = kinds.index(kind) if kind in kinds else len(kinds)
        return place, -index if backwards else index

    return rank


# Loads before anything is freed; everything freed before anything is routed; routes first; and the list backwards.
_STRAINS = (
    _favouring("install", "start", "residency", "route", "drain", "stop"),
    _favouring("install", "start", "residency", "route", "drain", "stop", backwards=True),
    _favouring("drain", "stop", "residency", "start", "route"),
    _favouring("drain", "stop", "residency", "start", "route", backwards=True),
    _favouring("route", "residency", "start"),
    _favouring("route", "residency", "start", backwards=True),
    _favouring(backwards=True),
)
