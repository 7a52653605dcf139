"""Where one step of an apply stands, and how an answer or an observation moves it on. Plain functions of values."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import Outcome, StepKind
from lloom_gitops.reconcile.effects import IDEMPOTENT, Effect, Facts, broken
from lloom_gitops.reconcile.machine_events import Answer, AnswerKind, Entry, EntryKind

ATTEMPTS = 3
"""Calls of one step in one apply; further ones are for the next apply."""
RETRY_SECONDS = (5.0, 15.0)
"""Waits before the second and third call of a step that was refused for now (the gateway's own hint is 2 s)."""
PROOF_SECONDS = 15.0
"""How long an answered call may take to show in observations: rows of other nodes are up to 1 s old, a config file is
read every 0.5 s (gateway reference, sections 4 and 12)."""
_FIRST_LOOK_SECONDS = 0.25
_SLOWEST_LOOK_SECONDS = 5.0


class Phase(StrEnum):
    """idle: not begun. looking: is it done already, do its reads hold? cleared: they do. carrying: the call is out.
    proving: did the effect come about? recording: told, to be journalled. settled: it has an outcome."""

    IDLE = "idle"
    LOOKING = "looking"
    CLEARED = "cleared"
    CARRYING = "carrying"
    PROVING = "proving"
    RECORDING = "recording"
    SETTLED = "settled"


class StepState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a step stands. `begun`: a call was made; `attempts` counts the answered ones, so that being killed is not
    held against a step. `looks` and `looked` (seconds) count since the last call; `behind`: steps one of which must
    settle before the next look; `fell_away`: nothing is left to do for a person, dependents may go on."""

    phase: Phase = Phase.IDLE
    begun: bool = False
    attempts: int = 0
    answer: Answer | None = None
    looks: int = 0
    looked: float = 0
    delay: float = 0
    behind: frozenset[str] = frozenset()
    entry: Entry | None = None
    outcome: Outcome | None = None
    says: str | None = None
    retry: str | None = None
    fell_away: bool = False

    @property
    def settled(self) -> bool:
        """True once the step has its outcome."""
        return self.phase is Phase.SETTLED

    @property
    def in_hand(self) -> bool:
        """True while the step takes one of the places that `apply.concurrency` allows."""
        return self.phase not in (Phase.IDLE, Phase.SETTLED)

    @property
    def good(self) -> bool:
        """True when what comes after the step may go on."""
        return self.outcome in (Outcome.DONE, Outcome.ALREADY) or self.fell_away


def settle(state: StepState, outcome: Outcome, says: str | None = None, retry: str | None = None) -> StepState:
    """`state` with its outcome."""
    return msgspec.structs.replace(state, phase=Phase.SETTLED, outcome=outcome, says=says, retry=retry, entry=None)


def record(state: StepState, entry: Entry) -> StepState:
    """`state` that waits for `entry` to be written to the journal."""
    return msgspec.structs.replace(state, phase=Phase.RECORDING, entry=entry)


def replay(step: Step, state: StepState, entry: Entry) -> StepState:
    """`state` after a journal entry: the same at a restart as when it is written."""
    match entry.kind:
        case EntryKind.INTENT:
            return StepState(phase=Phase.CARRYING, begun=True, attempts=state.attempts)
        case EntryKind.EFFECT:
            return _answered(step, state, entry.answer or Answer(kind=AnswerKind.LOST))
        case EntryKind.VERIFIED:
            return settle(state, entry.outcome or Outcome.DONE, entry.says)
        case EntryKind.STALE:
            return settle(state, Outcome.STALE, entry.says)
        case EntryKind.UNKNOWN:
            return settle(state, Outcome.UNKNOWN, entry.says)


def _answered(step: Step, state: StepState, answer: Answer) -> StepState:
    state = StepState(phase=state.phase, begun=True, attempts=state.attempts + 1, answer=answer)
    if answer.kind is AnswerKind.OK and step.kind is StepKind.DRAIN:
        # The driver watched the owner's own count; a later look would only see new requests.
        return record(state, verified(step, Outcome.DONE, answer.says))
    if answer.kind in (AnswerKind.OK, AnswerKind.LOST):
        return msgspec.structs.replace(state, phase=Phase.PROVING)
    for_now = answer.kind is AnswerKind.UNREACHABLE or (answer.kind is AnswerKind.REFUSED and answer.retry == "later")
    if for_now and state.attempts < ATTEMPTS:
        wait = RETRY_SECONDS[min(state.attempts, len(RETRY_SECONDS)) - 1]
        return msgspec.structs.replace(state, phase=Phase.LOOKING, delay=wait)
    retry = "later" if answer.kind is AnswerKind.UNREACHABLE else answer.retry or "never"
    return settle(state, Outcome.FAILED, _words(answer), retry)


def prove(step: Step, state: StepState, facts: Facts, effect: Effect, seconds: float) -> StepState:
    """`state` after an observation that was to show the effect of a call (or of another's doing)."""
    state = _after_look(state, seconds)
    if effect is Effect.HOLDS:
        return record(state, verified(step, Outcome.DONE if state.begun else Outcome.ALREADY))
    answered = state.answer is not None and state.answer.kind is AnswerKind.OK
    over = state.looked >= _limit(step, state, effect)
    if effect is Effect.ABSENT and not answered and step.kind in IDEMPOTENT:
        if state.attempts < ATTEMPTS:
            return msgspec.structs.replace(state, phase=Phase.LOOKING, delay=0.0)
        return record(state, unproved(step, f"its effect did not show after {state.attempts} calls"))
    if effect is Effect.ABSENT and answered:
        why = broken(step, facts) if step.kind is StepKind.START else None
        if why is not None:
            return record(state, unproved(step, f"{why} although the call was answered"))
    if not over:
        return state
    if effect in (Effect.UNTOLD, Effect.UNREADABLE) or (effect is Effect.ABSENT and not answered):
        return record(state, Entry(step=step.id, kind=EntryKind.UNKNOWN, says=_cannot_tell(effect)))
    return record(state, unproved(step, _never_came(step, effect)))


def _after_look(state: StepState, seconds: float) -> StepState:
    delay = min(_SLOWEST_LOOK_SECONDS, _FIRST_LOOK_SECONDS * 2**state.looks)
    return msgspec.structs.replace(state, looks=state.looks + 1, looked=state.looked + seconds, delay=delay)


def _limit(step: Step, state: StepState, effect: Effect) -> float:
    """Seconds of looking until a verdict must fall."""
    answer = state.answer
    quick = answer is not None and answer.kind is AnswerKind.OK and step.kind in (StepKind.START, StepKind.STOP)
    if quick and effect is Effect.ABSENT:
        return PROOF_SECONDS
    spent = 0.0 if answer is None else answer.seconds
    return max(PROOF_SECONDS, (step.timeout_seconds or 0) - spent)


def verified(step: Step, outcome: Outcome, says: str | None = None) -> Entry:
    """The entry that closes a step whose effect was seen."""
    return Entry(step=step.id, kind=EntryKind.VERIFIED, outcome=outcome, says=says)


def unproved(step: Step, says: str) -> Entry:
    """The entry that closes a step whose effect never showed."""
    answer = Answer(kind=AnswerKind.UNPROVED, code="unproved", says=says, retry="later")
    return Entry(step=step.id, kind=EntryKind.EFFECT, answer=answer)


def _words(answer: Answer) -> str:
    said = ": ".join(word for word in (answer.code, answer.says) if word)
    return said or {AnswerKind.UNREACHABLE: "the gateway could not be reached"}.get(answer.kind, "the gateway refused")


def _cannot_tell(effect: Effect) -> str:
    if effect is Effect.UNREADABLE:
        return "the node did not answer, so its effect can't be told"
    return "its effect can't be told from what the gateway reports"


def _never_came(step: Step, effect: Effect) -> str:
    if effect is Effect.UNDER_WAY:
        return f"still not done after its time limit of {step.timeout_seconds} s"
    return "the gateway answered that it was done, but its own report does not show it"
