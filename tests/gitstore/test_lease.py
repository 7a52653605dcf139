"""One agent acts: who holds the lease, when it has expired, and what a race of two ends in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloom_gitops.gitstore.commits import Author, Draft
from lloom_gitops.gitstore.errors import LeaseLost, LeaseUnreadable
from lloom_gitops.gitstore.lease import (
    LEASE_REF,
    LeaseRecord,
    Sighting,
    Standing,
    claim,
    parse_record,
    released,
    sight,
    standing,
)
from lloom_gitops.gitstore.remote import RefUpdate
from lloom_gitops.gitstore.store import GitStore

TTL = 30.0
RECORD = LeaseRecord("head", 7, TTL, "n1", 3)


@pytest.mark.parametrize(
    ("record", "since", "nonce", "now", "stands"),
    [
        pytest.param(None, 0, "n1", 0, Standing.FREE, id="never taken"),
        pytest.param(RECORD, 10, "n1", 39.9, Standing.MINE, id="mine until its time is over"),
        pytest.param(RECORD, 10, "n1", 40, Standing.EXPIRED, id="mine no more: others may have taken it"),
        pytest.param(RECORD, 10, "n2", 39.9, Standing.HELD, id="held"),
        pytest.param(RECORD, 10, "n2", 40, Standing.EXPIRED, id="unchanged for its time"),
        pytest.param(released(RECORD), 10, "n2", 10, Standing.FREE, id="released"),
    ],
)
def test_standing(record: LeaseRecord | None, since: float, nonce: str, now: float, stands: Standing) -> None:
    assert standing(Sighting("oid" if record else None, record, since), nonce, now) is stands


def test_a_reader_counts_from_when_the_ref_last_changed() -> None:
    first = sight(None, "a", RECORD, 100.0)
    same = sight(first, "a", RECORD, 125.0)
    assert same.since == 100.0
    assert sight(same, "b", RECORD, 129.0).since == 129.0


def test_claims() -> None:
    seen = Sighting("a", RECORD, 0.0)
    assert claim(seen, "head", "n1", TTL, 1.0) == LeaseRecord("head", 7, TTL, "n1", 4)
    assert claim(seen, "other", "n2", TTL, 1.0) is None
    assert claim(seen, "other", "n2", TTL, TTL) == LeaseRecord("other", 8, TTL, "n2", 1)
    assert claim(seen, "head", "n1", TTL, TTL) == LeaseRecord("head", 8, TTL, "n1", 1)
    assert claim(Sighting("a", released(RECORD), 0.0), "other", "n2", TTL, 1.0) == LeaseRecord("other", 8, TTL, "n2", 1)


@given(st.lists(st.tuples(st.sampled_from("xy"), st.floats(0, 100)), max_size=30))
def test_epochs_never_repeat_and_two_never_hold_at_once(turns: list[tuple[str, float]]) -> None:
    """Two processes look and claim at any times; each has its own clock offset and sees the ref whenever it looks."""
    ref, record, now, serial = None, None, 0.0, 0
    views: dict[str, Sighting | None] = {"x": None, "y": None}
    own: dict[str, Sighting] = {}
    epochs: list[tuple[int, str]] = []
    offsets = {"x": 1000.0, "y": 5.0}
    for who, wait in turns:
        now += wait
        clock = now + offsets[who]
        seen = views[who] = sight(views[who], ref, record, clock)
        claimed = claim(seen, who, who, TTL, clock)
        if claimed is None:
            continue
        serial += 1
        ref, record = str(serial), claimed
        views[who] = own[who] = Sighting(ref, record, clock)
        if (claimed.epoch, who) not in epochs:
            epochs.append((claimed.epoch, who))
        believes = [name for name, mine in own.items() if standing(mine, name, now + offsets[name]) is Standing.MINE]
        assert believes == [who]
    assert [epoch for epoch, _ in epochs] == list(range(1, len(epochs) + 1))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        RECORD.render().replace(b"7", b"true"),
        RECORD.render().replace(b"7", b"-7"),
        RECORD.render().replace(b"30.0", b"NaN"),
        RECORD.render().replace(b"30.0", b"Infinity"),
        RECORD.render().replace(b"30.0", b'"30"'),
    ],
)
def test_only_a_whole_record_is_one(content: bytes) -> None:
    assert parse_record(content) is None
    assert parse_record(RECORD.render()) == RECORD


@pytest.fixture
def two(clone: Callable[[str], Path], store: GitStore) -> tuple[GitStore, GitStore]:
    return store, GitStore(clone("second"))


def test_taken_renewed_expired_taken_over_and_released(two: tuple[GitStore, GitStore], author: Author) -> None:
    one, other = two
    mine = one.take_lease(one.sight_lease(None, 0.0), "head", "n1", TTL, 0.0, author)
    seen = other.sight_lease(None, 500.0)
    assert seen.record == mine.record == LeaseRecord("head", 1, TTL, "n1", 1)
    with pytest.raises(LeaseLost, match="'head'") as told:
        other.take_lease(seen, "spare", "n2", TTL, 500.0, author)
    assert told.value.exit_code == 6
    mine = one.take_lease(mine, "head", "n1", TTL, 20.0, author)
    seen = other.sight_lease(seen, 529.0)
    assert seen.since == 529.0
    seen = other.sight_lease(seen, 559.0)
    theirs = other.take_lease(seen, "spare", "n2", TTL, 559.0, author)
    assert theirs.record == LeaseRecord("spare", 2, TTL, "n2", 1)
    with pytest.raises(LeaseLost):
        one.take_lease(mine, "head", "n1", TTL, 45.0, author)
    with pytest.raises(LeaseLost):
        one.release_lease(mine, author)
    other.release_lease(theirs, author)
    again = one.take_lease(one.sight_lease(mine, 46.0), "head", "n1", TTL, 46.0, author)
    assert again.record == LeaseRecord("head", 3, TTL, "n1", 1)


def test_of_two_at_once_one_wins(two: tuple[GitStore, GitStore], author: Author) -> None:
    seen = [store.sight_lease(None, 0.0) for store in two]
    results: list[object] = [None, None]
    barrier = threading.Barrier(2)

    def take(number: int) -> None:
        barrier.wait()
        try:
            results[number] = two[number].take_lease(seen[number], f"h{number}", f"n{number}", TTL, 0.0, author)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=take, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [result for result in results if isinstance(result, Sighting)]
    assert len(winners) == 1
    assert sum(isinstance(result, Exception) for result in results) == 1
    assert two[0].sight_lease(None, 1.0).oid == winners[0].oid


def test_a_lease_that_can_not_be_read_lets_nobody_act(
    store: GitStore, author: Author, draft: Callable[..., Draft]
) -> None:
    junk = store.commit(None, draft("lease.json", b"v2"), author)
    store.push([RefUpdate(LEASE_REF, junk, None)], rewind=True)
    with pytest.raises(LeaseUnreadable) as told:
        store.sight_lease(None, 0.0)
    assert told.value.exit_code == 7


def test_looking_again_at_an_unchanged_lease_is_one_network_call(
    two: tuple[GitStore, GitStore], author: Author, calls: list[tuple[str, bool]]
) -> None:
    two[0].take_lease(two[0].sight_lease(None, 0.0), "head", "n1", TTL, 0.0, author)
    seen = two[1].sight_lease(None, 0.0)
    calls.clear()
    assert two[1].sight_lease(seen, 9.0) == seen
    assert calls == [("ls-remote", True)]
