"""Splits a world into parts that are searched each by itself, and joins their choices.

Lanes belong together where one decision can touch both: they share an open domain (`coupling`), or an open alias names
both. What is settled needs no search: it gets what people wish. Levels 1 to 7 of the whole are the sums over the parts
and what is settled; level 8 is the maximum over them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lloom_gitops.model.desired import Lane as LaneDocument
from lloom_gitops.model.words import Residency

from .coupling import Coupling
from .world import LaneRole, World, aliases_by_model, lanes_by_domain


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a world as a small world of its own, and the lanes and models that it decides.

    Other lanes stand in it for their memory (fixed) or for what they serve (with a hard residency).
    """

    world: World
    lanes: tuple[str, ...]
    models: tuple[str, ...]


def split(world: World, wanted: dict[str, Residency], trouble: set[str]) -> tuple[Part, ...]:
    """The parts around the domains in trouble, by their first lane. `wanted` is what people wish of every free lane."""
    coupling = Coupling(world, trouble)
    return tuple(
        Part(world=cut(world, wanted, coupling, lanes), lanes=lanes, models=_models(world, lanes))
        for lanes in _groups(world, coupling)
    )


def _groups(world: World, coupling: Coupling) -> list[tuple[str, ...]]:
    """Lanes that belong together, sorted; the groups by their first lane."""
    joined = Joined()
    for name in coupling.varying:
        for key in world.variants[name].memory:
            joined.join(name, f"domain {key}")
    for key in coupling.open_domains:
        for name in coupling.lanes_on[key]:
            joined.join(name, f"domain {key}")
    for alias in coupling.open_aliases:
        for lane in (*coupling.serving(alias), *world.current.get(alias, ((), ()))[1]):
            if lane is not None and lane in coupling.varying:
                joined.join(lane, f"alias {alias}")
    for models in (*world.desired.pool.co_resident, *((model,) for model in sorted(coupling.open_models))):
        for name in (lane for model in models for lane in world.by_model.get(model, ())):
            joined.join(name, f"models {models[0]}")
    return joined.groups(world.variants)


class Joined:
    """Names that belong together (disjoint sets)."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def join(self, one: str, other: str) -> None:
        """Put two names, and all that belongs to either, together."""
        first, second = sorted((self._root(one), self._root(other)))
        self._above[second] = first

    def _root(self, name: str) -> str:
        self._above.setdefault(name, name)
        while self._above[name] != name:
            self._above[name] = self._above[self._above[name]]
            name = self._above[name]
        return name

    def groups(self, names: Iterable[str]) -> list[tuple[str, ...]]:
        """The sets of those names that were joined with something, each sorted, by their first name."""
        found: dict[str, list[str]] = {}
        for name in sorted(names):
            if name in self._above:
                found.setdefault(self._root(name), []).append(name)
        return sorted(tuple(group) for group in found.values())


def _models(world: World, lanes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({model for name in lanes for model in world.variants[name].models}))


def cut(world: World, wanted: dict[str, Residency], coupling: Coupling, group: tuple[str, ...]) -> World:
    """The world of a group: its lanes, the aliases that name them with all their lanes, and what shares a domain.

    Lanes that are not of the group have what is `wanted` of them.
    """
    own = set(group)
    aliases = {alias for name in group for alias in coupling.naming[name]}
    named = {lane for alias in aliases if alias in world.entries for lane in _lanes_of(world, alias)} - own
    touched = {key for name in group for key in world.variants[name].memory}
    mates = {lane for key in touched for lane in coupling.lanes_on[key]} - own - named
    lanes = sorted(own | named | mates)
    settled = {name: wanted[name] for name in named if name in wanted and world.roles[name] is LaneRole.FREE}
    variants = {name: world.variants[name] for name in lanes}
    roles = {name: world.roles[name] for name in lanes}
    for name in mates:
        if roles[name] is LaneRole.FREE:
            roles[name] = LaneRole.FIXED
            variants[name] = msgspec.structs.replace(
                variants[name], residency=wanted[name], declared=LaneDocument(), started_by_agent=False
            )
    declared = {alias: world.desired.aliases[alias] for alias in sorted(aliases) if alias in world.entries}
    by_model: dict[str, list[str]] = {}
    for name in lanes:
        for model in variants[name].models:
            by_model.setdefault(model, []).append(name)
    keys = {key for name in lanes for key in variants[name].memory}
    entries = {alias: world.entries[alias] for alias in declared}
    return msgspec.structs.replace(
        world,
        desired=msgspec.structs.replace(world.desired, aliases=declared),
        limits={key: limit for key, limit in world.limits.items() if key in keys},
        variants=variants,
        roles=roles,
        out={name: cause for name, cause in world.out.items() if name in variants},
        entries=entries,
        lanes_on=lanes_by_domain(variants),
        aliases_of=aliases_by_model(entries),
        by_model={model: tuple(names) for model, names in sorted(by_model.items())},
        current=_routes_now(world, aliases, variants.keys()),
        hard=dict(sorted({**settled, **{n: r for n, r in world.hard.items() if n in variants}}.items())),
        shared_pins=tuple(row for row in world.shared_pins if all(name in variants for name in row[0])),
        pinned={model: lanes for model, lanes in world.pinned.items() if own.intersection(lanes)},
    )


def _lanes_of(world: World, alias: str) -> set[str]:
    """Every lane of an alias's models, and those behind its route now."""
    models = [entry.model for entry in world.entries[alias] if not entry.external]
    lanes = {name for model in models for name in world.by_model.get(model, ())}
    return lanes | {n for n in world.current.get(alias, ((), ()))[1] if n is not None and n in world.variants}


def _routes_now(
    world: World, aliases: set[str], lanes: Iterable[str]
) -> dict[str, tuple[tuple[str, ...], tuple[str | None, ...]]]:
    """Routes of these aliases; of those that are not declared here only the entries with these lanes (they stay)."""
    known = set(lanes)
    routes = {}
    for alias in sorted(aliases & world.current.keys()):
        route, behind = world.current[alias]
        if alias not in world.entries:
            kept = [(model, lane) for model, lane in zip(route, behind, strict=False) if lane in known]
            route, behind = tuple(model for model, _ in kept), tuple(lane for _, lane in kept)
        routes[alias] = (route, behind)
    return routes
