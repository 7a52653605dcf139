"""The ApplyMachine: which steps of a plan may run now, and what became of each. Pure; the agent feeds and obeys it.

A restart is the same path as a start: `resume` replays the journal, then the machine looks before it acts. Each call of
`on` gives a new machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from lloom_gitops.catalog.facts import holds, pointer
from lloom_gitops.model.plan import Plan, Read, Step
from lloom_gitops.model.status import StepStatus
from lloom_gitops.model.words import Outcome, Result, StepKind
from lloom_gitops.reconcile.effects import (
    Effect,
    Facts,
    gone,
    has_its_room,
    judge,
    lane_nodes,
    nodes_taken,
    owner_of,
    touches,
)
from lloom_gitops.reconcile.machine_events import (
    Action,
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
from lloom_gitops.reconcile.machine_result import judge_result, stale_words
from lloom_gitops.reconcile.machine_state import Phase, StepState, prove, record, replay, settle, verified


class ApplyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a plan is applied: from the pool's `apply`, the confirmations and the last status.

    `confirmed`: manual steps that a person says are done. `barred`: steps not tried again, with what became of them.
    """

    head: str
    concurrency: int = 2
    manual_steps: str = "wait"
    confirmed: frozenset[str] = frozenset()
    barred: Mapping[str, StepStatus] = {}


