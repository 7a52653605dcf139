"""Residency of lanes: what people wish, never more; less only where memory forces it, and said with the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.model.errors import Finding
from lloom_gitops.model.words import Feature, LaneState, Residency

from .plan_codes import at, fault
from .plan_hard import hard_residency
from .plan_scene import LaneFacts, Scene
from .plan_sums import Sums


def residency_findings(scene: Scene, sums: Sums) -> Iterator[Finding]:
    """Each planned lane's residency against what is wished of it."""
    for name, planned in scene.plan.lanes.items():
        lane = scene.lanes[name]
        if not lane.managed or scene.hands_off(lane):
            if planned.residency is not lane.residency and lane.managed:
                yield fault("planResidencyChanged", at("lanes", name, "residency"), f"{name} is to be left as it is")
            continue
        # A lane that is only held on a cordoned node stays as it is.
        if not (scene.vacating(lane) and planned.residency is lane.residency):
            yield from _wished(scene, sums, lane, planned.residency)


def wished(scene: Scene, lane: LaneFacts) -> Residency | None:
    """What people wish of a lane; None where it is in no declared alias's route: it keeps what it has."""
    hard = hard_residency(scene, lane)
    if hard is not None:
        return hard
    wishes: list[Residency] = []
    for name, planned in scene.plan.routes.items():
        if lane.id not in planned.lanes or name not in scene.desired.aliases:
            continue
        first = planned.lanes[0] == lane.id
        wishes.append(scene.desired.aliases[name].residency if first else Residency.AUTO)
    return max(wishes, key=lambda wish: wish.rank, default=None)


def _wished(scene: Scene, sums: Sums, lane: LaneFacts, given: Residency) -> Iterator[Finding]:
    wish = wished(scene, lane) or lane.residency
    unknown = any(key not in scene.limits or scene.limits[key].limit_mib is None for key in lane.memory)
    if unknown and wish.rank > lane.residency.rank and hard_residency(scene, lane) is None:
        wish = lane.residency  # where the capacity is unknown nothing is added to what runs
    old = not scene.has(lane.owner, Feature.RESIDENCY) and hard_residency(scene, lane) is None
    if old and lane.loaded and given is lane.residency and _too_high(scene, lane):
        return  # any edit would restart it, and there is no room for its load peak
    if wish is Residency.PREFERRED and lane.residency is not wish and old:
        wish = Residency.AUTO  # builds without the word know only always and auto
    pointer = at("lanes", lane.id, "residency")
    if given.rank > wish.rank:
        yield fault(
            "planResidencyTooMuch",
            pointer,
            f"{lane.id} gets more than was wished",
            wanted=wish.value,
            found=given.value,
        )
    if given.rank >= wish.rank:
        return
    better = [r for r in Residency if given.rank < r.rank <= wish.rank]
    for residency in better:
        if not any(sums.broken(lane.memory, {lane.id: residency})) and not _no_room(scene, lane):
            yield fault(
                "planResidencyTooLittle",
                pointer,
                f"{lane.id}: memory does not force {given.value}",
                wanted=residency.value,
                found=given.value,
            )
    if not _said(scene, lane, wish):
        yield fault(
            "planResidencyUnsaid", at("diff", "residency"), f"{lane.id} gets less than {wish.value} and nothing says so"
        )


def _too_high(scene: Scene, lane: LaneFacts) -> bool:
    """Whether the lane's load peak does not fit beside what is loaded now on one of its domains."""
    others = [other for other in scene.lanes.values() if other.id != lane.id and other.state.holds_memory]
    for key, peak in lane.peak.items():
        limit = scene.limits[key].limit_mib if key in scene.limits else None
        held = sum((o.peak if o.state is LaneState.LOADING else o.memory).get(key, 0) for o in others)
        if limit is not None and held + peak > limit:
            return True
    return False


def _no_room(scene: Scene, lane: LaneFacts) -> bool:
    """Whether the lane could not be loaded beside what holds memory now and is not stopped by this plan."""
    if lane.state.holds_memory:
        return False
    for key, peak in lane.peak.items():
        limit = scene.limits[key].limit_mib if key in scene.limits else None
        others = [other for other in scene.lanes.values() if other.state.holds_memory and other.id not in scene.stops]
        started = [scene.lanes[name] for name in scene.started if name != lane.id]
        held = sum((o.peak if o.state is LaneState.LOADING else o.memory).get(key, 0) for o in others)
        held += sum(other.memory.get(key, 0) for other in started if not other.state.holds_memory)
        if limit is None or held + peak > limit:
            return True
    return False


def _said(scene: Scene, lane: LaneFacts, wish: Residency) -> bool:
    """The diff says what was wished and why it is not given; a note does where nothing changes."""
    for change in scene.plan.diff.residency:
        if change.lane == lane.id and change.wished is wish and change.because is not None:
            return any(figure is not None for figure in (change.because.short_gb, change.because.needs_gb))
    return any(note.lane == lane.id for note in scene.plan.notes)
