"""Commits by plumbing: a private index in a temporary folder, so neither the work tree nor `.git/index` is touched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lloom_gitops.gitstore.command import Git
from lloom_gitops.gitstore.errors import BadPath, GitFailed, shown
from lloom_gitops.gitstore.message import CommitMessage, clean_text
from lloom_gitops.gitstore.revisions import is_oid, resolve
from lloom_gitops.gitstore.trees import check_path


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a commit names as author and committer. Control characters and angle brackets are dropped."""

    name: str
    email: str

    def __post_init__(self) -> None:
        for field in ("name", "email"):
            cleaned = clean_text(getattr(self, field).translate({ord("<"): None, ord(">"): None}))
            if not cleaned:
                raise ValueError(f"an identity needs a {field}")
            object.__setattr__(self, field, cleaned)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a commit is to hold: content by path (None: the file goes), and the message."""

    files: Mapping[str, bytes | None]
    message: CommitMessage


@dataclass(frozen=True, slots=True)
class Author:
    """Who commits, when, and with which key. `when` is aware; it is written in UTC, so that the same inputs give the
    same bytes in every time zone. `signing_key`: as in git's `user.signingKey`, None for unsigned commits."""

    identity: Identity
    when: datetime
    signing_key: str | None = None


def write_commit(git: Git, object_format: str, parent: str | None, draft: Draft, author: Author) -> str | None:
    """Writes a commit on top of `parent` (None: a root commit) and returns its id; no ref moves.

    None when the tree is the parent's: there is never an empty commit. The other files of the parent stay. Raises
    `BadPath`, `BadRevision`.
    """
    base = None if parent is None else resolve(git, parent)
    _check_places(git, base, draft.files)
    with tempfile.TemporaryDirectory(prefix="lloom-gitops-") as room:
        index = {"GIT_INDEX_FILE": str(Path(room, "index"))}
        if base is not None:
            git.run("read-tree", base, env=index)
        stage(git, object_format, Path(room), index, draft.files)
        tree = git.run("write-tree", env=index).line
    if base is not None and tree == git.run("rev-parse", f"{base}^{{tree}}").line:
        return None
    return _commit_tree(git, tree, base, draft.message, author)


def stage(
    git: Git, object_format: str, room: Path, index: Mapping[str, str], files: Mapping[str, bytes | None]
) -> None:
    """Writes the contents as blobs (one call) and enters them in the index (one call)."""
    paths = sorted(files)
    folder = room / "files"
    folder.mkdir()
    written = [path for path in paths if files[path] is not None]
    for number, path in enumerate(written):
        (folder / str(number)).write_bytes(files[path] or b"")
    names = "".join(f"{number}\n" for number in range(len(written))).encode("ascii")
    hashed = git.run("hash-object", "-w", "--no-filters", "--stdin-paths", given=names, folder=folder).out
    oids = dict(zip(written, hashed.decode("ascii").split(), strict=True))
    absent = "0" * (64 if object_format == "sha256" else 40)
    lines = [f"100644 {oids[path]}\t" if path in oids else f"0 {absent}\t" for path in paths]
    given = b"".join(line.encode("ascii") + os.fsencode(path) + b"\0" for line, path in zip(lines, paths, strict=True))
    git.run("update-index", "-z", "--index-info", given=given, env=index)


def _check_places(git: Git, base: str | None, files: Mapping[str, bytes | None]) -> None:
    """The index would give way in silence: a file in a folder's place, or below a link, takes out what is there."""
    parts = [check_path(path).split("/") for path in files]
    above = {"/".join(names[:depth]) for names in parts for depth in range(1, len(names))}
    if base is None or not files:
        return
    listed = git.run("ls-tree", "-z", "--full-tree", base, "--", *sorted(above | set(files))).out
    for record in listed.split(b"\0")[:-1]:
        facts, name = record.split(b"\t", 1)
        path, is_folder = os.fsdecode(name), facts.split(b" ")[1] == b"tree"
        if is_folder and path in files:
            raise BadPath(code="badPath", message=f"{path!r} is a folder; a file can't take its place")
        if not is_folder and path in above:
            raise BadPath(code="badPath", message=f"{path!r} is a file, link or submodule; nothing can lie below it")


def _commit_tree(git: Git, tree: str, parent: str | None, message: CommitMessage, author: Author) -> str:
    if author.when.tzinfo is None:
        raise ValueError("the time of a commit needs a time zone")
    date = f"@{int(author.when.timestamp())} +0000"
    who = author.identity
    env = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", who.name), ("EMAIL", who.email), ("DATE", date))
    }
    parents = () if parent is None else ("-p", parent)
    sign = "--no-gpg-sign" if author.signing_key is None else f"-S{author.signing_key}"
    made = git.run(
        "commit-tree", tree, *parents, sign, "-F", "-", given=message.render().encode("utf-8"), env=env, ok=(0, 1, 128)
    )
    if made.code or not is_oid(made.line):
        what = "signed" if author.signing_key is not None else "written"
        raise GitFailed(code="commitFailed", message=f"the commit can't be {what}: {shown(made.err)}")
    return made.line
