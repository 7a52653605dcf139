"""What may end an apply early: a signal, a lost lease, a newer merged plan. Asked between steps."""

from __future__ import annotations

from collections.abc import Callable

from lloom_gitops.agent.lease import Lease
from lloom_gitops.agent.world import FleetStore
from lloom_gitops.codec.desired import PATHS
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Unreachable
from lloom_gitops.ports import Clock

LOOK_SECONDS = 2.0
"""How often the remote is asked for a newer plan while one is applied."""


class Watch:
    """Says who asks for a stop; None while nobody does. `asked` is who did first.

    `tip` is the branch's commit that the apply began from, `plan` the bytes of the plan in force there. `asks_anew`
    says of a newer tip whether its desired state alone asks for another plan (`writeBack.plan: agent`).
    """

    def __init__(
        self,
        store: FleetStore,
        clock: Clock,
        lease: Lease,
        signal: Callable[[], str | None],
        *,
        tip: str,
        asks_anew: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._signal = signal
        self._tip = tip
        self._plan = store.read_file(tip, PATHS[Kind.PLAN])
        self._asks_anew = asks_anew
        self._next = clock.monotonic() + LOOK_SECONDS
        self.asked: str | None = None

    def __call__(self) -> str | None:
        """A signal's name, `another agent`, or the first eight digits of the commit that brought a newer plan."""
        self.asked = self.asked or self._signal()
        now = self._clock.monotonic()
        if now >= self._next:
            self._next = now + LOOK_SECONDS
            lost = self._lease.keep()  # also while the last step is finished
            self.asked = self.asked or lost or self._newer()
        return self.asked

    def _newer(self) -> str | None:
        try:
            there = self._store.list_remote([self._store.branch_ref]).get(self._store.branch_ref)
            if there is None or there == self._tip:
                return None
            tip = self._store.fetch()
        except Unreachable:
            return None  # nobody can have been told that we saw it; the next look may
        if tip is None:
            return None
        self._tip = tip
        plan = self._store.read_file(tip, PATHS[Kind.PLAN])
        if plan == self._plan and not self._asks_anew(tip):
            return None
        changed = self._store.history_of(tip, PATHS[Kind.PLAN]) if plan != self._plan else []
        return (changed[0][0] if changed else tip)[:8]
