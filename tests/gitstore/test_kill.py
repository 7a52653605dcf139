"""kill -9 at any moment: no lock file stays, the repository reads, and the next run goes on by itself."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lloom_gitops.gitstore.command import Git
from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.errors import GitFailed
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.remote import tracking_ref
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain

KILLS = 24

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from lloom_gitops.gitstore.commits import Author, Draft, Identity
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.store import GitStore

store = GitStore(Path(sys.argv[1]))
author = Author(Identity("w", "w@x"), datetime(2026, 1, 1, tzinfo=UTC))
number = int(sys.argv[2]) * 1000
while True:
    number += 1
    draft = Draft({"fleet/status.yaml": str(number).encode()}, CommitMessage(f"apply: {number}"))
    store.publish(lambda tip: draft, author)
    print(number, flush=True)
"""


def _stopped_below(pid: int) -> Iterator[int]:
    """Stops and yields the processes below `pid`, but for the remote's own: a real remote is another machine."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):
            if b"-pack" not in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]:
                os.kill(int(child), signal.SIGSTOP)
                yield int(child)
                yield from _stopped_below(int(child))


def _kill(writer: subprocess.Popen[bytes], room: Path, *, tree: bool) -> None:
    """The writer alone, or it and the git that it is running, as the end of a control group does; then waits until
    what was not killed has ended by itself."""
    os.kill(writer.pid, signal.SIGSTOP)
    for pid in [*(_stopped_below(writer.pid) if tree else ()), writer.pid]:
        os.kill(pid, signal.SIGKILL)
    writer.wait()
    while _at_work(room):
        time.sleep(0.01)


def _at_work(room: Path) -> bool:
    """Whether a process runs in the test's folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(room):
                return True
    return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds child processes through /proc")
@pytest.mark.parametrize("tree", [False, True], ids=["the writer alone", "the writer and its git"])
def test_killed_writers_leave_no_lock_and_a_whole_repository(
    store: GitStore, author: Author, locks: Callable[[], list[str]], git: Plain, room: Path, bare: Path, tree: bool
) -> None:
    """With git killed too, in about one of 100 kills, the lock of a private ref may stay until the next call."""
    for number in range(KILLS // 2):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(store.repo_dir), str(number)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline(), "the writer goes on after every kill"
        time.sleep(0.006 * number)
        _kill(writer, room, tree=tree)
        writer.stdout.close()
        left = [lock for lock in locks() if not tree or "/refs/lloom/" not in lock]
        assert left == []
    tip = store.fetch()
    assert tip is not None
    assert len(store.log(tip)) > KILLS // 2
    store.publish(lambda _: Draft({"fleet/status.yaml": None}, CommitMessage("Clear the status")), author)
    assert locks() == []
    for folder in (store.repo_dir, bare):
        git(folder, "fsck", "--strict", "--no-dangling")


def test_a_lock_that_a_killed_git_left_on_a_private_ref_heals(
    store: GitStore, author: Author, draft: Callable[..., Draft], locks: Callable[[], list[str]]
) -> None:
    lock = store.repo_dir / ".git" / f"{tracking_ref('refs/heads/main')}.lock"
    done = store.publish(lambda _: draft("a", b"x"), author)
    other = GitStore(store.repo_dir)
    assert done.oid is not None
    made = other.commit(done.oid, draft("a", b"y"), author)
    assert made is not None
    lock.touch()
    assert other.update_ref(tracking_ref("refs/heads/main"), made, done.oid)
    lock.touch()
    assert other.fetch() == done.oid
    assert locks() == []


def test_a_call_over_its_time_limit_is_ended_so_that_git_cleans_up(
    store: GitStore, room: Path, locks: Callable[[], list[str]]
) -> None:
    """A hook keeps git busy while it holds a ref's lock; at the limit SIGTERM lets it remove the lock."""
    hook = room / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    lock = store.repo_dir / ".git/refs/heads/x.lock"
    hook.write_text(f"#!/bin/sh\ntest \"$1\" = prepared || exit 0\ncp '{lock}' '{room}/held'\nsleep 60\n")
    hook.chmod(0o755)
    slow = Git(store.repo_dir, store.repo_dir / ".git", local_seconds=0.7)
    with pytest.raises(GitFailed) as told:
        slow.run("-c", f"core.hooksPath={hook.parent}", "update-ref", "refs/heads/x", str(store.tip()))
    assert told.value.code == "gitTimeout"
    assert (room / "held").exists(), "the lock was held when the limit came"
    assert locks() == []
