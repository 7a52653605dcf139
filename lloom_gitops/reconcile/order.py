"""A transition to ordered steps: make before break (REC-1 to REC-8)."""

from __future__ import annotations

from lloom_gitops.catalog.facts import pointer
from lloom_gitops.catalog.memory import exact_gib
from lloom_gitops.catalog.variants import Variant
from lloom_gitops.model.plan import Gap, Read, Step
from lloom_gitops.model.words import Feature, LaneState, Residency, StepKind, StopReason

from .room import Room, RoomStop, interim_route
from .transition import Route, Transition


class Ordering:
    """Builds the step list of one transition; `steps` and `gaps` are the result."""

    def __init__(self, change: Transition, room: Room) -> None:
        self.change = change
        self.room = room
        self.steps: list[Step] = []
        self.gaps: list[Gap] = []
        self._ids: dict[str, str] = {}
        self._times: dict[str, int] = {}
        self._started: set[str] = set()
        self._bridged: dict[str, str] = {}  # alias on an interim route: the start that it waits for
        self._routes: dict[str, Route] = dict(change.before)
        self._changed = frozenset(change.changed_routes)
        self._named = _aliases_of_lanes(change.before)
        self._build()

    def _build(self) -> None:
        """The phases, in the order in which their steps stand in the plan."""
        change = self.change
        for lane in self._early_downgrades():
            self._residency(lane, after=())
        for lane in change.installs:
            self._install(lane)
        for lane in change.starts:
            self._make_room(lane)
            self._start(lane)
        for lane in self._upgrades():
            self._residency(lane, after=())
        # An alias that only went round a lane which made room comes back to the route that it had.
        for alias in sorted({*change.changed_routes, *self._bridged}):
            if self._routes.get(alias) != change.after[alias]:
                self._route(alias, change.after[alias])
        for alias in change.removed:
            self._route(alias, ((), ()))
        for lane in self._downgrades():
            waits_for_stop = lane in change.stops and self._restarts(lane)
            if f"residency:{lane}" not in self._ids and not waits_for_stop:
                self._residency(lane, after=self._routes_leaving(lane))
        for lane, why in change.stops.items():
            if lane not in self.room.stopped:
                self._drain_and_stop(lane, why, after=self._routes_leaving(lane), routed=change.after)
        for lane in self.room.restarts:
            self._start(lane)
        for lane in change.manual_starts:
            self._manual_start(lane)

    def _add(self, name: str, **fields: object) -> str:
        """Append a step whose id comes from its content; a repeat in one plan gets `~2`."""
        count = self._times[name] = self._times.get(name, 0) + 1
        step_id = name if count == 1 else f"{name}~{count}"
        self.steps.append(Step(id=step_id, **fields))  # type: ignore[arg-type]
        self._ids[name] = step_id
        return step_id

    def _done(self, *names: str) -> tuple[str, ...]:
        """Ids of earlier steps by name, those that exist."""
        return tuple(dict.fromkeys(self._ids[name] for name in names if name in self._ids))

    # -- starts ---------------------------------------------------------------------------------------------------

    def _start(self, lane: str) -> None:
        change, variant = self.change, self.change.variants[lane]
        wanted = change.residency.get(lane, Residency.AUTO)
        after: list[str] = []
        after += self._done(f"install:{lane}")
        if variant.installed and wanted is not variant.residency and not change.can(variant.owner, Feature.RESIDENCY):
            step = self._residency(lane, after=())
            after += [step] if variant.owner == change.head else []
        after += self._done(*(f"stop:{stop}" for stop in self._stopped_beside(variant)))
        if lane in self.room.restarts:
            displaced_by = [start for start, rows in self.room.before.items() if lane in {row.lane for row in rows}]
            after += self._done(f"stop:{lane}", *(f"start:{start}" for start in displaced_by))
        self._add(
            f"start:{lane}",
            kind=StepKind.START,
            node=variant.owner,
            lane=lane,
            residency=wanted,
            timeout_seconds=variant.start_timeout or change.timeouts.start,
            after=tuple(after),
            reads=_alive(variant) + self._space(variant),
        )
        self._started.add(lane)

    def _install(self, lane: str) -> None:
        variant = self.change.variants[lane]
        self._add(
            f"install:{lane}",
            kind=StepKind.INSTALL,
            node=variant.owner,
            lane=lane,
            recipe=variant.recipe,
            timeout_seconds=self.change.timeouts.install,
            reads=_alive(variant),
        )

    def _stopped_beside(self, variant: Variant) -> list[str]:
        """Lanes stopped so far to make room on a domain of this lane: its load counts on their memory."""
        stopped = (stop.lane for stops in self.room.before.values() for stop in stops)
        return [lane for lane in stopped if set(self.change.variants[lane].memory) & set(variant.memory)]

    def _space(self, variant: Variant) -> tuple[Read, ...]:
        """Free memory that the load peak needs; a lane that is loading already holds its own."""
        if variant.state is LaneState.LOADING:
            return ()
        reads = []
        for key, mib in variant.peak.items():
            limit = self.change.limits.get(key)
            if limit is not None and limit.limit_mib is not None:
                at = pointer("nodes", limit.node, "memoryDomains", limit.index, "freeGb")
                reads.append(Read(at=at, at_least=exact_gib(mib).normalize() + 0))
        return tuple(reads)

    def _make_room(self, start: str) -> None:
        for stop in self.room.before.get(start, ()):
            routes = [self._route(alias, self.change.after[alias]) for alias in self._movable(stop)]
            for alias in stop.interim:
                route = interim_route(self.change, alias, stop.lane, start)
                if route is not None:
                    routes.append(self._route(alias, route, interim=route != self.change.after[alias]))
                    self._bridged[alias] = start
            self._gaps(stop, start)
            routed = {**self._routes, **{alias: self._interim(alias, stop, start) for alias in stop.interim}}
            self._drain_and_stop(stop.lane, stop.why, after=tuple(routes), routed=routed)

    def _movable(self, stop: RoomStop) -> list[str]:
        """Aliases that name a lane which stops for room, and whose new route needs nothing that is still to come."""
        rest = [alias for alias in self.change.changed_routes if alias not in (*stop.interim, *stop.gaps)]
        pending = set(self.change.starts) - self._started
        installs = set(self.change.installs)
        return [
            alias
            for alias in rest
            if stop.lane in self._routes.get(alias, ((), ()))[1]
            and stop.lane not in self.change.after[alias][1]
            and not installs & set(self.change.after[alias][1])
            and self.change.after[alias][1][0] not in pending
        ]

    def _interim(self, alias: str, stop: RoomStop, start: str) -> Route:
        return interim_route(self.change, alias, stop.lane, start) or ((), ())

    def _gaps(self, stop: RoomStop, start: str) -> None:
        loads = [self.change.variants[start]]
        if stop.lane in self.room.restarts:
            loads.append(self.change.variants[stop.lane])
        seconds = sum((variant.load_ms or 0) for variant in loads) // 1000
        self.gaps += [Gap(alias=alias, seconds=seconds, because=f"room:{start}") for alias in stop.gaps]

    # -- routes and residency -------------------------------------------------------------------------------------

    def _route(self, alias: str, target: Route, *, interim: bool = False) -> str:
        route, lanes = self._routes[alias] = target
        first = lanes[0] if lanes else None
        waits = self._done(*(f"install:{lane}" for lane in lanes))
        waits += self._done(f"start:{first}") if first in self._started else ()
        if not interim and alias in self._bridged:
            waits += self._done(f"route:{alias}", f"start:{self._bridged[alias]}")
        if first is not None and self._restarts(first):
            waits += self._done(f"residency:{first}")
        reads: tuple[Read, ...] = ()
        if first is not None and self._up(first):
            reads = (Read(at=pointer("lanes", first, "state"), equals=LaneState.RUNNING.value),)
        return self._add(
            f"route:{alias}",
            kind=StepKind.ROUTE,
            node=self.change.head,
            alias=alias,
            route=route,
            lanes=lanes,
            interim=interim,
            timeout_seconds=self.change.timeouts.route,
            after=tuple(dict.fromkeys(waits)),
            reads=reads,
        )

    def _restarts(self, lane: str) -> bool:
        """Whether a residency edit restarts the lane: it is loaded, and its gateway build takes it from its file."""
        variant = self.change.variants[lane]
        return lane in self.change.changes and variant.loaded and not self.change.can(variant.owner, Feature.RESIDENCY)

    def _restart_gaps(self, lane: str) -> None:
        """Aliases that a restarting lane answers alone have a gap for as long as it loads."""
        if not self._restarts(lane) or f"stop:{lane}" in self._ids:
            return
        for alias, (route, lanes) in sorted(self._routes.items()):
            others = [(model, name) for model, name in zip(route, lanes, strict=False) if name != lane]
            if lane in lanes and not any(self._live(model, name) for model, name in others):
                seconds = (self.change.variants[lane].load_ms or 0) // 1000
                self.gaps.append(Gap(alias=alias, seconds=seconds, because=f"restart:{lane}"))

    def _live(self, model: str, lane: str | None) -> bool:
        """Whether an entry answers now: an external model, or a lane that is up or that a request loads."""
        if lane is None:
            return model in self.change.externals
        variant = self.change.variants[lane]
        on_request = variant.managed and lane in self.change.residency and lane not in self.change.starts
        return variant.loaded or lane in self._started or on_request

    def _up(self, lane: str) -> bool:
        return lane in self._started or (
            self.change.variants[lane].state is LaneState.RUNNING and f"stop:{lane}" not in self._ids
        )

    def _routes_leaving(self, lane: str) -> tuple[str, ...]:
        """Route steps of aliases that name the lane now."""
        return self._done(*(f"route:{alias}" for alias in self._named.get(lane, ())))

    def _waits_for_routes(self, lane: str) -> bool:
        """Whether a route that names the lane now changes: it is downgraded once that route has left it."""
        return not self._changed.isdisjoint(self._named.get(lane, ()))

    def _downgrades(self) -> list[str]:
        return [name for name in self.change.changes if self._downgraded(name)]

    def _downgraded(self, lane: str) -> bool:
        row = self.change.changes.get(lane)
        return row is not None and row.after.rank < row.before.rank

    def _early_downgrades(self) -> list[str]:
        """Downgrades that wait for nothing; an edit that would restart a lane that stops comes after its stop."""
        stopping = {*self.change.stops, *self.room.stopped}
        return [
            lane
            for lane in self._downgrades()
            if not self._waits_for_routes(lane) and not (lane in stopping and self._restarts(lane))
        ]

    def _upgrades(self) -> list[str]:
        return [name for name, row in self.change.changes.items() if row.after.rank > row.before.rank]

    def _residency(self, lane: str, after: tuple[str, ...]) -> str:
        change, variant = self.change, self.change.variants[lane]
        self._restart_gaps(lane)
        wanted = change.changes[lane].after if lane in change.changes else change.residency[lane]
        read = Read(at=pointer("lanes", lane, "residency"), equals=variant.residency.value)
        by_hand = not change.can(variant.owner, Feature.RESIDENCY) and variant.owner != change.head
        says = f"set {lane} to {wanted.value} in the gateway's config on {variant.owner}" if by_hand else None
        return self._add(
            f"residency:{lane}",
            kind=StepKind.MANUAL if by_hand else StepKind.RESIDENCY,
            node=variant.owner,
            lane=lane,
            residency=wanted,
            does=StepKind.RESIDENCY.value if by_hand else None,
            says=says,
            timeout_seconds=None if by_hand else change.timeouts.residency,
            after=after,
            reads=(read,),
        )

    # -- stops ----------------------------------------------------------------------------------------------------

    def _drain_and_stop(self, lane: str, why: StopReason, after: tuple[str, ...], routed: dict[str, Route]) -> None:
        change, variant = self.change, self.change.variants[lane]
        downgrades = self._downgraded(lane) and f"residency:{lane}" not in self._ids
        if downgrades and not self._restarts(lane):
            self._residency(lane, after=after)
        drain = self._add(
            f"drain:{lane}",
            kind=StepKind.DRAIN,
            node=variant.owner,
            lane=lane,
            timeout_seconds=change.drain_seconds.get(lane, change.timeouts.drain),
            after=after,
        )
        by_hand = not variant.managed
        says = variant.declared.manual.stop or f"stop {lane} on {' and '.join(variant.nodes)}"
        downgrade = [] if by_hand else list(self._done(f"residency:{lane}"))
        self._add(
            f"stop:{lane}",
            kind=StepKind.MANUAL if by_hand else StepKind.STOP,
            node=variant.owner,
            lane=lane,
            does=StepKind.STOP.value if by_hand else None,
            why=why,
            says=says if by_hand else None,
            timeout_seconds=None if by_hand else change.timeouts.stop,
            after=(drain, *downgrade),
            reads=self._replaced(lane, routed),
        )
        if downgrades and self._restarts(lane):
            self._residency(lane, after=self._done(f"stop:{lane}"))

    def _replaced(self, lane: str, routed: dict[str, Route]) -> tuple[Read, ...]:
        """What a stop reads again: every alias that named the lane is routed to its replacement, and that is up."""
        reads: dict[str, Read] = {}
        for alias in self._named.get(lane, ()):
            route, lanes = routed.get(alias, ((), ()))
            if not route or (route, lanes) == self.change.before[alias]:
                continue
            first = lanes[0]
            at = pointer("aliases", alias, "route" if first is None else "lanes", 0)
            reads[at] = Read(at=at, equals=route[0] if first is None else first)
            if first is not None and self._up(first):
                at = pointer("lanes", first, "state")
                reads[at] = Read(at=at, equals=LaneState.RUNNING.value)
        return tuple(reads.values())

    def _manual_start(self, lane: str) -> None:
        variant = self.change.variants[lane]
        self._add(
            f"start:{lane}",
            kind=StepKind.MANUAL,
            node=variant.owner,
            lane=lane,
            does=StepKind.START.value,
            says=variant.declared.manual.start or f"start {lane} on {' and '.join(variant.nodes)}",
            reads=_alive(variant),
        )


def _aliases_of_lanes(routes: dict[str, Route]) -> dict[str, tuple[str, ...]]:
    """Aliases that lead to each lane, by id."""
    found: dict[str, dict[str, None]] = {}
    for alias, (_, lanes) in sorted(routes.items()):
        for lane in lanes:
            if lane is not None:
                found.setdefault(lane, {})[alias] = None
    return {lane: tuple(aliases) for lane, aliases in found.items()}


def _alive(variant: Variant) -> tuple[Read, ...]:
    return tuple(Read(at=pointer("nodes", node, "liveness"), equals="ready") for node in variant.nodes)


def order(change: Transition, room: Room) -> tuple[tuple[Step, ...], tuple[Gap, ...]]:
    """The ordered steps of a transition, and the gaps that no order can avoid."""
    ordering = Ordering(change, room)
    return tuple(ordering.steps), tuple(ordering.gaps)
