"""A lower bound on the levels of every outcome that a partial choice of residencies may still lead to.

The optimist takes a lane for loadable as long as the always lanes chosen so far leave it the memory, and gives each
alias the best answer that is left to it. Levels compare in strict order, so the sum of the aliases' least rows is below
the sum of any other rows they may get.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lloom_gitops.model.words import LaneState, Residency

from .memory_sums import MemoryRules, Sums, sums, weight_now
from .prices import FREE, Answer, Prices, Row, added
from .world import LaneRole, World

SURELY = 3


class Optimist:
    """The bound of one world with some lanes varied; `choose` and `undo` move through partial choices."""

    def __init__(
        self,
        world: World,
        rules: MemoryRules,
        rows: Mapping[str, list[Residency]],
        lanes: Mapping[str, tuple[str, ...]],
        able: Collection[str],
    ) -> None:
        """`rows`: the residencies open to each varied lane; `lanes`: lanes of a model in order; `able`: may be used."""
        self.world = world
        self.rules = rules
        self.able = able
        self.rows = dict(rows)
        self.chosen: dict[str, Residency] = {}
        fixed = {n: world.variants[n].residency for n, role in world.roles.items() if role is LaneRole.FIXED}
        start = sums(world, fixed)
        self.sums = Sums(always=dict(start.always), preferred=dict(start.preferred))
        self.most: dict[str, int] = {}
        self.on: dict[str, list[str]] = {}
        for name, variant in world.variants.items():
            for key in variant.memory:
                self.on.setdefault(key, []).append(name)
        self.prices = Prices(world)
        self.answers = {alias: self.prices.answers(alias, lanes, able) for alias in world.entries}
        self.naming: dict[str, list[str]] = {}
        for alias, answers in self.answers.items():
            for answer in answers:
                self.naming.setdefault(answer.lane, []).append(alias)
        self.free_of_wishes = {*world.hard, *(name for names, _ in world.shared_pins for name in names)}
        self.free_of_wishes |= {n for model, names in world.by_model.items() if len(names) > 1 for n in names}
        self.firsts = {alias: {answer.lane for answer in answers} for alias, answers in self.answers.items()}
        self._tighten(start.always)
        self.total = FREE
        for row in self.least.values():
            self.total = added(self.total, row)
        self.changes = 0

    def _tighten(self, always: Mapping[str, int]) -> None:
        """Find what each lane may get and which may answer first; each tells more of the other, until nothing new."""
        before: dict[str, list[Residency]] | None = None
        self.open: dict[str, list[Residency]] = {}
        while before != self.open:
            before = self.open
            self.open = {name: self._open(name) for name in self.world.variants}
            self.rows = {name: self.open[name] for name in self.rows}
            self.most = dict(always)
            for name in self.world.variants:
                self._count(name, self._may_be_always(name))
            self.loadable = {name: self._loadable(name) for name in self.naming}
            self.least = {alias: self._least(alias) for alias in self.world.entries}

    def bound(self) -> tuple[int, ...]:
        """Levels 1 to 7 of the best that may still come."""
        return (*self.total, self.changes)

    def first_answers(self, alias: str) -> list[Answer]:
        """Lanes that may answer an alias first."""
        return [answer for answer in self.answers[alias] if answer.lane in self.firsts[alias]]

    def surely_answered(self, alias: str) -> bool:
        """Whether some lane answers an alias whatever is chosen."""
        return any(self.loadable[answer.lane] == SURELY for answer in self.answers[alias])

    def choose(self, name: str, residency: Residency) -> bool:
        """Give a lane a residency; False (and nothing done) where that breaks a memory rule whatever else is chosen."""
        self.chosen[name] = residency
        self._add(name, residency, 1)
        if residency is not Residency.AUTO and not self._holds(name, residency):
            self._add(name, residency, -1)
            del self.chosen[name]
            return False
        self.changes += self._changed(name, residency)
        if self._refresh(name):
            return True
        self.undo(name)
        return False

    def undo(self, name: str) -> None:
        """Take a choice back."""
        residency = self.chosen.pop(name)
        self._add(name, residency, -1)
        self.changes -= self._changed(name, residency)
        self._refresh(name)

    def _add(self, name: str, residency: Residency, sign: int) -> None:
        variant = self.world.variants[name]
        self._count(name, sign * ((residency is Residency.ALWAYS) - (Residency.ALWAYS in self.rows[name])))
        if residency is Residency.AUTO or not variant.managed:
            return
        target = self.sums.always if residency is Residency.ALWAYS else self.sums.preferred
        for key, mib in variant.memory.items():
            target[key] = target.get(key, 0) + sign * mib

    def _count(self, name: str, times: int) -> None:
        """Add a lane to, or take it from, the most that always lanes may come to."""
        for key, mib in self.world.variants[name].memory.items() if times else ():
            self.most[key] = self.most.get(key, 0) + times * mib

    def _open(self, name: str) -> list[Residency]:
        """Residencies that a lane may get, the strongest first: those given, or what it follows its aliases to."""
        variant, hard = self.world.variants[name], self.world.hard.get(name)
        if self.world.roles[name] is not LaneRole.FREE:
            return [variant.residency]
        if hard is not None:
            return [hard]
        shared = [residency for lanes, residency in self.world.shared_pins if name in lanes]
        naming = (alias for alias in self.naming.get(name, ()) if name in self.firsts[alias])
        wishes = [self.world.alias(alias).residency for alias in naming]
        top = max([variant.residency, *shared, *wishes], key=lambda r: r.rank)
        given = self.rows.get(name, [Residency.ALWAYS, Residency.PREFERRED, Residency.AUTO])
        return [residency for residency in given if residency.rank <= top.rank]

    def _may_be_always(self, name: str) -> bool:
        if name in self.chosen:
            return self.chosen[name] is Residency.ALWAYS
        return self.world.roles[name] is LaneRole.FREE and Residency.ALWAYS in self.open[name]

    def _holds(self, name: str, residency: Residency) -> bool:
        """Whether the residency sums and the loads of lanes kept so far hold on a lane's domains."""
        for key in self.world.variants[name].memory:
            if self.rules.over_at(key, self.sums) is not None:
                return False
            for other in self.on[key] if residency is Residency.ALWAYS else (name,):
                kept = self.chosen.get(other, Residency.AUTO)
                variant = self.world.variants[other]
                if kept is Residency.AUTO or self.world.roles[other] is not LaneRole.FREE:
                    continue
                short = self.rules.unloadable(variant, kept, self.sums, adopted=True) is not None
                if short and not self.rules.may_stay(variant, kept, self.sums):
                    return False
        return True

    def _changed(self, name: str, residency: Residency) -> int:
        """1 where a running lane's residency changes for certain, be it stopped or not."""
        variant = self.world.variants[name]
        runs = variant.state in (LaneState.RUNNING, LaneState.UNKNOWN) and self.world.roles[name] is LaneRole.FREE
        return int(runs and residency is not variant.residency and variant.residency is not Residency.AUTO)

    def _refresh(self, name: str) -> bool:
        """Bring up to date what a lane's choice can touch; False where a chosen lane has more than anyone wishes."""
        near = {name, *(other for key in self.world.variants[name].memory for other in self.on[key])}
        touched = set(self.naming.get(name, ()))
        for other in near:
            if other in self.loadable:
                now = self._loadable(other)
                if now != self.loadable[other]:
                    self.loadable[other] = now
                    touched.update(self.naming[other])
        for alias in touched:
            before, after = self.least[alias], self._least(alias)
            if before != after:
                self.least[alias] = after
                self.total = added(added(self.total, before, -1), after)
        return all(
            not self._exceeds(answer.lane)
            for alias in touched
            for answer in self.answers[alias]
            if answer.lane in self.chosen
        )

    def _exceeds(self, name: str) -> bool:
        """Whether a chosen residency is above what any alias could wish of a lane that is routed in any case."""
        has = self.chosen[name]
        if has is Residency.AUTO or name in self.free_of_wishes or self.loadable[name] != SURELY:
            return False
        return all(self.world.alias(a).residency.rank < has.rank for a in self.naming[name] if name in self.firsts[a])

    def _strength(self, name: str) -> Residency:
        """The strongest residency that a lane may still get."""
        if name in self.chosen:
            return self.chosen[name]
        return self.open[name][0]

    def _loadable(self, name: str) -> int:
        """3: in any case; 2: perhaps, for any alias; 1: perhaps, for those that lead to it now; 0: not any more."""
        variant, role = self.world.variants[name], self.world.roles[name]
        if role is LaneRole.LEAVING:
            return 2
        if role is LaneRole.FIXED and variant.loaded:
            return SURELY
        kept = [self.chosen[name]] if name in self.chosen else self.open[name]
        if self._fits_all(name, kept):
            return SURELY
        counted = self.chosen.get(name) is Residency.ALWAYS or self._stands_always(name)
        beside = self._beside(name, self.sums.always, counted)
        for adopted in (False, True):
            if any(self._fits(name, residency, beside, adopted=adopted) for residency in kept):
                return 1 if adopted else 2
        return 0

    def _fits_all(self, name: str, kept: list[Residency]) -> bool:
        """Whether a lane can be loaded even beside the most that always lanes may come to."""
        beside = self._beside(name, self.most, self._may_be_always(name) or self._stands_always(name))
        return all(self._fits(name, residency, beside, adopted=False) for residency in kept)

    def _beside(self, name: str, table: Mapping[str, int], counted: bool) -> dict[str, int]:
        """What a table of sums holds beside a lane that may be counted in it."""
        own = self.world.variants[name].memory
        return {key: table.get(key, 0) - (mib if counted else 0) for key, mib in own.items()}

    def _stands_always(self, name: str) -> bool:
        """Whether a lane of which nothing is decided counts as always."""
        role, variant = self.world.roles[name], self.world.variants[name]
        return role is not LaneRole.FREE and weight_now(variant) is Residency.ALWAYS

    def _fits(self, name: str, residency: Residency, beside: Mapping[str, int], *, adopted: bool) -> bool:
        """Whether a lane of some residency can be loaded beside always lanes."""
        variant = self.world.variants[name]
        own = residency is Residency.ALWAYS
        always = {key: mib + (variant.memory[key] if own else 0) for key, mib in beside.items()}
        return self.rules.unloadable(variant, residency, Sums(always=always, preferred={}), adopted=adopted) is None

    def _least(self, alias: str) -> Row:
        """The least row that an alias may still get."""
        least: Row | None = None
        sure: int | None = None
        firsts: set[str] = set()
        self.firsts[alias] = firsts
        for answer in self.answers[alias]:
            if sure is not None and answer.place > sure:
                break
            if self._may_answer(alias, answer):
                firsts.add(answer.lane)
                row = self.prices.of(alias, answer.model, answer.lane, self._strength(answer.lane))
                least = row if least is None else min(least, row)
                sure = answer.place if self.loadable[answer.lane] == SURELY else sure
        if least is not None and sure is not None:
            return least
        bare = self.prices.without_lane(alias)
        return bare if least is None else min(least, bare)

    def _may_answer(self, alias: str, answer: Answer) -> bool:
        able = self.loadable[answer.lane]
        return able >= 2 or (able == 1 and answer.lane in self.world.current.get(alias, ((), ()))[1])
