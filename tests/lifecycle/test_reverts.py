"""Rollback holds from history: a person's revert of the agent's plan is not undone by the agent."""

from __future__ import annotations

import pytest

from lloom_gitops.control.lifecycle_reverts import PlanChange, taken_back


def change(who: str, plan: bytes | None, holds: bytes | None = None) -> PlanChange:
    return PlanChange(commit=f"{who}-{plan!r}", by_agent=who == "agent", plan=plan, holds=holds)


OLD, NEW, OTHER = b"old", b"new", b"other"


@pytest.mark.parametrize(
    ("newest_first", "held"),
    [
        ([change("anna", OLD), change("agent", NEW), change("anna", OLD)], ["agent-b'new'"]),
        ([change("anna", None), change("agent", NEW)], ["agent-b'new'"]),
        ([change("agent", NEW), change("anna", OLD)], []),
        ([change("anna", OTHER), change("agent", NEW), change("anna", OLD)], []),
        ([change("agent", OLD), change("agent", NEW), change("anna", OLD)], []),
        ([change("anna", OLD), change("bert", NEW), change("anna", OLD)], []),
        ([change("anna", OLD, b"r"), change("anna", OLD), change("agent", NEW), change("anna", OLD)], []),
        (
            [change("anna", OLD, b"s"), change("anna", OLD, b"s"), change("agent", NEW, b"s"), change("anna", OLD)],
            ["agent-b'new'"],
        ),
    ],
    ids=["reverted", "removed", "stands", "replaced, not reverted", "the agent itself", "a person's plan", "resumed",
         "suspended before, not resumed"],
)  # fmt: skip
def test_what_a_person_took_back(newest_first: list[PlanChange], held: list[str]) -> None:
    assert list(taken_back(newest_first)) == held
