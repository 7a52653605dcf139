"""Packing: one place for each recipe that could be installed, where there are too many places to try them all.

Models go in order of the priority that people give them, large ones first; each takes the tightest place that holds it
at the residency wished of it, or else one where a request can load it. What is chosen is then searched like any pool.
"""

from __future__ import annotations

import msgspec

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import Residency

from .memory_sums import sums_now
from .world import LaneRole, World, lanes_by_domain, unsuitable


class Space:
    """Memory left on each domain for kept and for always lanes, and the largest lane that a request must still find."""

    def __init__(self, world: World) -> None:
        now = sums_now(world)
        self.budget = {key: limit.budget_mib or 0 for key, limit in world.limits.items()}
        self.limit = {key: limit.limit_mib or 0 for key, limit in world.limits.items()}
        self.kept = {key: now.always.get(key, 0) + now.preferred.get(key, 0) for key in self.budget}
        self.always = {key: now.always.get(key, 0) for key in self.budget}
        self.slot = dict.fromkeys(self.budget, 0)

    def spare(self, variant: Variant, residency: Residency) -> int | None:
        """MiB that a place leaves in its tightest domain, None where the variant does not fit there."""
        rooms = []
        for key, mib in variant.memory.items():
            if self.always[key] + variant.peak[key] > self.limit[key] or self.always[key] + mib > self.budget[key]:
                return None
            if residency is Residency.ALWAYS and self.always[key] + mib + self.slot[key] > self.budget[key]:
                return None
            used = self.kept[key] if residency is not Residency.AUTO else self.always[key]
            rooms.append(self.budget[key] - used - mib)
        return min(rooms) if min(rooms) >= 0 else None

    def take(self, variant: Variant, residency: Residency) -> None:
        """Count a variant in."""
        for key, mib in variant.memory.items():
            if residency is Residency.AUTO:
                self.slot[key] = max(self.slot[key], mib)
            else:
                self.kept[key] += mib
                self.always[key] += mib if residency is Residency.ALWAYS else 0


def packed(world: World) -> World:
    """The world with at most one variant to install for each model that no lane serves, and none for the others."""
    space, chosen = Space(world), set[str]()
    for model in sorted(world.aliases_of, key=lambda model: _rank(world, model)):
        names = [name for name in world.by_model.get(model, ()) if world.roles[name] is not LaneRole.OUT]
        if not names or chosen.intersection(names) or any(world.variants[name].installed for name in names):
            continue
        best = _best_fit(world, space, model, names)
        if best is not None:
            chosen.add(best[0])
            space.take(world.variants[best[0]], best[1])
    variants = {name: row for name, row in world.variants.items() if row.installed or name in chosen}
    by_model = {model: tuple(name for name in names if name in variants) for model, names in world.by_model.items()}
    return msgspec.structs.replace(
        world,
        variants=variants,
        roles={name: world.roles[name] for name in variants},
        out={name: cause for name, cause in world.out.items() if name in variants},
        by_model={model: names for model, names in by_model.items() if names},
        lanes_on=lanes_by_domain(variants),
        pinned={
            model: kept
            for model, names in world.pinned.items()
            if (kept := tuple(name for name in names if name in variants))
        },
    )


def _rank(world: World, model: str) -> tuple[int, int, str]:
    """The most wanted models first, of these the largest."""
    firsts = [alias for alias in world.aliases_of[model] if world.entries[alias][0].model == model]
    size = max((sum(world.variants[name].memory.values()) for name in world.by_model.get(model, ())), default=0)
    return (-max((world.alias(alias).priority for alias in firsts), default=0), -size, model)


def _best_fit(world: World, space: Space, model: str, names: list[str]) -> tuple[str, Residency] | None:
    """The tightest place at the strongest residency that some alias wishes and some place has room for."""
    aliases = world.aliases_of[model]
    firsts = [alias for alias in aliases if world.entries[alias][0].model == model]
    wishes = {world.alias(alias).residency for alias in firsts} | {Residency.AUTO}
    top = max(wishes, key=lambda residency: residency.rank)
    suits = [n for n in names if any(unsuitable(world.variants[n], world.alias(a).needs) is None for a in aliases)]
    for residency in (Residency.ALWAYS, Residency.PREFERRED, Residency.AUTO):
        if residency.rank > top.rank:
            continue
        fits = [(spare, n) for n in suits if (spare := space.spare(world.variants[n], residency)) is not None]
        if fits:
            return min(fits)[1], residency
    return None
