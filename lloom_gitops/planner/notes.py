"""Notes and gaps of a plan: what people should know beside its moves."""

from __future__ import annotations

from lloom_gitops.catalog.inferred import needed_archs, sequences, tensor_parallel
from lloom_gitops.catalog.performance import SCALED
from lloom_gitops.model.plan import Gap, Note
from lloom_gitops.model.recipe import Recipe, processes
from lloom_gitops.model.words import Feature, Liveness, Residency

from .elsewhere import model_causes
from .explain import below_wish
from .memory_sums import rules_of, sums
from .objective import restarted
from .search import Found
from .world import LaneRole, NodeRole, World, unsuitable


def all_gaps(found: Found, of_order: tuple[Gap, ...]) -> tuple[Gap, ...]:
    """Gaps of the order, and aliases nothing covers whose answering lane is stopped (its node drains, or it leaves)."""
    change = found.change
    gone = change.after.keys() | set(change.removed)
    answered = {
        lane: [alias for alias in aliases if alias not in gone] for lane, aliases in change.answered_now().items()
    }
    drained = [
        Gap(alias=alias, seconds=0, because=f"drain:{lane}")
        for lane in change.stops
        for alias in answered.get(lane, ())
    ]
    return (*of_order, *drained)


def notes(world: World, found: Found) -> tuple[Note, ...]:
    """All notes, in a fixed order of topics and then by id."""
    return (
        *_nodes(world),
        *_lost_lanes(world),
        *_over_budget(world),
        *_residency(world, found),
        *_old_builds(world, found),
        *_further(world, found),
        *_inferred(world, found),
        *_scaled(world, found),
    )


def _nodes(world: World) -> list[Note]:
    rows = []
    for name, role in world.nodes.items():
        seen = world.inventory.nodes.get(name)
        if name not in world.desired.nodes:
            says = f"declare the node before aliases can route to it{_would_serve(world, name)}"
            rows.append(Note(code="undeclaredNode", node=name, says=says))
        if seen is None:
            rows.append(Note(code="nodeNeverSeen", node=name, says="nothing is planned there until it is observed"))
        elif role is NodeRole.FROZEN and seen.liveness is Liveness.SUSPECT:
            rows.append(Note(code="nodeUnreadable", node=name, says="its lanes are taken as last seen"))
        elif role is NodeRole.GONE:
            rows.append(Note(code="nodeLost", node=name, says="its lanes do not count"))
    head = world.nodes.get(world.head)
    if head is NodeRole.GONE:
        rows.append(Note(code="headLost", node=world.head, says="routes can't be written until the head is back"))
    return rows


def _would_serve(world: World, node: str) -> str:
    """Aliases that lanes of an enrolled-only node could serve once it is declared."""
    lanes = [variant for variant in world.variants.values() if node in variant.nodes and not variant.latched]
    aliases = [
        alias
        for alias, entries in world.entries.items()
        if any(
            entry.model in lane.models and unsuitable(lane, world.alias(alias).needs) is None
            for entry in entries
            for lane in lanes
            if not entry.external
        )
    ]
    return f": its lanes could serve {', '.join(aliases)}" if aliases else ""


def _lost_lanes(world: World) -> list[Note]:
    """What to stop when a lost node is back: lanes last seen running there whose aliases are answered elsewhere."""
    rows = []
    for name, cause in world.out.items():
        variant = world.variants[name]
        named = any(name in lanes for _, lanes in world.current.values())
        if cause.reason == "nodeLost" and variant.state.holds_memory and named:
            says = f"stop {name} when {' and '.join(variant.nodes)} are back, if it still runs there"
            rows.append(Note(code="stopWhenBack", lane=name, node=cause.node, says=says))
    return rows


def _over_budget(world: World) -> list[Note]:
    now = rules_of(world).now
    rows = []
    for key, limit in world.limits.items():
        used = now.always.get(key, 0) + now.preferred.get(key, 0)
        if limit.budget_mib is not None and used > limit.budget_mib and world.nodes[limit.node] is not NodeRole.GONE:
            says = f"{limit.domain}: always and preferred lanes hold {used} MiB of a budget of {limit.budget_mib} MiB"
            rows.append(Note(code="overBudget", node=limit.node, says=says))
    return rows


