"""Commits by plumbing: exact bytes, no empty commit, nothing of the work tree touched, bad names told clearly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from lloom_gitops.gitstore.commits import Author, Draft, Identity
from lloom_gitops.gitstore.errors import BadPath, BadRevision, NotARepository, RefLocked
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain

Drafts = Callable[..., Draft]


def test_a_commit_holds_the_parents_files_and_the_drafts(
    store: GitStore, author: Author, git: Plain, draft: Drafts
) -> None:
    tip = store.tip()
    oid = store.commit(tip, draft("fleet/observed/inventory.yaml", b"a\0\r\n\xff", Plan_Id="sha256:1"), author)
    assert oid is not None
    tree = git(store.repo_dir, "rev-parse", f"{oid}^{{tree}}")
    assert git(store.repo_dir, "cat-file", "commit", oid) == (
        f"tree {tree}\nparent {tip}\n"
        "author lloom-gitops <agent@head> 1790857800 +0000\ncommitter lloom-gitops <agent@head> 1790857800 +0000\n\n"
        "apply: 1 of 1 steps done\n\nPlan-Id: sha256:1"
    )
    assert store.read_tree(oid).files == {
        "fleet/pool.yaml": b"kind: Pool\n",
        "fleet/observed/inventory.yaml": b"a\0\r\n\xff",
    }


def test_another_library_reads_the_same(store: GitStore, author: Author, draft: Drafts) -> None:
    import git as gitpython

    oid = store.commit(store.tip(), draft("fleet/plan.yaml", b"kind: Plan\n", "plan: début", Result="partial"), author)
    with gitpython.Repo(store.repo_dir) as repo:
        seen = repo.commit(oid)
        assert (seen.summary, seen.trailers_dict) == ("plan: début", {"Result": ["partial"]})
        assert seen.tree["fleet/plan.yaml"].data_stream.read() == b"kind: Plan\n"


@pytest.mark.parametrize("content", [b"kind: Pool\n", None], ids=["same content", "removing what is not there"])
def test_no_change_makes_no_commit(store: GitStore, author: Author, draft: Drafts, content: bytes | None) -> None:
    path = "fleet/pool.yaml" if content else "fleet/nothing.yaml"
    assert store.commit(store.tip(), draft(path, content), author) is None


def test_a_removed_file_is_gone_and_the_others_stay(store: GitStore, author: Author, draft: Drafts) -> None:
    two = store.commit(store.tip(), draft("fleet/plan.yaml", b"x"), author)
    one = store.commit(two, draft("fleet/pool.yaml", None), author)
    assert one is not None
    assert store.read_tree(one).files == {"fleet/plan.yaml": b"x"}


def test_equal_inputs_give_equal_bytes_in_any_time_zone_and_locale(
    store: GitStore, author: Author, draft: Drafts, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = set()
    for zone, locale, offset in (("UTC", "C", 0), ("Pacific/Auckland", "de_DE.UTF-8", 13), ("US/Pacific", "tr_TR", -7)):
        monkeypatch.setenv("TZ", zone)
        monkeypatch.setenv("LC_ALL", locale)
        monkeypatch.setenv("LANG", locale)
        when = author.when.astimezone(timezone(timedelta(hours=offset)))
        made.add(store.commit(store.tip(), draft("fleet/plan.yaml", b"\xc3\xa9"), Author(author.identity, when)))
    assert len(made) == 1


def test_work_tree_index_and_branches_stay_as_they_were(
    store: GitStore, author: Author, git: Plain, draft: Drafts
) -> None:
    folder = store.repo_dir
    (folder / "fleet/pool.yaml").write_text("edited\n")
    (folder / "staged.yaml").write_text("staged\n")
    git(folder, "add", "staged.yaml")
    before = (git(folder, "status", "--porcelain"), git(folder, "for-each-ref"), (folder / ".git/index").read_bytes())
    assert store.commit(store.tip(), draft("fleet/plan.yaml", b"x"), author)
    after = (git(folder, "status", "--porcelain"), git(folder, "for-each-ref"), (folder / ".git/index").read_bytes())
    assert after == before


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "fleet/../../x", "fleet//x", ".git/config", "fleet/.GIT/x", "", "fleet/", "a\0b"],
)
def test_paths_that_leave_the_repository_are_refused(store: GitStore, author: Author, draft: Drafts, path: str) -> None:
    with pytest.raises(BadPath):
        store.commit(store.tip(), draft(path, b"x"), author)


def test_a_link_is_not_written_through(store: GitStore, author: Author, git: Plain, draft: Drafts, room: Path) -> None:
    outside = room / "outside"
    outside.mkdir()
    (store.repo_dir / "recipes").symlink_to(outside)
    git(store.repo_dir, "add", "recipes")
    git(store.repo_dir, "commit", "-q", "-m", "Add a link")
    with pytest.raises(BadPath, match="nothing can lie below"):
        store.commit("HEAD", draft("recipes/x.yaml", b"x"), author)
    assert list(outside.iterdir()) == []


def test_a_file_does_not_take_a_folders_place(store: GitStore, author: Author, draft: Drafts) -> None:
    for content in (b"x", None):
        with pytest.raises(BadPath, match="is a folder"):
            store.commit(store.tip(), draft("fleet", content), author)


def test_hooks_and_filters_of_the_clone_do_not_run(store: GitStore, author: Author, draft: Drafts, room: Path) -> None:
    hooks = store.repo_dir / ".git/hooks"
    for name in ("reference-transaction", "pre-push", "post-commit", "post-index-change"):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch '{room}/ran-{name}'\nexit 1\n")
        hook.chmod(0o755)
    (store.repo_dir / ".git/info/attributes").write_text("* filter=bad text eol=crlf\n")
    done = store.publish(lambda _: draft("fleet/plan.yaml", b"a\n"), author)
    assert done.oid is not None
    assert store.read_file(done.oid, "fleet/plan.yaml") == b"a\n"
    assert not list(room.glob("ran-*"))


@pytest.mark.parametrize(
    ("rev", "code"),
    [
        ("nowhere", "unknownRevision"),
        ("0" * 40, "unknownRevision"),
        ("HEAD:fleet/pool.yaml", "unknownRevision"),
        ("--all", "badRevision"),
        ("", "badRevision"),
        ("a\nb", "badRevision"),
    ],
)
def test_bad_revisions_are_told_apart(store: GitStore, rev: str, code: str) -> None:
    with pytest.raises(BadRevision) as told:
        store.resolve(rev)
    assert (told.value.code, told.value.exit_code) == (code, 2)


@pytest.mark.parametrize(
    "ref",
    ["main", "refs/heads/a..b", "refs/heads/a b", "refs/heads/x.lock", "refs//heads", "refs/heads/.x", "refs/heads/"],
)
def test_bad_ref_names_are_refused_before_git_sees_them(store: GitStore, ref: str) -> None:
    with pytest.raises(BadRevision, match="full ref name"):
        store.read_ref(ref)


def test_a_damaged_ref_is_not_an_absent_one(store: GitStore) -> None:
    assert store.read_ref("refs/heads/gone") is None
    (store.repo_dir / ".git/refs/heads/main").write_text("nonsense\n")
    with pytest.raises(BadRevision) as told:
        store.head()
    assert told.value.code == "brokenRef"


def test_update_ref_compares_before_it_sets(store: GitStore, author: Author, draft: Drafts) -> None:
    one = store.commit(store.tip(), draft("a", b"1"), author)
    two = store.commit(one, draft("a", b"2"), author)
    assert one is not None
    assert two is not None
    assert store.update_ref("refs/heads/x", one, None)
    assert not store.update_ref("refs/heads/x", two, None)
    assert not store.update_ref("refs/heads/x", two, two)
    assert store.read_ref("refs/heads/x") == one
    assert store.update_ref("refs/heads/x", two, one)


def test_anothers_lock_on_a_branch_is_named_and_kept(store: GitStore) -> None:
    tip = store.tip()
    assert tip is not None
    lock = store.repo_dir / ".git/refs/heads/x.lock"
    lock.touch()
    with pytest.raises(RefLocked) as told:
        store.update_ref("refs/heads/x", tip, None)
    assert str(lock) in (told.value.hint or "")
    assert lock.exists()


def test_only_the_root_of_a_repository_is_one(store: GitStore, room: Path) -> None:
    cases = {room / "nowhere": "noFolder", room: "notARepository", store.repo_dir / "fleet": "notTheRoot"}
    for folder, code in cases.items():
        with pytest.raises(NotARepository) as told:
            GitStore(folder).head()
        assert told.value.code == code


def test_an_empty_clone_has_no_head_and_takes_a_first_commit(
    clone: Callable[[str], Path], author: Author, draft: Drafts
) -> None:
    store = GitStore(clone("empty"))
    assert (store.head(), store.fetch(), store.checked_out()) == (None, None, "refs/heads/main")
    done = store.publish(lambda _: draft("fleet/pool.yaml", b"x"), author)
    assert store.fetch() == done.oid


def test_identities_and_times_are_checked(store: GitStore, draft: Drafts) -> None:
    assert Identity("A\n<B>", "a\x00@b") == Identity("A B", "a@b")
    with pytest.raises(ValueError, match="name"):
        Identity("\n", "a@b")
    with pytest.raises(ValueError, match="time zone"):
        store.commit(None, draft("a", b"x"), Author(Identity("A", "a@b"), datetime(2026, 1, 1)))


def test_sha256_repositories_work_too(room: Path, git: Plain, author: Author, draft: Drafts) -> None:
    git(room, "init", "-q", "--object-format=sha256", "wide")
    store = GitStore(room / "wide")
    one = store.commit(None, draft("a/b.yaml", b"1"), author)
    two = store.commit(one, Draft({"a/b.yaml": None, "c": b"2"}, CommitMessage("x")), author)
    assert one is not None
    assert two is not None
    assert len(two) == 64
    assert store.read_tree(two).files == {"c": b"2"}
    assert store.history_of(two, "a/b.yaml") == [(one, store.read_tree(one).entries[0].oid)]
    assert author.when.tzinfo is UTC
