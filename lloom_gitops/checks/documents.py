"""The judge of documents: everything that is wrong with the files of a fleet repository, found in one go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from lloom_gitops.codec.desired import (
    OTHER_PATHS,
    LoadedDesired,
    UnreadEntry,
    desired_kind,
    documents_beside,
    load_desired,
)
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


def document_findings(
    files: Mapping[str, bytes], today: date, unread: Iterable[UnreadEntry] = ()
) -> tuple[Finding, ...]:
    """All findings of all documents, by place.

    `files` are path to bytes of what lies below `fleet/` and `recipes/`, `unread` what lies there and was not read.
    `today` (a day in UTC) is for pins that get old. Names that could stand in a document that can't be read raise none.
    """
    loaded = load_desired(files, unread)
    findings = list(loaded.findings)
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
