"""Rollback holds from history: a person's revert of the agent's plan is not undone by the agent."""

from __future__ import annotations

import pytest

from lloom_gitops.control.lifecycle_reverts import PlanChange, taken_back


def change(who: str, plan: str | None, holds: str | None = None) -> PlanChange:
    return PlanChange(commit=f"{who}-{plan!r}", by_agent=who == "agent", plan=plan, holds=holds)


OLD, NEW, OTHER = "old", "new", "other"


@pytest.mark.parametrize(
    ("newest_first", "held"),
    [
        ([change("anna", OLD), change("agent", NEW), change("anna", OLD)], ["agent-'new'"]),
        ([change("anna", None), change("agent", NEW)], ["agent-'new'"]),
        ([change("agent", NEW), change("anna", OLD)], []),
        ([change("anna", OTHER), change("agent", NEW), change("anna", OLD)], []),
        ([change("agent", OLD), change("agent", NEW), change("anna", OLD)], []),
        ([change("anna", OLD), change("bert", NEW), change("anna", OLD)], []),
        ([change("anna", OLD, "r"), change("anna", OLD), change("agent", NEW), change("anna", OLD)], []),
        (
            [change("anna", OLD, "s"), change("anna", OLD, "s"), change("agent", NEW, "s"), change("anna", OLD)],
            ["agent-'new'"],
        ),
    ],
    ids=["reverted", "removed", "stands", "replaced, not reverted", "the agent itself", "a person's plan", "resumed",
         "suspended before, not resumed"],
)  # fmt: skip
def test_what_a_person_took_back(newest_first: list[PlanChange], held: list[str]) -> None:
    assert list(taken_back(newest_first)) == held
