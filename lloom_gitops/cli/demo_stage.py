"""What the demo plays on: its folder and environment, the commands it types, and an end that leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from lloom_gitops.cli.output import put, tell
from lloom_gitops.model.errors import LloomGitopsError

_GRACE_SECONDS = 5.0
_CLOSED_PIPE = 141
_GIT_CONFIG = """[user]
\tname = Fleet Owner
\temail = owner@fleet.example
[init]
\tdefaultBranch = main
[core]
\thooksPath = /dev/null
\tpager = cat
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
"""A person's settings of their own. No pager, and no maintenance, which git would leave running in the background."""


def failed(message: str) -> LloomGitopsError:
    """The demo did not come to its end: a bug, as nothing of it depends on anything outside."""
    return LloomGitopsError(code="demoFailed", message=message, hint="`lloom-gitops demo --keep` keeps the folder")


class Interrupts:
    """SIGINT, SIGTERM and SIGHUP as one KeyboardInterrupt, raised only while armed: nothing breaks into the tidying."""

    def __init__(self) -> None:
        self._armed = False
        self._asked = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Signals are noted; those that were ignored before (nohup, background jobs) stay ignored."""
        numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        before = {number: signal.getsignal(number) for number in numbers}
        for number in numbers:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, self._on)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def armed(self) -> Iterator[None]:
        """The block ends at once when a signal comes, or came already."""
        self._armed = True
        try:
            if self._asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._armed = False

    def _on(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True
        if self._armed:
            self._armed = False
            raise KeyboardInterrupt


@contextmanager
def temporary_folder(*, keep: bool) -> Iterator[Path]:
    """A folder under the system's temporary one; gone when the block ends, unless it is kept."""
    folder = Path(tempfile.mkdtemp(prefix="lloom-gitops-demo-")).resolve()
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder)


def environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without settings of git and of ours; home, git's configuration and state in `folder`."""
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(_GIT_CONFIG)
    ours = ("GIT_", "LLOOM_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {
        **kept,
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **more,
    }


class Shell:
    """Types commands, as a person would, and shows them. What they print goes to stdout, with `json` to stderr."""

    def __init__(self, env: Mapping[str, str], *, json: bool, color: bool) -> None:
        self._env = dict(env)
        self._json = json
        self._color = color

    def say(self, text: str) -> None:
        """A line of the story."""
        (tell if self._json else put)(text)

    def ours(self, where: Path, *words: str, show: bool = True) -> None:
        """One of our commands in the clone `where`; with `show` False only its messages are seen."""
        self.say(f"  $ lloom-gitops {' '.join(words)}" + ("" if show else " > /dev/null"))
        plain = [] if self._color else ["--no-color"]
        argv = [sys.executable, "-m", "lloom_gitops.cli.main", "--repo", str(where), *plain, *words]
        code = self._run(argv, None if show else subprocess.DEVNULL)
        if code == _CLOSED_PIPE:
            raise BrokenPipeError
        if code != 0:
            raise failed(f"`lloom-gitops {' '.join(words)}` ended with {code}")

    def git(self, where: Path, *words: str, show: bool = False) -> None:
        """git in `where`; what it prints is seen with `show`, or when it fails."""
        self.say(f"  $ git {' '.join(word if ' ' not in word else repr(word) for word in words)}")
        argv = ["git", "-C", str(where), *words]
        if show:
            code, said = self._run(argv, None), ""
        else:
            done = subprocess.run(
                argv, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            code, said = done.returncode, done.stderr.strip()
        if code != 0:
            raise failed(f"`git {words[0]}` ended with {code}" + (f": {said}" if said else ""))

    def _run(self, argv: list[str], out: int | None) -> int:
        """The exit code. A command that is broken off has ended when this raises."""
        sys.stdout.flush()
        sys.stderr.flush()
        if out is None and self._json:
            out = sys.stderr.fileno()
        process = subprocess.Popen(argv, env=self._env, stdin=subprocess.DEVNULL, stdout=out)
        try:
            return process.wait()
        except BaseException:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asked first, so that an agent gives its lease back; then made to."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.terminate()
        process.wait(_GRACE_SECONDS)
        return
    process.kill()
    process.wait()
