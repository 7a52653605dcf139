"""Whole documents: the envelope, the schema's verdict, the frozen spec; and back to canonical YAML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from lloom_gitops.model.desired import Aliases, Confirmation, Holds, Lane, Node, Pin, Profile
from lloom_gitops.model.document import API_VERSION, Kind, Metadata
from lloom_gitops.model.errors import DocumentError, Finding
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.pool import Memory, MemoryRule, MemoryRuleOverride, Pool
from lloom_gitops.model.recipe import RecipeSpec
from lloom_gitops.model.status import Status
from lloom_gitops.model.words import DomainKind

from .emitting import dump
from .parsing import MAX_BYTES, MAX_MACHINE_BYTES, Parsed, parse
from .schemas import accepts, schema_path
from .values import decode, digest, encode
from .wording import nearest, short

# What a document's `spec` decodes to. A policy's expressions are judged elsewhere; its spec stays plain data.
SPEC_TYPES: dict[Kind, Any] = {
    Kind.POOL: Pool,
    Kind.NODE: Node,
    Kind.ALIASES: Aliases,
    Kind.LANE: Lane,
    Kind.PROFILE: Profile,
    Kind.PINS: dict[str, Pin],
    Kind.POLICY: dict[str, Any],
    Kind.RECIPE: RecipeSpec,
    Kind.CONFIRMATIONS: tuple[Confirmation, ...],
    Kind.HOLDS: Holds,
    Kind.INVENTORY: Inventory,
    Kind.PLAN: Plan,
    Kind.STATUS: Status,
}
MACHINE_KINDS = frozenset((Kind.INVENTORY, Kind.PLAN, Kind.STATUS))
_ENVELOPE = ("apiVersion", "kind", "metadata", "spec")


@dataclass(frozen=True, slots=True)
class Document:
    """A document as frozen values; `spec` is an instance of SPEC_TYPES of its kind, `parsed` knows its places."""

    kind: Kind
    metadata: Metadata
    spec: Any
    parsed: Parsed


def byte_limit(kind: Kind) -> int:
    """The largest file of a kind that is read."""
    return MAX_MACHINE_BYTES if kind in MACHINE_KINDS else MAX_BYTES


def dump_document(kind: Kind, metadata: Metadata, spec: Any) -> str:
    """The canonical YAML of a document; it ends with a line feed."""
    return dump({"apiVersion": API_VERSION, "kind": kind.value, "metadata": encode(metadata), "spec": encode(spec)})


def load_document(kind: Kind, data: bytes, file: str) -> Document:
    """The document in `data`. `file` names it in findings. Raises DocumentError with all findings."""
    document, findings = read_document(kind, data, file)
    if document is None or findings:
        raise DocumentError(
            code=findings[0].code,
            message=f"{file} can't be used: {findings[0].message}",
            hint=findings[0].hint,
            findings=findings,
        )
    return document


def read_document(kind: Kind, data: bytes, file: str) -> tuple[Document | None, tuple[Finding, ...]]:
    """As load_document, but tells the findings beside what could be read (None: nothing)."""
    parsed = parse(data, file, limit=byte_limit(kind))
    findings = list(parsed.findings)
    if any(finding.code in _UNREADABLE for finding in findings):
        return None, tuple(findings)
    faults = _envelope_faults(kind, parsed) or schema_faults(kind, parsed)
    if faults:
        # Where YAML itself was at fault, the schema would complain about what stands in for the value.
        faulty_lines = {finding.line for finding in parsed.findings}
        findings += (fault for fault in faults if fault.line not in faulty_lines)
        return None, _in_order(findings)
    try:
        metadata: Metadata = decode(parsed.value["metadata"], Metadata)
        spec = _canonical_spec(kind, decode(parsed.value["spec"], SPEC_TYPES[kind]))
    except DocumentError as error:
        fault = error.findings[0]
        findings.append(parsed.finding(fault.code, fault.pointer, fault.message, hint=fault.hint))
        return None, _in_order(findings)
    return Document(kind, metadata, spec, parsed), _in_order(findings)


# After these the file has no value that is worth judging further.
_UNREADABLE = frozenset(
    (
        "fileTooLarge",
        "notUtf8",
        "controlCharacter",
        "yamlSyntax",
        "severalDocuments",
        "tooDeep",
        "recursiveAlias",
        "tooManyAliases",
    )
)


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: finding.sort_key))


def _envelope_faults(kind: Kind, parsed: Parsed) -> list[Finding]:
    """What is wrong with `apiVersion` and `kind`: with these wrong, the schema's words would mislead."""
    value = parsed.value
    if not isinstance(value, dict):
        return [parsed.finding("wrongShape", "", "not a map", hint=f"a document has {', '.join(_ENVELOPE)}")]
    faults = []
    version = value.get("apiVersion")
    if version != API_VERSION:
        faults.append(
            parsed.finding(
                "unknownVersion", "/apiVersion", "unknown apiVersion", wanted=API_VERSION, found=short(version)
            )
        )
    said = value.get("kind")
    if said != kind.value:
        known = isinstance(said, str) and said in {each.value for each in Kind}
        faults.append(
            parsed.finding(
                "wrongKind" if known else "unknownKind",
                "/kind",
                f"{short(said)} {'does not belong in this file' if known else 'is no kind'}",
                wanted=kind.value,
                found=short(said),
                hint=None if known else nearest(said, [each.value for each in Kind]),
            )
        )
    return faults


def schema_faults(kind: Kind, parsed: Parsed) -> list[Finding]:
    """Every fault that the kind's JSON Schema finds in a parsed document."""
    if not schema_path(kind).exists() or accepts(kind, parsed.value):
        return []
    from .faults import explain

    return explain(kind, parsed)


def _canonical_spec(kind: Kind, spec: Any) -> Any:
    """The spec with a pool's memory defaults left out: its overrides have no default of their own in the model."""
    if kind is not Kind.POOL:
        return spec
    given, default = spec.memory, Memory()
    rules = {domain.value: _override(given.override(domain), default.rule(domain)) for domain in DomainKind}
    basis = None if given.measured_basis == default.measured_basis else given.basis
    margin = None if given.margin == default.margin else given.margin_gb
    return msgspec.structs.replace(spec, memory=Memory(basis=basis, margin_gb=margin, **rules))


def _override(given: MemoryRuleOverride, default: MemoryRule) -> MemoryRuleOverride:
    values = {name: getattr(given, name) for name in given.__struct_fields__}
    return MemoryRuleOverride(**{k: None if v == getattr(default, k) else v for k, v in values.items()})


def plan_id(plan: Plan) -> str:
    """The id of a plan: the digest of all of its spec."""
    return digest(plan)


def inventory_with(data: bytes, file: str, wanted: str) -> Inventory | None:
    """The inventory in a file, if it is one and has the wanted digest."""
    try:
        inventory: Inventory = load_document(Kind.INVENTORY, data, file).spec
    except DocumentError:
        return None
    return inventory if digest(inventory) == wanted else None
