"""One agent acts: a lease on a ref of the remote. When it counts as expired is a pure decision over observations.

A holder renews by compare-and-swap; every renewal changes the ref. A reader calls the lease expired when the ref has
not changed for the lease's time on the reader's own monotonic clock, so the clocks of two machines are never compared.
The holder counts its own time from before its push was sent, hence it stops first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec

LEASE_REF = "refs/lloom/lease"
LEASE_FILE = "lease.json"


class LeaseRecord(msgspec.Struct, frozen=True, rename="camel"):
    """What the lease's ref holds. `nonce` tells two processes of one holder apart, `epoch` grows with every new
    holder, `beat` with every renewal; `ttl_seconds` 0 means released."""

    holder: str
    epoch: Annotated[int, msgspec.Meta(ge=1)]
    ttl_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)]
    nonce: str
    beat: int

    def render(self) -> bytes:
        """One line of JSON: `holder`, `epoch`, `ttlSeconds`, `nonce`, `beat`."""
        return msgspec.json.encode(self) + b"\n"


def parse_record(content: bytes) -> LeaseRecord | None:
    """The record that `render` wrote; None for anything else."""
    try:
        return msgspec.json.decode(content, type=LeaseRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a reader saw of the ref: `oid` and its record (both None: no lease was ever taken), and `since`: the
    reader's monotonic seconds when it first saw this very `oid`."""

    oid: str | None
    record: LeaseRecord | None
    since: float


class Standing(StrEnum):
    """How a lease stands for one reader."""

    FREE = "free"
    MINE = "mine"
    HELD = "held"
    EXPIRED = "expired"


def sight(before: Sighting | None, oid: str | None, record: LeaseRecord | None, now: float) -> Sighting:
    """The new sighting: the time of the first one stays while the ref does not change."""
    since = before.since if before is not None and before.oid == oid else now
    return Sighting(oid, record, since)


def standing(seen: Sighting, nonce: str, now: float) -> Standing:
    """How the lease stands at `now` (monotonic seconds) for the process with this `nonce`."""
    if seen.record is None or seen.record.ttl_seconds == 0:
        return Standing.FREE
    if now - seen.since >= seen.record.ttl_seconds:
        return Standing.EXPIRED
    return Standing.MINE if seen.record.nonce == nonce else Standing.HELD


def claim(seen: Sighting, holder: str, nonce: str, ttl_seconds: float, now: float) -> LeaseRecord | None:
    """The record to push over what was seen: a renewal of our own lease, a new epoch over a free or expired one, or
    None while another holds it. An expired lease of our own gets a new epoch too: others may have counted us out."""
    stands = standing(seen, nonce, now)
    if stands is Standing.HELD:
        return None
    last = seen.record
    if stands is Standing.MINE and last is not None:
        return LeaseRecord(holder, last.epoch, ttl_seconds, nonce, last.beat + 1)
    return LeaseRecord(holder, (last.epoch if last is not None else 0) + 1, ttl_seconds, nonce, 1)


def released(record: LeaseRecord) -> LeaseRecord:
    """The record that gives the lease up: it keeps the epoch, so that epochs never repeat."""
    return LeaseRecord(record.holder, record.epoch, 0.0, record.nonce, record.beat + 1)
