"""The search: which residency each lane gets and which lane stands for a model, best by the objective.

Memory decides little in most pools, so the search first asks for everything people wish. Where that holds it is optimal
on levels 1 to 5 by construction. Where it does not, only the lanes on the domains in trouble are varied: every
combination while there are few of them (engine `exact`), greedy placement and local search above that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import msgspec

from lloom_gitops.model.words import Residency
from lloom_gitops.reconcile.room import Room, make_room
from lloom_gitops.reconcile.transition import Transition

from .memory_sums import MemoryRules, rules_of
from .moves import transition
from .objective import Levels, levels, static_levels, tie_break
from .outcome import Choice, Outcome, evaluate, excess, ideal_residency
from .world import LaneRole, World

WORK = {"quick": 2_000, "normal": 20_000, "deep": 200_000}
SETTLE_ROUNDS = 6


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The best outcome with its moves and levels; `exact`: every combination was judged; `bound`: a lower bound."""

    outcome: Outcome
    change: Transition
    room: Room
    levels: Levels
    exact: bool
    bound: Levels
    engine: str | None = None


class Search:
    """One search over one world. Work is counted in judged combinations, never in time: it ends the same anywhere."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rules: MemoryRules = rules_of(world)
        self.work = WORK[world.desired.pool.planning.effort]
        self.best: Found | None = None
        self.bound: Levels | None = None
        self.exact = True

    def run(self) -> Found | None:
        """The best outcome, or None where the hard wishes allow none."""
        options = lane_options(self.world)
        if prod(len(rows) for rows in options.values()) <= self.work // 10:
            for combination in product(*options.values()):
                self._choose(dict(zip(options, combination, strict=True)))
        else:
            self.exact = False
            self._descend(options)
        if self.best is None:
            return None
        bound = self.bound or self.best.levels
        return msgspec.structs.replace(self.best, exact=self.exact, bound=bound)

    def _descend(self, options: dict[str, list[tuple[str, ...]]]) -> None:
        """Coordinate descent over which lane stands for each model."""
        current = {model: rows[0] for model, rows in options.items()}
        self._choose(current)
        improved = True
        while improved:
            improved = False
            for model, rows in options.items():
                for row in rows:
                    before = self.best
                    self._choose({**current, model: row})
                    if self.best is not before and self.best is not None:
                        current, improved = {**current, model: row}, True

    def _choose(self, lanes: dict[str, tuple[str, ...]]) -> None:
        """Judge the outcomes of one assignment of lanes to models."""
        wanted = ideal_residency(self.world, lanes)
        self._note_bound(lanes, wanted)
        if self.judge(Choice(residency=wanted, lanes=lanes)) and self._nothing_lost(lanes, wanted):
            return
        troubled = self._troubled(lanes, wanted)
        while True:
            widened = self._vary(lanes, wanted, troubled)
            if widened <= troubled:
                return
            troubled |= widened

    def _note_bound(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency]) -> None:
        outcome = evaluate(self.world, self.rules, Choice(residency=wanted, lanes=lanes), ignore_memory=True)
        if outcome is not None:
            static = static_levels(self.world, outcome)
            self.bound = static if self.bound is None else min(self.bound, static)

    def _nothing_lost(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency]) -> bool:
        """Whether what people wish holds whole: then nothing else is better on levels 1 to 5."""
        outcome = evaluate(self.world, self.rules, Choice(residency=wanted, lanes=lanes))
        return outcome is not None and not outcome.shortages and excess(outcome) is None

    def _troubled(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency]) -> set[str]:
        """Domains where the wish does not hold: all that a lane with a shortage, or an exceeded sum, touches."""
        found = self.rules.trouble(wanted)
        outcome = evaluate(self.world, self.rules, Choice(residency=wanted, lanes=lanes), ignore_memory=True)
        if not found and outcome is not None:
            change = transition(self.world, outcome)
            found = {key for lane in (*change.starts, *change.changes) for key in change.variants[lane].memory}
        return found

    def _vary(self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency], troubled: set[str]) -> set[str]:
        """Judge the combinations of residencies on the troubled domains; gives back the domains found in trouble."""
        varied = [name for name in wanted if troubled & set(self.world.variants[name].memory)]
        rows = {name: residency_options(self.world, name, wanted[name]) for name in varied}
        widened: set[str] = set()
        if prod(len(row) for row in rows.values()) > self.work:
            self.exact = False
            self._improve(lanes, wanted, rows)
            return widened
        for combination in self._combinations(rows):
            widened |= self._settle(lanes, {**wanted, **combination}, set(varied))
        return widened

    def _combinations(self, rows: dict[str, list[Residency]]) -> Iterator[dict[str, Residency]]:
        """All combinations, cut where a residency sum is already exceeded (adding lanes only makes it larger)."""
        names = list(rows)

        def extend(index: int, chosen: dict[str, Residency]) -> Iterator[dict[str, Residency]]:
            if index == len(names):
                yield dict(chosen)
                return
            for option in rows[names[index]]:
                chosen[names[index]] = option
                if option is Residency.AUTO or self.rules.fits_so_far(chosen):
                    yield from extend(index + 1, chosen)
                del chosen[names[index]]

        return extend(0, {})

    def _settle(self, lanes: dict[str, tuple[str, ...]], residency: dict[str, Residency], varied: set[str]) -> set[str]:
        """Judge one combination, after giving the lanes that are not varied what people wish of them then."""
        for _ in range(SETTLE_ROUNDS):
            choice = Choice(residency=residency, lanes=lanes)
            outcome = evaluate(self.world, self.rules, choice, ignore_memory=False)
            if outcome is None:
                return self.rules.trouble({n: r for n, r in residency.items() if n not in varied})
            follow = {n: wish for n, wish in outcome.wished.items() if n not in varied and n in residency}
            if all(residency[name] is wish for name, wish in follow.items()):
                self.judge(choice)
                return set()
            residency = {**residency, **follow}
        return set()

    def _improve(
        self, lanes: dict[str, tuple[str, ...]], wanted: dict[str, Residency], rows: dict[str, list[Residency]]
    ) -> None:
        """Greedy, then local search: raise lanes from auto in order of priority, then single and paired changes."""
        current = {**wanted, **{name: row[-1] for name, row in rows.items()}}
        self._settle(lanes, current, set(rows))
        for name in sorted(rows, key=lambda n: (-priority_of(self.world, n), n)):
            current = self._better(lanes, current, [{name: option} for option in rows[name]], set(rows))
        budget = self.work
        improved = True
        while improved and budget > 0:
            single = [{name: option} for name, row in rows.items() for option in row]
            names = list(rows)
            pairs = [
                {a: x, b: y} for i, a in enumerate(names) for b in names[i + 1 :] for x in rows[a] for y in rows[b]
            ]
            moves = (single + pairs)[:budget]
            budget -= len(moves)
            after = self._better(lanes, current, moves, set(rows))
            improved, current = after != current, after

    def _better(
        self,
        lanes: dict[str, tuple[str, ...]],
        current: dict[str, Residency],
        moves: list[dict[str, Residency]],
        varied: set[str],
    ) -> dict[str, Residency]:
        """The residencies after the best of some moves, if it beats the best so far."""
        chosen = current
        for move in moves:
            before = self.best
            self._settle(lanes, {**current, **move}, varied)
            if self.best is not before:
                chosen = {**current, **move}
        return chosen

    def judge(self, choice: Choice) -> bool:
        """Keep a legal outcome if it is the best so far; whether it is legal."""
        outcome = evaluate(self.world, self.rules, choice)
        if outcome is None or excess(outcome) is not None:
            return False
        if self.best is not None and static_levels(self.world, outcome) > self.best.levels[:5]:
            return True
        if self._could_give(outcome) is not None:
            return False
        moved = self._moves(outcome)
        if moved is None:
            return False
        change, room = moved
        found = levels(self.world, outcome, change, room)
        self._keep(Found(outcome=outcome, change=change, room=room, levels=found, exact=True, bound=found))
        return True

    def start_from(self, found: Found | None) -> None:
        """Take an outcome for the best so far, whatever was better before."""
        self.best = found

    def _keep(self, found: Found) -> None:
        """Remember an allowed outcome if it is the best so far."""
        if self.best is None or rank_of(found) < rank_of(self.best):
            self.best = found

    def _could_give(self, outcome: Outcome) -> Choice | None:
        """A choice that gives some lane more of what is wished of it, where nothing forces it to have less."""
        for name, wish in outcome.wished.items():
            for more in Residency:
                if not outcome.residency[name].rank < more.rank <= wish.rank:
                    continue
                residency = {**outcome.choice.residency, name: more}
                raised = evaluate(self.world, self.rules, msgspec.structs.replace(outcome.choice, residency=residency))
                if raised is None or raised.served != outcome.served or excess(raised) is not None:
                    continue
                if self._moves(raised) is not None:
                    return raised.choice
        return None

    def _moves(self, outcome: Outcome) -> tuple[Transition, Room] | None:
        """The moves to an outcome; a preferred lane also starts where what stops for room leaves it some."""
        change = transition(self.world, outcome)
        room = make_room(change)
        if room is None:
            change = transition(self.world, outcome, ahead=False)
            room = make_room(change)
            return None if room is None else (change, room)
        if not room.stopped:
            return change, room
        more = transition(self.world, outcome, freed=frozenset(room.stopped))
        more_room = make_room(more) if more.starts != change.starts else None
        return (change, room) if more_room is None else (more, more_room)


def rank_of(found: Found) -> tuple[object, ...]:
    """Levels, then stable ids: what the best outcome is least in."""
    return (found.levels, tie_break(found.outcome))


def priority_of(world: World, lane: str) -> int:
    """The highest priority among the aliases that name one of a lane's models."""
    return max((world.alias(alias).priority for alias in world.naming(lane)), default=0)


