"""The schemas, the compiled predicate, jsonschema and the frozen values agree on what a document may hold."""

from __future__ import annotations

import copy
import enum
import json
import re
import types
import typing
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.codec import accepts, decode, dump, encode, read_document, schema, schema_path, schemas
from lloom_gitops.codec.documents import SPEC_TYPES
from lloom_gitops.codec.faults import validator
from lloom_gitops.codec.predicate import compile_schema
from lloom_gitops.model.document import Kind, Metadata
from tests.codec.samples import SAMPLES

KINDS = sorted(Kind)


@pytest.mark.parametrize("kind", KINDS)
def test_is_a_valid_schema_of_2020_12_and_says_so(kind: Kind) -> None:
    loaded = json.loads(schema_path(kind).read_text())
    assert loaded["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert loaded["title"] == kind.value
    jsonschema.Draft202012Validator.check_schema(loaded)


def fields_of(node: Any) -> typing.Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for name, inner in node.get("properties", {}).items():
            yield name, inner
        for inner in node.values():
            yield from fields_of(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from fields_of(inner)


@pytest.mark.parametrize("kind", KINDS)
def test_describes_every_field(kind: Kind) -> None:
    root = schema(kind)
    silent = [
        name
        for name, inner in fields_of(root)
        if not inner.get("description") and not resolved(inner, root).get("description")
    ]
    assert silent == []


@pytest.mark.parametrize("kind", KINDS)
def test_closes_every_object_with_fields(kind: Kind) -> None:
    def objects(node: Any) -> typing.Iterator[Any]:
        if isinstance(node, dict):
            if "properties" in node and "type" in node:
                yield node
            for inner in node.values():
                yield from objects(inner)

    assert [o for o in objects(schema(kind)) if o.get("additionalProperties") is not False] == []


def resolved(node: Any, root: Any) -> Any:
    while "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def compare(type_: Any, node: Any, root: Any, at: str, faults: list[str]) -> None:
    """Walk a type and a schema together; every difference in fields, required, enums and kinds is a fault."""
    node = resolved(node, root)
    if typing.get_origin(type_) in (typing.Union, types.UnionType):
        options = [a for a in typing.get_args(type_) if a not in (type(None), msgspec.UnsetType)]
        nullable = type(None) in typing.get_args(type_)
        if "anyOf" in node:
            node = {**resolved(node["anyOf"][0], root), "nullable": True}
        says_null = node.get("nullable") or "null" in node.get("type", ()) or None in node.get("enum", ())
        if nullable != bool(says_null):
            faults.append(f"{at}: null")
        type_ = options[0]
    names = [node["type"]] if isinstance(node.get("type"), str) else [t for t in node.get("type", ()) if t != "null"]
    if type_ is Any:
        return
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        compare_fields(type_, node, root, at, faults)
    elif typing.get_origin(type_) is tuple:
        if names != ["array"]:
            faults.append(f"{at}: not an array")
        compare(typing.get_args(type_)[0], node["items"], root, f"{at}[]", faults)
    elif typing.get_origin(type_) is dict:
        if names != ["object"]:
            faults.append(f"{at}: not a map")
        if (value := typing.get_args(type_)[1]) is not Any:
            compare(value, node["additionalProperties"], root, f"{at}{{}}", faults)
    elif isinstance(type_, type) and issubclass(type_, enum.Enum):
        if {w for w in node["enum"] if w is not None} != {w.value for w in type_}:
            faults.append(f"{at}: words {node['enum']}")
    elif type_ is str and "enum" in node:
        pass
    elif names != [{str: "string", int: "integer", bool: "boolean", Decimal: "number"}[type_]]:
        faults.append(f"{at}: {type_} is no {names}")


def compare_fields(type_: Any, node: Any, root: Any, at: str, faults: list[str]) -> None:
    hints = typing.get_type_hints(type_)
    fields = {field.encode_name: field for field in msgspec.structs.fields(type_)}
    if fields.keys() != node["properties"].keys():
        faults.append(f"{at}: fields {sorted(fields.keys() ^ node['properties'].keys())}")
    required = {name for name, field in fields.items() if field.required}
    if required != set(node.get("required", ())):
        faults.append(f"{at}: required {sorted(required ^ set(node.get('required', ())))}")
    for name, field in fields.items():
        if name in node["properties"]:
            compare(hints[field.name], node["properties"][name], root, f"{at}.{name}", faults)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Kind.POLICY])