class ApplyMachine:
    """An apply at one moment. Values in, values out: it never waits, calls or writes."""

    def __init__(self) -> None:
        raise TypeError("an apply is begun and restarted alike: ApplyMachine.resume(plan, journal, observation)")

    _plan: Plan
    _policy: ApplyPolicy
    _shape: _Shape
    _states: Mapping[str, StepState]
    _stopped_by: str | None

    @classmethod
    def resume(cls, plan: Plan, journal: Iterable[Entry], observation: Facts, policy: ApplyPolicy) -> ApplyMachine:
        """The only constructor. `journal` holds this apply's entries (none at a first start), `observation` facts of
        now. Raises ValueError when the plan's steps depend on steps that don't come before them."""
        shape = _shape_of(plan, observation)
        states = {step.id: _first(step, policy) for step in plan.steps}
        for entry in journal:
            if entry.step in states:
                states[entry.step] = replay(shape.steps[entry.step], states[entry.step], entry)
        for name, state in states.items():
            if state.phase is Phase.CARRYING:
                # A call was out when the last run ended; nobody knows what came of it.
                states[name] = msgspec.structs.replace(state, phase=Phase.PROVING)
        return cls._made(plan, policy, shape, states, None)

    @classmethod
    def _made(
        cls, plan: Plan, policy: ApplyPolicy, shape: _Shape, states: dict[str, StepState], stopped_by: str | None
    ) -> ApplyMachine:
        _spread(plan, states, stopped_by)
        machine = cls.__new__(cls)
        machine._plan, machine._policy, machine._shape = plan, policy, shape
        machine._states, machine._stopped_by = states, stopped_by
        return machine

    def on(self, event: Event) -> ApplyMachine:
        """The machine after an event. Events of settled steps change nothing."""
        if isinstance(event, StopAsked):
            by = self._stopped_by or event.by
            return self._made(self._plan, self._policy, self._shape, dict(self._states), by)
        step, state = self._shape.steps[event.step], self._states[event.step]
        if state.settled:
            return self
        match event:
            case Taken():
                return self._with(step, msgspec.structs.replace(state, phase=Phase.LOOKING, behind=frozenset()))
            case Observed():
                return self._with(step, self._observed(step, state, event))
            case Entry():
                return self._with(step, replay(step, state, event))

    def ready(self) -> tuple[Action, ...]:
        """What may be done now, in the plan's order. An action stays until its event comes."""
        actions: list[Action] = []
        for step in self._shape.steps.values():
            state = self._states[step.id]
            if state.entry is not None:
                actions.append(Record(state.entry))
            elif state.phase in (Phase.LOOKING, Phase.PROVING):
                actions.append(Look(step, state.delay))
            elif state.phase is Phase.CLEARED:
                actions.append(Carry(step))
        free = self._policy.concurrency - sum(state.in_hand for state in self._states.values())
        may_begin = [step for step in self._shape.steps.values() if self._may_begin(step)] if free > 0 else []
        return (*actions, *(Look(step) for step in may_begin[:free]))

    def is_first_look(self, step: str) -> bool:
        """Whether a look at `step` takes it in hand (the agent then sends `Taken`)."""
        return self._states[step].phase is Phase.IDLE

    def step(self, name: str) -> Step:
        """A step by its id."""
        return self._shape.steps[name]

    @property
    def total(self) -> int:
        """How many steps the plan has."""
        return len(self._shape.steps)

    @property
    def settled(self) -> bool:
        """True when every step has its outcome."""
        return all(state.settled for state in self._states.values())

    @property
    def stopped_by(self) -> str | None:
        """Who or what asked for the stop that kept steps from being begun."""
        return self._stopped_by

    def result(self) -> tuple[Result, dict[str, StepStatus]]:
        """The result and what became of each step, in the plan's order; steps without an outcome are left out."""
        states = {step.id: self._states[step.id] for step in self._plan.steps}
        settled = {name: state for name, state in states.items() if state.outcome is not None}
        return judge_result(settled.values(), self._stopped_by), {
            name: StepStatus(outcome=state.outcome, says=state.says, retry=state.retry)
            for name, state in settled.items()
            if state.outcome is not None
        }

    def _with(self, step: Step, state: StepState) -> ApplyMachine:
        states = {**self._states, step.id: state}
        return self._made(self._plan, self._policy, self._shape, states, self._stopped_by)

    def _may_begin(self, step: Step) -> bool:
        state = self._states[step.id]
        if state.phase is not Phase.IDLE or not all(self._states[name].good for name in step.after):
            return False
        if state.behind and not any(self._states[name].settled for name in state.behind):
            return False
        # A plan's memory is proved for its own order: a load waits for every earlier load and stop on its nodes, so no
        # node ever loads two lanes at once. A person's step is not waited for.
        return all(self._states[name].settled for name in self._shape.before_load.get(step.id, ()))

    def _observed(self, step: Step, state: StepState, event: Observed) -> StepState:
        effect = judge(step, event.facts, self._policy.head)
        if state.phase is Phase.PROVING:
            return prove(step, state, event.facts, effect, event.seconds)
        return self._looked(step, state, event.facts, effect) if state.phase is Phase.LOOKING else state

    def _looked(self, step: Step, state: StepState, facts: Facts, effect: Effect) -> StepState:
        """Done already, coming about by itself, clear to go, a person's, or stale."""
        if effect is Effect.HOLDS:
            return record(state, verified(step, Outcome.DONE if state.begun else Outcome.ALREADY))
        by_hand = self._by_hand(step, state, facts) if step.kind is StepKind.MANUAL else None
        if by_hand is not None and by_hand.outcome is not Outcome.WAITING:
            return by_hand
        if by_hand is None and effect is Effect.UNDER_WAY:
            return msgspec.structs.replace(state, phase=Phase.PROVING, answer=None, delay=0.0)
        broken = self._broken_read(step, facts, effect)
        if broken is None:
            return by_hand or msgspec.structs.replace(state, phase=Phase.CLEARED, delay=0.0)
        behind = self._could_mend(step, broken, facts)
        if behind:
            return StepState(begun=state.begun, attempts=state.attempts, behind=behind)
        return record(state, Entry(step=step.id, kind=EntryKind.STALE, says=stale_words(broken, facts)))

    def _broken_read(self, step: Step, facts: Facts, effect: Effect) -> Read | None:
        owner = owner_of(step, facts, self._policy.head)
        if effect is Effect.UNREADABLE and owner is not None and step.kind is not StepKind.MANUAL:
            return Read(at=pointer("nodes", owner, "seen"), equals="present")
        # A start that was half done (up, but its residency is not set) needs no room any more: it takes it itself.
        reads = [read for read in step.reads if read.at_least is msgspec.UNSET or not has_its_room(step, facts)]
        return next((read for read in reads if not holds(read, facts)), None)

    def _could_mend(self, step: Step, read: Read, facts: Facts) -> frozenset[str]:
        """Earlier steps that are still to settle and whose effect `read` may wait for: steps that don't depend on each
        other run side by side, while the plan's reads count on its order."""
        return frozenset(
            other.id
            for other in self._plan.steps[: self._shape.place[step.id]]
            if not self._states[other.id].settled and touches(other, read, facts)
        )

    def _by_hand(self, step: Step, state: StepState, facts: Facts) -> StepState:
        """A person's step that was not seen done: confirmed, fallen away with its node, left out, or waiting."""
        if step.id in self._policy.confirmed:
            return record(state, verified(step, Outcome.DONE, "confirmed"))
        owner = owner_of(step, facts, self._policy.head)
        nodes = lane_nodes(step.lane, facts)
        if (owner is not None and gone(owner, facts)) or (nodes and all(gone(node, facts) for node in nodes)):
            away = msgspec.structs.replace(state, fell_away=True)
            return settle(away, Outcome.SKIPPED, f"{owner or nodes[0]} is lost: nothing to do by hand")
        if self._policy.manual_steps == "skip":
            return settle(state, Outcome.SKIPPED, f"left to a person: {step.says or step.id}")
        return settle(state, Outcome.WAITING, step.says or f"to be done by hand: {step.id}")


