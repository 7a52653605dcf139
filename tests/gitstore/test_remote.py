"""The remote: fetches that touch nothing of a person's, pushes by compare-and-swap, outcomes told by refs alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lloom_gitops.gitstore import remote as remote_module
from lloom_gitops.gitstore.commits import Author, Draft, Identity
from lloom_gitops.gitstore.errors import PublishConflict, PushRefused, RemoteUnreachable
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.remote import LostRace, NotTaken, Pushed, RefUpdate
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain

Drafts = Callable[..., Draft]
MAIN = "refs/heads/main"


def _hook(bare: Path, text: str, name: str = "pre-receive") -> None:
    hook = bare / "hooks" / name
    hook.write_text(f"#!/bin/sh\n{text}\n")
    hook.chmod(0o755)


def _person_pushes(seeded: Path, git: Plain, text: str) -> str:
    git(seeded, "pull", "-q", "--rebase", "origin", "main")
    (seeded / "fleet/pool.yaml").write_text(text)
    git(seeded, "commit", "-q", "-a", "-m", f"Set {text}")
    git(seeded, "push", "-q", "origin", "HEAD:main")
    return git(seeded, "rev-parse", "HEAD")


def test_fetch_is_one_network_call_and_touches_nothing_of_a_persons(
    store: GitStore, seeded: Path, git: Plain, calls: list[tuple[str, bool]]
) -> None:
    git(seeded, "tag", "v1")
    git(seeded, "push", "-q", "origin", "v1")
    new = _person_pushes(seeded, git, "two")
    (store.repo_dir / "fleet/pool.yaml").write_text("a person's edit\n")
    before = git(store.repo_dir, "for-each-ref", "refs/heads", "refs/tags", "refs/remotes")
    calls.clear()
    assert store.fetch() == new == store.tip()
    assert sum(network for _, network in calls) == 1
    assert git(store.repo_dir, "for-each-ref", "refs/heads", "refs/tags", "refs/remotes") == before
    assert not (store.repo_dir / ".git/FETCH_HEAD").exists()
    assert (store.repo_dir / "fleet/pool.yaml").read_text() == "a person's edit\n"


def test_a_branch_that_is_gone_is_absent_not_unreachable(store: GitStore, bare: Path, git: Plain) -> None:
    results = "refs/heads/results"
    tip = store.tip()
    assert store.fetch(results) == tip
    assert store.tip(results) is None
    git(bare, "update-ref", results, str(tip))
    store.fetch(results)
    assert store.tip(results) == tip
    git(bare, "update-ref", "-d", results)
    assert store.fetch(results) == tip
    assert store.tip(results) is None


@pytest.mark.parametrize("address", ["/nowhere/at all", "http://127.0.0.1:1/x.git", "ssh://127.0.0.1:1/x"])
def test_an_unreachable_remote_is_said_so_by_every_call(
    store: GitStore, git: Plain, author: Author, draft: Drafts, address: str
) -> None:
    git(store.repo_dir, "remote", "set-url", "origin", address)
    made = store.commit(store.tip(), draft("a", b"x"), author)
    for call in (
        store.fetch,
        lambda: store.list_remote([MAIN]),
        lambda: store.push([RefUpdate(MAIN, made, store.tip())]),
        lambda: store.publish(lambda _: draft("a", b"x"), author),
        lambda: store.sight_lease(None, 0.0),
    ):
        with pytest.raises(RemoteUnreachable) as told:
            call()
        assert told.value.exit_code == 7


def test_a_remote_that_hangs_ends_at_the_time_limit(clone: Callable[[str], Path], git: Plain, seeded: Path) -> None:
    folder = clone("slow")
    git(folder, "config", "remote.origin.uploadpack", "sleep 60; git-upload-pack")
    with pytest.raises(RemoteUnreachable) as told:
        GitStore(folder, network_seconds=0.5).fetch()
    assert told.value.code == "remoteTimeout"


def test_credentials_of_an_address_are_not_shown(store: GitStore, git: Plain) -> None:
    git(store.repo_dir, "remote", "set-url", "origin", "http://bot:s3cret@127.0.0.1:1/x.git")
    with pytest.raises(RemoteUnreachable) as told:
        store.fetch()
    assert "127.0.0.1" in told.value.message
    assert "s3cret" not in told.value.message


def test_a_lost_race_names_what_the_ref_holds(
    store: GitStore, seeded: Path, git: Plain, author: Author, draft: Drafts
) -> None:
    tip = store.tip()
    made = store.commit(tip, draft("fleet/plan.yaml", b"x"), author)
    theirs = _person_pushes(seeded, git, "theirs")
    assert store.push([RefUpdate(MAIN, made, tip)]) == LostRace(MAIN, theirs)
    assert store.push([RefUpdate("refs/heads/x", made, tip)]) == LostRace("refs/heads/x", None)
    assert store.push([RefUpdate(MAIN, made, None)]) == LostRace(MAIN, theirs)
    assert store.list_remote([MAIN]) == {MAIN: theirs}


def test_several_refs_land_together_or_not_at_all(
    store: GitStore, seeded: Path, git: Plain, author: Author, draft: Drafts
) -> None:
    tip = store.tip()
    made = store.commit(tip, draft("fleet/plan.yaml", b"x"), author)
    note = RefUpdate("refs/lloom/agent/head", made, None)
    theirs = _person_pushes(seeded, git, "theirs")
    assert store.push([note, RefUpdate(MAIN, made, tip)]) == LostRace(MAIN, theirs)
    assert store.list_remote([note.ref]) == {}
    made = store.commit(store.fetch(), draft("fleet/plan.yaml", b"x"), author)
    assert store.push([RefUpdate(note.ref, made, None), RefUpdate(MAIN, made, theirs)]) == Pushed()


def test_a_refusal_is_told_from_a_race_whatever_the_forge_says(
    store: GitStore, bare: Path, author: Author, draft: Drafts
) -> None:
    made = store.commit(store.tip(), draft("a", b"x"), author)
    _hook(bare, "echo 'fetch first: stale info, non-fast-forward'; exit 1")
    outcome = store.push([RefUpdate(MAIN, made, store.tip())])
    assert isinstance(outcome, NotTaken)
    assert "stale info" in outcome.says
    with pytest.raises(PushRefused) as told:
        store.publish(lambda _: draft("a", b"x"), author)
    assert told.value.exit_code == 5


def test_one_refusal_may_be_the_remotes_own_lock(store: GitStore, bare: Path, author: Author, draft: Drafts) -> None:
    _hook(bare, f"test -e '{bare}/seen' || {{ touch '{bare}/seen'; exit 1; }}")
    assert store.publish(lambda _: draft("a", b"x"), author).attempts == 2


def test_a_push_never_takes_a_commit_out_of_a_branch(store: GitStore, author: Author, draft: Drafts) -> None:
    unrelated = store.commit(None, draft("a", b"x"), author)
    with pytest.raises(PushRefused, match="does not descend"):
        store.push([RefUpdate(MAIN, unrelated, store.tip())])


def test_an_answer_that_was_lost_after_landing_is_a_success(
    store: GitStore, seeded: Path, git: Plain, author: Author, draft: Drafts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The push lands, its answer is lost, and a person pushes on top before we look: our commit is not made twice."""
    real = remote_module.push
    pushes = []

    def landed_unseen(*args: object, **named: object) -> object:
        pushes.append(real(*args, **named))  # type: ignore[arg-type]
        return LostRace(MAIN, _person_pushes(seeded, git, "on top"))

    monkeypatch.setattr(remote_module, "push", landed_unseen)
    done = store.publish(lambda _: draft("fleet/plan.yaml", b"x"), author)
    assert pushes == [Pushed()]
    assert done.oid is not None
    assert done.tip == store.tip() != done.oid
    assert [commit.subject for commit in store.log(str(done.tip))] == [
        "Set on top",
        "apply: 1 of 1 steps done",
        "Add the pool",
    ]


