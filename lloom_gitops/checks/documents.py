"""The judge of documents: everything that is wrong with the files of a fleet repository, found in one go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Protocol

from lloom_gitops.codec.desired import OTHER_PATHS, LoadedDesired, desired_kind, documents_beside, load_desired
from lloom_gitops.codec.documents import byte_limit
from lloom_gitops.codec.parsing import parse
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Finding, Severity
from lloom_gitops.model.inventory import Inventory

from .documents_codes import MEANINGS
from .documents_pins import pin_findings
from .documents_references import reference_findings
from .documents_scene import Scene
from .documents_secrets import secret_findings


class UnreadEntry(Protocol):
    """An entry below `fleet/` or `recipes/` whose content was not read; `mode` is git's (`120000`: a symbolic link)."""

    @property
    def path(self) -> str: ...

    @property
    def mode(self) -> str: ...

    @property
    def size(self) -> int: ...


def document_findings(
    files: Mapping[str, bytes], today: date, unread: Iterable[UnreadEntry] = ()
) -> tuple[Finding, ...]:
    """All findings of all documents, by place.

    `files` are path to bytes of what lies below `fleet/` and `recipes/`, `unread` what lies there and was not read.
    `today` (a day in UTC) is for pins that get old. Names that could stand in a document that can't be read raise none.
    """
    loaded = load_desired(files)
    findings = [*loaded.findings, *unread_findings(unread)]
    inventory: Inventory | None = None
    for document, faults in documents_beside(files):
        findings += faults
        if document is not None and document.kind is Kind.INVENTORY:
            inventory = document.spec
    scene = Scene(loaded, inventory, today)
    findings += reference_findings(scene)
    findings += pin_findings(scene)
    findings += _file_names(loaded)
    for path, data in files.items():
        kind = desired_kind(path) or OTHER_PATHS.get(path)
        if kind is not None:
            findings += secret_findings(parse(data, path, limit=byte_limit(kind)))
    return tuple(sorted(set(findings), key=lambda finding: finding.sort_key))


def unread_findings(entries: Iterable[UnreadEntry]) -> Iterator[Finding]:
    """Findings of what was not read: no part of the desired state may go missing unsaid."""
    for entry in entries:
        if entry.mode == "120000":
            code, message = "symbolicLink", "a symbolic link is not followed: it could lead out of the repository"
        elif entry.mode == "160000":
            code, message = "notAFile", "a repository inside the repository is not read"
        elif entry.mode == "000000":
            code, message = "notAFile", "no plain file, so it is not read"
        else:
            code, message = "fileTooLarge", f"{entry.size} bytes are too many to read"
        yield Finding(code=code, message=message, file=entry.path, hint=MEANINGS[code].remedy)


def _file_names(loaded: LoadedDesired) -> Iterator[Finding]:
    """Documents whose file is called otherwise: legal, but people look for a node in its own file."""
    for section in ("nodes", "lanes", "profiles", "policies", "recipes"):
        for name in getattr(loaded.readable, section):
            tokens = f"/{section}/{name}"
            finding = loaded.places.finding("nameOfFile", tokens, "", severity=Severity.WARNING)
            stem = finding.file.rpartition("/")[2].removesuffix(".yaml")
            if stem != name:
                yield Finding(
                    code="nameOfFile",
                    message=f"{name} stands in a file called {stem}.yaml",
                    severity=Severity.WARNING,
                    file=finding.file,
                    hint=MEANINGS["nameOfFile"].remedy,
                )
