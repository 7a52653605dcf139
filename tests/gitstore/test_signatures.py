"""Signatures, with real SSH keys: trusted only through the signers that the caller names."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.errors import GitFailed
from lloom_gitops.gitstore.signatures import Trust
from lloom_gitops.gitstore.store import GitStore

from .conftest import Plain

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
Drafts = Callable[..., Draft]


@pytest.fixture
def key(room: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(room / name)], check=True)
        return room / name

    return make


@pytest.fixture
def signed(store: GitStore, author: Author, git: Plain, draft: Drafts, key: Callable[[str], Path]) -> str:
    git(store.repo_dir, "config", "gpg.format", "ssh")
    agent = replace(author, signing_key=str(key("agent-key")))
    made = store.commit(store.tip(), draft("fleet/plan.yaml", b"x"), agent)
    assert made is not None
    return made


def _allowed(key: Path, who: str, options: str = "") -> bytes:
    return f"{who} {options} {key.with_name(key.name + '.pub').read_text()}".encode()


def test_a_signed_commit_is_trusted_through_the_named_signers_only(
    store: GitStore, signed: str, room: Path, git: Plain, key: Callable[[str], Path]
) -> None:
    good = store.signature(signed, _allowed(room / "agent-key", "agent@head"))
    assert (good.trust, good.signer) == (Trust.TRUSTED, "agent@head")
    assert good.key.startswith("SHA256:")
    mine = room / "mine"
    mine.write_bytes(_allowed(room / "agent-key", "agent@head"))
    git(store.repo_dir, "config", "gpg.ssh.allowedSignersFile", str(mine))
    assert store.signature(signed, _allowed(key("other"), "agent@head")).trust is Trust.STRANGER
    assert store.signature(signed, b"").trust is Trust.STRANGER


def test_a_key_counts_only_while_it_was_allowed(store: GitStore, signed: str, room: Path) -> None:
    early = _allowed(room / "agent-key", "agent@head", 'valid-before="20250101"')
    assert store.signature(signed, early).trust is not Trust.TRUSTED


def test_unsigned_and_altered_commits(store: GitStore, signed: str, room: Path) -> None:
    signers = _allowed(room / "agent-key", "agent@head")
    assert store.signature("HEAD", signers).trust is Trust.UNSIGNED
    raw = subprocess.run(
        ["git", "cat-file", "commit", signed], cwd=store.repo_dir, capture_output=True, check=True
    ).stdout
    altered = subprocess.run(
        ["git", "hash-object", "-w", "-t", "commit", "--stdin"],
        cwd=store.repo_dir,
        input=raw.replace(b"1 of 1", b"9 of 9"),
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert store.signature(altered.strip(), signers).trust is Trust.BAD


def test_a_key_that_is_not_there_makes_no_unsigned_commit(
    store: GitStore, signed: str, author: Author, draft: Drafts, room: Path
) -> None:
    with pytest.raises(GitFailed, match="can't be signed"):
        store.commit(signed, draft("a", b"x"), replace(author, signing_key=str(room / "gone")))
