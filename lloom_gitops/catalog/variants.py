"""Variants: the concrete ways to serve a model, from lanes as seen and (opt-in) from recipes not installed yet."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.desired import Lane as LaneDocument
from lloom_gitops.model.inventory import Inventory, ObservedLane
from lloom_gitops.model.words import LaneState, Management, ModelKind, Residency

from .memory import DomainKeys, footprint, peak
from .performance import Figures, expected


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve models: a lane (managed, or unmanaged with facts), or a recipe that could be installed.

    Memory and peak are MiB by domain key, `load_ms` is None where unknown. `recipe` is set with `installed` False for a
    variant that needs an install step first. `figures` are those of each of its models where it runs.
    """

    id: str
    models: tuple[str, ...]
    kind: ModelKind
    nodes: tuple[str, ...]
    owner: str
    managed: bool
    installed: bool = True
    state: LaneState = LaneState.STOPPED
    residency: Residency = Residency.AUTO
    memory: dict[str, int] = {}
    peak: dict[str, int] = {}
    load_ms: int | None = None
    context_window: int | None = None
    sequences: int | None = None
    latched: bool = False
    excluded_nodes: tuple[str, ...] = ()
    start_timeout: int | None = None
    recipe: str | None = None
    weights: str | None = None
    disk_gb: Decimal | None = None
    started_by_agent: bool = False
    figures: dict[str, Figures] = {}
    declared: LaneDocument = LaneDocument()

    @property
    def loaded(self) -> bool:
        """Running, loading, or unknown (which counts as running)."""
        return self.state.loaded


def variants(desired: Desired, inventory: Inventory, keys: DomainKeys) -> dict[str, Variant]:
    """Every lane of the inventory as a variant, by lane id, sorted. Recipes come from `catalog.installs`."""
    return {
        name: _of_lane(desired, inventory, name, desired.lanes.get(name, LaneDocument()), keys)
        for name in sorted(inventory.lanes)
    }


def _of_lane(desired: Desired, inventory: Inventory, name: str, document: LaneDocument, keys: DomainKeys) -> Variant:
    lane = inventory.lanes[name]
    recipe = lane.recipe.id if lane.recipe else None
    figures = {model: expected(desired, inventory, model, lane.nodes, recipe) for model in lane.models}
    steady = footprint(desired.pool, lane, keys)
    return Variant(
        id=name,
        models=lane.models,
        kind=lane.kind,
        nodes=lane.nodes,
        owner=lane.owner,
        managed=lane.management is Management.MANAGED,
        state=lane.state,
        residency=lane.residency,
        memory=steady,
        peak=peak(lane, steady, keys),
        load_ms=None if lane.load_seconds is None else int(lane.load_seconds * 1000),
        context_window=lane.context_window,
        sequences=lane.max_sequences,
        latched=lane.latched,
        excluded_nodes=lane.excluded_nodes,
        start_timeout=lane.start_timeout_seconds or _recipe_timeout(desired, lane),
        recipe=recipe,
        started_by_agent=lane.started_by == "agent",
        figures={model: figure for model, figure in figures.items() if figure is not None},
        declared=document,
    )


def _recipe_timeout(desired: Desired, lane: ObservedLane) -> int | None:
    """Start limit of the lane's recipe (seconds), where the gateway does not report one."""
    recipe = desired.recipes.get(lane.recipe.id) if lane.recipe else None
    if recipe is None:
        return None
    limits = [model.settings.start_timeout_seconds or 0 for model in recipe.spec.models]
    return max(limits, default=0) or None