def test_publish_rebuilds_upon_the_freshest_tip(
    store: GitStore, seeded: Path, git: Plain, author: Author, draft: Drafts
) -> None:
    tips: list[str | None] = []

    def build(tip: str | None) -> Draft:
        tips.append(tip)
        if len(tips) < 3:
            _person_pushes(seeded, git, f"edit {len(tips)}")
        return draft("fleet/plan.yaml", str(tip).encode())

    done = store.publish(build, author)
    assert (done.attempts, len(set(tips))) == (3, 3)
    assert store.read_tree(str(store.fetch())).files == {
        "fleet/pool.yaml": b"edit 2",
        "fleet/plan.yaml": str(tips[-1]).encode(),
    }


def test_publish_gives_up_after_its_attempts(
    store: GitStore, seeded: Path, git: Plain, author: Author, draft: Drafts
) -> None:
    count = iter(range(100))

    def build(tip: str | None) -> Draft:
        _person_pushes(seeded, git, f"edit {next(count)}")
        return draft("fleet/plan.yaml", b"x")

    with pytest.raises(PublishConflict) as told:
        store.publish(build, author, attempts=3)
    assert (told.value.exit_code, next(count)) == (6, 3)


def test_publish_writes_nothing_twice(store: GitStore, author: Author, draft: Drafts) -> None:
    first = store.publish(lambda _: draft("fleet/plan.yaml", b"x"), author)
    again = store.publish(lambda _: draft("fleet/plan.yaml", b"x"), author)
    never = store.publish(lambda _: None, author)
    assert (again.oid, again.tip, again.attempts) == (None, first.oid, 0)
    assert (never.oid, never.tip, never.attempts) == (None, first.oid, 0)


def test_eight_writers_at_once_all_land(
    clone: Callable[[str], Path], store: GitStore, locks: Callable[[], list[str]], author: Author
) -> None:
    stores = [GitStore(clone(f"writer{number}")) for number in range(8)]
    failures: list[BaseException] = []

    def write(number: int) -> None:
        who = Author(Identity(f"writer{number}", "w@x"), author.when)
        made = Draft({f"fleet/nodes/{number}.yaml": b"node\n"}, CommitMessage(f"Write {number}"))
        try:
            stores[number].publish(lambda _: made, who)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    tip = store.fetch()
    assert tip is not None
    assert len(store.read_tree(tip, ("fleet/nodes",)).files) == 8
    logged = store.log(tip)
    assert len(logged) == 9
    assert all(len(commit.parents) <= 1 for commit in logged)
    assert locks() == []


def test_progress_on_a_ref_of_its_own_leaves_no_history(store: GitStore, author: Author, draft: Drafts) -> None:
    ref = "refs/lloom/agent/head"
    one = store.write_note_ref(ref, draft("fleet/status.yaml", b"1"), author)
    assert store.write_note_ref(ref, draft("fleet/status.yaml", b"1", "other words"), author) is None
    two = store.write_note_ref(ref, draft("fleet/status.yaml", b"2"), author)
    assert one != two
    store.fetch(ref)
    assert store.tip(ref) == two
    assert two is not None
    assert [commit.parents for commit in store.log(two)] == [()]
    assert store.read_file(two, "fleet/status.yaml") == b"2"
    assert len(store.log(str(store.tip()))) == 1


@pytest.mark.parametrize("name", ["", "--upload-pack=x"])
def test_a_remotes_name_is_no_option(name: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="name of a remote"):
        GitStore(tmp_path, remote=name)
