"""`apply` and `agent`: carry out what was merged, once now or as a service, and write the results back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json, tell
from lloom_gitops.model.errors import ExitCode, Refused

if TYPE_CHECKING:
    from lloom_gitops.agent.settings import AgentSettings
    from lloom_gitops.agent.turn_report import TurnReport
    from lloom_gitops.agent.world import World
    from lloom_gitops.cli.apply_progress import PlainProgress

GatewayConfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The head gateway's config file, where routes are written.")
]
StateDir = Annotated[Path | None, typer.Option(metavar="DIR", help="The agent's own folder, outside the repository.")]
Remote = Annotated[str | None, typer.Option(metavar="NAME", help="The remote that merged plans come from.")]
Branch = Annotated[str | None, typer.Option(metavar="NAME", help="The protected branch.")]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="The agent's name in status, commits and lease.")]


def apply(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    gateway_config: GatewayConfig = None,
    state_dir: StateDir = None,
    remote: Remote = None,
    branch: Branch = None,
    name: Name = None,
) -> None:
    """Carry out the merged plan, now and once, and push its result as one commit.

    \b
    Examples:
      lloom-gitops apply --dry-run
      lloom-gitops apply --gateway-config /etc/lloom/gateway.json
    """
    from lloom_gitops.agent.turn import look, once
    from lloom_gitops.cli.agent_world import Signals, agent_world

    context: Context = ctx.obj
    settings = _settings(context, gateway_config, state_dir, remote, branch, name)
    watcher = _watcher(context)
    with watcher, agent_world(context.repo, settings, stop=Signals().asked, watchers=[watcher]) as (world, lease):
        if dry_run:
            report = look(world, lease)
        else:
            _refuse_unmerged(world, settings)
            report = once(world, lease, by_person=True)
            _follow(world)
    _finish(context, report, dry_run=dry_run)


def agent(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="One turn, then end.")] = False,
    gateway_config: GatewayConfig = None,
    state_dir: StateDir = None,
    remote: Remote = None,
    branch: Branch = None,
    name: Name = None,
) -> None:
    """Observe, plan, apply what is merged, and write the results back, turn by turn.

    Ends at the next safe point on SIGTERM. Settings can also stand in LLOOM_GITOPS_* variables or in
    ~/.config/lloom-gitops/agent.toml.

    \b
    Examples:
      lloom-gitops agent --once
      lloom-gitops agent --gateway-config /etc/lloom/gateway.json
    """
    from lloom_gitops.agent import turn
    from lloom_gitops.agent.service import serve
    from lloom_gitops.cli.agent_world import Signals, agent_world

    context: Context = ctx.obj
    settings = _settings(context, gateway_config, state_dir, remote, branch, name)
    watcher = _watcher(context)
    with watcher, agent_world(context.repo, settings, stop=Signals().asked, watchers=[watcher]) as (world, lease):
        if not once:
            serve(world, lease, _Sayer(context, world))
            return
        report = turn.once(world, lease)
        _follow(world)
    _finish(context, report, dry_run=False)


def _settings(
    context: Context,
    gateway_config: Path | None,
    state_dir: Path | None,
    remote: str | None,
    branch: str | None,
    name: str | None,
) -> AgentSettings:
    from lloom_gitops.cli.agent_world import settings_for

    return settings_for(
        context.repo,
        gateway_config=None if gateway_config is None else str(gateway_config),
        state_dir=None if state_dir is None else str(state_dir),
        remote=remote,
        branch=branch,
        name=name,
    )


def _watcher(context: Context) -> PlainProgress:
    from lloom_gitops.cli.apply_progress import progress

    return progress(live=context.color)


def _refuse_unmerged(world: World, settings: AgentSettings) -> None:
    """What is checked out must be on the protected branch: a person means the plan that they look at."""
    from lloom_gitops.gitstore.store import GitStore

    store = world.store
    assert isinstance(store, GitStore)
    head, tip = store.head(), store.fetch()
    if head is not None and tip is not None and not store.is_ancestor(head, tip):
        raise Refused(
            code="notMerged",
            message=f"what is checked out is not on {settings.remote}/{settings.branch}: only merged plans are applied",
            hint=f"merge it, or `git switch {settings.branch} && git pull`",
        )


def _follow(world: World) -> None:
    """Move a clean work tree to the result; one with edits stays as it is."""
    tip = world.store.tip()
    try:
        if tip is not None:
            world.store.fast_forward_worktree(tip)
    except Refused as error:
        tell(f"the work tree was not moved to the result: {error.message}")


class _Sayer:
    """Shows what the service's turns come to; a turn that says what the last one said is not repeated."""

    def __init__(self, context: Context, world: World) -> None:
        self._context = context
        self._world = world
        self._last = ""

    def __call__(self, report: TurnReport) -> None:
        if report.says != self._last or report.commit is not None:
            _show(self._context, report)
        self._last = report.says
        _follow(self._world)


def _finish(context: Context, report: TurnReport, *, dry_run: bool) -> None:
    _show(context, report)
    if not dry_run and report.exit_code is not ExitCode.OK:
        raise typer.Exit(int(report.exit_code))


def _show(context: Context, report: TurnReport) -> None:
    for note in report.notes:
        tell(note)
    if context.json:
        from lloom_gitops.codec.values import encode

        put_json({"turn": encode(report)})
        return
    put(report.says)
    for name, step in report.steps.items():
        put(f"  {step.outcome:<8} {name}" + (f": {step.says}" if step.says else ""))
    for word, value in (("plan commit", report.plan_commit), ("result commit", report.commit)):
        if value is not None:
            put(f"{word}: {value[:12]}")
    if report.hint is not None:
        tell(f"hint: {report.hint}")
