"""Runs `git` with a clean environment, a time limit, and an end that leaves no lock file behind.

The command line is used directly, not through GitPython: importing that spawns git twice and adds 35 to 70 ms to a
start, a call costs the same 1.2 ms either way, and its wrapper can't take `GIT_DIR` and the like out of the
environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lloom_gitops.gitstore.errors import GitFailed, GitMissing, RemoteUnreachable, shown

# Of git's own variables only those that say how to reach a remote and where the user's configuration lies come
# through; all others (GIT_DIR, GIT_INDEX_FILE, GIT_TRACE, ...) would point at another repository or change the output.
_KEPT = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_EXEC_PATH",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
    }
)
_KEPT_PREFIXES = ("GIT_SSL_", "GIT_PROXY_SSL_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

_ALWAYS = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "TZ": "UTC",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # `status` must not write the index
    "GIT_NO_REPLACE_OBJECTS": "1",  # history is judged as committed, not as replaced
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "SSH_ASKPASS_REQUIRE": "never",
}

# Hooks and background maintenance are other people's programs: they could hold locks or write where we don't look.
# The lock timeout lets git itself wait for a ref that another process is just writing (its default is 0.1 s).
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.warnAmbiguousRefs=false",
    "core.filesRefLockTimeout=1000",
    "gc.auto=0",
    "maintenance.auto=false",
    "log.showSignature=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "push.recurseSubmodules=no",
    "push.followTags=false",
    "push.gpgSign=false",
    "advice.detachedHead=false",
)

_GRACE_SECONDS = 5.0


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without what would redirect git or change the form of its output."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("GIT_", "LC_")) or name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }
    return kept | _ALWAYS


@dataclass(frozen=True, slots=True)
class Ended:
    """A git process that ended: its exit code and what it wrote."""

    code: int
    out: bytes
    err: bytes

    @property
    def line(self) -> str:
        """stdout as one word or line."""
        return self.out.decode("utf-8", "surrogateescape").rstrip("\n")


class Git:
    """The `git` command, bound to a git folder (found by `repository.locate`), argv only.

    `local_seconds` and `network_seconds` limit a call; a call over its limit is ended gently, so that git removes its
    own lock files.
    """

    def __init__(
        self,
        folder: Path,
        git_dir: Path | None,
        *,
        local_seconds: float = 120.0,
        network_seconds: float = 120.0,
    ) -> None:
        self.folder = folder
        self.git_dir = git_dir
        self._local_seconds = local_seconds
        self._network_seconds = network_seconds

    def run(
        self,
        *args: str,
        given: bytes = b"",
        env: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
        network: bool = False,
        folder: Path | None = None,
    ) -> Ended:
        """One git call; raises `GitFailed` unless it ends with a code in `ok`, `RemoteUnreachable` over its time."""
        argv = ["git", *(word for setting in _SETTINGS for word in ("-c", setting))]
        if self.git_dir is not None:
            argv.append(f"--git-dir={self.git_dir}")
        ended = self._call([*argv, *args], given, env or {}, folder or self.folder, network)
        if ended.code not in ok:
            raise GitFailed(
                code="gitFailed",
                message=f"git {args[0]} failed ({ended.code}): {shown(ended.err) or 'it said nothing'}",
                hint="run `git fsck` in the repository, and look at the space left on its disk",
            )
        return ended

    def _call(self, argv: list[str], given: bytes, env: Mapping[str, str], folder: Path, network: bool) -> Ended:
        # A session of its own: a kill or Ctrl-C meant for us does not hit git between taking and dropping a lock,
        # and there is no terminal that ssh could ask for a password.
        try:
            process = subprocess.Popen(
                argv,
                cwd=folder,
                env={**clean_environment(os.environ), **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            if folder.is_dir():
                raise GitMissing(code="gitMissing", message="there is no `git` command", hint="install git") from error
            raise GitFailed(code="gitFailed", message=f"{folder} is not a folder") from error
        except OSError as error:
            raise GitFailed(code="gitFailed", message=f"git can't be started: {error.strerror}") from error
        limit = self._network_seconds if network else self._local_seconds
        try:
            out, err = process.communicate(given, timeout=limit)
        except subprocess.TimeoutExpired as error:
            _end(process)
            if network:
                raise RemoteUnreachable(
                    code="remoteTimeout", message=f"the remote did not answer within {limit:g} s"
                ) from error
            raise GitFailed(code="gitTimeout", message=f"git took longer than {limit:g} s") from error
        except BaseException:
            _end(process)
            raise
        return Ended(process.returncode, out, err)


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM first: git's handler removes its lock files; SIGKILL only for what ignores it."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sent)
        try:
            process.communicate(timeout=_GRACE_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue
        except ValueError:  # the pipes are closed already
            process.wait()
            return
