"""Reasons of a plan: why each lane is as it is, and what keeps lanes and models out, in a fixed order with numbers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lloom_gitops.catalog.memory import gib
from lloom_gitops.model.plan import Because, Cause
from lloom_gitops.model.words import Residency
from lloom_gitops.reconcile.room import holding

from .elsewhere import EACH_NODE, Elsewhere, model_causes
from .memory_sums import MemoryRules, Shortage, Sums, raised_sums, rules_of, sums
from .outcome import Outcome
from .world import LaneRole, NodeRole, World, causes_out, unsuitable

Beside = tuple[MemoryRules, Sums]


def shortage_cause(lane: str, shortage: Shortage, world: World) -> Cause:
    """A shortage as a cause: which rule of which domain, and by how much."""
    limit = world.limits.get(shortage.domain)
    domain = f"{limit.node}/{limit.domain}" if limit else shortage.domain
    if not shortage.known:
        return Cause(reason="capacityUnknown", lane=lane, domain=domain, needs_gb=gib(shortage.needs))
    reason = {"loadPeak": "loadPeak"}.get(shortage.rule, "memory")
    return Cause(
        reason=reason,
        lane=lane,
        domain=domain,
        short_gb=gib(shortage.short),
        needs_gb=gib(shortage.needs),
        has_gb=gib(shortage.has),
    )


def lane_causes(
    world: World, outcome: Outcome, lane: str, alias: str | None, beside: Beside | None = None
) -> tuple[Cause, ...]:
    """Everything that keeps a lane from answering (an alias), in a fixed order; `notChosen` where nothing does.

    `beside`: the memory rules and the outcome's sums, where they are at hand.
    """
    causes: list[Cause] = []
    variant = world.variants[lane]
    if lane in world.out:
        at = {node: world.nodes[node] for node in variant.nodes if node in world.nodes}
        causes += tuple(causes_out(world.desired, world.inventory, variant, at)) or (world.out[lane],)
    if lane in outcome.leaving or lane in world.out:
        for node in variant.nodes:
            if world.nodes.get(node) in (NodeRole.LEAVING, NodeRole.DRAINING):
                reason = "draining" if world.nodes[node] is NodeRole.DRAINING else "cordoned"
                causes.append(Cause(reason=reason, node=node, lane=lane))
    shortage = outcome.shortages.get(lane)
    if not variant.installed and lane not in outcome.residency:
        # An install that was not chosen: whether it could have been, beside what the outcome keeps loaded.
        rules, planned = beside or (rules_of(world), sums(world, outcome.residency))
        shortage = rules.unloadable(variant, Residency.AUTO, planned)
    if shortage is not None:
        causes.append(shortage_cause(lane, shortage, world))
    if alias is not None:
        cause = unsuitable(variant, world.alias(alias).needs)
        causes += [cause] if cause is not None else []
    pinned = {model: world.pinned[model] for model in variant.models if model in world.pinned}
    for model, lanes in pinned.items():
        if lane not in lanes:
            causes.append(Cause(reason="pinnedElsewhere", lane=lane, model=model, says=", ".join(lanes)))
    return tuple(causes) or (Cause(reason="notChosen", lane=lane),)


def missing_models(world: World, outcome: Outcome, alias: str) -> tuple[Cause, ...]:
    """What keeps each model of an alias's own order out of its route, in that order."""
    routed = {model for model, _ in (*outcome.served[alias].entries, *outcome.served[alias].cut)}
    causes: list[Cause] = []
    if alias in outcome.held:
        for _, lane in outcome.served[alias].entries:
            causes.append(Cause(reason="heldOnCordoned", lane=lane))
    for entry in world.entries[alias]:
        if entry.external or entry.model in routed:
            continue
        lanes = _worth_telling(world, outcome, world.by_model.get(entry.model, ()))
        found = [cause for lane in lanes for cause in lane_causes(world, outcome, lane, alias)]
        found += model_causes(world, entry.model)
        causes += [msgspec.structs.replace(cause, model=entry.model) for cause in found or (Cause(reason="noLane"),)]
    return tuple(causes)


