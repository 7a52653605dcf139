"""Observe the pool: ask every declared gateway at once, bounded in number and time, and put the answers together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from lloom_gitops.catalog.sighting import sight
from lloom_gitops.catalog.sighting_metrics import period_of
from lloom_gitops.catalog.sighting_nodes import NodeBodies
from lloom_gitops.catalog.sighting_wire import table
from lloom_gitops.drivers.gateway_http import READ_SECONDS, has_profiles, probe_health
from lloom_gitops.drivers.gateway_http_call import GatewayCalls
from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.words import LaneState, Management
from lloom_gitops.ports import Clock, GatewayAnswer


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one look at the pool.

    `answered`: nodes whose gateway answered, also those that let nobody read them (a wrong key is no dead node).
    `failed`: not one gateway could be read; nothing may be planned from that. `notes` are for people, by node.
    """

    inventory: Inventory
    answered: frozenset[str]
    failed: bool
    notes: tuple[str, ...] = ()


class _Hardware(msgspec.Struct, frozen=True):
    """What is costly to collect and slow to change, with the time it was collected."""

    at: float
    inventory: Any
    has_profiles: bool | None


class _Answer(msgspec.Struct, frozen=True):
    """One gateway's answers, or why there are none. `alive`: something that is a gateway answered."""

    alive: bool
    bodies: NodeBodies | None = None
    note: str | None = None


class _Collection(msgspec.Struct, frozen=True):
    """The answers of all nodes and of the health addresses of hand-run lanes."""

    at: float
    answers: dict[str, _Answer]
    health: dict[str, LaneState]


class Observer:
    """Looks at the gateways of `desired`; safe to use from several threads.

    `key_of` gives a node's admin key; `nodes` names those to ask (None: all with an endpoint). `timeout` limits all
    that is asked of one node, `concurrency` how many are asked at a time. Lanes, routes and metrics are asked for each
    time; the hardware inventory and the measured sizes of lanes, which cost the gateway something, at most every
    `cache_seconds`. Who asks while a look is under way gets the same one.
    """

    def __init__(
        self,
        desired: Desired,
        key_of: Callable[[Node], str | None],
        clock: Clock,
        *,
        cache_seconds: float = 300,
        concurrency: int = 8,
        timeout: float = 20,
        nodes: Collection[str] | None = None,
    ) -> None:
        self._desired = desired
        self._key_of = key_of
        self._clock = clock
        self._cache_seconds = cache_seconds
        self._concurrency = concurrency
        self._timeout = timeout
        self._nodes = frozenset(desired.nodes if nodes is None else nodes)
        self._lock = threading.Lock()
        self._under_way: Future[_Collection] | None = None
        self._hardware: dict[str, _Hardware] = {}
        self._last_answer: dict[str, float] = {}
        self._first_look: float | None = None

    def observe(self, previous: Inventory, last_answer: Mapping[str, float]) -> Observation:
        """Look now. `previous` is what was known, `last_answer` the clock's monotonic time of last answers by node."""
        collection = self._collect()
        alive = frozenset(node for node, answer in collection.answers.items() if answer.alive)
        bodies = {node: answer.bodies for node, answer in collection.answers.items() if answer.bodies is not None}
        silent = {
            node: None if node in alive else self._silence(node, collection.at, last_answer)
            for node in sorted(self._nodes)
            if node not in bodies
        }
        seen = sight(self._desired, previous, bodies, silent, collection.health)
        said = [f"{node}: {answer.note}" for node, answer in sorted(collection.answers.items()) if answer.note]
        return Observation(inventory=seen.inventory, answered=alive, failed=not bodies, notes=(*said, *seen.notes))

    def _silence(self, node: str, now: float, last_answer: Mapping[str, float]) -> float | None:
        """Seconds since a node's last answer; None while nobody can know, until our own first look is long ago."""
        times = [times[node] for times in (self._last_answer, last_answer) if node in times]
        if times:
            return max(0.0, now - max(times))
        watched = now - (now if self._first_look is None else self._first_look)
        return watched if watched >= self._desired.pool.liveness.lost_seconds else None

    def _collect(self) -> _Collection:
        with self._lock:
            running = self._under_way
            if running is None:
                mine = self._under_way = Future[_Collection]()
        if running is not None:
            return running.result()
        try:
            mine.set_result(self._ask_all())
        except BaseException as fault:
            mine.set_exception(fault)
        finally:
            with self._lock:
                self._under_way = None
        return mine.result()

    def _ask_all(self) -> _Collection:
        declared = self._desired.nodes
        reachable = {name: declared[name] for name in sorted(self._nodes) if declared[name].endpoint is not None}
        urls = {
            name: lane.pool.health_url
            for name, lane in self._desired.lanes.items()
            if lane.management is Management.UNMANAGED and lane.pool is not None and lane.pool.health_url is not None
        }
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="observe") as workers:
            asked = {name: workers.submit(self._ask, name, node) for name, node in reachable.items()}
            probed = {name: workers.submit(probe_health, url) for name, url in urls.items()}
            answers = {name: future.result() for name, future in asked.items()}
            health = {name: future.result() for name, future in probed.items()}
        now = self._clock.monotonic()
        with self._lock:
            if self._first_look is None:
                self._first_look = now
            self._last_answer |= {name: now for name, answer in answers.items() if answer.alive}
        return _Collection(now, answers, health)

    def _ask(self, name: str, node: Node) -> _Answer:
        deadline = self._clock.monotonic() + self._timeout
        with GatewayCalls(node.endpoint or "", self._key_of(node)) as calls:
            cached = self._hardware.get(name)
            due = cached is None or self._clock.monotonic() - cached.at >= self._cache_seconds
            path = "/gateway/node?inventory=1&memoryUsage=1" if due else "/gateway/node"
            first = calls.get(path, min(READ_SECONDS, self._timeout))
            block = table(first.body.get("node"))
            if first.kind != "ok" or "runtimeManager" not in block:
                return _unread(first)
            bodies = self._rest(calls, first.body, deadline)
            if bodies.status is None:
                # Only the status tells ranks of distributed lanes from lanes: without it the rest would mislead.
                return _Answer(alive=True, note="its status could not be read")
            if due or cached is None:
                cached = _Hardware(self._clock.monotonic(), block.get("inventory"), has_profiles(calls))
                if cached.has_profiles is not None:
                    self._hardware[name] = cached
        body = {**first.body, "node": {**block, "inventory": cached.inventory}}
        return _Answer(alive=True, bodies=msgspec.structs.replace(bodies, node=body, has_profiles=cached.has_profiles))

    def _rest(self, calls: GatewayCalls, node: dict[str, Any], deadline: float) -> NodeBodies:
        """All else that a node is asked for; what it does not answer usably is None."""

        def get(path: str) -> dict[str, Any] | None:
            left = deadline - self._clock.monotonic()
            answer = calls.get(path, left) if left > 0 else None
            return answer.body if answer is not None and answer.kind == "ok" else None

        period = period_of(self._desired.pool.objective.demand_window_hours)
        return NodeBodies(
            node=node,
            status=get("/gateway/status"),
            plan=get("/gateway/runtimes/plan"),
            routing=get("/gateway/routing"),
            models=get("/gateway/models"),
            metrics=get(f"/gateway/metrics?period={period}"),
            profile=None if table(table(node.get("node")).get("profile")) else get("/gateway/profile"),
        )


def _unread(answer: GatewayAnswer) -> _Answer:
    if answer.kind == "ok":
        return _Answer(alive=False, note="what answers is no gateway")
    return _Answer(alive=answer.kind == "refused" and "error" in answer.body, note=answer.says)
