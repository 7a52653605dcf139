"""What each level of a plan's objective is made of, so that a person sees which alias or lane costs what."""

from __future__ import annotations

import msgspec

from lloom_gitops.model.plan import Costs

from .objective import churn_of, latency, restarted, rooms, static_levels
from .search import Found
from .world import World

_STATIC = ("uncovered", "external", "slo_misses", "order", "below_wish")


def costs(world: World, found: Found) -> Costs:
    """Shares of levels 1 to 6 by alias and lane, and the tightest domain; what costs nothing is left out."""
    outcome = found.outcome
    shares: dict[str, dict[str, int]] = {level: {} for level in (*_STATIC, "latency")}
    for alias, row in outcome.served.items():
        alone = static_levels(world, msgspec.structs.replace(outcome, served={alias: row}))
        waits = latency(world, outcome, alias, row) if row.entries else 0
        for level, cost in zip(shares, (*alone, waits), strict=True):
            if cost:
                shares[level][alias] = cost
    loaded = (*found.change.starts, *found.room.restarts, *restarted(found.change, found.room))
    tightest = min(rooms(world, outcome, found.change), default=None)
    limit = world.limits[tightest[1]] if tightest else None
    return Costs(
        **shares,
        loads={name: cost for name in sorted(loaded) if (cost := churn_of(world, name))},
        tightest=f"{limit.node}/{limit.domain}" if limit else None,
    )
