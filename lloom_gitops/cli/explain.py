"""`explain`: the reasons of a plan for one name, or the page of one code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json, tell

if TYPE_CHECKING:
    from lloom_gitops.model.plan import Plan


def explain(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A lane, model, alias or node of the plan, or a code.")],
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Read this plan; default: the committed one.")
    ] = None,
) -> None:
    """Say why a lane, model, alias or node is planned as it is, and what would change that; or what a code means.

    Everything comes from the plan: nothing is planned again. A code is a word from a finding, a reason, a note or a
    step, or an exit code.

    \b
    Examples:
      lloom-gitops explain cognition
      lloom-gitops explain spark-node-03
      lloom-gitops explain latched
    """
    from lloom_gitops.render.code_pages import code_pages
    from lloom_gitops.render.explain_text import code_text, explain_text
    from lloom_gitops.render.explained import explained

    context: Context = ctx.obj
    pages = code_pages(name)
    found = _plan(context, plan, needed=not pages)
    subjects = explained(found, name) if found is not None else ()
    if not subjects and not pages:
        assert found is not None
        raise _unknown(found, name)
    if context.json:
        put_json({"name": name, "subjects": list(subjects), "codes": list(pages)})
        return
    texts = [explain_text(found, subjects, context.page())] if found is not None and subjects else []
    put("\n".join([*texts, *([code_text(pages, context.page())] if pages else [])]))


def _plan(context: Context, file: Path | None, *, needed: bool) -> Plan | None:
    """The plan to read; None where there is none and none is needed."""
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.codec.documents import load_document
    from lloom_gitops.model.document import Kind
    from lloom_gitops.model.errors import Refused, UsageError

    if file is not None:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise UsageError(code="noSuchFile", message=f"--plan {file}: {error.strerror}") from error
        read: Plan = load_document(Kind.PLAN, data, file.name).spec
        return read
    fleet = Fleet(context.repo)
    found = fleet.document(Kind.PLAN, fleet.results_branch)
    if found is not None:
        tell(f"plan: {found.source}")
        committed: Plan = found.document.spec
        return committed
    if needed:
        raise Refused(
            code="noPlan",
            message=f"there is no {PATHS[Kind.PLAN]} to explain",
            hint="`lloom-gitops plan --out FILE` makes one to read with --plan, `plan --write` one to commit",
        )
    return None


def _unknown(plan: Plan, name: str) -> Exception:
    import difflib

    from lloom_gitops.model.errors import UsageError
    from lloom_gitops.render.code_pages import known_codes
    from lloom_gitops.render.explained import names

    known = (*names(plan), *known_codes())
    near = difflib.get_close_matches(name, known, n=3)
    return UsageError(
        code="noSuchName",
        message=f"the plan has no lane, model, alias or node {name!r}, and no list has such a code",
        hint=f"did you mean {', '.join(near)}?" if near else "`lloom-gitops diff` shows the plan",
    )
