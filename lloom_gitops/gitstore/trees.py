"""Trees as values: what a commit or a folder holds under some prefixes. Symbolic links are listed, never followed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lloom_gitops.gitstore.command import Git
from lloom_gitops.gitstore.errors import BadPath, GitFailed, NotARepository, TooLarge
from lloom_gitops.gitstore.revisions import resolve

FILE_LIMIT = 16 * 2**20
"""Bytes of one file that are read; a larger one is listed in `Tree.unread`. The largest document, the inventory of a
pool of 1,000 nodes, takes about 2 MB."""

TOTAL_LIMIT = 256 * 2**20
"""Bytes of all files of a tree together; above it reading is refused."""

LINK, SUBMODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry: git's mode (`100644`, `100755`, `120000` a symbolic link, `160000` a submodule, `000000` what git
    can't hold, such as a pipe), path with `/`, object id ("" if unread), size in bytes."""

    mode: str
    path: str
    oid: str
    size: int


@dataclass(frozen=True, slots=True)
class Tree:
    """`files`: the content of plain files by path. `unread`: entries whose content is not in `files`, because they are
    links, submodules, no files at all, or larger than `FILE_LIMIT`. `entries`: both, by path."""

    entries: tuple[TreeEntry, ...]
    files: dict[str, bytes]

    @property
    def unread(self) -> tuple[TreeEntry, ...]:
        return tuple(entry for entry in self.entries if entry.path not in self.files)

    @property
    def links(self) -> tuple[TreeEntry, ...]:
        return tuple(entry for entry in self.entries if entry.mode == LINK)


def check_path(path: str) -> str:
    """`path` itself if it names a place inside a repository; raises `BadPath` otherwise."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") or part.casefold() == ".git" for part in parts):
        raise BadPath(code="badPath", message=f"{path!r} is not a path inside the repository")
    return path


def list_tree(git: Git, rev: str, prefixes: Iterable[str]) -> tuple[TreeEntry, ...]:
    """All entries below `prefixes` (files or folders; none: everything) of a commit, by path, without content."""
    wanted = [check_path(prefix.rstrip("/")) for prefix in prefixes]
    listed = git.run("ls-tree", "-r", "-z", "-l", "--full-tree", resolve(git, rev), "--", *wanted).out
    entries = []
    for record in listed.split(b"\0")[:-1]:
        facts, path = record.split(b"\t", 1)
        mode, _, oid, size = facts.decode("ascii").split()
        entries.append(TreeEntry(mode, os.fsdecode(path), oid, int(size) if size.isdigit() else 0))
    return tuple(sorted(entries, key=lambda entry: entry.path))


def read_tree(git: Git, rev: str, prefixes: Iterable[str]) -> Tree:
    """What a commit holds below `prefixes` (files or folders; none: everything); a prefix may be absent.

    Two git calls whatever the number of files. Raises `BadRevision`, `TooLarge`.
    """
    entries = list_tree(git, rev, prefixes)
    plain = [entry for entry in entries if entry.mode.startswith("100") and entry.size <= FILE_LIMIT]
    _refuse_too_large(sum(entry.size for entry in plain))
    contents = read_blobs(git, (entry.oid for entry in plain))
    return Tree(entries, {entry.path: contents[entry.oid] for entry in plain})


def read_blobs(git: Git, oids: Iterable[str]) -> dict[str, bytes]:
    """Content by object id, by one `cat-file --batch`. Raises `GitFailed` when one is missing or is no blob."""
    wanted = list(dict.fromkeys(oids))
    if not wanted:
        return {}
    out = git.run("cat-file", "--batch", given="".join(f"{oid}\n" for oid in wanted).encode("ascii")).out
    found: dict[str, bytes] = {}
    at = 0
    for oid in wanted:
        end = out.index(b"\n", at)
        header = out[at:end].split(b" ")
        if len(header) != 3 or header[1] != b"blob":
            raise GitFailed(code="objectMissing", message=f"file content {oid} is missing", hint="run `git fsck`")
        size = int(header[2])
        found[oid] = out[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


def read_file(git: Git, rev: str, path: str) -> bytes | None:
    """One file of a commit, or None where it has no such plain file."""
    return read_tree(git, rev, (path,)).files.get(path)


def read_folder(root: Path, prefixes: Iterable[str], object_format: str = "sha1") -> Tree:
    """The same as `read_tree` from a folder on disk, committed or not; `.git` folders are left out.

    Every step of a path is opened without following links, so a link that is put there while we read can't lead out.
    """
    entries: list[TreeEntry] = []
    files: dict[str, bytes] = {}
    total = 0
    for prefix in sorted({check_path(prefix.rstrip("/")) for prefix in prefixes}):
        for path, mode, size, content in _walk(root, prefix):
            total += len(content or b"")
            _refuse_too_large(total)
            oid = "" if content is None else blob_oid(content, object_format)
            entries.append(TreeEntry(mode, path, oid, size))
            if content is not None:
                files[path] = content
    unique = {entry.path: entry for entry in entries}
    return Tree(tuple(unique[path] for path in sorted(unique)), files)


def blob_oid(content: bytes, object_format: str = "sha1") -> str:
    """The id that git gives to a file with this content."""
    return hashlib.new(object_format, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _refuse_too_large(total: int) -> None:
    if total > TOTAL_LIMIT:
        raise TooLarge(
            code="treeTooLarge", message=f"the documents are larger than {TOTAL_LIMIT // 2**20} MiB together"
        )


_Found = tuple[str, str, int, bytes | None]


def _walk(root: Path, prefix: str) -> Iterator[_Found]:
    """Yields path, mode, size, content (None if unread) of all that lies at or below `prefix`."""
    *parents, last = prefix.split("/")
    try:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise NotARepository(code="noFolder", message=f"{root} can't be read: {error.strerror}") from error
    try:
        for depth, parent in enumerate(parents):
            child = _open_folder(handle, parent)
            if child is None:
                # A link or file where a folder should be: name it, so that the reader can say why nothing lies below.
                yield from _visit(handle, parent, "/".join(parents[: depth + 1]))
                return
            os.close(handle)
            handle = child
        yield from _visit(handle, last, prefix)
    finally:
        os.close(handle)


def _visit(folder: int, name: str, path: str) -> Iterator[_Found]:
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(facts.st_mode):
        yield from _descend(folder, name, path)
    elif stat.S_ISLNK(facts.st_mode):
        yield path, LINK, facts.st_size, None
    elif stat.S_ISREG(facts.st_mode):
        mode = "100755" if facts.st_mode & 0o100 else "100644"
        content = _read_plain(folder, name) if facts.st_size <= FILE_LIMIT else None
        yield path, mode, facts.st_size, content
    else:
        yield path, "000000", 0, None


def _descend(folder: int, name: str, path: str) -> Iterator[_Found]:
    handle = _open_folder(folder, name)
    if handle is None:
        return
    try:
        names = sorted(os.listdir(handle))  # noqa: PTH208 - a handle, not a path
        if ".git" in names:
            yield path, SUBMODULE, 0, None
            return
        for child in names:
            yield from _visit(handle, child, f"{path}/{child}")
    finally:
        os.close(handle)


def _open_folder(folder: int, name: str) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return None


def _read_plain(folder: int, name: str) -> bytes | None:
    """None for what vanished, became a link, or may not be read: the caller lists it as unread."""
    try:
        # O_NONBLOCK: should a pipe take the file's place, opening it must not hang.
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        content = opened.read(FILE_LIMIT + 1)
    return content if len(content) <= FILE_LIMIT else None
