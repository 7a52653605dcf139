"""`plan`: make the plan, show it, write it, or check the committed one. Nothing is started, stopped or rerouted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json, tell
from lloom_gitops.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from lloom_gitops.cli.fleet import Fleet, Wanted
    from lloom_gitops.cli.plan_inputs import Seen
    from lloom_gitops.model.plan import Plan
    from lloom_gitops.planner.request import PlanRequest


Pins = Annotated[list[str] | None, typer.Option(metavar="MODEL@NODE", help="What if this model were pinned there.")]
Cordons = Annotated[list[str] | None, typer.Option(metavar="NODE", help="What if this node were cordoned.")]
Profile = Annotated[str | None, typer.Option(metavar="NAME", help="What if this profile were active.")]
Installs = Annotated[bool, typer.Option("--consider-installs", help="What if recipes could be installed.")]
Given = Annotated[Path | None, typer.Option(metavar="FILE", help="What if this were the inventory.")]
Effort = Annotated[str | None, typer.Option(metavar="quick|normal|deep", help="What if it searched so hard.")]
Offline = Annotated[bool, typer.Option("--offline", help="Plan from the committed inventory, ask no gateway.")]
Write = Annotated[bool, typer.Option("--write", help="Write fleet/plan.yaml, from the committed inventory.")]
Onto = Annotated[str | None, typer.Option(metavar="REV", help="With --write: across a conflict with REV.")]
Out = Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the plan document there.")]
Check = Annotated[bool, typer.Option("--check", help="Is the committed plan authentic and current?")]
ByExit = Annotated[bool, typer.Option("--exit-code", help="End with 4 when there are steps to take.")]


def plan(
    ctx: typer.Context,
    pin: Pins = None,
    cordon: Cordons = None,
    profile: Profile = None,
    consider_installs: Installs = False,
    inventory: Given = None,
    effort: Effort = None,
    offline: Offline = False,
    write: Write = False,
    onto: Onto = None,
    out: Out = None,
    check: Check = False,
    exit_code: ByExit = False,
) -> None:
    """Make the plan and show what it changes. Nothing is started, stopped or rerouted.

    Asks the gateways, unless --offline, --write or --inventory is given. What-if options make a plan that only shows.

    \b
    Examples:
      lloom-gitops plan
      lloom-gitops plan --cordon spark-node-01 --cordon spark-node-02
      lloom-gitops plan --write
      lloom-gitops plan --write --onto origin/main
      lloom-gitops plan --check
    """
    context: Context = ctx.obj
    request = _request(pin or [], cordon or [], profile, consider_installs, effort, inventory)
    _refuse_contradictions(request, write=write, onto=onto, check=check, out=out)
    if check:
        from lloom_gitops.cli.plan_check import check_committed

        check_committed(context)
        return
    from lloom_gitops.cli.fleet import Fleet
    from lloom_gitops.cli.plan_inputs import inventory_for
    from lloom_gitops.control.legal import legal_plan

    fleet = Fleet(context.repo)
    wanted = fleet.wanted()
    seen = inventory_for(fleet, wanted.desired, inventory, offline=offline or write, onto=onto)
    _refuse_unknown_names(request, wanted, seen)
    made = legal_plan(wanted.desired, seen.inventory, request)
    if write:
        _write(fleet, seen, made)
    _show(context, fleet, wanted, seen, made, out)
    if exit_code and made.steps:
        raise typer.Exit(ExitCode.CHANGES)


def _request(
    pins: list[str],
    cordons: list[str],
    profile: str | None,
    consider_installs: bool,
    effort: str | None,
    inventory: Path | None,
) -> PlanRequest:
    from lloom_gitops.model.desired import Pin
    from lloom_gitops.planner.request import EFFORTS, PlanRequest

    for pin in pins:
        model, at, nodes = pin.rpartition("@")
        if not (at and model and all(nodes.split("+"))):
            raise UsageError(code="usage", message=f"--pin {pin}: a pin is MODEL@NODE or MODEL@NODE+NODE")
    if effort is not None and effort not in EFFORTS:
        raise UsageError(code="usage", message=f"--effort {effort}: it is one of {', '.join(EFFORTS)}")
    return PlanRequest(
        pins={pin: Pin() for pin in pins},
        cordons=tuple(cordons),
        profile=profile,
        consider_installs=consider_installs,
        effort=effort,
        inventory=inventory.name if inventory is not None else None,
    )


def _refuse_contradictions(
    request: PlanRequest, *, write: bool, onto: str | None, check: bool, out: str | None
) -> None:
    if request.what_if and (write or check):
        flag = "--write" if write else "--check"
        raise UsageError(
            code="whatIfWritten",
            message=f"a what-if plan only shows: {flag} can't go with --{request.what_if[0].replace('=', ' ')}",
            hint="change the documents (`lloom-gitops cordon`, `pin`, `profile`), then `lloom-gitops plan --write`",
        )
    if check and (write or out):
        raise UsageError(code="usage", message="--check looks at the committed plan; it writes nothing")
    if onto is not None and not write:
        raise UsageError(code="usage", message="--onto goes with --write")


def _refuse_unknown_names(request: PlanRequest, wanted: Wanted, seen: Seen) -> None:
    """A misspelt name would otherwise be a what-if plan in which nothing is different."""
    from lloom_gitops.codec.wording import nearest

    nodes = {*wanted.desired.nodes, *seen.inventory.nodes}
    pinned = [node for pin in request.pins for node in pin.rpartition("@")[2].split("+")]
    named = [("--cordon", node, nodes) for node in request.cordons]
    named += [("--pin", node, nodes) for node in pinned]
    named += [("--profile", request.profile, set(wanted.desired.profiles))] if request.profile is not None else []
    for flag, name, known in named:
        if name not in known:
            hint = nearest(name, known) or f"known: {', '.join(sorted(known)) or 'none'}"
            raise UsageError(code="unknownName", message=f"{flag} {name}: there is none of that name", hint=hint)


def _write(fleet: Fleet, seen: Seen, made: Plan) -> None:
    from lloom_gitops.cli.fleet import plan_document, replace_file
    from lloom_gitops.cli.plan_inputs import conflicted
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.model.document import Kind

    if seen.resolved is not None:
        replace_file(fleet.repo / PATHS[Kind.INVENTORY], seen.resolved)
        tell(f"took {PATHS[Kind.INVENTORY]} from {seen.source}")
    path = PATHS[Kind.PLAN]
    text = plan_document(made).encode()
    old = fleet.files.get(path)
    if old == text:
        tell(f"{path} is up to date")
    elif not made.steps and not conflicted(old):
        # A plan with nothing to do makes no commit (docs/concepts.md), so the file of the last one stays.
        tell(f"there is nothing to do: {path} is left as it is")
    else:
        replace_file(fleet.repo / path, text)
        tell(f"wrote {path}: commit it with what you changed")


def _show(context: Context, fleet: Fleet, wanted: Wanted, seen: Seen, made: Plan, out: str | None) -> None:
    """The plan on stdout, as what was asked for; where it came from and what to look at on stderr."""
    from lloom_gitops.cli.fleet import plan_document, replace_file
    from lloom_gitops.render.findings import findings_text
    from lloom_gitops.render.plan_text import plan_text

    if wanted.warnings and not context.json:
        tell(findings_text(wanted.warnings, context.error_page().paint))
    tell(f"inventory: {seen.source}")
    if out is not None and out != "-":
        replace_file(Path(out), plan_document(made).encode())
        tell(f"wrote {out}")
    if out == "-":
        put(plan_document(made))
    elif context.json:
        put_json(_payload(fleet, wanted, seen, made))
    else:
        put(plan_text(made, context.page()))
        if made.inputs.what_if:
            put("\n" + _compared(fleet, made, context))


def _payload(fleet: Fleet, wanted: Wanted, seen: Seen, made: Plan) -> dict[str, object]:
    from lloom_gitops.codec.documents import plan_id
    from lloom_gitops.codec.values import encode
    from lloom_gitops.render.plan_text import verdict_text

    said = {"id": plan_id(made), "says": verdict_text(made), "nothingToDo": not made.steps, "inventory": seen.source}
    return {**said, "findings": list(wanted.warnings), "plan": encode(made)}


def _compared(fleet: Fleet, made: Plan, context: Context) -> str:
    """What differs from the committed plan; a committed plan that can't be read is nothing to compare with."""
    from lloom_gitops.model.document import Kind
    from lloom_gitops.model.errors import DocumentError
    from lloom_gitops.render.plan_compare import compared_text

    try:
        found = fleet.document(Kind.PLAN)
    except DocumentError:
        found = None
    return compared_text(found.document.spec if found else None, made, context.page())