def answers(outcome: Outcome) -> dict[str, tuple[list[str], list[str]]]:
    """For each routed lane the aliases that it answers first, and those in which it is a later entry."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for alias, row in outcome.served.items():
        for place, (_, lane) in enumerate(row.entries):
            if lane is not None:
                found.setdefault(lane, ([], []))[1 if place else 0].append(alias)
    return found


def because(
    world: World,
    outcome: Outcome,
    lane: str,
    elsewhere: Elsewhere,
    serves: tuple[list[str], list[str]],
    beside: Beside,
) -> Because:
    """Why a planned lane is in the plan, and what rejected each alternative.

    These are the lanes that people would rather have in its place, and every other node. `serves`: see `answers`.
    """
    answered, later = serves
    rejected: dict[str, tuple[Cause, ...]] = {}
    for alias in answered:
        for other in _worth_telling(world, outcome, _rather(world, outcome, alias, lane)):
            rejected.setdefault(other, lane_causes(world, outcome, other, alias, beside))
    rejected.update(elsewhere.nodes(lane, outcome.residency[lane]))
    return Because(reason=_reason(world, outcome, lane, answered, later), rejected=dict(sorted(rejected.items())))


def _worth_telling(world: World, outcome: Outcome, lanes: Sequence[str]) -> Sequence[str]:
    """Of a large pool the lanes that are there, and the first of all places where one could be installed."""
    if len(world.nodes) <= EACH_NODE:
        return lanes
    there = {lane for lane in lanes if world.variants[lane].installed or lane in outcome.residency}
    first = next((lane for lane in lanes if lane not in there), None)
    return [lane for lane in lanes if lane in there or lane == first]


def _rather(world: World, outcome: Outcome, alias: str, lane: str) -> list[str]:
    """Lanes of earlier models in the alias's order, and other lanes of the model that answers."""
    answering = outcome.served[alias].entries[0][0]
    result = []
    for entry in world.entries[alias]:
        if entry.external:
            continue
        result += [name for name in world.by_model.get(entry.model, ()) if name != lane]
        if entry.model == answering:
            break
    return result


def _reason(world: World, outcome: Outcome, lane: str, answered: list[str], later: list[str]) -> str:
    if lane in outcome.staying:
        return "heldOnCordoned"
    if world.roles[lane] is LaneRole.FIXED and lane not in world.hard:
        return "asItIs"
    if lane in world.hard:
        return "pinned"
    if not answered:
        return "laterEntry" if later else "notRouted"
    return "onlyFit" if any(_only_fit(world, outcome, alias, lane) for alias in answered) else "firstChoice"


def _only_fit(world: World, outcome: Outcome, alias: str, lane: str) -> bool:
    """Whether a lane is the only local one left of several that the alias names."""
    left = [name for _, name in outcome.served[alias].entries if name is not None]
    return len(left) == 1 and bool(_rather(world, outcome, alias, lane))


def below_wish(world: World, rules: MemoryRules, outcome: Outcome, lane: str, planned: Sums) -> Cause | None:
    """Why a lane has less residency than people wish: the sum that the wish would break, with numbers.

    `planned` are the outcome's sums.
    """
    wish, has = outcome.wished.get(lane), outcome.residency[lane]
    if wish is None or has.rank >= wish.rank:
        return None
    raised = {**outcome.residency, lane: wish}
    keys = sorted(world.variants[lane].memory)
    near = sorted({other for key in keys for other in world.lanes_on[key] if other in raised})
    planned = raised_sums(world, planned, lane, has, wish)
    for key in keys:
        over = rules.over_at(key, planned)
        if over is not None:
            return shortage_cause(lane, over, world)
    for other in near:
        shortage = rules.unloadable(world.variants[other], raised[other], planned)
        if shortage is not None and other not in outcome.shortages:
            return msgspec.structs.replace(shortage_cause(other, shortage, world), lane=other)
    apart = _set_broken(world, rules, raised, lane)
    if apart is not None:
        return apart
    return _no_room(world, outcome, lane) or Cause(reason="noRoom", lane=lane, has=has.value, needs=wish.value)


def _set_broken(world: World, rules: MemoryRules, raised: dict[str, Residency], lane: str) -> Cause | None:
    """The co-resident set whose auto lanes would not fit together, were a lane raised."""
    if not world.desired.pool.co_resident:
        return None
    planned = sums(world, raised)
    for lanes in rules.broken_sets(raised, planned):
        for key in sorted({key for name in lanes for key in world.variants[name].memory}):
            limit = world.limits.get(key)
            has = limit.budget_mib if limit is not None else None
            need = sum(world.variants[name].memory.get(key, 0) for name in lanes) + planned.always.get(key, 0)
            if limit is not None and has is not None and need > has:
                return Cause(
                    reason="coResident",
                    lane=lane,
                    domain=f"{limit.node}/{limit.domain}",
                    short_gb=gib(need - has),
                    needs_gb=gib(need),
                    has_gb=gib(has),
                    says=", ".join(lanes),
                )
    return None


def _no_room(world: World, outcome: Outcome, lane: str) -> Cause | None:
    """The domain on which a lane's load peak does not fit beside what is loaded and what the outcome keeps loaded."""
    kept = {name for name, residency in outcome.residency.items() if residency is Residency.ALWAYS}
    for key, peak in sorted(world.variants[lane].peak.items()):
        limit = world.limits.get(key)
        if limit is None or limit.limit_mib is None or lane in world.out:
            continue
        there = [world.variants[other] for other in world.lanes_on[key] if other != lane]
        rest = (variant for variant in there if variant.state.holds_memory or variant.id in kept)
        free = limit.limit_mib - sum((holding(v) or v.memory).get(key, 0) for v in rest)
        if peak > free:
            domain = f"{limit.node}/{limit.domain}"
            short, has = gib(peak - free), gib(max(0, free))
            return Cause(reason="noRoom", lane=lane, domain=domain, short_gb=short, needs_gb=gib(peak), has_gb=has)
    return None
