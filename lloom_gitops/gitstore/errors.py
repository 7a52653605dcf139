"""What git can refuse or fail at, in our own words; no GitPython or subprocess exception leaves this package."""

from __future__ import annotations

import re

from lloom_gitops.model.errors import Conflict, LloomGitopsError, Refused, Unreachable, UsageError

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


class NotARepository(UsageError):
    """The folder is not the root of a git repository that this user may read (exit 2)."""


class BadRevision(UsageError):
    """A revision or ref name is malformed, unknown, ambiguous or broken (exit 2)."""


class BadPath(UsageError):
    """A path in a commit is absolute, leaves the repository, or is not a plain file there (exit 2)."""


class WorkTreeNotClean(Refused):
    """A work tree has edits that moving it would lose (exit 5)."""


class TooLarge(Refused):
    """A tree or folder is larger than what this program reads (exit 5)."""


class PushRefused(Refused):
    """The remote said no although nobody else had moved the ref (exit 5)."""


class RefLocked(Conflict):
    """Another program holds a ref's lock, or was killed while it did (exit 6)."""


class PublishConflict(Conflict):
    """The branch moved at every attempt and the attempts are used up (exit 6)."""


class LeaseLost(Conflict):
    """The lease is held by somebody else (exit 6)."""


class RemoteUnreachable(Unreachable):
    """The remote did not answer, or not in time (exit 7). Whether a push landed is then unknown."""


class LeaseUnreadable(Unreachable):
    """What the lease's ref holds can't be read (exit 7): nobody may act."""


class GitMissing(Unreachable):
    """There is no `git` command on this machine (exit 7)."""


class GitFailed(LloomGitopsError):
    """git failed in a way that none of the other classes covers: a damaged repository, a full disk (exit 1)."""


def shown(text: bytes, limit: int = 300) -> str:
    """git's own words for a person to read: one line, credentials of URLs left out, no control characters.

    Decisions never rest on it.
    """
    decoded = _CREDENTIALS.sub("***@", text.decode("utf-8", "replace"))
    words = "".join(c if c.isprintable() else " " for c in decoded).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[: limit - 1] + "…"
