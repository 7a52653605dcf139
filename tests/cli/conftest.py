"""A fleet repository of one's own, and the command line as a process and as a call."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.cli.main import main
from tests.pools import REPO


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*words: str, cwd: Path = REPO, env: dict[str, str] | None = None) -> Ran:
    """The command line as a process, with no terminal."""
    asked = subprocess.run(
        [sys.executable, "-m", "lloom_gitops.cli.main", *words],
        cwd=cwd,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Ran(asked.returncode, asked.stdout, asked.stderr)


def call(*words: str) -> Ran:
    """The same within this process, without the cost of a start."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        contextlib.redirect_stdout(io.TextIOWrapper(out, encoding="utf-8", write_through=True)),
        contextlib.redirect_stderr(io.TextIOWrapper(err, encoding="utf-8", write_through=True)),
    ):
        code = main(words)
        return Ran(code, out.getvalue().decode(), err.getvalue().decode())


@dataclass(frozen=True)
class Fleet:
    """A work tree with the three-Spark fleet, committed on `main`."""

    root: Path

    def run(self, *words: str) -> Ran:
        """A command on this repository, as a process."""
        return run(*words, cwd=self.root)

    def call(self, *words: str) -> Ran:
        """The same within this process."""
        return call("--repo", str(self.root), *words)

    def git(self, *words: str, ok: bool = True) -> str:
        asked = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True)
        assert asked.returncode == 0 or not ok, asked.stderr
        return asked.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        file = self.root / path
        before = file.read_text("utf-8")
        after = change(before)
        assert after != before, f"{path} was not changed"
        file.write_text(after, "utf-8")

    def cordon(self, *nodes: str) -> None:
        for node in nodes:
            self.edit(f"fleet/nodes/{node}.yaml", lambda text: text.replace("\nspec:\n", "\nspec:\n  state: cordon\n"))

    def read(self, path: str) -> str:
        return (self.root / path).read_text("utf-8")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    for folder in ("fleet", "recipes"):
        shutil.copytree(REPO / folder, tmp_path / folder)
    for made in ("plan.yaml", "status.yaml"):
        (tmp_path / "fleet" / made).unlink(missing_ok=True)
    made = Fleet(tmp_path)
    made.git("init", "--quiet", "--initial-branch", "main")
    made.git("config", "user.name", "Fleet Owner")
    made.git("config", "user.email", "owner@fleet.example")
    made.commit("Describe the pool")
    return made
