"""`log`: plans and their results from git, as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json, tell

if TYPE_CHECKING:
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.gitstore.history import LoggedCommit
    from lloom_gitops.render.log_text import LogEntry

# `metadata` stands before `spec` in a document that we wrote; loading every plan of the history would cost seconds.
_PLAN_ID = re.compile(rb"^metadata:.*?\bid:\s*\"?(sha256:[0-9a-f]{64})", re.MULTILINE | re.DOTALL)


def log(
    ctx: typer.Context,
    plan: Annotated[str | None, typer.Option(metavar="ID", help="Only this plan, with what came of each step.")] = None,
) -> None:
    """Show who planned what, what was applied and what came of it, newest first. It reads git alone.

    \b
    Examples:
      lloom-gitops log
      lloom-gitops log --plan 4f2a91c0
    """
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.render.amounts import short_id
    from lloom_gitops.render.log_text import log_text

    context: Context = ctx.obj
    entries = list(_entries(Fleet(context.repo)))
    if plan is not None:
        wanted = plan.removeprefix("sha256:")
        entries = [entry for entry in entries if (entry.plan or "").removeprefix("sha256:").startswith(wanted)]
    if context.json:
        put_json({"log": entries})
    elif entries:
        put(log_text(entries, context.page(), steps=plan is not None or context.verbose > 0))
    else:
        tell(f"no plan {short_id(plan)} in the history" if plan else "no plan was committed yet")


def _entries(fleet: Fleet) -> Iterator[LogEntry]:
    """Commits that changed the plan or the status, of the branch at hand and of the results branch."""
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.gitstore.errors import BadRevision
    from lloom_gitops.model.document import Kind
    from lloom_gitops.render.log_text import LogEntry

    paths = (PATHS[Kind.PLAN], PATHS[Kind.STATUS])
    commits: dict[str, LoggedCommit] = {}
    plans: dict[str, str] = {}
    for rev in ("HEAD", *fleet.refs_of(fleet.results_branch)):
        try:
            commits |= {commit.oid: commit for commit in fleet.store.log(rev, paths)}
            plans |= _plan_ids(fleet, rev)
        except BadRevision:
            continue  # a branch without commits, or a results branch that was not fetched
    ordered = list(commits.values())
    if fleet.results_branch is not None:  # of one branch git's own order is better: clocks differ
        ordered.sort(key=lambda each: datetime.fromisoformat(each.committed), reverse=True)
    for commit in ordered:
        yield LogEntry(
            commit=commit.oid,
            when=commit.committed,
            who=commit.author_name,
            subject=commit.subject,
            plan=commit.trailers.get("Plan-Id") or plans.get(commit.oid),
            result=commit.trailers.get("Result"),
            body=commit.body,
            trailers=dict(commit.trailers),
        )


def _plan_ids(fleet: Fleet, rev: str) -> dict[str, str]:
    """The id of the plan file at each commit that changed it."""
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.model.document import Kind

    found = {}
    for commit, data in fleet.store.contents_of(rev, PATHS[Kind.PLAN]):
        head = _PLAN_ID.search(data[:4096])
        if head is not None:
            found[commit] = head[1].decode("ascii")
    return found
