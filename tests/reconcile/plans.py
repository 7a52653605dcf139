"""Plans by hand, and a pool of plain facts that carries their steps out, with scripted faults."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from lloom_gitops.model.plan import Plan, PlanInputs, Read, Step, Verdict
from lloom_gitops.model.words import Residency, StepKind
from lloom_gitops.reconcile.effects import Effect, Facts, judge
from lloom_gitops.reconcile.machine import ApplyMachine, ApplyPolicy
from lloom_gitops.reconcile.machine_events import (
    Answer,
    AnswerKind,
    Carry,
    Entry,
    EntryKind,
    Look,
    Observed,
    Record,
    StopAsked,
    Taken,
)

HEAD = "n1"
LOOK_SECONDS = 60.0
POLICY = ApplyPolicy(head=HEAD)


def plan_of(*steps: Step) -> Plan:
    """A plan with these steps and nothing else that matters here."""
    inputs = PlanInputs(desired="sha256:d", inventory="sha256:i")
    return Plan(inputs=inputs, verdict=Verdict(levels=(0,) * 8), steps=steps)


def start(lane: str, *, node: str = "n2", after: Sequence[str] = (), needs: int | None = None, **rest: Any) -> Step:
    at = f"/nodes/{node}/memoryDomains/0/freeGb"
    reads = (Read(at=f"/nodes/{node}/liveness", equals="ready"),)
    reads += () if needs is None else (Read(at=at, at_least=Decimal(needs)),)
    given = {"id": f"start:{lane}", "residency": Residency.ALWAYS, "timeout_seconds": 900, "reads": reads, **rest}
    return Step(kind=StepKind.START, node=node, lane=lane, after=tuple(after), **given)


def route(alias: str, *lanes: str | None, after: Sequence[str] = (), **rest: Any) -> Step:
    models = tuple("cloud" if lane is None else f"model-{lane}" for lane in lanes)
    first = lanes[0]
    reads = () if first is None else (Read(at=f"/lanes/{first}/state", equals="running"),)
    given = {"id": f"route:{alias}", "timeout_seconds": 30, "reads": reads, **rest}
    return Step(kind=StepKind.ROUTE, node=HEAD, alias=alias, route=models, lanes=lanes, after=tuple(after), **given)


def drain(lane: str, *, after: Sequence[str] = (), node: str = "n2") -> Step:
    return Step(id=f"drain:{lane}", kind=StepKind.DRAIN, node=node, lane=lane, timeout_seconds=300, after=tuple(after))


def stop(lane: str, *, after: Sequence[str] = (), node: str = "n2", reads: Sequence[Read] = ()) -> Step:
    given = {"timeout_seconds": 180, "after": tuple(after), "reads": tuple(reads)}
    return Step(id=f"stop:{lane}", kind=StepKind.STOP, node=node, lane=lane, **given)


def by_hand(does: str, lane: str, *, after: Sequence[str] = (), node: str = "n2", **rest: Any) -> Step:
    given = {"id": f"{does}:{lane}", "says": f"{does} {lane} by hand", **rest}
    return Step(kind=StepKind.MANUAL, does=does, node=node, lane=lane, after=tuple(after), **given)


def residency(lane: str, wanted: Residency, *, after: Sequence[str] = (), node: str = "n2") -> Step:
    given = {"id": f"residency:{lane}", "timeout_seconds": 60, "after": tuple(after)}
    return Step(kind=StepKind.RESIDENCY, node=node, lane=lane, residency=wanted, **given)


def install(lane: str, *, node: str = "n2") -> Step:
    return Step(id=f"install:{lane}", kind=StepKind.INSTALL, node=node, lane=lane, recipe="r", timeout_seconds=7200)


def swap() -> Plan:
    """Make before break on n2: `new` starts, `chat` moves to it, `old` is drained and stopped."""
    return plan_of(
        start("new", needs=40),
        route("chat", "new", None, after=["start:new"]),
        drain("old", after=["route:chat"]),
        stop("old", after=["drain:old"], reads=[Read(at="/aliases/chat/lanes/0", equals="new")]),
    )


class FactPool:
    """Nodes, lanes and aliases as facts; steps change them at once. `faults` scripts the calls of a step, in order:

    ok; later and never (refused); lost (done, answer lost); undone (not done, answer lost); lie (answered, not done);
    unreachable. After its script a step answers ok.
    """

    def __init__(self, free: int = 60, **faults: Sequence[str]) -> None:
        self.free = dict.fromkeys(("n1", "n2", "n3"), free)
        self.tree: dict[str, Any] = {
            "nodes": {node: self._node() for node in ("n1", "n2", "n3")},
            "lanes": {
                "old": self._lane("n2", "running"),
                "new": self._lane("n2", "stopped"),
                "other": self._lane("n3", "stopped"),
                "pair": {**self._lane("n1", "running"), "nodes": ["n1", "n2"], "management": "unmanaged"},
            },
            "aliases": {"chat": {"route": ["model-old"], "lanes": ["old"]}, "image": {"route": [], "lanes": []}},
        }
        self.busy: dict[str, int] = {}
        self.faults = {name.replace("__", ":"): list(script) for name, script in faults.items()}
        self.calls: list[str] = []
        self.called_although_done: list[str] = []

    @staticmethod
    def _node() -> dict[str, Any]:
        return {"seen": "present", "liveness": "ready", "memoryDomains": [{"id": "unified:0"}]}

    @staticmethod
    def _lane(node: str, state: str) -> dict[str, Any]:
        return {"nodes": [node], "owner": node, "state": state, "residency": "auto", "latched": False}

    def facts(self) -> Facts:
        tree = copy.deepcopy(self.tree)
        for node, seen in tree["nodes"].items():
            held = [lane for lane in self.tree["lanes"].values() if lane["state"] in ("running", "loading")]
            used = sum(20 for lane in held if node in lane["nodes"])
            seen["memoryDomains"][0]["freeGb"] = Decimal(self.free[node] - used)
        for lane, seen in tree["lanes"].items():
            seen["activeRequests"] = self.busy.get(lane, 0)
        return tree

    def call(self, step: Step) -> Answer:
        self.calls.append(step.id)
        if judge(step, self.facts(), HEAD) is Effect.HOLDS:
            self.called_although_done.append(step.id)
        script = self.faults.get(step.id)
        fault = script.pop(0) if script else "ok"
        if fault in ("ok", "lost"):
            self._do(step)
        kinds = {"ok": "ok", "lie": "ok", "later": "refused", "never": "refused", "lost": "lost", "undone": "lost"}
        retry = fault if fault in ("later", "never") else None
        return Answer(kind=AnswerKind(kinds.get(fault, fault)), code=None if fault == "ok" else fault, retry=retry)

    def _do(self, step: Step) -> None:
        lane = self.tree["lanes"].get(step.lane, {})
        match step.kind:
            case StepKind.START:
                lane["state"] = "running"
                if step.residency is not None:
                    lane["residency"] = step.residency.value
            case StepKind.STOP:
                lane["state"] = "stopped"
            case StepKind.RESIDENCY:
                assert step.residency is not None
                lane["residency"] = step.residency.value
            case StepKind.DRAIN:
                self.busy[step.lane or ""] = 0
            case StepKind.ROUTE:
                assert step.lanes is not None
                self.tree["aliases"][step.alias] = {"route": list(step.route or ()), "lanes": list(step.lanes)}
            case StepKind.INSTALL:
                self.tree["lanes"][step.lane] = self._lane(step.node or "", "stopped")


def first(_: int) -> int:
    """Chooses the first action."""
    return 0


class Killed(Exception):
    """The process died here."""


class Driver:
    """Runs a machine on a FactPool, one action at a time. `choose` picks the next of n actions; `dies_at` counts the
    boundaries (before and after each journal write, before and after each call) at which the process is killed."""

    def __init__(self, pool: FactPool, plan: Plan, journal: list[Entry], policy: ApplyPolicy = POLICY) -> None:
        self.pool = pool
        self.journal = journal
        self.machine = ApplyMachine.resume(plan, journal, pool.facts(), policy)
        self.boundary = 0
        self.dies_at: int | None = None
        self.choose: Callable[[int], int] = first
        self.stop_after: dict[str, str] = {}

    def run(self, most: int = 500) -> ApplyMachine:
        for _ in range(most):
            if self.machine.settled:
                return self.machine
            actions = self.machine.ready()
            assert actions, f"stuck: {self.machine.result()}"
            self._do(actions[self.choose(len(actions))])
        raise AssertionError(f"no end: {self.machine.ready()}")

    def _do(self, action: Record | Carry | Look) -> None:
        match action:
            case Record():
                self._write(action.entry)
            case Carry():
                self._write(Entry(step=action.step.id, kind=EntryKind.INTENT))
                self._may_die()
                answer = self.pool.call(action.step)
                self._may_die()
                self._write(Entry(step=action.step.id, kind=EntryKind.EFFECT, answer=answer))
            case Look():
                if self.machine.is_first_look(action.step.id):
                    self.machine = self.machine.on(Taken(action.step.id))
                self.machine = self.machine.on(Observed(action.step.id, self.pool.facts(), LOOK_SECONDS))

    def _write(self, entry: Entry) -> None:
        self._may_die()
        self.journal.append(entry)
        self._may_die()
        self.machine = self.machine.on(entry)
        if entry.kind is EntryKind.VERIFIED and entry.step in self.stop_after:
            self.machine = self.machine.on(StopAsked(self.stop_after[entry.step]))

    def _may_die(self) -> None:
        self.boundary += 1
        if self.boundary == self.dies_at:
            raise Killed
