"""What the agent writes to git: documents as bytes, and commits that carry the audit facts (documents.md, Commit)."""

from __future__ import annotations

from collections.abc import Mapping

from lloom_gitops.codec import digest, dump_document, plan_id
from lloom_gitops.codec.desired import PATHS
from lloom_gitops.gitstore.commits import Draft
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.model.document import Kind, Metadata
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.status import Status, StepStatus
from lloom_gitops.model.words import Outcome

_GOOD = (Outcome.DONE, Outcome.ALREADY)


def plan_draft(plan: Plan, inventory: Inventory, *, reviewed_as: str | None, trigger: str, agent: str) -> Draft:
    """The commit of a plan with the inventory that it was made from."""
    name = plan_id(plan)
    trailers = {
        "Plan-Id": name,
        "Reviewed-As": reviewed_as or "",
        "Trigger": trigger,
        "Agent": agent,
        "Inventory-Digest": plan.inputs.inventory,
    }
    diff = plan.diff
    body = [f"start {row.lane}" for row in diff.start]
    body += [f"stop {row.lane} ({row.why})" for row in diff.stop]
    body += [f"residency of {row.lane}: {row.before} to {row.after}" for row in diff.residency]
    body += [f"route {row.alias} to {', '.join(row.after) or 'nothing'}" for row in diff.routes]
    subject = f"plan: {_in_short(plan)} (plan {short(name)})"
    files = {
        PATHS[Kind.PLAN]: dump_document(Kind.PLAN, Metadata(name="plan", id=name), plan).encode(),
        PATHS[Kind.INVENTORY]: inventory_bytes(inventory),
    }
    return Draft(files, CommitMessage(subject, tuple(body), trailers))


def result_draft(status: Status, inventory: Inventory, *, trigger: str) -> Draft:
    """The one commit that ends an apply: status and inventory together."""
    assert status.plan is not None
    good = sum(step.outcome in _GOOD for step in status.steps.values())
    total = len(status.steps)
    trailers = {
        "Plan-Id": status.plan,
        "Plan-Commit": status.plan_commit or "",
        "Reviewed-As": status.reviewed_as or "",
        "Result": status.result.value,
        "Steps": _counts(status.steps),
        "Trigger": trigger,
        "Agent": status.agent.name if status.agent is not None else "",
        "Inventory-Digest": digest(inventory),
    }
    body = [_line(name, step) for name, step in status.steps.items()]
    if status.superseded_by is not None:
        body.append(f"superseded by {status.superseded_by}")
    subject = f"apply: {good} of {total} steps done (plan {short(status.plan)})"
    files = {PATHS[Kind.STATUS]: status_bytes(status), PATHS[Kind.INVENTORY]: inventory_bytes(inventory)}
    return Draft(files, CommitMessage(subject, tuple(body), trailers))


def note_draft(status: Status) -> Draft:
    """The snapshot on the agent's own ref."""
    agent = status.agent.name if status.agent is not None else ""
    return Draft({PATHS[Kind.STATUS]: status_bytes(status)}, CommitMessage("status", trailers={"Agent": agent}))


def status_bytes(status: Status) -> bytes:
    """fleet/status.yaml."""
    return dump_document(Kind.STATUS, Metadata(name="status"), status).encode()


def inventory_bytes(inventory: Inventory) -> bytes:
    """fleet/observed/inventory.yaml."""
    return dump_document(Kind.INVENTORY, Metadata(name="inventory"), inventory).encode()


def short(name: str) -> str:
    """The first eight digits of a digest or commit."""
    return name.removeprefix("sha256:")[:8]


def _in_short(plan: Plan) -> str:
    counts = {
        "start": len(plan.diff.start),
        "stop": len(plan.diff.stop),
        "residency": len(plan.diff.residency),
        "route": len(plan.diff.routes),
    }
    return ", ".join(f"{word} {count}" for word, count in counts.items() if count) or "steps by hand"


def _counts(steps: Mapping[str, StepStatus]) -> str:
    outcomes = [step.outcome for step in steps.values()]
    return ", ".join(f"{outcome} {outcomes.count(outcome)}" for outcome in Outcome if outcome in outcomes)


def _line(name: str, step: StepStatus) -> str:
    return f"{step.outcome} {name}" + (f": {step.says}" if step.says else "")
