"""The commands by name, and a group that imports a command's module only when that command runs."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from lloom_gitops import __version__
from lloom_gitops.cli.context import Context, find_repo
from lloom_gitops.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its module in this package, the function or sub-application there, and its line in `--help`."""

    module: str
    attribute: str
    line: str


COMMANDS: dict[str, Entry] = {
    "init": Entry("init", "init", "Make a new fleet repository, from a gateway where one is given."),
    "demo": Entry("demo", "demo", "A pool of simulated nodes to try everything on, without a gateway."),
    "check": Entry("check", "check", "All findings of all documents."),
    "inventory": Entry("inventory", "inventory", "Observe the gateways; print or write the inventory."),
    "plan": Entry("plan", "plan", "Make the plan and show what it changes."),
    "diff": Entry("diff", "diff", "What people changed, and the committed plan."),
    "explain": Entry("explain", "explain", "Why a lane, model, alias or node is planned as it is; or a code's page."),
    "apply": Entry("apply", "apply", "Carry out the merged plan."),
    "agent": Entry("apply", "agent", "The service: observe, plan, apply and write back, turn by turn."),
    "confirm": Entry("holds", "confirm", "Say that a manual step is done."),
    "suspend": Entry("holds", "suspend", "Hold all applies."),
    "resume": Entry("holds", "resume", "Let applies go on."),
    "revert": Entry("holds", "revert", "Prepare a branch that takes a plan back."),
    "status": Entry("status", "status", "What the last apply did, what answers each alias, drift."),
    "why": Entry("status", "why", "One sentence: why things are as they are."),
    "log": Entry("log", "log", "Plans and their results, from git."),
    "pin": Entry("edit", "pin", "Pin a model to a node."),
    "unpin": Entry("edit", "unpin", "Take a pin away."),
    "cordon": Entry("edit", "cordon", "Plan nothing on a node any more."),
    "uncordon": Entry("edit", "uncordon", "Let a node serve again."),
    "drain": Entry("edit", "drain", "Empty a node."),
    "profile": Entry("edit", "profile", "Make a profile the active one, or none."),
    "recipe": Entry("recipe", "app", "LLooM recipes in and out."),
    "pool": Entry("pool", "app", "Tokens and members of the pool."),
    "node": Entry("node", "app", "A member's side: heartbeats to the head."),
    "head": Entry("head", "head", "The head's HTTP service for members."),
    "simulate": Entry("simulate", "simulate", "Run a scenario in the simulator."),
    "comment": Entry("comment", "comment", "Post the plan to a pull request."),
    "schema": Entry("schema", "schema", "The JSON Schema of a kind of document."),
    "doctor": Entry("doctor", "doctor", "What is missing on this machine."),
}
"""In the order in which `--help` lists them; an entry counts once its module is there."""


def available() -> dict[str, Entry]:
    """The commands whose module is part of this build."""
    here = Path(__file__).parent
    return {
        name: entry
        for name, entry in COMMANDS.items()
        if (here / f"{entry.module}.py").is_file() or (here / entry.module).is_dir()
    }


def application() -> Any:
    """The whole command line, ready to be called with arguments."""
    app = typer.Typer(cls=_Commands, add_completion=False, rich_markup_mode=None, no_args_is_help=True)
    app.callback()(_global_options)
    return get_command(app)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"lloom-gitops {__version__}")
        raise typer.Exit


def _global_options(
    ctx: typer.Context,
    repo: Annotated[Path | None, typer.Option(help="The fleet repository; default: the one around here.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours, also in a terminal.")] = False,
    verbose: Annotated[int, typer.Option("-v", count=True, show_default=False, help="Say more; twice: all.")] = 0,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Desired policy of a pool of LLooM gateways in git: plan it, review the plan, let the agent apply it.

    \b
    Example:
      lloom-gitops plan
      lloom-gitops --repo ~/fleet --json status
    """
    import os
    import sys

    root = find_repo(Path.cwd()) if repo is None else repo.resolve()
    if not root.is_dir():
        raise UsageError(code="noSuchFolder", message=f"--repo {repo}: there is no such folder")
    color = not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()
    ctx.obj = Context(repo=root, json=json, color=color, verbose=verbose)


class _Commands(TyperGroup):
    """Lists all commands from the table, imports one."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(available())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        entry = available().get(cmd_name)
        return _load(cmd_name, entry) if entry else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in available():
            near = difflib.get_close_matches(args[0], available(), n=1)
            raise UsageError(
                code="usage",
                message=f"there is no command {args[0]!r}",
                hint=f"did you mean `lloom-gitops {near[0]}`?" if near else "`lloom-gitops --help` lists all commands",
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in available().items()])


def _load(name: str, entry: Entry) -> Any:
    target = getattr(importlib.import_module(f"lloom_gitops.cli.{entry.module}"), entry.attribute)
    if isinstance(target, typer.Typer):
        app = target
    else:
        app = typer.Typer(add_completion=False)
        app.command(name)(target)
    _prepare(app)
    command = get_command(app)
    command.name = name
    return command


def _prepare(app: typer.Typer) -> None:
    """Plain help (stable, and without the cost of rich), and `--json` on each command of `app`."""
    app.rich_markup_mode = None
    for info in app.registered_commands:
        if info.callback is not None:
            info.callback = _with_json(info.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _prepare(group.typer_instance)


def _with_json(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` that also takes `--json` after the command's name, as if it had stood before it."""

    def turn_on(ctx: typer.Context, value: bool) -> bool:
        if value:
            ctx.obj = replace(ctx.obj, json=True)
        return value

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        given.pop("_json", None)
        return function(*args, **given)

    signature = inspect.signature(function, eval_str=True)
    if {"json", "_json"} & set(signature.parameters):
        return function
    option = typer.Option("--json", help="One JSON document on stdout.", callback=turn_on)
    added = inspect.Parameter(
        "_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
    )
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), added])  # type: ignore[attr-defined]
    call.__annotations__ = {**{p.name: p.annotation for p in signature.parameters.values()}, "_json": added.annotation}
    return call
