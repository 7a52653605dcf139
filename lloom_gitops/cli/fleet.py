"""The fleet repository's documents, as the commands that plan and show need them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from lloom_gitops.checks.documents import document_findings
from lloom_gitops.codec.desired import PATHS, POOL_FILE, load_desired
from lloom_gitops.codec.documents import MACHINE_KINDS, Document, dump_document, load_document, plan_id
from lloom_gitops.gitstore.errors import BadRevision
from lloom_gitops.gitstore.store import GitStore
from lloom_gitops.gitstore.trees import read_folder
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.document import Kind, Metadata
from lloom_gitops.model.errors import DocumentError, Finding, Severity, UsageError
from lloom_gitops.model.plan import Plan

PREFIXES = ("fleet", "recipes")
"""Where the documents of a fleet repository lie."""

_WRITTEN = frozenset(PATHS[kind] for kind in MACHINE_KINDS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The desired state with its digest and the findings that are no errors."""

    desired: Desired
    digest: str
    warnings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A document and where it was found: `path` alone for the work tree, else with the revision."""

    document: Document
    source: str


class Fleet:
    """The documents of a fleet repository at `repo`, from the work tree (edits included) or from a revision.

    Inventory, status and agent-made plans come from the results branch where there is one (`writeBack`).
    """

    def __init__(self, repo: Path, rev: str | None = None) -> None:
        self.repo = repo
        self.rev = rev
        self.store = GitStore(repo)
        tree = read_folder(repo, PREFIXES) if rev is None else self.store.read_tree(rev, PREFIXES)
        self.files: Mapping[str, bytes] = tree.files
        self.unread = tree.unread

    def wanted(self, edited: Mapping[str, bytes] = MappingProxyType({})) -> Wanted:
        """The desired state; raises DocumentError (exit 3) with all findings if one of them is an error.

        `edited` files count instead of those read. What programs write (plan, status, inventory) is judged where it is
        used: a broken one never blocks its repair.
        """
        from lloom_gitops.drivers.clock import SystemClock

        files = {**self.files, **edited}
        all_findings = document_findings(files, SystemClock().now().date(), self.unread)
        findings = tuple(finding for finding in all_findings if finding.file not in _WRITTEN)
        errors = sum(finding.severity is Severity.ERROR for finding in findings)
        loaded = load_desired(files)
        if errors or loaded.desired is None or loaded.digest is None:
            raise DocumentError(
                code="documents",
                message=f"the documents have {errors} error{'s' if errors > 1 else ''}",
                hint="`lloom-gitops check` shows all findings",
                findings=findings,
            )
        return Wanted(loaded.desired, loaded.digest, findings)

    @cached_property
    def results_branch(self) -> str | None:
        """The results branch, also where other documents have errors; None where there is none, or it can't be told."""
        try:
            pool = load_document(Kind.POOL, self.files.get(POOL_FILE, b""), POOL_FILE).spec
        except DocumentError:
            return None
        return pool.write_back.results_branch if pool.write_back.results == "branch" else None

    def document(self, kind: Kind, branch: str | None = None) -> Found | None:
        """The one document of a kind, of the results branch where one is given and has it; None where there is none.

        Raises DocumentError if it can't be read.
        """
        path = PATHS[kind]
        data, source = self.files.get(path), path if self.rev is None else f"{self.rev}:{path}"
        for rev in self.refs_of(branch) if self.rev is None else ():
            there = self.file_at(rev, path)
            if there is not None:
                data, source = there, f"{branch}:{path}"
                break
        return None if data is None else Found(load_document(kind, data, path), source)

    def refs_of(self, branch: str | None) -> tuple[str, ...]:
        """Where a branch of the remote may be kept in this clone: as last fetched, then as a local branch."""
        return (f"refs/remotes/{self.store.remote}/{branch}", f"refs/heads/{branch}") if branch else ()

    def file_at(self, rev: str, path: str) -> bytes | None:
        """A file of a revision; None where the revision or the file is not there."""
        try:
            return self.store.read_file(rev, path)
        except BadRevision:
            return None


def results_branch(desired: Desired) -> str | None:
    """The branch that the agent writes inventory, status and its plans to, where it is not the protected one."""
    return desired.pool.write_back.results_branch if desired.pool.write_back.results == "branch" else None


def plan_document(plan: Plan) -> str:
    """The bytes of fleet/plan.yaml, as text."""
    return dump_document(Kind.PLAN, Metadata(name="plan", id=plan_id(plan)), plan)


def replace_file(path: Path, data: bytes) -> None:
    """Puts `data` in the file's place by one rename: a reader, or a kill, sees the old or the new content.

    Raises UsageError where the place can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise UsageError(code="notWritable", message=f"{path} can't be written: {error.strerror}") from error
