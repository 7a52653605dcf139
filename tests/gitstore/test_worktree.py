"""A person's work tree: moved only when clean, committed to only where the command edited, never losing an edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lloom_gitops.gitstore import worktree
from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.errors import RefLocked, WorkTreeNotClean
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain

Drafts = Callable[..., Draft]


@pytest.fixture
def behind(store: GitStore, seeded: Path, git: Plain) -> tuple[GitStore, str]:
    """The agent's clone, one commit behind: a file changed, one was added in a new folder, one is gone."""
    (seeded / "old.yaml").write_text("old\n")
    git(seeded, "add", ".")
    git(seeded, "commit", "-q", "-m", "Add old")
    git(seeded, "push", "-q", "origin", "HEAD:main")
    store.fast_forward_worktree(str(store.fetch()))
    (seeded / "fleet/pool.yaml").write_text("changed\n")
    (seeded / "recipes").mkdir()
    (seeded / "recipes/new.yaml").write_text("new\n")
    git(seeded, "rm", "-q", "old.yaml")
    git(seeded, "add", ".")
    git(seeded, "commit", "-q", "-m", "Change three")
    git(seeded, "push", "-q", "origin", "HEAD:main")
    return store, str(store.fetch())


def test_a_clean_work_tree_moves_forward(behind: tuple[GitStore, str], git: Plain) -> None:
    store, target = behind
    (store.repo_dir / "fleet/pool.yaml").touch()
    assert store.fast_forward_worktree(target)
    assert store.head() == target
    assert git(store.repo_dir, "status", "--porcelain") == ""
    assert store.read_worktree(("fleet", "recipes", "old.yaml")).files == store.read_tree(target).files
    assert not store.fast_forward_worktree(target)


@pytest.mark.parametrize("path", ["fleet/pool.yaml", "recipes/new.yaml", "old.yaml"])
@pytest.mark.parametrize("staged", [False, True], ids=["unstaged", "staged"])
def test_an_edit_in_the_way_stops_the_move(behind: tuple[GitStore, str], git: Plain, path: str, staged: bool) -> None:
    store, target = behind
    place = store.repo_dir / path
    place.parent.mkdir(exist_ok=True)
    place.write_text("a person's edit\n")
    if staged:
        git(store.repo_dir, "add", path)
    before = (git(store.repo_dir, "status", "--porcelain"), store.head())
    with pytest.raises(WorkTreeNotClean) as told:
        store.fast_forward_worktree(target)
    assert told.value.exit_code == 5
    assert (git(store.repo_dir, "status", "--porcelain"), store.head()) == before
    assert place.read_text() == "a person's edit\n"


def test_edits_elsewhere_are_carried_along(behind: tuple[GitStore, str], git: Plain) -> None:
    store, target = behind
    (store.repo_dir / "notes.txt").write_text("mine\n")
    (store.repo_dir / "staged.txt").write_text("staged\n")
    git(store.repo_dir, "add", "staged.txt")
    assert store.fast_forward_worktree(target)
    assert git(store.repo_dir, "status", "--porcelain").split("\n") == ["A  staged.txt", "?? notes.txt"]


def test_a_move_that_was_killed_half_way_is_finished(
    behind: tuple[GitStore, str], git: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, target = behind

    class Killed(Exception):
        pass

    def killed(*_: object) -> None:
        raise Killed

    for place in ("_PrivateIndex.replace", "update_ref"):
        with monkeypatch.context() as patch:
            patch.setattr(f"{worktree.__name__}.{place}", killed)
            with pytest.raises(Killed):
                store.fast_forward_worktree(target)
    assert store.head() != target
    assert store.fast_forward_worktree(target)
    assert (store.head(), git(store.repo_dir, "status", "--porcelain")) == (target, "")


def test_another_branch_and_own_commits_are_left_alone(behind: tuple[GitStore, str], git: Plain) -> None:
    store, target = behind
    git(store.repo_dir, "switch", "-q", "-c", "work")
    assert not store.fast_forward_worktree(target)
    git(store.repo_dir, "switch", "-q", "main")
    git(store.repo_dir, "commit", "-q", "--allow-empty", "-m", "Own")
    with pytest.raises(WorkTreeNotClean, match="commits of its own"):
        store.fast_forward_worktree(target)


def test_publishing_never_touches_a_persons_edits(store: GitStore, author: Author, git: Plain, draft: Drafts) -> None:
    (store.repo_dir / "fleet/pool.yaml").write_text("edit\n")
    (store.repo_dir / "new.txt").write_text("new\n")
    before = git(store.repo_dir, "status", "--porcelain"), store.head()
    store.publish(lambda _: draft("fleet/pool.yaml", b"by the agent\n"), author)
    assert (git(store.repo_dir, "status", "--porcelain"), store.head()) == before
    assert (store.repo_dir / "fleet/pool.yaml").read_text() == "edit\n"


def test_a_command_commits_only_what_it_edited(store: GitStore, author: Author, git: Plain) -> None:
    folder = store.repo_dir
    (folder / "fleet/pins.yaml").write_text("pin\n")
    (folder / "fleet/pool.yaml").write_text("an edit of the person\n")
    (folder / "other.yaml").write_text("staged\n")
    git(folder, "add", "other.yaml")
    parent = store.head()
    made = store.commit_to_head(Draft({"fleet/pins.yaml": b"pin\n"}, CommitMessage("Pin x on y")), author)
    assert made == store.head()
    assert git(folder, "show", "--name-only", "--format=%P", str(made)).split() == [parent, "fleet/pins.yaml"]
    assert git(folder, "status", "--porcelain").split("\n") == [" M fleet/pool.yaml", "A  other.yaml"]
    assert store.commit_to_head(Draft({"fleet/pins.yaml": b"pin\n"}, CommitMessage("Pin again")), author) is None


def test_a_command_needs_a_branch(store: GitStore, author: Author, git: Plain, draft: Drafts) -> None:
    git(store.repo_dir, "switch", "-q", "--detach")
    with pytest.raises(WorkTreeNotClean, match="no branch"):
        store.commit_to_head(draft("a", b"x"), author)


def test_a_work_tree_where_git_is_at_work_is_left_alone(behind: tuple[GitStore, str]) -> None:
    store, target = behind
    lock = store.repo_dir / ".git/index.lock"
    lock.touch()
    with pytest.raises(RefLocked) as told:
        store.fast_forward_worktree(target)
    assert str(lock) in (told.value.hint or "")
    assert lock.exists()


def test_a_linked_work_tree_works_like_the_first(
    store: GitStore, room: Path, author: Author, git: Plain, draft: Drafts
) -> None:
    git(store.repo_dir, "worktree", "add", "-q", "-b", "topic", str(room / "linked"))
    linked = GitStore(room / "linked")
    assert linked.checked_out() == "refs/heads/topic"
    (room / "linked/a.yaml").write_text("x")
    made = linked.commit_to_head(draft("a.yaml", b"x"), author)
    assert (linked.head(), git(room / "linked", "status", "--porcelain")) == (made, "")
    assert store.head() != made
