"""The one memory-budget function: limits and budgets of domains, footprints and load peaks of lanes, in whole MiB.

Planning, admission reads, the judge and the simulator all ask here (documents.md, Memory). A domain's key is the node's
id where the node has one domain, else `node/domain`. Unknown capacity gives limit and budget None: what runs there
stays, nothing new is placed there. Sums are computed in exact decimals and rounded once: limits down, footprints up.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import msgspec

from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.inventory import Admission, Inventory, MemoryDomain, ObservedLane, ObservedNode
from lloom_gitops.model.pool import MemoryRule, Pool
from lloom_gitops.model.words import DomainKind

MIB_PER_GIB = 1024

DomainKeys = Mapping[str, tuple[str, ...]]


class DomainLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Limit and budget of one memory domain in MiB; None where the capacity is unknown."""

    key: str
    node: str
    domain: str
    index: int
    capacity_mib: int | None
    limit_mib: int | None
    budget_mib: int | None


def mib_up(gib: Decimal) -> int:
    """GiB to whole MiB, rounded up: footprints."""
    return int((gib * MIB_PER_GIB).to_integral_value(ROUND_CEILING))


def mib_down(gib: Decimal) -> int:
    """GiB to whole MiB, rounded down: limits and budgets."""
    return int((gib * MIB_PER_GIB).to_integral_value(ROUND_FLOOR))


def gib(mib: int) -> Decimal:
    """Whole MiB to GiB for people and plan files: exact up to a tenth, else rounded to one digit."""
    return (Decimal(mib) / MIB_PER_GIB).quantize(Decimal("0.1")).normalize() + Decimal(0)


def exact_gib(mib: int) -> Decimal:
    """Whole MiB to GiB without rounding: for facts that are compared."""
    return Decimal(mib) / MIB_PER_GIB


def domains_of(node: ObservedNode | None, declared: Node | None) -> tuple[MemoryDomain, ...]:
    """The node's memory domains as reported; `assumeMemoryGb` stands in only while the report is unknown."""
    assumed = declared.assume_memory_gb if declared else None
    reported = node.memory_domains if node else ()
    if not reported:
        return (MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=assumed),)
    if assumed is None or len(reported) > 1 or reported[0].capacity_gb is not None:
        return reported
    return (msgspec.structs.replace(reported[0], capacity_gb=assumed),)


def domain_key(node: str, domain: str, count: int) -> str:
    """Key of a domain: the node where it has one domain, else `node/domain`."""
    return node if count == 1 else f"{node}/{domain}"


def _limit_gib(domain: MemoryDomain, rule: MemoryRule, own: Admission) -> Decimal | None:
    """The stricter of the pool's rule and the node's own admission; the latter speaks of host memory only."""
    capacity = domain.capacity_gb
    if capacity is None:
        return None
    device = domain.kind is DomainKind.DEVICE
    own_guard = None if device else own.guard_ceiling
    own_reserve = None if device else own.reserve_gb
    ceiling = rule.guard_ceiling if own_guard is None else min(rule.guard_ceiling, own_guard)
    reserve = rule.reserve_gb if own_reserve is None else max(rule.reserve_gb, own_reserve)
    margin = ((1 - ceiling) * capacity).to_integral_value(ROUND_CEILING)
    bounds = [capacity * ceiling, capacity - max(reserve, margin)]
    if not device and own.max_utilization is not None:
        bounds.append(capacity * own.max_utilization)
    if not device and own.budget_gb is not None:
        bounds.append(own.budget_gb)
    return max(Decimal(0), min(bounds) - domain.foreign_gb)


def limits(desired: Desired, inventory: Inventory) -> dict[str, DomainLimit]:
    """Limit and budget of every domain of every declared or seen node, keyed by domain key (MiB)."""
    result: dict[str, DomainLimit] = {}
    for name in sorted(set(desired.nodes) | set(inventory.nodes)):
        seen, declared = inventory.nodes.get(name), desired.nodes.get(name)
        domains = domains_of(seen, declared)
        for index, domain in enumerate(domains):
            pools = desired.pool.memory.rule(domain.kind)
            rule = declared.memory.override(domain.kind).over(pools) if declared else pools
            limit = _limit_gib(domain, rule, seen.admission if seen else Admission())
            key = domain_key(name, domain.id, len(domains))
            result[key] = DomainLimit(
                key=key,
                node=name,
                domain=domain.id,
                index=index,
                capacity_mib=None if domain.capacity_gb is None else mib_down(domain.capacity_gb),
                limit_mib=None if limit is None else mib_down(limit),
                budget_mib=None if limit is None else mib_down(max(Decimal(0), limit - rule.headroom_gb)),
            )
    return result


def _at_keys(lane: ObservedLane, given: Mapping[str, Decimal], keys: DomainKeys) -> dict[str, Decimal]:
    """Figures of a lane by domain key; a figure given for a node with several domains goes to its first one."""
    result: dict[str, Decimal] = {}
    for place, figure in given.items():
        of_node = keys.get(place)
        result[of_node[0] if of_node else place] = figure
    return {key: result[key] for key in sorted(result) if key.split("/", 1)[0] in lane.nodes}


def keys_of_nodes(domain_limits: Mapping[str, DomainLimit]) -> dict[str, tuple[str, ...]]:
    """Domain keys of each node, in the node's own order of domains; devices first, they are what lanes fill."""
    result: dict[str, list[DomainLimit]] = {}
    for limit in domain_limits.values():
        result.setdefault(limit.node, []).append(limit)
    return {
        node: tuple(d.key for d in sorted(rows, key=lambda d: (not d.domain.startswith("device"), d.index)))
        for node, rows in result.items()
    }


def footprint(pool: Pool, lane: ObservedLane, keys: DomainKeys) -> dict[str, int]:
    """Footprint of a lane by domain key, MiB (CAT-3); `keys` are the domain keys of the nodes.

    By `basis`: the larger of declared and measured; or measured plus margin where known. Never below the lower bound
    that a guard abort proved.
    """
    declared = _at_keys(lane, lane.memory_gb, keys)
    measured = _at_keys(lane, lane.measured_gb, keys)
    aborted = _at_keys(lane, lane.abort_gb, keys)
    result: dict[str, int] = {}
    for key in sorted(set(declared) | set(measured) | set(aborted)):
        figure = declared.get(key, Decimal(0))
        if key in measured:
            figure = measured[key] + pool.memory.margin if pool.memory.measured_basis else max(figure, measured[key])
        result[key] = mib_up(max(figure, aborted.get(key, Decimal(0))))
    return result


def peak(lane: ObservedLane, steady: Mapping[str, int], keys: DomainKeys) -> dict[str, int]:
    """Memory of a lane while it loads, by domain key, MiB; never below its footprint `steady`."""
    given = _at_keys(lane, lane.load_peak_gb, keys)
    return {key: max(figure, mib_up(given[key]) if key in given else 0) for key, figure in steady.items()}
