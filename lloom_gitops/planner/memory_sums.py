"""The memory rules as sums over a choice of residencies (documents.md, Memory): what holds, what fails by how much."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import Residency

from .world import LaneRole, NodeRole, World


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of always and of preferred footprints by domain key, MiB."""

    always: dict[str, int]
    preferred: dict[str, int]


class Shortage(msgspec.Struct, frozen=True, kw_only=True):
    """What a domain lacks for a lane: `rule` is residency, onDemand or loadPeak; sizes in MiB."""

    rule: str
    domain: str
    needs: int
    has: int
    known: bool = True

    @property
    def short(self) -> int:
        """How much is missing, MiB."""
        return self.needs - self.has


def weight_now(variant: Variant) -> Residency | None:
    """What a lane counts as now: managed ones as configured, hand-run ones as always while they hold memory."""
    if not variant.managed:
        return Residency.ALWAYS if variant.state.holds_memory else None
    if not variant.installed or (variant.latched and not variant.state.holds_memory):
        return None
    return variant.residency


def _weights(world: World, residency: Mapping[str, Residency]) -> dict[str, Residency | None]:
    """What every lane counts as: as planned, and as it is for those that nothing is decided about."""
    weights: dict[str, Residency | None] = {}
    for name, variant in world.variants.items():
        if name in residency:
            weights[name] = residency[name] if variant.managed else weight_now(variant)
        elif _stays_as_is(world, variant):
            weights[name] = weight_now(variant)
    return weights


def _stays_as_is(world: World, variant: Variant) -> bool:
    """Lanes that can't serve and still count: dead or excluded ones, and idle ones on a node that lanes leave."""
    role = world.roles[variant.id]
    if role is LaneRole.OUT:
        frozen = any(world.nodes.get(node) is NodeRole.FROZEN for node in variant.nodes)
        return (frozen and variant.state.holds_memory) or world.out[variant.id].reason != "stoppedByRequest"
    return role is LaneRole.LEAVING and not variant.state.holds_memory


def _sums(world: World, weights: Mapping[str, Residency | None]) -> Sums:
    always: dict[str, int] = {}
    preferred: dict[str, int] = {}
    for lane, weight in weights.items():
        if weight in (None, Residency.AUTO):
            continue
        target = always if weight is Residency.ALWAYS else preferred
        for key, mib in world.variants[lane].memory.items():
            target[key] = target.get(key, 0) + mib
    return Sums(always=always, preferred=preferred)


def sums(world: World, residency: Mapping[str, Residency]) -> Sums:
    """Sums of a planned residency by lane, beside the lanes that stay as they are."""
    return _sums(world, _weights(world, residency))


def raised_sums(world: World, planned: Sums, lane: str, has: Residency, more: Residency) -> Sums:
    """Planned sums with one managed lane's residency raised."""
    always, preferred = dict(planned.always), dict(planned.preferred)
    for key, mib in world.variants[lane].memory.items():
        if has is Residency.PREFERRED:
            preferred[key] = preferred.get(key, 0) - mib
        target = always if more is Residency.ALWAYS else preferred
        target[key] = target.get(key, 0) + mib
    return Sums(always=always, preferred=preferred)


def sums_now(world: World) -> Sums:
    """The same sums as things are now: what is over its bound when a pool is adopted may stay and only shrink."""
    return _sums(world, {name: weight_now(variant) for name, variant in world.variants.items()})


