"""The journal of the apply in hand: append-only lines, on disk before anything that depends on them goes on.

It lies in the agent's own state folder, never in the work tree. Reading is a pure parse; a torn last line (the power
went while it was written) counts as not written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from lloom_gitops.model.errors import Refused
from lloom_gitops.reconcile.machine_events import Entry

FILE = "journal.jsonl"


class ApplyKey(msgspec.Struct, frozen=True, kw_only=True):
    """Which apply an entry belongs to: the plan, and the status that stood when it began. The same plan can be applied
    twice, a result apart; what the first apply verified says nothing about the second."""

    plan: str
    since: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the file."""

    apply: ApplyKey
    entry: Entry


_decode = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode


def parse(content: bytes) -> tuple[tuple[Line, ...], int]:
    """The lines of a journal, and how many bytes of `content` they take; a torn last line is left out.

    Raises `Refused` (`journalDamaged`) when a line before the last can't be read: then nobody knows what was done.
    """
    lines: list[Line] = []
    good = 0
    while (end := content.find(b"\n", good)) >= 0:
        try:
            lines.append(_decode(content[good:end]))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if end + 1 == len(content):
                break
            raise Refused(
                code="journalDamaged",
                message=f"the journal can't be read from byte {good} on",
                hint=f"see what the gateways run, then move {FILE} out of the agent's state folder",
            ) from error
        good = end + 1
    return tuple(lines), good


class Journal:
    """The journal file in a state folder, which is made where it is missing (0700; the file 0600)."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def begin(self, apply: ApplyKey) -> tuple[Entry, ...]:
        """What was written of this apply before; entries of another one are dropped (a new apply observes anew)."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content = self._path.read_bytes() if self._path.exists() else b""
        lines, good = parse(content)
        mine = tuple(line.entry for line in lines if line.apply == apply)
        kept = good if len(mine) == len(lines) else 0
        with self._opened() as file:
            file.truncate(kept)
            os.fsync(file.fileno())
        _sync_folder(self._path.parent)
        return mine if kept else ()

    def append(self, apply: ApplyKey, entry: Entry) -> None:
        """Write one entry; it is on the disk when this returns."""
        with self._opened() as file:
            file.write(_encode(Line(apply=apply, entry=entry)) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def end(self) -> None:
        """The apply's result is written back: its entries are of no more use."""
        self._path.unlink(missing_ok=True)
        if self._path.parent.exists():
            _sync_folder(self._path.parent)

    def _opened(self) -> BinaryIO:
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(handle, "ab")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
