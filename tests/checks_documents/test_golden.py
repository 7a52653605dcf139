"""Each folder of `golden/` is a code: files laid over those of `base/`, and all that is found in them together.

`GOLDEN=write` rewrites the texts; CI never does.
"""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path

import pytest

from lloom_gitops.checks.documents import document_findings
from lloom_gitops.checks.documents_codes import MEANINGS
from lloom_gitops.model.errors import Finding
from lloom_gitops.render.findings import findings_text
from lloom_gitops.render.paint import Paint

HERE = Path(__file__).parent
CASES = sorted(folder.name for folder in (HERE / "golden").iterdir())
TODAY = date(2026, 11, 30)

# Codes that no file in git can show; the tests of the command do.
ELSEWHERE = {"fileTooLarge", "notAFile", "symbolicLink", "poolMissing"}
SECRETS = ("sk-1234567890abcdef", "A94A8FE5CCB19BA61C4C0873D391E987", "hunter2", "token=abc", "abcdefgh12345678")
MORE_SECRETS = ("letmein", "ghp_abcdefghijkl1234")


def files_of(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "findings.txt")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def findings_of(case: str) -> tuple[Finding, ...]:
    return document_findings(files_of(HERE / "base") | files_of(HERE / "golden" / case), TODAY)


def test_nothing_is_found_in_the_base() -> None:
    assert document_findings(files_of(HERE / "base"), TODAY) == ()


@pytest.mark.parametrize("case", CASES)
def test_findings(case: str) -> None:
    findings = findings_of(case)
    said = findings_text(findings, Paint()) + "\n"
    path = HERE / "golden" / case / "findings.txt"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(said, "utf-8")
    assert said == path.read_text("utf-8")
    assert case in {finding.code for finding in findings}


@pytest.mark.parametrize("case", CASES)
def test_every_finding_has_code_place_and_hint_and_shows_no_secret(case: str) -> None:
    for finding in findings_of(case):
        assert finding.code in MEANINGS
        assert re.fullmatch("[a-z][A-Za-z0-9]*", finding.code)
        assert finding.file
        assert finding.line or finding.code in ("unknownFile", "nameOfFile")
        assert finding.hint
        for secret in (*SECRETS, *MORE_SECRETS):
            assert secret not in repr(finding)


def test_every_code_has_a_case() -> None:
    assert set(CASES) | ELSEWHERE == set(MEANINGS)


def test_the_page_of_codes_is_complete() -> None:
    page = (HERE.parent.parent / "docs" / "reference" / "findings.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    assert {code: (says, remedy) for code, says, remedy in rows} == {code: tuple(m) for code, m in MEANINGS.items()}
    assert len(rows) == len(MEANINGS)
