"""The history as values: commits with their trailers, and where a file with some content stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lloom_gitops.gitstore.command import Git
from lloom_gitops.gitstore.message import split_message
from lloom_gitops.gitstore.revisions import resolve
from lloom_gitops.gitstore.trees import check_path, read_blobs

_FIELDS = ("%H", "%P", "%an", "%ae", "%aI", "%cI", "%B")

_BATCH = 64
"""Blobs that a search through the history reads at a time: it mostly ends among the newest."""


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit as the audit trail shows it. Times are ISO 8601 with the offset that the author's machine had; `body`
    lines come without indentation, blank lines and trailers."""

    oid: str
    parents: tuple[str, ...]
    author_name: str
    author_email: str
    authored: str
    committed: str
    subject: str
    body: tuple[str, ...]
    trailers: Mapping[str, str]


def log(
    git: Git, rev: str, paths: Iterable[str] = (), *, limit: int | None = None, first_parent: bool = False
) -> list[LoggedCommit]:
    """Commits reachable from `rev`, newest first; with `paths` those that changed something there. One git call."""
    options = [f"--max-count={limit}"] if limit is not None else []
    if first_parent:
        options.append("--first-parent")
    wanted = [check_path(path.rstrip("/")) for path in paths]
    shape = "--format=tformat:" + "%x00".join(_FIELDS)
    ended = git.run(
        "log", "-z", "--no-color", "--no-notes", "--no-mailmap", *options, shape, resolve(git, rev), "--", *wanted
    )
    parts = ended.out.decode("utf-8", "replace").split("\0")[:-1]
    width = len(_FIELDS)
    return [_logged(parts[at : at + width]) for at in range(0, len(parts), width)]


def commits_touching(git: Git, rev: str, prefixes: Iterable[str]) -> list[str]:
    """Ids of all commits reachable from `rev` that changed something below `prefixes`, newest first, side branches of
    merges included: each state that these files ever had is that of one of them."""
    wanted = [check_path(prefix.rstrip("/")) for prefix in prefixes]
    return git.run("rev-list", "--full-history", resolve(git, rev), "--", *wanted).line.split()


def history_of(git: Git, rev: str, path: str) -> list[tuple[str, str]]:
    """Each (commit, blob id) at which `path` changed, newest first; commits that removed it are left out."""
    commits = commits_touching(git, rev, (path,))
    if not commits:
        return []
    given = "".join(f"{commit}:{path}\n" for commit in commits).encode("utf-8", "surrogateescape")
    answers = git.run("cat-file", "--batch-check=%(objecttype) %(objectname)", given=given).out.splitlines()
    pairs = zip(commits, (answer.split(b" ") for answer in answers), strict=True)
    return [(commit, words[1].decode("ascii")) for commit, words in pairs if words[0] == b"blob"]


def find_content(git: Git, rev: str, path: str, matches: Callable[[bytes], bool]) -> tuple[str, bytes] | None:
    """The newest commit, and the content, at which `matches` holds for the file `path`; None if it never did.

    Each distinct content is judged once.
    """
    first: dict[str, str] = {}
    for commit, blob in history_of(git, rev, path):
        first.setdefault(blob, commit)
    blobs = list(first)
    for at in range(0, len(blobs), _BATCH):
        contents = read_blobs(git, blobs[at : at + _BATCH])
        for blob, content in contents.items():
            if matches(content):
                return first[blob], content
    return None


def _logged(parts: list[str]) -> LoggedCommit:
    oid, parents, name, email, authored, committed, text = parts
    subject, body, trailers = split_message(text)
    return LoggedCommit(oid, tuple(parents.split()), name, email, authored, committed, subject, body, trailers)
