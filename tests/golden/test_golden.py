"""Every case gives the plan and the texts that are written down for it, and the judge finds nothing in the plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from lloom_gitops.checks.documents import document_findings
from lloom_gitops.checks.plan import judge
from lloom_gitops.codec import encode, load_document
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Severity
from lloom_gitops.model.words import StepKind, StopReason
from lloom_gitops.render.causes import CAUSES, GAPS, LANES
from lloom_gitops.render.code_pages import NOTES

from .cases import CASES, FOLDER, INVENTORY, WRITTEN, load, merged

ROWS = {
    *(f"PLN-{row}" for row in range(1, 12)),
    *(f"CAT-{row}" for row in range(1, 8)),
    *("ADM-1", "ADM-2", "ADM-3"),
    *("T1", "T5", "T7", "T8", "T10", "T14"),
}


@pytest.mark.parametrize("name", CASES)
def test_golden_case(name: str) -> None:
    texts = load(name).texts()
    for file in WRITTEN:
        path = FOLDER / name / file
        if os.environ.get("GOLDEN") == "write":
            path.unlink(missing_ok=True)
            if file in texts:
                path.write_text(texts[file], "utf-8")
        assert path.exists() is (file in texts)
        assert file not in texts or path.read_text("utf-8") == texts[file], f"{name}/{file}: run `make golden`, read it"


@pytest.mark.parametrize("name", CASES)
def test_its_plan_can_be_read_back(name: str) -> None:
    case = load(name)
    assert load_document(Kind.PLAN, case.texts()["plan.yaml"].encode(), "plan.yaml").spec == case.made


@pytest.mark.parametrize("name", CASES)
def test_the_judge_finds_nothing_in_it(name: str) -> None:
    case = load(name)
    found = judge(case.asked, case.inventory, case.made)
    assert [f"{finding.code} {finding.pointer}: {finding.message} ({finding.found})" for finding in found] == []


@pytest.mark.parametrize("name", CASES)
def test_its_documents_are_what_people_may_write(name: str) -> None:
    files = {path: data for path, data in load(name).files.items() if path != INVENTORY}
    findings = document_findings(files, date(2026, 12, 1), ())
    assert [f"{f.place}: {f.code}: {f.message}" for f in findings if f.severity is Severity.ERROR] == []


def reasons(data: Any) -> Iterator[str]:
    """Every reason that stands anywhere in a plan."""
    if isinstance(data, dict):
        if isinstance(data.get("reason"), str):
            yield data["reason"]
        for value in data.values():
            yield from reasons(value)
    elif isinstance(data, list):
        for value in data:
            yield from reasons(value)


def test_every_reason_note_stop_gap_and_step_occurs() -> None:
    plans = [load(name).made for name in CASES]
    seen = {reason for plan in plans for reason in reasons(encode(plan))}
    assert {*CAUSES, *LANES} - seen == set()
    assert NOTES.keys() - {note.code for plan in plans for note in plan.notes} == set()
    assert GAPS.keys() - {gap.because.split(":")[0] for plan in plans for gap in plan.gaps} == set()
    assert set(StopReason) - {change.why for plan in plans for change in plan.diff.stop} == set()
    assert set(StepKind) - {step.kind for plan in plans for step in plan.steps} == set()


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("reason-", "note-", "lane-"))])
def test_a_case_that_is_named_for_a_code_shows_it(name: str) -> None:
    family, _, code = name.partition("-")
    made = load(name).made
    shown = {note.code for note in made.notes} if family == "note" else set(reasons(encode(made)))
    assert code in shown


def test_every_reason_and_every_note_has_a_case_of_its_own() -> None:
    assert {f"reason-{code}" for code in CAUSES} - set(CASES) == set()
    assert {f"note-{code}" for code in NOTES} - set(CASES) == set()


def test_every_row_is_shown() -> None:
    assert ROWS - {row for name in CASES for row in load(name).rows} == set()


def test_a_merge_patch_changes_what_it_names() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None, "e": 3}, "d": [2]}) == {
        "a": {"c": 2, "e": 3},
        "d": [2],
    }
