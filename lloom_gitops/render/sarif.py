"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from lloom_gitops import __version__
from lloom_gitops.checks.documents_codes import MEANINGS
from lloom_gitops.model.errors import Finding
from lloom_gitops.render.clean import visible

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Iterable[Finding]) -> dict[str, Any]:
    """One run with a rule for each code that was found, and a result for each finding, by place."""
    ordered = sorted(findings, key=lambda finding: finding.sort_key)
    codes = sorted({finding.code for finding in ordered})
    driver = {"name": "lloom-gitops", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code)) for finding in ordered],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    meaning = MEANINGS.get(code)
    if meaning is None:
        return {"id": code}
    return {"id": code, "shortDescription": {"text": meaning.says}, "help": {"text": meaning.remedy}}


def _result(finding: Finding, index: int) -> dict[str, Any]:
    sides = [f"{name} {text}" for name, text in (("wanted", finding.wanted), ("found", finding.found)) if text]
    text = ". ".join(part for part in (finding.message, ", ".join(sides), finding.hint) if part)
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file), "uriBaseId": "%SRCROOT%"}}
    if finding.line:
        location["region"] = {"startLine": finding.line, "startColumn": max(finding.column, 1)}
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity.value,
        "message": {"text": visible(text)},
        "locations": [{"physicalLocation": location}],
    }
