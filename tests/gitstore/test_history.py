"""The audit trail and the search through it: what plain git shows, as values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain

INVENTORY = "fleet/observed/inventory.yaml"


def _person_commits(folder: Path, git: Plain, path: str, text: str, message: str) -> str:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    git(folder, "add", path)
    git(folder, "commit", "-q", "--cleanup=verbatim", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def test_the_log_tells_who_did_what_with_which_result(
    store: GitStore, seeded: Path, git: Plain, author: Author
) -> None:
    odd = "Cordon spark-node-02\n\nFan is loud: été.\nSecond line\n\nSigned-off-by: P <p@x>\n"
    person = _person_commits(seeded, git, "fleet/nodes/b.yaml", "cordon", odd)
    git(seeded, "push", "-q", "origin", "HEAD:main")
    store.publish(
        lambda _: Draft(
            {"fleet/status.yaml": b"s", INVENTORY: b"i"},
            CommitMessage(
                "apply: 2 of 2 steps done", ("route:x done",), {"Result": "succeeded", "Plan-Commit": person}
            ),
        ),
        author,
    )
    agent, cordon, first = store.log(str(store.tip()))
    assert (agent.subject, agent.body) == ("apply: 2 of 2 steps done", ("route:x done",))
    assert agent.trailers == {"Result": "succeeded", "Plan-Commit": person}
    assert (agent.parents, agent.author_name, agent.authored) == (
        (person,),
        "lloom-gitops",
        "2026-10-01T12:30:00+00:00",
    )
    assert (cordon.subject, cordon.body) == ("Cordon spark-node-02", ("Fan is loud: été.", "Second line"))
    assert cordon.trailers == {"Signed-off-by": "P <p@x>"}
    assert (first.parents, first.author_email) == ((), "person@example.org")
    assert store.log(str(store.tip()), ("fleet/status.yaml",)) == [agent]
    assert store.log(str(store.tip()), limit=2) == [agent, cordon]


def test_the_log_ignores_how_a_person_set_up_git(store: GitStore, git: Plain, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = store.log("HEAD")
    for name, value in {
        "log.showSignature": "true",
        "log.date": "relative",
        "format.pretty": "oneline",
        "color.ui": "always",
        "log.decorate": "full",
        "log.follow": "true",
        "core.pager": "false",
        "log.mailmap": "true",
    }.items():
        git(store.repo_dir, "config", name, value)
    (store.repo_dir / ".mailmap").write_text("Somebody <else@example.org> <person@example.org>\n")
    assert store.log("HEAD") == plain
    assert store.log("HEAD", ("fleet/pool.yaml",)) == plain


@pytest.fixture
def merged(seeded: Path, git: Plain) -> GitStore:
    """An inventory with contents 1 to 3 on main, `side` on a branch whose merge kept main's file, and `evil`, which
    only the merge itself made; then the file is removed."""
    for number in ("1", "2"):
        _person_commits(seeded, git, INVENTORY, number, f"Inventory {number}")
    git(seeded, "switch", "-q", "-c", "side", "HEAD~1")
    _person_commits(seeded, git, INVENTORY, "side", "Inventory of a pull request")
    git(seeded, "switch", "-q", "main")
    git(seeded, "merge", "-q", "-s", "ours", "-m", "Merge side", "side")
    git(seeded, "switch", "-q", "-c", "other", "HEAD~1")
    _person_commits(seeded, git, INVENTORY, "3", "Inventory 3")
    git(seeded, "switch", "-q", "main")
    git(seeded, "merge", "-q", "-s", "ours", "--no-commit", "other")
    (seeded / INVENTORY).write_text("evil")
    git(seeded, "add", INVENTORY)
    git(seeded, "commit", "-q", "-m", "Merge other by hand")
    git(seeded, "rm", "-q", INVENTORY)
    git(seeded, "commit", "-q", "-m", "Remove the inventory")
    return GitStore(seeded)


def test_every_content_a_file_ever_had_is_found(merged: GitStore) -> None:
    for content in (b"1", b"2", b"3", b"side", b"evil"):
        found = merged.find_content("HEAD", INVENTORY, content.__eq__)
        assert found is not None, content
        assert merged.read_file(found[0], INVENTORY) == found[1] == content
    assert merged.find_content("HEAD", INVENTORY, b"4".__eq__) is None
    assert merged.find_content("HEAD", "fleet/absent.yaml", lambda _: True) is None


def test_each_distinct_content_is_judged_once(merged: GitStore) -> None:
    judged: list[bytes] = []
    merged.find_content("HEAD", INVENTORY, lambda content: judged.append(content) is not None)
    assert sorted(judged) == [b"1", b"2", b"3", b"evil", b"side"]


def test_states_of_a_folder_are_found_by_the_commits_that_touched_it(merged: GitStore) -> None:
    commits = merged.commits_touching("HEAD", ("fleet/observed",))
    assert {merged.read_file(commit, INVENTORY) for commit in commits} >= {b"1", b"2", b"3", b"side", b"evil", None}
    assert merged.resolve("HEAD") == commits[0]
    assert len(merged.commits_touching("HEAD", ("fleet/pool.yaml",))) == 1


def test_ancestry(merged: GitStore) -> None:
    assert merged.is_ancestor("side", "main")
    assert not merged.is_ancestor("main", "side")
    assert merged.merge_base("side", "other") == merged.resolve("side~1")


def test_a_shallow_clone_says_so(seeded: Path, bare: Path, room: Path, git: Plain) -> None:
    _person_commits(seeded, git, "a", "a", "a")
    git(seeded, "push", "-q", "origin", "HEAD:main")
    git(room, "clone", "-q", "--depth=1", f"file://{bare}", "shallow")
    assert GitStore(room / "shallow").is_shallow()
    assert not GitStore(seeded).is_shallow()


def test_grafted_history_is_not_believed(merged: GitStore, git: Plain) -> None:
    before = merged.log("HEAD")
    git(merged.repo_dir, "replace", "HEAD", "HEAD~1")
    assert merged.log("HEAD") == before


def test_a_commit_in_another_encoding_is_readable(store: GitStore, git: Plain, clone: Callable[[str], Path]) -> None:
    folder = clone("latin")
    git(folder, "config", "i18n.commitEncoding", "ISO-8859-1")
    (folder / "message").write_bytes("Caf\xe9".encode("latin-1"))
    git(folder, "commit", "-q", "--allow-empty", "-F", "message")
    assert GitStore(folder).log("HEAD", limit=1)[0].subject == "Café"
