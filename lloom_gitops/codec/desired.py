"""From the files of a fleet repository to the desired state, its digest and its places.

What counts as desired is a closed list of paths; approving or observing (confirmations, holds, plan, status, inventory,
signers) never changes it. File names and how aliases and pins are split over files don't matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Finding, Severity
from lloom_gitops.model.pool import Pool
from lloom_gitops.model.recipe import Recipe

from .codes import MEANINGS
from .documents import Document, read_document
from .parsing import Parsed, join_pointer
from .values import digest

POOL_FILE = "fleet/pool.yaml"

# Path to kind. The second list is outside the desired digest.
_DESIRED_PATHS: tuple[tuple[re.Pattern[str], Kind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"fleet/pool\.yaml", Kind.POOL),
        (r"fleet/nodes/[^/]+\.yaml", Kind.NODE),
        (r"fleet/aliases(/[^/]+)?\.yaml", Kind.ALIASES),
        (r"fleet/lanes/[^/]+\.yaml", Kind.LANE),
        (r"fleet/profiles/[^/]+\.yaml", Kind.PROFILE),
        (r"fleet/pins(/[^/]+)?\.yaml", Kind.PINS),
        (r"fleet/policies/[^/]+\.yaml", Kind.POLICY),
        (r"recipes/[^/]+\.yaml", Kind.RECIPE),
    )
)
OTHER_PATHS: dict[str, Kind] = {
    "fleet/confirmations.yaml": Kind.CONFIRMATIONS,
    "fleet/holds.yaml": Kind.HOLDS,
    "fleet/observed/inventory.yaml": Kind.INVENTORY,
    "fleet/plan.yaml": Kind.PLAN,
    "fleet/status.yaml": Kind.STATUS,
}
PATHS = {kind: path for path, kind in OTHER_PATHS.items()}
"""Kind to path of the documents of which there is one."""
_DOCUMENT_SUFFIXES = (".yaml", ".yml", ".json")


def desired_kind(path: str) -> Kind | None:
    """The kind of document that a path holds, if it counts as desired."""
    return next((kind for pattern, kind in _DESIRED_PATHS if pattern.fullmatch(path)), None)


class Places:
    """Where each value of the desired state was written. Pointers are into Desired: `/aliases/cognition/models/0`."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[Parsed, str]] = {}

    def add(self, prefix: str, parsed: Parsed, pointer: str) -> None:
        """Say that what stands below `prefix` was written below `pointer` of a file."""
        self._sources[prefix] = (parsed, pointer)

    def file(self, pointer: str) -> str | None:
        """The file that holds what a pointer into Desired names; None where none wrote it."""
        while pointer and pointer not in self._sources:
            pointer = pointer.rpartition("/")[0]
        return self._sources[pointer][0].file if pointer else None

    def finding(self, code: str, pointer: str, message: str, **rest: Any) -> Finding:
        """A finding at the place of a pointer into Desired; `rest` as in Finding. Without a file if none wrote it."""
        prefix, below = pointer, ""
        while prefix and prefix not in self._sources:
            prefix, _, token = prefix.rpartition("/")
            below = f"/{token}{below}"
        if prefix not in self._sources:
            return Finding(code=code, message=message, pointer=pointer, **rest)
        parsed, start = self._sources[prefix]
        return parsed.finding(code, start + below, message, **rest)


