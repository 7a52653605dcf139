"""The fold: carry a plan's steps out on paper, and judge every state on the way and the one at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from lloom_gitops.catalog.facts import holds, lookup
from lloom_gitops.catalog.memory import exact_gib
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import Read, Step
from lloom_gitops.model.words import Feature, LaneState, Residency, StepKind, StopReason

from .plan_codes import at, fault
from .plan_graph import Graph
from .plan_lanes import obstacle
from .plan_scene import LaneFacts, Scene, is_stop
from .plan_steps import is_residency, is_route

_FREE = re.compile(r"/nodes/(?P<node>[^/]+)/memoryDomains/(?P<index>\d+)/freeGb")


def fold_findings(scene: Scene, graph: Graph) -> Iterator[Finding]:
    """Findings of the listed order, and of other orders that `after` allows (a fault is reported once)."""
    places = {step.id: index for index, step in enumerate(scene.plan.steps)}
    told: set[tuple[str, str]] = set()
    stranded: set[str] = set()
    users = _users(scene)
    for order in graph.orders():
        state = State(scene, users)
        for step in order:
            for finding in state.take(step, places[step.id]):
                if (finding.code, finding.pointer) not in told:
                    told.add((finding.code, finding.pointer))
                    yield finding
        stranded |= state.stranded
        if order is graph.steps:
            yield from state.outcome()
    for index, gap in enumerate(scene.plan.gaps):
        if gap.alias not in stranded and not _touched(scene, gap.alias):
            yield fault("planGapUnseen", at("gaps", index), f"{gap.alias} is served all the time")


def _users(scene: Scene) -> dict[str, set[str]]:
    """Aliases that lead to each lane at any time."""
    routes = [(alias, lanes) for alias, (_, lanes) in (*scene.routes_before.items(), *scene.routes_after.items())]
    routes += [(step.alias, step.lanes) for step in scene.plan.steps if step.alias and step.lanes]
    users: dict[str, set[str]] = {}
    for alias, lanes in routes:
        for lane in lanes:
            if lane is not None:
                users.setdefault(lane, set()).add(alias)
    return users


def _touched(scene: Scene, alias: str) -> bool:
    """Whether a lane that the alias uses now or then is stopped or restarted, for however short a time."""
    down = {*scene.stops, *(change.lane for change in scene.plan.diff.residency if change.restarts)}
    lanes = {*scene.routes_before.get(alias, ((), ()))[1], *scene.routes_after.get(alias, ((), ()))[1]}
    return bool(lanes & down)


class State:
    """The pool at one point of an order: what holds memory, what routes there are, what reads would find."""

    def __init__(self, scene: Scene, users: dict[str, set[str]]) -> None:
        self.scene = scene
        self.users = users
        self.tree: dict[str, Any] = _base(scene)
        self.held: dict[str, dict[str, int]] = {}
        for name, lane in scene.lanes.items():
            if lane.state.holds_memory:
                self.held[name] = lane.peak if lane.state is LaneState.LOADING else lane.memory
        self.usage: Counter[str] = Counter()
        for memory in self.held.values():
            self.usage.update(memory)
        self.before = dict(self.usage)
        self.routes = dict(scene.routes_before)
        self.residency = {name: lane.residency for name, lane in scene.lanes.items()}
        self.away = {n for n, lane in scene.lanes.items() if lane.state.holds_memory and not lane.state.loaded}
        self.stranded: set[str] = set()
        self.served = {name for name in self.routes if self.answers(name)}

    def hold(self, lane: str, memory: dict[str, int]) -> None:
        """A lane holds this much from now on (nothing: it is gone)."""
        self.usage.subtract(self.held.pop(lane, {}))
        if memory:
            self.held[lane] = memory
            self.usage.update(memory)

    def answers(self, alias: str) -> bool:
        """Whether some entry of an alias's route is live: an external model, or a lane that is up or may be loaded."""
        route, lanes = self.routes.get(alias, ((), ()))
        known = self.scene.lanes
        return any(
            (lane is None and model not in self.scene.own_models) or (lane in known and self._live(known[lane]))
            for model, lane in zip(route, lanes, strict=False)
        )

    def _live(self, lane: LaneFacts) -> bool:
        if self.scene.dead(lane) or lane.id in self.away:
            return False
        if lane.id in self.held:
            return True
        return lane.managed and obstacle(self.scene, lane) is None

    def take(self, step: Step, index: int) -> Iterator[Finding]:
        """Judge a step where the order puts it, then carry it out."""
        for number, read in enumerate(step.reads):
            if not self._holds(read, step):
                yield fault(
                    "planReadFails",
                    at("steps", index, "reads", number),
                    f"{step.id} would be stale: {read.at}",
                    wanted=_wanted(read),
                    found=str(self._found(read)),
                )
        if step.kind is StepKind.START:
            yield from self._fits(step, index)
        if self._restarts(step):
            yield from self._fits(step, index)
            self.away.add(step.lane or "")
            yield from self._bare(step, index)
            self.away.discard(step.lane or "")
        self._carry_out(step)
        yield from self._bare(step, index)

    def _restarts(self, step: Step) -> bool:
        """A residency change that takes a lane down and loads it again (REC-11)."""
        changes = self.scene.plan.diff.residency
        said = is_residency(step) and any(change.lane == step.lane and change.restarts for change in changes)
        return said and step.lane in self.held and step.lane not in self.away

    def _bare(self, step: Step, index: int) -> Iterator[Finding]:
        """Aliases that were served and now have no live target."""
        concerned = {step.alias} if step.alias is not None else self.users.get(step.lane or "", set())
        # Whether an alias may be removed is judged with the routes.
        removed = {change.alias for change in self.scene.plan.diff.routes if not change.after}
        for alias in sorted(self.served & concerned - removed):
            if alias in self.stranded or self.answers(alias):
                continue
            self.stranded.add(alias)
            if not any(gap.alias == alias for gap in self.scene.plan.gaps):
                yield fault("planAliasStranded", at("steps", index), f"{step.id} leaves {alias} with nothing")

    def _fits(self, step: Step, index: int) -> Iterator[Finding]:
        lane = self.scene.lanes[step.lane or ""]
        for key, peak in lane.peak.items():
            limit = self.scene.limits.get(key)
            if limit is None or limit.limit_mib is None:
                continue
            mib = self.usage[key] - self.held.get(lane.id, {}).get(key, 0) + peak
            bound = max(limit.limit_mib, self.before.get(key, 0))
            if mib > bound:
                yield fault(
                    "planMemoryOnTheWay",
                    at("steps", index),
                    f"{step.id} loads {lane.id} where {key} is too full",
                    wanted=f"at most {bound} MiB",
                    found=f"{mib} MiB",
                )

    def _carry_out(self, step: Step) -> None:
        lane = self.scene.lanes.get(step.lane or "")
        if is_route(step):
            self._route(step)
        elif lane is None or (step.kind is StepKind.MANUAL and step.does == "start"):
            return
        elif step.kind is StepKind.INSTALL:
            self._put(lane.id, "state", LaneState.STOPPED.value)
        elif step.kind is StepKind.START:
            self.hold(lane.id, lane.memory)
            self.away.discard(lane.id)
            self._put(lane.id, "state", LaneState.RUNNING.value)
            if self.scene.has(lane.owner, Feature.RESIDENCY) or lane.owner == self.scene.desired.pool.head:
                self._set_residency(lane.id, step.residency)
        elif is_residency(step):
            self._set_residency(lane.id, step.residency)
        elif step.kind is StepKind.DRAIN:
            if not self._comes_back_cold(lane):
                self.away.add(lane.id)
            self._put(lane.id, "state", LaneState.DRAINING.value)
        elif is_stop(step):
            self.hold(lane.id, {})
            if not self._comes_back_cold(lane):
                self.away.add(lane.id)
            self._put(lane.id, "state", LaneState.STOPPED.value)

    def _comes_back_cold(self, lane: LaneFacts) -> bool:
        """A lane that makes room and stays in the outcome is loaded again on request, as any auto lane is."""
        step = self.scene.stops.get(lane.id)
        return step is not None and step.why is StopReason.ROOM and lane.id not in self.scene.started

    def _set_residency(self, lane: str, residency: Residency | None) -> None:
        if residency is not None:
            self.residency[lane] = residency
            self._put(lane, "residency", residency.value)

    def _route(self, step: Step) -> None:
        alias, route = step.alias or "", step.route or ()
        if not route:
            self.routes.pop(alias, None)
            self.tree["aliases"].pop(alias, None)
            return
        lanes = step.lanes
        if lanes is None:
            planned = self.scene.plan.routes.get(alias)
            only = tuple(next(iter(self.scene.lanes_of_model.get(model, ())), None) for model in route)
            lanes = planned.lanes if planned is not None and planned.route == route else only
        self.routes[alias] = (route, lanes)
        self.tree["aliases"][alias] = {"route": list(route), "lanes": list(lanes)}

    def _put(self, lane: str, field: str, value: str) -> None:
        self.tree["lanes"][lane] = {**self.tree["lanes"].get(lane, {}), field: value}

    # -- reads -----------------------------------------------------------------------------------------------------

    def _found(self, read: Read) -> Any:
        match = _FREE.fullmatch(read.at)
        if match is None:
            return lookup(read.at, self.tree)
        node = match["node"].replace("~1", "/").replace("~0", "~")
        for key in self.scene.domain_keys.get(node, ()):
            limit = self.scene.limits[key]
            if limit.index == int(match["index"]):
                return None if limit.limit_mib is None else exact_gib(limit.limit_mib - self.usage[key])
        return None

    def _holds(self, read: Read, step: Step) -> bool:
        if _FREE.fullmatch(read.at):
            free = self._found(read)
            return free is not None and holds(msgspec.structs.replace(read, at="/free"), {"free": free})
        if holds(read, self.tree):
            return True
        # A gateway that is draining a lane may call it running or draining.
        draining = step.lane is not None and read.at == at("lanes", step.lane, "state")
        return draining and lookup(read.at, self.tree) == "draining" and read.equals == "running"

    def outcome(self) -> Iterator[Finding]:
        """Where the state after the last step is not what the plan says comes out."""
        for name, wanted in sorted(self.scene.residency.items()):
            if self.scene.lanes[name].managed and self.residency[name] is not wanted:
                yield fault(
                    "planOutcome",
                    at("lanes", name, "residency"),
                    f"no step gives {name} its residency",
                    wanted=wanted.value,
                    found=self.residency[name].value,
                )
        for alias in sorted({*self.routes, *self.scene.routes_after}):
            planned = self.scene.routes_after.get(alias, ((), ()))
            found = self.routes.get(alias, ((), ()))
            if planned != found:
                yield fault(
                    "planOutcome",
                    at("routes", alias),
                    f"no step gives {alias} its route",
                    wanted=", ".join(planned[0]),
                    found=", ".join(found[0]),
                )


def _base(scene: Scene) -> dict[str, Any]:
    """Facts as things are now; the maps that steps change are copies."""
    tree = scene.tree if scene.plan.steps else {"lanes": {}, "aliases": {}}
    return {**tree, "lanes": dict(tree["lanes"]), "aliases": dict(tree["aliases"])}


def _wanted(read: Read) -> str:
    return str(read.equals) if read.at_least is msgspec.UNSET else f"at least {read.at_least}"
