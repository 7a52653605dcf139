"""Numbers as people read them: one form for each unit, everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal


def gb(amount: Decimal | int) -> str:
    """GiB with at most one decimal: `40 GB`, `27.3 GB`."""
    return f"{number(amount)} GB"


def number(amount: Decimal | int) -> str:
    """At most one decimal, none where it is zero."""
    rounded = Decimal(amount).quantize(Decimal("0.1"), ROUND_HALF_UP) + 0  # + 0: there is no minus zero
    return f"{rounded:f}".removesuffix(".0")


def duration(seconds: Decimal | int) -> str:
    """Seconds in the largest units that keep it exact to the second: `45 s`, `3 min`, `15 min 20 s`, `2 h`."""
    left = int(Decimal(seconds).quantize(Decimal(1), ROUND_HALF_UP))
    if left < 120:
        return f"{left} s"
    parts = [(left // 3600, "h"), (left % 3600 // 60, "min"), (left % 60, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 lane`, `2 lanes`, `no lane`."""
    if count == 0:
        return f"no {noun}"
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def listed(words: Iterable[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, end = list(words) or [""]
    return f"{', '.join(most)} {last} {end}" if most else end


def short_id(digest: str | None) -> str:
    """A plan's id or a commit as people quote it: the first eight digits."""
    return (digest or "").removeprefix("sha256:")[:8]
