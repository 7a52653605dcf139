"""`plan --check`: the committed plan is authentic and current, or planning yields nothing to do."""

from __future__ import annotations

import msgspec

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.fleet import Fleet, Found, Wanted, results_branch
from lloom_gitops.cli.output import put, put_json
from lloom_gitops.codec.desired import PATHS
from lloom_gitops.codec.documents import inventory_with, plan_id
from lloom_gitops.gitstore.errors import BadRevision, NotARepository
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import DocumentError, Finding, Refused
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan

_MEND = "`lloom-gitops plan --write`, and commit fleet/plan.yaml"


def check_committed(context: Context) -> None:
    """Says which of the two holds; raises Refused (exit 5) with the field that differs and what mends it."""
    fleet = Fleet(context.repo)
    wanted = fleet.wanted()
    found, faults = _committed_plan(fleet, wanted)
    if found is not None and not faults:
        said, how = f"{found.source} is authentic and current", "authentic"
    elif _nothing_to_do(fleet, wanted):
        said, how = "planning yields nothing to do", "nothingToDo"
    else:
        raise Refused(
            code=faults[0].code,
            message=f"{PATHS[Kind.PLAN]} can't be applied: {faults[0].message}",
            hint=faults[0].hint or _MEND,
            findings=faults,
        )
    if context.json:
        put_json({"check": how, "says": said, "plan": plan_id(found.document.spec) if found else None})
    else:
        put(f"{said}.")


def _committed_plan(fleet: Fleet, wanted: Wanted) -> tuple[Found | None, tuple[Finding, ...]]:
    """The committed plan and why it can't be applied as it is."""
    path = PATHS[Kind.PLAN]
    try:
        found = fleet.document(Kind.PLAN, results_branch(wanted.desired))
    except DocumentError as error:
        return None, error.findings
    if found is None:
        return None, (Finding(code="noPlan", message="there is no committed plan", file=path, hint=_MEND),)
    faults = _judged(fleet, wanted, found)
    return found, tuple(_placed(found, fault) for fault in faults)


def _judged(fleet: Fleet, wanted: Wanted, found: Found) -> tuple[Finding, ...]:
    from lloom_gitops.control.authentic import faults_of

    plan: Plan = found.document.spec
    if found.document.metadata.id != plan_id(plan):
        message = "its id is not the digest of what it says: it was edited"
        return (_fault("editedPlan", "/metadata/id", message, plan_id(plan), found.document.metadata.id),)
    if plan.inputs.desired != wanted.digest:
        message = "it is not current: it was made from another desired state"
        return (_fault("notCurrent", "/spec/inputs/desired", message, wanted.digest, plan.inputs.desired),)
    inventory = _inventory_named(fleet, plan, results_branch(wanted.desired))
    if inventory is None:
        message = f"no {PATHS[Kind.INVENTORY]} in the history has the digest that it names"
        hint = "commit the inventory with the plan; in a clone that was cut short, `git fetch --unshallow`"
        fault = _fault("inventoryNotFound", "/spec/inputs/inventory", message, None, plan.inputs.inventory)
        return (msgspec.structs.replace(fault, hint=hint),)
    return faults_of(wanted.desired, inventory, plan)


def _inventory_named(fleet: Fleet, plan: Plan, branch: str | None) -> Inventory | None:
    """The inventory with the digest that the plan names: the one at hand, else the newest such one of the history."""
    path, wanted = PATHS[Kind.INVENTORY], plan.inputs.inventory
    here = inventory_with(fleet.files.get(path, b""), path, wanted)
    if here is not None:
        return here
    for rev in ("HEAD", *fleet.refs_of(branch)):
        try:
            found = fleet.store.find_content(rev, path, lambda data: inventory_with(data, path, wanted) is not None)
        except (BadRevision, NotARepository):
            continue
        if found is not None:
            return inventory_with(found[1], path, wanted)
    return None


def _nothing_to_do(fleet: Fleet, wanted: Wanted) -> bool:
    from lloom_gitops.cli.plan_inputs import committed
    from lloom_gitops.control.legal import legal_plan

    try:
        seen = committed(fleet, wanted.desired)
    except Refused:
        return False
    return not legal_plan(wanted.desired, seen.inventory).steps


def _fault(code: str, pointer: str, message: str, expected: str | None, found: str | None) -> Finding:
    return Finding(code=code, pointer=pointer, message=message, wanted=expected, found=found)


def _placed(found: Found, fault: Finding) -> Finding:
    """The finding with the line and column of what it points to."""
    line, column = found.document.parsed.place(fault.pointer)
    return msgspec.structs.replace(fault, file=PATHS[Kind.PLAN], line=line, column=column)
