"""Install variants (opt-in): recipes not installed yet, on every node or linked set of nodes that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import combinations

import msgspec

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.recipe import Recipe, RecipeProcess, processes
from lloom_gitops.model.words import LaneState

from .fit import unfit
from .inferred import sequences, tensor_parallel
from .links import linked_sets
from .memory import DomainKeys, mib_up
from .performance import expected
from .variants import Variant

_EVERY_SET = 4
"""Up to so many devices of a server every set of them is tried; of more, only neighbours: they share fast links."""


class Shape(msgspec.Struct, frozen=True):
    """How ranks of a recipe are spread: nodes, and devices of each."""

    nodes: int
    devices: int


def shapes(recipe: Recipe) -> tuple[Shape, ...]:
    """The shapes that a recipe may take, the one it writes first.

    A tensor parallel degree above nodes times devices is met by more devices of each node (enough to hold all ranks),
    or, where the recipe speaks of one device of one node, by as many linked nodes.
    """
    needs, degree = recipe.spec.requirements, tensor_parallel(recipe).value
    if degree <= needs.nodes * needs.devices_per_node:
        return (Shape(needs.nodes, needs.devices_per_node),)
    within = Shape(needs.nodes, -(-degree // needs.nodes))
    across = (Shape(degree, 1),) if needs.nodes == needs.devices_per_node == 1 else ()
    return (within, *across)


def devices_of(keys: DomainKeys, node: str) -> tuple[str, ...]:
    """Domain keys that ranks of a lane may fill: a server's devices, else the node's one domain."""
    devices = tuple(key for key in keys[node] if key.partition("/")[2].startswith("device"))
    return devices or keys[node][:1]


def host_of(keys: DomainKeys, node: str) -> str | None:
    """Key of a server's own memory beside its devices; None on a machine with one domain, or where it is not known."""
    return next((key for key in keys[node] if key.partition("/")[2].startswith("system")), None)


def install_variants(
    desired: Desired, inventory: Inventory, keys: DomainKeys, nodes: tuple[str, ...]
) -> dict[str, Variant]:
    """Variants `MODEL@NODE[+NODE]` for recipes whose process has no lane on those nodes yet, by id.

    On a server each set of devices makes one (`MODEL@NODE#2` is the second). A recipe whose memory is unknown makes
    none: what can't be told is never placed.
    """
    result: dict[str, Variant] = {}
    for recipe_id, recipe in sorted(desired.recipes.items()):
        for members, placed in _places(desired, recipe, inventory, keys, nodes):
            hosts = tuple(host for node in members if (host := host_of(keys, node)) is not None)
            for process in processes(recipe.spec):
                variant = _variant(desired, inventory, recipe_id, recipe, process, members, (placed, hosts))
                if variant is not None and not _present(inventory, variant):
                    name = _free_id(result, variant)
                    result[name] = msgspec.structs.replace(variant, id=name)
    return result


def _free_id(taken: Mapping[str, Variant], variant: Variant) -> str:
    """The variant's id, with a number where another recipe, or the same on other devices, has it."""
    number, name = 1, variant.id
    while name in taken:
        number += 1
        name = f"{variant.id}#{number}"
    return name


def _present(inventory: Inventory, variant: Variant) -> bool:
    return any(
        lane.nodes == variant.nodes and set(lane.models) & set(variant.models) for lane in inventory.lanes.values()
    )


def _places(
    desired: Desired, recipe: Recipe, inventory: Inventory, keys: DomainKeys, nodes: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Node sets that fit, pairwise linked (PLN-2), each with the devices that its ranks fill."""
    fitting = [name for name in nodes if not any(unfit(recipe, name, inventory.nodes[name], installed=False))]
    for shape in shapes(recipe):
        able = [name for name in fitting if len(devices_of(keys, name)) >= shape.devices]
        for members in linked_sets(desired, inventory, able, shape.nodes):
            each = [_groups(devices_of(keys, name), shape.devices) for name in members]
            for groups in zip(*each, strict=False):
                yield members, tuple(key for group in groups for key in group)


def _groups(devices: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    """Devices that ranks of one node may fill together: every set on a small server, neighbours on a large one."""
    if len(devices) <= _EVERY_SET:
        return list(combinations(devices, size))
    return [devices[first : first + size] for first in range(0, len(devices) - size + 1, size)]


def _variant(
    desired: Desired,
    inventory: Inventory,
    name: str,
    recipe: Recipe,
    process: RecipeProcess,
    members: tuple[str, ...],
    placed: tuple[tuple[str, ...], tuple[str, ...]],
) -> Variant | None:
    if process.memory_gb is None:
        return None
    needs = recipe.spec.requirements
    ranks, hosts = placed
    host = dict.fromkeys(hosts, mib_up(needs.host_memory_gb)) if needs.host_memory_gb else {}
    steady = {**dict.fromkeys(ranks, mib_up(process.memory_gb)), **host}
    peaks = {**dict.fromkeys(ranks, mib_up(max(process.memory_gb, needs.load_peak_gb or Decimal(0)))), **host}
    settings = [model.settings for model in process.models]
    load = recipe.spec.load_seconds
    models = tuple(model.gateway_model for model in process.models)
    figures = {model: expected(desired, inventory, model, members, name) for model in models}
    return Variant(
        id=f"{process.models[0].gateway_model}@{'+'.join(members)}",
        models=models,
        kind=process.models[0].kind,
        nodes=members,
        owner=members[0],
        managed=True,
        installed=False,
        state=LaneState.STOPPED,
        memory=steady,
        peak=peaks,
        load_ms=None if load is None else int(load * 1000),
        context_window=min((s.context_window for s in settings if s.context_window), default=None),
        sequences=sequences(process).value,
        start_timeout=max((s.start_timeout_seconds or 0 for s in settings), default=0) or None,
        recipe=name,
        weights=process.models[0].model,
        disk_gb=needs.disk_gb,
        figures={model: figure for model, figure in figures.items() if figure is not None},
    )
