"""The three-Spark fleet of this repository as frozen values: what most tests start from."""

from __future__ import annotations

from pathlib import Path

from lloom_gitops.codec import LoadedDesired, load_desired, load_document
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.document import Kind
from lloom_gitops.model.inventory import Inventory

REPO = Path(__file__).resolve().parent.parent
INVENTORY_FILE = "fleet/observed/inventory.yaml"


def fleet_files(repo: Path = REPO) -> dict[str, bytes]:
    """The files below `fleet/` and `recipes/` of a work tree, by path in the repository."""
    found = (path for folder in ("fleet", "recipes") for path in (repo / folder).rglob("*") if path.is_file())
    return {path.relative_to(repo).as_posix(): path.read_bytes() for path in found}


def load_three_spark() -> LoadedDesired:
    """The desired state with its digest and places."""
    loaded = load_desired(fleet_files())
    assert loaded.desired is not None, "\n".join(f"{f.place}: {f.code}: {f.message}" for f in loaded.findings)
    return loaded


def three_spark() -> tuple[Desired, Inventory]:
    """The desired state and the committed inventory of the three-Spark fleet."""
    desired = load_three_spark().desired
    assert desired is not None
    document = load_document(Kind.INVENTORY, (REPO / INVENTORY_FILE).read_bytes(), INVENTORY_FILE)
    return desired, document.spec
