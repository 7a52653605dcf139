"""Findings and refusals as text for a person, and findings as annotations of a pull request's files."""

from __future__ import annotations

from collections.abc import Iterable

from lloom_gitops.model.errors import Finding, LloomGitopsError, Severity
from lloom_gitops.render.clean import visible
from lloom_gitops.render.paint import Paint


def finding_text(finding: Finding, paint: Paint) -> str:
    """One finding: what is wrong on the first line, then its place, what was wanted and found, and what to do."""
    tone = paint.bad if finding.severity is Severity.ERROR else paint.warn
    lines = [f"{tone(f'{finding.severity}[{visible(finding.code)}]')}: {visible(finding.message)}"]
    if finding.place:
        lines.append(f"  --> {visible(finding.place)}{visible(f'  {finding.pointer}') if finding.pointer else ''}")
    if finding.wanted is not None or finding.found is not None:
        sides = [("wanted", finding.wanted), ("found", finding.found)]
        lines.append("  " + ", ".join(f"{name} {visible(text)}" for name, text in sides if text is not None))
    if finding.hint:
        lines.append(f"  {paint.strong('hint')}: {visible(finding.hint)}")
    return "\n".join(lines)


def findings_text(findings: Iterable[Finding], paint: Paint) -> str:
    """All findings by place, then a line that counts them; empty for none."""
    ordered = sorted(findings, key=lambda finding: finding.sort_key)
    if not ordered:
        return ""
    return "\n".join([*(finding_text(finding, paint) for finding in ordered), counted(ordered)])


def counted(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 warning in 2 files`; says `no findings` for none."""
    listed = list(findings)
    if not listed:
        return "no findings"
    counts = [
        (sum(finding.severity is severity for finding in listed), word)
        for severity, word in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"))
    ]
    said = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    files = len({finding.file for finding in listed if finding.file})
    return said + (f" in {files} file{'s' if files > 1 else ''}" if files else "")


def github_annotations(findings: Iterable[Finding]) -> str:
    """Workflow commands that mark findings at their lines; data can't end a command or start another."""
    return "\n".join(_annotation(finding) for finding in sorted(findings, key=lambda finding: finding.sort_key))


def _annotation(finding: Finding) -> str:
    places = [("file", finding.file), ("line", finding.line), ("col", finding.column), ("title", finding.code)]
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in places if value)
    message = finding.message + (f" Hint: {finding.hint}" if finding.hint else "")
    return f"::{finding.severity} {properties}::{_message(visible(message))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(visible(text)).replace(":", "%3A").replace(",", "%2C")


def error_text(error: LloomGitopsError, paint: Paint) -> str:
    """A refusal or failure: its findings first, then the sentence that sums it up, then what to do."""
    lines = [findings_text(error.findings, paint)] if error.findings else []
    lines.append(f"{paint.bad(f'error[{visible(error.code)}]')}: {visible(error.message)}")
    if error.hint:
        lines.append(f"  {paint.strong('hint')}: {visible(error.hint)}")
    return "\n".join(lines)
