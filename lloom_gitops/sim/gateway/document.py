"""The gateway's own JSON config, as a gateway works with it.

`GatewayConfig.template` is the file as written (with `${ENV}` texts), which the writing routes of newer builds edit;
`GatewayConfig.doc` is what the gateway works with: environment expanded, defaults in, federated models made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lloom_gitops.sim.gateway.refusals import Doc

LIVE_FIELDS = frozenset(
    {
        "maxConcurrency",
        "maxQueuedRequests",
        "interactiveReservedSlots",
        "interactiveReservedQueueSlots",
        "queueTimeoutMs",
        "queueRetryAfterSeconds",
        "requestStartupWaitMs",
        "startupRetryAfterSeconds",
        "healthTimeoutMs",
        "keepWarm",
        "preferredWarm",
        "maintenance",
    }
)
"""Lane fields whose change a newer build takes over without a restart."""


class Build(StrEnum):
    SNAPSHOT = "snapshot"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    template: Doc
    doc: Doc
    node_id: str
    build: Build
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def runtimes(self) -> dict[str, Doc]:
        return dict(self.doc["runtimes"])

    @property
    def policy(self) -> Doc:
        return dict(self.doc.get("runtimePolicy") or {})

    @property
    def nodes(self) -> dict[str, Doc]:
        """Declared nodes of the cluster; without any, the gateway itself."""
        return dict(self.doc["cluster"]["nodes"]) or {self.node_id: {}}

    @property
    def clustered(self) -> bool:
        """Whether admission counts per node."""
        lanes = self.doc["runtimes"].values()
        return bool(self.doc["cluster"]["nodes"]) or any(e.get("node") or e.get("placement") for e in lanes)

    @property
    def leader(self) -> str:
        return str(self.doc["cluster"].get("leaderNode") or self.node_id)

    def runtime(self, lane: str) -> Doc | None:
        entry: Doc | None = self.doc["runtimes"].get(lane)
        return entry

    def node_of(self, lane: str) -> str | None:
        """The node of an ordinary lane; None for a group."""
        entry = self.doc["runtimes"].get(lane) or {}
        placement = entry.get("placement") or {}
        if placement.get("mode") == "distributed":
            return None
        return str(entry.get("node") or placement.get("node") or self.node_id)

    def is_group(self, lane: str) -> bool:
        return lane in self.doc["runtimes"] and self.node_of(lane) is None

    def members(self, lane: str) -> list[Doc]:
        """A group's members with their defaults, in the order written."""
        placement = (self.doc["runtimes"].get(lane) or {}).get("placement") or {}
        if placement.get("mode") != "distributed":
            return []
        return [
            {
                "node": m.get("node"),
                "runtime": m.get("runtime"),
                "role": m.get("role", "worker"),
                "order": m.get("order", index),
                "resources": m.get("resources") or {},
            }
            for index, m in enumerate(placement.get("members") or [])
        ]

    def group_of(self, lane: str) -> str | None:
        for group in self.doc["runtimes"]:
            if any(m["runtime"] == lane for m in self.members(group)):
                return str(group)
        return None

    def is_local(self, lane: str) -> bool:
        return self.node_of(lane) == self.node_id

    def owner(self, lane: str) -> str:
        """Who may act on a lane in newer builds: the leader for groups and members, else the lane's node."""
        if self.is_group(lane) or self.group_of(lane) is not None:
            return self.leader
        return self.node_of(lane) or self.node_id

    def resources_by_node(self, lane: str) -> dict[str, Doc]:
        entry = self.doc["runtimes"].get(lane) or {}
        if not self.is_group(lane):
            return {self.node_of(lane) or self.node_id: _memory_of(entry)}
        found: dict[str, Doc] = {}
        for member in self.members(lane):
            at = found.setdefault(member["node"], {"memoryGb": 0, "gpuMemoryGb": 0})
            own = _memory_of(self.doc["runtimes"].get(member["runtime"]) or {})
            for key in at:
                at[key] += member["resources"].get(key, own[key])
        return found

    def lanes_of_model(self, model: Doc) -> list[str]:
        return [t["runtime"] for t in targets_of(model) if t.get("runtime")]


def declared_gb(entry: Doc) -> float:
    """The admission estimate of a lane entry; 0 is what admission can't see."""
    for holder in (entry, entry.get("resources"), entry.get("resourceEstimate")):
        if holder and holder.get("memoryGb") is not None:
            return float(holder["memoryGb"])
    return float(entry.get("estimatedMemoryGb") or 0)


def _memory_of(entry: Doc) -> Doc:
    resources = entry.get("resources") or {}
    return {
        "memoryGb": entry.get("memoryGb", resources.get("memoryGb", 0)),
        "gpuMemoryGb": entry.get("gpuMemoryGb", resources.get("gpuMemoryGb", 0)),
    }


def targets_of(model: Doc) -> list[Doc]:
    if model.get("targets"):
        return [
            {
                "id": t.get("id") or f"{t.get('node') or 'target'}-{index + 1}",
                "upstreamModel": model.get("upstreamModel", model.get("id")),
                "weight": 1,
                **t,
            }
            for index, t in enumerate(model["targets"])
        ]
    if not model.get("backend"):
        return []
    upstream = model.get("upstreamModel", model.get("id"))
    target = {"id": "default", "node": None, "backend": model["backend"], "upstreamModel": upstream, "weight": 1}
    return [{**target, "runtime": model["runtime"]} if model.get("runtime") else target]


def route_of(alias: Any) -> list[str]:
    """The ordered models an alias names, in any of its written forms."""
    if isinstance(alias, str):
        return [alias]
    if alias.get("members") is not None:
        return list(alias["members"])
    return [t for t in [alias.get("target"), *(alias.get("fallbacks") or [])] if t]


def is_external(entry: Doc) -> bool:
    """Whether the gateway only watches a lane."""
    default = "external" if entry.get("managed") is False else "managed"
    return bool(entry.get("management", default) != "managed")
