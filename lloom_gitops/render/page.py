"""What a text is written for."""

from __future__ import annotations

from dataclasses import dataclass, field

from lloom_gitops.render.paint import Paint

DEFAULT_WIDTH = 100
"""Columns where there is no terminal to ask: output that goes into files and comments stays the same."""


@dataclass(frozen=True, slots=True)
class Page:
    """Width in columns, colours, and whether the text must do with ASCII."""

    width: int = DEFAULT_WIDTH
    paint: Paint = field(default_factory=Paint)
    ascii_only: bool = False

    @property
    def arrow(self) -> str:
        """Stands between before and after."""
        return "->" if self.ascii_only else "→"
