"""`demo`: the whole line on a simulated pool, from a change of YAML to its result in `git log`. Nothing is faked but
the gateways, and those answer over HTTP as processes of their own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put_json, tell

if TYPE_CHECKING:
    from lloom_gitops.cli.demo_stage import Shell
    from lloom_gitops.model.status import Status
    from lloom_gitops.sim.hand_run import HandRunServer
    from lloom_gitops.sim.pool import SimPool

Keep = Annotated[bool, typer.Option("--keep", help="Leave the folder with its repositories to look at.")]
Speed = Annotated[
    float, typer.Option(metavar="N", min=1, max=10_000, help="How many times faster than real a lane loads.")
]

_ALIAS = "cognition"


def demo(ctx: typer.Context, keep: Keep = False, speed: Speed = 60.0) -> None:
    """Show the whole line on a simulated pool: plan, review, merge, apply, and what git tells of it.

    Starts three Sparks and a MacBook as gateways on loopback, with a bare remote and two clones of it. Everything lies
    in one temporary folder and goes with it; no gateway, network or git configuration of yours is used.

    \b
    Examples:
      lloom-gitops demo
      lloom-gitops demo --keep --speed 600
    """
    from lloom_gitops.cli.demo_stage import Interrupts, temporary_folder
    from lloom_gitops.gitstore.command import Git

    context: Context = ctx.obj
    interrupts = Interrupts()
    with interrupts.caught():
        try:
            with temporary_folder(keep=keep) as folder:
                Git(folder, None).run("version")
                with _stage(context, folder, speed) as stage, interrupts.armed():
                    _play(stage)
                    summary = stage.summary()
        except KeyboardInterrupt:
            tell(f"\nInterrupted. {_farewell(folder, keep)}")
            raise
    stage.shell.say(f"\n{_farewell(folder, keep)}")
    if context.json:
        put_json({"demo": {**summary, "folder": str(folder), "kept": keep, "speed": speed}})


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn of the agent came to: its result commit (None: no commit) and the status then."""

    commit: str | None
    status: Status

    @property
    def steps(self) -> dict[str, str]:
        return {name: step.outcome.value for name, step in self.status.steps.items()}


@dataclass(frozen=True, slots=True)
class _Stage:
    """`remote` is bare, `desk` a person's clone, `home` the agent's."""

    folder: Path
    shell: Shell
    pool: SimPool
    pair: HandRunServer
    turns: list[Turn] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    @property
    def remote(self) -> Path:
        return self.folder / "remote.git"

    @property
    def desk(self) -> Path:
        return self.folder / "fleet"

    @property
    def home(self) -> Path:
        return self.folder / "agent"

    def tip(self) -> str:
        """The commit of the remote's branch."""
        from lloom_gitops.gitstore.command import Git

        return Git(self.remote, self.remote).run("rev-parse", "main").line

    def summary(self) -> dict[str, Any]:
        from lloom_gitops.gitstore.command import Git

        log = Git(self.remote, self.remote).run("log", "--format=%H %s", "main").line.splitlines()
        last = self.turns[-1].status
        return {
            "nodes": sorted(self.pool.urls),
            "plan": last.plan,
            "answers": {"alias": _ALIAS, "before": self.answers[0], "after": self.answers[-1]},
            "turns": [
                {"result": turn.status.result.value, "commit": turn.commit, "steps": turn.steps} for turn in self.turns
            ],
            "commits": [dict(zip(("commit", "subject"), line.split(" ", 1), strict=True)) for line in log],
        }


@contextmanager
def _stage(context: Context, folder: Path, speed: float) -> Iterator[_Stage]:
    """Gateways, the pair's server and a shell; all ended when the block ends."""
    from dataclasses import replace

    from lloom_gitops.cli.demo_stage import Shell, environment, failed
    from lloom_gitops.sim.demo_fleet import KEY_ENV
    from lloom_gitops.sim.hand_run import HandRunServer
    from lloom_gitops.sim.pool import PoolError, start_pool
    from lloom_gitops.sim.three_spark import HEAD, three_spark_spec

    spec = replace(three_spark_spec(time_scale=speed), key=secrets.token_hex(16))
    local = {
        KEY_ENV: spec.key,
        "LLOOM_GITOPS_STATE_DIR": str(folder / "state"),
        "LLOOM_GITOPS_GATEWAY_CONFIG": str(folder / "gateways" / f"{HEAD}.json"),
    }
    shell = Shell(environment(folder, local), json=context.json, color=context.color)
    shell.say(f"Everything is in {folder}.\n")
    shell.say(f"1. Three Sparks and a MacBook, simulated: four gateways on loopback, {speed:g} times as fast as real.")
    try:
        with start_pool(spec, folder / "gateways") as pool, HandRunServer() as pair:
            yield _Stage(folder, shell, pool, pair)
    except PoolError as error:
        raise failed(str(error)) from error


def _play(stage: _Stage) -> None:
    _set_up(stage)
    _change(stage)
    _merge(stage)
    _apply(stage)
    _look_back(stage)


