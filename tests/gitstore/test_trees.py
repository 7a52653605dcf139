"""Reading: a commit and the folder on disk give the same shape, and no link is ever followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lloom_gitops.gitstore import trees
from lloom_gitops.gitstore.errors import BadPath, TooLarge
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain


@pytest.fixture
def outside(room: Path) -> Path:
    folder = room / "outside"
    folder.mkdir()
    (folder / "secret.yaml").write_text("secret\n")
    return folder


@pytest.fixture
def full(store: GitStore, outside: Path, git: Plain) -> GitStore:
    """A committed tree with a file link, a folder link, odd names, an executable and a neighbour with like prefix."""
    folder = store.repo_dir
    (folder / "fleet/nodes").mkdir()
    (folder / "fleet/nodes/a b é.yaml").write_text("node\n")
    (folder / "fleet/nodes/line\nfeed.yaml").write_text("odd\n")
    (folder / "fleet/run.sh").write_text("#!/bin/sh\n")
    (folder / "fleet/run.sh").chmod(0o755)
    (folder / "fleet/leak.yaml").symlink_to(outside / "secret.yaml")
    (folder / "recipes").symlink_to(outside)
    (folder / "fleet2").mkdir()
    (folder / "fleet2/x.yaml").write_text("no\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Add all")
    return store


def test_commit_and_work_tree_read_alike(full: GitStore) -> None:
    committed = full.read_tree("HEAD", ("fleet", "recipes", "absent"))
    on_disk = full.read_worktree(("fleet/", "recipes", "absent"))
    assert committed.files == on_disk.files
    assert sorted(committed.files) == [
        "fleet/nodes/a b é.yaml",
        "fleet/nodes/line\nfeed.yaml",
        "fleet/pool.yaml",
        "fleet/run.sh",
    ]
    for tree in (committed, on_disk):
        assert [(entry.path, entry.mode) for entry in tree.links] == [
            ("fleet/leak.yaml", "120000"),
            ("recipes", "120000"),
        ]
        assert tree.unread == tree.links
    plain = [entry for entry in committed.entries if entry not in committed.links]
    assert plain == [entry for entry in on_disk.entries if entry not in on_disk.links]


def test_no_prefix_reads_everything(full: GitStore) -> None:
    assert "fleet2/x.yaml" in full.read_tree("HEAD").files


def test_below_a_linked_folder_nothing_is_read(full: GitStore) -> None:
    for tree in (full.read_tree("HEAD", ("recipes/secret.yaml",)), full.read_worktree(("recipes/secret.yaml",))):
        assert tree.files == {}
    assert [entry.path for entry in full.read_worktree(("recipes/secret.yaml",)).links] == ["recipes"]


def test_uncommitted_edits_and_new_files_are_read_from_disk(full: GitStore) -> None:
    (full.repo_dir / "fleet/pool.yaml").write_text("edited\n")
    (full.repo_dir / "fleet/new.yaml").write_text("new\n")
    on_disk = full.read_worktree(("fleet",)).files
    assert (on_disk["fleet/pool.yaml"], on_disk["fleet/new.yaml"]) == (b"edited\n", b"new\n")
    assert full.read_tree("HEAD", ("fleet",)).files["fleet/pool.yaml"] == b"kind: Pool\n"


def test_a_pipe_does_not_hang_the_reader(full: GitStore) -> None:
    os.mkfifo(full.repo_dir / "fleet/pipe.yaml")
    tree = full.read_worktree(("fleet",))
    assert ("000000", "fleet/pipe.yaml") in [(entry.mode, entry.path) for entry in tree.unread]


def test_submodules_are_listed_not_entered(full: GitStore, git: Plain) -> None:
    inner = full.repo_dir / "fleet/inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x.yaml").write_text("x\n")
    git(inner, "add", ".")
    git(inner, "commit", "-q", "-m", "x")
    git(full.repo_dir, "-c", "advice.addEmbeddedRepo=false", "add", "fleet/inner")
    git(full.repo_dir, "commit", "-q", "-m", "Add a submodule")
    for tree in (full.read_tree("HEAD", ("fleet",)), full.read_worktree(("fleet",))):
        assert ("160000", "fleet/inner") in [(entry.mode, entry.path) for entry in tree.unread]
        assert not [path for path in tree.files if path.startswith("fleet/inner/")]


def test_size_limits(full: GitStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "FILE_LIMIT", 6)
    for tree in (full.read_tree("HEAD", ("fleet",)), full.read_worktree(("fleet",))):
        large = [entry for entry in tree.unread if entry.mode.startswith("100")]
        assert [(entry.path, entry.size) for entry in large] == [("fleet/pool.yaml", 11), ("fleet/run.sh", 10)]
    monkeypatch.setattr(trees, "TOTAL_LIMIT", 8)
    for read in (lambda: full.read_tree("HEAD", ("fleet",)), lambda: full.read_worktree(("fleet",))):
        with pytest.raises(TooLarge):
            read()


@pytest.mark.parametrize("prefix", ["..", "/etc", "fleet/../..", ""])
def test_prefixes_stay_inside(full: GitStore, prefix: str) -> None:
    for read in (lambda: full.read_tree("HEAD", (prefix,)), lambda: full.read_worktree((prefix,))):
        with pytest.raises(BadPath):
            read()


def test_a_thousand_files_take_as_many_git_calls_as_one(
    store: GitStore, git: Plain, calls: list[tuple[str, bool]]
) -> None:
    nodes = store.repo_dir / "fleet/nodes"
    nodes.mkdir()
    for number in range(1000):
        (nodes / f"{number}.yaml").write_text(f"{number}\n")
    git(store.repo_dir, "add", ".")
    git(store.repo_dir, "commit", "-q", "-m", "Add nodes")
    tip = store.resolve("HEAD")
    calls.clear()
    assert len(store.read_tree(tip, ("fleet",)).files) == 1001
    assert [name for name, _ in calls] == ["rev-parse", "ls-tree", "cat-file"]
