"""`diff`: the committed plan for a person."""

from __future__ import annotations

from typing import Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json, tell


def diff(
    ctx: typer.Context,
    rev: Annotated[str | None, typer.Argument(metavar="REV", help="A commit; default: the work tree's plan.")] = None,
) -> None:
    """Show the committed plan: starts, stops, routes and memory before and after, what is not covered and why.

    \b
    Examples:
      lloom-gitops diff
      lloom-gitops diff origin/main
    """
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.codec.documents import plan_id
    from lloom_gitops.codec.values import encode
    from lloom_gitops.model.document import Kind
    from lloom_gitops.model.errors import Refused
    from lloom_gitops.render.plan_text import plan_text, verdict_text

    context: Context = ctx.obj
    fleet = Fleet(context.repo, rev)
    found = fleet.document(Kind.PLAN, fleet.results_branch)
    if found is None:
        raise Refused(
            code="noPlan",
            message=f"there is no {PATHS[Kind.PLAN]}{f' in {rev}' if rev else ''}",
            hint="`lloom-gitops plan` shows what would be planned, `plan --write` writes it",
        )
    plan = found.document.spec
    tell(f"plan: {found.source}")
    if context.json:
        put_json({"id": plan_id(plan), "says": verdict_text(plan), "source": found.source, "plan": encode(plan)})
    else:
        put(plan_text(plan, context.page()))
