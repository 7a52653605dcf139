"""Documents as frozen values and back; what is wrong with one is said all at once, with places and remedies."""

from __future__ import annotations

import hashlib
import textwrap
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from lloom_gitops.codec import decode, digest, dump_document, encode, load_document, plan_id, read_document
from lloom_gitops.codec.documents import SPEC_TYPES
from lloom_gitops.model.desired import Alias, Needs
from lloom_gitops.model.document import Kind, Metadata
from lloom_gitops.model.errors import DocumentError
from lloom_gitops.model.inventory import MemoryDomain
from lloom_gitops.model.plan import Plan, Read
from lloom_gitops.model.pool import Pool
from lloom_gitops.model.words import DomainKind, Residency
from tests.codec.samples import FOLDER, SAMPLES


@pytest.mark.parametrize("kind", sorted(Kind))
def test_comes_back_from_its_canonical_text(kind: Kind) -> None:
    document = load_document(kind, (FOLDER / f"{kind.value.lower()}.yaml").read_bytes(), "x.yaml")
    text = dump_document(kind, document.metadata, document.spec)
    again = load_document(kind, text.encode(), "x.yaml")
    assert (again.metadata, again.spec) == (document.metadata, document.spec)
    assert dump_document(kind, again.metadata, again.spec) == text
    assert digest(again.spec) == digest(document.spec)


def test_encode_leaves_defaults_out_and_names_fields_as_on_the_wire() -> None:
    alias = Alias(models=("a",), needs=Needs(context_window=5), residency=Residency.ALWAYS, priority=100)
    assert encode(alias) == {"models": ["a"], "needs": {"contextWindow": 5}, "residency": "always"}


@pytest.mark.parametrize(
    ("number", "plain"), [("38.0", 38), ("0", 0), ("31.20", Decimal("31.2")), ("1E+3", 1000), ("-0.0", 0)]
)
def test_one_form_for_equal_numbers(number: str, plain: Any) -> None:
    domain = MemoryDomain(id="u", kind=DomainKind.UNIFIED, capacity_gb=Decimal(number))
    found = encode(domain)["capacityGb"]
    assert (found, type(found)) == (plain, type(plain))
    assert digest(domain) == digest(msgspec.structs.replace(domain, capacity_gb=Decimal(plain)))


def test_null_that_means_something_is_kept() -> None:
    assert encode(Read(at="/x", equals=None)) == {"at": "/x", "equals": None}
    assert encode(Read(at="/x", at_least=Decimal(4))) == {"at": "/x", "atLeast": 4}


def test_a_float_has_no_exact_form() -> None:
    with pytest.raises(TypeError, match="float"):
        encode({"a": 0.1})


def test_maps_come_out_sorted_whatever_the_order_of_the_text() -> None:
    pins = decode({"b@n": {}, "a@n": {}}, SPEC_TYPES[Kind.PINS])
    assert list(pins) == ["a@n", "b@n"]


def test_decode_says_where_it_failed() -> None:
    with pytest.raises(DocumentError) as caught:
        decode({"head": 5}, Pool)
    assert caught.value.findings[0].pointer == "/head"


def test_plan_id_covers_all_of_the_spec() -> None:
    plan = load_document(Kind.PLAN, (FOLDER / "plan.yaml").read_bytes(), "plan.yaml").spec
    assert plan_id(plan) == digest(plan)
    encoded = encode(plan)
    for name in encoded:
        if name not in ("inputs", "verdict"):
            assert plan_id(decode({k: v for k, v in encoded.items() if k != name}, Plan)) != plan_id(plan), name


def test_digest_is_stable_over_releases() -> None:
    """The digest stands in commits; a change of the canonical form would unsettle every merged plan."""
    text = b'{"a":null,"b":[1,2.5]}'
    assert digest({"b": [1, Decimal("2.50")], "a": None}) == "sha256:" + hashlib.sha256(text).hexdigest()


HEAD = "apiVersion: lloom-gitops/v1\nkind: {kind}\nmetadata: {{name: x}}\nspec:\n"

