"""Carries out a plan: feeds the ApplyMachine, keeps its journal, and makes the calls it asks for in bounded threads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

import msgspec

from lloom_gitops.agent.journal import ApplyKey
from lloom_gitops.model.plan import Plan, Step
from lloom_gitops.model.status import StepStatus
from lloom_gitops.model.words import Result
from lloom_gitops.ports import Clock, StepDriver
from lloom_gitops.reconcile.effects import Facts
from lloom_gitops.reconcile.machine import ApplyMachine, ApplyPolicy
from lloom_gitops.reconcile.machine_events import (
    Answer,
    AnswerKind,
    Carry,
    Entry,
    EntryKind,
    Event,
    Look,
    Observed,
    Record,
    StopAsked,
    Taken,
)

_HEARTBEAT_SECONDS = 0.2
"""How often a stop request is noticed while calls are out."""


class Keeper(Protocol):
    """What the apply needs of a journal (`agent.journal.Journal`)."""

    def begin(self, apply: ApplyKey) -> tuple[Entry, ...]: ...

    def append(self, apply: ApplyKey, entry: Entry) -> None: ...


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """News for people: `step` and what it came to (`outcome` None: it has begun); `settled` of `total` steps."""

    step: Step
    outcome: str | None
    says: str | None
    settled: int
    total: int


Watcher = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPorts:
    """Everything an apply touches. `look` observes afresh what a step speaks of, `stop` names who asks for a stop
    (None: nobody; it is asked every 0.2 s), `watchers` are told of progress and may throw."""

    journal: Keeper
    driver: StepDriver
    look: Callable[[Step], Facts]
    clock: Clock
    stop: Callable[[], str | None]
    watchers: Sequence[Watcher] = ()


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an apply."""

    result: Result
    steps: dict[str, StepStatus]
    stopped_by: str | None = None


def apply_plan(plan: Plan, key: ApplyKey, facts: Facts, policy: ApplyPolicy, ports: ApplyPorts) -> Applied:
    """Apply `plan`, or finish what the journal says was begun of it; ends with an outcome for every step."""
    machine = ApplyMachine.resume(plan, ports.journal.begin(key), facts, policy)
    run = _Run(machine, key, policy.concurrency, ports)
    machine = run.to_the_end()
    result, steps = machine.result()
    return Applied(result=result, steps=steps, stopped_by=machine.stopped_by)


class _Run:
    """One run of the loop. Only the calling thread touches machine and journal; workers observe and call."""

    def __init__(self, machine: ApplyMachine, key: ApplyKey, concurrency: int, ports: ApplyPorts) -> None:
        self._machine = machine
        self._key = key
        self._ports = ports
        self._stopping = threading.Event()
        self._out: dict[Future[Event], str] = {}
        self._told: set[str] = set(machine.result()[1])
        self._pool = ThreadPoolExecutor(max_workers=max(1, concurrency), thread_name_prefix="apply")

    def to_the_end(self) -> ApplyMachine:
        try:
            while not self._machine.settled:
                self._ask_stop()
                self._act()
                self._collect()
        finally:
            self._stopping.set()
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._tell_outcomes()
        return self._machine

    def _ask_stop(self) -> None:
        by = self._ports.stop()
        if by is not None and not self._stopping.is_set():
            self._stopping.set()
            self._machine = self._machine.on(StopAsked(by))

    def _act(self) -> None:
        """Obey: write entries first, for they open what comes after them."""
        while records := [action for action in self._machine.ready() if isinstance(action, Record)]:
            for told in records:
                self._write(told.entry)
        self._tell_outcomes()
        busy = set(self._out.values())
        for action in self._machine.ready():
            if isinstance(action, Record) or action.step.id in busy:
                continue
            if isinstance(action, Carry):
                self._write(Entry(step=action.step.id, kind=EntryKind.INTENT))
                self._submit(action.step, self._carry)
            else:
                self._look(action)

    def _look(self, action: Look) -> None:
        step = action.step
        if self._machine.is_first_look(step.id):
            self._machine = self._machine.on(Taken(step.id))
            self._tell(step, None, None)
        self._submit(step, lambda step: self._observe(step, action.delay))

    def _submit(self, step: Step, work: Callable[[Step], Event]) -> None:
        self._out[self._pool.submit(work, step)] = step.id

    def _collect(self) -> None:
        done, _ = wait(self._out, timeout=_HEARTBEAT_SECONDS, return_when=FIRST_COMPLETED)
        for future in done:
            del self._out[future]
            event = future.result()
            if isinstance(event, Entry):
                self._write(event)
            else:
                self._machine = self._machine.on(event)
        self._tell_outcomes()

    def _write(self, entry: Entry) -> None:
        self._ports.journal.append(self._key, entry)
        self._machine = self._machine.on(entry)

    def _carry(self, step: Step) -> Event:
        clock = self._ports.clock
        begun = clock.monotonic()
        answer = self._ports.driver.carry_out(step)
        kept = Answer(
            kind=AnswerKind(answer.kind),
            code=answer.code,
            says=answer.says,
            retry=answer.retry,
            seconds=round(clock.monotonic() - begun, 3),
        )
        return Entry(step=step.id, kind=EntryKind.EFFECT, answer=kept)

    def _observe(self, step: Step, delay: float) -> Event:
        clock = self._ports.clock
        begun = clock.monotonic()
        while (left := delay - (clock.monotonic() - begun)) > 0 and not self._stopping.is_set():
            clock.sleep(min(left, _HEARTBEAT_SECONDS))
        return Observed(step.id, self._ports.look(step), clock.monotonic() - begun)

    def _tell_outcomes(self) -> None:
        for name, status in self._machine.result()[1].items():
            if name not in self._told:
                self._tell(self._machine.step(name), status.outcome.value, status.says)

    def _tell(self, step: Step, outcome: str | None, says: str | None) -> None:
        if outcome is not None:
            self._told.add(step.id)
        total = self._machine.total
        news = Progress(step=step, outcome=outcome, says=says, settled=len(self._told), total=total)
        for watcher in self._ports.watchers:
            # A broken display must not keep a lane from being started.
            with contextlib.suppress(Exception):
                watcher(news)
