"""The judge of plans: nothing in what is right, every planted fault found, and every code documented."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from lloom_gitops.checks.plan import judge
from lloom_gitops.checks.plan_codes import MEANINGS
from tests.judge import faults_of_account, faults_of_place, faults_of_service
from tests.judge.changes import Change, built, desired, seen_lane
from tests.judge.plans import Case, as_it_is, cordoned

FAULTS = [*faults_of_place.FAULTS, *faults_of_service.FAULTS, *faults_of_account.FAULTS]
PAGE = Path(__file__).parents[2] / "docs/reference/plan-findings.md"


@pytest.mark.parametrize("case", [as_it_is, cordoned], ids=lambda case: case.__name__)
def test_a_right_plan_has_no_findings(case: Callable[[], Case]) -> None:
    assert judge(*case()) == ()


@pytest.mark.parametrize(("code", "base", "changes"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_planted_fault_is_found(code: str, base: Callable[[], Case], changes: tuple[Change, ...]) -> None:
    findings = judge(*built(base, *changes))
    assert code in {finding.code for finding in findings}, [f"{f.code} {f.pointer} {f.message}" for f in findings]


def test_every_code_has_a_planted_fault() -> None:
    assert {code for _, code, _, _ in FAULTS} == set(MEANINGS)


def test_every_code_is_documented() -> None:
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert {code.strip().strip("`"): meaning.strip() for code, meaning in rows} == MEANINGS


def test_a_finding_says_where_what_was_wanted_and_what_was_found() -> None:
    finding = next(f for f in judge(*built(cordoned, desired(unlisted="remove"))) if f.code == "planInputs")
    assert finding.pointer == "/inputs/desired"
    assert finding.wanted
    assert finding.found
    assert finding.wanted != finding.found
    assert finding.hint


def test_a_lane_adopted_over_its_bound_keeps_its_own_alias() -> None:
    findings = judge(*built(as_it_is, seen_lane("video-03", memory_gb={"spark-node-03": Decimal(90)})))
    assert {"planRouteUnavailable", "planRouteMissing", "planOverOnDemand"} & {f.code for f in findings} == set()
