"""Real bare remotes and clones in a temporary folder whose path holds a space and a letter that is not ASCII."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.gitstore.command import Ended, Git
from lloom_gitops.gitstore.commits import Author, Draft, Identity
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.store import GitStore

Plain = Callable[..., str]


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' git reads no configuration of the machine they run on."""
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def plain_git(folder: Path, *args: str) -> str:
    """git as a person runs it."""
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


@pytest.fixture
def git() -> Plain:
    return plain_git


@pytest.fixture
def room(tmp_path: Path) -> Path:
    folder = tmp_path / "a fléet"
    folder.mkdir()
    return folder


@pytest.fixture
def bare(room: Path) -> Path:
    plain_git(room, "init", "-q", "--bare", "-b", "main", "remote.git")
    return room / "remote.git"


@pytest.fixture
def clone(room: Path, bare: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        plain_git(room, "clone", "-q", str(bare), name)
        return room / name

    return make


@pytest.fixture
def seeded(bare: Path, clone: Callable[[str], Path]) -> Path:
    """A person's clone whose first commit, with a pool document, is on the remote."""
    folder = clone("person")
    (folder / "fleet").mkdir()
    (folder / "fleet/pool.yaml").write_text("kind: Pool\n")
    plain_git(folder, "add", ".")
    plain_git(folder, "commit", "-q", "-m", "Add the pool")
    plain_git(folder, "push", "-q", "origin", "HEAD:main")
    return folder


@pytest.fixture
def store(seeded: Path, clone: Callable[[str], Path]) -> GitStore:
    """The agent's clone of a remote with one commit, fetched."""
    made = GitStore(clone("agent"))
    made.fetch()
    return made


@pytest.fixture
def author() -> Author:
    return Author(Identity("lloom-gitops", "agent@head"), datetime(2026, 10, 1, 12, 30, tzinfo=UTC))


@pytest.fixture
def draft() -> Callable[..., Draft]:
    def make(path: str, content: bytes | None, subject: str = "apply: 1 of 1 steps done", **trailers: str) -> Draft:
        named = {name.replace("_", "-"): value for name, value in trailers.items()}
        return Draft({path: content}, CommitMessage(subject, trailers=named))

    return make


@pytest.fixture
def locks(room: Path) -> Callable[[], list[str]]:
    """Lock files anywhere below the test's folder."""

    def find() -> list[str]:
        return [os.path.join(at, name) for at, _, names in os.walk(room) for name in names if name.endswith(".lock")]

    return find


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each git call made from now on: its command, and whether it goes to the network."""
    seen: list[tuple[str, bool]] = []
    real = Git.run

    def run(self: Git, *args: str, **named: Any) -> Ended:
        seen.append((args[0], bool(named.get("network"))))
        return real(self, *args, **named)

    monkeypatch.setattr(Git, "run", run)
    return seen
