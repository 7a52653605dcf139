"""The work tree that a person or the agent has checked out: moved forward or committed to, never losing an edit."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lloom_gitops.gitstore.command import Git
from lloom_gitops.gitstore.commits import Author, Draft, Identity, stage, write_commit
from lloom_gitops.gitstore.errors import RefLocked, WorkTreeNotClean, shown
from lloom_gitops.gitstore.revisions import checked_out, read_ref, resolve, update_ref
from lloom_gitops.model.errors import Refused


def person(git: Git, when: datetime) -> Author:
    """The person whose git configuration counts here, as author; signing where `commit.gpgSign` says so.

    Raises Refused where git does not know them.
    """

    def setting(name: str, *form: str) -> str:
        return git.run("config", "--get", *form, name, ok=(0, 1)).line

    name, email = setting("user.name"), setting("user.email")
    if not name or not email:
        raise Refused(
            code="noIdentity",
            message="git does not know who commits",
            hint="`git config user.name NAME` and `git config user.email ADDRESS` tell it",
        )
    signs = setting("commit.gpgSign", "--type=bool") == "true"
    return Author(Identity(name, email), when, setting("user.signingKey") if signs else None)


def commit_to_head(git: Git, object_format: str, draft: Draft, author: Author) -> str | None:
    """Commits `draft` onto the branch that is checked out, for a person's own command; None if nothing changes.

    The work tree is not written: the caller has edited the files in place. The index takes over these paths alone, so
    what the person staged besides stays staged. Raises `RefLocked` when the branch moved meanwhile.
    """
    branch = checked_out(git)
    if branch is None:
        raise WorkTreeNotClean(
            code="detachedHead", message="no branch is checked out", hint="check one out with `git switch BRANCH`"
        )
    parent = read_ref(git, branch)
    made = write_commit(git, object_format, parent, draft, author)
    if made is None:
        return None
    if not update_ref(git, branch, made, parent):
        raise RefLocked(code="branchMoved", message=f"{branch} moved while the commit was made", hint="try again")
    with _private_index(git) as index:
        stage(git, object_format, index.room, index.env, draft.files)
        index.replace()
    return made


def fast_forward_worktree(git: Git, branch: str, target: str) -> bool:
    """Moves the checked-out `branch` (a full ref) and its clean work tree forward to `target`; True if it moved.

    Meant for the agent's own clone. False, with nothing touched, when another branch is checked out or `target` is
    already there. Raises `WorkTreeNotClean` rather than lose an edit, staged or not, or an untracked file in the way.
    Killed half-way, files that hold the target's content already are no edits at the next call.
    """
    if checked_out(git) != branch:
        return False
    old, new = read_ref(git, branch), resolve(git, target)
    if old is None or old == new:
        return False
    if git.run("merge-base", "--is-ancestor", old, new, ok=(0, 1)).code:
        raise WorkTreeNotClean(code="diverged", message=f"{branch} has commits of its own; it can't be moved forward")
    with _private_index(git) as index:
        _accept_written(git, new, index.env)
        # Both compare content with the index, which `read-tree` refreshes first: a touched file is no edit.
        git.run("update-index", "-q", "--refresh", env=index.env, ok=(0, 1))
        moved = git.run("read-tree", "-m", "-u", old, new, env=index.env, ok=(0, 1, 128))
        if moved.code:
            raise WorkTreeNotClean(
                code="workTreeNotClean",
                message=f"the work tree has edits that would be lost: {shown(moved.err)}",
                hint="commit or stash them",
            )
        index.replace()
    return update_ref(git, branch, new, old)


def _accept_written(git: Git, new: str, index: dict[str, str]) -> None:
    """Enters in the index the paths whose work tree file holds the target's content already: a move that was killed
    half-way wrote them, or a person did; either way nothing can be lost there."""
    listed = git.run("ls-files", "-z", "--modified", "--others", "--exclude-standard", env=index).out
    differing = set(listed.split(b"\0")[:-1])
    if not differing:
        return
    lines = []
    for record in git.run("ls-tree", "-r", "-z", "--full-tree", new).out.split(b"\0")[:-1]:
        facts, path = record.split(b"\t", 1)
        mode, kind, oid = facts.split(b" ")
        place = git.folder / os.fsdecode(path)
        if path in differing and kind == b"blob" and place.is_file() and not place.is_symlink():
            held = git.run("hash-object", "--", str(place)).line
            if held == oid.decode("ascii"):
                lines.append(mode + b" " + oid + b"\t" + path + b"\0")
    git.run("update-index", "-z", "--index-info", given=b"".join(lines), env=index)


@dataclass(frozen=True, slots=True)
class _PrivateIndex:
    """A copy of the work tree's index to edit, in a temporary folder `room`."""

    room: Path
    index: Path
    env: dict[str, str]

    def replace(self) -> None:
        """Puts the copy in the index's place by one rename, so a kill leaves the old or the new one, and never
        `index.lock`. First into the same folder: a rename is atomic only within one file system."""
        near = self.index.with_name(f"index.lloom-{os.getpid()}")
        shutil.copyfile(self.env["GIT_INDEX_FILE"], near)
        near.replace(self.index)


@contextmanager
def _private_index(git: Git) -> Iterator[_PrivateIndex]:
    place = Path(git.run("rev-parse", "--git-path", "index").line)
    index = place if place.is_absolute() else git.folder / place
    lock = index.with_name("index.lock")
    if lock.exists():
        raise RefLocked(
            code="indexLocked",
            message="another program is at work in this work tree, or was killed there",
            hint=f"if no git is at work there, remove {lock}",
        )
    with tempfile.TemporaryDirectory(prefix="lloom-gitops-") as folder:
        room = Path(folder)
        copy = room / "index"
        if index.exists():
            shutil.copyfile(index, copy)
        yield _PrivateIndex(room, index, {"GIT_INDEX_FILE": str(copy), "GIT_WORK_TREE": str(git.folder)})
