"""Our canonical YAML: one text for one value, made to be read in diffs.

Keys are sorted, `apiVersion`, `name`, `id`, `kind`, `metadata`, `spec` first. Collections of scalars stand on one line
where they fit, and so does one that is alone in its list or map. The text is read alike by YAML 1.1 and 1.2 parsers.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from .scalars import write

WIDTH = 110
_FIRST_KEYS = {key: rank for rank, key in enumerate(("apiVersion", "name", "id", "kind", "metadata", "spec"))}
# YAML parsers look no further than 1,024 characters for the colon after a bare or quoted key.
MAX_KEY_CHARACTERS = 500


def dump(data: Any, *, keep_order: bool = False) -> str:
    """Canonical YAML of plain data (dict with string keys, list, tuple, str, int, Decimal, bool, None).

    `keep_order` leaves maps in their own order, for files that people go on with. Otherwise equal data gives equal
    bytes. `parse` gives the data back, and the text ends with a line feed. Raises ValueError for keys beyond
    MAX_KEY_CHARACTERS and for text that YAML can't hold (lone surrogates).
    """
    lines: list[str] = []
    data = data if keep_order else _ordered(data)
    if not _is_collection(data) or not data:
        lines.append(_inline(data))
    else:
        _block(data, "", lines)
    text = "\n".join(lines) + "\n"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("lone surrogates can't be written") from error
    return text


def key_order(key: str) -> tuple[int, str]:
    """Sort key of a map's keys."""
    return (_FIRST_KEYS.get(key, len(_FIRST_KEYS)), key)


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value, key=key_order)}
    return [_ordered(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_collection(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple))


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _is_flat(value: Any) -> bool:
    return not any(map(_is_collection, _items(value)))


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_inline(value[key])}" for key in value) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, Decimal, str)):
        return write(value)
    raise TypeError(f"{type(value).__name__} is no plain data")


def _key(key: str) -> str:
    if len(key) > MAX_KEY_CHARACTERS:
        raise ValueError(f"a key of {len(key)} characters is longer than {MAX_KEY_CHARACTERS}")
    return write(key)


def _fits(value: Any, taken: int) -> str | None:
    """The one-line form of a scalar, an empty collection, or a flat one (or the only one in its list or map) that fits
    beside `taken`."""
    if not _is_collection(value):
        return _scalar(value)
    if not (_is_flat(value) or (len(value) == 1 and all(map(_is_flat, _items(value))))):
        return None
    text = _inline(value)
    return text if not value or taken + len(text) <= WIDTH else None


def _block(value: Any, indent: str, lines: list[str], lead: str | None = None) -> None:
    """Append the lines of a non-empty collection; `lead` is the start of its first line (`- ` of a list's item)."""
    start = indent if lead is None else lead
    inner = indent + "  "
    entries: list[tuple[str, Any]]
    if isinstance(value, dict):
        entries = [(_key(key) + ":", value[key]) for key in value]
    else:
        entries = [("-", item) for item in value]
    for name, item in entries:
        text = _fits(item, len(start) + len(name) + 1)
        if text is not None:
            lines.append(f"{start}{name} {text}")
        elif name == "-":
            _block(item, inner, lines, lead=f"{start}- ")
        else:
            lines.append(start + name)
            _block(item, inner, lines)
        start = indent
