"""Each folder of `golden/` is a plan and what people see of it; `make golden` rewrites the texts, CI never does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lloom_gitops.codec.documents import load_document
from lloom_gitops.model.document import Kind
from lloom_gitops.model.plan import Plan
from lloom_gitops.render.page import Page
from lloom_gitops.render.paint import Paint
from lloom_gitops.render.plan_text import plan_text

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(folder.name for folder in GOLDEN.iterdir())
PAGES = {
    "diff.txt": Page(width=100),
    "diff-60.txt": Page(width=60),
    "diff-ascii.txt": Page(width=80, ascii_only=True),
    "diff-color.txt": Page(width=100, paint=Paint(color=True)),
}


def plan_of(case: str) -> Plan:
    path = GOLDEN / case / "plan.yaml"
    plan: Plan = load_document(Kind.PLAN, path.read_bytes(), path.name).spec
    return plan


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("case", CASES)
def test_golden_plan_text(case: str, name: str) -> None:
    said = plan_text(plan_of(case), PAGES[name])
    path = GOLDEN / case / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(said, "utf-8")
    assert said == path.read_text("utf-8")
