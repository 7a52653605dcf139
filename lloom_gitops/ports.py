"""Protocols through which decisions meet the world. Drivers implement them; the simulator does too. No code here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from lloom_gitops.model.plan import Step
from lloom_gitops.model.words import Residency


class Clock(Protocol):
    """Time. `now` is aware UTC, `monotonic` seconds that never go back."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class GatewayAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call. `kind`: ok, refused (the gateway said no), lost (no answer: the effect is unknown),
    unreachable (the call was never delivered).

    `code` is the gateway's error code, `retry` is never (permanent) or later (temporary), `body` the JSON answer.
    """

    kind: str
    code: str | None = None
    says: str | None = None
    retry: str | None = None
    body: dict[str, Any] = {}


class LaneReading(msgspec.Struct, frozen=True, kw_only=True):
    """Fresh facts of one lane from its owner: LaneState word, requests in flight, residency, latch."""

    state: str
    active_requests: int | None = None
    residency: Residency | None = None
    latched: bool = False
    last_error: str | None = None


class Gateway(Protocol):
    """One node's gateway. Every call has its own time limit; none raises for what the gateway or network does."""

    def features(self) -> frozenset[str]: ...

    def read_lane(self, lane: str, *, distributed: bool) -> LaneReading | None: ...

    def admission(self, lane: str) -> GatewayAnswer: ...

    def admit(self, lane: str, timeout_seconds: float) -> GatewayAnswer: ...

    def stop(self, lane: str, timeout_seconds: float) -> GatewayAnswer: ...

    def set_residency(self, lane: str, residency: Residency, timeout_seconds: float) -> GatewayAnswer: ...

    def install(self, recipe: str, timeout_seconds: float) -> GatewayAnswer: ...

    def routing(self) -> Mapping[str, Sequence[str]] | None: ...


class GatewayConfig(Protocol):
    """The head gateway's own config file: aliases, and residency on older builds. Edits only our own keys."""

    def set_route(self, alias: str, members: Sequence[str]) -> GatewayAnswer: ...

    def set_residency(self, lane: str, residency: Residency) -> GatewayAnswer: ...


class StepDriver(Protocol):
    """Carries out one step and says what came of the call; verification is a fresh observation, not this answer."""

    def carry_out(self, step: Step) -> GatewayAnswer: ...