def residency_options(world: World, lane: str, wanted: Residency) -> list[Residency]:
    """Residencies worth trying for a lane, the strongest first: its hard wish, or all up to what anyone may wish."""
    if lane in world.hard:
        return [world.hard[lane]]
    shared = [residency for lanes, residency in world.shared_pins if lane in lanes]
    wishes = [world.alias(alias).residency for alias in world.naming(lane)]
    top = max([*wishes, *shared, wanted, world.variants[lane].residency], key=lambda r: r.rank)
    return [r for r in (Residency.ALWAYS, Residency.PREFERRED, Residency.AUTO) if r.rank <= top.rank]


def lane_options(world: World) -> dict[str, list[tuple[str, ...]]]:
    """For each model that several lanes could serve, the orders worth trying: each lane first, the rest as they are.

    A variant that needs an install stands in an order only where it is first.
    """
    options: dict[str, list[tuple[str, ...]]] = {}
    routed = {lane for _, lanes in world.current.values() for lane in lanes if lane}
    for model, names in world.by_model.items():
        allowed = world.pinned.get(model, names)
        lanes = [n for n in allowed if world.roles[n] in (LaneRole.FREE, LaneRole.FIXED)]
        leaving = [n for n in allowed if world.roles[n] is LaneRole.LEAVING]
        lanes.sort(key=lambda n: (n not in routed, not world.variants[n].loaded, world.variants[n].load_ms or 0, n))
        installed = [n for n in lanes if world.variants[n].installed]
        orders = [(n, *(o for o in installed if o != n), *leaving) for n in lanes]
        if not installed:
            orders.append(tuple(leaving))
        options[model] = orders
    return {model: orders for model, orders in options.items() if orders}
