"""What of an observation is worth a commit (pure): committed values move only when they matter (INV-6).

Numbers that wobble (demand, performance, measured and foreign memory, free disk) keep their committed value while the
new one is near it; a node that is only suspect keeps its committed entry; lanes that load and unload by themselves make
no commit by their state alone. Everything else is committed as seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeVar

import msgspec

from lloom_gitops.model.inventory import Demand, Disk, Inventory, MemoryDomain, ObservedLane, ObservedNode, Performance
from lloom_gitops.model.words import Liveness, Residency, Seen

_Figure = TypeVar("_Figure", int, Decimal)

_FACTOR = Decimal("1.5")
_MEMORY_GB = Decimal(2)
_DISK_GB = Decimal(10)


def settle(previous: Inventory, fresh: Inventory) -> Inventory:
    """The inventory to commit: `previous` itself when nothing that matters changed.

    Plan on `damp(previous, fresh)`: a plan needs to know what is loaded now.
    """
    damped = damp(previous, fresh)
    nodes = {name: _committed_node(previous.nodes.get(name), node) for name, node in damped.nodes.items()}
    settled = msgspec.structs.replace(damped, nodes=nodes)
    quiet = {name: _quiet(previous.lanes.get(name), lane) for name, lane in settled.lanes.items()}
    return previous if msgspec.structs.replace(settled, lanes=quiet) == previous else settled


def damp(previous: Inventory, fresh: Inventory) -> Inventory:
    """`fresh`, but each number that wobbles keeps its committed value while it is near; states and liveness as seen."""
    return msgspec.structs.replace(
        fresh,
        nodes={name: _damp_node(previous.nodes.get(name), node) for name, node in fresh.nodes.items()},
        lanes={name: _damp_lane(previous.lanes.get(name), lane) for name, lane in fresh.lanes.items()},
        performance={
            name: _damp_performance(previous.performance.get(name), now) for name, now in fresh.performance.items()
        },
        demand={name: _damp_demand(previous.demand.get(name), now) for name, now in fresh.demand.items()},
    )


def _committed_node(before: ObservedNode | None, now: ObservedNode) -> ObservedNode:
    """Ready, lost and left are committed; a node in doubt stays as it was."""
    in_doubt = now.liveness is Liveness.SUSPECT or (now.seen is Seen.UNKNOWN and now.liveness is Liveness.READY)
    return before if in_doubt and before is not None else now


def _quiet(before: ObservedLane | None, now: ObservedLane) -> ObservedLane:
    """An auto lane with the committed state, so that loading by itself shows no difference."""
    if before is None or now.residency is not Residency.AUTO or before.residency is not Residency.AUTO:
        return now
    return msgspec.structs.replace(
        now, state=before.state, started_by=before.started_by, measured_gb=before.measured_gb, abort_gb=before.abort_gb
    )


def _damp_node(before: ObservedNode | None, now: ObservedNode) -> ObservedNode:
    if before is None:
        return now
    domains = {domain.id: domain for domain in before.memory_domains}
    disks = {disk.root: disk for disk in before.disks or ()}
    return msgspec.structs.replace(
        now,
        memory_domains=tuple(_damp_domain(domains.get(domain.id), domain) for domain in now.memory_domains),
        disks=None if now.disks is None else tuple(_damp_disk(disks.get(disk.root), disk) for disk in now.disks),
    )


def _damp_domain(before: MemoryDomain | None, now: MemoryDomain) -> MemoryDomain:
    if before is None:
        return now
    return msgspec.structs.replace(
        now,
        capacity_gb=_near(before.capacity_gb, now.capacity_gb, _MEMORY_GB),
        foreign_gb=_near(before.foreign_gb, now.foreign_gb, _MEMORY_GB),
    )


def _damp_disk(before: Disk | None, now: Disk) -> Disk:
    return now if before is None else msgspec.structs.replace(now, free_gb=_near(before.free_gb, now.free_gb, _DISK_GB))


def _damp_lane(before: ObservedLane | None, now: ObservedLane) -> ObservedLane:
    if before is None:
        return now
    return msgspec.structs.replace(
        now,
        measured_gb=_near_each(before.measured_gb, now.measured_gb),
        load_seconds=_like(before.load_seconds, now.load_seconds),
    )


def _near_each(before: Mapping[str, Decimal], now: Mapping[str, Decimal]) -> dict[str, Decimal]:
    return {place: _near(before.get(place), gb, _MEMORY_GB) or gb for place, gb in now.items()}


def _damp_performance(before: Performance | None, now: Performance) -> Performance:
    if before is None or before.source != now.source:
        return now
    return Performance(
        ttft_ms=_like(before.ttft_ms, now.ttft_ms),
        tokens_per_second=_like(before.tokens_per_second, now.tokens_per_second),
        source=now.source,
    )


def _damp_demand(before: Demand | None, now: Demand) -> Demand:
    if before is None:
        return now
    rate = _like(before.requests_per_hour, now.requests_per_hour)
    return Demand(
        requests_per_hour=now.requests_per_hour if rate is None else rate,
        output_tokens=_like(before.output_tokens, now.output_tokens),
    )


def _near(before: Decimal | None, now: Decimal | None, by: Decimal) -> Decimal | None:
    """The committed figure while the new one differs by no more than `by`."""
    return before if before is not None and now is not None and abs(now - before) <= by else now


def _like(before: _Figure | None, now: _Figure | None) -> _Figure | None:
    """The committed figure while the new one is within a factor of 1.5."""
    if before is None or now is None:
        return now
    low, high = sorted((Decimal(before), Decimal(now)))
    return before if high <= low * _FACTOR else now
