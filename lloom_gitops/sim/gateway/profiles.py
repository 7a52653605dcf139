"""Route profiles, member suspension and fleet profiles (newer builds)."""

# ruff: noqa: ARG001 - route handlers share one signature
from __future__ import annotations

from typing import Any

from lloom_gitops.sim.gateway.document import route_of
from lloom_gitops.sim.gateway.edits import edit_config
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, bad_request
from lloom_gitops.sim.gateway.residency import policy_of, set_policy
from lloom_gitops.sim.gateway.tasks import Answer, Flow, Save
from lloom_gitops.sim.gateway.wire import Handler, Request, at_once


def route_view(name: str, alias: Any) -> Doc:
    """One alias as newer `/gateway/routing` shows it under `routes`."""
    details: Doc = {} if isinstance(alias, str) else alias
    return {
        "alias": name,
        "activeRoute": details.get("activeRoute"),
        "members": route_of(alias),
        "suspendedMembers": list(details.get("suspendedMembers") or []),
        "profiles": list(details.get("routeProfiles") or {}),
    }


def _alias(node: Node, name: str) -> Doc:
    alias = node.config.doc["aliases"].get(name)
    if alias is None:
        raise GatewayRefusal(f"unknown alias {name}")
    return dict(alias)


def _written(document: Doc, name: str) -> Doc:
    """The alias in the file as an object in the members form."""
    alias = document["aliases"][name]
    if isinstance(alias, str):
        alias = document["aliases"][name] = {"members": [alias]}
    elif "members" not in alias:
        alias["members"] = route_of(alias)
        for key in ("target", "fallbacks", "optionalFallbacks"):
            alias.pop(key, None)
    entry: Doc = alias
    return entry


def _switch(node: Node, request: Request) -> Flow:
    name, profile = request.arguments[0], request.body().get("profile")
    alias = _alias(node, name)
    chosen = (alias.get("routeProfiles") or {}).get(profile)
    if chosen is None:
        raise GatewayRefusal(f"alias {name} has no route profile {profile}")
    changed = alias.get("activeRoute") != profile
    if changed:
        yield from edit_config(node, lambda document: _activate(document, name, str(profile)))
    view = route_view(name, node.config.doc["aliases"][name])
    return {"changed": changed, "alias": name, "activeRoute": profile, "members": view["members"], "route": view}


def _activate(document: Doc, name: str, profile: str) -> None:
    alias = document["aliases"][name]
    alias["activeRoute"] = profile
    alias["members"] = list(alias["routeProfiles"][profile]["members"])
    alias["suspendedMembers"] = [m for m in alias.get("suspendedMembers") or [] if m in alias["members"]]


def _suspend_member(node: Node, request: Request) -> Flow:
    name, member = request.arguments
    wanted = request.body().get("suspended")
    if not isinstance(wanted, bool):
        raise bad_request("suspended must be true or false")
    alias = _alias(node, name)
    if member not in route_of(alias):
        raise GatewayRefusal(f"alias {name} has no member {member}")
    changed = wanted != (member in (alias.get("suspendedMembers") or []))
    if changed:
        yield from edit_config(node, lambda document: _set_suspended(document, name, member, wanted))
    view = route_view(name, node.config.doc["aliases"][name])
    return {
        "changed": changed,
        "alias": name,
        "member": member,
        "suspended": wanted,
        "suspendedMembers": view["suspendedMembers"],
        "route": view,
    }


def _set_suspended(document: Doc, name: str, member: str, wanted: bool) -> None:
    alias = _written(document, name)
    others = [m for m in alias.get("suspendedMembers") or [] if m != member]
    alias["suspendedMembers"] = [*others, member] if wanted else others


def _list(node: Node, request: Request) -> Flow:
    active = (node.config.doc.get("fleet") or {}).get("activeProfile")
    return at_once({"ok": True, "dir": "profiles", "active": active, "profiles": sorted(node.fleet_profiles)})


