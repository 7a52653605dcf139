"""Pins against each other, against memory, against the state of their nodes, and against the calendar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from lloom_gitops.catalog.memory import DomainKeys, footprint, gib, keys_of_nodes, limits, mib_up
from lloom_gitops.model.desired import Pin
from lloom_gitops.model.errors import Finding, Severity
from lloom_gitops.model.words import NodeState, Residency

from .documents_scene import Scene

WARN_BEFORE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class _Placed:
    """One pin in force: where it stands, and a lower bound of the memory (MiB) that meeting it takes, by domain key.

    A lane that serves several models counts with its share for each of them, so sums over pins stay lower bounds.
    """

    key: str
    tokens: tuple[str, ...]
    pin: Pin
    claims: dict[str, int]

    @property
    def held(self) -> bool:
        """Whether it is a part of the residency sums: an auto lane may be displaced."""
        return self.pin.residency in (Residency.ALWAYS, Residency.PREFERRED)


def pin_findings(scene: Scene) -> Iterator[Finding]:
    """Pins that exclude each other or can't fit (errors); pins on cordoned nodes, old and ageing pins (warnings)."""
    yield from _residencies(scene)
    placed = [_placed(scene, *row) for row in _in_force(scene)]
    yield from _memory(scene, placed)
    for each in placed:
        yield from _cordoned(scene, each)
    for key, tokens, pin in _all_pins(scene):
        yield from _expiry(scene, key, tokens, pin)


def _all_pins(scene: Scene) -> Iterator[tuple[str, tuple[str, ...], Pin]]:
    for key, pin in scene.desired.pins.items():
        yield key, ("pins", key), pin
    for name, profile in scene.desired.profiles.items():
        for key, pin in profile.pins.items():
            yield key, ("profiles", name, "pins", key), pin


def _in_force(scene: Scene) -> Iterator[tuple[str, tuple[str, ...], Pin]]:
    """The pins of the pool and of its active profile; of two for one place, the pool's."""
    active = scene.desired.pool.active_profile
    for key, tokens, pin in _all_pins(scene):
        if tokens[0] == "pins" or (tokens[1] == active and key not in scene.desired.pins):
            yield key, tokens, pin


def _residencies(scene: Scene) -> Iterator[Finding]:
    """Two hard wishes for one place that want different residencies."""
    active = scene.desired.pool.active_profile or ""
    profile = scene.desired.profiles.get(active)
    if profile is None:
        return
    wished = {key: pin.residency for key, pin in scene.desired.pins.items() if pin.residency}
    others = [(("profiles", active, "residency", key), key, wish) for key, wish in profile.residency.items()]
    pins = [(("profiles", active, "pins", key), key, pin.residency) for key, pin in profile.pins.items()]
    for tokens, key, residency in (*pins, *others):
        if residency is None:
            continue
        if wished.setdefault(key, residency) is not residency:
            message = f"{key} is {wished[key]} by another pin, {residency} here"
            yield scene.finding("pinsExclude", tokens, message, wanted=wished[key], found=residency)


def _placed(scene: Scene, key: str, tokens: tuple[str, ...], pin: Pin) -> _Placed:
    options = [*_lanes(scene, key), *_recipes(scene, key, pin)]
    domains = sorted({domain for option in options for domain in option})
    least = {domain: min(option.get(domain, 0) for option in options) for domain in domains}
    return _Placed(key, tokens, pin, least)


