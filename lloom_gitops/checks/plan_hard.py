"""What people wish hard: pins and the active profile, and which lanes they name."""

from __future__ import annotations

from lloom_gitops.model.desired import Pin
from lloom_gitops.model.words import Residency

from .plan_scene import LaneFacts, Scene


def pins(scene: Scene) -> dict[str, Pin]:
    """All pins in force by key MODEL@NODE[+NODE]: the pool's, and the active profile's over them."""
    profile = scene.profile
    return {**scene.desired.pins, **(profile.pins if profile else {})}


def names(key: str, lane: LaneFacts) -> bool:
    """Whether MODEL@NODE[+NODE], or a lane's own id, names this lane."""
    model, separator, place = key.rpartition("@")
    if not separator:
        return key == lane.id
    return key == lane.id or (model in lane.models and set(place.split("+")) == set(lane.nodes))


def hard_residency(scene: Scene, lane: LaneFacts) -> Residency | None:
    """The residency that a pin or the active profile demands of a lane; None where neither does.

    A wish that the plan lists as unmet is suspended and demands nothing (whether it may be is judged with the wishes).
    Where several lanes fit one wish, one of them that has the residency is enough.
    """
    profile = scene.profile
    unmet = {row.wish for row in scene.plan.unmet}
    active = f"profile {scene.desired.pool.active_profile}"
    wishes = [(key, pin.residency, pin.recipe) for key, pin in sorted(pins(scene).items()) if f"pin {key}" not in unmet]
    if profile is not None:
        named = sorted(profile.residency.items())
        wishes += [(key, residency, None) for key, residency in named if f"{active}: {key}" not in unmet]
    for key, residency, recipe in wishes:
        if residency is None or not names(key, lane) or recipe not in (None, lane.recipe):
            continue
        others = (other for other in scene.lanes.values() if other.id != lane.id and names(key, other))
        elsewhere = any(scene.residency[other.id] is residency for other in others)
        if scene.residency[lane.id] is residency or not elsewhere:
            return residency
    return None
