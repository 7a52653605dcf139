"""Branch and bound over the residencies of some lanes: every outcome that could be the best is judged, no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from lloom_gitops.model.words import Residency

from .neighbourhood import Neighbourhoods
from .objective import Levels, tie_break
from .optimist import Optimist
from .outcome import Choice, Outcome
from .programme import Programme
from .search import Found, Search, lane_options, rank_of, residency_options
from .world import LaneRole, World

NODES = {"quick": 500, "normal": 4_000, "deep": 40_000}
"""Partial choices that are looked at in one part, by effort."""
CUTS = {"quick": 50, "normal": 300, "deep": 5_000}
"""Neighbourhoods that are searched in a part too large for that, by effort."""
LANES_A_NODE = 4
"""A complete choice costs as much work as one partial choice for so many lanes of the part."""
HIGHS_NODES = 500
"""Nodes that HiGHS looks at for each level of a part."""
SOLVED, RELAXED = 1_500, 5_000
"""Lanes of a part up to which HiGHS solves it whole, and up to which it bounds it."""
DEEPEST = 120
"""Varied lanes of a part that is branched over at all."""
CUT_NODES = 200
"""Partial choices that are looked at in one neighbourhood."""

Best = Callable[[], Levels | None]
Judge = Callable[[dict[str, Residency]], None]


class Branching:
    """One search. `work` bounds the partial choices looked at; `whole` says whether it was enough for all of them."""

    def __init__(self, optimist: Optimist, work: int) -> None:
        self.optimist = optimist
        self.rows = optimist.rows
        self.order = _order(optimist, optimist.rows)
        self.left = work
        self.whole = True

    def run(self, best: Best, judge: Judge) -> None:
        """Judge complete choices, depth first, the strongest residencies first; `best` are the best levels so far."""
        if len(self.order) > DEEPEST:
            self.whole = False
            return
        self._extend(0, best, judge)

    def _extend(self, index: int, best: Best, judge: Judge) -> None:
        least = best()
        if least is not None and self.optimist.bound() > least[:7]:
            return
        if index == len(self.order):
            self.left -= len(self.optimist.world.variants) // LANES_A_NODE
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

    What is too large for that is improved neighbourhood by neighbourhood.
    """

    def __init__(self, world: World, nodes: int | None = None) -> None:
        super().__init__(world)
        effort = world.desired.pool.planning.effort
        self.nodes = NODES[effort] if nodes is None else nodes
        self.cuts = CUTS[effort] if nodes is None else 0
        self.lenient = False
        self.engine: str | None = None
        self.front: list[Found] = []

    def _choose(self, lanes: dict[str, tuple[str, ...]]) -> None:
        self.floor: tuple[int, ...] = ()
        super()._choose(lanes)
        least = self.floor or (self.best.levels[:5] if self.best else ())
        self.bound = least if self.bound is None else min(self.bound, least)

    def _note_bound(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency]) -> None:
        """The optimist's bound stands in its place."""

    def _vary(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency], troubled: set[str]) -> set[str]:
        varied = {name for name in wanted if troubled.intersection(self.world.variants[name].memory)}
        rows = {name: residency_options(self.world, name, wanted[name]) for name in wanted if name in varied}
        widened: set[str] = set()

        def judge(combination: dict[str, Residency]) -> None:
            widened.update(self._settle(lanes, {**wanted, **combination}, varied))

        judge({name: _as_now(self.world, name, row) for name, row in rows.items()})
        able = {n for n, role in self.world.roles.items() if n in wanted or role in (LaneRole.FIXED, LaneRole.LEAVING)}
        optimist = Optimist(self.world, self.rules, rows, lanes, able)
        self.floor = max(self.floor, optimist.bound()[:5])
        branching = Branching(optimist, self.nodes)
        branching.run(lambda: self.best.levels if self.best else None, judge)
        self.nodes = branching.left
        if not branching.whole:
            self.exact = False
            weakest = {**wanted, **{name: row[-1] for name, row in rows.items()}}
            before = self.best.levels[:5] if self.best else None
            solved = self.cuts > 0 and self._solved(optimist, lanes, wanted, varied)
            if self.best is None or before is None or before != self.best.levels[:5]:
                self._descend_around(lanes, weakest, varied, troubled)
            elif not solved:
                # What runs is allowed: it is only left where an alias has no lane, so that nothing moves for little.
                self._descend_around(lanes, weakest, varied, troubled & self._bare_domains(self.best.outcome))
        return widened

    def _bare_domains(self, outcome: Outcome) -> set[str]:
        """Domains of the lanes of aliases that no lane answers."""
        bare = [alias for alias, row in outcome.served.items() if row.first is None]
        models = [entry.model for alias in bare for entry in self.world.entries[alias] if not entry.external]
        lanes = [lane for model in models for lane in self.world.by_model.get(model, ())]
        return {key for lane in lanes for key in self.world.variants[lane].memory}

    def _solved(
        self,
        optimist: Optimist,
        lanes: dict[str, tuple[str, ...]],
        wanted: dict[str, Residency],
        varied: set[str],
    ) -> bool:
        """Judge what HiGHS makes of the part, and take its bounds; of a very large part those of the relaxation.

        Says whether it solved levels 1 to 5, so that where it finds nothing better, what is there stays.
        """
        from .highs import engine, solve

        if len(self.world.variants) > RELAXED:
            return False
        programme = Programme(optimist)
        whole = len(self.world.variants) <= SOLVED
        solved = solve(programme, whole=whole, nodes=HIGHS_NODES)
        if solved is None:
            return False
        least = solved.bound[:5]
        if len(least) == 5:
            self.floor = max(self.floor, least)
        if whole:
            self.lenient, self.engine = True, engine()
            self._settle(lanes, {**wanted, **programme.residencies(solved.values)}, varied)
            self.lenient = False
        return whole and len(least) == 5

    def _descend_around(
        self, lanes: dict[str, tuple[str, ...]], weakest: dict[str, Residency], varied: set[str], troubled: set[str]
    ) -> None:
        """Improve the best so far, or else the weakest residencies; then give back what nothing forces to be less."""
        self.lenient = True
        if self.best is None:
            self._settle(lanes, weakest, varied)
        around = Neighbourhoods(self, lanes, varied, troubled)
        self.cuts = around.run(lambda world: PartSearch(world, nodes=CUT_NODES).run(), self.cuts)
        self.lenient = False

    def _could_give(self, outcome: Outcome) -> Choice | None:
        return None if self.lenient else super()._could_give(outcome)

    def run(self) -> Found | None:
        """The best outcome, with the engine that helped to find it."""
        if any(not variant.installed for variant in self.world.variants.values()):
            self.exact = False  # each has one place left of many, and takes it
            self._choose({model: rows[0] for model, rows in lane_options(self.world).items()})
            best = self.best and msgspec.structs.replace(self.best, exact=False, bound=self.bound or self.best.levels)
        else:
            best = super().run()
        return None if best is None else msgspec.structs.replace(best, engine=self.engine)

    def start_from(self, found: Found | None) -> None:
        self.best, self.front = found, [] if found is None else [found]

    def _keep(self, found: Found) -> None:
        """Remember also those of the best outcomes that are better by stable ids and leave less room."""
        if self.front and found.levels[:7] > self.front[0].levels[:7]:
            return
        if self.front and found.levels[:7] < self.front[0].levels[:7]:
            self.front = []
        if not any(_covers(other, found) for other in self.front):
            self.front = [*(other for other in self.front if not _covers(found, other)), found]
        self.best = min(self.front, key=rank_of)

    def within(self, room: int) -> Found | None:
        """The best outcome where more room than the whole has anyway is worth nothing, so that stable ids decide."""
        best = min(self.front, key=lambda f: (max(f.levels[7], room), tie_break(f.outcome)), default=None)
        if best is None:
            return None
        return msgspec.structs.replace(best, exact=self.exact, bound=self.bound or best.levels, engine=self.engine)


def _covers(one: Found, other: Found) -> bool:
    """Whether an outcome is no worse than another of the same first levels, in room and by stable ids."""
    return one.levels[7] <= other.levels[7] and tie_break(one.outcome) <= tie_break(other.outcome)


class JoinedSearch(Search):
    """Judges what the parts found together; each part has seen to it that no lane has less than it could have."""

    def judged(self, choice: Choice) -> Found | None:
        """The outcome of a choice with its moves and levels; None where it is not allowed."""
        self.judge(choice)
        return self.best

    def unsettled(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency]) -> set[str]:
        """Domains on which what people wish does not hold whole, or holds only for what is there already."""
        found = self.rules.unsettled(wanted)
        if not found and not (self.judge(Choice(residency=wanted, lanes=lanes)) and self._nothing_lost(lanes, wanted)):
            found = self._troubled(lanes, wanted)
        self.best = None
        return found

    def _could_give(self, outcome: Outcome) -> Choice | None:  # noqa: ARG002
        return None


def _as_now(world: World, lane: str, row: list[Residency]) -> Residency:
    now = world.variants[lane].residency
    return now if now in row else row[-1]
