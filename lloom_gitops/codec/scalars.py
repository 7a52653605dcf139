"""YAML 1.2 core schema for plain scalars: what a bare word means, and which strings are safe to write bare.

YAML 1.1 reads `on`, `no`, `22:22:22` and `012` as something else than people mean; the core schema of YAML 1.2
(section 10.3.2) has none of these. What we write is read alike by both.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

Scalar = None | bool | int | Decimal | str

# Longer figures are no memory, time or count; refusing them early keeps `1e999999999` from becoming a huge integer.
MAX_NUMBER_CHARACTERS = 40
MAX_EXPONENT = 30

_WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_FIRST_OF_SPECIAL = frozenset("0123456789+-.~nNtTfF")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE]([-+]?[0-9]+))?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

# Read as a boolean or null by YAML 1.1 (in some letter case), or by us.
_WORDS_OF_ANY_VERSION = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_BARE = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9_./@+() -]*[A-Za-z0-9_./@+)-])?")
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class NumberRefused(ValueError):
    """A number that is not finite, or longer than any figure of ours."""


def resolve(text: str) -> Scalar:
    """The value of a plain scalar. Whole numbers are ints (also `38.0`), others exact Decimals.

    Raises NumberRefused for infinities, NaN and numbers beyond the limits.
    """
    if text and text[0] not in _FIRST_OF_SPECIAL:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise NumberRefused(f"{text} is not a finite number")
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return int(_short(text) if base == 10 else _short(text)[2:], base)
    match = _FLOAT.fullmatch(text)
    if match is None:
        return text
    if match[1] is not None and (len(match[1]) > 4 or abs(int(match[1])) > MAX_EXPONENT):
        raise NumberRefused(f"{text[:MAX_NUMBER_CHARACTERS]} has too large an exponent")
    return exact(Decimal(_short(text)))


def exact(number: Decimal) -> int | Decimal:
    """One form for equal numbers: an int where it is whole, else a Decimal without trailing zeros."""
    whole = number.to_integral_value()
    return int(whole) if whole == number else number.normalize()


def _short(text: str) -> str:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise NumberRefused(f"a number of {len(text)} characters is longer than {MAX_NUMBER_CHARACTERS}")
    return text


def write(value: Scalar) -> str:
    """The text of a scalar, the same in block and flow context, bare only where every YAML version reads a string."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return format(exact(value), "f") if value != value.to_integral_value() else str(int(value))
    if _BARE.fullmatch(value) and value.lower() not in _WORDS_OF_ANY_VERSION:
        return value
    return _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
