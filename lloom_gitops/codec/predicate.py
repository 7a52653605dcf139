"""A JSON Schema as a plain predicate: the keywords that our schemas use, and an error for any other.

Built for speed on valid documents; it tells valid from invalid and nothing more (see schemas.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Predicate = Callable[[Any], bool]

_ANNOTATIONS = frozenset(("$schema", "$id", "$defs", "$comment", "title", "description", "default", "examples"))


def compile_schema(schema: dict[str, Any]) -> Predicate:
    """The predicate of a schema. Raises ValueError for a keyword that is not supported."""
    return _Compiler(schema).compile(schema)


class _Compiler:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.definitions: dict[str, Predicate] = {}

    def compile(self, schema: Any) -> Predicate:
        if isinstance(schema, bool):
            return lambda _: schema
        tests = []
        for keyword, argument in schema.items():
            if keyword in _ANNOTATIONS or keyword in ("additionalProperties", "patternProperties"):
                continue
            build = _KEYWORDS.get(keyword)
            if build is None:
                raise ValueError(f"schema keyword {keyword} is not supported")
            tests.append(build(self, argument, schema))
        if "properties" not in schema and ("additionalProperties" in schema or "patternProperties" in schema):
            tests.append(_properties(self, {}, schema))
        if len(tests) == 1:
            return tests[0]
        together = tuple(tests)
        return lambda value: all(test(value) for test in together)

    def reference(self, pointer: str) -> Predicate:
        """The predicate of a `#/$defs/NAME`, compiled once and only when first used: definitions may recurse."""

        def follow(value: Any) -> bool:
            if pointer not in self.definitions:
                prefix, _, name = pointer.rpartition("/")
                if prefix != "#/$defs":
                    raise ValueError(f"schema reference {pointer} is not supported")
                self.definitions[pointer] = self.compile(self.root["$defs"][name])
            return self.definitions[pointer](value)

        return follow


_TYPES: dict[str, Predicate] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, Decimal)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _type(_: _Compiler, argument: Any, __: Any) -> Predicate:
    if isinstance(argument, str):
        return _TYPES[argument]
    tests = tuple(_TYPES[name] for name in argument)
    return lambda value: any(test(value) for test in tests)


def _number(value: Any) -> bool:
    return _TYPES["number"](value)


def _enum(_: _Compiler, argument: list[Any], __: Any) -> Predicate:
    # Only words and null stand in our enums, so equality needs no care for True == 1.
    members = frozenset(argument)
    return lambda value: isinstance(value, (str, type(None))) and value in members


def pattern(text: str) -> re.Pattern[str]:
    """A schema's pattern: there `$` is the end of the text, where Python also means "before a last line feed"."""
    return re.compile(re.sub(r"\$$", r"\\Z", text))


def _pattern(_: _Compiler, argument: str, __: Any) -> Predicate:
    search = pattern(argument).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _items(compiler: _Compiler, argument: Any, _: Any) -> Predicate:
    test = compiler.compile(argument)
    return lambda value: not isinstance(value, list) or all(map(test, value))


def _unique(_: _Compiler, argument: bool, __: Any) -> Predicate:
    # Unhashable items don't stand in our unique lists: names only.
    return lambda value: not argument or not isinstance(value, list) or len(set(map(repr, value))) == len(value)


def _properties(compiler: _Compiler, argument: dict[str, Any], schema: dict[str, Any]) -> Predicate:
    known = {name: compiler.compile(inner) for name, inner in argument.items()}
    patterns = [(pattern(p).search, compiler.compile(s)) for p, s in schema.get("patternProperties", {}).items()]
    other = compiler.compile(schema.get("additionalProperties", True))

    def test(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        for name, item in value.items():
            if name in known:
                if not known[name](item):
                    return False
                continue
            matching = [inner for search, inner in patterns if search(name)]
            if not all(inner(item) for inner in matching or (other,)):
                return False
        return True

    return test


def _required(_: _Compiler, argument: list[str], __: Any) -> Predicate:
    names = frozenset(argument)
    return lambda value: not isinstance(value, dict) or names <= value.keys()


def _property_names(compiler: _Compiler, argument: Any, _: Any) -> Predicate:
    test = compiler.compile(argument)
    return lambda value: not isinstance(value, dict) or all(map(test, value))


_KEYWORDS: dict[str, Callable[[_Compiler, Any, Any], Predicate]] = {
    "$ref": lambda compiler, pointer, _: compiler.reference(pointer),
    "type": _type,
    "enum": _enum,
    "const": lambda compiler, word, schema: _enum(compiler, [word], schema),
    "pattern": _pattern,
    "items": _items,
    "uniqueItems": _unique,
    "properties": _properties,
    "required": _required,
    "propertyNames": _property_names,
    "minimum": lambda _, least, __: lambda value: not _number(value) or value >= least,
    "maximum": lambda _, most, __: lambda value: not _number(value) or value <= most,
    "exclusiveMinimum": lambda _, least, __: lambda value: not _number(value) or value > least,
    "minLength": lambda _, least, __: lambda value: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda _, most, __: lambda value: not isinstance(value, str) or len(value) <= most,
    "minItems": lambda _, least, __: lambda value: not isinstance(value, list) or len(value) >= least,
    "minProperties": lambda _, least, __: lambda value: not isinstance(value, dict) or len(value) >= least,
    "anyOf": lambda compiler, options, _: _any(tuple(map(compiler.compile, options))),
    "oneOf": lambda compiler, options, _: _one(tuple(map(compiler.compile, options))),
    "not": lambda compiler, inner, _: _none(compiler.compile(inner)),
}


def _any(tests: tuple[Predicate, ...]) -> Predicate:
    return lambda value: any(test(value) for test in tests)


def _one(tests: tuple[Predicate, ...]) -> Predicate:
    return lambda value: sum(test(value) for test in tests) == 1


def _none(test: Predicate) -> Predicate:
    return lambda value: not test(value)
