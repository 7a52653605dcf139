"""The best outcome of a world: what is settled gets what people wish, every part is searched by itself."""

from __future__ import annotations

from math import prod

import msgspec

from lloom_gitops.model.words import Residency

from .branching import JoinedSearch, PartSearch
from .outcome import Choice, ideal_residency
from .packing import packed
from .parts import Part, split
from .prices import FREE, Prices, added
from .search import Found, Search, lane_options
from .world import World

PLACES = 2_000
"""Ways to choose a place for each model, up to which all are tried."""
STATIC = 5
"""Levels that a choice has before its moves are known, and that a bound is given for."""


def find(world: World) -> Found | None:
    """The best outcome of a world, or None where the hard wishes allow none."""
    if any(not variant.installed for variant in world.variants.values()):
        return _with_installs(world)
    return _in_parts(world)


def _with_installs(world: World) -> Found | None:
    """The best outcome with installs: every place is tried where there are few, else one place a model is packed."""
    options = prod(len(rows) for rows in lane_options(world).values())
    if options <= PLACES:
        return Search(world).run()
    found = _in_parts(packed(world))
    if found is None:
        return Search(world).run()
    bound = FREE
    every = Prices(world)
    for alias in world.entries:
        rows = [every.of(alias, a.model, a.lane, Residency.ALWAYS) for a in every.answers(alias, {}, world.variants)]
        bound = added(bound, min([*rows, every.without_lane(alias)]))
    return msgspec.structs.replace(found, exact=False, bound=bound[:5])


def _in_parts(world: World) -> Found | None:
    """The best outcome where every part is searched by itself."""
    whole = JoinedSearch(world)
    lanes = {model: rows[0] for model, rows in lane_options(world).items()}
    wanted = ideal_residency(world, lanes)
    wish = Choice(residency=wanted, lanes=lanes)
    parts = split(world, wanted, whole.unsettled(lanes, wanted))
    searches = [PartSearch(part.world) for part in parts]
    found = [search.run() for search in searches]
    joined = _joined(world, wish, parts, found)
    if joined is None:
        return Search(world).run()
    # A part's own room counts only below that of the tightest domain of all: above it stable ids decide.
    again = [search.within(joined.levels[7]) for search in searches]
    if any(a and b and a.outcome is not b.outcome for a, b in zip(found, again, strict=True)):
        joined = _joined(world, wish, parts, again) or joined
    return joined


def _joined(world: World, wish: Choice, parts: tuple[Part, ...], found: list[Found | None]) -> Found | None:
    """The outcome of all parts' choices together; None where it keeps not every rule."""
    residency, orders = dict(wish.residency), dict(wish.lanes)
    slack = [0] * STATIC
    exact = True
    for part, best in zip(parts, found, strict=True):
        if best is None:
            return None
        choice = best.outcome.choice
        residency.update({name: choice.residency[name] for name in part.lanes if name in residency})
        orders.update({model: choice.lanes[model] for model in part.models if model in orders})
        if not best.exact:
            exact = False
            slack = [s + most - least for s, most, least in zip(slack, best.levels, best.bound, strict=False)]
    joined = JoinedSearch(world).judged(Choice(residency=residency, lanes=orders))
    if joined is None:
        return None
    bound = tuple(level - s for level, s in zip(joined.levels, slack, strict=False))
    engine = next((best.engine for best in found if best is not None and best.engine), None)
    return msgspec.structs.replace(joined, exact=exact, bound=bound, engine=engine)
