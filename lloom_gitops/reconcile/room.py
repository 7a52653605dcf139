"""Room for starts: which loaded lanes stop before a start so that its load peak fits, and how aliases bridge it."""

from __future__ import annotations

import msgspec

from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.words import Feature, LaneState, Residency, StopReason

from .transition import Transition

Answered = dict[str, tuple[str, ...]]
"""Aliases that each lane answers now (`Transition.answered_now`)."""


class RoomStop(msgspec.Struct, frozen=True, kw_only=True):
    """A lane that stops before a start. `interim` aliases first flip to what else answers them; `gaps` have nothing."""

    lane: str
    why: StopReason
    interim: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """Stops before each start (only starts that need some), and lanes started again afterwards."""

    before: dict[str, tuple[RoomStop, ...]]
    restarts: tuple[str, ...]

    @property
    def stopped(self) -> dict[str, RoomStop]:
        """All room stops by lane."""
        return {stop.lane: stop for stops in self.before.values() for stop in stops}


def held_now(change: Transition) -> dict[str, int]:
    """Memory held by domain now, MiB: loaded, loading at the peak, draining and stopping."""
    held: dict[str, int] = {}
    for variant in change.variants.values():
        for key, mib in holding(variant).items():
            held[key] = held.get(key, 0) + mib
    return held


def holding(variant: Variant) -> dict[str, int]:
    """What a lane holds now by domain, MiB: its peak while it loads, nothing where it is stopped."""
    if not variant.state.holds_memory:
        return {}
    return variant.peak if variant.state is LaneState.LOADING else variant.memory


def make_room(change: Transition) -> Room | None:
    """Stops that make every start fit in turn, or None where no order can make room.

    Lanes are given up in this order: wanted stops whose aliases don't wait for this start, auto lanes, wanted stops
    that an interim route can bridge, preferred lanes (started again afterwards). An unknown limit is not judged.
    """
    held = held_now(change)
    before: dict[str, tuple[RoomStop, ...]] = {}
    restarts: list[str] = []
    gone: set[str] = set()
    up: set[str] = set()
    answered = change.answered_now()
    for start in change.starts:
        short = _short(change, held, change.variants[start].peak)
        stops: list[RoomStop] = []
        full = any(mib > 0 for mib in short.values())
        for candidate in _candidates(change, answered, start, short, gone, up) if full else ():
            if not any(mib > 0 for mib in short.values()):
                break
            stops.append(_stop(change, answered, candidate, start, up))
            gone.add(candidate)
            for key, mib in holding(change.variants[candidate]).items():
                held[key] = held.get(key, 0) - mib
            short = _short(change, held, change.variants[start].peak)
        if any(mib > 0 for mib in short.values()):
            return None
        for spared in _spared(change, stops, short):
            stops.remove(spared)
            gone.discard(spared.lane)
            for key, mib in holding(change.variants[spared.lane]).items():
                held[key] = held.get(key, 0) + mib
        if stops:
            before[start] = tuple(stops)
        up.add(start)
        for key, mib in change.variants[start].memory.items():
            held[key] = held.get(key, 0) + mib
        restarts += [s.lane for s in stops if s.lane not in change.stops and _restarts(change, s.lane)]
    if any(_too_high(change, held, lane) for lane in change.changes if lane not in gone):
        return None
    return Room(before=before, restarts=_that_fit(change, held, restarts))


def _spared(change: Transition, stops: list[RoomStop], short: dict[str, int]) -> list[RoomStop]:
    """Stops that turned out not to be needed: a later one made enough room."""
    spared, spare = [], {key: -mib for key, mib in short.items()}
    for stop in stops[:-1]:
        frees = holding(change.variants[stop.lane])
        if all(frees.get(key, 0) <= spare[key] for key in spare):
            spared.append(stop)
            spare = {key: mib - frees.get(key, 0) for key, mib in spare.items()}
    return spared


def _too_high(change: Transition, held: dict[str, int], lane: str) -> bool:
    """Whether a residency edit restarts a loaded lane (REC-11) whose peak does not fit beside the rest."""
    variant = change.variants[lane]
    if not variant.loaded or lane in change.stops or change.can(variant.owner, Feature.RESIDENCY):
        return False
    rest = {key: mib - holding(variant).get(key, 0) for key, mib in held.items()}
    return any(mib > 0 for mib in _short(change, rest, variant.peak).values())


