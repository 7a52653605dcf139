"""The JSON Schemas of `schemas/`: one a kind, the one source of what a document may hold.

Judging every document with jsonschema would cost a tenth of a second for its import and half a second a megabyte. So
a schema is compiled once to a plain predicate; only a document that it refuses is given to jsonschema, which finds all
faults and words them. A property test holds the two to the same verdict.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from lloom_gitops.model.document import Kind

from .predicate import Predicate, compile_schema

_PACKAGE = Path(__file__).resolve().parent.parent
_INSTALLED = _PACKAGE / "_schemas"
_CHECKOUT = _PACKAGE.parent / "schemas"


def schema_path(kind: Kind) -> Path:
    """Where a kind's schema lies: in the installed package, or in the checkout."""
    folder = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    return folder / f"{kind.value.lower()}.v1.schema.json"


@cache
def schema(kind: Kind) -> dict[str, Any]:
    """A kind's schema; numbers in it are ints and Decimals."""
    loaded: dict[str, Any] = json.loads(schema_path(kind).read_bytes(), parse_float=Decimal)
    return loaded


@cache
def _predicate(kind: Kind) -> Predicate:
    return compile_schema(schema(kind))


def accepts(kind: Kind, data: Any) -> bool:
    """True if the whole document (with its envelope) is valid against its kind's schema."""
    return _predicate(kind)(data)