class MemoryRules(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one world. `now` are today's sums; `routed_now` are the lanes in a route now (see `unloadable`)."""

    world: World
    now: Sums
    routed_now: frozenset[str]

    def over_budget(self, planned: Sums) -> tuple[Shortage, ...]:
        """Domains whose always plus preferred lanes exceed what they may be, in order of key."""
        keys = sorted(set(planned.always) | set(planned.preferred))
        return tuple(over for key in keys if (over := self.over_at(key, planned)) is not None)

    def over_at(self, key: str, planned: Sums) -> Shortage | None:
        """By how much always plus preferred lanes exceed what they may be on one domain; None: they don't."""
        need = planned.always.get(key, 0) + planned.preferred.get(key, 0)
        allowed = self._budget(key)
        if need > allowed:
            allowed = max(allowed, self.now.always.get(key, 0) + self.now.preferred.get(key, 0))
        gone = self.world.nodes.get(key.split("/", 1)[0]) is NodeRole.GONE
        return None if need <= allowed or gone else Shortage(rule="residency", domain=key, needs=need, has=allowed)

    def fits_so_far(self, residency: Mapping[str, Residency]) -> bool:
        """Whether the lanes given so far, beside the fixed ones, keep every residency sum."""
        return not self.over_budget(sums(self.world, {**self._fixed(), **residency}))

    def _fixed(self) -> dict[str, Residency]:
        return {n: self.world.variants[n].residency for n, r in self.world.roles.items() if r is LaneRole.FIXED}

    def trouble(self, residency: Mapping[str, Residency]) -> set[str]:
        """Domains on which a residency breaks a sum or leaves a lane that could not be loaded."""
        planned = sums(self.world, {**self._fixed(), **residency})
        found = {shortage.domain for shortage in self.over_budget(planned)}
        for name, wanted in residency.items():
            variant = self.world.variants[name]
            short = self.unloadable(variant, wanted, planned, adopted=True) is not None
            if short and not self.may_stay(variant, wanted, planned):
                found |= set(variant.memory)
        for lanes in self.broken_sets(residency, planned):
            found |= {key for name in lanes for key in self.world.variants[name].memory}
        return found

    def unsettled(self, residency: Mapping[str, Residency]) -> set[str]:
        """Domains in trouble, and those of lanes that could be loaded only for the aliases that lead to them now."""
        found, planned = self.trouble(residency), sums(self.world, {**self._fixed(), **residency})
        for name, role in self.world.roles.items():
            variant = self.world.variants[name]
            open_ = role is LaneRole.FREE or (role is LaneRole.FIXED and not variant.loaded)
            wanted = residency.get(name, variant.residency)
            if open_ and variant.installed and self.unloadable(variant, wanted, planned) is not None:
                found |= set(variant.memory)
        return found

    def may_stay(self, variant: Variant, wanted: Residency, planned: Sums) -> bool:
        """Whether a lane may keep what it has of residency: each of its sums is within its bound, or no more than now.

        That is about what it keeps, not about what it covers (see `unloadable`).
        """
        shortages = (self._short_at(variant, wanted, planned, key, True) for key in sorted(variant.memory))
        kept = wanted is not Residency.AUTO and wanted.rank <= variant.residency.rank
        return kept and not any(shortages)

    def unloadable(
        self, variant: Variant, wanted: Residency, planned: Sums, *, adopted: bool = False
    ) -> Shortage | None:
        """Why a lane could not be loaded beside the always lanes: the first domain and rule that fails, or None.

        A loaded lane may stay over a bound as far as it is now. One that is not loaded may only for the aliases that
        lead to it now (`adopted`): what is over budget when a pool is adopted covers its own aliases, and no others.
        """
        claim = variant.state.holds_memory or (adopted and variant.id in self.routed_now)
        for key in sorted(variant.memory):
            shortage = self._short_at(variant, wanted, planned, key, claim)
            if shortage is not None:
                return shortage
        return None

    def _short_at(self, variant: Variant, wanted: Residency, planned: Sums, key: str, claim: bool) -> Shortage | None:
        mib, peak = variant.memory[key], variant.peak[key]
        limit = self.world.limits.get(key)
        known = limit is not None and limit.limit_mib is not None
        if not known:
            return None if variant.loaded else Shortage(rule="onDemand", domain=key, needs=mib, has=0, known=False)
        own = mib if wanted is Residency.ALWAYS else 0
        others = planned.always.get(key, 0) - own
        now_own = mib if weight_now(variant) is Residency.ALWAYS else 0
        others_now = self.now.always.get(key, 0) - now_own
        if wanted is Residency.AUTO:
            allowed = max(self._budget(key), others_now + mib if claim else 0)
            if others + mib > allowed:
                return Shortage(rule="onDemand", domain=key, needs=others + mib, has=allowed)
        allowed = max(limit.limit_mib or 0 if limit else 0, others_now + peak if claim else 0)
        if others + peak > allowed:
            return Shortage(rule="loadPeak", domain=key, needs=others + peak, has=allowed)
        return None

    def _budget(self, key: str) -> int:
        """The bound of a domain; nothing new where the capacity is unknown, so that only today's sums hold there."""
        limit = self.world.limits.get(key)
        return 0 if limit is None or limit.budget_mib is None else limit.budget_mib

    def broken_sets(self, residency: Mapping[str, Residency], planned: Sums) -> tuple[tuple[str, ...], ...]:
        """Lanes of co-resident sets whose auto lanes can't be loaded together on some domain."""
        broken = []
        for models in self.world.desired.pool.co_resident:
            lanes = [name for name in residency if set(self.world.variants[name].models) & set(models)]
            auto = [name for name in lanes if residency[name] is Residency.AUTO]
            for key in sorted({key for name in auto for key in self.world.variants[name].memory}):
                here = [name for name in auto if key in self.world.variants[name].memory]
                need = sum(self.world.variants[name].memory[key] for name in here)
                if len(here) > 1 and need + planned.always.get(key, 0) > max(
                    self._budget(key), need + self.now.always.get(key, 0)
                ):
                    broken.append(tuple(here))
        return tuple(broken)


def rules_of(world: World) -> MemoryRules:
    """The memory rules of a world."""
    routed = frozenset(lane for _, lanes in world.current.values() for lane in lanes if lane is not None)
    return MemoryRules(world=world, now=sums_now(world), routed_now=routed)
