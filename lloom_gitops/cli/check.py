"""`check`: all findings of all documents, as a person, a program or a code host reads them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json

if TYPE_CHECKING:
    from lloom_gitops.model.errors import Finding


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def check(
    ctx: typer.Context,
    format: Annotated[
        Format,
        typer.Option("--format", help="json: as --json; github: annotations in a workflow; sarif: for code hosts."),
    ] = Format.TEXT,
) -> None:
    """Read every document of the work tree and show everything that is wrong, at once.

    Faults of YAML and shape, names that lead nowhere, pins that exclude each other, secrets where a name belongs. It
    writes nothing. Errors end with exit code 3; warnings alone with 0.

    \b
    Examples:
      lloom-gitops check
      lloom-gitops check --format github
    """
    from lloom_gitops.checks.documents import document_findings
    from lloom_gitops.drivers.clock import SystemClock
    from lloom_gitops.gitstore.trees import read_folder
    from lloom_gitops.model.errors import ExitCode, Severity

    context: Context = ctx.obj
    tree = read_folder(context.repo, ("fleet", "recipes"))
    findings = document_findings(tree.files, SystemClock().now().date(), tree.unread)
    _put(context, Format.JSON if context.json else format, findings, len(tree.entries))
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(int(ExitCode.FINDINGS))


def _put(context: Context, format: Format, findings: tuple[Finding, ...], files: int) -> None:
    from lloom_gitops.render.findings import counted, findings_text, github_annotations

    match format:
        case Format.JSON:
            put_json({"files": files, "findings": list(findings), "summary": counted(findings)})
        case Format.SARIF:
            _put_sarif(findings)
        case Format.GITHUB:
            if findings:
                put(github_annotations(findings))
        case Format.TEXT:
            read = f"{files} file{'' if files == 1 else 's'} read"
            put(findings_text(findings, context.page().paint) if findings else f"no findings, {read}")


def _put_sarif(findings: tuple[Finding, ...]) -> None:
    import json

    from lloom_gitops.render.sarif import sarif

    put(json.dumps(sarif(findings), indent=2))
