"""Finds the repository, and turns names (refs, revisions) into object ids, with a clear error for each bad one."""

from __future__ import annotations

import re
from pathlib import Path

from lloom_gitops.gitstore.command import Ended, Git
from lloom_gitops.gitstore.errors import BadRevision, GitFailed, NotARepository, RefLocked, shown

PRIVATE = "refs/lloom/"
"""Refs that only this program writes, in the clone and on the remote."""

_OID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
# The rules of git-check-ref-format(1), for a full ref name.
_BAD_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|\Z)|[/.]\Z")


def is_oid(text: str) -> bool:
    """Whether `text` is a whole object id, SHA-1 or SHA-256."""
    return _OID.match(text) is not None


def check_ref(ref: str) -> str:
    """`ref` itself if it is a well-formed full ref name (`refs/...`); raises `BadRevision` otherwise."""
    if not ref.startswith("refs/") or _BAD_IN_REF.search(ref):
        raise BadRevision(
            code="badRef",
            message=f"{ref!r} is not a full ref name",
            hint="a full name looks like refs/heads/main",
        )
    return ref


def locate(folder: Path) -> tuple[Path, str]:
    """The absolute git folder and the object format (`sha1` or `sha256`) of the repository whose root is `folder`.

    Raises `NotARepository` when `folder` is missing, is no repository, or lies inside one without being its root: a
    parent folder's repository is never taken by accident.
    """
    if not folder.is_dir():
        raise NotARepository(code="noFolder", message=f"{folder} is not a folder")
    asked = Git(folder, None).run(
        "rev-parse", "--absolute-git-dir", "--show-object-format", "--show-prefix", ok=(0, 128)
    )
    if asked.code:
        raise NotARepository(
            code="notARepository",
            message=f"{folder} is not a git repository that can be read: {shown(asked.err)}",
            hint="name the root of the fleet repository with --repo",
        )
    lines = asked.out.decode("utf-8", "surrogateescape").split("\n")
    # The format and the prefix are the last two lines; a path may hold line feeds.
    git_dir, object_format, prefix = "\n".join(lines[:-3]), lines[-3], lines[-2]
    if prefix:
        raise NotARepository(
            code="notTheRoot",
            message=f"{folder} lies inside a git repository but is not its root",
            hint="name the root of the fleet repository with --repo",
        )
    return Path(git_dir), object_format


def resolve(git: Git, rev: str) -> str:
    """The object id of the commit that `rev` names.

    Raises `BadRevision` for text that is no revision or names nothing, and for a tag or id of something that is no
    commit.
    """
    if not rev or rev.startswith("-") or any(ord(c) < 32 for c in rev):
        raise BadRevision(code="badRevision", message=f"{rev!r} is not a revision")
    asked = git.run("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}", ok=(0, 1, 128))
    if asked.code or not is_oid(asked.line):
        raise BadRevision(
            code="unknownRevision",
            message=f"{rev!r} names no commit of this repository",
            hint="fetch it first, or look at `git log` and `git branch --all`",
        )
    return asked.line


def checked_out(git: Git) -> str | None:
    """The full name of the branch that is checked out; None for a detached HEAD. Raises `BadRevision` on damage."""
    asked = git.run("symbolic-ref", "--quiet", "HEAD", ok=(0, 1, 128))
    if asked.code > 1:
        raise BadRevision(
            code="brokenRef",
            message=f"the branch that is checked out is damaged: {shown(asked.err)}",
            hint="look at .git/HEAD and at the branch's file below .git/refs/heads",
        )
    return asked.line or None


def read_ref(git: Git, ref: str) -> str | None:
    """The object id that `ref` (a full name) holds, or None where there is no such ref.

    A ref that exists but holds no object of this repository raises `BadRevision`: it is not the same as absent.
    """
    check_ref(ref)
    asked = git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{object}}", ok=(0, 1, 128))
    if asked.code == 0 and is_oid(asked.line):
        return asked.line
    if _ref_file(git, ref).is_file() or git.run("show-ref", "--verify", "--quiet", ref, ok=(0, 1, 128)).code == 0:
        raise BadRevision(
            code="brokenRef",
            message=f"{ref} is damaged: it holds no object of this repository",
            hint=f"repair it with `git update-ref {ref} COMMIT` or fetch it again",
        )
    return None


def update_ref(git: Git, ref: str, new: str, old: str | None) -> bool:
    """Sets a ref of this repository to `new` if it still holds `old` (None: if it does not exist).

    False when it holds something else. Raises `RefLocked` where another program's lock stays.
    """
    check_ref(ref)

    def attempt() -> Ended:
        return git.run("update-ref", "--no-deref", ref, new, old or "", ok=(0, 1, 128))

    ended = attempt()
    if ended.code and _drop_dead_lock(git, ref):
        ended = attempt()
    if ended.code == 0:
        return True
    if read_ref(git, ref) != old:
        return False
    lock = _lock_file(git, ref)
    if lock.exists():
        raise RefLocked(
            code="refLocked",
            message=f"{ref} is locked by another program, or by one that was killed",
            hint=f"if no git is at work there, remove {lock}",
        )
    raise GitFailed(code="gitFailed", message=f"{ref} can't be set: {shown(ended.err)}")


def drop_dead_locks(git: Git, refs: tuple[str, ...]) -> bool:
    """Removes locks that a killed git left on private refs; True if there were any. See `_drop_dead_lock`."""
    dropped = [_drop_dead_lock(git, ref) for ref in refs]
    return any(dropped)


def _drop_dead_lock(git: Git, ref: str) -> bool:
    """git holds a ref's lock for microseconds, and has just waited a second for it (`core.filesRefLockTimeout`): one
    that is still there was left by a kill. On private refs, which only we write, it is removed."""
    if not ref.startswith(PRIVATE):
        return False
    try:
        _lock_file(git, ref).unlink()
    except FileNotFoundError:
        return False
    return True


def _ref_file(git: Git, ref: str) -> Path:
    path = Path(git.run("rev-parse", "--git-path", ref).line)
    return path if path.is_absolute() else git.folder / path


def _lock_file(git: Git, ref: str) -> Path:
    path = _ref_file(git, ref)
    return path.with_name(path.name + ".lock")
