"""Words of findings: short values, and the known word that a wrong one is close to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_SHORT = 60


def short(value: Any) -> str:
    """A value as one short line for a message; control characters are shown as escapes."""
    text = "nothing" if value is None else str(value)
    if isinstance(value, bool):
        text = str(value).lower()
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[: _SHORT + 1])
    return text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."


def nearest(word: Any, words: Iterable[str]) -> str | None:
    """A hint that names the known word closest to a wrong one, or None if none is close."""
    import difflib

    close = difflib.get_close_matches(str(word)[:_SHORT], sorted(words), n=1)
    return f"did you mean {close[0]}?" if close else None
