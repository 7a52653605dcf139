"""`diff`: the committed plan for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json, tell

if TYPE_CHECKING:
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.render.wishes_text import WishChange


def diff(
    ctx: typer.Context,
    rev: Annotated[str | None, typer.Argument(metavar="REV", help="A commit; default: the work tree's plan.")] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="BASE", help="Tell what people changed since BASE; default: where the branch left main."),
    ] = None,
) -> None:
    """Show what people changed, and the committed plan: starts, stops, routes, memory, what is not covered and why.

    What people changed is told since the last commit that the branch has in common with the remote's main; without
    one, only since a BASE.

    \b
    Examples:
      lloom-gitops diff
      lloom-gitops diff origin/main
      lloom-gitops diff --since HEAD~1
    """
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.codec.documents import plan_id
    from lloom_gitops.codec.values import encode
    from lloom_gitops.model.document import Kind
    from lloom_gitops.model.errors import Refused
    from lloom_gitops.render.plan_text import plan_text, verdict_text
    from lloom_gitops.render.wishes_text import wishes_text

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
    changed = _changed(fleet, since)
    tell(f"plan: {found.source}")
    if context.json:
        told = {"id": plan_id(plan), "says": verdict_text(plan), "source": found.source, "plan": encode(plan)}
        put_json({**told, "wishes": changed and {"since": changed[0], "changes": list(changed[1])}})
        return
    if changed is not None and changed[1]:
        page = context.page()
        title = page.paint.strong(f"What people changed since {changed[0][:8]}")
        put(f"{title}\n{wishes_text(changed[1], page)}\n")
    put(plan_text(plan, context.page()))


def _changed(fleet: Fleet, since: str | None) -> tuple[str, tuple[WishChange, ...]] | None:
    """The commit that wishes are compared with, and what changed; None where there is none, or either can't be read."""
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.codec.desired import load_desired
    from lloom_gitops.gitstore.errors import BadRevision, NotARepository

    try:
        base = fleet.store.resolve(since) if since is not None else _left_main(fleet)
    except (BadRevision, NotARepository):
        if since is not None:
            raise
        return None
    if base is None:
        return None
    there = Fleet(fleet.repo, base)
    before, after = load_desired(there.files, there.unread), load_desired(fleet.files, fleet.unread)
    if before.desired is None or after.desired is None:
        where = f"of {base[:8]} " if before.desired is None else ""
        tell(f"the documents {where}have errors: what people changed since {base[:8]} is left out")
        return None
    if before.digest == after.digest:
        return base, ()
    from lloom_gitops.render.wishes_text import wish_changes

    return base, wish_changes(
        before.desired, after.desired, lambda pointer: after.places.file(pointer) or before.places.file(pointer)
    )


def _left_main(fleet: Fleet) -> str | None:
    """The newest commit that the revision at hand has in common with the remote's branch, as last fetched: by a person
    or, in its own clone, by the agent."""
    store = fleet.store
    followed = store.branch_ref.replace("refs/heads", f"refs/remotes/{store.remote}", 1)
    tip = store.read_ref(followed) or store.tip()
    return None if tip is None else store.merge_base(fleet.rev or "HEAD", tip)
