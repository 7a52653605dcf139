"""Frozen values to plain data and back, and digests: a default written out is the same as one left out."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import msgspec

from lloom_gitops.model.errors import DocumentError, Finding

from .scalars import exact

T = TypeVar("T")

_JSON = msgspec.json.Encoder(decimal_format="number", order="deterministic")
_UNSET = object()


def encode(value: Any) -> Any:
    """Plain data of a value: wire names, fields equal to their default left out, exact numbers, enums as strings.

    Maps are sorted by key. Raises TypeError for what has no plain form (a float has none: it isn't exact).
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return exact(value)
    if isinstance(value, msgspec.Struct):
        fields = ((wire, getattr(value, name), default) for name, wire, default in _fields(type(value)))
        return {wire: encode(item) for wire, item, default in fields if default is _UNSET or item != default}
    if isinstance(value, dict):
        return {str(key): encode(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [encode(item) for item in sorted(value)]
    raise TypeError(f"{type(value).__name__} has no plain form")


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """Attribute, wire name and default of each field, sorted by wire name."""
    found = []
    for field in msgspec.structs.fields(struct):
        default = _UNSET
        if field.default is not msgspec.NODEFAULT:
            default = field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        found.append((field.name, field.encode_name, default))
    return tuple(sorted(found, key=lambda entry: entry[1]))


def decode(data: Any, type_: type[T] | Any) -> T:
    """A frozen value from plain data; maps come out sorted by key. Raises DocumentError with one finding.

    Strings are no numbers here and numbers are no strings, whatever they look like.
    """
    try:
        return msgspec.convert(_sorted(data), type_)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        finding = Finding(
            code="wrongShape", message=message, pointer=_pointer(path.rstrip("`")), hint="see the kind's schema"
        )
        raise DocumentError(code="wrongShape", message=message, findings=(finding,)) from error


def _sorted(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _sorted(data[key]) for key in sorted(data)}
    if isinstance(data, list):
        return [_sorted(item) for item in data]
    return data


def _pointer(path: str) -> str:
    """`$.spec.steps[2].id` as a JSON Pointer, up to the first map (msgspec writes `[...]` for a map's key)."""
    known = path.split("[...]", maxsplit=1)[0].removeprefix("$")
    return known.replace("[", "/").replace("]", "").replace(".", "/")


def canonical(value: Any) -> bytes:
    """Canonical compact JSON of a value: sorted keys, numbers as their shortest exact decimal text, UTF-8."""
    return _JSON.encode(encode(value))


def digest(value: Any) -> str:
    """`sha256:<hex>` of the canonical JSON."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()
