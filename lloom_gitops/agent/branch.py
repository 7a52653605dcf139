"""The branch as a turn reads it: documents at the tip, what the agent wrote before, and the plans of its history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lloom_gitops.agent.world import FleetStore
from lloom_gitops.codec import LoadedDesired, digest, load_desired, load_document, plan_id
from lloom_gitops.codec.desired import PATHS
from lloom_gitops.codec.documents import inventory_with
from lloom_gitops.control.lifecycle import CommittedPlan
from lloom_gitops.control.lifecycle_moves import Move, moves
from lloom_gitops.control.lifecycle_reverts import PlanChange, taken_back
from lloom_gitops.gitstore.errors import BadRevision
from lloom_gitops.model.desired import Confirmation, Desired
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import DocumentError, Severity
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.status import Status

_PREFIXES = ("fleet", "recipes")
_PLANS_LOOKED_BACK = 20


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """The tip of the protected branch, and what the agent wrote there (or on the results branch, at `results`)."""

    commit: str
    desired: Desired
    digest: str
    results: str
    inventory: Inventory
    status: Status | None = None
    status_digest: str = "none"
    confirmations: tuple[Confirmation, ...] = ()
    suspended: str | None = None


def results_ref(desired: Desired) -> str | None:
    """The ref that results go to where it is not the protected branch."""
    back = desired.pool.write_back
    return f"refs/heads/{back.results_branch}" if back.results == "branch" and back.results_branch else None


def read_branch(store: FleetStore, commit: str) -> Branch:
    """The documents at `commit`. Raises `DocumentError` with all findings if one that the agent needs is broken."""
    files = store.read_tree(commit, _PREFIXES).files
    loaded = load_desired(files)
    if loaded.desired is None or loaded.digest is None:
        raise _broken(loaded)
    ref = results_ref(loaded.desired)
    if ref is not None:
        store.fetch(ref)
    results = (store.tip(ref) if ref is not None else None) or commit
    written = files if results == commit else store.read_tree(results, ("fleet",)).files
    status_bytes = written.get(PATHS[Kind.STATUS])
    holds = _spec(Kind.HOLDS, files)
    return Branch(
        commit=commit,
        desired=loaded.desired,
        digest=loaded.digest,
        results=results,
        inventory=_spec(Kind.INVENTORY, written) or _spec(Kind.INVENTORY, files) or Inventory(),
        status=_spec(Kind.STATUS, written),
        status_digest="none" if status_bytes is None else digest(status_bytes.decode("utf-8", "replace")),
        confirmations=_spec(Kind.CONFIRMATIONS, files) or (),
        suspended=(holds.suspend.reason or "no reason given") if holds is not None and holds.suspend.on else None,
    )


def plan_at(store: FleetStore, commit: str) -> CommittedPlan | None:
    """The plan in fleet/plan.yaml at a commit that put it there; None if it can't be read or its id is not its own."""
    data = store.read_file(commit, PATHS[Kind.PLAN])
    plan = None if data is None or plan_fault(data) is not None else _plan(data)
    if plan is None:
        return None
    trailers = store.log(commit, limit=1)[0].trailers
    return CommittedPlan(
        commit=commit,
        id=plan_id(plan),
        plan=plan,
        reviewed_as=trailers.get("Reviewed-As"),
        trigger=trailers.get("Trigger"),
    )


def plan_fault(data: bytes) -> str | None:
    """Why the bytes of a plan file are no plan of ours; None: they are."""
    try:
        document = load_document(Kind.PLAN, data, PATHS[Kind.PLAN])
    except DocumentError as error:
        return error.message
    edited = document.metadata.id != plan_id(document.spec)
    return f"{PATHS[Kind.PLAN]} was edited: its id is not the digest of what it says" if edited else None


def _plan(data: bytes) -> Plan:
    plan: Plan = load_document(Kind.PLAN, data, PATHS[Kind.PLAN]).spec
    return plan


def committed_plan(store: FleetStore, branch: Branch) -> tuple[CommittedPlan | None, str | None]:
    """The plan in force, or what is wrong with the file: the one on the protected branch, or where results go elsewhere
    the agent's own, if that is the current one. Neither where there is no file."""
    found: list[CommittedPlan] = []
    faults: list[str] = []
    for rev in dict.fromkeys((branch.results, branch.commit)):
        data = store.read_file(rev, PATHS[Kind.PLAN])
        if data is None:
            continue
        fault = plan_fault(data)
        faults += [] if fault is None else [fault]
        plan = plan_at(store, store.history_of(rev, PATHS[Kind.PLAN])[0][0])
        found += [] if plan is None else [plan]
    current = [plan for plan in found if plan.plan.inputs.desired == branch.digest]
    fresh = [plan for plan in current if not has_result(store, branch, plan)]
    return next(iter((*fresh, *current, *found)), None), next(iter(faults), None)


