"""Aliases as a gateway routes them (pure): every written form of every build, reduced to an ordered list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lloom_gitops.catalog.sighting_wire import items, table, text


def effective_routes(routing: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Per alias the members that get requests, in order, from a `/gateway/routing` body.

    Newer builds (those that list `routes`) route by members less the suspended ones. Older ones route to one target; a
    `fallbacks` list is only echoed by them.
    """
    newer = "routes" in routing
    live = _live_routes(routing.get("routes"))
    aliases = table(routing.get("aliases"))
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted({*aliases, *live}):
        shown = live.get(name) or aliases.get(name)
        if text(name) == name:
            found[name] = _members(shown) if newer else _target(shown)
    return found


def _live_routes(routes: Any) -> dict[str, Any]:
    if isinstance(routes, dict):
        return {name: route for name, route in routes.items() if isinstance(route, dict) and "members" in route}
    listed = ((text(row.get("alias") or row.get("id")), row) for row in map(table, items(routes)) if "members" in row)
    return {name: row for name, row in listed if name is not None}


def _target(alias: Any) -> tuple[str, ...]:
    target = text(alias) or text(table(alias).get("target"))
    return () if target is None else (target,)


def _members(alias: Any) -> tuple[str, ...]:
    shown = table(alias)
    if "members" not in shown:
        return (*_target(alias), *_texts(shown.get("fallbacks")), *_texts(shown.get("optionalFallbacks")))
    suspended = set(_texts(shown.get("suspendedMembers")))
    return tuple(member for member in _texts(shown.get("members")) if member not in suspended)


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(said for value in items(values) if (said := text(value)) is not None)