class UnreadEntry(Protocol):
    """An entry below `fleet/` or `recipes/` whose content was not read; `mode` is git's (`120000`: a symbolic link)."""

    @property
    def path(self) -> str: ...

    @property
    def mode(self) -> str: ...

    @property
    def size(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LoadedDesired:
    """What came of loading. `desired` and `digest` are None when a finding is an error.

    `readable` is what could be read even so, for judges that want to report more at once; `broken` are the kinds of
    which a document is missing from it.
    """

    desired: Desired | None
    digest: str | None
    findings: tuple[Finding, ...]
    places: Places
    readable: Desired
    broken: frozenset[Kind]


def load_desired(files: Mapping[str, bytes], unread: Iterable[UnreadEntry] = ()) -> LoadedDesired:
    """The desired state of `files` (path in the repository to bytes). Other files may be among them; raises nothing.

    `unread` is what lies below `fleet/` and `recipes/` and was not read: an error each, for no part of the desired
    state may go missing unsaid.
    """
    gathering = _Gathering()
    gathering.findings += map(_unread, unread)
    for path in sorted(files):
        kind = desired_kind(path)
        if kind is not None:
            gathering.file(kind, path, files[path])
        elif path.startswith(("fleet/", "recipes/")) and path not in OTHER_PATHS and path.endswith(_DOCUMENT_SUFFIXES):
            gathering.findings.append(_of_file("unknownFile", path, "nothing reads this file"))
    if POOL_FILE not in files:
        gathering.findings.append(_of_file("poolMissing", POOL_FILE, "there is no pool document"))
        gathering.broken.add(Kind.POOL)
    return gathering.loaded()


def _unread(entry: UnreadEntry) -> Finding:
    match entry.mode:
        case "120000":
            return _of_file("symbolicLink", entry.path, "a symbolic link is not followed")
        case "160000":
            return _of_file("notAFile", entry.path, "a repository inside the repository is not read")
        case "000000":
            return _of_file("notAFile", entry.path, "no plain file")
        case _:
            return _of_file("fileTooLarge", entry.path, f"{entry.size} bytes are too many to read")


def _of_file(code: str, path: str, message: str) -> Finding:
    return Finding(code=code, message=message, file=path, hint=MEANINGS[code].remedy)


@dataclass
class _Gathering:
    """The sections of Desired while files are read."""

    findings: list[Finding] = field(default_factory=list)
    broken: set[Kind] = field(default_factory=set)
    places: Places = field(default_factory=Places)
    values: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: dict[str, Parsed] = field(default_factory=dict)

    def file(self, kind: Kind, path: str, data: bytes) -> None:
        document, findings = read_document(kind, data, path)
        self.findings += findings
        if document is None:
            self.broken.add(kind)
            return
        self.add(document)

    def add(self, document: Document) -> None:
        spec, name = document.spec, document.metadata.name
        match document.kind:
            case Kind.POOL:
                self.values |= {"pool": spec, "name": name}
                self.places.add("/pool", document.parsed, "/spec")
                self.places.add("/name", document.parsed, "/metadata/name")
            case Kind.ALIASES:
                self.unlisted(document)
                for alias, wish in spec.aliases.items():
                    self.entry("aliases", alias, wish, document.parsed, join_pointer("spec", "aliases", alias))
            case Kind.PINS:
                for pin, wish in spec.items():
                    self.entry("pins", pin, wish, document.parsed, join_pointer("spec", pin))
            case Kind.NODE:
                self.entry("nodes", name, spec, document.parsed, "/spec")
                if document.metadata.labels:
                    self.sections.setdefault("node_labels", {}).setdefault(name, document.metadata.labels)
            case Kind.RECIPE:
                recipe = Recipe(metadata=document.metadata, spec=spec)
                self.entry("recipes", name, recipe, document.parsed, "")
            case _:
                self.entry(_SECTIONS[document.kind], name, spec, document.parsed, "/spec")

    def entry(self, section: str, name: str, value: Any, parsed: Parsed, pointer: str) -> None:
        """Put one named value into its section; the second of a name is a finding."""
        held = self.sections.setdefault(section, {})
        prefix = join_pointer(section, name)
        if name in held:
            other = self.first[prefix].file
            place = "/metadata/name" if pointer in ("/spec", "") else pointer
            self.findings.append(parsed.finding("duplicateName", place, f"{name} is also in {other}"))
            return
        held[name] = value
        self.first[prefix] = parsed
        self.places.add(prefix, parsed, pointer)

    def unlisted(self, document: Document) -> None:
        written = document.parsed.value["spec"].get("unlisted")
        if written is None:
            return
        if self.values.setdefault("unlisted", written) != written:
            self.findings.append(
                document.parsed.finding("unlistedDiffers", "/spec/unlisted", "another file says otherwise")
            )

    def loaded(self) -> LoadedDesired:
        sections = {name: dict(sorted(held.items())) for name, held in sorted(self.sections.items())}
        values: dict[str, Any] = {"name": "", "pool": Pool(head=""), **self.values, **sections}
        readable = Desired(**values)
        findings = tuple(sorted(self.findings, key=lambda finding: finding.sort_key))
        faulty = any(finding.severity is Severity.ERROR for finding in findings)
        return LoadedDesired(
            desired=None if faulty else readable,
            digest=None if faulty else digest(readable),
            findings=findings,
            places=self.places,
            readable=readable,
            broken=frozenset(self.broken),
        )


_SECTIONS = {Kind.LANE: "lanes", Kind.PROFILE: "profiles", Kind.POLICY: "policies"}


def documents_beside(files: Mapping[str, bytes]) -> Iterator[tuple[Document | None, tuple[Finding, ...]]]:
    """Read the documents outside the desired state that are among `files`."""
    for path in sorted(OTHER_PATHS.keys() & files.keys()):
        yield read_document(OTHER_PATHS[path], files[path], path)
