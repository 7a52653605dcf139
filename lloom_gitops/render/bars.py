"""Memory bars: how full a domain is, in a fixed number of columns."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

BAR_WIDTH = 24
"""Columns of a bar: the same for every domain, so that bars compare at a glance."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Characters of a bar: a used and a free cell, the last cell of what is over budget, and unknown capacity."""

    used: str
    free: str
    over: str
    unknown: str


UNICODE = Glyphs(used="█", free="░", over="▶", unknown="?")
ASCII = Glyphs(used="#", free=".", over=">", unknown="?")


def bar(used: Decimal, budget: Decimal | None, glyphs: Glyphs = UNICODE, width: int = BAR_WIDTH) -> str:
    """`used` of `budget` (GiB) in `width` cells.

    A cell is never rounded into a lie: anything used shows, a full bar means that nothing is free, and what is over
    budget ends in the over mark. Unknown budget: a row of question marks.
    """
    if budget is None:
        return glyphs.unknown * width
    if used > budget:
        return glyphs.used * (width - 1) + glyphs.over
    if budget == 0:
        return glyphs.free * width
    cells = int((used * width / budget).quantize(Decimal(1), ROUND_HALF_UP))
    if used > 0:
        cells = max(cells, 1)
    if used < budget:
        cells = min(cells, width - 1)
    return glyphs.used * cells + glyphs.free * (width - cells)
