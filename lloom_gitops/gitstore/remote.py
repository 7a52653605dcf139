"""The remote: fetch into private refs, push by compare-and-swap, and what became of a push, told from refs alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lloom_gitops.gitstore.command import Ended, Git
from lloom_gitops.gitstore.errors import PushRefused, RemoteUnreachable, shown
from lloom_gitops.gitstore.revisions import PRIVATE, check_ref, drop_dead_locks, is_oid, read_ref


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One ref of the remote to set: `new` replaces `old` (None: the ref must not exist yet). `new` None deletes it."""

    ref: str
    new: str | None
    old: str | None


@dataclass(frozen=True, slots=True)
class Pushed:
    """Every ref holds what we sent."""


@dataclass(frozen=True, slots=True)
class LostRace:
    """Nothing of ours landed: `ref` holds `current` (None: it is gone), not what we expected."""

    ref: str
    current: str | None


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Nothing landed though no ref had moved: the remote refused. `says` is its own text, for people only."""

    says: str


PushOutcome = Pushed | LostRace | NotTaken


def tracking_ref(ref: str) -> str:
    """Where the remote's `ref` is kept in this repository: `refs/heads/main` in `refs/lloom/remote/heads/main`."""
    return f"{PRIVATE}remote/{check_ref(ref).removeprefix('refs/')}"


def list_remote(git: Git, remote: str, refs: Iterable[str]) -> dict[str, str]:
    """What the remote's refs hold now, by full name; absent refs are left out. One network call.

    Raises `RemoteUnreachable`, also when the remote is not there or refuses us: it can't be told apart reliably.
    """
    wanted = [check_ref(ref) for ref in refs]
    ended = git.run("ls-remote", "--quiet", "--", remote, *wanted, ok=range(256), network=True)
    if ended.code:
        raise _unreachable(remote, ended)
    found = {}
    for line in ended.out.decode("utf-8", "surrogateescape").splitlines():
        oid, _, ref = line.partition("\t")
        # ls-remote matches the tail of a name: x/refs/heads/main would answer for refs/heads/main
        if ref in wanted and is_oid(oid):
            found[ref] = oid
    return found


def fetch(git: Git, remote: str, refs: Sequence[str]) -> dict[str, str]:
    """Fetches refs (full names) into their `tracking_ref`; returns what each now holds, absent ones left out.

    One network call; two more only when one of the refs is missing there. Neither the work tree, branches, tags,
    `FETCH_HEAD` nor `refs/remotes` are written. Raises `RemoteUnreachable`.
    """
    ended = _fetch(git, remote, refs)
    if ended.code and drop_dead_locks(git, tuple(tracking_ref(ref) for ref in refs)):
        ended = _fetch(git, remote, refs)
    if ended.code == 0:
        return _held(git, refs)
    there = list_remote(git, remote, refs)
    if all(ref in there for ref in refs):
        raise RemoteUnreachable(code="fetchFailed", message=f"{remote} can't be fetched: {shown(ended.err)}")
    for ref in set(refs) - set(there):
        _forget(git, tracking_ref(ref))
    return fetch(git, remote, sorted(there)) if there else {}


def push(git: Git, remote: str, updates: Sequence[RefUpdate], *, rewind: bool = False) -> PushOutcome:
    """Sets the remote's refs, all or none, each only if it still holds its `old`.

    Without `rewind` each `new` must descend from its `old`, so a push never takes a commit out of a branch; `rewind`
    is for refs that only we write. Raises `RemoteUnreachable` when the remote can't say what became of it.
    """
    for update in updates:
        check_ref(update.ref)
        if not rewind:
            _check_forward(git, update)
    leases = [f"--force-with-lease={update.ref}:{update.old or ''}" for update in updates]
    specs = [f"{update.new or ''}:{update.ref}" for update in updates]
    # By address, not by name: for a named remote git also moves `refs/remotes`, and a git that is killed meanwhile
    # leaves a lock there that is not ours to remove.
    to = _address(git, remote)
    ended = git.run(
        "push", "--porcelain", "--atomic", "--no-verify", *leases, "--", to, *specs, ok=range(256), network=True
    )
    if ended.code == 0:
        return Pushed()
    # The exit code and text of a failed push don't tell a lost race from a refusal, nor whether a push whose
    # connection broke had landed. The refs do.
    there = list_remote(git, remote, [update.ref for update in updates])
    if all(there.get(update.ref) == update.new for update in updates):
        return Pushed()
    for update in updates:
        if there.get(update.ref) != update.old:
            return LostRace(update.ref, there.get(update.ref))
    return NotTaken(shown(ended.err))


def _check_forward(git: Git, update: RefUpdate) -> None:
    if update.new is None:
        raise ValueError("to delete a ref is to rewind it")
    if update.old is None:
        return
    ended = git.run("merge-base", "--is-ancestor", update.old, update.new, ok=(0, 1, 128))
    if ended.code:
        raise PushRefused(
            code="notForward",
            message=f"{update.new[:12]} does not descend from {update.old[:12]}, which {update.ref} holds",
            hint="fetch, and make the commit again on top of it",
        )


def _address(git: Git, remote: str) -> str:
    """Where a remote is pushed to; what is no remote's name is an address itself."""
    ended = git.run("remote", "get-url", "--push", "--", remote, ok=range(256))
    return ended.out.decode("utf-8", "surrogateescape").splitlines()[0] if ended.code == 0 else remote


def _fetch(git: Git, remote: str, refs: Sequence[str]) -> Ended:
    specs = [f"+{ref}:{tracking_ref(ref)}" for ref in refs]
    return git.run(
        *(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--refmap=",
            "--no-prune",
        ),
        *("--", remote, *specs),
        ok=range(256),
        network=True,
    )


def _held(git: Git, refs: Sequence[str]) -> dict[str, str]:
    found = ((ref, read_ref(git, tracking_ref(ref))) for ref in refs)
    return {ref: oid for ref, oid in found if oid is not None}


def _forget(git: Git, ref: str) -> None:
    held = read_ref(git, ref)
    if held is not None:
        git.run("update-ref", "--no-deref", "-d", ref, held)


def _unreachable(remote: str, ended: Ended) -> RemoteUnreachable:
    return RemoteUnreachable(
        code="remoteUnreachable",
        message=f"the remote {remote} can't be reached: {shown(ended.err) or 'it said nothing'}",
        hint="look at the network, the remote's address and the credentials; `git fetch` by hand shows more",
    )
