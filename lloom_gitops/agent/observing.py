"""The agent's eyes: one look at the whole pool a turn, and fresh looks at single nodes while a plan is applied."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping

import msgspec

from lloom_gitops.agent.world import PoolObserver
from lloom_gitops.catalog.facts import facts
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.errors import Unreachable
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import StepKind
from lloom_gitops.ports import Clock, Gateway
from lloom_gitops.reconcile.effects import Facts, nodes_of


class Eyes:
    """What is known of the pool, and how it is seen afresh; safe to use from several threads.

    `known` begins as the committed inventory. `answered` (seconds since 1970 by node) is what earlier turns saw; it is
    kept up to date. `observer` makes an observer of some nodes (None: all).
    """

    def __init__(
        self,
        desired: Desired,
        known: Inventory,
        answered: Mapping[str, float],
        observer: Callable[[Desired, Collection[str] | None], PoolObserver],
        clock: Clock,
    ) -> None:
        self._desired = desired
        self._known = known
        self._answered = dict(answered)
        self._make = observer
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: dict[frozenset[str] | None, list[PoolObserver]] = {}

    @property
    def known(self) -> Inventory:
        """The latest facts of each node."""
        return self._known

    @property
    def answered(self) -> dict[str, float]:
        """When each node last answered, seconds since 1970."""
        return dict(self._answered)

    def look_around(self) -> tuple[str, ...]:
        """Observe every node; notes for people. Raises `Unreachable` when not one gateway could be read."""
        return self._look(None)

    def facts_of(self, step: Step, gateways: Mapping[str, Gateway]) -> Facts:
        """Facts in which all that `step` speaks of is fresh. A node that does not answer shows as not seen."""
        head = self._desired.pool.head
        declared = self._desired.nodes.keys()
        self._look(frozenset(declared & nodes_of(step, facts(self._desired, self._known), head)))
        tree = facts(self._desired, self._known)
        lane = self._known.lanes.get(step.lane or "")
        if step.kind is StepKind.DRAIN and lane is not None and lane.owner in gateways:
            reading = gateways[lane.owner].read_lane(step.lane or "", distributed=len(lane.nodes) > 1)
            tree["lanes"][step.lane]["activeRequests"] = None if reading is None else reading.active_requests
        return tree

    def _look(self, nodes: frozenset[str] | None) -> tuple[str, ...]:
        observer = self._borrow(nodes)
        try:
            seen = observer.observe(self._known, self._monotonic())
        finally:
            with self._lock:
                self._idle.setdefault(nodes, []).append(observer)
        if seen.failed and nodes is None:
            raise Unreachable(
                code="noGateway",
                message="no gateway could be read: " + ("; ".join(seen.notes) or "no node has an endpoint"),
                hint="look at the endpoints in fleet/nodes/, and that the variables named there hold the keys",
            )
        now = self._clock.now().timestamp()
        with self._lock:
            self._answered |= dict.fromkeys(seen.answered, now)
            self._known = seen.inventory if nodes is None else merged(self._known, seen.inventory, nodes, self._head)
        return seen.notes

    def _borrow(self, nodes: frozenset[str] | None) -> PoolObserver:
        """An observer that nobody else uses now: one in use would share its look, which may have begun too early."""
        with self._lock:
            idle = self._idle.get(nodes)
            if idle:
                return idle.pop()
        return self._make(self._desired, nodes)

    def _monotonic(self) -> dict[str, float]:
        """Last answers on the monotonic clock."""
        wall, now = self._clock.now().timestamp(), self._clock.monotonic()
        return {node: now - max(0.0, wall - at) for node, at in self._answered.items()}

    @property
    def _head(self) -> str:
        return self._desired.pool.head


def merged(known: Inventory, seen: Inventory, nodes: frozenset[str], head: str) -> Inventory:
    """`known` with what a look at `nodes` found of them, so that two looks at once don't undo each other."""
    lanes = {name: lane for name, lane in known.lanes.items() if lane.owner not in nodes}
    lanes |= {name: lane for name, lane in seen.lanes.items() if lane.owner in nodes}
    return msgspec.structs.replace(
        known,
        nodes={**known.nodes, **{name: seen.nodes[name] for name in nodes if name in seen.nodes}},
        lanes={name: lanes[name] for name in sorted(lanes)},
        aliases=seen.aliases if head in nodes else known.aliases,
    )
