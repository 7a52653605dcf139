"""The start stays light: what a command does not need is not imported for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
HEAVY = {"deepdiff", "git", "highspy", "httpx", "jsonschema", "numpy", "rich", "ruamel", "starlette", "uvicorn"}
SCRIPT = """
import contextlib, io, json, sys
from lloom_gitops.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""


def modules_after(*words: str) -> set[str]:
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=REPO, capture_output=True, text=True, check=True)
    code, modules = json.loads(ran.stdout)
    assert code == 0
    return set(modules)


def test_version_imports_nothing_but_its_number() -> None:
    ours = {name for name in modules_after("--version") if name.startswith("lloom_gitops")}
    assert ours == {"lloom_gitops", "lloom_gitops.cli", "lloom_gitops.cli.main"}


def test_help_imports_no_command() -> None:
    modules = modules_after("--help")
    frame = {"lloom_gitops.cli", *(f"lloom_gitops.cli.{name}" for name in ("context", "main", "output", "registry"))}
    assert {name for name in modules if name.startswith("lloom_gitops.cli")} == frame
    assert modules & HEAVY == set()


@pytest.mark.parametrize(
    "words",
    [("plan", "--offline"), ("plan", "--json", "--offline"), ("check",), ("log",), ("schema", "Pool")],
    ids=" ".join,
)
def test_everyday_commands_import_nothing_heavy(words: tuple[str, ...]) -> None:
    assert modules_after(*words) & HEAVY == set()
