"""Which inventory a plan is made from: a file that was given, the committed one, or what the gateways say now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lloom_gitops.cli.fleet import Fleet, results_branch
from lloom_gitops.cli.output import tell
from lloom_gitops.codec.desired import PATHS
from lloom_gitops.codec.documents import load_document
from lloom_gitops.gitstore.errors import BadRevision, NotARepository
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Refused, Unreachable, UsageError
from lloom_gitops.model.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Seen:
    """An inventory and where it came from, in words. `resolved` is set where the work tree's file is in a conflict
    (or absent) and another revision's was taken: the bytes that settle it."""

    inventory: Inventory
    source: str
    resolved: bytes | None = None


def inventory_for(fleet: Fleet, desired: Desired, given: Path | None, *, offline: bool, onto: str | None) -> Seen:
    """The inventory to plan from; raises Refused where there is none, UsageError for a file that isn't there."""
    if given is not None:
        return _from_file(given)
    if onto is not None:
        return _across(fleet, onto)
    if offline:
        return committed(fleet, desired)
    return _observed(fleet, desired)


def committed(fleet: Fleet, desired: Desired) -> Seen:
    """The committed inventory; of the results branch where results go there."""
    found = fleet.document(Kind.INVENTORY, results_branch(desired))
    if found is None:
        raise Refused(
            code="noInventory",
            message=f"there is no {PATHS[Kind.INVENTORY]} to plan from",
            hint="`lloom-gitops inventory --write` makes one, or name a file with --inventory",
        )
    return Seen(found.document.spec, found.source + _last_commit(fleet, PATHS[Kind.INVENTORY]))


def conflicted(data: bytes | None) -> bool:
    """Whether a file holds the marks that git leaves in a conflict."""
    return data is not None and (data.startswith(b"<<<<<<< ") or b"\n<<<<<<< " in data)


def _from_file(given: Path) -> Seen:
    try:
        data = given.read_bytes()
    except OSError as error:
        raise UsageError(code="noSuchFile", message=f"--inventory {given}: {error.strerror}") from error
    return Seen(load_document(Kind.INVENTORY, data, str(given)).spec, str(given))


def _across(fleet: Fleet, onto: str) -> Seen:
    """The inventory for a plan across a conflict with `onto`, whose changes the work tree must hold already."""
    target = fleet.store.resolve(onto)
    if not any(_descends(fleet, target, rev) for rev in ("HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD")):
        raise Refused(
            code="notOnto",
            message=f"the work tree does not hold the changes of {onto}, so a plan would leave them out",
            hint=f"`git merge {onto}` first; a conflict in {PATHS[Kind.PLAN]} is what this settles",
        )
    path = PATHS[Kind.INVENTORY]
    data = fleet.files.get(path)
    if data is not None and not conflicted(data):
        return Seen(load_document(Kind.INVENTORY, data, path).spec, path + _last_commit(fleet, path))
    theirs = fleet.store.read_file(target, path)
    if theirs is None:
        raise Refused(code="noInventory", message=f"{onto} has no {path} to plan from")
    return Seen(load_document(Kind.INVENTORY, theirs, path).spec, f"{onto}:{path}", resolved=theirs)


def _descends(fleet: Fleet, older: str, newer: str) -> bool:
    try:
        return fleet.store.is_ancestor(older, newer)
    except BadRevision:
        return False


def _last_commit(fleet: Fleet, path: str) -> str:
    """` (commit 1a2b3c4d of 2026-10-02 14:03)`, or nothing where it was never committed."""
    try:
        last = fleet.store.log("HEAD", (path,), limit=1)
    except (BadRevision, NotARepository):
        return ""
    return f" (commit {last[0].oid[:8]} of {last[0].committed[:16].replace('T', ' ')})" if last else ""


def _observed(fleet: Fleet, desired: Desired) -> Seen:
    """What the gateways say now, settled as the agent would commit it. If none answers there is no plan (exit 7)."""
    from lloom_gitops.catalog.settle import settle
    from lloom_gitops.cli.inventory import observe

    found = fleet.document(Kind.INVENTORY, results_branch(desired))
    previous = Inventory() if found is None else found.document.spec
    try:
        looked = observe(desired, previous, [])
    except Unreachable as error:
        error.hint = "`plan --offline` plans from the committed inventory and asks no gateway"
        raise
    for note in looked.notes:
        tell(note)
    return Seen(settle(previous, looked.inventory), "the gateways, asked now")
