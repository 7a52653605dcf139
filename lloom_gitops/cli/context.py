"""What every command gets from the global options: `ctx.obj` of the command that runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Context:
    """Global options. `repo` is the root of the fleet repository, absolute; `verbose` counts `-v`.

    `json`: data goes to stdout as one JSON document with a `formatVersion`; `color`: stdout takes ANSI colours.
    """

    repo: Path
    json: bool = False
    color: bool = False
    verbose: int = 0


def find_repo(start: Path) -> Path:
    """The root of the git work tree around `start`, or `start` itself where there is none."""
    here = start.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
