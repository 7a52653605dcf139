"""Findings from a JSON Schema: every fault of a document with its place, in words of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any

from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Finding

from .parsing import Parsed, join_pointer
from .predicate import pattern
from .schemas import schema
from .wording import nearest, short


def explain(kind: Kind, parsed: Parsed) -> list[Finding]:
    """All faults that the kind's schema finds in the document: at least one where the predicate refuses."""
    return [finding for error in validator(kind).iter_errors(parsed.value) for finding in _findings(error, parsed)]


@cache
def validator(kind: Kind) -> Any:
    """jsonschema's validator of a kind, with `$` in patterns as JSON Schema means it."""
    import jsonschema

    def check(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
        if isinstance(value, str) and not pattern(wanted).search(value):
            yield jsonschema.ValidationError("does not match the pattern")

    extended = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": check})  # type: ignore[no-untyped-call]
    return extended(schema(kind))


def _findings(error: Any, parsed: Parsed) -> Iterator[Finding]:
    if error.validator in ("anyOf", "oneOf") and error.context:
        # The branch that got deepest is the one that the writer meant.
        depth = max(len(inner.absolute_path) for inner in error.context)
        deepest = [inner for inner in error.context if len(inner.absolute_path) == depth]
        if depth > len(error.absolute_path):
            for inner in deepest:
                yield from _findings(inner, parsed)
            return
    pointer = join_pointer(*error.absolute_path)
    build = _WORDS.get(error.validator, _other)
    yield from build(error, pointer, parsed)


def _unknown_field(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    known = sorted(error.schema.get("properties", {}))
    for name in sorted(set(error.instance) - set(known)):
        yield parsed.finding(
            "unknownField",
            f"{pointer}{join_pointer(name)}",
            f"{short(name)} is no field here",
            hint=nearest(name, known) or f"fields here: {', '.join(known)}",
        )


def _missing_field(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    # One error a missing name; jsonschema gives the name in its message only.
    for name in error.validator_value:
        if name not in error.instance and error.message.startswith(repr(name)):
            yield parsed.finding("missingField", pointer, f"{name} is missing", hint=f"add {name}")


def _wrong_word(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    words = [str(word) for word in error.validator_value if word is not None]
    hint = _word_hint(error.instance, words) or nearest(error.instance, words)
    yield parsed.finding(
        "wrongWord", pointer, "not one of the words", wanted=", ".join(words), found=short(error.instance), hint=hint
    )


def _word_hint(value: Any, words: list[str]) -> str | None:
    """YAML 1.1 habits: a boolean where a word is wanted."""
    if isinstance(value, bool):
        meant = [word for word in ("off", "no", "false") if word in words] if not value else ["on"]
        return f"write the word: {meant[0]}" if meant and meant[0] in words else "a word is wanted, not true or false"
    return None


def _wrong_type(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    wanted = error.validator_value if isinstance(error.validator_value, str) else " or ".join(error.validator_value)
    value, hint = error.instance, None
    if wanted.startswith("string") and isinstance(value, (bool, int)):
        hint = "put the value in quotes"
    elif isinstance(value, str) and any(word in wanted for word in ("number", "integer")):
        hint = "write a plain number: no quotes, no unit"
    elif isinstance(value, Decimal) and "integer" in wanted:
        hint = "write a whole number"
    elif isinstance(value, str) and "boolean" in wanted:
        hint = "write true or false: on, off, yes and no are words"
    elif value is None:
        hint = "give a value, or leave the field out"
    elif "array" in wanted:
        hint = "write a list: [a, b]"
    yield parsed.finding(
        "wrongType", pointer, "not of the wanted type", wanted=wanted, found=type_name(value), hint=hint
    )


def type_name(value: Any) -> str:
    """The JSON word for a value's type."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "number")


def _out_of_range(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    symbols = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "exclusiveMaximum": "less than",
    }
    wanted = f"{symbols[error.validator]} {error.validator_value}"
    yield parsed.finding("outOfRange", pointer, "out of range", wanted=wanted, found=short(error.instance))


def _wrong_form(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    # The value is not shown: a key may stand where a name belongs.
    hint = error.schema.get("description")
    where = pointer
    if "propertyNames" in error.schema_path and isinstance(error.instance, str):
        where = pointer + join_pointer(error.instance)
    yield parsed.finding("wrongForm", where, "not of the wanted form", wanted=error.schema.get("title"), hint=hint)


def _wrong_count(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    words = {"minItems": "at least", "minLength": "at least", "minProperties": "at least"}
    least = words.get(error.validator, "at most")
    unit = "characters" if isinstance(error.instance, str) else "entries"
    yield parsed.finding(
        "wrongCount",
        pointer,
        "too few or too many",
        wanted=f"{least} {error.validator_value} {unit}",
        found=str(len(error.instance)),
    )


def _not_unique(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, item in enumerate(error.instance):
        if str(item) in seen:
            yield parsed.finding(
                "duplicateEntry", f"{pointer}/{index}", f"{short(item)} stands here twice", hint="keep one of the two"
            )
        seen.add(str(item))


def _other(error: Any, pointer: str, parsed: Parsed) -> Iterator[Finding]:
    hint = error.schema.get("description") if isinstance(error.schema, dict) else None
    yield parsed.finding("wrongShape", pointer, "not of the wanted shape", hint=hint)


_WORDS: dict[str, Callable[[Any, str, Parsed], Iterator[Finding]]] = {
    "additionalProperties": _unknown_field,
    "required": _missing_field,
    "enum": _wrong_word,
    "type": _wrong_type,
    "minimum": _out_of_range,
    "maximum": _out_of_range,
    "exclusiveMinimum": _out_of_range,
    "exclusiveMaximum": _out_of_range,
    "pattern": _wrong_form,
    "minLength": _wrong_count,
    "maxLength": _wrong_count,
    "minItems": _wrong_count,
    "maxItems": _wrong_count,
    "minProperties": _wrong_count,
    "uniqueItems": _not_unique,
}
