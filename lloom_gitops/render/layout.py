"""Lines of a given width: wrapped text with a hanging indent, and aligned columns. Texts are cleaned before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lloom_gitops.render.clean import width_of

MIN_WIDTH = 60
"""Columns below which wrapping would only make things worse."""


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """`text` in lines of at most `width` columns; the first starts with `first`, the others with `rest` (default:
    blanks as wide as `first`). A word that is too long for a line is cut into pieces."""
    hang = " " * width_of(first) if rest is None else rest
    lines: list[str] = []
    line, empty = first, True
    for word in _pieces(text, max(width, MIN_WIDTH) - max(width_of(first), width_of(hang))):
        joined = f"{line}{word}" if empty else f"{line} {word}"
        if not empty and width_of(joined) > max(width, MIN_WIDTH):
            lines.append(line)
            joined = f"{hang}{word}"
        line, empty = joined, False
    return [*lines, line.rstrip()]


def _pieces(text: str, width: int) -> Iterable[str]:
    """The words of `text`, those wider than `width` columns in pieces."""
    for word in text.split():
        piece = ""
        for char in word:
            if width_of(piece + char) > width:
                yield piece
                piece = ""
            piece += char
        yield piece


def table(rows: Sequence[Sequence[str]], width: int, first: str = "") -> list[list[str]]:
    """Rows of cells as blocks of lines: all cells but the last are padded to their column's width, the last is wrapped.

    Where the aligned cells leave less than a third of the width to the last one, it goes onto lines of its own.
    """
    if not rows:
        return []
    widths = [max(width_of(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    blocks = []
    for row in rows:
        head = first + "".join(f"{pad(cell, size)}  " for cell, size in zip(row, widths, strict=False))
        if width_of(head) <= max(width, MIN_WIDTH) * 2 // 3:
            blocks.append(wrap(row[-1], width, head) if row[-1] else [head.rstrip()])
        else:
            indent = " " * width_of(first) + "    "
            aside = wrap("  ".join(row[:-1]), width, first)
            blocks.append([*aside, *(wrap(row[-1], width, indent) if row[-1] else [])])
    return blocks


def pad(text: str, width: int) -> str:
    """`text` filled with blanks to `width` columns."""
    return text + " " * (width - width_of(text))
