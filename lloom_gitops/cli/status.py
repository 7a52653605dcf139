"""`status` and `why`: how the pool stands, as the agent last said it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json, tell

if TYPE_CHECKING:
    from lloom_gitops.cli.fleet import Fleet, Found


def status(ctx: typer.Context) -> None:
    """Show what the last apply did, what answers each alias, and what drifted from the plan.

    Read from the agent's own ref, which is fetched, else from fleet/status.yaml.

    \b
    Examples:
      lloom-gitops status
      lloom-gitops --json status
    """
    from lloom_gitops.render.status_text import status_text

    context: Context = ctx.obj
    found = _latest(context)
    if context.json:
        put_json(_payload(found))
    else:
        put(status_text(found.document.spec if found else None, context.page()))


def why(ctx: typer.Context) -> None:
    """Say in one sentence how it stands and why.

    \b
    Example:
      lloom-gitops why
    """
    from lloom_gitops.render.status_text import why_text

    context: Context = ctx.obj
    found = _latest(context)
    if context.json:
        put_json(_payload(found))
    else:
        put(why_text(found.document.spec if found else None))


def _payload(found: Found | None) -> dict[str, object]:
    from lloom_gitops.codec.values import encode
    from lloom_gitops.render.status_text import why_text

    status = found.document.spec if found else None
    return {"says": why_text(status), "source": found.source if found else None, "status": encode(status)}


def _latest(context: Context) -> Found | None:
    """The newest status: of the agent's own ref on the remote, else the committed one; None where there is none."""
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.model.document import Kind

    fleet = Fleet(context.repo)
    committed = fleet.document(Kind.STATUS, fleet.results_branch)
    names = {"head"}
    if committed is not None and committed.document.spec.agent is not None:
        names.add(committed.document.spec.agent.name)
    found = _of_agents(fleet, sorted(names)) or committed
    if found is not None:
        tell(f"status: {found.source}")
    else:
        tell(f"status: no {PATHS[Kind.STATUS]}, and no agent has written one")
    return found


def _of_agents(fleet: Fleet, names: list[str]) -> Found | None:
    """What an agent says on its own ref, fetched where the remote can be reached."""
    from lloom_gitops.cli.fleet import Found
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.codec.documents import load_document
    from lloom_gitops.gitstore.errors import NotARepository
    from lloom_gitops.model.document import Kind
    from lloom_gitops.model.errors import Unreachable

    refs = [f"refs/lloom/agent/{name}" for name in names]
    try:
        fleet.store.fetch(*refs)
    except NotARepository:
        return None
    except Unreachable:
        tell(f"{fleet.store.remote} can't be reached: shown as last fetched")
    for ref in refs:
        held = fleet.store.tip(ref)
        data = None if held is None else fleet.store.read_file(held, PATHS[Kind.STATUS])
        if data is not None:
            return Found(load_document(Kind.STATUS, data, f"{ref}:{PATHS[Kind.STATUS]}"), ref)
    return None
