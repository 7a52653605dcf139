"""What every command gets from the global options: `ctx.obj` of the command that runs."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from lloom_gitops.render.page import Page


@dataclass(frozen=True, slots=True)
class Context:
    """Global options. `repo` is the root of the fleet repository, absolute; `verbose` counts `-v`.

    `json`: data goes to stdout as one JSON document with a `formatVersion`; `color`: stdout takes ANSI colours.
    """

    repo: Path
    json: bool = False
    color: bool = False
    verbose: int = 0

    def page(self) -> Page:
        """What text for stdout is written for: the terminal's width, or the fixed one where there is none."""
        return _page(sys.stdout, self.color)

    def error_page(self) -> Page:
        """The same for stderr."""
        return _page(sys.stderr, self.color and sys.stderr.isatty())


def _page(stream: TextIO, color: bool) -> Page:
    from lloom_gitops.render.page import DEFAULT_WIDTH, Page
    from lloom_gitops.render.paint import Paint

    width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if stream.isatty() else DEFAULT_WIDTH
    ascii_only = not (stream.encoding or "ascii").lower().replace("-", "").startswith("utf")
    return Page(width=width, paint=Paint(color), ascii_only=ascii_only)


def find_repo(start: Path) -> Path:
    """The root of the git work tree around `start`, or `start` itself where there is none."""
    here = start.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
