"""The loop that obeys the machine: bounded threads, contained watchers, safe points, everything journalled first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from lloom_gitops.agent.apply import Applied, ApplyPorts, Progress, apply_plan
from lloom_gitops.agent.journal import ApplyKey
from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.model.plan import Plan, Step
from lloom_gitops.model.words import Result, StepKind
from lloom_gitops.ports import GatewayAnswer
from lloom_gitops.reconcile.machine import ApplyPolicy
from lloom_gitops.reconcile.machine_events import Entry, EntryKind
from tests.reconcile.plans import HEAD, FactPool, plan_of, route, start, swap

KEY = ApplyKey(plan="p", since="none")


class SlowClock(SystemClock):
    """Counts what was slept."""

    def __init__(self) -> None:
        self.slept = 0.0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.slept += seconds


class Notebook:
    """A journal in memory."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def begin(self, apply: ApplyKey) -> tuple[Entry, ...]:
        return tuple(self.entries)

    def append(self, apply: ApplyKey, entry: Entry) -> None:
        self.entries.append(entry)


class PoolDriver:
    """Carries steps out on a FactPool, slowly enough to overlap; counts how many at once."""

    def __init__(self, pool: FactPool, notebook: Notebook, seconds: float = 0.0) -> None:
        self.pool, self.notebook, self.seconds = pool, notebook, seconds
        self.lock = threading.Lock()
        self.now: set[str] = set()
        self.most = 0
        self.unannounced: list[str] = []

    def carry_out(self, step: Step) -> GatewayAnswer:
        with self.lock:
            if Entry(step=step.id, kind=EntryKind.INTENT) not in self.notebook.entries:
                self.unannounced.append(step.id)
            self.now.add(step.id)
            self.most = max(self.most, len(self.now))
        time.sleep(self.seconds)
        with self.lock:
            answer = self.pool.call(step)
            self.now.discard(step.id)
        return GatewayAnswer(kind=answer.kind.value, code=answer.code, says=answer.says, retry=answer.retry)


def run(
    plan: Plan,
    pool: FactPool,
    *,
    concurrency: int = 2,
    stop: Callable[[], str | None] = lambda: None,
    watchers: Any = (),
    seconds: float = 0.0,
    clock: Any = None,
) -> tuple[Applied, PoolDriver, Notebook]:
    notebook = Notebook()
    driver = PoolDriver(pool, notebook, seconds)

    def look(step: Step) -> Any:
        with driver.lock:
            return pool.facts()

    ports = ApplyPorts(
        journal=notebook, driver=driver, look=look, clock=clock or SystemClock(), stop=stop, watchers=watchers
    )
    policy = ApplyPolicy(head=HEAD, concurrency=concurrency)
    return apply_plan(plan, KEY, pool.facts(), policy, ports), driver, notebook


def test_the_intent_is_written_before_the_call() -> None:
    applied, driver, notebook = run(swap(), FactPool(free=120))
    assert applied.result is Result.SUCCEEDED
    assert driver.unannounced == []
    kinds = [entry.kind for entry in notebook.entries if entry.step == "start:new"]
    assert kinds == [EntryKind.INTENT, EntryKind.EFFECT, EntryKind.VERIFIED]


def test_no_more_calls_at_once_than_allowed() -> None:
    plan = plan_of(*(route(f"alias-{n}", None) for n in range(6)))
    _, two, _ = run(plan, FactPool(), concurrency=2, seconds=0.02)
    _, one, _ = run(plan, FactPool(), concurrency=1, seconds=0.001)
    assert (two.most, one.most) == (2, 1)


def test_a_watcher_that_throws_stops_nothing_and_others_hear_all() -> None:
    heard: list[Progress] = []

    def broken(news: Progress) -> None:
        raise RuntimeError("the terminal is gone")

    applied, _, _ = run(swap(), FactPool(free=120), watchers=[broken, heard.append])
    assert applied.result is Result.SUCCEEDED
    assert {news.step.id for news in heard if news.outcome} == set(applied.steps)
    assert heard[-1].settled == heard[-1].total == 4


def test_a_stop_ends_at_a_safe_point() -> None:
    pool = FactPool(free=120)
    applied, _, _ = run(swap(), pool, stop=lambda: "SIGTERM" if "start:new" in pool.calls else None, seconds=0.05)
    assert (applied.result, applied.stopped_by) == (Result.SUPERSEDED, "SIGTERM")
    assert applied.steps["start:new"].outcome == "done"
    assert pool.calls == ["start:new"]


def test_waiting_for_a_retry_does_not_hold_up_a_stop() -> None:
    """The second call is due in 5 s; the stop is not made to wait for it."""
    pool = FactPool(free=120, start__new=["later"])
    clock = SlowClock()
    applied, _, _ = run(swap(), pool, stop=lambda: "SIGTERM" if clock.slept else None, clock=clock)
    assert applied.result is Result.SUPERSEDED
    assert applied.steps["start:new"].says == "not done: superseded by SIGTERM"
    assert clock.slept < 5.0, "the retry is not waited for"


def test_resuming_goes_on_from_the_journal() -> None:
    pool = FactPool(free=120)
    first, _, notebook = run(swap(), pool)
    pool.calls.clear()
    again = Notebook()
    again.entries = notebook.entries[:2]  # the process died after the effect of the start
    driver = PoolDriver(pool, again)

    def look(step: Step) -> Any:
        return pool.facts()

    ports = ApplyPorts(journal=again, driver=driver, look=look, clock=SystemClock(), stop=lambda: None)
    second = apply_plan(swap(), KEY, pool.facts(), ApplyPolicy(head=HEAD), ports)
    assert second.result is Result.SUCCEEDED
    assert first.steps["start:new"] == second.steps["start:new"]
    assert pool.calls == []


def test_two_hundred_steps() -> None:
    """One load a node at a time, whatever the concurrency."""
    pool = FactPool(free=10_000)
    for number in range(200):
        pool.tree["lanes"][f"l{number}"] = pool._lane(f"n{number % 3 + 1}", "stopped")
    plan = plan_of(*(start(f"l{n}", node=f"n{n % 3 + 1}") for n in range(200)))
    assert {step.kind for step in plan.steps} == {StepKind.START}
    applied, driver, _ = run(plan, pool, concurrency=8)
    assert applied.result is Result.SUCCEEDED
    assert driver.most <= 3, "one load a node"
