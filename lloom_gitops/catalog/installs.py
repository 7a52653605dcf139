"""Install variants (opt-in): recipes not installed yet, on every node or linked set of nodes that fits."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.recipe import Recipe, RecipeProcess, processes
from lloom_gitops.model.words import LaneState

from .fit import unfit, unlinked
from .memory import DomainKeys, mib_up
from .variants import Variant


def install_variants(
    desired: Desired, inventory: Inventory, keys: DomainKeys, nodes: tuple[str, ...]
) -> dict[str, Variant]:
    """Variants `MODEL@NODE[+NODE]` for recipes whose process has no lane on those nodes yet, by id.

    A recipe whose memory is unknown makes none: what can't be told is never placed.
    """
    result: dict[str, Variant] = {}
    for name, recipe in sorted(desired.recipes.items()):
        for process in processes(recipe.spec):
            for members in _places(desired, recipe, inventory, nodes):
                variant = _variant(name, recipe, process, members, keys)
                if variant is not None and not _present(inventory, variant):
                    result.setdefault(variant.id, variant)
    return result


def _present(inventory: Inventory, variant: Variant) -> bool:
    return any(
        lane.nodes == variant.nodes and set(lane.models) & set(variant.models) for lane in inventory.lanes.values()
    )


def _places(desired: Desired, recipe: Recipe, inventory: Inventory, nodes: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Node sets that fit: every node meets the requirements, every pair is linked (PLN-2). Head-first by stable id."""
    fitting = [name for name in nodes if not any(unfit(recipe, name, inventory.nodes[name], installed=False))]
    return [
        members
        for members in combinations(fitting, recipe.spec.requirements.nodes)
        if unlinked(desired, inventory, members) is None
    ]


def _variant(
    name: str,
    recipe: Recipe,
    process: RecipeProcess,
    members: tuple[str, ...],
    keys: DomainKeys,
) -> Variant | None:
    if process.memory_gb is None:
        return None
    needs = recipe.spec.requirements
    steady = {key: mib_up(process.memory_gb) for node in members for key in keys[node][: needs.devices_per_node]}
    peak_gb = max(process.memory_gb, needs.load_peak_gb or Decimal(0))
    settings = [model.settings for model in process.models]
    load = recipe.spec.load_seconds
    return Variant(
        id=f"{process.models[0].gateway_model}@{'+'.join(members)}",
        models=tuple(model.gateway_model for model in process.models),
        kind=process.models[0].kind,
        nodes=members,
        owner=members[0],
        managed=True,
        installed=False,
        state=LaneState.STOPPED,
        memory=steady,
        peak={key: mib_up(peak_gb) for key in steady},
        load_ms=None if load is None else int(load * 1000),
        context_window=min((s.context_window for s in settings if s.context_window), default=None),
        sequences=min((s.max_sequences for s in settings if s.max_sequences), default=None),
        start_timeout=max((s.start_timeout_seconds or 0 for s in settings), default=0) or None,
        recipe=name,
        weights=process.models[0].model,
        disk_gb=needs.disk_gb,
    )
