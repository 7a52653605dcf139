"""Frozen small fleets: one canonical YAML file each, with the tuple that the oracle proved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lloom_gitops.codec import decode, dump, encode, parse
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Frozen:
    """A fleet of the corpus. `shows` names what decides in it: without that the best outcome is another one.

    `xfail` says in what the planner still misses the tuple; None where it finds it.
    """

    name: str
    shows: tuple[str, ...]
    levels: tuple[int, ...]
    desired: Desired
    inventory: Inventory
    xfail: str | None = None

    def text(self) -> str:
        """The file's canonical bytes."""
        parts = {
            "name": self.name,
            "shows": list(self.shows),
            "levels": list(self.levels),
            "desired": encode(self.desired),
            "inventory": encode(self.inventory),
        }
        return dump(parts if self.xfail is None else {**parts, "xfail": self.xfail})


def read(path: Path) -> Frozen:
    """A fleet from its file."""
    data = parse(path.read_bytes(), path.name).value
    return Frozen(
        name=data["name"],
        shows=tuple(data["shows"]),
        levels=tuple(data["levels"]),
        desired=decode(data["desired"], Desired),
        inventory=decode(data["inventory"], Inventory),
        xfail=data.get("xfail"),
    )


def all_files() -> list[Path]:
    """The files of the corpus, in order."""
    return sorted(CORPUS.glob("*.yaml"))
