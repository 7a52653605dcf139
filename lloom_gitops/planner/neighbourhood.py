"""Neighbourhood search: what is too large to be searched whole is improved domain by domain, each with all around it.

A neighbourhood is a domain in trouble with the lanes on it, and the lanes that could answer the same aliases with all
that shares their domains. It is cut out as a small world of its own (`parts.cut`), in which everything else stays as
the best outcome so far has it, searched exactly, and taken over where the whole gets better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lloom_gitops.model.words import Residency

from .coupling import Coupling
from .outcome import Choice, evaluate
from .parts import cut
from .search import Found, Search
from .world import LaneRole, World

LANES = 10
"""Lanes of a neighbourhood whose residency is open, at most (beside those on its first domain)."""
LANES_A_BATCH = 200
"""In larger parts several neighbourhoods are judged at once, one more for so many lanes."""
ROUNDS = 4

Solve = Callable[[World], Found | None]


class Neighbourhoods:
    """Improves one assignment of lanes to models from a first outcome on; `solve` searches a small world."""

    def __init__(self, search: Search, lanes: dict[str, tuple[str, ...]], varied: set[str], trouble: set[str]) -> None:
        self.search = search
        self.world = search.world
        self.lanes = lanes
        self.varied = varied
        self.trouble = sorted(trouble)
        self.coupling = Coupling(search.world, trouble)

    def run(self, solve: Solve, work: int) -> int:
        """Improve until no domain is left that changed around, or the work is done; gives back what is left of it."""
        waiting, batch = dict.fromkeys(self.trouble), max(1, len(self.world.variants) // LANES_A_BATCH)
        better: dict[str, dict[str, Residency]] = {}
        while waiting and work > 0 and self.search.best is not None:
            key = next(iter(waiting))
            del waiting[key]
            work -= 1
            found = self._better(self._around(key), solve)
            better |= {key: found} if found else {}
            if len(better) >= batch or not waiting or not work:
                for at in self._taken(better):
                    near = {near for name in self._around(at) for near in self.world.variants[name].memory}
                    waiting.update(dict.fromkeys(sorted(near.intersection(self.trouble) - {at})))
                better = {}
        self._give_more(waiting)
        return work

    def _better(self, group: tuple[str, ...], solve: Solve) -> dict[str, Residency]:
        """Residencies of a neighbourhood that are better in it than those it has; none where there are none."""
        now = self._now()
        small = solve(cut(self.world, now, self.coupling, group))
        if small is None:
            return {}
        found = {name: small.outcome.choice.residency[name] for name in group if name in now}
        return {} if all(now[name] is residency for name, residency in found.items()) else found

    def _taken(self, better: dict[str, dict[str, Residency]]) -> list[str]:
        """Take over what neighbourhoods found: all together, or else each half by itself."""
        if not better:
            return []
        whole = {name: residency for found in better.values() for name, residency in found.items()}
        if self._take_over(whole):
            return list(better)
        rows = list(better.items())
        middle = len(rows) // 2
        return [] if len(rows) == 1 else self._taken(dict(rows[:middle])) + self._taken(dict(rows[middle:]))

    def _now(self) -> dict[str, Residency]:
        best = self.search.best
        return {} if best is None else best.outcome.choice.residency

    def _give_more(self, domains: Iterable[str]) -> None:
        """Give lanes of domains that were not searched what nothing forces to be less."""
        more: list[dict[str, Residency]] = []
        residency = dict(self._now())
        for key in domains:
            group = self.coupling.lanes_on[key]
            world = cut(self.world, residency, self.coupling, tuple(group))
            search = Search(world)
            lanes = {model: row for model, row in self.lanes.items() if model in world.by_model}
            own = {name: residency[name] for name, role in world.roles.items() if role is LaneRole.FREE}
            outcome = evaluate(world, search.rules, Choice(residency=own, lanes=lanes))
            while outcome is not None and (given := search._could_give(outcome)) is not None:
                residency.update({name: given.residency[name] for name in group if name in own})
                outcome = evaluate(world, search.rules, given)
            raised = {name: residency[name] for name in group if name in own and residency[name] is not own[name]}
            more += [raised] if raised else []
        self._insist(more)

    def _insist(self, more: list[dict[str, Residency]]) -> None:
        """Take over what lanes are given, if levels 1 to 5 get no worse: all together, or else each half by itself."""
        if not more:
            return
        kept = self.search.best
        self.search.start_from(None)
        now = {} if kept is None else kept.outcome.choice.residency
        self._take_over({**now, **{name: residency for row in more for name, residency in row.items()}})
        given = self.search.best
        if given is not None and (kept is None or given.levels[:5] <= kept.levels[:5]):
            return
        self.search.start_from(kept)
        middle = len(more) // 2
        if middle:
            self._insist(more[:middle])
            self._insist(more[middle:])

    def _around(self, key: str) -> tuple[str, ...]:
        """The lanes on a domain, and those that could answer instead with all on their domains, as far as they fit."""
        group = set(self.coupling.lanes_on[key])
        size = len(group)
        for alias in sorted(
            {alias for name in group for alias in self.coupling.naming[name]} & self.world.entries.keys()
        ):
            for name in self.coupling.serving(alias):
                more = {
                    other for at in self.world.variants[name].memory for other in self.coupling.lanes_on[at]
                } - group
                if name in self.varied and len(group | more) <= size + LANES:
                    group |= more
        return tuple(sorted(group))

    def _take_over(self, found: dict[str, Residency]) -> bool:
        """Judge a neighbourhood's choice in the whole, whether it is better: others follow what is wished of them."""
        best, residency = self.search.best, {**self._now(), **found}
        for _ in range(ROUNDS):
            outcome = evaluate(self.world, self.search.rules, Choice(residency=residency, lanes=self.lanes))
            if outcome is None:
                return False
            follow = {
                name: wish
                for name, wish in outcome.wished.items()
                if name in residency and name not in found and self._follows(name, residency[name], wish)
            }
            if not follow:
                self.search.judge(outcome.choice)
                return self.search.best is not best
            residency = {**residency, **follow}
        return False

    def _follows(self, name: str, has: Residency, wish: Residency) -> bool:
        """Lanes on domains in trouble only give up what is no longer wished; the others get all that is."""
        return has.rank > wish.rank or (name not in self.varied and has is not wish)
