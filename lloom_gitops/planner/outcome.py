"""From a choice (residencies, and which lane stands for a model) to the planned outcome: coverage, routes, leaving."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import Feature, Residency
from lloom_gitops.reconcile.room import holding

from .leaving import kept_lanes, takes_over, why_retire
from .memory_sums import MemoryRules, Shortage, Sums, sums
from .world import Entry, LaneRole, NodeRole, World, blind, unsuitable


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What the search decides: residency of each free lane, and for each model its lanes in order of preference.

    A variant that needs an install stands in `lanes` only where it is chosen, and then has a residency too.
    """

    residency: dict[str, Residency]
    lanes: dict[str, tuple[str, ...]]


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """An alias's entries that can answer, in order: (model, lane), lane None for external ones.

    `cut` entries could answer too, but the head's gateway build can't express them (REC-12).
    """

    entries: tuple[tuple[str, str | None], ...]
    cut: tuple[tuple[str, str | None], ...] = ()

    @property
    def first(self) -> str | None:
        """The lane that answers first; None where nothing or only an external model does."""
        return self.entries[0][1] if self.entries else None

    @property
    def external_only(self) -> bool:
        """Whether only external models answer."""
        return bool(self.entries) and all(lane is None for _, lane in self.entries)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A planned outcome that keeps every hard rule, except that `wished` may not be met yet (see `excess`).

    `residency` covers free, fixed and staying lanes; `shortages` says why a lane can't be loaded; `held` aliases are
    served only by a lane that stays on a cordoned node; `leaving` lanes go.
    """

    choice: Choice
    residency: dict[str, Residency]
    shortages: dict[str, Shortage]
    served: dict[str, Served]
    held: tuple[str, ...]
    leaving: tuple[str, ...]
    staying: tuple[str, ...]
    wished: dict[str, Residency]
    hard: dict[str, Residency] = {}

    @property
    def routed(self) -> frozenset[str]:
        """Lanes in any planned route."""
        return frozenset(lane for row in self.served.values() for _, lane in row.entries if lane is not None)

    def route(self, alias: str) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
        """Route and lanes of an alias."""
        entries = self.served[alias].entries
        return tuple(model for model, _ in entries), tuple(lane for _, lane in entries)


def evaluate(world: World, rules: MemoryRules, choice: Choice, *, ignore_memory: bool = False) -> Outcome | None:
    """The outcome of a choice, or None where a memory rule is broken: a sum, or a lane kept loaded that can't load.

    With `ignore_memory` every domain is boundless: what people would get if memory were no matter (a lower bound).
    """
    residency = dict(choice.residency)
    for name, role in world.roles.items():
        if role is LaneRole.FIXED:
            residency[name] = world.variants[name].residency
    planned = sums(world, residency)
    if not ignore_memory and (rules.over_budget(planned) or rules.broken_sets(residency, planned)):
        return None
    able = Able(usable=set(), adopted=set(), shortages={})
    for name, wanted in residency.items():
        _sort_lane(world, rules, planned, name, wanted, able, ignore_memory=ignore_memory)
    served, held, staying = _serve(world, choice, able, _can_stay(world, rules))
    routed = {lane for row in served.values() for _, lane in row.entries}
    for name in (*able.shortages, *(able.adopted - routed)):
        kept_loaded = residency[name] is not Residency.AUTO and world.roles[name] is LaneRole.FREE
        if kept_loaded and not rules.may_stay(world.variants[name], residency[name], planned):
            return None
    for name in staying:
        residency[name] = world.variants[name].residency
    leaving = tuple(name for name, role in world.roles.items() if role is LaneRole.LEAVING and name not in staying)
    return Outcome(
        choice=choice,
        residency=dict(sorted(residency.items())),
        shortages=able.shortages,
        served=served,
        held=held,
        leaving=leaving,
        staying=staying,
        wished=_wishes(world, served, residency),
        hard=hard_here(world, routed),
    )


class Able(msgspec.Struct, kw_only=True):
    """Lanes by whether they can be loaded: for any alias, only for those that lead to them now, or not at all."""

    usable: set[str]
    adopted: set[str]
    shortages: dict[str, Shortage]

    def but(self, lane: str) -> Able:
        """The same without one lane."""
        return Able(usable=self.usable - {lane}, adopted=self.adopted - {lane}, shortages=self.shortages)

    def beside(self, lanes: Collection[str]) -> Able:
        """The same with lanes that stay where none should be: they keep their routes and get no new ones."""
        return Able(usable=self.usable, adopted=self.adopted | set(lanes), shortages=self.shortages)


def _sort_lane(
    world: World,
    rules: MemoryRules,
    planned: Sums,
    name: str,
    wanted: Residency,
    able: Able,
    *,
    ignore_memory: bool,
) -> None:
    variant = world.variants[name]
    as_it_is = ignore_memory or (world.roles[name] is LaneRole.FIXED and variant.loaded)
    shortage = None if as_it_is else rules.unloadable(variant, wanted, planned)
    if shortage is None:
        able.usable.add(name)
    elif rules.unloadable(variant, wanted, planned, adopted=True) is None:
        able.adopted.add(name)
    else:
        able.shortages[name] = shortage


def _serve(
    world: World, choice: Choice, able: Able, may_stay: list[str]
) -> tuple[dict[str, Served], tuple[str, ...], tuple[str, ...]]:
    """Routes without the lanes that leave; then the cordoned lanes that an alias can't do without stay (level 1)."""
    served = {alias: _served(world, choice, alias, able) for alias in world.entries}
    bare = {alias for alias in served if not served[alias].entries}
    staying = _staying(world, choice, able, may_stay) if bare or may_stay else []
    if staying:
        served = {alias: _served(world, choice, alias, able.beside(staying)) for alias in world.entries}
    held = tuple(alias for alias in served if alias in bare and served[alias].entries)
    return served, held, tuple(staying)


