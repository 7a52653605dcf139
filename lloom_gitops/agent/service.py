"""The agent as a service: turn after turn, one at a time, until it is asked to end."""

from __future__ import annotations

from collections.abc import Callable

from lloom_gitops.agent.lease import Lease
from lloom_gitops.agent.turn import once
from lloom_gitops.agent.turn_report import TurnReport
from lloom_gitops.agent.world import World
from lloom_gitops.model.errors import LloomGitopsError

_RETRY_SECONDS = 15.0
"""After a turn that could not be taken: the remote or the pool may be back."""
_SLICE_SECONDS = 0.2


def serve(world: World, lease: Lease, said: Callable[[TurnReport], None]) -> None:
    """Take turns until `world.stop` names a signal. What keeps a turn from being taken is told, and tried again."""
    while world.stop() is None:
        try:
            report = once(world, lease)
        except LloomGitopsError as error:
            world.tell(error.message + (f" ({error.hint})" if error.hint else ""))
            wait = _RETRY_SECONDS
        else:
            said(report)
            wait = float(report.interval_seconds)
        _rest(world, lease, wait)


def _rest(world: World, lease: Lease, seconds: float) -> None:
    end = world.clock.monotonic() + seconds
    while world.stop() is None and world.clock.monotonic() < end:
        lease.keep()
        world.clock.sleep(_SLICE_SECONDS)