def _lanes(scene: Scene, key: str) -> Iterator[dict[str, int]]:
    """Memory of each seen or declared lane that would meet the pin."""
    model, nodes = _split(key)
    domains = keys_of_nodes(limits(scene.desired, scene.seen))
    for lane in scene.seen.lanes.values():
        if model in lane.models and sorted(lane.nodes) == nodes:
            held = footprint(scene.desired.pool, lane, domains)
            yield {domain: figure // len(lane.models) for domain, figure in held.items()}
    for name, declared in scene.desired.lanes.items():
        facts = declared.pool
        if facts and name not in scene.seen.lanes and model in facts.models and sorted(facts.nodes) == nodes:
            yield _on_first(domains, nodes, mib_up(facts.memory_gb) // len(facts.models))


def _recipes(scene: Scene, key: str, pin: Pin) -> Iterator[dict[str, int]]:
    """Memory of each recipe that would meet the pin."""
    model, nodes = _split(key)
    domains = keys_of_nodes(limits(scene.desired, scene.seen))
    for name, recipe in scene.desired.recipes.items():
        needs, models = recipe.spec.requirements, [served.gateway_model for served in recipe.spec.models]
        if model in models and pin.recipe in (None, name) and needs.nodes == len(nodes):
            yield _on_first(domains, nodes, mib_up(needs.memory_gb or Decimal(0)) // len(models))


def _on_first(domains: DomainKeys, nodes: list[str], figure: int) -> dict[str, int]:
    return {domains[node][0]: figure for node in nodes if node in domains}


def _split(key: str) -> tuple[str, list[str]]:
    model, _, nodes = key.rpartition("@")
    return model, sorted(nodes.split("+"))


def _memory(scene: Scene, placed: list[_Placed]) -> Iterator[Finding]:
    """On each domain: the held pins together, and each other pin beside the always ones, within the budget."""
    for domain, limit in limits(scene.desired, scene.seen).items():
        here = [each for each in placed if domain in each.claims]
        if limit.budget_mib is None or not here:
            continue
        budget = max(limit.budget_mib, _held_now(scene, domain))
        held = [each for each in here if each.held]
        yield from _over(scene, domain, budget, held)
        always = [each for each in held if each.pin.residency is Residency.ALWAYS]
        for other in (each for each in here if not each.held):
            yield from _over(scene, domain, budget, [*always, other])


def _over(scene: Scene, domain: str, budget: int, pins: list[_Placed]) -> Iterator[Finding]:
    total = sum(each.claims[domain] for each in pins)
    if total <= budget:
        return
    last, names = pins[-1], ", ".join(each.key for each in pins)
    code = "pinsExclude" if len(pins) > 1 else "pinTooLarge"
    message = f"{names} can't be met together on {domain}" if len(pins) > 1 else f"{names} does not fit on {domain}"
    yield scene.finding(code, last.tokens, message, wanted=f"at most {gib(budget):f} GiB", found=f"{gib(total):f} GiB")


def _held_now(scene: Scene, domain: str) -> int:
    """MiB that loaded always and preferred lanes hold now: what is over budget when a pool is adopted may stay."""
    domains = keys_of_nodes(limits(scene.desired, scene.seen))
    lanes = (lane for lane in scene.seen.lanes.values() if lane.state.loaded and lane.residency is not Residency.AUTO)
    return sum(footprint(scene.desired.pool, lane, domains).get(domain, 0) for lane in lanes)


def _cordoned(scene: Scene, placed: _Placed) -> Iterator[Finding]:
    for name in placed.key.rpartition("@")[2].split("+"):
        declared, seen = scene.desired.nodes.get(name), scene.seen.nodes.get(name)
        states = [declared.state if declared else None, seen.state if seen else None]
        state = max((state for state in states if state), key=lambda state: state.strictness, default=NodeState.SERVE)
        if state in (NodeState.CORDON, NodeState.DRAIN):
            message = f"{name} is in state {state}: the pin is suspended until it serves"
            yield scene.finding("pinOnCordonedNode", placed.tokens, message, severity=Severity.WARNING)


def _expiry(scene: Scene, key: str, tokens: tuple[str, ...], pin: Pin) -> Iterator[Finding]:
    if pin.expires is None:
        return
    place = (*tokens, "expires")
    try:
        day = date.fromisoformat(pin.expires)
    except ValueError:
        yield scene.finding("noSuchDay", place, f"there is no day {pin.expires}")
        return
    if day <= scene.today:
        yield scene.finding("pinExpired", place, f"{key} is old since {day}", severity=Severity.WARNING)
    elif day - scene.today <= WARN_BEFORE:
        days = (day - scene.today).days
        message = f"{key} will be old in {days} day{'s' if days > 1 else ''}"
        yield scene.finding("pinExpiresSoon", place, message, severity=Severity.WARNING)