def has_result(store: FleetStore, branch: Branch, plan: CommittedPlan) -> bool:
    """Whether the last apply was of this plan, and since it came to the branch (a plan may come back later)."""
    last = branch.status
    if last is None or last.plan != plan.id or last.plan_commit is None:
        return False
    return descends(store, plan.commit, last.plan_commit)


def merged_since(store: FleetStore, branch: Branch) -> tuple[CommittedPlan, ...]:
    """Plans that reached the branch since the last applied one, newest first."""
    last = branch.status.plan_commit if branch.status is not None else None
    merged = []
    for commit, _ in store.history_of(branch.commit, PATHS[Kind.PLAN])[:_PLANS_LOOKED_BACK]:
        if last is not None and descends(store, commit, last):
            continue
        plan = plan_at(store, commit)
        if plan is not None:
            merged.append(plan)
    return tuple(merged)


def descends(store: FleetStore, older: str, newer: str) -> bool:
    """Whether `newer` descends from `older`; False also where one is not in the clone."""
    try:
        return store.is_ancestor(older, newer)
    except BadRevision:
        return False


def inventory_named(store: FleetStore, branch: Branch, wanted: str) -> Inventory | None:
    """The inventory with this digest, the newest of the branch's or the results branch's history."""
    path = PATHS[Kind.INVENTORY]
    for rev in dict.fromkeys((branch.commit, branch.results)):
        found = store.find_content(rev, path, lambda data: inventory_with(data, path, wanted) is not None)
        if found is not None:
            return inventory_with(found[1], path, wanted)
    return None


def digest_at(store: FleetStore, commit: str) -> str | None:
    """The desired digest of an older commit; None where it can't be told."""
    try:
        return load_desired(store.read_tree(commit, _PREFIXES).files).digest
    except BadRevision:
        return None


def own_status(store: FleetStore, ref: str) -> Status | None:
    """What the agent last said on its own ref."""
    held = store.tip(ref)
    data = None if held is None else store.read_file(held, PATHS[Kind.STATUS])
    try:
        return None if data is None else load_document(Kind.STATUS, data, PATHS[Kind.STATUS]).spec
    except DocumentError:
        return None


def reverted_moves(store: FleetStore, branch: Branch) -> frozenset[Move]:
    """Moves of the agent's own plans that a person took back while the desired state stayed as it is."""
    paths = (PATHS[Kind.PLAN], PATHS[Kind.HOLDS])
    commits = store.log(branch.commit, paths, limit=_PLANS_LOOKED_BACK)
    if not any("Agent" in commit.trailers for commit in commits):
        return frozenset()
    plan_of, holds_of = (_contents(store, branch.commit, path) for path in paths)
    changes: list[PlanChange] = []
    plan = holds = None
    for commit in reversed(commits):
        plan, holds = plan_of.get(commit.oid, plan), holds_of.get(commit.oid, holds)
        changes.append(PlanChange(commit=commit.oid, by_agent="Agent" in commit.trailers, plan=plan, holds=holds))
    plans = (plan_at(store, commit) for commit in taken_back(changes[::-1]))
    current = (plan.plan for plan in plans if plan is not None and plan.plan.inputs.desired == branch.digest)
    return frozenset(move for plan in current for move in moves(plan))


def _contents(store: FleetStore, rev: str, path: str) -> dict[str, str | None]:
    """The blob that a file is after each commit that changed it; None where that commit removed it."""
    changed: dict[str, str | None] = dict.fromkeys(store.commits_touching(rev, (path,)))
    return {**changed, **dict(store.history_of(rev, path))}


def _broken(loaded: LoadedDesired) -> DocumentError:
    errors = sum(finding.severity is Severity.ERROR for finding in loaded.findings)
    return DocumentError(
        code="documents",
        message=f"nothing is done: the branch's documents have {errors} error{'s' if errors > 1 else ''}",
        hint="`lloom-gitops check` shows all findings",
        findings=loaded.findings,
    )


def _spec(kind: Kind, files: Mapping[str, bytes]) -> Any:
    data = files.get(PATHS[kind])
    return None if data is None else load_document(kind, data, PATHS[kind]).spec
