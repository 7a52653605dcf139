"""The journal: on disk before anything goes on, torn tails tolerated, damage refused, one apply apart from another."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloom_gitops.agent.journal import FILE, ApplyKey, Journal, parse
from lloom_gitops.model.errors import Refused
from lloom_gitops.model.words import Outcome
from lloom_gitops.reconcile.machine_events import Answer, AnswerKind, Entry, EntryKind

KEY = ApplyKey(plan="sha256:a", since="none")
ENTRIES = (
    Entry(step="start:x", kind=EntryKind.INTENT),
    Entry(step="start:x", kind=EntryKind.EFFECT, answer=Answer(kind=AnswerKind.REFUSED, code="busy", retry="later")),
    Entry(step="start:x", kind=EntryKind.VERIFIED, outcome=Outcome.DONE),
    Entry(step="stop:y", kind=EntryKind.UNKNOWN, says="can't be told"),
)


def written(folder: Path) -> Journal:
    journal = Journal(folder)
    journal.begin(KEY)
    for entry in ENTRIES:
        journal.append(KEY, entry)
    return journal


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    written(tmp_path)
    assert Journal(tmp_path).begin(KEY) == ENTRIES


@given(cut=st.integers(min_value=1, max_value=60))
def test_a_torn_tail_counts_as_not_written(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("state")
    written(folder)
    path = folder / FILE
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: max(last, len(whole) - cut)])
    journal = Journal(folder)
    assert journal.begin(KEY) == ENTRIES[:3]
    journal.append(KEY, ENTRIES[3])
    assert Journal(folder).begin(KEY) == ENTRIES, "what is written after a torn tail can be read"


def test_damage_before_the_end_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{...\n" + lines[2])
    with pytest.raises(Refused, match="can't be read from byte") as refusal:
        Journal(tmp_path).begin(KEY)
    assert refusal.value.code == "journalDamaged"


@pytest.mark.parametrize("other", [ApplyKey(plan="sha256:b", since="none"), ApplyKey(plan="sha256:a", since="later")])
def test_another_apply_begins_afresh(tmp_path: Path, other: ApplyKey) -> None:
    """The same plan applied again, a result later, has nothing done yet."""
    written(tmp_path)
    assert Journal(tmp_path).begin(other) == ()
    assert Journal(tmp_path).begin(KEY) == (), "and what was there before is gone"


def test_an_ended_apply_leaves_nothing(tmp_path: Path) -> None:
    written(tmp_path).end()
    assert not (tmp_path / FILE).exists()
    Journal(tmp_path).end()


def test_it_is_private_and_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle))[1])
    folder = tmp_path / "state"
    journal = Journal(folder)
    journal.begin(KEY)
    count = len(synced)
    assert count == 2, "the file and its folder"
    journal.append(KEY, ENTRIES[0])
    assert len(synced) == count + 1
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_parsing_is_pure_and_says_how_far_it_came() -> None:
    assert parse(b"") == ((), 0)
    assert parse(b'{"apply":') == ((), 0)
