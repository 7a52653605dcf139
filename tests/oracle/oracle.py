"""The oracle: the best objective tuple of a small pool, by trying everything that the rules allow.

Written from documents.md and lifecycle.md; shares no code with the planner. Simple before fast: it is meant for up to
six lanes, three nodes and four aliases. Recipes that are not installed are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.words import Residency

from .levels import first_five, last_three
from .moves import Moves, may_move, subsets, ways
from .outcome import AUTO, Outcome
from .rules import meets_wish, must_stay, routes_are_whole, usable
from .world import AliasFacts, LaneFacts, Route, World


@dataclass(frozen=True)
class Best:
    """The best tuple, with an outcome and moves that reach it."""

    levels: tuple[int, ...]
    outcome: Outcome
    moves: Moves


def best(desired: Desired, inventory: Inventory) -> Best | None:
    """The least tuple of all legal outcomes with the fewest hard wishes suspended; None where nothing is legal."""
    world = World(desired, inventory)
    by_count: dict[int, list[frozenset[str]]] = {}
    for wishes in subsets(world.hard):
        by_count.setdefault(len(wishes), []).append(wishes)
    for count in sorted(by_count, reverse=True):
        found = [answer for wishes in by_count[count] if (answer := _least(world, wishes))]
        if found:
            return min(found, key=lambda answer: answer.levels)
    return None


def _least(world: World, wishes: frozenset[str]) -> Best | None:
    """The least tuple with these hard wishes met."""
    rows = sorted(((first_five(outcome), outcome) for outcome in outcomes(world, wishes)), key=lambda row: row[0])
    least: Best | None = None
    for five, outcome in rows:
        if least is not None and five > least.levels[:5]:
            break
        if least is not None and five + last_three(outcome, None) >= least.levels:
            continue
        found = ways(outcome)
        if not found or not routes_are_whole(outcome) or gives_wrongly(outcome):
            continue
        for moves in found:
            levels = five + last_three(outcome, moves)
            if least is None or levels < least.levels:
                least = Best(levels, outcome, moves)
    return least


def outcomes(world: World, wishes: frozenset[str] = frozenset()) -> Iterator[Outcome]:
    """All outcomes that the sums, the wishes and the rules of stops allow; order of steps and whole routes apart."""
    lanes = list(world.lanes.values())
    for fate in product(*(_fates(world, wishes, lane) for lane in lanes)):
        residency = {lane.id: rank for lane, rank in zip(lanes, fate, strict=True) if rank is not None}
        residency |= {lane.id: AUTO for lane, rank in zip(lanes, fate, strict=True) if rank is None}
        gone = frozenset(lane.id for lane, rank in zip(lanes, fate, strict=True) if rank is None)
        bare = Outcome(world, {}, residency, gone, wishes)
        if not bare.sums_hold():
            continue
        for routes in _routes(bare):
            outcome = replace(bare, routes=routes)
            if _allowed(outcome) and outcome.sums_hold():
                yield outcome


def _fates(world: World, wishes: frozenset[str], lane: LaneFacts) -> list[Residency | None]:
    """What may become of a lane: the residencies that somebody may wish of it, and None for stopped for good."""
    touchable = lane.loaded and not lane.dead and not lane.hands_off
    if touchable and (lane.asked_stopped or lane.draining):
        return [None]
    bare = Outcome(world, {}, {}, frozenset(), wishes)
    stops = touchable and (lane.leaving or lane.stop_unrouted or may_move(bare, lane))
    if not lane.managed or lane.untouchable:
        return [lane.residency, *([None] if stops else [])]
    hard = [world.hard[key].residency for key in wishes if world.named(key, lane)]
    naming = [alias for alias in world.aliases.values() if {model for model, _ in alias.order} & set(lane.models)]
    wished = [lane.residency, *(alias.wish.residency for alias in naming), *(rank for rank in hard if rank)]
    top = max(rank.rank for rank in wished) if lane.known else lane.residency.rank
    return [*(rank for rank in Residency if rank.rank <= top), *([None] if stops else [])]


def _routes(bare: Outcome) -> Iterator[dict[str, Route]]:
    """All routes of all aliases: for each model in order a lane that can stand behind it; no model without need.

    A lane that could stand behind an entry may be left out everywhere (it then keeps its own residency, or leaves room
    in a co-resident set), but not here and there: what one alias counts on covers the others too.
    """
    world = bare.world
    fitting = {
        (alias.name, model): [lane for lane in _behind(bare, alias, model) if _fits_alone(bare, lane, alias)]
        for alias in world.aliases.values()
        for model, external in alias.order
        if not external
    }
    doubtful = {lane for lanes in fitting.values() for lane in lanes if not _always_offered(bare, lane)}
    for out in subsets(doubtful):
        choices = []
        for alias in world.aliases.values():
            slots: list[list[tuple[str, str | None]]] = [
                [(model, None)]
                if external
                else [(model, lane) for lane in fitting[alias.name, model] if lane not in out]
                for model, external in alias.order
            ]
            routes: Iterable[Route] = product(*(slot for slot in slots if slot))
            choices.append(list(dict.fromkeys(route[:1] if world.one_model_routes else route for route in routes)))
        for chosen in product(*choices):
            if doubtful - out <= {lane for route in chosen for _, lane in route}:
                yield dict(zip(world.aliases, chosen, strict=True))


def _behind(bare: Outcome, alias: AliasFacts, model: str) -> list[str]:
    """Lanes that may stand behind an entry of this model, memory apart."""
    world = bare.world
    lanes = [
        lane
        for lane in world.lanes.values()
        if model in lane.models and lane.id not in bare.gone and usable(world, lane, alias)
    ]
    pins = [pin for pin in bare.pins if pin.rpartition("@")[0] == model]
    return [lane.id for lane in lanes if all(world.named(pin, lane) for pin in pins)]


def _fits_alone(bare: Outcome, name: str, alias: AliasFacts) -> bool:
    """Whether memory lets the lane be loaded for this alias."""
    return replace(bare, routes={alias.name: (("", name),)}).sums_hold()


def _always_offered(bare: Outcome, name: str) -> bool:
    """Whether a lane that fits covers its model in every such outcome, so that no route may leave the model out."""
    lane = bare.world.lanes[name]
    in_set = any(set(lane.models) & set(models) for models in bare.world.desired.pool.co_resident)
    return not (lane.leaving or in_set) and (not lane.managed or bare.residency[name] is AUTO)


def _allowed(outcome: Outcome) -> bool:
    """Stops and residencies by the rules that need no memory: lifecycle.md, Stops and Nodes; hard wishes met."""
    world = outcome.world
    for lane in world.lanes.values():
        left = lane.id in outcome.gone
        if lane.loaded and not (lane.dead or lane.hands_off or lane.draining or lane.asked_stopped):
            unwanted = lane.stop_unrouted and lane.id not in outcome.routed and not outcome.rests_on(lane)
            leaves = unwanted or (lane.leaving and not must_stay(outcome, lane))
            if (lane.leaving or lane.stop_unrouted) and left is not leaves:
                return False
        if lane.leaving and lane.id in outcome.routed_by_us and not must_stay(outcome, lane):
            return False
        if left or not lane.managed or lane.untouchable:
            continue
        too_much = outcome.residency[lane.id].rank > outcome.wish(lane).rank
        if too_much and not (lane.loaded and lane.edit_restarts and outcome.residency[lane.id] is lane.residency):
            return False
        if outcome.demanded(lane) not in (None, outcome.residency[lane.id]):
            return False
    return all(meets_wish(outcome, key) for key in outcome.wishes)


def gives_wrongly(outcome: Outcome) -> bool:
    """Whether a lane gets less residency than was wished although memory does not force it, or more.

    More is kept only where the build would restart the lane to give it less, and no order of steps has room for that.
    """
    for lane in outcome.world.lanes.values():
        if lane.id in outcome.gone or not lane.managed or lane.untouchable:
            continue
        given, wish = outcome.residency[lane.id], outcome.wish(lane)
        top = wish if lane.known else min(wish, lane.residency, key=lambda rank: rank.rank)
        for rank in Residency:
            if given.rank < rank.rank <= top.rank or rank.rank <= wish.rank < given.rank:
                other = replace(outcome, residency={**outcome.residency, lane.id: rank})
                if other.sums_hold() and ways(other):
                    return True
    return False
