"""Hard wishes: pins and the active profile are met, or listed in `unmet` with their causes (lifecycle.md)."""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.model.desired import Pin
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.words import Residency

from .plan_codes import at, fault
from .plan_hard import names, pins
from .plan_routes import unavailable
from .plan_scene import LaneFacts, Scene
from .plan_sums import Sums


def wish_findings(scene: Scene, sums: Sums) -> Iterator[Finding]:
    """Hard wishes that the plan neither meets nor lists, or lists though it meets them."""
    for key, pin in sorted(pins(scene).items()):
        unmet = _unmet(scene, key)
        meeting = [lane for lane in scene.lanes.values() if _meets(scene, sums, lane, key, pin)]
        if not meeting and not unmet:
            yield fault("planWishUnmet", at("unmet"), f"the pin {key} is neither met nor listed")
        elif unmet and any(not scene.vacating(lane) for lane in meeting):
            yield fault("planWishMet", at("unmet"), f"the pin {key} is listed as unmet and is met")
    profile = scene.profile
    for key, residency in sorted(profile.residency.items()) if profile else ():
        lanes = [lane for lane in scene.lanes.values() if names(key, lane)]
        met = any(_has(scene, sums, lane, residency) for lane in lanes)
        if not met and not _unmet(scene, key):
            yield fault("planWishUnmet", at("unmet"), f"the profile's residency of {key} is neither met nor listed")
    for index, wish in enumerate(scene.plan.unmet):
        if not wish.causes:
            yield fault("planWishCause", at("unmet", index), f"no cause is given for {wish.wish}")
        if not _known(scene, wish.wish):
            yield fault("planWishMet", at("unmet", index), f"nobody wishes {wish.wish}")


def _known(scene: Scene, wish: str) -> bool:
    profile = scene.profile
    keys = [*pins(scene), *(profile.residency if profile else ()), *(profile.routes if profile else ())]
    return any(key in wish for key in keys)


def _unmet(scene: Scene, key: str) -> bool:
    return any(key in wish.wish for wish in scene.plan.unmet)


def _meets(scene: Scene, sums: Sums, lane: LaneFacts, key: str, pin: Pin) -> bool:
    """A lane there, of the wanted recipe and residency, that can serve and that the model's routes lead to."""
    if not names(key, lane) or (pin.recipe is not None and pin.recipe != lane.recipe):
        return False
    if unavailable(scene, sums, lane) is not None or (lane.installs and lane.id not in scene.plan.lanes):
        return False
    if pin.residency is not None and not _has(scene, sums, lane, pin.residency):
        return False
    model = key.rpartition("@")[0]
    behind = {
        entry
        for planned in scene.plan.routes.values()
        for name, entry in zip(planned.route, planned.lanes, strict=True)
        if name == model
    }
    return not behind or lane.id in behind


def _has(scene: Scene, sums: Sums, lane: LaneFacts, residency: Residency) -> bool:
    """A running unmanaged lane meets any wish; a managed one has the residency and can serve."""
    if not lane.managed:
        return lane.loaded and lane.id not in scene.left
    return scene.residency[lane.id] is residency and unavailable(scene, sums, lane) is None
