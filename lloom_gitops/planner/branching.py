"""Branch and bound over the residencies of some lanes: every outcome that could be the best is judged, no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lloom_gitops.model.words import Residency

from .objective import Levels, tie_break
from .optimist import Optimist
from .outcome import Choice, Outcome
from .search import Found, Search, residency_options
from .world import LaneRole, World

Best = Callable[[], Levels | None]
Judge = Callable[[dict[str, Residency]], None]


class Branching:
    """One search. `work` bounds the partial choices looked at; `whole` says whether it was enough for all of them."""

    def __init__(self, optimist: Optimist, rows: Mapping[str, list[Residency]], work: int) -> None:
        self.optimist = optimist
        self.rows = rows
        self.order = _order(optimist, rows)
        self.left = work
        self.whole = True

    def run(self, best: Best, judge: Judge) -> None:
        """Judge complete choices, depth first, the strongest residencies first; `best` are the best levels so far."""
        self._extend(0, best, judge)

    def _extend(self, index: int, best: Best, judge: Judge) -> None:
        least = best()
        if least is not None and self.optimist.bound() > least[:7]:
            return
        if index == len(self.order):
            judge(dict(self.optimist.chosen))
            return
        name = self.order[index]
        for residency in self.rows[name]:
            if self.left <= 0:
                self.whole = False
                return
            self.left -= 1
            if self.optimist.choose(name, residency):
                self._extend(index + 1, best, judge)
                self.optimist.undo(name)


def _order(optimist: Optimist, rows: Mapping[str, list[Residency]]) -> list[str]:
    """Lanes domain by domain, so that a domain's sums are complete as early as may be; the most named lanes first."""
    waiting = sorted(rows, key=lambda n: (-len(optimist.naming.get(n, ())), n))
    order: dict[str, None] = {}
    while len(order) < len(waiting):
        near = [next(name for name in waiting if name not in order)]
        while near:
            name = near.pop(0)
            if name in order:
                continue
            order[name] = None
            keys = set(optimist.world.variants[name].memory)
            near += [n for n in waiting if n not in order and keys & set(optimist.world.variants[n].memory)]
    return list(order)


class PartSearch(Search):
    """The search of one part: it branches and bounds where `Search` would judge every combination.

    `room` is the level 8 that the whole has anyway, so that nothing better counts.
    """

    def __init__(self, world: World, room: int | None = None) -> None:
        super().__init__(world)
        self.room = room

    def _vary(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency], troubled: set[str]) -> set[str]:
        varied = {name for name in wanted if troubled.intersection(self.world.variants[name].memory)}
        rows = {name: residency_options(self.world, name, wanted[name]) for name in wanted if name in varied}
        widened: set[str] = set()

        def judge(combination: dict[str, Residency]) -> None:
            widened.update(self._settle(lanes, {**wanted, **combination}, varied))

        judge({name: _as_now(self.world, name, row) for name, row in rows.items()})
        able = {n for n, role in self.world.roles.items() if n in wanted or role in (LaneRole.FIXED, LaneRole.LEAVING)}
        branching = Branching(Optimist(self.world, self.rules, rows, lanes, able), rows, self.work)
        branching.run(lambda: self.best.levels if self.best else None, judge)
        self.work = branching.left
        if not branching.whole:
            self.exact = False
            self._improve(lanes, wanted, rows)
        return widened

    def _key(self, found: Levels, outcome: Outcome) -> tuple[object, ...]:
        room = found[7] if self.room is None else max(found[7], self.room)
        return (found[:7], room, tie_break(outcome))


class JoinedSearch(Search):
    """Judges what the parts found together; each part has seen to it that no lane has less than it could have."""

    def judged(self, choice: Choice) -> Found | None:
        """The outcome of a choice with its moves and levels; None where it is not allowed."""
        self._judge(choice)
        return self.best

    def unsettled(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency]) -> set[str]:
        """Domains on which what people wish does not hold whole, or holds only for what is there already."""
        found = self.rules.unsettled(wanted)
        if not found and not (self._judge(Choice(residency=wanted, lanes=lanes)) and self._nothing_lost(lanes, wanted)):
            found = self._troubled(lanes, wanted)
        self.best = None
        return found

    def _gives_too_little(self, outcome: Outcome) -> bool:  # noqa: ARG002
        return False


def _as_now(world: World, lane: str, row: list[Residency]) -> Residency:
    now = world.variants[lane].residency
    return now if now in row else row[-1]
