"""The head's view (pure): which lane is behind each of its model ids, and its aliases in our names for models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from lloom_gitops.catalog.sighting_lanes import targets
from lloom_gitops.catalog.sighting_wire import by_id, table, text
from lloom_gitops.model.inventory import ObservedAlias, ObservedLane

Place = tuple[str, str]
"""A lane and the model's name there."""

Behind = dict[str, tuple[Place, ...]]
"""Model id at the head to what is behind it, the one that counts first; ids of external models are absent."""


def behind_head(
    models: Mapping[str, Any], lanes: Mapping[str, ObservedLane], leaving: frozenset[str] = frozenset()
) -> Behind:
    """Resolve every model id of the head's `/gateway/models`.

    The head spreads requests over all lanes of an id. The one that counts is a loaded one, on a node that people don't
    empty (`leaving` names those that they do) if there is one, then the first by id.
    """
    found: Behind = {}
    for name, row in sorted(by_id(models.get("models")).items()):
        if row.get("alias"):
            continue
        shown = targets(row) or [dict(row)]
        places = {place for target in shown if (place := _resolve(name, {**target, "model": row}, lanes)) is not None}
        if places:
            found[name] = tuple(sorted(places, key=lambda place: _order(place, lanes, leaving)))
    return found


def _order(place: Place, lanes: Mapping[str, ObservedLane], leaving: frozenset[str]) -> tuple[bool, bool, Place]:
    lane = lanes[place[0]]
    return (not lane.state.loaded, not leaving.isdisjoint(lane.nodes), place)


def _resolve(name: str, target: Mapping[str, Any], lanes: Mapping[str, ObservedLane]) -> tuple[str, str] | None:
    upstream = text(target.get("upstreamModel")) or text(table(target.get("model")).get("upstreamModel")) or name
    runtime = text(target.get("runtime")) or text(target.get("remoteRuntime"))
    node = text(target.get("node"))
    lane = lanes.get(runtime) if runtime is not None else None
    if runtime is not None and lane is not None and (node is None or node in lane.nodes):
        return runtime, _model_of(lane, name, upstream)
    wanted = upstream if node is not None else name
    serving = (key for key in sorted(lanes) if wanted in lanes[key].models)
    return next(((key, wanted) for key in serving if node is None or lanes[key].owner == node), None)


def _model_of(lane: ObservedLane, name: str, upstream: str) -> str:
    named = [model for model in (name, upstream) if model in lane.models]
    return named[0] if named else (lane.models[0] if lane.models else name)


def head_models(behind: Behind) -> dict[str, str]:
    """The head's id for each lane: that of the lane's first model there."""
    places = sorted((place, name) for name, shown in behind.items() for place in shown)
    return {lane: name for (lane, _), name in reversed(places)}


def observed_aliases(
    routes: Mapping[str, tuple[str, ...]], behind: Behind, lanes: Mapping[str, ObservedLane]
) -> dict[str, ObservedAlias]:
    """Aliases in our names for models; `lanes` is left out where each model has but one lane."""
    count = Counter(model for lane in lanes.values() for model in lane.models)
    found: dict[str, ObservedAlias] = {}
    for alias, route in sorted(routes.items()):
        places = [behind[entry][0] if entry in behind else None for entry in route]
        models = tuple(place[1] if place else entry for place, entry in zip(places, route, strict=True))
        plain = all(place is None or count[place[1]] == 1 for place in places)
        found[alias] = ObservedAlias(
            route=models, lanes=None if plain else tuple(place[0] if place else None for place in places)
        )
    return found
