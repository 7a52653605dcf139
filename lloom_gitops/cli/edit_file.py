"""One edit of one file that people write: judged, shown, written, and committed if that is asked for."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.fleet import Fleet, replace_file
from lloom_gitops.cli.output import put, put_json, tell
from lloom_gitops.model.errors import DocumentError, Finding, Refused

if TYPE_CHECKING:
    from lloom_gitops.gitstore.commits import Author


@dataclass(frozen=True, slots=True)
class Edit:
    """`after` is what the file at `path` is to hold (None: it is not there, and stays so); `holds` is the sentence that
    is true then; `subject` and `reason` are for the commit."""

    path: str
    after: bytes | None
    holds: str
    subject: str
    reason: str | None = None


def carry_out(context: Context, fleet: Fleet, edit: Edit, *, dry_run: bool, commit: bool) -> None:
    """Write the edit, or with `dry_run` show it; the file stays byte for byte where it says so already.

    Raises DocumentError where the documents would have errors then, and Refused where a commit that is asked for would
    take in more than the edit; nothing is written in either case.
    """
    before = fleet.files.get(edit.path)
    if edit.after is None or edit.after == before:
        _report(context, edit, (), "", f"{edit.holds} already: {edit.path} is left as it is")
        return
    warnings = _new_warnings(fleet, edit.path, edit.after)
    author = _author(fleet, edit.path, before) if commit else None
    diff = _diff(edit.path, before or b"", edit.after)
    made = None
    if dry_run:
        also = f", and commit it as {edit.subject!r}" if commit else ""
        says = f"would write {edit.path}{also}: then {edit.holds}"
    else:
        replace_file(fleet.repo / edit.path, edit.after)
        made = None if author is None else _commit(fleet, edit, edit.after, author)
        says = f"wrote {edit.path}: {edit.holds}\n{_what_follows(edit, made)}"
    _report(context, edit, warnings, diff, says, written=not dry_run, commit=made)


def _new_warnings(fleet: Fleet, path: str, after: bytes) -> tuple[Finding, ...]:
    """Warnings that come with the edit."""

    def told(finding: Finding) -> tuple[str, str, str]:
        return finding.code, finding.file, finding.message  # lines move with an edit

    warnings = fleet.wanted({path: after}).warnings
    try:
        known = {told(finding) for finding in fleet.wanted().warnings}
    except DocumentError as error:
        known = {told(finding) for finding in error.findings}
    return tuple(finding for finding in warnings if told(finding) not in known)


def _author(fleet: Fleet, path: str, before: bytes | None) -> Author:
    """Who commits; refuses where the file differs from HEAD already, as the commit would take that in."""
    from lloom_gitops.drivers.clock import SystemClock

    if fleet.store.checked_out() is None:
        raise Refused(
            code="detachedHead", message="no branch is checked out", hint="check one out with `git switch BRANCH`"
        )
    head = fleet.store.head()
    if before != (None if head is None else fleet.store.read_file(head, path)):
        raise Refused(
            code="editsBefore",
            message=f"{path} has edits that are not committed; --commit would commit them too",
            hint="commit them first, or leave out --commit",
        )
    return fleet.store.person(SystemClock().now())


def _commit(fleet: Fleet, edit: Edit, after: bytes, author: Author) -> str | None:
    from lloom_gitops.gitstore.commits import Draft
    from lloom_gitops.gitstore.message import CommitMessage

    body = (edit.reason,) if edit.reason else ()
    return fleet.store.commit_to_head(Draft({edit.path: after}, CommitMessage(edit.subject, body)), author)


def _what_follows(edit: Edit, made: str | None) -> str:
    """The commands that a person goes on with."""
    if made is not None:
        return f"committed {made[:8]}: {edit.subject}\nthen: lloom-gitops plan --write"
    lines = ["lloom-gitops plan --write", "git add fleet", f"git commit -m {shlex.quote(edit.subject)}"]
    return "\n".join(("then:", *(f"  {line}" for line in lines)))


def _diff(path: str, before: bytes, after: bytes) -> str:
    from lloom_gitops.render.clean import visible

    old, new = (data.decode("utf-8").splitlines() for data in (before, after))
    source = f"a/{path}" if before else "/dev/null"
    lines = difflib.unified_diff(old, new, source, f"b/{path}", lineterm="")
    return "".join(f"{visible(line)}\n" for line in lines)


def _report(
    context: Context,
    edit: Edit,
    warnings: tuple[Finding, ...],
    diff: str,
    says: str,
    *,
    written: bool = False,
    commit: str | None = None,
) -> None:
    from lloom_gitops.render.findings import findings_text

    if context.json:
        told = {"file": edit.path, "changed": bool(diff), "written": written, "commit": commit, "holds": edit.holds}
        put_json({**told, "diff": diff, "warnings": list(warnings)})
        return
    if warnings:
        tell(findings_text(warnings, context.error_page().paint))
    if diff and not written:
        put(diff)
    tell(says)
