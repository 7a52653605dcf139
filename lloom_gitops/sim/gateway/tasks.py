"""Cooperative tasks on a clock that is handed in: how a simulated node waits without blocking anybody.

An operation of the node is a generator. It yields what it waits for (`When`) or what it needs from outside (`Ask`,
`Save`); whoever drives the node moves time with `Tasks.advance` and settles the outbox with `Tasks.answer`. Nothing in
here reads a clock or does I/O, so the same operations run under a real server and in discrete-event simulation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from lloom_gitops.sim.gateway.refusals import Doc


@dataclass(frozen=True, slots=True)
class When:
    """Wait until `ready()` holds, at the latest until `until` (epoch ms); resumes with whether it held."""

    ready: Callable[[], bool]
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP call to another gateway of the cluster; resumes with an `Answer`."""

    node: str
    method: str
    path: str
    body: Doc | None = None
    timeout_ms: int = 5000
    requester: str | None = None


@dataclass(frozen=True, slots=True)
class Asks:
    """Several calls at once; resumes with their answers in the same order."""

    calls: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Save:
    """Write a JSON file of the gateway's own (newer builds do); resumes with an `Answer`.

    `file` None is the config file, else a path beside it.
    """

    document: Doc
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a JSON object, or the reason why nothing did."""

    body: Doc | None = None
    error: str | None = None


Wish = When | Asks | Save
Flow = Generator[Wish, Any, Any]


@dataclass(slots=True, eq=False)
class Task:
    flow: Flow
    waits: Wish | None = None
    answers: list[Answer | None] = field(default_factory=list)
    started: bool = False
    done: bool = False
    result: Any = None
    error: BaseException | None = None
    on_done: Callable[[Task], None] | None = None


@dataclass(frozen=True, slots=True)
class Errand:
    """One entry of the outbox: do it, then `Tasks.answer` it."""

    task: Task
    index: int
    wish: Ask | Save


class Tasks:
    """The running operations of one node, in the order they came."""

    def __init__(self, now: int) -> None:
        self.now = now
        self._running: list[Task] = []
        self.outbox: deque[Errand] = deque()

    def spawn(self, flow: Flow, on_done: Callable[[Task], None] | None = None) -> Task:
        """Take an operation on; it begins at the next `advance`, at the time of the last one: advance before, too."""
        task = Task(flow, waits=When(lambda: True), on_done=on_done)
        self._running.append(task)
        return task

    def advance(self, now: int) -> None:
        """Run everything that is due up to `now`, in the order of due times."""
        while True:
            self._settle()
            due = self.next_due()
            if due is None or due > now:
                break
            self.now = max(self.now, due)
        if now > self.now:
            self.now = now
            self._settle()

    def next_due(self) -> int | None:
        """The earliest moment at which a waiting operation wakes by itself; None: only from outside."""
        times = [t.waits.until for t in self._running if isinstance(t.waits, When) and t.waits.until is not None]
        return min(times, default=None)

    def answer(self, errand: Errand, answer: Answer) -> None:
        errand.task.answers[errand.index] = answer

    def _settle(self) -> None:
        progressed = True
        while progressed:
            progressed = False
            for task in list(self._running):
                if not task.done and self._ready(task):
                    self._step(task)
                    progressed = True

    def _ready(self, task: Task) -> bool:
        if isinstance(task.waits, When):
            return task.waits.ready() or (task.waits.until is not None and task.waits.until <= self.now)
        return all(answer is not None for answer in task.answers)

    def _step(self, task: Task) -> None:
        try:
            wish = task.flow.send(self._value(task))
        except StopIteration as end:
            self._finish(task, result=end.value)
        except Exception as failure:
            self._finish(task, error=failure)
        else:
            self._await(task, wish)

    def _value(self, task: Task) -> Any:
        if not task.started:
            task.started = True
            return None
        if isinstance(task.waits, When):
            return task.waits.ready()
        return list(task.answers) if isinstance(task.waits, Asks) else task.answers[0]

    def _await(self, task: Task, wish: Wish) -> None:
        task.waits = wish
        if isinstance(wish, When):
            return
        calls: tuple[Ask | Save, ...] = wish.calls if isinstance(wish, Asks) else (wish,)
        task.answers = [None] * len(calls)
        self.outbox.extend(Errand(task, index, call) for index, call in enumerate(calls))

    def _finish(self, task: Task, result: Any = None, error: BaseException | None = None) -> None:
        task.done, task.result, task.error = True, result, error
        self._running.remove(task)
        if task.on_done is not None:
            task.on_done(task)


def locked(queue: deque[object], flow: Flow) -> Flow:
    """Run `flow` while holding a lock that is granted in the order of asking (`queue` is the lock)."""
    token = object()
    queue.append(token)
    try:
        yield When(lambda: queue[0] is token)
        return (yield from flow)
    finally:
        queue.remove(token)


def pause(tasks: Tasks, duration_ms: int) -> Flow:
    yield When(lambda: False, until=tasks.now + duration_ms)


def outcome(task: Task) -> Flow:
    """Wait for another task; returns its result or raises its error."""
    yield When(lambda: task.done)
    if task.error is not None:
        raise task.error
    return task.result