def _fleet_plan(node: Node, name: str) -> Doc:
    """What applying a fleet profile would change."""
    profile = node.fleet_profiles.get(name)
    if profile is None:
        raise GatewayRefusal(f"no fleet profile {name}")
    body: Doc = {"ok": True, "profile": name, "routes": [], "residency": [], "defaults": [], "unchanged": []}
    for alias_name, target in (profile.get("routes") or {}).items():
        if alias_name not in node.config.doc["aliases"]:
            raise bad_request(f"unknown alias {alias_name}", status=409)
        view = route_view(alias_name, node.config.doc["aliases"][alias_name])
        before = view["activeRoute"] if view["profiles"] else ",".join(view["members"])
        members = _members_for(node, alias_name, target)
        facts = {"from": before, "to": target, "activeRoute": target, "members": members, "optionalMembers": []}
        _sort_in(body, "routes", "route", alias_name, before == target, facts)
    for lane, policy in (profile.get("residency") or {}).items():
        entry = node.config.runtime(lane)
        if entry is None:
            raise bad_request(f"unknown runtime {lane}", status=409)
        now = policy_of(entry)
        _sort_in(body, "residency", "residency", lane, now == policy, {"from": now, "to": policy})
    for key, value in (profile.get("defaults") or {}).items():
        now = node.config.doc["defaults"].get(key)
        _sort_in(body, "defaults", "default", key, now == value, {"from": now, "to": value})
    return body


def _sort_in(body: Doc, section: str, kind: str, name: str, same: bool, facts: Doc) -> None:
    if same:
        body["unchanged"].append({"kind": kind, "id": name, "value": facts["to"]})
    else:
        body[section].append({"id": name, **facts})


def _members_for(node: Node, alias_name: str, target: str) -> list[str]:
    profiles = node.config.doc["aliases"][alias_name].get("routeProfiles") or {}
    if not profiles:
        return [target]
    if target not in profiles:
        raise bad_request(f"alias {alias_name} has no route profile {target}", status=409)
    return list(profiles[target]["members"])


def _show(node: Node, request: Request) -> Flow:
    return at_once(_fleet_plan(node, request.arguments[0]))


def _post(node: Node, request: Request) -> Flow:
    name, body = request.arguments[0], request.body()
    if request.query.get("apply") == "1":
        if body != {"yes": True}:
            raise bad_request("applying a fleet profile needs yes=true, nothing else")
        planned = _fleet_plan(node, name)
        yield from edit_config(node, lambda document: _apply(document, name, planned))
        return planned
    if body.get("yes") is not True:
        raise bad_request("capturing a fleet profile needs yes=true")
    if name in node.fleet_profiles and body.get("overwrite") is not True:
        raise bad_request(f"fleet profile {name} exists", status=409)
    captured = _capture(node, name, body.get("description"))
    answer: Answer = yield Save(captured, f"profiles/{name}.json")
    if answer.error is not None:
        raise GatewayRefusal(answer.error)
    node.fleet_profiles[name] = captured
    return {"ok": True, "profile": captured}


def _apply(document: Doc, name: str, planned: Doc) -> None:
    for route in planned["routes"]:
        alias = _written(document, route["id"])
        if alias.get("routeProfiles"):
            alias["activeRoute"] = route["to"]
        alias["members"] = route["members"]
        alias.pop("suspendedMembers", None)
    for change in planned["residency"]:
        set_policy(document, change["id"], change["to"])
    for change in planned["defaults"]:
        document.setdefault("defaults", {})[change["id"]] = change["to"]
    document.setdefault("fleet", {})["activeProfile"] = name


def _capture(node: Node, name: str, description: str | None) -> Doc:
    routes = {}
    for alias_name, alias in node.config.doc["aliases"].items():
        view = route_view(alias_name, alias)
        if view["activeRoute"] is not None or len(view["members"]) == 1:
            routes[alias_name] = view["activeRoute"] or view["members"][0]
    return {
        "name": name,
        "description": description or "",
        "routes": routes,
        "residency": {lane: policy_of(entry) for lane, entry in node.config.runtimes.items()},
        "defaults": dict(node.config.doc["defaults"]),
        "defaultsMode": "merge",
    }


ROUTES: dict[tuple[str, str], Handler] = {
    ("POST", "gateway/routes/:alias/profile"): _switch,
    ("POST", "gateway/routes/:alias/members/:member/suspension"): _suspend_member,
    ("GET", "gateway/fleet/profiles"): _list,
    ("GET", "gateway/fleet/profiles/:name"): _show,
    ("POST", "gateway/fleet/profiles/:name"): _post,
}
