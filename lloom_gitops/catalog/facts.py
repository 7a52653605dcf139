"""Facts that steps read: the inventory as plain data, with free memory computed and the lanes of routes filled in.

A read is a JSON Pointer into this tree (documents.md, Plan). `freeGb` of a domain is the limit now less what is loaded,
loading at its peak, draining and stopping; it is computed here and never committed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory, ObservedAlias
from lloom_gitops.model.plan import Read
from lloom_gitops.model.words import LaneState

from .memory import exact_gib, footprint, keys_of_nodes, limits, peak

MISSING = object()


def lanes_of_route(inventory: Inventory, alias: ObservedAlias) -> tuple[str | None, ...]:
    """The lane behind each entry of a route: as named, else the model's only lane, None where there is none.

    Where a model has several lanes and the route names none, a loaded one is meant before others, then the first by id.
    """
    if alias.lanes is not None:
        return alias.lanes
    return tuple(_lane_of(inventory, model) for model in alias.route)


def _lane_of(inventory: Inventory, model: str) -> str | None:
    serving = [name for name in sorted(inventory.lanes) if model in inventory.lanes[name].models]
    loaded = [name for name in serving if inventory.lanes[name].state.loaded]
    return next(iter(loaded or serving), None)


def facts(desired: Desired, inventory: Inventory) -> dict[str, Any]:
    """The inventory's `spec` as plain data with every default written out, computed `freeGb` and filled `lanes`."""
    tree: dict[str, Any] = msgspec.to_builtins(inventory, builtin_types=(Decimal,))
    for name, alias in inventory.aliases.items():
        tree["aliases"][name]["lanes"] = list(lanes_of_route(inventory, alias))
        tree["aliases"][name]["route"] = list(alias.route)
    free = free_mib(desired, inventory)
    for limit in limits(desired, inventory).values():
        node = tree["nodes"].get(limit.node)
        if node is None or limit.index >= len(node["memoryDomains"]):
            continue
        mib = free[limit.key]
        node["memoryDomains"] = list(node["memoryDomains"])
        node["memoryDomains"][limit.index]["freeGb"] = None if mib is None else exact_gib(mib)
    return tree


def free_mib(desired: Desired, inventory: Inventory) -> dict[str, int | None]:
    """Free memory of each domain now, MiB: limit less loaded, loading at peak, draining and stopping lanes."""
    by_key = limits(desired, inventory)
    keys = keys_of_nodes(by_key)
    free = {key: limit.limit_mib for key, limit in by_key.items()}
    for lane in inventory.lanes.values():
        if not lane.state.holds_memory:
            continue
        steady = footprint(desired.pool, lane, keys)
        used = peak(lane, steady, keys) if lane.state is LaneState.LOADING else steady
        for key, mib in used.items():
            left = free.get(key)
            if left is not None:
                free[key] = left - mib
    return free


def lookup(pointer: str, tree: Any) -> Any:
    """The value at a JSON Pointer, or MISSING."""
    value = tree
    for raw in pointer.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list | tuple) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            return MISSING
    return value


def pointer(*tokens: str | int) -> str:
    """A JSON Pointer from its tokens."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def found(read: Read, tree: Any) -> Any:
    """What is there now for a read; None where it is missing or unknown."""
    value = lookup(read.at, tree)
    return None if value is MISSING else value


def holds(read: Read, tree: Any) -> bool:
    """Whether a read holds. Missing or unknown is never enough."""
    value = lookup(read.at, tree)
    if value is MISSING:
        return False
    if read.at_least is not msgspec.UNSET:
        return value is not None and Decimal(value) >= read.at_least
    wanted = list(read.equals) if isinstance(read.equals, tuple) else read.equals
    return bool(value == wanted)
