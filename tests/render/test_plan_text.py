"""What the text of a plan leaves out, and what it never leaves out."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lloom_gitops.model.plan import (
    AliasCount,
    Cause,
    Diff,
    DomainBudget,
    Plan,
    PlanInputs,
    PlannedRoute,
    RouteChange,
    Step,
    Verdict,
)
from lloom_gitops.model.words import StepKind
from lloom_gitops.render.page import Page
from lloom_gitops.render.plan_text import plan_text, verdict_text

STEP = Step(id="route:a", kind=StepKind.ROUTE, node="head", alias="a", timeout_seconds=30)


def plan_of(**parts: object) -> Plan:
    defaults = {
        "inputs": PlanInputs(desired="", inventory=""),
        "verdict": Verdict(levels=(0,), aliases=AliasCount(covered=1)),
        "steps": (STEP,),
    }
    return Plan(**(defaults | parts))


def budgets(count: int, moved: int) -> dict[str, tuple[DomainBudget, ...]]:
    """`count` nodes with one domain each; on the first `moved` of them something changes."""
    return {
        f"node-{place:03}": (
            DomainBudget(domain="unified:0", budget_gb=Decimal(100), after_gb=Decimal(40 if place < moved else 0)),
        )
        for place in range(count)
    }


@pytest.mark.parametrize(
    ("count", "moved", "shown", "left"),
    [(12, 1, 12, None), (13, 1, 1, "12 other domains as before"), (400, 3, 3, "397 other domains as before")],
    ids=["a small pool: all", "a larger pool: what changes", "a large pool"],
)
def test_memory_of_large_pools_shows_what_changes(count: int, moved: int, shown: int, left: str | None) -> None:
    said = plan_text(plan_of(budget=budgets(count, moved)), Page())
    assert said.count("  before  ") == shown
    assert (left in said) if left else ("as before" not in said)


def test_domains_of_one_node_are_told_apart() -> None:
    domains = tuple(DomainBudget(domain=f"device:{n}", budget_gb=Decimal(22)) for n in range(2))
    said = plan_text(plan_of(budget={"gpu-01": domains}), Page())
    assert "gpu-01/device:0" in said
    assert "gpu-01/device:1" in said


def test_nothing_to_do_shows_no_bars_and_no_steps() -> None:
    said = plan_text(plan_of(steps=(), budget=budgets(2, 0), says="nothing to do: all is well"), Page())
    assert said == "Nothing to do: all is well. 1 alias covered.\n"


def test_uncovered_aliases_are_listed_with_every_cause_also_when_nothing_is_to_do() -> None:
    causes = (Cause(reason="latched", lane="a"), Cause(reason="cordoned", node="n"))
    said = plan_text(plan_of(steps=(), uncovered={"video": causes}), Page())
    assert "Not covered\n  ! video\n      - a is latched" in said
    assert "      - n is cordoned\n" in said


def test_an_alias_on_an_external_model_only_is_named_with_its_reason_once() -> None:
    cause = Cause(reason="cordoned", node="n", lane="l", model="m")
    routes = {"chat": PlannedRoute(route=("cloud/x",), lanes=(None,), because=(cause,))}
    kept = plan_text(plan_of(routes=routes), Page())
    assert "On an external model only\n  ! chat: cloud/x\n      not     m: n is cordoned\n" in kept
    changed = plan_text(
        plan_of(routes=routes, diff=Diff(routes=(RouteChange(alias="chat", before=("m",), after=("cloud/x",)),))),
        Page(),
    )
    assert changed.count("m: n is cordoned") == 1


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        pytest.param(Verdict(levels=()), "No better plan exists.", id="proven"),
        pytest.param(Verdict(levels=(), proof="bounded"), "Not proven best.", id="no figure"),
        pytest.param(
            Verdict(levels=(), proof="bounded", gap_percent=Decimal("1.66")), "at most 1.7 % from the bound", id="gap"
        ),
    ],
)
def test_the_verdict_says_how_good_the_plan_is(verdict: Verdict, said: str) -> None:
    assert said in verdict_text(plan_of(verdict=verdict))


def test_a_removed_alias_is_called_that() -> None:
    said = plan_text(plan_of(diff=Diff(routes=(RouteChange(alias="old", before=("m",), after=()),))), Page())
    assert "after   nothing: the alias is removed" in said
