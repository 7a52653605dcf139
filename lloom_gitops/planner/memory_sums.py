"""The memory rules as sums over a choice of residencies (documents.md, Memory): what holds, what fails by how much."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import Residency

from .world import LaneRole, World

UNBOUNDED = 1 << 60


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


def counted_now(variant: Variant) -> bool:
    """Whether a lane's residency counts now: managed lanes as configured, unmanaged ones while they run."""
    return variant.installed and (variant.managed or variant.loaded)


def sums(world: World, residency: Mapping[str, Residency]) -> Sums:
    """Sums of a planned residency by lane."""
    always: dict[str, int] = {}
    preferred: dict[str, int] = {}
    for lane, wanted in residency.items():
        if wanted is Residency.AUTO:
            continue
        target = always if wanted is Residency.ALWAYS else preferred
        for key, mib in world.variants[lane].memory.items():
            target[key] = target.get(key, 0) + mib
    return Sums(always=always, preferred=preferred)


def sums_now(world: World) -> Sums:
    """The same sums as things are now: what is over its bound when a pool is adopted may stay and only shrink."""
    gone = {lane for lane, cause in world.out.items() if cause.reason == "nodeLost"}
    now = {v.id: v.residency for v in world.variants.values() if counted_now(v) and v.id not in gone}
    return sums(world, now)


class MemoryRules(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one world; `now` are today's sums, which a bound is never below."""

    world: World
    now: Sums

    def over_budget(self, planned: Sums) -> tuple[Shortage, ...]:
        """Domains whose always plus preferred lanes exceed what they may be, in order of key."""
        found = []
        for key in sorted(set(planned.always) | set(planned.preferred)):
            need = planned.always.get(key, 0) + planned.preferred.get(key, 0)
            allowed = max(self._budget(key), self.now.always.get(key, 0) + self.now.preferred.get(key, 0))
            if need > allowed:
                found.append(Shortage(rule="residency", domain=key, needs=need, has=allowed))
        return tuple(found)

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
            if self.unloadable(self.world.variants[name], wanted, planned) is not None:
                found |= set(self.world.variants[name].memory)
        for lanes in self.broken_sets(residency, planned):
            found |= {key for name in lanes for key in self.world.variants[name].memory}
        return found

    def unloadable(self, variant: Variant, wanted: Residency, planned: Sums) -> Shortage | None:
        """Why a lane could not be loaded beside the always lanes: the first domain and rule that fails, or None."""
        for key in sorted(variant.memory):
            shortage = self._short_at(variant, wanted, planned, key)
            if shortage is not None:
                return shortage
        return None

    def _short_at(self, variant: Variant, wanted: Residency, planned: Sums, key: str) -> Shortage | None:
        mib, peak = variant.memory[key], variant.peak[key]
        limit = self.world.limits.get(key)
        if limit is None or limit.limit_mib is None:
            known_here = variant.loaded
            return None if known_here else Shortage(rule="onDemand", domain=key, needs=mib, has=0, known=False)
        own = mib if wanted is Residency.ALWAYS else 0
        others = planned.always.get(key, 0) - own
        now_own = mib if variant.residency is Residency.ALWAYS and counted_now(variant) else 0
        others_now = self.now.always.get(key, 0) - now_own
        if wanted is Residency.AUTO:
            allowed = max(self._budget(key), others_now + mib if variant.installed else 0)
            if others + mib > allowed:
                return Shortage(rule="onDemand", domain=key, needs=others + mib, has=allowed)
        allowed = max(limit.limit_mib, others_now + peak if variant.installed else 0)
        if others + peak > allowed:
            return Shortage(rule="loadPeak", domain=key, needs=others + peak, has=allowed)
        return None

    def _budget(self, key: str) -> int:
        limit = self.world.limits.get(key)
        return UNBOUNDED if limit is None or limit.budget_mib is None else limit.budget_mib

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
    return MemoryRules(world=world, now=sums_now(world))
