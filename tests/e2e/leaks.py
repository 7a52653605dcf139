"""Looks for planted words in everything that was written: each object of each repository, other files, all output."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

PEOPLES = ("fleet/nodes/", "fleet/lanes/")
"""Where people write addresses. Nothing else may hold one."""


def leaks(words: Sequence[str], repositories: Sequence[Path], folders: Sequence[Path], said: Sequence[str]) -> set[str]:
    """Where one of `words` stands: an object of git (also an unreachable one), a file, or the output of a command."""
    found = {where for repo in repositories for where, text in _objects(repo) if _holds(text, words)}
    places = [*folders, *(_git_folder(repo) for repo in repositories)]
    for path in sorted(path for folder in places for path in folder.rglob("*")):
        if path.is_file() and "objects" not in path.parts and _holds(path.read_bytes(), words):
            found.add(str(path))
    return found | {f"output {number}" for number, text in enumerate(said) if _holds(text.encode(), words)}


def leaks_beside_peoples(
    words: Sequence[str], repositories: Sequence[Path], folders: Sequence[Path], said: Sequence[str]
) -> set[str]:
    """The same for words that stand in people's own documents: those blobs don't count."""
    theirs = {where for repo in repositories for where in _blobs_of_people(repo)}
    return leaks(words, repositories, folders, said) - theirs


def _holds(data: bytes, words: Sequence[str]) -> bool:
    return any(word.encode() in data for word in words)


def _git_folder(repo: Path) -> Path:
    return repo / ".git" if (repo / ".git").is_dir() else repo


def _git(repo: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=repo, capture_output=True, check=True).stdout


def _objects(repo: Path) -> Iterator[tuple[str, bytes]]:
    stream = _git(repo, "cat-file", "--batch-all-objects", "--batch")
    at = 0
    while at < len(stream):
        end = stream.index(b"\n", at)
        oid, kind, size = stream[at:end].decode().split()
        yield f"{kind} {oid}", stream[end + 1 : end + 1 + int(size)]
        at = end + 1 + int(size) + 1


def _blobs_of_people(repo: Path) -> Iterator[str]:
    for line in _git(repo, "rev-list", "--objects", "--all").decode().splitlines():
        oid, _, path = line.partition(" ")
        if path.startswith(PEOPLES):
            yield f"blob {oid}"
