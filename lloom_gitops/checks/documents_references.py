"""Names that lead nowhere, and entries that say the same thing twice or two things at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lloom_gitops.model.desired import Pin
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Finding, Severity
from lloom_gitops.model.words import Management

from .documents_scene import Scene

Tokens = tuple[str | int, ...]


def reference_findings(scene: Scene) -> Iterator[Finding]:
    """Dangling references and contradictions between documents. Names of documents that can't be read are let pass."""
    yield from _pool(scene)
    yield from _nodes(scene)
    yield from _aliases(scene)
    yield from _lanes(scene)
    yield from _profiles(scene)
    for key, pin in scene.desired.pins.items():
        yield from _pin(scene, ("pins", key), key, pin)


def _pool(scene: Scene) -> Iterator[Finding]:
    if scene.unreadable(Kind.POOL):
        return
    pool = scene.desired.pool
    yield from _known_nodes(scene, [(("pool", "head"), pool.head)], code="unknownHead")
    profiles = frozenset(scene.desired.profiles)
    if pool.active_profile and pool.active_profile not in profiles and not scene.unreadable(Kind.PROFILE):
        yield scene.unknown("unknownProfile", ("pool", "activeProfile"), pool.active_profile, profiles)
    for index, group in enumerate(pool.co_resident):
        yield from _known_models(scene, _indexed(("pool", "coResident", index), group))
    if pool.liveness.lost_seconds < pool.liveness.suspect_seconds:
        message = f"lost after {pool.liveness.lost_seconds} s, suspect after {pool.liveness.suspect_seconds} s"
        yield scene.finding("livenessOrder", ("pool", "liveness"), message)
    if pool.write_back.results == "branch" and pool.write_back.results_branch is None:
        yield scene.finding("resultsBranchMissing", ("pool", "writeBack"), "results: branch names no branch")


def _nodes(scene: Scene) -> Iterator[Finding]:
    for name, node in scene.desired.nodes.items():
        for index, link in enumerate(node.links):
            tokens: Tokens = ("nodes", name, "links", index, "peer")
            yield from _known_nodes(scene, [(tokens, link.peer)])
            if link.peer == name:
                yield scene.finding("linkToItself", tokens, f"{name} is linked to itself")


def _aliases(scene: Scene) -> Iterator[Finding]:
    for name, alias in scene.desired.aliases.items():
        if not alias.models and not alias.external:
            yield scene.finding("aliasEmpty", ("aliases", name), f"{name} names no model")
        for tokens, model in _indexed(("aliases", name, "models"), alias.models):
            if model in scene.externals:
                yield scene.finding("externalAsModel", tokens, f"{model} is named as external too")
            else:
                yield from _known_models(scene, [(tokens, model)])


def _lanes(scene: Scene) -> Iterator[Finding]:
    for name, lane in scene.desired.lanes.items():
        if lane.pool is not None:
            yield from _known_nodes(scene, _indexed(("lanes", name, "pool", "nodes"), lane.pool.nodes))
        elif lane.management is Management.UNMANAGED:
            message = f"{name} says nothing of its models, nodes and memory"
            yield scene.finding("laneWithoutFacts", ("lanes", name), message, severity=Severity.WARNING)
        elif scene.inventory is not None and name not in scene.seen.lanes:
            message = f"no lane {name} was seen"
            yield scene.finding("laneNotSeen", ("lanes", name), message, severity=Severity.WARNING)


def _profiles(scene: Scene) -> Iterator[Finding]:
    aliases = frozenset(scene.desired.aliases) | frozenset(scene.seen.aliases)
    for name, profile in scene.desired.profiles.items():
        for alias, route in profile.routes.items():
            tokens: Tokens = ("profiles", name, "routes", alias)
            if alias not in aliases and not scene.unreadable(Kind.ALIASES):
                yield scene.unknown("unknownAlias", tokens, alias, aliases)
            local = (entry for entry in _indexed(tokens, route) if entry[1] not in scene.externals)
            yield from _known_models(scene, local, Kind.ALIASES)
        for target in profile.residency:
            yield from _target(scene, ("profiles", name, "residency", target), target)
        for key, pin in profile.pins.items():
            yield from _pin(scene, ("profiles", name, "pins", key), key, pin)


def _target(scene: Scene, tokens: Tokens, target: str) -> Iterator[Finding]:
    """A lane's id, or MODEL@NODE."""
    if "@" in target:
        yield from _place(scene, tokens, target)
    elif target not in scene.lanes and not scene.unreadable(Kind.LANE):
        yield scene.unknown("unknownLane", tokens, target, scene.lanes, seen_only=True)


def _place(scene: Scene, tokens: Tokens, key: str) -> Iterator[Finding]:
    model, _, nodes = key.rpartition("@")
    yield from _known_models(scene, [(tokens, model)])
    yield from _known_nodes(scene, [(tokens, node) for node in nodes.split("+")])


def _pin(scene: Scene, tokens: Tokens, key: str, pin: Pin) -> Iterator[Finding]:
    yield from _place(scene, tokens, key)
    if pin.recipe is None or scene.unreadable(Kind.RECIPE):
        return
    recipe, model = scene.desired.recipes.get(pin.recipe), key.rpartition("@")[0]
    if recipe is None:
        yield scene.unknown("unknownRecipe", (*tokens, "recipe"), pin.recipe, frozenset(scene.desired.recipes))
    elif model not in {served.gateway_model for served in recipe.spec.models}:
        yield scene.finding("recipeOfOtherModel", (*tokens, "recipe"), f"{pin.recipe} does not serve {model}")


def _indexed(tokens: Tokens, names: Iterable[str]) -> Iterator[tuple[Tokens, str]]:
    return (((*tokens, index), name) for index, name in enumerate(names))


def _known_models(scene: Scene, entries: Iterable[tuple[Tokens, str]], *also: Kind) -> Iterator[Finding]:
    if scene.unreadable(Kind.RECIPE, Kind.LANE, *also):
        return
    for tokens, model in entries:
        if model not in scene.models:
            yield scene.unknown("unknownModel", tokens, model, scene.models, seen_only=True)


def _known_nodes(scene: Scene, entries: Iterable[tuple[Tokens, str]], code: str = "unknownNode") -> Iterator[Finding]:
    if scene.unreadable(Kind.NODE):
        return
    for tokens, node in entries:
        if node not in scene.nodes:
            yield scene.unknown(code, tokens, node, scene.nodes)
