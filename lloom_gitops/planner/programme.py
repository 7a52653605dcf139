"""A world's choice of residencies as an integer programme, level by level: for bounds, and for solvers to compare with.

Each alias is answered by one lane at one residency, or by none. A lane on request needs its memory beside all always
lanes of its domains, kept lanes share the budget, and each load needs its peak below the limit (documents.md, Memory).
A lane that can be loaded is ready, and no later model answers before it. What loads cost is left out, so that the least
levels 1 to 6 are never above those of the best outcome.
"""

from __future__ import annotations

import msgspec

from lloom_gitops.model.words import Residency

from .memory_sums import sums, weight_now
from .optimist import Optimist
from .world import LaneRole

LEVELS = 6


class Column(msgspec.Struct, frozen=True):
    """A variable from 0 to 1. `cost` is what it adds to each level."""

    name: tuple[str, ...]
    whole: bool
    cost: tuple[int, ...]


class Bound(msgspec.Struct, frozen=True):
    """A row: the sum of (column, factor) is at most `most`, and at least `least` where that is given."""

    terms: tuple[tuple[int, int], ...]
    most: int
    least: int | None = None


class Programme:
    """Columns and rows of an optimist's world: the residencies and answers that it takes for possible."""

    def __init__(self, optimist: Optimist) -> None:
        world = self.world = optimist.world
        self.rules = optimist.rules
        self.optimist = optimist
        free = (name for name, role in world.roles.items() if role is LaneRole.FREE and name in optimist.able)
        self.open = {name: optimist.open[name] for name in sorted(free)}
        self.columns: list[Column] = []
        self.rows: list[Bound] = []
        self.kept: dict[tuple[str, Residency], int] = {}
        self.ready: dict[str, int] = {}
        for name in self.open:
            self._lane(name)
        for alias in world.entries:
            self._alias(alias)
        for key in world.lanes_on:
            self._domain(key)

    def _column(self, name: tuple[str, ...], *, whole: bool, cost: tuple[int, ...] = (0,) * LEVELS) -> int:
        self.columns.append(Column(name, whole, cost))
        return len(self.columns) - 1

    def _lane(self, name: str) -> None:
        """One residency of those open; on request, whether it is ready to be loaded."""
        for residency in self.open[name]:
            self.kept[name, residency] = self._column(("lane", name, residency.value), whole=True)
        once = tuple((self.kept[name, residency], 1) for residency in self.open[name])
        self.rows.append(Bound(once, 1, 1 if self.world.variants[name].installed else None))
        if (name, Residency.AUTO) in self.kept:
            self.ready[name] = self._column(("ready", name), whole=True)
            self.rows.append(Bound(((self.ready[name], 1), (self.kept[name, Residency.AUTO], -1)), 0))

    def _alias(self, alias: str) -> None:
        """Who answers first: a lane that may, at a residency that it has, or none."""
        prices, terms = self.optimist.prices, []
        if not self.optimist.surely_answered(alias):
            terms.append(self._column(("none", alias), whole=True, cost=prices.without_lane(alias)))
        later: list[tuple[int, int]] = [(column, 1) for column in terms]
        for answer in reversed(self.optimist.first_answers(alias)):
            given = self.open.get(answer.lane, [self.world.variants[answer.lane].residency])
            uses = self._uses(answer.lane) if self._plain(answer.lane) else []
            if uses and later:
                self.rows.append(Bound((*later, *((column, 1) for column in uses)), 1))
            for residency in given:
                cost = prices.of(alias, answer.model, answer.lane, residency)
                column = self._column(("answer", alias, answer.lane, residency.value), whole=True, cost=cost)
                later.append((column, 1))
                gate = self.kept.get((answer.lane, residency))
                gate = self.ready.get(answer.lane, gate) if residency is Residency.AUTO else gate
                if gate is not None:
                    self.rows.append(Bound(((column, 1), (gate, -1)), 0))
        self.rows.append(Bound(tuple(later), 1, 1))

    def _uses(self, name: str) -> list[int]:
        """Columns of which one is 1 where a lane can be loaded."""
        kept = [self.kept[name, r] for r in self.open.get(name, ()) if r is not Residency.AUTO]
        return kept + ([self.ready[name]] if name in self.ready else [])

    def _plain(self, name: str) -> bool:
        """Whether a lane that can be loaded answers every alias that names it: nothing about it is only adopted."""
        variant = self.world.variants[name]
        alone = all(len(self.world.by_model.get(model, ())) == 1 for model in variant.models)
        return alone and (variant.state.holds_memory or name not in self.rules.routed_now)

    def _domain(self, key: str) -> None:
        """The sums of one domain, each up to the larger of its bound and the same sum as things are now."""
        names = [name for name in self.world.lanes_on[key] if name in self.open]
        limit = self.world.limits.get(key)
        if not names or limit is None or limit.limit_mib is None or limit.budget_mib is None:
            return
        fixed = sums(self.world, self._fixed(key))
        always, preferred = fixed.always.get(key, 0), fixed.preferred.get(key, 0)
        mib = {name: self.world.variants[name].memory[key] for name in names}
        steady = [(self.kept[n, Residency.ALWAYS], mib[n]) for n in names if (n, Residency.ALWAYS) in self.kept]
        soft = [(self.kept[n, Residency.PREFERRED], mib[n]) for n in names if (n, Residency.PREFERRED) in self.kept]
        now = self.rules.now.always.get(key, 0) + self.rules.now.preferred.get(key, 0)
        self.rows.append(Bound((*steady, *soft), max(limit.budget_mib, now) - always - preferred))
        for name in names:
            own = {self.kept.get((name, Residency.ALWAYS), -1)}
            others = [term for term in steady if term[0] not in own]
            is_always = weight_now(self.world.variants[name]) is Residency.ALWAYS
            beside = self.rules.now.always.get(key, 0) - (mib[name] if is_always else 0)
            if name in self.ready:
                most = max(limit.budget_mib, beside + mib[name])
                self.rows.append(Bound((*others, (self.ready[name], mib[name])), most - always))
            peak = self.world.variants[name].peak[key]
            uses = self._uses(name)
            load = tuple((column, peak) for column in uses)
            self.rows.append(Bound((*others, *load), max(limit.limit_mib, beside + peak) - always))
            # One domain alone keeps a lane from being ready only where the always lanes leave it too little there.
            spare = min(
                max(limit.budget_mib, beside + mib[name]) - mib[name], max(limit.limit_mib, beside + peak) - peak
            )
            least = spare + 1 - always
            if len(self.world.variants[name].memory) == 1 and least > 0:
                short = (*((column, -factor) for column, factor in others), *((column, -least) for column in uses))
                self.rows.append(Bound(short, -least))

    def _fixed(self, key: str) -> dict[str, Residency]:
        """Residencies of the lanes of a domain that stay as they are."""
        there = self.world.lanes_on[key]
        return {n: self.world.variants[n].residency for n in there if self.world.roles[n] is LaneRole.FIXED}

    def residencies(self, values: list[float]) -> dict[str, Residency]:
        """What a solution gives each varied lane; the weakest open one where it gives none."""
        chosen = {name: rows[-1] for name, rows in self.open.items()}
        for (name, residency), column in self.kept.items():
            if values[column] > 0.5:
                chosen[name] = residency
        return chosen
