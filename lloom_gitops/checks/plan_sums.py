"""Memory sums of a planned outcome (documents.md, Memory), and which of them a change would break."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

import msgspec

from lloom_gitops.model.words import Residency

from .plan_scene import LaneFacts, Scene


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A sum over its bound: which sum of which domain, of which lanes, and both figures in MiB."""

    sum: str
    domain: str
    lanes: tuple[str, ...] = ()
    mib: int
    bound: int


class Sums:
    """Sums of the outcome of a scene. A bound is never below the same sum as things are now: what is over may stay."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @cached_property
    def lanes_on(self) -> dict[str, tuple[LaneFacts, ...]]:
        """Lanes with memory in each domain, by domain key."""
        result: dict[str, list[LaneFacts]] = {}
        for name in sorted(self.scene.lanes):
            for key in self.scene.lanes[name].memory:
                result.setdefault(key, []).append(self.scene.lanes[name])
        return {key: tuple(lanes) for key, lanes in result.items()}

    def weight_now(self, lane: LaneFacts) -> Residency | None:
        """What a lane counts as now; None: it takes no memory and asks for none."""
        if not lane.managed:
            return Residency.ALWAYS if lane.state.holds_memory else None
        if lane.installs or (lane.latched and not lane.state.holds_memory):
            return None
        return lane.residency

    def weight(self, lane: LaneFacts) -> Residency | None:
        """What a lane counts as in the planned outcome."""
        scene = self.scene
        stopped = lane.id in scene.left or (not lane.loaded and lane.document.state == "stopped")
        if stopped or (lane.latched and not lane.state.holds_memory):
            return None
        if not lane.managed:
            return Residency.ALWAYS if lane.state.holds_memory else None
        if lane.installs and lane.id not in scene.plan.lanes:
            return None
        return scene.residency[lane.id]

    def loadable(self, lane: LaneFacts) -> bool:
        """Whether the outcome counts on being able to load it: routed, started, or wished to be loaded."""
        weight = self.weight(lane)
        if weight is None or not lane.managed or self.scene.dead(lane):
            return False
        return weight is not Residency.AUTO or lane.id in self.scene.routed or lane.id in self.scene.started

    def resident(self, key: str, which: Residency) -> int:
        """MiB of the lanes of one residency in a domain, in the outcome."""
        return sum(lane.memory[key] for lane in self.lanes_on.get(key, ()) if self.weight(lane) is which)

    def broken(
        self,
        domains: Collection[str],
        changed: Mapping[str, Residency] | None = None,
        loads: Collection[str] = (),
        adopted: Collection[str] = (),
    ) -> Iterator[Broken]:
        """Sums of these domains that are over their bounds.

        `changed` gives lanes another residency than planned, `loads` names lanes that must be loadable besides; of
        those only the `adopted` and the loaded ones may be over a bound as they are now.
        """
        for key in sorted(domains):
            limit = self.scene.limits.get(key)
            if limit is None or self.scene.gone(limit.node):
                continue
            domain = _Domain(self, key, dict(changed or {}), frozenset(loads))
            domain.adopted |= set(adopted)
            yield from domain.broken()


class _Domain:
    """The sums of one domain, with a change of residency assumed, and with lanes that must be loadable."""

    def __init__(self, sums: Sums, key: str, changed: dict[str, Residency], loads: frozenset[str]) -> None:
        self.key = key
        self.unknown = sums.scene.limits[key].limit_mib is None
        self.limit = sums.scene.limits[key].limit_mib or 0
        self.budget = sums.scene.limits[key].budget_mib or 0
        self.co_resident = sums.scene.desired.pool.co_resident
        lanes = sums.lanes_on.get(key, ())
        self.after = {lane.id: changed.get(lane.id, sums.weight(lane)) for lane in lanes}
        self.now = {lane.id: sums.weight_now(lane) for lane in lanes}
        self.facts = {lane.id: lane for lane in lanes}
        # What is in use is adopted as it is, and what nobody touches. What is to be counted on anew is not: only a
        # loaded lane proves that it fits, whatever the figures say.
        untouched = {name for name, weight in self.after.items() if weight is self.now[name] is not Residency.AUTO}
        held = {lane.id for lane in lanes if lane.state.holds_memory}
        self.adopted = held | ((sums.scene.routed_now | untouched) - loads)
        self.loadable = [lane for lane in lanes if sums.loadable(lane) or lane.id in loads]

    def _sum(self, weights: Mapping[str, Residency | None], which: Collection[Residency], but: Collection[str]) -> int:
        return sum(
            self.facts[name].memory[self.key] for name, weight in weights.items() if weight in which and name not in but
        )

    def _over(self, sum_name: str, bound: int, members: tuple[LaneFacts, ...], add: int) -> Iterator[Broken]:
        """One sum of all always lanes but `members`, and `add` for those."""
        names = tuple(lane.id for lane in members)
        after = self._sum(self.after, (Residency.ALWAYS,), names) + add
        if self.adopted.issuperset(names):
            bound = max(bound, self._sum(self.now, (Residency.ALWAYS,), names) + add)
        if after > bound:
            yield Broken(sum=sum_name, domain=self.key, lanes=names, mib=after, bound=bound)

    def broken(self) -> Iterator[Broken]:
        both = (Residency.ALWAYS, Residency.PREFERRED)
        after, now = self._sum(self.after, both, ()), self._sum(self.now, both, ())
        if after > max(self.budget, now):
            yield Broken(sum="residency", domain=self.key, mib=after, bound=max(self.budget, now))
        if self.unknown:
            return  # what runs there stays; whether more could be loaded is no question of sums
        autos = [lane for lane in self.loadable if self.after[lane.id] is Residency.AUTO]
        for lane in autos:
            yield from self._over("onDemand", self.budget, (lane,), lane.memory[self.key])
        for models in self.co_resident:
            members = tuple(lane for lane in autos if set(lane.models) & set(models))
            if len(members) > 1:
                yield from self._over("coResident", self.budget, members, sum(m.memory[self.key] for m in members))
        for lane in self.loadable:
            yield from self._over("loadPeak", self.limit, (lane,), lane.peak[self.key])
