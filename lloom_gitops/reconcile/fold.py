"""Folds the effects of a plan's steps from what is now, and says where a state on the way breaks a rule.

Asserted before a plan leaves the planner: every state on the way passes. The independent judge in `checks`
folds again with code of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lloom_gitops.model.plan import Gap, Step
from lloom_gitops.model.words import LaneState, StepKind

from .room import held_now, holding
from .transition import Transition


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A state on the way that breaks a rule: after which step (or while it runs), and what is wrong."""

    step: str
    rule: str
    says: str


class Fold:
    """The state on the way: what is loaded, what each domain holds, who answers each alias."""

    def __init__(self, change: Transition, gaps: tuple[Gap, ...]) -> None:
        self.change = change
        self.allowed = {gap.alias for gap in gaps}
        self.loaded = {name for name, variant in change.variants.items() if variant.loaded}
        self.started: set[str] = set()
        self.held = held_now(change)
        self.lanes = {alias: lanes for alias, (_, lanes) in change.before.items()}
        self.routes = {alias: route for alias, (route, _) in change.before.items()}
        self.broken: list[Broken] = []
        self.named: dict[str | None, set[str]] = {}

    def _name(self, alias: str, lanes: Iterable[str | None]) -> None:
        for lane in lanes:
            self.named.setdefault(lane, set()).add(alias)

    def _limit(self, key: str) -> int | None:
        limit = self.change.limits.get(key)
        return limit.limit_mib if limit else None

    def run(self, steps: tuple[Step, ...]) -> tuple[Broken, ...]:
        """Fold all steps in their listed order; manual steps count as done, since others may rely on none of them."""
        for alias, lanes in self.lanes.items():
            self._name(alias, lanes)
        for step in steps:
            if step.alias is not None:
                self._name(step.alias, step.lanes or ())
        for step in steps:
            served = {alias for alias in self._near(step) if alias in self.lanes and self._served(alias)}
            self._apply(step)
            for alias in sorted(served - self.allowed - set(self.change.removed)):
                if alias in self.lanes and not self._served(alias):
                    self.broken.append(Broken(step=step.id, rule="unserved", says=f"{alias} is left without an answer"))
        return tuple(self.broken)

    def _near(self, step: Step) -> set[str]:
        """Aliases whose answer a step can change: its own, and those that lead to its lane at any time."""
        own = set() if step.alias is None else {step.alias}
        return own | (set() if step.lane is None else self.named.get(step.lane, set()))

    def _apply(self, step: Step) -> None:
        does = StepKind(step.does) if step.kind is StepKind.MANUAL and step.does else step.kind
        if does is StepKind.START and step.lane is not None:
            self._start(step, step.lane)
        elif does is StepKind.STOP and step.lane in self.loaded:
            started = step.lane in self.started
            variant = self.change.variants[step.lane]
            self._hold(variant.memory if started else holding(variant), -1)
            self.loaded.discard(step.lane)
        elif does is StepKind.ROUTE and step.alias is not None:
            self.routes[step.alias], self.lanes[step.alias] = step.route or (), step.lanes or ()

    def _start(self, step: Step, lane: str) -> None:
        variant = self.change.variants[lane]
        if variant.state is LaneState.LOADING or lane in self.loaded:
            self.loaded.add(lane)
            return
        for key, peak in variant.peak.items():
            limit, held = self._limit(key), self.held.get(key, 0)
            if step.kind is StepKind.START and limit is not None and held + peak > limit:
                says = f"{key}: {held} MiB held and {peak} MiB to load exceed {limit} MiB"
                self.broken.append(Broken(step=step.id, rule="memory", says=says))
        self.loaded.add(lane)
        self.started.add(lane)
        self._hold(variant.memory, 1)

    def _hold(self, sizes: dict[str, int], sign: int) -> None:
        for key, mib in sizes.items():
            self.held[key] = self.held.get(key, 0) + sign * mib

    def _served(self, alias: str) -> bool:
        """Whether something answers: a loaded lane, a managed one that loads on request, or an external model."""
        for model, lane in zip(self.routes.get(alias, ()), self.lanes.get(alias, ()), strict=False):
            if (lane is None and model in self.change.externals) or lane in self.loaded:
                return True
            if lane is None:
                continue
            variant = self.change.variants.get(lane)
            if variant is not None and variant.managed and self._on_request(lane):
                return True
        return False

    def _on_request(self, lane: str) -> bool:
        """Whether a request loads the lane: it is part of the outcome, and no step is about to start it."""
        return lane in self.change.residency and lane not in self.change.starts


def fold(change: Transition, steps: tuple[Step, ...], gaps: tuple[Gap, ...]) -> tuple[Broken, ...]:
    """Rules broken on the way from what is now through all steps, in order; empty for a sound plan."""
    return Fold(change, gaps).run(steps)
