"""The judge of leaks finds what was planted, wherever it was."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .leaks import leaks, leaks_beside_peoples

WORD = "sk-planted-for-the-judge"


def git(repo: Path, *words: str, given: str = "") -> str:
    name = ["-c", "user.name=Fleet Owner", "-c", "user.email=owner@fleet.example"]
    asked = subprocess.run(["git", *name, *words], cwd=repo, input=given, capture_output=True, text=True, check=True)
    return asked.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = tmp_path / "repo"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / "fleet/nodes").mkdir(parents=True)
    (made / "fleet/nodes/spark.yaml").write_text("endpoint: http://spark.example:8100\n")
    commit(made, "Describe the pool")
    return made


def commit(repo: Path, message: str) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)


def in_a_file(repo: Path) -> None:
    (repo / "fleet/plan.yaml").write_text(f"says: {WORD}\n")
    commit(repo, "Plan")
    (repo / "fleet/plan.yaml").unlink()
    commit(repo, "Take it back")


def in_a_message(repo: Path) -> None:
    commit(repo, f"apply: failed with {WORD}")


def in_an_unreachable_object(repo: Path) -> None:
    git(repo, "hash-object", "-w", "--stdin", given=WORD)


def in_a_config(repo: Path) -> None:
    git(repo, "config", "remote.origin.url", f"https://{WORD}@example.org/fleet.git")


@pytest.mark.parametrize("plant", [in_a_file, in_a_message, in_an_unreachable_object, in_a_config])
def test_a_leak_into_the_repository_is_found(repo: Path, plant: Callable[[Path], None]) -> None:
    assert leaks([WORD], [repo], [], []) == set()
    plant(repo)
    assert leaks([WORD], [repo], [], [])


def test_a_leak_into_state_and_output_is_found(repo: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "journal.jsonl").write_text(f'{{"says": "{WORD}"}}\n')
    assert leaks([WORD], [repo], [state], []) == {str(state / "journal.jsonl")}
    assert leaks([WORD], [repo], [], ["fine", f"401 for {WORD}"]) == {"output 1"}


def test_an_address_may_stand_in_peoples_documents_alone(repo: Path) -> None:
    address = ["spark.example:8100"]
    assert len(leaks(address, [repo], [], [])) == 1
    assert leaks_beside_peoples(address, [repo], [], []) == set()
    (repo / "fleet/status.yaml").write_text("serving: spark.example:8100\n")
    commit(repo, "Status")
    assert len(leaks_beside_peoples(address, [repo], [], [])) == 1