def _set_up(stage: _Stage) -> None:
    from lloom_gitops.sim.demo_fleet import lay_out_fleet

    shell, desk = stage.shell, stage.desk
    shell.say("\n2. The pool as YAML in a bare remote, with two clones: yours, and the agent's on the head.")
    shell.git(stage.folder, "init", "--bare", stage.remote.name)
    shell.git(stage.folder, "clone", stage.remote.name, desk.name)
    lay_out_fleet(desk, stage.pool.urls, stage.pair.health_url)
    shell.git(desk, "add", "fleet", "recipes")
    shell.git(desk, "commit", "-m", "Describe the pool")
    shell.git(desk, "push", "origin", "main")
    shell.git(stage.folder, "clone", stage.remote.name, stage.home.name)
    shell.say("\n3. As it stands: the pair on Sparks 1 and 2 thinks, started by hand; the rest runs on Spark 3.")
    shell.ours(desk, "plan")
    _ask(stage)


def _change(stage: _Stage) -> None:
    shell, desk = stage.shell, stage.desk
    shell.say("\n4. Sparks 1 and 2 need new firmware. A branch with the wish, and the plan for it:")
    shell.git(desk, "switch", "-c", "firmware")
    for node in ("spark-node-01", "spark-node-02"):
        shell.ours(desk, "cordon", node, "--reason", "firmware", show=False)
    shell.ours(desk, "plan", "--write", show=False)
    shell.git(desk, "add", "fleet")
    shell.git(desk, "commit", "-m", "Cordon the pair for new firmware")
    shell.git(desk, "push", "origin", "firmware")
    shell.say("\n5. What reviewers read, and what CI asks:")
    shell.ours(desk, "diff")
    shell.ours(desk, "plan", "--check")


def _merge(stage: _Stage) -> None:
    shell, desk = stage.shell, stage.desk
    shell.say("\n6. Approved: merge. Nothing was started, stopped or rerouted so far.")
    shell.git(desk, "switch", "main")
    shell.git(desk, "merge", "--no-ff", "-m", "Merge the firmware day", "firmware")
    shell.git(desk, "push", "origin", "main")


def _apply(stage: _Stage) -> None:
    from lloom_gitops.sim.three_spark import PAIR, set_pair

    shell = stage.shell
    shell.say("\n7. The agent takes a turn. It starts the 27B on Spark 3, moves the routes, and can't stop the pair:")
    first = _turn(stage)
    waiting = [name for name, outcome in first.steps.items() if outcome == "waiting"]
    _expect(first.commit is not None and waiting == [f"stop:{PAIR}"], f"the first turn waits for {waiting}")
    _ask(stage)
    shell.say("\n8. Somebody stops the pair by hand, as its step says. The next turn sees it and closes the apply:")
    set_pair(stage.pool, up=False)
    stage.pair.stop()
    second = _turn(stage)
    _expect(second.status.result == "succeeded", f"the second turn ends {second.status.result}")
    shell.say("\n9. And one more turn: what runs is what is wished, so there is no commit.")
    third = _turn(stage)
    _expect(third.commit is None, "the third turn made a commit")


def _look_back(stage: _Stage) -> None:
    shell, desk = stage.shell, stage.desk
    shell.say("\n10. All of it is in git:")
    shell.git(desk, "pull", "--ff-only")
    shell.git(desk, "log", "--graph", "--oneline", show=True)
    shell.ours(desk, "log")
    shell.ours(desk, "why")


def _turn(stage: _Stage) -> Turn:
    """One turn of the agent, and what it left in its clone."""
    from lloom_gitops.codec.desired import PATHS
    from lloom_gitops.codec.documents import load_document
    from lloom_gitops.model.document import Kind

    before = stage.tip()
    stage.shell.ours(stage.home, "agent", "--once")
    after = stage.tip()
    path = PATHS[Kind.STATUS]
    status = load_document(Kind.STATUS, (stage.home / path).read_bytes(), path).spec
    turn = Turn(after if after != before else None, status)
    stage.turns.append(turn)
    return turn


def _ask(stage: _Stage) -> None:
    """What a client gets that asks the head for the alias."""
    from lloom_gitops.cli.demo_stage import failed
    from lloom_gitops.sim.three_spark import HEAD

    stage.shell.say(f'  $ curl {stage.pool.urls[HEAD]}/v1/chat/completions -d \'{{"model": "{_ALIAS}", …}}\'')
    body = {"model": _ALIAS, "messages": [{"role": "user", "content": "Who are you?"}]}
    answer = stage.pool.call(HEAD, "POST", "/v1/chat/completions", body)
    if answer.status_code != 200:
        raise failed(f"nothing answers {_ALIAS}: HTTP {answer.status_code}")
    model = str(answer.json()["model"])
    stage.answers.append(model)
    stage.shell.say(f"{_ALIAS} is answered by {model}")


def _expect(holds: bool, otherwise: str) -> None:
    from lloom_gitops.cli.demo_stage import failed

    if not holds:
        raise failed(otherwise)


def _farewell(folder: Path, keep: bool) -> str:
    kept = f"kept: look around with `git -C {folder}/fleet log -p`, and remove it when you are done"
    return f"Nothing is left running. {folder} is {kept if keep else 'removed'}."
