"""Models and aliases of a config: what is advertised, and what a requested id stands for."""

from __future__ import annotations

from lloom_gitops.sim.gateway.document import GatewayConfig, route_of, targets_of
from lloom_gitops.sim.gateway.refusals import Doc


def lane_enabled(config: GatewayConfig, model: Doc) -> bool:
    return any(
        not t.get("runtime") or config.runtimes.get(t["runtime"], {}).get("enabled") is not False
        for t in targets_of(model)
    )


def advertised(config: GatewayConfig, *, aliases: bool = True, disabled: bool = False) -> list[Doc]:
    """Advertised models, sorted by name: with aliases or without, with those of `disabled` lanes or without."""
    models = {
        m["id"]: {"advertise": True, **m, "upstreamModel": m.get("upstreamModel", m["id"])}
        for m in config.doc["models"]
    }
    shown = [m for m in models.values() if m["advertise"] is not False and (disabled or lane_enabled(config, m))]
    if aliases:
        shown += [row for name in config.doc["aliases"] if (row := _alias_row(config, name, models)) is not None]
    return sorted(shown, key=lambda m: str(m.get("name") or m["id"]).lower())


def _alias_row(config: GatewayConfig, name: str, models: dict[str, Doc]) -> Doc | None:
    alias = config.doc["aliases"][name]
    details = {} if isinstance(alias, str) else alias
    route = route_of(alias)
    target = next((models[m] for m in route if m in models), None)
    if target is None or details.get("advertise") is False:
        return None
    if target["advertise"] is False or not lane_enabled(config, target):
        return None
    row: Doc = {**target, "id": name, "alias": True, "aliasTarget": target["id"]}
    row["name"] = details.get("name", target.get("name", name))
    if "description" in details:
        row["description"] = details["description"]
    return row


def candidates(config: GatewayConfig, requested: str | None) -> list[Doc]:
    """The models behind a requested id, in order of preference; empty when it is unknown or disabled."""
    models = {m["id"]: m for m in config.doc["models"]}
    found: list[Doc] = []
    for name in _expand(config, requested or "", set()):
        model = models.get(name)
        if model is not None and lane_enabled(config, model) and model not in found:
            found.append(model)
    return found


def _expand(config: GatewayConfig, name: str, seen: set[str]) -> list[str]:
    """Follow aliases to models; members may be aliases themselves. Suspended members are left out."""
    alias = config.doc["aliases"].get(name)
    if alias is None or name in seen:
        return [name]
    if config.build == "snapshot":
        return [alias if isinstance(alias, str) else alias["target"]]
    suspended = set(alias.get("suspendedMembers") or [])
    found: list[str] = []
    for member in route_of(alias):
        if member not in suspended:
            found += _expand(config, member, seen | {name})
    return found
