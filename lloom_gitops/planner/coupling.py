"""What a decision can touch: which domains, lanes and aliases depend on the search, and which are settled before it.

The search starts from what people wish. Where that holds, nothing is better, so only what surrounds the domains in
trouble is open. From there this module grows, to a fixed point, the set of `open_domains`: a domain joins where a lane
on it may get another residency than it would without the trouble and the domain is not `quiet`, that is, not so roomy
that every rule holds and every start fits whatever is decided.
"""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.model.words import LaneState, Residency

from .leaving import answering_now
from .world import LaneRole, World, unsuitable


class Coupling:
    """What is open in a world, given the domains in trouble. A lane is `sure` where it can be loaded in any case."""

    def __init__(self, world: World, trouble: set[str]) -> None:
        self.world = world
        self.lanes_on: dict[str, list[str]] = {}
        for name, variant in world.variants.items():
            for key in variant.memory:
                self.lanes_on.setdefault(key, []).append(name)
        self.naming = _naming(world)
        self.open_models = {
            model
            for model, names in world.by_model.items()
            if model in world.pinned or sum(world.roles[name] is not LaneRole.OUT for name in names) > 1
        }
        self.together = {model for models in world.desired.pool.co_resident for model in models}
        self.open_domains = {key for key in trouble if key in self.lanes_on}
        self._grow()

    def _grow(self) -> None:
        while True:
            self.sure = {name for name in self.world.variants if self._is_sure(name)}
            self.firsts = {alias: self._surely_first(alias) for alias in self.world.entries}
            self.open_aliases = {alias for alias in self.world.entries if self._is_open(alias)}
            self.tops = {name: self._top(name) for name in self.world.variants}
            self.varying = {name for name in self.world.variants if self._varies(name)}
            touched = {key for name in self.varying for key in self.world.variants[name].memory}
            more = {key for key in touched - self.open_domains if not self._is_quiet(key)}
            if not more:
                return
            self.open_domains |= more

    def _is_sure(self, name: str) -> bool:
        variant, role = self.world.variants[name], self.world.roles[name]
        if not variant.installed or self.open_models.intersection(variant.models):
            return False
        if role is LaneRole.FIXED and variant.loaded:
            return True
        return role in (LaneRole.FREE, LaneRole.FIXED) and self.open_domains.isdisjoint(variant.memory)

    def serving(self, alias: str) -> Iterator[str]:
        """Lanes that may serve an alias, in the order of its models."""
        needs = self.world.alias(alias).needs
        for entry in self.world.entries[alias]:
            for name in () if entry.external else self.world.by_model.get(entry.model, ()):
                if self.world.roles[name] is LaneRole.OUT:
                    continue
                if unsuitable(self.world.variants[name], needs) is None:
                    yield name

    def _surely_first(self, alias: str) -> str | None:
        """The lane that answers an alias first whatever is decided; None where that is open, or no lane can."""
        first = next(self.serving(alias), None)
        return first if first in self.sure else None

    def _is_open(self, alias: str) -> bool:
        """Whether a decision can change an alias's route, or what becomes of a lane that it leads to now."""
        now = self.world.current.get(alias, ((), ()))[1]
        lanes = {*self.serving(alias), *(n for n in now if n in self.world.variants)}
        return any(n not in self.sure and self.world.roles[n] is not LaneRole.OUT for n in lanes)

    def _top(self, name: str) -> Residency:
        """The strongest residency a lane may get: what it has or must have, or the wish of an alias it may answer."""
        world, variant = self.world, self.world.variants[name]
        if name in world.hard:
            return _stronger(world.hard[name], variant.residency)
        shared = [residency for lanes, residency in world.shared_pins if name in lanes]
        top = max([variant.residency, *shared], key=lambda r: r.rank)
        for alias in self.naming[name]:
            if alias in world.entries and self.firsts[alias] in (None, name):
                top = _stronger(top, world.alias(alias).residency)
        return top

    def _varies(self, name: str) -> bool:
        """Whether decisions elsewhere can change a lane's residency or whether it starts."""
        world, role = self.world, self.world.roles[name]
        if role is LaneRole.LEAVING or (role is LaneRole.FREE and name not in self.sure):
            return True
        if role is not LaneRole.FREE or name in world.hard:
            return False
        least, routed = Residency.AUTO, False
        for alias in self.naming[name]:
            routed = routed or alias in world.entries
            if self.firsts.get(alias) == name:
                least = _stronger(least, world.alias(alias).residency)
        most = max(
            (world.alias(a).residency for a in self.naming[name] if self.firsts.get(a, "") is None),
            key=lambda r: r.rank,
            default=Residency.AUTO,
        )
        starts = not world.variants[name].loaded or world.variants[name].state is LaneState.LOADING
        open_start = starts and not self.open_aliases.isdisjoint(self.naming[name])
        return most.rank > least.rank or open_start or (not routed and self._open_model_of(name))

    def _open_model_of(self, name: str) -> bool:
        return bool(self.open_models.intersection(self.world.variants[name].models))

    def _is_quiet(self, key: str) -> bool:
        """Whether every rule holds on a domain whatever is decided, and every start fits beside all that is loaded."""
        limit = self.world.limits.get(key)
        if limit is None or limit.limit_mib is None or limit.budget_mib is None:
            return False
        kept = always = loaded = surge = 0
        loads: list[tuple[int, int, int]] = []
        for name in self.lanes_on[key]:
            variant = self.world.variants[name]
            if self.world.roles[name] is LaneRole.LEAVING or self.together.intersection(variant.models):
                return False
            mib, peak = variant.memory[key], variant.peak[key]
            top = self.tops[name] if variant.managed else Residency.ALWAYS
            kept += mib if top is not Residency.AUTO else 0
            always += mib if top is Residency.ALWAYS else 0
            loads.append((mib if top is Residency.ALWAYS else 0, mib, peak))
            if variant.state.holds_memory or self._may_start(name):
                loaded += peak if variant.state is LaneState.LOADING else mib
                surge = max(surge, peak - mib)
        if kept > limit.budget_mib or loaded + surge > limit.limit_mib:
            return False
        return all(
            always - own + mib <= limit.budget_mib and always - own + peak <= limit.limit_mib
            for own, mib, peak in loads
        )

    def _may_start(self, name: str) -> bool:
        """Whether a plan may start a lane: one that is not running, and is kept loaded or takes over from another."""
        if self.world.roles[name] is not LaneRole.FREE:
            return False
        if self.tops[name] is not Residency.AUTO or name in self.world.hard:
            return True
        return any(answering_now(self.world, alias) not in (None, name) for alias in self.naming[name])


def _naming(world: World) -> dict[str, tuple[str, ...]]:
    """Aliases that name a lane's model, or lead to the lane now, by lane."""
    naming: dict[str, dict[str, None]] = {name: {} for name in world.variants}
    for alias, entries in world.entries.items():
        for entry in entries:
            for name in () if entry.external else world.by_model.get(entry.model, ()):
                naming[name][alias] = None
    for alias, (_, lanes) in world.current.items():
        for lane in lanes:
            if lane in naming:
                naming[lane][alias] = None
    return {name: tuple(rows) for name, rows in naming.items()}


def _stronger(one: Residency, other: Residency) -> Residency:
    return one if one.rank >= other.rank else other
