"""`GitStore`: the fleet repository as the rest of the program sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from lloom_gitops.gitstore import commits, history, remote, revisions, signatures, trees, worktree
from lloom_gitops.gitstore.command import Git
from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.errors import BadRevision, LeaseLost, LeaseUnreadable, PublishConflict, PushRefused
from lloom_gitops.gitstore.history import LoggedCommit
from lloom_gitops.gitstore.lease import (
    LEASE_FILE,
    LEASE_REF,
    LeaseRecord,
    Sighting,
    claim,
    parse_record,
    released,
    sight,
)
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.remote import LostRace, NotTaken, Pushed, PushOutcome, RefUpdate
from lloom_gitops.gitstore.signatures import Signature
from lloom_gitops.gitstore.trees import Tree

PUBLISH_ATTEMPTS = 16
"""Tries of `publish`. At each lost race another writer won, so of n writers at once the last needs at most n."""


@dataclass(frozen=True, slots=True)
class Published:
    """What `publish` did: `oid` is our commit on the remote, or None when there was nothing to change; `tip` is the
    branch as last seen, with our commit; `attempts` counts the pushes."""

    oid: str | None
    tip: str | None
    attempts: int


class GitStore:
    """A clone of the fleet repository and its remote.

    `repo_dir` is the root of the clone, `branch` the protected branch's short name. Nothing is read before the first
    call; each may raise `NotARepository`. Reading and committing need no network; `fetch`, `push` and what builds on
    them say so. No call touches the work tree, but `fast_forward_worktree` and `commit_to_head`'s index.
    """

    def __init__(
        self, repo_dir: Path, remote: str = "origin", branch: str = "main", *, network_seconds: float = 120.0
    ) -> None:
        if not remote or remote.startswith("-"):
            raise BadRevision(code="badRemote", message=f"{remote!r} is not the name of a remote")
        self.repo_dir = repo_dir
        self.remote = remote
        self.branch_ref = revisions.check_ref(f"refs/heads/{branch}")
        self._network_seconds = network_seconds

    # Reading

    def head(self) -> str | None:
        """The commit that is checked out; None on a branch without commits."""
        branch = self.checked_out()
        return self.read_ref(branch) if branch else self.resolve("HEAD")

    def checked_out(self) -> str | None:
        """The full name of the branch that is checked out; None for a detached HEAD."""
        return revisions.checked_out(self._git)

    def resolve(self, rev: str) -> str:
        """The commit that `rev` names; raises `BadRevision`."""
        return revisions.resolve(self._git, rev)

    def read_ref(self, ref: str) -> str | None:
        """What a full ref name holds, None where it is absent; raises `BadRevision` where it is damaged."""
        return revisions.read_ref(self._git, ref)

    def tip(self, ref: str | None = None) -> str | None:
        """The remote's `ref` (the branch by default) as of the last `fetch`; no network."""
        return self.read_ref(remote.tracking_ref(ref or self.branch_ref))

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `newer` descends from `older`, or is it."""
        return (
            self._git.run("merge-base", "--is-ancestor", self.resolve(older), self.resolve(newer), ok=(0, 1)).code == 0
        )

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor, or None when there is none."""
        return self._git.run("merge-base", self.resolve(one), self.resolve(other), ok=(0, 1)).line or None

    def is_shallow(self) -> bool:
        """Whether history was cut on cloning: then a plan's authenticity can't be told."""
        return self._git.run("rev-parse", "--is-shallow-repository").line == "true"

    def read_tree(self, rev: str, prefixes: Sequence[str] = ()) -> Tree:
        """Files of a commit below `prefixes` (none: all); links and submodules are listed, not read."""
        return trees.read_tree(self._git, rev, prefixes)

    def read_file(self, rev: str, path: str) -> bytes | None:
        """One file of a commit, or None where it has no such plain file."""
        return trees.read_file(self._git, rev, path)

    def read_worktree(self, prefixes: Sequence[str]) -> Tree:
        """The same as `read_tree` from the work tree on disk, edits and untracked files included."""
        return trees.read_folder(self.repo_dir, prefixes, self._located[1])

    def log(
        self, rev: str, paths: Sequence[str] = (), *, limit: int | None = None, first_parent: bool = False
    ) -> list[LoggedCommit]:
        """Commits reachable from `rev`, newest first; with `paths` those that changed something there."""
        return history.log(self._git, rev, paths, limit=limit, first_parent=first_parent)

    def commits_touching(self, rev: str, prefixes: Sequence[str]) -> list[str]:
        """All commits, side branches included, that changed something below `prefixes`, newest first."""
        return history.commits_touching(self._git, rev, prefixes)

    def history_of(self, rev: str, path: str) -> list[tuple[str, str]]:
        """Each (commit, blob id) at which a file changed, newest first."""
        return history.history_of(self._git, rev, path)

    def contents_of(self, rev: str, path: str) -> list[tuple[str, bytes]]:
        """Each (commit, content) at which a file changed, newest first."""
        changes = self.history_of(rev, path)
        contents = trees.read_blobs(self._git, (blob for _, blob in changes))
        return [(commit, contents[blob]) for commit, blob in changes]

    def find_content(self, rev: str, path: str, matches: Callable[[bytes], bool]) -> tuple[str, bytes] | None:
        """The newest (commit, content) of a file for which `matches` holds."""
        return history.find_content(self._git, rev, path, matches)

    def signature(self, rev: str, allowed_signers: bytes) -> Signature:
        """Who signed a commit, judged by the signers that the caller names; see `signatures.read_signature`."""
        return signatures.read_signature(self._git, rev, allowed_signers)

    # Writing, local

    def commit(self, parent: str | None, draft: Draft, author: Author) -> str | None:
        """A commit on top of `parent`, referenced by nothing yet; None if it would change no file."""
        return commits.write_commit(self._git, self._located[1], parent, draft, author)

    def update_ref(self, ref: str, new: str, old: str | None) -> bool:
        """Sets a local ref if it still holds `old` (None: absent); False if it does not."""
        return revisions.update_ref(self._git, ref, new, old)

    def commit_to_head(self, draft: Draft, author: Author) -> str | None:
        """A person's command commits files that it edited in place onto the branch that is checked out."""
        return worktree.commit_to_head(self._git, self._located[1], draft, author)

    def person(self, when: datetime) -> Author:
        """The person at work here, for their own commits; see `worktree.person`."""
        return worktree.person(self._git, when)

    def fast_forward_worktree(self, target: str) -> bool:
        """Moves the checked-out branch and a clean work tree forward to `target`; never loses an edit."""
        return worktree.fast_forward_worktree(self._git, self.branch_ref, target)

    # The remote

    def fetch(self, *refs: str) -> str | None:
        """Fetches the branch and `refs` (full names) and returns the branch's new tip, None where the remote has no
        such branch. One network call. Raises `RemoteUnreachable`."""
        wanted = list(dict.fromkeys((self.branch_ref, *refs)))
        return remote.fetch(self._git, self.remote, wanted).get(self.branch_ref)

    def list_remote(self, refs: Iterable[str]) -> dict[str, str]:
        """What refs of the remote hold now, without fetching. One network call."""
        return remote.list_remote(self._git, self.remote, refs)

    def push(self, updates: Sequence[RefUpdate], *, rewind: bool = False) -> PushOutcome:
        """Sets refs of the remote by compare-and-swap, all or none; see `remote.push`."""
        return remote.push(self._git, self.remote, updates, rewind=rewind)

    def publish(
        self,
        build: Callable[[str | None], Draft | None],
        author: Author,
        *,
        ref: str | None = None,
        attempts: int = PUBLISH_ATTEMPTS,
    ) -> Published:
        """Fetches, lets `build` draft a commit upon the freshest tip, and pushes it; again from the start on a lost
        race. `build` gets the tip (None: no such branch) and returns None when nothing is to be written.

        Raises `PublishConflict` when `attempts` are used up, `PushRefused` when the remote refuses twice upon the same
        tip (one refusal may be its own lock, held by another writer), `RemoteUnreachable`.
        """
        ref = ref or self.branch_ref
        refused_at: tuple[str | None] | None = None
        made: list[str] = []
        for attempt in range(attempts):
            tip = self._fetch_one(ref)
            landed = next((oid for oid in made if tip is not None and self.is_ancestor(oid, tip)), None)
            if landed is not None:
                # An earlier push landed although its answer was lost, and others have pushed since.
                return Published(landed, tip, attempt)
            draft = build(tip)
            oid = None if draft is None else self.commit(tip, draft, author)
            if oid is None:
                return Published(None, tip, attempt)
            made.append(oid)
            outcome = self.push([RefUpdate(ref, oid, tip)])
            if isinstance(outcome, Pushed):
                self.update_ref(remote.tracking_ref(ref), oid, tip)
                return Published(oid, oid, attempt + 1)
            if isinstance(outcome, NotTaken):
                if refused_at == (tip,):
                    raise _refused(ref, outcome)
                refused_at = (tip,)
        raise PublishConflict(
            code="publishConflict",
            message=f"{ref} moved at each of {attempts} attempts to write to it",
            hint="see who else writes there: only the agent should",
        )

    def write_note_ref(self, ref: str, draft: Draft, author: Author) -> str | None:
        """Puts a snapshot of a few files on a ref of our own (`refs/lloom/agent/NAME`); its id, or None if the ref
        holds the same files already. It has no parent: progress leaves no history behind.

        Raises `PublishConflict` when another process wrote the ref meanwhile.
        """
        old = self._fetch_one(ref)
        new = self.commit(None, draft, author)
        if new is None or (old is not None and self._tree(old) == self._tree(new)):
            return None
        outcome = self.push([RefUpdate(ref, new, old)], rewind=True)
        if isinstance(outcome, LostRace):
            raise PublishConflict(code="noteConflict", message=f"another process wrote {ref} meanwhile")
        if isinstance(outcome, NotTaken):
            raise _refused(ref, outcome)
        return new

    # The lease

    def sight_lease(self, before: Sighting | None, now: float) -> Sighting:
        """Looks at the lease. `now` is the caller's monotonic time in seconds, taken before the call.

        Raises `RemoteUnreachable`, or `LeaseUnreadable`: then nobody may act.
        """
        oid = self.list_remote([LEASE_REF]).get(LEASE_REF)
        if oid is None or (before is not None and before.oid == oid):
            return sight(before, oid, before.record if before is not None and oid is not None else None, now)
        fetched = self._fetch_one(LEASE_REF)
        content = None if fetched is None else self.read_file(fetched, LEASE_FILE)
        record = None if content is None else parse_record(content)
        if record is None:
            raise LeaseUnreadable(
                code="leaseUnreadable",
                message=f"{LEASE_REF} of {self.remote} holds no lease that this version can read",
                hint=f"with every agent stopped, remove it: git push {self.remote} :{LEASE_REF}",
            )
        return sight(before, fetched, record, now)

    def take_lease(
        self, seen: Sighting, holder: str, nonce: str, ttl_seconds: float, now: float, author: Author
    ) -> Sighting:
        """Takes or renews the lease over what was `seen`; the new sighting, whose time runs from `now`, taken by the
        caller before the call. Raises `LeaseLost` while another holds it or when another was faster."""
        record = claim(seen, holder, nonce, ttl_seconds, now)
        if record is None:
            held_by = seen.record.holder if seen.record is not None else "another"
            raise LeaseLost(
                code="leaseHeld", message=f"the lease is held by {held_by!r}", hint="one agent acts at a time"
            )
        return Sighting(self._push_lease(seen.oid, record, author), record, now)

    def release_lease(self, mine: Sighting, author: Author) -> None:
        """Gives up a lease that `take_lease` returned: it is free at once. Raises `LeaseLost` if it was not ours."""
        if mine.record is not None:
            self._push_lease(mine.oid, released(mine.record), author)

    def _push_lease(self, old: str | None, record: LeaseRecord, author: Author) -> str:
        subject = f"lease: {record.holder}, epoch {record.epoch}"
        draft = Draft({LEASE_FILE: record.render()}, CommitMessage(subject, trailers={"Agent": record.holder}))
        new = self.commit(None, draft, author)
        assert new is not None  # a root commit is never left out
        outcome = self.push([RefUpdate(LEASE_REF, new, old)], rewind=True)
        if isinstance(outcome, LostRace):
            raise LeaseLost(
                code="leaseRace", message="another process took the lease first", hint="one agent acts at a time"
            )
        if isinstance(outcome, NotTaken):
            raise _refused(LEASE_REF, outcome)
        return new

    def _fetch_one(self, ref: str) -> str | None:
        return remote.fetch(self._git, self.remote, [ref]).get(ref)

    def _tree(self, oid: str) -> str:
        return self._git.run("rev-parse", f"{oid}^{{tree}}").line

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return revisions.locate(self.repo_dir)

    @cached_property
    def _git(self) -> Git:
        return Git(self.repo_dir, self._located[0], network_seconds=self._network_seconds)


def _refused(ref: str, outcome: NotTaken) -> PushRefused:
    return PushRefused(
        code="pushRefused",
        message=f"the remote refused the push to {ref}: {outcome.says}",
        hint="look at its branch protection and at what this key may write",
    )
