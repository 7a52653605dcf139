"""Rollback holds: which of the agent's own plans a person took back (lifecycle.md, Revert); from history alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec


class PlanChange(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that changed fleet/plan.yaml or fleet/holds.yaml, with the ids of what both hold after it."""

    commit: str
    by_agent: bool
    plan: str | None
    holds: str | None


def taken_back(changes: Sequence[PlanChange]) -> tuple[str, ...]:
    """Commits of the agent whose plan a person's next change of the file replaced by an older one, or by none, with no
    later change of the holds by a person (`resume` makes one). `changes` are newest first."""
    found = []
    for place, change in enumerate(changes):
        older = [each.plan for each in changes[place + 1 :]]
        if not change.by_agent or change.plan is None or older[:1] == [change.plan]:
            continue
        newer = [at for at in range(place - 1, -1, -1) if changes[at].plan != change.plan]
        if not newer or changes[newer[0]].by_agent or _resumed(changes[: newer[0] + 1]):
            continue
        back_to = changes[newer[0]].plan
        if back_to is None or back_to in older:
            found.append(change.commit)
    return tuple(found)


def _resumed(changes: Sequence[PlanChange]) -> bool:
    """Whether a person changed the holds after the oldest of these."""
    return any(newer.holds != older.holds and not newer.by_agent for newer, older in pairwise(changes))
