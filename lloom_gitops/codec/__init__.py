"""YAML and JSON Schema to values and back: line numbers, canonical bytes, digests. Knows no rule of the domain."""

from .desired import LoadedDesired, Places, desired_kind, documents_beside, load_desired
from .documents import Document, dump_document, load_document, plan_id, read_document
from .emitting import dump
from .parsing import Parsed, join_pointer, parse, split_pointer
from .schemas import accepts, schema, schema_path
from .values import canonical, decode, digest, encode

__all__ = [
    "Document",
    "LoadedDesired",
    "Parsed",
    "Places",
    "accepts",
    "canonical",
    "decode",
    "desired_kind",
    "digest",
    "documents_beside",
    "dump",
    "dump_document",
    "encode",
    "join_pointer",
    "load_desired",
    "load_document",
    "parse",
    "plan_id",
    "read_document",
    "schema",
    "schema_path",
    "split_pointer",
]
