"""The agent's state folder: what only this machine knows, outside the work tree. One process at a time holds it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from lloom_gitops.model.errors import Conflict

_MEMORY_FILE = "memory.json"
_LOCK_FILE = "lock"


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent keeps from turn to turn.

    `nonce` tells its lease from another's, also after a restart. `applied` is the last commit it applied something of:
    the branch must descend from it. `answered` holds when each node last answered (seconds since 1970, by this
    machine's clock: it must outlive the process, and monotonic time does not).
    """

    nonce: str
    applied: str | None = None
    answered: Mapping[str, float] = {}


class StateFolder:
    """The folder at `path`, made where it is missing (0700). `make_nonce` gives a word that no other agent has."""

    def __init__(self, path: Path, make_nonce: Callable[[], str]) -> None:
        self.path = path
        self._make_nonce = make_nonce

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out; the lock goes with the process, however it ends. Raises `Conflict`."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise Conflict(
                code="agentRunning",
                message=f"another agent works with the state folder {self.path.name}",
                hint="one agent acts at a time",
            ) from error
        try:
            yield
        finally:
            os.close(handle)

    def recall(self) -> Memory:
        """What was remembered; a new memory where there is none that can be read."""
        try:
            return msgspec.json.decode((self.path / _MEMORY_FILE).read_bytes(), type=Memory)
        except (OSError, msgspec.DecodeError):
            return Memory(nonce=self._make_nonce())

    def remember(self, memory: Memory) -> None:
        """Replace what was remembered, by one rename."""
        near = self.path / f"{_MEMORY_FILE}.new"
        handle = os.open(near, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(memory))
            file.flush()
            os.fsync(file.fileno())
        near.replace(self.path / _MEMORY_FILE)
