"""What carries an outcome out: starts, stops for room, restarts; every combination, in every order of loads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, permutations

from .outcome import ALWAYS, AUTO, PREFERRED, Outcome
from .world import LaneFacts


@dataclass(frozen=True)
class Moves:
    """The lanes that are started, stopped for room, stopped for good, and restarted by a residency edit."""

    starts: frozenset[str]
    room: frozenset[str]
    gone: frozenset[str]
    restarts: frozenset[str]


def subsets(items: Iterable[str]) -> list[frozenset[str]]:
    """All subsets, the largest first."""
    rows = sorted(items)
    sizes = (combinations(rows, size) for size in range(len(rows), -1, -1))
    return [frozenset(row) for row in chain.from_iterable(sizes)]


def ways(outcome: Outcome) -> list[Moves]:
    """All allowed ways to carry the outcome out; none: no order of steps has room, so the outcome is impossible."""
    lanes = outcome.world.lanes
    must = frozenset(
        lane.id
        for lane in lanes.values()
        if not lane.loaded and lane.startable and outcome.weight(lane) is ALWAYS and planned_for(outcome, lane)
    )
    wanted = taking_over(outcome) - must
    tried: dict[frozenset[str], list[Moves]] = {}
    for more in subsets(wanted):
        if any(more < other and found for other, found in tried.items()):
            continue  # A lane that takes over is started wherever there is a way to make room for it.
        tried[more] = list(_with_starts(outcome, must | more))
    return [moves for found in tried.values() for moves in found]


def planned_for(outcome: Outcome, lane: LaneFacts) -> bool:
    """Whether a plan sees to it that a lane is loaded: a route leads to it, or a hard wish of its residency."""
    hard = [outcome.world.hard[key].residency for key in outcome.rests_on(lane)]
    return lane.id in outcome.routed_by_us or outcome.residency[lane.id] in hard


def taking_over(outcome: Outcome) -> frozenset[str]:
    """Lanes not loaded that answer an alias first in place of a running lane."""
    lanes = outcome.world.lanes
    result = set()
    for name, route in outcome.routes.items():
        lane = lanes[route[0][1]] if route and route[0][1] else None
        now = outcome.world.aliases[name].now
        before = lanes.get(now[0][1] or "") if now else None
        if lane is None or before is None or lane.id == before.id or lane.loaded or not lane.managed:
            continue
        if before.loaded and not before.dead and lane.startable:
            result.add(lane.id)
    return frozenset(result)


def _with_starts(outcome: Outcome, starts: frozenset[str]) -> Iterator[Moves]:
    """With these starts, every set of stops for room, and every set of preferred lanes that are started besides."""
    lanes = outcome.world.lanes
    stoppable = [
        lane.id
        for lane in lanes.values()
        if lane.loaded
        and lane.managed
        and not (lane.hands_off or lane.dead or lane.leaving)
        and lane.id not in outcome.gone
        and outcome.weight(lane) in (PREFERRED, AUTO)
    ]
    for room in subsets(stoppable):
        bare = Moves(starts, room, outcome.gone, _restarts(outcome, starts | room))
        if not _has_room(outcome, bare) or not all(_needed(outcome, bare, name) for name in room):
            continue
        idle = [
            lane.id
            for lane in lanes.values()
            if outcome.weight(lane) is PREFERRED
            and lane.startable
            and lane.id not in starts
            and (not lane.loaded or lane.id in room)
            and (planned_for(outcome, lane) or lane.id in room)
        ]
        found: list[frozenset[str]] = []
        for restored in subsets(idle):
            if any(restored < other for other in found):
                continue  # A preferred lane is started where it fits beside all that is loaded.
            moves = Moves(starts | restored, room, outcome.gone, _restarts(outcome, starts | restored | room))
            if _has_room(outcome, moves):
                found.append(restored)
                if _moved_rightly(outcome, moves):
                    yield moves


def _needed(outcome: Outcome, moves: Moves, name: str) -> bool:
    """Whether the loads of others need the memory of a lane that is stopped for room."""
    without = Moves(moves.starts, moves.room - {name}, moves.gone, moves.restarts)
    return not _has_room(outcome, without)


def _restarts(outcome: Outcome, started: frozenset[str]) -> frozenset[str]:
    """Running lanes whose residency changes under a build that restarts them for it."""
    return frozenset(
        lane.id
        for lane in outcome.world.lanes.values()
        if lane.managed
        and lane.loaded
        and lane.edit_restarts
        and lane.id not in started | outcome.gone
        and outcome.residency[lane.id] is not lane.residency
    )


def _has_room(outcome: Outcome, moves: Moves) -> bool:
    """Whether some order of the loads fits.

    What may be stopped is stopped before; what a person stops, and what goes because its model moved, comes last.
    """
    lanes = outcome.world.lanes
    leaves = {name for name in moves.gone if lanes[name].managed and not may_move(outcome, lanes[name])} | moves.room
    held = frozenset(lane.id for lane in lanes.values() if lane.holds and lane.id not in leaves)
    loads = moves.starts | moves.restarts
    if not all(lanes[name].restartable for name in loads):
        return False
    return any(_order_fits(outcome, held, order) for order in permutations(sorted(loads)))


def _order_fits(outcome: Outcome, held: frozenset[str], order: tuple[str, ...]) -> bool:
    for name in order:
        if not _fits(outcome, held - {name}, outcome.world.lanes[name]):
            return False
        held |= {name}
    return True


def _fits(outcome: Outcome, held: frozenset[str], lane: LaneFacts) -> bool:
    """What is loaded, and the lane at its peak, within the limit of each of its domains (or what is loaded now)."""
    world = outcome.world
    for key, peak in lane.peak.items():
        now = sum(other.memory.get(key, 0) for other in world.lanes.values() if other.holds)
        used = sum(world.lanes[name].memory.get(key, 0) for name in held)
        if key in world.limits and used + peak > max(world.limits[key][0], now):
            return False
    return True


def _moved_rightly(outcome: Outcome, moves: Moves) -> bool:
    """A further running lane of a model goes when its model moved and every planned lane that serves it is up."""
    world = outcome.world
    for lane in world.lanes.values():
        if not may_move(outcome, lane) or lane.id in moves.room:
            continue
        successors = {
            other.id
            for other in world.lanes.values()
            if other.id != lane.id and other.id in outcome.routed and set(other.models) & set(lane.models)
        }
        up = all(
            name in moves.starts or (world.lanes[name].loaded and name not in moves.room | moves.gone)
            for name in successors
        )
        moved = lane.id not in outcome.routed and bool(successors) and up
        if moved is not (lane.id in outcome.gone):
            return False
    return True


def may_move(outcome: Outcome, lane: LaneFacts) -> bool:
    """Whether a running lane is ours to retire, and nothing else decides whether it stays."""
    world = outcome.world
    if not lane.loaded or lane.dead or lane.hands_off or lane.leaving or lane.asked_stopped or lane.stop_unrouted:
        return False
    elsewhere = [pin for pin in outcome.pins if pin.rpartition("@")[0] in lane.models and not world.named(pin, lane)]
    return (lane.managed and lane.by_agent) or bool(elsewhere)
