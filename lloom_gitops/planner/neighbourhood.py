"""Neighbourhood search: what is too large to be searched whole is improved domain by domain, each with all around it.

A neighbourhood is a domain in trouble with the lanes on it, and the lanes that could answer the same aliases with all
that shares their domains. It is cut out as a small world of its own (`parts.cut`), in which everything else stays as
the best outcome so far has it, searched exactly, and taken over where the whole gets better.
"""

from __future__ import annotations

from collections.abc import Callable

from lloom_gitops.model.words import Residency

from .coupling import Coupling
from .outcome import Choice, evaluate
from .parts import cut
from .search import Found, Search
from .world import World

LANES = 10
"""Lanes of a neighbourhood whose residency is open, at most (beside those on its first domain)."""
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
        waiting = dict.fromkeys(self.trouble)
        while waiting and work > 0 and self.search.best is not None:
            key = next(iter(waiting))
            del waiting[key]
            work -= 1
            group = self._around(key)
            if self._improve(group, solve):
                near = {at for name in group for at in self.world.variants[name].memory}
                waiting.update(dict.fromkeys(sorted(near.intersection(self.trouble) - {key})))
        return work

    def _improve(self, group: tuple[str, ...], solve: Solve) -> bool:
        best = self.search.best
        if best is None:
            return False
        now = best.outcome.choice.residency
        small = solve(cut(self.world, now, self.coupling, group))
        if small is None:
            return False
        found = {name: small.outcome.choice.residency[name] for name in group if name in now}
        if all(now[name] is residency for name, residency in found.items()):
            return False
        self._take_over({**now, **found}, set(group))
        return self.search.best is not best

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

    def _take_over(self, residency: dict[str, Residency], group: set[str]) -> None:
        """Judge a neighbourhood's choice in the whole: lanes outside follow what people wish of them then."""
        for _ in range(ROUNDS):
            outcome = evaluate(self.world, self.search.rules, Choice(residency=residency, lanes=self.lanes))
            if outcome is None:
                return
            follow = {
                name: wish
                for name, wish in outcome.wished.items()
                if name in residency and name not in group and self._follows(name, residency[name], wish)
            }
            if not follow:
                self.search._judge(outcome.choice)
                return
            residency = {**residency, **follow}

    def _follows(self, name: str, has: Residency, wish: Residency) -> bool:
        """Lanes on domains in trouble only give up what is no longer wished; the others get all that is."""
        return has.rank > wish.rank or (name not in self.varied and has is not wish)
