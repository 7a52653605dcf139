"""Text that came from outside (nodes, gateways, documents), made safe to show."""

from __future__ import annotations

import re
import unicodedata

# Cf reorders or hides text (bidi marks, zero width), Cc drives the terminal; Zl and Zp break lines.
_ACTIVE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")


def visible(text: str) -> str:
    """`text` on one line, with every control or format character as a visible escape (`\\x1b`, `\\u202e`, `\\n`)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _ACTIVE_CATEGORIES else c for c in text)


def shown(text: str) -> str:
    """As `visible`, for text that may stand in a plan, comment or log: URLs are left out besides."""
    return _URL.sub("[url]", visible(text))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii") if ord(char) != 0 else "\\x00"


def width_of(text: str) -> int:
    """Columns that `text` takes in a terminal: wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_columns(c) for c in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