def test_agrees_with_the_frozen_values(kind: Kind) -> None:
    root = schema(kind)
    faults: list[str] = []
    compare(SPEC_TYPES[kind], root["properties"]["spec"], root, "spec", faults)
    assert faults == []


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_in_the_schema_are_those_of_the_values(kind: Kind) -> None:
    """A default that the schema names, written out, encodes to nothing."""
    data = copy.deepcopy(SAMPLES[kind])
    root = schema(kind)
    write_defaults(data, root, root)
    assert encode(decode(data["spec"], SPEC_TYPES[kind])) == encode(decode(SAMPLES[kind]["spec"], SPEC_TYPES[kind]))


def write_defaults(data: Any, node: Any, root: Any) -> None:
    node = resolved(node, root)
    if isinstance(data, dict):
        for name, inner in node.get("properties", {}).items():
            if name not in data and "default" in inner:
                data[name] = inner["default"]
            if name in data:
                write_defaults(data[name], inner, root)
        if isinstance(node.get("additionalProperties"), dict) and "properties" not in node:
            for item in data.values():
                write_defaults(item, node["additionalProperties"], root)
    elif isinstance(data, list):
        for item in data:
            write_defaults(item, node.get("items", {}), root)


@pytest.mark.parametrize("kind", KINDS)
def test_samples_use_every_field(kind: Kind) -> None:
    """So that the mutations below reach every rule of the schema."""
    assert accepts(kind, SAMPLES[kind]), list(validator(kind).iter_errors(SAMPLES[kind]))
    used = set(re.findall(r"'(\w+)': ", repr(SAMPLES[kind])))
    assert {name for name, _ in fields_of(schema(kind))} - used == set()


ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 10**12, Decimal("0.5"), Decimal("-0.5"), Decimal("1.5")),
    *("", "x", "a b", "name\n", "a\x07", "12", "always", "m@n", "m@n+n2", "sha256:00", "/x", [], ["x"], ["x", "x"], {}),
    *({"x": 1}, [[]], [None], {"x y": {}}),
]


def paths(data: Any, at: tuple[str | int, ...] = ()) -> typing.Iterator[tuple[str | int, ...]]:
    yield at
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in entries:
        yield from paths(inner, (*at, key))


@st.composite
def mutated(draw: st.DrawFn, kind: Kind) -> Any:
    """A sample with one or two values replaced, dropped, added or doubled."""
    data = copy.deepcopy(SAMPLES[kind])
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from([path for path in paths(data) if path] or [()]))
        if not path:
            return draw(st.sampled_from(ODD_VALUES))
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        how = draw(st.sampled_from(["replace", "drop", "add", "double"]))
        if how == "replace":
            holder[path[-1]] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
        elif how == "drop":
            del holder[path[-1]]
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[path[-1]]))
        else:
            holder[draw(st.sampled_from(["other", "a b", "n\n", "", "y" * 300]))] = holder[path[-1]]
    return data


@pytest.mark.parametrize("kind", KINDS)
def test_predicate_and_jsonschema_agree_and_what_is_valid_decodes(kind: Kind) -> None:
    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(mutated(kind))
    def agree(data: Any) -> None:
        valid = validator(kind).is_valid(data)
        assert accepts(kind, data) == valid
        if valid:
            decode(data["metadata"], Metadata)
            decode(data["spec"], SPEC_TYPES[kind])
        document, findings = read_document(kind, dump(data).encode(), "x.yaml")
        assert (document is not None, findings == ()) == (valid, valid)

    agree()


def test_an_unsupported_keyword_is_refused_rather_than_passed_over() -> None:
    with pytest.raises(ValueError, match="contains"):
        compile_schema({"type": "array", "contains": {"type": "string"}})


def test_a_pattern_ends_at_the_end_of_the_text() -> None:
    data = copy.deepcopy(SAMPLES[Kind.NODE])
    data["metadata"]["name"] = "spark\n"
    assert not accepts(Kind.NODE, data)
    assert not validator(Kind.NODE).is_valid(data)


def test_an_installed_package_brings_its_own_schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert schema_path(Kind.POOL).parent.name == "schemas"
    monkeypatch.setattr(schemas, "_INSTALLED", tmp_path)
    assert schema_path(Kind.POOL) == tmp_path / "pool.v1.schema.json"
