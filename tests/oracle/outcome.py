"""A planned outcome on paper: routes, residencies, lanes stopped for good; its wishes and its memory sums."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from lloom_gitops.model.words import Residency

from .world import LaneFacts, Route, World

ALWAYS, PREFERRED, AUTO = Residency.ALWAYS, Residency.PREFERRED, Residency.AUTO


@dataclass(frozen=True)
class Outcome:
    """Where a plan leads: every alias's route, every managed lane's residency, and the lanes stopped for good."""

    world: World
    routes: Mapping[str, Route]
    residency: Mapping[str, Residency]
    gone: frozenset[str]
    wishes: frozenset[str] = frozenset()
    """Keys of the hard wishes that are met; the others are suspended."""

    @property
    def pins(self) -> list[str]:
        """The pins among them: each puts a model in one place."""
        return [key for key in self.wishes if not key.startswith("=")]

    def names(self, lane: LaneFacts) -> list[str]:
        """Keys of the hard wishes in force that name a lane."""
        return [key for key in sorted(self.wishes) if self.world.named(key, lane)]

    def demanded(self, lane: LaneFacts) -> Residency | None:
        """The residency that a hard wish demands of this very lane."""
        ranks = [(key, rank) for key in self.names(lane) if (rank := self.world.hard[key].residency) is not None]
        if lane.id in self.routed_by_us:
            return ranks[0][1] if ranks else None
        # No route leads to it: it may be the one that the wish rests on.
        resting = {rank for key, rank in ranks if key in self.rests_on(lane)}
        return self.residency[lane.id] if self.residency[lane.id] in resting else None

    def rests_on(self, lane: LaneFacts) -> list[str]:
        """Keys of the hard wishes in force that name a lane, and no lane that a route leads to."""
        lanes = self.world.lanes
        return [
            key
            for key in self.names(lane)
            if not any(self.world.named(key, lanes[other]) for other in self.routed_by_us)
        ]

    # -- routes

    @cached_property
    def kept_routes(self) -> dict[str, Route]:
        """Routes at the head that stay as they are: of aliases that nothing serves, or that are not declared."""
        world = self.world
        names = [name for name, route in self.routes.items() if not route]
        if world.desired.unlisted == "keep":
            names += [name for name in world.inventory.aliases if name not in world.aliases]
        return {name: now for name in names if (now := world.route_now(name))}

    @cached_property
    def routed(self) -> frozenset[str]:
        """Lanes in any route once the plan is done."""
        every = [*self.routes.values(), *self.kept_routes.values()]
        return frozenset(lane for route in every for _, lane in route if lane)

    @cached_property
    def routed_by_us(self) -> frozenset[str]:
        """Lanes in a planned route."""
        return frozenset(lane for route in self.routes.values() for _, lane in route if lane)

    @cached_property
    def relied_on(self) -> frozenset[str]:
        """Lanes that some alias counts on: in a planned route, or in one that is not ours to change."""
        foreign = {lane for name, route in self.kept_routes.items() if name not in self.routes for _, lane in route}
        return self.routed_by_us | {lane for lane in foreign if lane}

    @cached_property
    def leads_anew(self) -> frozenset[str]:
        """Lanes that some alias is led to that is not led there now."""
        return frozenset(
            lane
            for name, route in self.routes.items()
            for _, lane in route
            if lane and lane not in {behind for _, behind in self.world.aliases[name].now or ()}
        )

    def held(self, alias: str) -> bool:
        """Only lanes that should leave their node serve it, and no external model could."""
        route = self.routes[alias]
        if not route or any(external for _, external in self.world.aliases[alias].order):
            return False
        return all(lane is not None and self.world.lanes[lane].leaving for _, lane in route)

    # -- memory

    def weight(self, lane: LaneFacts) -> Residency | None:
        """What a lane counts as in memory sums; None: nothing."""
        if lane.id in self.gone or (not lane.holds and (lane.latched or lane.asked_stopped)):
            return None
        if not lane.managed:
            return ALWAYS if lane.holds else None
        return self.residency[lane.id]

    def sums_hold(self) -> bool:
        """Every sum of every domain is within the larger of its bound and the same sum as things are now."""
        return all(Domain(self, key).holds() for key in self.world.limits)

    # -- wishes

    def wish(self, lane: LaneFacts) -> Residency:
        """The strongest residency that people wish of a lane: hard, or by its aliases; in no route it keeps its own.

        Of several lanes that a hard wish names, those that routes lead to have its residency, or else one of them.
        """
        hard = self.demanded(lane)
        if hard is not None:
            return hard
        ranks = [
            self.world.aliases[name].wish.residency if route[0][1] == lane.id else AUTO
            for name, route in self.routes.items()
            if lane.id in {behind for _, behind in route}
        ]
        wish = max(ranks, key=lambda rank: rank.rank, default=lane.residency)
        # REC-12: builds without `residency` know only always and auto; what is preferred there stays so.
        unknown = wish is Residency.PREFERRED and lane.edit_restarts
        return AUTO if unknown and lane.residency is not wish else wish


def weight_now(lane: LaneFacts) -> Residency | None:
    """What a lane counts as in memory sums as things are now."""
    if not lane.managed:
        return ALWAYS if lane.holds else None
    return None if lane.latched and not lane.holds else lane.residency


class Domain:
    """The sums of one memory domain (documents.md, Memory)."""

    def __init__(self, outcome: Outcome, key: str) -> None:
        self.limit, self.budget = outcome.world.limits[key]
        self.key = key
        self.outcome = outcome
        self.lanes = [lane for lane in outcome.world.lanes.values() if key in lane.memory]
        self.after = {lane.id: outcome.weight(lane) for lane in self.lanes}
        self.now = {lane.id: weight_now(lane) for lane in self.lanes}

    def holds(self) -> bool:
        """Residency sums, on-demand sums, co-resident sets, load peaks."""
        outcome = self.outcome
        both = (ALWAYS, PREFERRED)
        if self.total(self.after, both) > max(self.budget, self.total(self.now, both)):
            return False
        usable = [
            lane
            for lane in self.lanes
            if lane.managed
            and not lane.dead
            and self.after[lane.id] is not None
            and (self.after[lane.id] is not AUTO or lane.id in outcome.relied_on)
        ]
        # What is over a bound covers the aliases that lead to it now, or any while it is loaded.
        adopted = {lane.id for lane in usable if lane.holds or lane.id not in outcome.leads_anew}
        autos = [lane for lane in usable if self.after[lane.id] is AUTO]
        groups = [
            [lane for lane in autos if set(lane.models) & set(models)]
            for models in outcome.world.desired.pool.co_resident
        ]
        return all(
            self.within(self.budget, group, sum(lane.memory[self.key] for lane in group), adopted)
            for group in [*([lane] for lane in autos), *filter(None, groups)]
        ) and all(self.within(self.limit, [lane], lane.peak[self.key], adopted) for lane in usable)

    def total(
        self, weights: Mapping[str, Residency | None], ranks: tuple[Residency, ...], but: Collection[str] = ()
    ) -> int:
        """MiB of the lanes of these residencies, without some."""
        return sum(lane.memory[self.key] for lane in self.lanes if weights[lane.id] in ranks and lane.id not in but)

    def within(self, bound: int, group: list[LaneFacts], add: int, adopted: set[str]) -> bool:
        """The always lanes but `group`, and `add` for the group, against the bound; what is adopted may be over it."""
        names = {lane.id for lane in group}
        if names <= adopted:
            bound = max(bound, self.total(self.now, (ALWAYS,), names) + add)
        return self.total(self.after, (ALWAYS,), names) + add <= bound