FAULTS = {
    # id: (kind, body below spec, code, line, column, part of the hint)
    "unknown field": (Kind.POOL, "head: n\nmaxStop: 1", "unknownField", 6, 3, "fields here"),
    "misspelt field": (Kind.POOL, "head: n\naply: {}", "unknownField", 6, 3, "did you mean apply?"),
    "missing field": (Kind.POOL, "activeProfile: p", "missingField", 4, 1, "add head"),
    "negative memory": (Kind.NODE, "assumeMemoryGb: -5", "outOfRange", 5, 3, None),
    "guard ceiling over one": (Kind.NODE, "memory: {unified: {guardCeiling: 90}}", "outOfRange", 5, 22, None),
    "unknown word": (Kind.NODE, "state: cordoned", "wrongWord", 5, 3, "did you mean cordon?"),
    "false for off": (Kind.POOL, "head: n\ncontroller: {mode: false}", "wrongWord", 6, 16, "write the word: off"),
    "word for a number": (Kind.NODE, 'drainSeconds: "30"', "wrongType", 5, 3, "plain number"),
    "number for a word": (Kind.NODE, "reason: 5", "wrongType", 5, 3, "quotes"),
    "word for a boolean": (Kind.HOLDS, "suspend: {on: off}", "wrongType", 5, 13, "true or false"),
    "fraction": (Kind.NODE, "drainSeconds: 1.5", "wrongType", 5, 3, "whole number"),
    "name with a space": (Kind.POOL, 'head: "spark 1"', "wrongForm", 5, 3, "Letters"),
    "name with a line feed": (Kind.POOL, 'head: "spark\\n"', "wrongForm", 5, 3, "Letters"),
    "name with a control character": (Kind.POOL, 'head: "spark\\u0007"', "wrongForm", 5, 3, "Letters"),
    "pin without a node": (Kind.PINS, "model-a: {}", "wrongForm", 5, 3, "MODEL@NODE"),
    "pin of an odd day": (Kind.PINS, "m@n: {expires: soon}", "wrongForm", 5, 9, None),
    "model twice": (Kind.ALIASES, "aliases: {a: {models: [m, n, m]}}", "duplicateEntry", 5, 32, "keep one"),
    "empty list": (Kind.PROFILE, "routes: {a: []}", "wrongCount", 5, 12, None),
    "key in place of a name": (Kind.NODE, "apiKeyEnv: sk-abcdef123456", "wrongForm", 5, 3, "never the key"),
    "list for a map": (Kind.PINS, "- m@n", "wrongType", 4, 1, None),
    "four fields of cron": (
        Kind.POOL,
        "head: n\napply: {windows: [{kind: deny, cron: 0 8 * *, durationMinutes: 5}]}",
        "wrongForm",
        6,
        34,
        "minute",
    ),
}


@pytest.mark.parametrize(("kind", "body", "code", "line", "column", "hint"), FAULTS.values(), ids=FAULTS.keys())
def test_schema_faults_have_place_and_remedy(
    kind: Kind, body: str, code: str, line: int, column: int, hint: str | None
) -> None:
    text = HEAD.format(kind=kind.value) + textwrap.indent(body, "  ") + "\n"
    document, findings = read_document(kind, text.encode(), "fleet/x.yaml")
    assert document is None
    assert [(finding.code, finding.line, finding.column) for finding in findings] == [(code, line, column)]
    assert hint is None or hint in f"{findings[0].wanted}; {findings[0].hint}"


def test_all_faults_of_a_document_at_once() -> None:
    text = HEAD.format(kind="Node") + "  state: gone\n  drainSeconds: -1\n  drainSeconds: 5\n  links: [{peer: n}]\n"
    with pytest.raises(DocumentError) as caught:
        load_document(Kind.NODE, text.encode(), "fleet/nodes/x.yaml")
    assert [(finding.line, finding.code) for finding in caught.value.findings] == [
        (5, "wrongWord"),
        (6, "outOfRange"),
        (7, "duplicateKey"),
        (8, "missingField"),
    ]
    assert caught.value.exit_code == 3


def test_findings_show_no_secret_wherever_it_stands() -> None:
    secret = "sk-abcdefgh12345678"
    body = f"  state: {secret}\n  {secret}: 1\n  reason: [{secret}]\n"
    body += f"  links: [{{peer: {secret}/}}]\n  member: {secret}\n"
    _, findings = read_document(Kind.NODE, (HEAD.format(kind="Node") + body).encode(), "x.yaml")
    assert len(findings) == 6
    assert secret not in repr(findings)


ENVELOPES = {
    "not a map": ("[1]", ["wrongShape"]),
    "empty": ("", ["wrongShape"]),
    "unknown kind": ("apiVersion: lloom-gitops/v1\nkind: Nod\nmetadata: {name: x}\nspec: {}", ["unknownKind"]),
    "another kind": ("apiVersion: lloom-gitops/v1\nkind: Pool\nmetadata: {name: x}\nspec: {}", ["wrongKind"]),
    "no kind": ("apiVersion: lloom-gitops/v1\nmetadata: {name: x}\nspec: {}", ["unknownKind"]),
    "another version": ("apiVersion: v2\nkind: Node\nmetadata: {name: x}\nspec: {}", ["unknownVersion"]),
    "both": ("apiVersion: 1\nkind: [x]\nmetadata: {name: x}\nspec: {}", ["unknownVersion", "unknownKind"]),
    "no name": ("apiVersion: lloom-gitops/v1\nkind: Node\nmetadata: {}\nspec: {}", ["missingField"]),
    "no spec": ("apiVersion: lloom-gitops/v1\nkind: Node\nmetadata: {name: x}", ["missingField"]),
}


@pytest.mark.parametrize(("text", "codes"), ENVELOPES.values(), ids=ENVELOPES.keys())
def test_envelope(text: str, codes: list[str]) -> None:
    _, findings = read_document(Kind.NODE, text.encode(), "x.yaml")
    assert [finding.code for finding in findings] == codes


def test_metadata_of_samples_decodes() -> None:
    assert decode(SAMPLES[Kind.PLAN]["metadata"], Metadata).id == SAMPLES[Kind.PLAN]["metadata"]["id"]