class _Shape(msgspec.Struct, frozen=True):
    """What follows from the plan alone, worked out once. `steps` are as they are carried out: where another step of the
    plan sets a lane's residency, its start does not ask for it too (older builds know no other way)."""

    steps: dict[str, Step]
    place: dict[str, int]
    before_load: dict[str, tuple[str, ...]]


def _shape_of(plan: Plan, facts: Facts) -> _Shape:
    """Raises ValueError where a step is named twice or depends on one that does not come before it."""
    set_elsewhere = {step.lane for step in plan.steps if _sets_residency(step)}
    steps: dict[str, Step] = {}
    room: list[tuple[str, frozenset[str]]] = []
    before_load: dict[str, tuple[str, ...]] = {}
    for step in plan.steps:
        missing = next((name for name in step.after if name not in steps), None)
        if missing is not None or step.id in steps:
            raise ValueError(f"step {step.id}: {missing or step.id} is not an earlier step")
        elsewhere = step.kind is StepKind.START and step.lane in set_elsewhere
        steps[step.id] = msgspec.structs.replace(step, residency=None) if elsewhere else step
        if step.kind not in (StepKind.START, StepKind.STOP):
            continue
        nodes = nodes_taken(step, facts)
        if step.kind is StepKind.START:
            before_load[step.id] = tuple(name for name, taken in room if nodes & taken)
        room.append((step.id, nodes))
    return _Shape(steps, {name: number for number, name in enumerate(steps)}, before_load)


def _sets_residency(step: Step) -> bool:
    return StepKind.RESIDENCY.value in (step.kind.value, step.does)


def _spread(plan: Plan, states: dict[str, StepState], stopped_by: str | None) -> None:
    """Dependents of a step that came to nothing come to nothing; those of a waiting step wait with it. After a stop,
    what has not made its call is given up."""
    for step in plan.steps:
        state = states[step.id]
        if stopped_by is not None and state.phase in (Phase.IDLE, Phase.LOOKING, Phase.CLEARED):
            what = "not done" if state.begun else "not begun"
            states[step.id] = settle(state, Outcome.SKIPPED, f"{what}: superseded by {stopped_by}")
        elif state.phase is Phase.IDLE:
            states[step.id] = _after(step, state, states)


def _after(step: Step, state: StepState, states: dict[str, StepState]) -> StepState:
    nothing = [name for name in step.after if states[name].settled and not states[name].good]
    failed = next((name for name in nothing if states[name].outcome is not Outcome.WAITING), None)
    if failed is not None:
        return settle(state, Outcome.SKIPPED, f"{failed} is {states[failed].outcome}")
    return settle(state, Outcome.WAITING, f"waits for {nothing[0]}") if nothing else state


def _first(step: Step, policy: ApplyPolicy) -> StepState:
    last = policy.barred.get(step.id)
    if last is None or step.kind is StepKind.MANUAL:
        return StepState()
    return settle(StepState(), last.outcome, last.says, last.retry)
