"""The frame of the command line: help, exit codes, errors in both forms, and what it does without a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from lloom_gitops import __version__
from lloom_gitops.cli import schema as schema_command
from lloom_gitops.cli.main import INTERRUPTED, PIPE_CLOSED, main
from lloom_gitops.cli.registry import application, available
from lloom_gitops.model.errors import Conflict, ExitCode, Finding, Refused, Unreachable

from .conftest import Fleet, run


def commands_of(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Each command that does something, with its path of words."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands_of(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands_of(application()))


def test_version_is_one_word_and_a_number() -> None:
    assert run("--version").out == f"lloom-gitops {__version__}\n"


@pytest.mark.parametrize("words", [("--help",), ("-v", "--json", "--help")], ids=["alone", "after options"])
def test_help_lists_every_command_with_its_line(words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert ran.code == 0
    for name, entry in available().items():
        assert any(line.split()[:1] == [name] and entry.line[:20] in line for line in ran.out.splitlines()), name


def test_nothing_said_is_a_usage_error_that_shows_the_help() -> None:
    ran = run()
    assert (ran.code, ran.out) == (2, "")
    assert "Commands:" in ran.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert "Example" in said
    assert f"lloom-gitops {name}" in said or "lloom-gitops --json" in said
    assert "--json" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(("plam",), "did you mean `lloom-gitops plan`?", id="a typo"),
        pytest.param(("frobnicate",), "`lloom-gitops --help` lists all commands", id="no such command"),
        pytest.param(("plan", "--frobnicate"), "`lloom-gitops plan --help`", id="no such option"),
        pytest.param(("schema", "Pool", "extra"), "`lloom-gitops schema --help`", id="one word too many"),
        pytest.param(("--repo", "/does/not/exist", "plan"), "there is no such folder", id="no such repo"),
        pytest.param(("schema", "Pol"), "did you mean Pool", id="no such kind"),
    ],
)
def test_usage_errors_say_what_to_do(words: tuple[str, ...], says: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


@pytest.mark.parametrize("words", [("--json", "plam"), ("plan", "--json", "--frobnicate")], ids=["before", "after"])
def test_usage_errors_as_json(words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert ran.json["formatVersion"] == "1.0"
    assert ran.json["error"]["exitCode"] == 2
    assert ran.json["error"]["message"]
    assert ran.err == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param("mode: advise", "mode: sometimes", id="a word that is none"),
        pytest.param("head: spark-node-01", "head: spark-node-09", id="a name that leads nowhere"),
        pytest.param("spec:\n", "spec:\n  heads: []\n", id="a field that is none"),
    ],
)
def test_documents_with_errors_end_with_3_and_name_their_places(fleet: Fleet, right: str, wrong: str) -> None:
    fleet.edit("fleet/pool.yaml", lambda text: text.replace(right, wrong))
    for command in (("plan", "--offline"), ("plan", "--write"), ("plan", "--check")):
        ran = fleet.call(*command)
        assert (ran.code, ran.out) == (3, ""), command
        assert "--> fleet/pool.yaml:" in ran.err
    told = fleet.run("plan", "--offline", "--json").json["error"]
    assert told["exitCode"] == 3
    assert [finding["file"] for finding in told["findings"]] == ["fleet/pool.yaml"]
    assert told["findings"][0]["line"] > 0
    assert not (fleet.root / "fleet/plan.yaml").exists()


def test_warnings_are_shown_beside_the_plan(fleet: Fleet) -> None:
    (fleet.root / "fleet/nodes/macbook-local.yaml").rename(fleet.root / "fleet/nodes/mac.yaml")
    ran = fleet.call("plan", "--offline")
    assert ran.code == 0
    assert "warning[nameOfFile]" in ran.err
    assert "warning" not in ran.out


REFUSALS = [
    (Refused, ExitCode.REFUSED),
    (Conflict, ExitCode.CONFLICT),
    (Unreachable, ExitCode.UNREACHABLE),
]


@pytest.mark.parametrize(("kind", "code"), REFUSALS, ids=[kind.__name__ for kind, _ in REFUSALS])
def test_refusals_carry_their_exit_code(
    kind: Any, code: ExitCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(ctx: typer.Context) -> None:
        finding = Finding(code="f", message="first", file="a.yaml", line=2, wanted="x", found="y")
        raise kind(code="because", message="no", hint="do this", findings=[finding])

    monkeypatch.setattr(schema_command, "schema", refuse)
    assert main(["schema"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "error[f]: first",
        "  --> a.yaml:2:0",
        "  wanted x, found y",
        "1 error in 1 file",
        "error[because]: no",
        "  hint: do this",
    ]


def test_a_bug_is_called_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(ctx: typer.Context) -> None:
        raise RuntimeError("boom\x1b[2J")

    monkeypatch.setattr(schema_command, "schema", fail)
    assert main(["schema"]) == 1
    said = capsys.readouterr().err
    assert "this is a bug in lloom-gitops: RuntimeError" in said
    assert "\x1b" not in said
    assert "Traceback" not in said
    assert main(["-v", "schema"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(ctx: typer.Context) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(schema_command, "schema", interrupt)
    assert main(["schema"]) == INTERRUPTED
    assert capsys.readouterr().err == ""


def test_a_reader_that_goes_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "lloom_gitops.cli.main", "schema", "Plan"]
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (PIPE_CLOSED, b"")


def in_terminal(folder: Path, *words: str, **env: str) -> str:
    """What a terminal is sent on stdout."""
    leader, follower = pty.openpty()
    try:
        command = [sys.executable, "-m", "lloom_gitops.cli.main", *words]
        base = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        process = subprocess.Popen(
            command, cwd=folder, stdout=follower, stderr=subprocess.DEVNULL, env=base | {"TERM": "xterm"} | env
        )
        os.close(follower)
        said = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # Linux: the last writer closed the terminal
                break
            if not piece:
                break
            said += piece
        process.wait(timeout=60)
    finally:
        os.close(leader)
    return said.decode()


def test_colour_is_for_terminals_that_want_it(fleet: Fleet) -> None:
    what_if = ("plan", "--offline", "--cordon", "spark-node-01")
    assert "\x1b[" in in_terminal(fleet.root, *what_if)
    assert "\x1b[" not in in_terminal(fleet.root, "--no-color", *what_if)
    assert "\x1b[" not in in_terminal(fleet.root, *what_if, NO_COLOR="1")
    assert "\x1b[" not in in_terminal(fleet.root, *what_if, TERM="dumb")
    assert "\x1b[" not in fleet.run(*what_if).out


def test_the_repository_is_the_one_around_the_folder(fleet: Fleet) -> None:
    inside = run("plan", "--offline", cwd=fleet.root / "fleet" / "nodes")
    assert (inside.code, inside.out) == (0, fleet.run("plan", "--offline").out)
    named = run("--repo", str(fleet.root), "plan", "--offline", cwd=Path("/"))
    assert named.out == inside.out


def test_output_that_can_not_hold_unicode_gets_ascii(fleet: Fleet) -> None:
    what_if = ("plan", "--offline", "--cordon", "spark-node-01")
    ran = run(*what_if, cwd=fleet.root, env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    assert ran.out.isascii()
    assert "####" in ran.out
