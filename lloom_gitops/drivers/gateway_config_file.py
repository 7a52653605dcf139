"""Atomic edits of a JSON file that somebody else may rewrite at the same time."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class FileFault(Exception):
    """The file can't be read or edited as it is; `code` is a closed word, the text has no content of the file in it."""

    def __init__(self, code: str, says: str) -> None:
        super().__init__(says)
        self.code = code
        self.says = says


@dataclass(frozen=True)
class Content:
    """What was read: exact bytes, and the file's mode and owner for its successor."""

    raw: bytes
    mode: int
    uid: int
    gid: int

    def document(self) -> dict[str, Any]:
        """The JSON object, keys in their order. Duplicate keys are refused: a rewrite would lose one of them."""
        try:
            value = json.loads(self.raw, object_pairs_hook=_unique, parse_constant=_no_number)
        except (ValueError, RecursionError) as fault:
            raise FileFault("configInvalid", "the config file is not valid JSON") from fault
        if not isinstance(value, dict):
            raise FileFault("configInvalid", "the config file holds no JSON object")
        return value


def read_content(path: Path) -> Content:
    """Read a regular file; a symbolic link is refused, because a rename would put a file in its place."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as fault:
        raise FileFault("configMissing", "the config file is not there") from fault
    except OSError as fault:
        if path.is_symlink():
            raise FileFault("configSymlink", "the config file is a symbolic link") from fault
        raise FileFault("configUnreadable", "the config file can't be opened") from fault
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise FileFault("configUnreadable", "the config file is no regular file")
        return Content(raw=file.read(), mode=stat.S_IMODE(status.st_mode), uid=status.st_uid, gid=status.st_gid)


def render(document: dict[str, Any], like: Content) -> bytes:
    """Two-space JSON as the gateway itself writes it; a final line break only if the file had one."""
    end = "\n" if like.raw.endswith(b"\n") else ""
    try:
        return (json.dumps(document, indent=2, ensure_ascii=False) + end).encode()
    except UnicodeEncodeError as fault:
        raise FileFault("configInvalid", "the config file has text that is no Unicode") from fault


def replace_content(path: Path, before: Content, after: bytes) -> None:
    """Put `after` in the place of `before` in one step, mode and owner kept, safe across a power loss.

    Raises FileFault `configChanged` when the file is no longer `before`. Between that look and the rename lies an
    instant in which another writer could be overwritten; the gateway offers no lock against it.
    """
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            file.flush()
            _keep_owner(file.fileno(), before)
            os.fchmod(file.fileno(), before.mode)
            os.fsync(file.fileno())
        if read_content(path).raw != before.raw:
            raise FileFault("configChanged", "the config file was changed by somebody else meanwhile")
        temporary.rename(path)
        temporary = None
        _sync_folder(path.parent)
    except OSError as fault:
        raise FileFault("configUnwritable", "the config file can't be replaced") from fault
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _keep_owner(handle: int, before: Content) -> None:
    """A gateway that runs as somebody else must still be able to read its file."""
    try:
        os.fchown(handle, before.uid, before.gid)
    except PermissionError as fault:
        if before.uid != os.geteuid():
            raise FileFault("configUnwritable", "the config file belongs to somebody else") from fault


def _no_number(name: str) -> None:
    raise FileFault("configInvalid", f"the config file holds {name}, which is no JSON")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FileFault("configInvalid", "the config file has a duplicate key")
    return found
