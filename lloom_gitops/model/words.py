"""Closed words of the domain (documents.md); one meaning each."""

from __future__ import annotations

from enum import StrEnum


class Residency(StrEnum):
    """always: kept loaded; preferred: loaded when memory allows; auto: loaded on request."""

    ALWAYS = "always"
    PREFERRED = "preferred"
    AUTO = "auto"

    @property
    def rank(self) -> int:
        """Strength: auto 0, preferred 1, always 2."""
        return _RANKS[self]


_RANKS = {Residency.AUTO: 0, Residency.PREFERRED: 1, Residency.ALWAYS: 2}


class ModelKind(StrEnum):
    """What a model does: the gateway's own words."""

    CHAT = "chat"
    EMBEDDING = "embedding"
    IMAGE = "image"
    VIDEO = "video"
    AUDIO_SPEECH = "audio_speech"
    AUDIO_TRANSCRIPTION = "audio_transcription"
    AUDIO_GENERATION = "audio_generation"


class NodeState(StrEnum):
    """What people ask of a node; `strictness` orders them: of two, the stricter holds."""

    SERVE = "serve"
    HOLD = "hold"
    CORDON = "cordon"
    DRAIN = "drain"

    @property
    def strictness(self) -> int:
        """hold, drain, cordon, serve: the stricter has the higher number."""
        return {"serve": 0, "cordon": 1, "drain": 2, "hold": 3}[self.value]


class Seen(StrEnum):
    """Whether the node answered at the last observation."""

    PRESENT = "present"
    UNKNOWN = "unknown"


class Liveness(StrEnum):
    """Liveness of a node: suspect and lost by time without an answer, left when it said so."""

    READY = "ready"
    SUSPECT = "suspect"
    LOST = "lost"
    LEFT = "left"

    @property
    def gone(self) -> bool:
        """True when nothing on the node counts any more."""
        return self in (Liveness.LOST, Liveness.LEFT)


class LaneState(StrEnum):
    """State of a lane as its owner reports it; `unknown` counts as running."""

    RUNNING = "running"
    LOADING = "loading"
    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"

    @property
    def loaded(self) -> bool:
        """Loading counts as loaded (ADM-2); unknown counts as running."""
        return self in _LOADED

    @property
    def holds_memory(self) -> bool:
        """Draining and stopping lanes still hold their memory (ADM-2)."""
        return self in _HOLDING


_LOADED = frozenset({LaneState.RUNNING, LaneState.LOADING, LaneState.UNKNOWN})
_HOLDING = _LOADED | {LaneState.DRAINING, LaneState.STOPPING}


class Management(StrEnum):
    """Whether LLooM starts and stops the lane, or a person does."""

    MANAGED = "managed"
    UNMANAGED = "unmanaged"


class DomainKind(StrEnum):
    """Kind of a memory domain."""

    UNIFIED = "unified"
    SYSTEM = "system"
    DEVICE = "device"


class StepKind(StrEnum):
    """Kinds of steps of a plan."""

    INSTALL = "install"
    START = "start"
    RESIDENCY = "residency"
    ROUTE = "route"
    DRAIN = "drain"
    STOP = "stop"
    MANUAL = "manual"


class Outcome(StrEnum):
    """What became of a step."""

    DONE = "done"
    ALREADY = "already"
    SKIPPED = "skipped"
    FAILED = "failed"
    STALE = "stale"
    UNKNOWN = "unknown"
    WAITING = "waiting"


class Result(StrEnum):
    """What became of an apply."""

    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    WAITING = "waiting"
    NOTHING = "nothing"


class StopReason(StrEnum):
    """Why a program of ours may stop a running lane (lifecycle.md, Stops)."""

    VACATE = "vacate"
    ROOM = "room"
    MOVED = "moved"
    ASKED = "asked"


class Feature(StrEnum):
    """What a gateway build can do beyond the oldest one, found by probe."""

    RESIDENCY = "residency"
    ROUTE_MEMBERS = "routeMembers"
    SUSPEND = "suspend"
    MEMORY_GUARD = "memoryGuard"


class Mode(StrEnum):
    """What the controller does of its own accord."""

    OFF = "off"
    ADVISE = "advise"
    AUTO = "auto"