def _residency(world: World, found: Found) -> list[Note]:
    rules, planned, rows = rules_of(world), sums(world, found.outcome.residency), []
    for name, wish in found.outcome.wished.items():
        has = found.outcome.residency[name]
        cause = below_wish(world, rules, found.outcome, name, planned) if has.rank < wish.rank else None
        if cause is not None:
            numbers = f": short by {cause.short_gb} GB on {cause.domain}" if cause.short_gb is not None else ""
            rows.append(Note(code="belowWish", lane=name, says=f"{wish.value} is wished, {has.value} fits{numbers}"))
    return rows


def _old_builds(world: World, found: Found) -> list[Note]:
    rows = []
    if not world.has_feature(world.head, Feature.ROUTE_MEMBERS):
        for alias, row in found.outcome.served.items():
            if row.cut:
                left = ", ".join(model for model, _ in row.cut)
                rows.append(
                    Note(code="oneModelRoute", alias=alias, says=f"this gateway build can't route to {left} too")
                )
    owners = {found.change.variants[name].owner: name for name in (*found.change.starts, *found.change.changes)}
    for node, lane in sorted(owners.items()):
        if not found.change.can(node, Feature.RESIDENCY):
            rows.append(
                Note(code="residencyByConfig", node=node, lane=lane, says="this build takes residency from its file")
            )
    for name in restarted(found.change, found.room):
        rows.append(Note(code="residencyRestarts", lane=name, says="this gateway build restarts the lane for it"))
    return rows


def _further(world: World, found: Found) -> list[Note]:
    """Running lanes that no route uses and that are kept."""
    routed = {lane for row in found.outcome.served.values() for _, lane in row.entries}
    rows = []
    for name, variant in world.variants.items():
        stopped = name in found.change.stops or name in found.room.stopped
        kept = variant.loaded and name not in routed and not stopped
        if kept and world.roles[name] in (LaneRole.FREE, LaneRole.FIXED):
            residency = found.outcome.residency.get(name, Residency.AUTO)
            rows.append(Note(code="notRouted", lane=name, says=f"keeps running ({residency.value}); no route uses it"))
    return rows


def _inferred(world: World, found: Found) -> list[Note]:
    """Requirements that come from launch settings, of recipes that are installed or that they keep off some node."""
    rows = []
    used = {world.variants[name].recipe for name in found.change.installs}
    for name, recipe in world.desired.recipes.items():
        archs = needed_archs(recipe)
        if archs.setting and (name in used or _kept_off(world, name, recipe)):
            says = f"needs {', '.join(archs.value)}"
            rows.append(Note(code="inferredArch", recipe=name, setting=archs.setting, says=says))
        degree = tensor_parallel(recipe)
        if degree.setting and (name in used or _wanted(world, recipe)):
            says = f"needs {degree.value} ranks, on devices of one node or on linked nodes"
            rows.append(Note(code="inferredTensorParallel", recipe=name, setting=degree.setting, says=says))
        for process in processes(recipe.spec):
            at_once = sequences(process)
            if at_once.setting and name in used:
                says = f"serves {at_once.value} sequences at once"
                rows.append(Note(code="inferredSequences", recipe=name, setting=at_once.setting, says=says))
    return rows


def _wanted(world: World, recipe: Recipe) -> bool:
    """Whether installs are considered and an alias names a model of the recipe."""
    models = {model.gateway_model for model in recipe.spec.models}
    return world.desired.pool.planning.consider_installs and not models.isdisjoint(world.aliases_of)


def _kept_off(world: World, name: str, recipe: Recipe) -> bool:
    """Whether the inferred arch speaks against a node in what the plan says of a recipe."""
    return _wanted(world, recipe) and any(
        cause.reason == "computeArch" and cause.recipe == name
        for model in recipe.spec.models
        for cause in model_causes(world, model.gateway_model)
    )


def _scaled(world: World, found: Found) -> list[Note]:
    """Figures that are carried over from other hardware: what answers an alias was measured nowhere like it."""
    rows = []
    for alias, row in found.outcome.served.items():
        figures = world.figures(*row.entries[0]) if row.entries else None
        if figures is not None and figures.source == SCALED:
            says = f"the figures of {row.entries[0][0]} are scaled from {figures.hardware} by memory bandwidth"
            rows.append(Note(code="scaledFigures", alias=alias, lane=row.first, says=says))
    return rows