def _staying(world: World, choice: Choice, able: Able, may_stay: list[str]) -> list[str]:
    """Lanes on cordoned nodes that stay: no alias names them, or one that does has nothing without them."""
    naming = {
        name: [alias for alias, entries in world.entries.items() if _names(entries, world.variants[name])]
        for name in may_stay
    }

    def needed(name: str) -> bool:
        others = able.beside(staying).but(name)
        rest = [alias for alias in naming[name] if not _served(world, choice, alias, others).entries]
        return not naming[name] or bool(rest)

    staying: list[str] = []
    for name in may_stay:
        if needed(name):
            staying.append(name)
    for name in list(staying):  # one that was needed before others stayed may go after all
        if not needed(name):
            staying.remove(name)
    return staying


def _can_stay(world: World, rules: MemoryRules) -> list[str]:
    """Lanes on cordoned (not draining) nodes that could go on serving: loaded, or loadable on request."""
    return [
        name
        for name in _leaving(world)
        if not _must_go(world, world.variants[name])
        and (
            world.variants[name].loaded
            or rules.unloadable(world.variants[name], world.variants[name].residency, rules.now, adopted=True) is None
        )
    ]


def _leaving(world: World) -> list[str]:
    return [name for name, role in world.roles.items() if role is LaneRole.LEAVING]


def _names(entries: tuple[Entry, ...], variant: Variant) -> bool:
    return any(not entry.external and entry.model in variant.models for entry in entries)


def _must_go(world: World, variant: Variant) -> bool:
    """A draining node's lanes go whatever they serve; a lane on a cordoned one may have to stay."""
    return any(world.nodes.get(node) is NodeRole.DRAINING for node in variant.nodes)


def _served(world: World, choice: Choice, alias: str, able: Able) -> Served:
    entries: list[tuple[str, str | None]] = []
    externals: list[tuple[str, str | None]] = []
    for entry in world.entries[alias]:
        if entry.external:
            externals.append((entry.model, None))
            continue
        lane = _lane_for(world, choice, alias, entry.model, able)
        if lane is not None:
            entries.append((entry.model, lane))
    every = tuple(entries + externals)
    one = not world.has_feature(world.head, Feature.ROUTE_MEMBERS)
    return Served(entries=every[:1], cut=every[1:]) if one else Served(entries=every)


def _lane_for(world: World, choice: Choice, alias: str, model: str, able: Able) -> str | None:
    """The first usable lane of a model, in the choice's order, that meets the alias's needs."""
    needs = world.alias(alias).needs
    now = world.current.get(alias, ((), ()))[1]
    order = choice.lanes.get(model) or world.by_model.get(model, ())
    for name in order:
        if (name in able.usable or (name in able.adopted and name in now)) and unsuitable(
            world.variants[name], needs
        ) is None:
            return name
    return None


