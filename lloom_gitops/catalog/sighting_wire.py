"""Reading values that a gateway sent: the wrong type, sign or size is unknown (None or empty), and text is cleaned."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import Any, TypeVar

from lloom_gitops.codec.wording import without_secrets

_Word = TypeVar("_Word", bound=StrEnum)

_LONGEST_TEXT = 200
_LARGEST = 1e12
_PLACE = re.compile(
    r"\w+://\S+|(?<![\w.])[~.]{0,2}/\S+|\b[A-Za-z]:\\\S+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b(?:(?:[A-Za-z][\w-]*\.)+[A-Za-z][\w-]*|localhost):\d+\b"
)


def table(value: Any) -> dict[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """`value` if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """One line of printable text of at most 200 characters, or None.

    Control and format characters (escape sequences, line breaks, direction marks) are dropped: MEM-6.
    """
    if not isinstance(value, str):
        return None
    return _printable(value)[:_LONGEST_TEXT] or None


def _printable(value: str) -> str:
    return "".join(c for c in value if not unicodedata.category(c).startswith("C")).strip()


def word(value: Any) -> str | None:
    """`text`, unless it looks like a path or an address, which have no place in an inventory (INV-4)."""
    cleaned = text(value)
    if cleaned is None or "://" in cleaned or "\\" in cleaned or cleaned.startswith(("/", "~", ".")):
        return None
    return cleaned


def prose(value: Any) -> str | None:
    """`text` of a gateway's message without secrets, paths and addresses: such text ends up in commits (INV-4)."""
    if not isinstance(value, str):
        return None
    # Before it is cut: half a key is no key to the eye that looks for one.
    hidden = _PLACE.sub("…", without_secrets(_printable(value)))
    return hidden[:_LONGEST_TEXT] or None


def last_part(value: Any) -> str | None:
    """The last part of a path, as its name; a name stays as it is."""
    cleaned = text(value)
    return None if cleaned is None else word(cleaned.replace("\\", "/").rstrip("/").rpartition("/")[2])


def amount(value: Any, places: int = 1) -> Decimal | None:
    """A finite number that is not negative, rounded half up, without trailing zeros."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if not math.isfinite(value) or not 0 <= value < _LARGEST:
        return None
    rounded = Decimal(str(value)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    return Decimal(int(rounded)) if rounded == int(rounded) else rounded.normalize()


def choice(value: Any, words: type[_Word]) -> _Word | None:
    """A word of a closed set, or None."""
    return words(value) if isinstance(value, str) and value in {word.value for word in words} else None


def whole(value: Any) -> int | None:
    """A whole number from 0, else None."""
    number = amount(value, 0)
    return None if number is None else int(number)


def by_id(rows: Any, key: str = "id") -> dict[str, Mapping[str, Any]]:
    """Objects of an array by the text of one of their fields; the first of each wins."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in map(table, items(rows)):
        name = text(row.get(key))
        if name is not None:
            found.setdefault(name, row)
    return found
