"""The best outcome of a world: what is settled gets what people wish, every part is searched by itself."""

from __future__ import annotations

import msgspec

from .branching import JoinedSearch, PartSearch
from .outcome import Choice, ideal_residency
from .parts import Part, split
from .search import Found, Search, lane_options
from .world import World

STATIC = 5
"""Levels that a choice has before its moves are known, and that a bound is given for."""


def find(world: World) -> Found | None:
    """The best outcome of a world, or None where the hard wishes allow none."""
    if any(not variant.installed for variant in world.variants.values()):
        return Search(world).run()
    whole = JoinedSearch(world)
    lanes = {model: rows[0] for model, rows in lane_options(world).items()}
    wanted = ideal_residency(world, lanes)
    wish = Choice(residency=wanted, lanes=lanes)
    parts = split(world, wanted, whole.unsettled(lanes, wanted))
    found = [(part, PartSearch(part.world).run()) for part in parts]
    joined = _joined(world, wish, found)
    if joined is None:
        return Search(world).run()
    again = [(part, best if _lowest(best, joined) else _within(part, joined)) for part, best in found]
    if any(one is not other for (_, one), (_, other) in zip(found, again, strict=True)):
        joined = _joined(world, wish, again) or joined
    return joined


def _joined(world: World, wish: Choice, found: list[tuple[Part, Found | None]]) -> Found | None:
    """The outcome of all parts' choices together; None where it keeps not every rule."""
    residency, orders = dict(wish.residency), dict(wish.lanes)
    slack = [0] * STATIC
    exact = True
    for part, best in found:
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
    return msgspec.structs.replace(joined, exact=exact, bound=bound)


def _lowest(best: Found | None, joined: Found) -> bool:
    """Whether a part's own tightest domain is the tightest of all, so that its last level is already fixed."""
    return best is None or best.levels[7] >= joined.levels[7]


def _within(part: Part, joined: Found) -> Found | None:
    """A part's best outcome where room above the tightest of the whole is worth nothing: only stable ids decide."""
    return PartSearch(part.world, room=joined.levels[7]).run()
