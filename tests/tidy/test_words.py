"""One word for one thing, no rooms for odds and ends, and nothing that only one machine knows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]

NO_ROOMS = frozenset({"base", "common", "helpers", "manager", "misc", "utils"})
"""Names under which anything could stand, so nobody finds it."""

INSTEAD = {
    "blueprint": "plan",
    "leader": "head",
    "replica": "lane",
    "replicas": "lanes",
    "playbook": "plan",
    "microservice": "lane",
    "plugin": "driver",
    "slave": "member",
    "whitelist": "allow list",
    "blacklist": "deny list",
}
"""Words for which the project has another one (docs/concepts.md)."""

UNFINISHED = re.compile(r"/work/|\bTODO\b|\bFIXME\b|\bXXX\b|lorem ipsum", re.IGNORECASE)
LOCAL = re.compile(r"/(?:home|root|Users)/[a-z]", re.IGNORECASE)
"""A folder that only one machine has; tests may hold one, to see that it doesn't get out."""


def tracked(*suffixes: str) -> list[Path]:
    """Files that git knows, or would on the next commit."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=REPO, capture_output=True, check=True)
    paths = [REPO / name for name in listed.stdout.decode().split("\0") if name.endswith(suffixes)]
    return [path for path in paths if path.is_file() and path != Path(__file__)]


def odd_rooms(paths: list[Path]) -> list[str]:
    names = {part for path in paths for part in (*path.parent.parts, path.stem)}
    return sorted(name for name in names if name.strip("_").lower() in NO_ROOMS)


def other_words(text: str) -> list[str]:
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    return [word for word in re.findall(r"[a-z]+", prose.lower()) if word in INSTEAD]


def test_no_module_is_a_lumber_room() -> None:
    assert odd_rooms([path.relative_to(REPO) for path in tracked(".py")]) == []


@pytest.mark.parametrize("path", tracked(".md"), ids=lambda path: path.relative_to(REPO).as_posix())
def test_docs_use_the_projects_words(path: Path) -> None:
    assert other_words(path.read_text("utf-8")) == []


def local_words(path: Path) -> list[str]:
    text = (REPO / path).read_text("utf-8", "replace")
    return UNFINISHED.findall(text) + ([] if path.parts[0] == "tests" else LOCAL.findall(text))


def test_nothing_is_unfinished_or_speaks_of_one_machine() -> None:
    files = [
        path.relative_to(REPO) for path in tracked(".md", ".py", ".yaml", ".yml", ".toml", ".json", "Makefile", "run")
    ]
    assert {path.as_posix(): words for path in files if (words := local_words(path))} == {}


def test_planted_words_are_found() -> None:
    assert odd_rooms([Path("lloom_gitops/cli/utils.py"), Path("lloom_gitops/_helpers/x.py")]) == ["_helpers", "utils"]
    assert other_words("The leader runs `leader` and a Replica.") == ["leader", "replica"]
    assert LOCAL.search("see /home/somebody/fleet")
    assert UNFINISHED.search("# todo: later")
