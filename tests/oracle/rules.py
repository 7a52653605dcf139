"""What documents.md and lifecycle.md allow: who may stand behind an entry, whole routes, held lanes, hard wishes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .outcome import AUTO, Domain, Outcome
from .world import AliasFacts, LaneFacts, World


def usable(world: World, lane: LaneFacts, alias: AliasFacts) -> bool:
    """Whether a lane may stand behind an alias's entry, memory and what is stopped apart."""
    if lane.dead or not world.meets(lane, alias):
        return False
    if lane.leaving:
        # No lane is planned on a cordoned node: one that stays there keeps its routes, and gets no others.
        led = lane.id in {behind for _, behind in alias.now or ()}
        return (
            led
            and not lane.draining
            and not lane.asked_stopped
            and (lane.loaded or (lane.managed and lane.able and lane.known))
        )
    if not lane.managed or lane.asked_stopped:
        return lane.loaded and not lane.asked_stopped
    return lane.loaded or (lane.able and lane.known)


def must_stay(outcome: Outcome, lane: LaneFacts) -> bool:
    """A lane on a cordoned node stays while an alias that names its models has nothing else, or when none names it."""
    naming = [
        alias
        for alias in outcome.world.aliases.values()
        if set(lane.models) & {*alias.wish.models, *(model for model, external in alias.order if not external)}
    ]
    bare = [
        alias.name
        for alias in naming
        if not any(external for _, external in alias.order)
        and {behind for _, behind in outcome.routes[alias.name]} <= {lane.id}
    ]
    return bool(bare) or not naming


def routes_are_whole(outcome: Outcome) -> bool:
    """No route leaves out a model that is covered (an old build's route: none before its only entry)."""
    world = outcome.world
    for name, alias in world.aliases.items():
        route = outcome.routes[name]
        listed = [model for model, _ in route]
        for model, external in alias.order:
            if world.one_model_routes and listed and model == listed[0]:
                break
            if model not in listed and (external or any(_covers(outcome, alias, model))):
                return False
    return True


def _covers(outcome: Outcome, alias: AliasFacts, model: str) -> Iterator[bool]:
    """For each lane that could stand behind a model which the route leaves out: whether memory lets it."""
    world = outcome.world
    for lane in world.lanes.values():
        if model not in lane.models or not usable(world, lane, alias):
            continue
        if lane.leaving and not must_stay(outcome, lane):
            continue
        if any(pin.rpartition("@")[0] == model and not world.named(pin, lane) for pin in outcome.pins):
            continue
        residency = dict(outcome.residency)
        if lane.managed and lane.id not in outcome.routed and not lane.untouchable:
            residency[lane.id] = AUTO
        # As a last entry it asks for nothing but to be loadable.
        # What leaves only because no route leads to it would stay.
        longer = replace(
            outcome,
            residency=residency,
            gone=outcome.gone - {lane.id},
            routes={**outcome.routes, alias.name: (*outcome.routes[alias.name], (model, lane.id))},
        )
        yield longer.sums_hold()


def meets_wish(outcome: Outcome, key: str) -> bool:
    """A hard wish is met by one lane that it names and that has the residency.

    A pin's lane can serve besides, and routes lead to no other lane for its model.
    """
    world, wish = outcome.world, outcome.world.hard[key]
    named = [lane for lane in world.lanes.values() if world.named(key, lane) and _of_recipe(world, lane, wish.recipe)]
    ranked = [
        lane
        for lane in named
        if wish.residency is None or (outcome.residency[lane.id] is wish.residency if lane.managed else lane.loaded)
    ]
    if key.startswith("="):
        return any(_stays(outcome, lane) and _up(lane) for lane in ranked)
    model = key.rpartition("@")[0]
    behind = {lane for route in outcome.routes.values() for entry, lane in route if entry == model}
    if not behind <= {lane.id for lane in named}:
        return False
    return any(_can_serve(outcome, lane) and (not behind or lane.id in behind) for lane in ranked)


def _stays(outcome: Outcome, lane: LaneFacts) -> bool:
    return not (lane.dead or lane.id in outcome.gone or lane.leaving or lane.asked_stopped)


def _of_recipe(world: World, lane: LaneFacts, recipe: str | None) -> bool:
    seen = world.inventory.lanes[lane.id].recipe
    return recipe is None or (seen is not None and seen.id == recipe)


def _up(lane: LaneFacts) -> bool:
    """Whether it runs or can be loaded, room apart."""
    return lane.loaded or (lane.able and lane.known)


def _can_serve(outcome: Outcome, lane: LaneFacts) -> bool:
    """Whether a lane runs or can be loaded in the outcome, in a route or not."""
    if not _stays(outcome, lane):
        return False
    if not lane.managed or not _up(lane):
        return lane.loaded
    led_now = lane.id in outcome.routed_by_us and lane.id not in outcome.leads_anew
    adopted = {lane.id} if lane.holds or led_now else set()
    domains = [Domain(outcome, key) for key in lane.memory if key in outcome.world.limits]
    on_demand = outcome.residency[lane.id] is AUTO
    return all(
        (not on_demand or domain.within(domain.budget, [lane], lane.memory[domain.key], adopted))
        and domain.within(domain.limit, [lane], lane.peak[domain.key], adopted)
        for domain in domains
    )