def _that_fit(change: Transition, held: dict[str, int], lanes: list[str]) -> tuple[str, ...]:
    """Preferred lanes that fit again after all starts; the gateway restores the others when there is room."""
    fitting = []
    for lane in lanes:
        if any(mib > 0 for mib in _short(change, held, change.variants[lane].peak).values()):
            continue
        fitting.append(lane)
        for key, mib in change.variants[lane].memory.items():
            held[key] = held.get(key, 0) + mib
    return tuple(fitting)


def _short(change: Transition, held: dict[str, int], peak: dict[str, int]) -> dict[str, int]:
    """What is missing at each domain of a load, MiB; nothing where the limit is unknown."""
    result = {}
    for key, mib in peak.items():
        limit = change.limits.get(key)
        if limit is not None and limit.limit_mib is not None:
            result[key] = held.get(key, 0) + mib - limit.limit_mib
    return result


def _restarts(change: Transition, lane: str) -> bool:
    """Whether a lane is started again afterwards: it is preferred, and some route leads to it."""
    routed = any(lane in lanes for _, lanes in change.after.values())
    return routed and change.residency.get(lane, Residency.AUTO) is Residency.PREFERRED


def _candidates(
    change: Transition, answered: Answered, start: str, short: dict[str, int], gone: set[str], up: set[str]
) -> list[str]:
    """Loaded lanes on the short domains that may stop for this start, the cheapest to give up first."""
    keys = {key for key, mib in short.items() if mib > 0}
    ranked = []
    for variant in change.variants.values():
        if not (variant.managed and variant.loaded and keys & set(variant.memory)):
            continue
        if variant.id in gone | up | change.untouchable or variant.id == start:
            continue
        residency = change.residency.get(variant.id, Residency.AUTO)
        wanted = variant.id in change.stops
        if residency is Residency.ALWAYS and not wanted:
            continue
        waits = bool(_losing(change, answered, variant.id, up))
        rank = 0 if wanted and not waits else 1 if not wanted and residency is Residency.AUTO else 2 if wanted else 3
        ranked.append((rank, waits, variant.load_ms or 0, variant.id))
    return [name for *_, name in sorted(ranked)]


def _losing(change: Transition, answered: Answered, lane: str, up: set[str]) -> tuple[str, ...]:
    """Aliases that a lane answers now and whose planned first lane is not up yet: a stop would leave them waiting."""
    losing = []
    for alias in answered.get(lane, ()):
        if alias not in change.after:
            continue
        first = next(iter(change.after[alias][1]), None)
        ready = first in up or (first in change.variants and change.variants[first].loaded and first != lane)
        on_request = first == lane and change.residency.get(lane) is Residency.AUTO
        if not ready and not on_request:
            losing.append(alias)
    return tuple(losing)


def _stop(change: Transition, answered: Answered, lane: str, start: str, up: set[str]) -> RoomStop:
    interim: list[str] = []
    gaps: list[str] = []
    for alias in _losing(change, answered, lane, up):
        target = interim if interim_route(change, alias, lane, start) else gaps
        target.append(alias)
    why = change.stops.get(lane, StopReason.ROOM)
    return RoomStop(lane=lane, why=why, interim=tuple(interim), gaps=tuple(gaps))


def interim_route(
    change: Transition, alias: str, leaving: str, start: str
) -> tuple[tuple[str, ...], tuple[str | None, ...]] | None:
    """What may answer an alias while a swap is under way, by its `interim` wish; None: nothing may."""
    route, lanes = change.after[alias]
    allowed = change.aliases[alias].interim
    kept = [
        (model, lane)
        for model, lane in zip(route, lanes, strict=True)
        if lane not in (leaving, start) and (lane is None or _answers(change, lane))
    ]
    local = any(lane is not None for _, lane in kept)
    if not kept or (allowed == "local" and not local):
        return None
    return tuple(model for model, _ in kept), tuple(lane for _, lane in kept)


def _answers(change: Transition, lane: str) -> bool:
    variant = change.variants.get(lane)
    return variant is not None and (variant.loaded or (variant.managed and lane not in change.starts))
