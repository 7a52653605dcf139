"""The lease in one agent's hand: taken before anything is done, renewed while it works, given back at the end."""

from __future__ import annotations

from collections.abc import Callable

from lloom_gitops.agent.settings import AgentSettings
from lloom_gitops.agent.world import FleetStore
from lloom_gitops.gitstore.commits import Author
from lloom_gitops.gitstore.lease import Sighting
from lloom_gitops.model.errors import Conflict, Unreachable
from lloom_gitops.ports import Clock

_RENEWALS = 3
"""Renewals within a lease's time: two may fail before it runs out."""


class Lease:
    """The agent's lease on the remote. `nonce` is this agent's own word, the same after a restart."""

    def __init__(
        self, store: FleetStore, settings: AgentSettings, nonce: str, clock: Clock, author: Callable[[], Author]
    ) -> None:
        self._store = store
        self._settings = settings
        self._nonce = nonce
        self._clock = clock
        self._author = author
        self._seen: Sighting | None = None
        self._mine: Sighting | None = None
        self._next = 0.0

    @property
    def epoch(self) -> int:
        """The epoch of the lease that was last ours; 0 before."""
        return 0 if self._mine is None or self._mine.record is None else self._mine.record.epoch

    def take(self) -> None:
        """Make the lease ours: taken, or renewed when that is due. Raises `Conflict` (`leaseHeld`, `leaseRace`) or
        `Unreachable`: then do not act."""
        now = self._clock.monotonic()
        if self._mine is not None and now < self._next:
            return
        self._seen = self._store.sight_lease(self._seen, now)
        ttl = float(self._settings.lease_seconds)
        self._mine = self._store.take_lease(
            self._seen, self._settings.name, self._nonce, ttl, self._clock.monotonic(), self._author()
        )
        self._seen = self._mine
        self._next = self._mine.since + ttl / _RENEWALS

    def keep(self) -> str | None:
        """Renew when it is due; why the agent must stop acting, None while the lease holds."""
        now = self._clock.monotonic()
        if self._mine is None or now < self._next:
            return None
        try:
            self.take()
        except Conflict as error:
            self._mine = None
            return f"another agent ({error.message})"
        except Unreachable:
            if now - self._mine.since >= self._settings.lease_seconds:
                self._mine = None
                return "the end of the lease, which could not be renewed"
            self._next = now + self._settings.lease_seconds / _RENEWALS / 2
        return None

    @property
    def held(self) -> bool:
        """Whether the lease is ours as far as we know."""
        return self._mine is not None

    def give_back(self) -> None:
        """Free the lease at once; a lease that can't be given back just runs out."""
        mine, self._mine, self._seen = self._mine, None, None
        if mine is None:
            return
        try:
            self._store.release_lease(mine, self._author())
        except (Conflict, Unreachable):
            return
