"""The caller's environment does not leak into git, and git's own trouble comes out as our errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lloom_gitops.gitstore.command import clean_environment
from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.errors import GitFailed, GitMissing, shown
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain

Drafts = Callable[..., Draft]


def test_a_caller_that_runs_inside_another_repository(
    store: GitStore, room: Path, author: Author, git: Plain, draft: Drafts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a hook of another repository calls us: GIT_DIR and its like name that one."""
    git(room, "init", "-q", "other")
    other = room / "other"
    before = sorted(path for path in other.rglob("*"))
    for name, value in {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"),
        "GIT_COMMON_DIR": str(other / ".git"),
        "GIT_NAMESPACE": "x",
        "GIT_PREFIX": "fleet/",
        "GIT_TRACE": "1",
        "GIT_AUTHOR_NAME": "Somebody",
        "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
        "GIT_ICASE_PATHSPECS": "1",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_PAGER": "false",
    }.items():
        monkeypatch.setenv(name, value)
    fresh = GitStore(store.repo_dir)
    done = fresh.publish(lambda _: draft("fleet/plan.yaml", b"x"), author)
    assert fresh.read_tree(str(done.oid)).files.keys() == {"fleet/pool.yaml", "fleet/plan.yaml"}
    logged = fresh.log(str(done.oid), limit=1)[0]
    assert (logged.author_name, logged.committed) == ("lloom-gitops", "2026-10-01T12:30:00+00:00")
    assert sorted(path for path in other.rglob("*")) == before


def test_what_reaches_the_remote_comes_through() -> None:
    kept = {
        "GIT_SSH_COMMAND": "ssh -i k",
        "GIT_ASKPASS": "a",
        "GIT_SSL_CAINFO": "c",
        "PATH": "/bin",
        "SSH_AUTH_SOCK": "s",
    }
    dropped = {"GIT_DIR": "x", "GIT_CONFIG_PARAMETERS": "'core.pager=x'", "LC_TIME": "de_DE", "LC_ALL": "de_DE"}
    cleaned = clean_environment(kept | dropped)
    assert kept.items() <= cleaned.items()
    assert cleaned["LC_ALL"] == "C"
    assert not {"GIT_DIR", "GIT_CONFIG_PARAMETERS", "LC_TIME"} & set(cleaned)


def test_without_git_the_error_says_so(store: GitStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissing) as told:
        store.resolve("HEAD")
    assert (told.value.exit_code, told.value.hint) == (7, "install git")


def test_a_lost_object_is_told_not_read_as_empty(store: GitStore) -> None:
    entry = store.read_tree("HEAD", ("fleet",)).entries[0]
    loose = store.repo_dir / f".git/objects/{entry.oid[:2]}/{entry.oid[2:]}"
    loose.unlink()
    with pytest.raises(GitFailed):
        store.read_tree("HEAD", ("fleet",))


def test_gits_words_are_shown_on_one_line_without_credentials() -> None:
    told = shown(b"fatal: unable to access 'https://bot:tok%en@git.example/x':\n\x1b[31mno\x1b[0m\xff\n" + b"y" * 400)
    assert told.startswith("fatal: unable to access 'https://***@git.example/x': [31mno [0m")
    assert len(told) == 300


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_repository_is_told(store: GitStore, author: Author, draft: Drafts) -> None:
    objects = store.repo_dir / ".git/objects"
    for folder in [objects, *objects.iterdir()]:
        folder.chmod(0o555)
    with pytest.raises(GitFailed):
        store.commit("HEAD", draft("a", b"x"), author)