def _wishes(world: World, served: dict[str, Served], residency: dict[str, Residency]) -> dict[str, Residency]:
    """What people wish of each free lane: hard, the strongest of the aliases it answers first, auto, or as it is."""
    wished: dict[str, Residency] = {}
    for alias, row in served.items():
        for position, (_, lane) in enumerate(row.entries):
            if lane is None:
                continue
            wish = world.alias(alias).residency if position == 0 else Residency.AUTO
            wished[lane] = max(wished.get(lane, Residency.AUTO), wish, key=lambda r: r.rank)
    up = _up(world, served, wished)
    routed = {*wished, *kept_lanes(world, [alias for alias, row in served.items() if row.entries])}
    hard = hard_here(world, wished)
    result = {}
    for name in residency:
        if world.roles[name] is not LaneRole.FREE:
            continue
        wish = hard.get(name) or wished.get(name) or _unrouted_wish(world, name, routed, up)
        result[name] = _expressible(world, name, wish, asked=name in hard)
    return result


def _expressible(world: World, lane: str, wish: Residency, *, asked: bool) -> Residency:
    """A wish planned down to what can be done, unless people ask for this very lane.

    Nothing is added where the capacity is unknown, and builds without `residency` know only always and auto (REC-12).
    """
    variant = world.variants[lane]
    if wish.rank > variant.residency.rank and blind(world, lane) and not asked:
        return variant.residency
    old = not world.has_feature(variant.owner, Feature.RESIDENCY) and not asked
    if old and variant.loaded and not _can_restart(world, variant):
        return variant.residency
    if wish is Residency.PREFERRED and old and variant.residency is not wish:
        return Residency.AUTO
    return wish


def hard_here(world: World, routed: Collection[str | None]) -> dict[str, Residency]:
    """Residencies that pins and the profile demand.

    A pin that fits several lanes means those that routes lead to; where none does, one that has the residency already.
    """
    hard = dict(world.hard)
    for lanes, residency in world.shared_pins:
        free = [lane for lane in lanes if world.roles[lane] is LaneRole.FREE] or list(lanes)
        has_it = [lane for lane in free if world.variants[lane].residency is residency]
        hard.update({lane: residency for lane in free if lane in routed} or {(has_it or free)[0]: residency})
    return hard


def _can_restart(world: World, variant: Variant) -> bool:
    """Whether a lane's load peak fits beside what is loaded, so that an edit which restarts it may be planned."""
    for key, peak in variant.peak.items():
        limit = world.limits[key].limit_mib if key in world.limits else None
        others = sum(holding(other).get(key, 0) for other in world.variants.values() if other.id != variant.id)
        if limit is not None and others + peak > limit:
            return False
    return True


def _up(world: World, served: dict[str, Served], wished: dict[str, Residency]) -> set[str]:
    """Routed lanes that are loaded now, or that the outcome loads: always lanes, and those that take over."""
    taking = {row.first for alias, row in served.items() if row.first and takes_over(world, row.first, alias)}
    loaded = {name for name in wished if world.variants[name].loaded or wished[name] is Residency.ALWAYS}
    return loaded | taking


def _unrouted_wish(world: World, lane: str, routed: Collection[str], up: set[str]) -> Residency:
    """A lane in no route keeps what it has, unless it is stopped for good: then it must not be loaded again."""
    variant = world.variants[lane]
    return variant.residency if why_retire(world, variant, routed, up) is None else Residency.AUTO


def ideal_residency(world: World, lanes: dict[str, tuple[str, ...]]) -> dict[str, Residency]:
    """Residency of every free lane if memory were no matter: exactly what people wish."""
    chosen = {row[0] for row in lanes.values() if row}
    able = {
        name
        for name, role in world.roles.items()
        if role in (LaneRole.FREE, LaneRole.FIXED) and (world.variants[name].installed or name in chosen)
    }
    everything = Able(usable=able, adopted=set(), shortages={})
    served, _, _ = _serve(world, Choice(residency={}, lanes=lanes), everything, _leaving(world))
    now = {name: world.variants[name].residency for name in sorted(able)}
    return _wishes(world, served, now)


def excess(outcome: Outcome) -> str | None:
    """A free lane that has more than people wish, or not exactly what a pin or profile asks; None: no such lane."""
    for name, wish in outcome.wished.items():
        has = outcome.residency[name]
        if has.rank > wish.rank or (name in outcome.hard and has is not wish):
            return name
    return None
