"""The head gateway's config file (`ports.GatewayConfig`): where routes, and on older builds residencies, live.

Only `aliases.<id>` and the residency flags of `runtimes.<id>` are touched. The gateway takes a new file over by itself,
or keeps its old config in silence when it dislikes the new one: so each edit is read back over HTTP.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lloom_gitops.catalog.sighting_wire import items, table
from lloom_gitops.catalog.sighting_words import is_group
from lloom_gitops.drivers.gateway_config_file import Content, FileFault, read_content, render, replace_content
from lloom_gitops.drivers.gateway_http import HttpGateway
from lloom_gitops.drivers.gateway_http_refusals import LATER, NEVER, refused
from lloom_gitops.model.words import Feature, Residency
from lloom_gitops.ports import Clock, GatewayAnswer

OWN_PROFILE = "lloom-gitops"
"""Name of the route profile that is written for an alias that has route profiles, but none with our members."""

_POLL_SECONDS = 0.25
_LEGACY_ROUTE_KEYS = ("target", "fallbacks", "optionalFallbacks")

_UNREADABLE = GatewayAnswer(kind="lost", code="timeout", says="the gateway stopped answering", retry=LATER)

Edit = Callable[[dict[str, Any]], None]
Shown = Callable[[dict[str, Any]], bool | None]


class GatewayConfigFile:
    """Edits of the config file at `path`, verified at the gateway `read_back` within `seconds` each.

    An edit that the gateway was seen not to take over is taken back, if the file is still as we wrote it: a file that
    a gateway refuses would drop every later edit too, and end it at its next boot. If the gateway answered nothing at
    all, the edit stays and the answer is `lost`.
    """

    def __init__(self, path: Path, read_back: HttpGateway, clock: Clock, seconds: float = 30.0) -> None:
        self._path = path
        self._gateway = read_back
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()

    def set_route(self, alias: str, members: Sequence[str]) -> GatewayAnswer:
        """Route the alias to `members` (the head's own model ids, in order); no members removes the alias.

        Oldest builds take one target; more are refused with `oneTarget`: such a gateway would drop the whole file.
        """
        route = tuple(members)
        with self._lock:
            ready = self._gateway.reachable()
            if ready.kind != "ok":
                return ready
            features = self._gateway.features_now()
            if features is None:
                return _UNREADABLE
            newer = Feature.ROUTE_MEMBERS in features
            if not newer and len(route) > 1:
                return refused("oneTarget", f"this build routes {alias} to one model, not to {len(route)}", NEVER)
            switched = self._switch(alias, route) if newer else None
            if switched is not None:
                return switched
            edit = _members_edit(alias, route) if newer else _target_edit(alias, route)
            return self._change(edit, lambda _: self._shows_route(alias, route))

    def set_residency(self, lane: str, residency: Residency) -> GatewayAnswer:
        """Set a lane's residency: by HTTP where the build can, else in the file (which restarts a running lane)."""
        with self._lock:
            ready = self._gateway.reachable()
            if ready.kind != "ok":
                return ready
            features = self._gateway.features_now()
            if features is None:
                return _UNREADABLE
            if Feature.RESIDENCY in features:
                return self._gateway.set_residency(lane, residency, self._seconds)
            if residency is Residency.PREFERRED:
                return refused("noPreferred", "this build knows no preferred lanes", NEVER)
            return self._change(
                _residency_edit(lane, residency), lambda config: self._shows_residency(config, lane, residency)
            )

    def _switch(self, alias: str, route: tuple[str, ...]) -> GatewayAnswer | None:
        """Make one of the alias's route profiles that says the same the active one; None where the file must do.

        The gateway writes the file for it, so the file is left alone unless the gateway said no.
        """
        named = (name for name, members in self._gateway.route_profiles(alias).items() if tuple(members) == route)
        profile = next(named, None)
        if profile is None:
            return None
        answer = self._gateway.use_route_profile(alias, profile, self._seconds)
        if answer.kind == "refused":
            return None
        shown = answer.kind == "ok" and self._wait(lambda: self._shows_route(alias, route)) is True
        return answer if shown or answer.kind != "ok" else _UNREADABLE

    def _change(self, edit: Edit, shown: Shown) -> GatewayAnswer:
        try:
            before = read_content(self._path)
            document = before.document()
            wanted = copy.deepcopy(document)
            edit(wanted)
            after = before.raw if wanted == document else render(wanted, before)
            if after != before.raw:
                replace_content(self._path, before, after)
        except FileFault as fault:
            return refused(fault.code, fault.says, LATER if fault.code == "configChanged" else NEVER)
        seen = self._wait(lambda: shown(wanted))
        if seen is True:
            return GatewayAnswer(kind="ok")
        if seen is None:
            return _UNREADABLE
        return refused("notTakenOver", f"the gateway kept its old config; {self._take_back(before, after)}", LATER)

    def _wait(self, shown: Callable[[], bool | None]) -> bool | None:
        """True once the gateway shows the edit, False if it showed something else to the end, None without answer."""
        deadline = self._clock.monotonic() + self._seconds
        answered = False
        while True:
            seen = shown()
            if seen:
                return True
            answered = answered or seen is False
            if self._clock.monotonic() >= deadline:
                return False if answered else None
            self._clock.sleep(_POLL_SECONDS)

    def _take_back(self, before: Content, ours: bytes) -> str:
        if ours == before.raw:
            return "the file already said so"
        try:
            now = read_content(self._path)
            if now.raw != ours:
                return "the file has changed again since"
            replace_content(self._path, now, before.raw)
        except FileFault as fault:
            return f"the edit could not be taken back: {fault.says}"
        return "the edit was taken back"

    def _shows_route(self, alias: str, route: tuple[str, ...]) -> bool | None:
        routing = self._gateway.routing()
        return None if routing is None else tuple(routing.get(alias, ())) == route

    def _shows_residency(self, config: dict[str, Any], lane: str, residency: Residency) -> bool | None:
        group = is_group(table(table(config.get("runtimes")).get(lane)))
        reading = self._gateway.read_lane(lane, distributed=group)
        return None if reading is None else reading.residency is residency


def _target_edit(alias: str, route: tuple[str, ...]) -> Edit:
    """One target, the only form the oldest builds take."""

    def edit(document: dict[str, Any]) -> None:
        aliases = _aliases(document)
        if not route:
            aliases.pop(alias, None)
        elif isinstance(aliases.get(alias), dict):
            aliases[alias]["target"] = route[0]
        else:
            aliases[alias] = route[0]

    return edit


def _members_edit(alias: str, route: tuple[str, ...]) -> Edit:
    """Ordered members; with route profiles, one that says the same must be the active one."""

    def edit(document: dict[str, Any]) -> None:
        aliases = _aliases(document)
        if not route:
            aliases.pop(alias, None)
            return
        entry = aliases[alias] if isinstance(aliases.get(alias), dict) else {}
        aliases[alias] = entry
        for key in _LEGACY_ROUTE_KEYS:
            entry.pop(key, None)
        entry["members"] = list(route)
        # Whoever suspended a member by hand spoke of another route; a member of ours that stays suspended gets nothing.
        entry.pop("suspendedMembers", None)
        if "optionalMembers" in entry:
            entry["optionalMembers"] = [member for member in items(entry["optionalMembers"]) if member in route]
        profiles = table(entry.get("routeProfiles"))
        if profiles:
            named = (name for name, profile in profiles.items() if table(profile).get("members") == list(route))
            entry["activeRoute"] = next(named, OWN_PROFILE)
            profiles[entry["activeRoute"]] = {**table(profiles.get(entry["activeRoute"])), "members": list(route)}

    return edit


def _aliases(document: dict[str, Any]) -> dict[str, Any]:
    aliases = document.setdefault("aliases", {})
    if not isinstance(aliases, dict):
        raise FileFault("configInvalid", "the config file's aliases are no object")
    return aliases


def _residency_edit(lane: str, residency: Residency) -> Edit:
    """`keepWarm` of the lane; builds whose residency lives in the file know nothing else."""

    def edit(document: dict[str, Any]) -> None:
        entry = table(document.get("runtimes")).get(lane)
        if not isinstance(entry, dict):
            raise FileFault("laneMissing", f"the config file has no lane {lane}")
        wanted = residency is Residency.ALWAYS
        if wanted or "keepWarm" in entry:
            entry["keepWarm"] = wanted

    return edit
