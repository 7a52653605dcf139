"""What makes a gateway refuse a config file, per build."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lloom_gitops.sim.gateway.document import Build, GatewayConfig, route_of, targets_of
from lloom_gitops.sim.gateway.refusals import Doc

_RESIDENCY = ("keepWarm", "preferredWarm")


def config_errors(config: GatewayConfig) -> list[str]:
    """Every reason why this build would not take the file over; empty when it would."""
    if "keepWarm" in config.doc:
        return ["top-level keepWarm is not supported; use runtimes.<id>.keepWarm"]
    errors = [*_model_errors(config), *_cluster_errors(config), *_lane_errors(config)]
    if config.build is Build.SNAPSHOT:
        return [*errors, *_single_target_errors(config)]
    return [*errors, *_residency_errors(config), *_route_errors(config)]


def _model_errors(config: GatewayConfig) -> Iterator[str]:
    seen: set[str] = set()
    for index, model in enumerate(config.doc["models"]):
        name = model.get("id")
        if not name:
            yield f"models[{index}] is missing id"
        elif name in seen:
            yield f"duplicate model id: {name}"
        seen.add(name)
        targets = targets_of(model)
        if not targets:
            yield f"models[{index}] {name} is missing backend or targets"
        for target in targets:
            if target.get("backend") not in config.doc["backends"]:
                yield f"model {name} references unknown backend {target.get('backend')}"
            if target.get("runtime") and target["runtime"] not in config.doc["runtimes"]:
                yield f"model {name} target {target['id']} references unknown runtime {target['runtime']}"
            if target.get("node") and target["node"] not in config.nodes:
                yield f"model {name} target {target['id']} references unknown cluster node {target['node']}"


def _cluster_errors(config: GatewayConfig) -> Iterator[str]:
    declared = config.doc["cluster"]["nodes"]
    if declared and config.node_id not in declared:
        yield f"cluster nodeId {config.node_id} is not declared in cluster.nodes"
    for name, node in declared.items():
        if name != config.node_id and not node.get("endpoint"):
            yield f"cluster node {name} is missing endpoint"


def _lane_errors(config: GatewayConfig) -> Iterator[str]:
    taken: set[str] = set()
    for lane in config.doc["runtimes"]:
        if not config.is_group(lane):
            node = config.node_of(lane)
            if node not in config.nodes:
                yield f"runtime {lane} references unknown cluster node {node}"
            continue
        members = config.members(lane)
        if not members:
            yield f"distributed runtime {lane} has no placement members"
        for member in members:
            name = member["runtime"]
            if not member["node"]:
                yield f"distributed runtime {lane} has a member without node"
            if name not in config.doc["runtimes"] or name == lane or config.is_group(name):
                yield f"distributed runtime {lane} references unknown member runtime {name}"
            if config.build is Build.NEWER and name in taken:
                yield f"runtime {name} is a member of more than one distributed runtime"
            taken.add(name)


def _single_target_errors(config: GatewayConfig) -> Iterator[str]:
    models = {model.get("id") for model in config.doc["models"]}
    for name, alias in config.doc["aliases"].items():
        target = alias if isinstance(alias, str) else alias.get("target")
        if not target:
            yield f"alias {name} is missing target"
        elif target not in models:
            yield f"alias {name} targets unknown model {target}"


def _residency_errors(config: GatewayConfig) -> Iterator[str]:
    for flag in _RESIDENCY:
        if flag in config.doc:
            yield f"top-level {flag} is not supported; use runtimes.<id>.{flag}"
    for lane, entry in config.doc["runtimes"].items():
        if entry.get("keepWarm") is True and entry.get("preferredWarm") is True:
            yield f"runtime {lane} cannot be both keepWarm and preferredWarm"
    holders: list[tuple[str, Any]] = [(f"model {m.get('id')}", m) for m in config.doc["models"]]
    holders += [(f"alias {name}", alias) for name, alias in config.doc["aliases"].items()]
    for label, holder in holders:
        if isinstance(holder, dict) and any(flag in holder for flag in _RESIDENCY):
            yield f"{label} cannot carry residency; set it on the runtime"


def _route_errors(config: GatewayConfig) -> Iterator[str]:
    models: dict[str, Doc] = {model.get("id"): model for model in config.doc["models"]}
    known = models.keys() | config.doc["aliases"].keys()
    for name, alias in config.doc["aliases"].items():
        members = route_of(alias)
        optional = set(alias.get("optionalMembers") or [])
        if not members:
            yield f"alias {name} has no members"
        if len(set(members)) != len(members):
            yield f"alias {name} has duplicate members"
        for member in members:
            if member not in known and member not in optional:
                yield f"alias {name} references unknown member {member}"
        for subset in ("optionalMembers", "suspendedMembers"):
            if set(alias.get(subset) or []) - set(members):
                yield f"alias {name} {subset} are not members"
        kinds = {models[member].get("kind", "chat") for member in members if member in models}
        if len(kinds) > 1:
            yield f"alias {name} mixes model kinds: {', '.join(sorted(kinds))}"
        yield from _profile_errors(name, alias)


def _profile_errors(name: str, alias: Doc) -> Iterator[str]:
    profiles = alias.get("routeProfiles") or {}
    if not profiles:
        return
    active = alias.get("activeRoute")
    if active not in profiles:
        yield f"alias {name} needs activeRoute to name one of its route profiles"
    elif list(profiles[active].get("members") or []) != route_of(alias):
        yield f"alias {name} members differ from its active route profile {active}"
