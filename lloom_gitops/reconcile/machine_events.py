"""What happens to an apply: journal entries (which are the machine's events, so that a restart replays them), fresh
observations, and the wish to stop; and what the machine asks for."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import Outcome
from lloom_gitops.reconcile.effects import Facts


class EntryKind(StrEnum):
    """Kinds of journal entries of a step.

    intent: written before the call. effect: what the call answered, or that its effect never showed. verified: a fresh
    observation showed the effect. stale: a read no longer held. unknown: the effect could not be told.
    """

    INTENT = "intent"
    EFFECT = "effect"
    VERIFIED = "verified"
    STALE = "stale"
    UNKNOWN = "unknown"


class AnswerKind(StrEnum):
    """What came of a call: as `ports.GatewayAnswer.kind`, or `unproved`: answered, but no observation showed it."""

    OK = "ok"
    REFUSED = "refused"
    LOST = "lost"
    UNREACHABLE = "unreachable"
    UNPROVED = "unproved"


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer as the journal keeps it. `retry`: never or later. `seconds`: how long the call took."""

    kind: AnswerKind
    code: str | None = None
    says: str | None = None
    retry: str | None = None
    seconds: float = 0


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A journal entry of one step. `answer` stands in an effect, `outcome` (done or already) in a verified."""

    step: str
    kind: EntryKind
    answer: Answer | None = None
    outcome: Outcome | None = None
    says: str | None = None


class Taken(msgspec.Struct, frozen=True):
    """The step is in hand now: its first look is under way."""

    step: str


class Observed(msgspec.Struct, frozen=True):
    """Fresh facts of the nodes a step speaks of, and the seconds that this look took, its delay included."""

    step: str
    facts: Facts
    seconds: float


class StopAsked(msgspec.Struct, frozen=True):
    """End at the next safe point. `by` goes into the result: a commit, a signal, a window."""

    by: str


Event = Entry | Taken | Observed | StopAsked


class Look(msgspec.Struct, frozen=True):
    """Wait `delay` seconds, then observe what the step speaks of."""

    step: Step
    delay: float = 0


class Carry(msgspec.Struct, frozen=True):
    """Write the intent, then make the step's call."""

    step: Step


class Record(msgspec.Struct, frozen=True):
    """Write this entry to the journal; nothing that depends on it goes on before."""

    entry: Entry


Action = Look | Carry | Record
