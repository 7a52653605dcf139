"""Answers of gateways in the shapes that real ones gave (oldest build) and that newer sources show, for pure tests."""

from __future__ import annotations

import copy
from decimal import Decimal
from typing import Any

from lloom_gitops.catalog.sighting import Sighting, sight
from lloom_gitops.catalog.sighting_nodes import NodeBodies
from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.pool import Pool
from lloom_gitops.model.words import LaneState

GIB = 1024**3
Doc = dict[str, Any]


def row(status: str = "running", **facts: Any) -> Doc:
    """A lane's status row as the oldest build has it."""
    return {
        "enabled": True,
        "keepWarm": False,
        "maxConcurrency": 2,
        "command": "/opt/secret/bin/python3",
        "args": ["--api-key", "sk-planted"],
        "port": 18201,
        "healthUrl": "http://10.9.8.7:18201/health",
        "management": "managed",
        "recipe": None,
        "placement": None,
        "healthy": status in ("running", "external"),
        "status": status,
        "activeRequests": 0,
        "queuedRequests": 0,
        "transitionReason": None,
        "lastError": None,
        **facts,
    }


def newer(status: str = "running", **facts: Any) -> Doc:
    """A lane's status row as newer builds have it."""
    return row(status, **{"preferredWarm": False, "maintenance": None, "memorySafetyLatched": False, **facts})


def machine(**facts: Any) -> Doc:
    """The profile of a Spark as the oldest build has it: a plain system domain, and no word of unified memory."""
    return {
        "id": "linux-arm64-121_7gb",
        "platformId": "linux-arm64",
        "cpuBrand": "CPU-BRAND",
        "totalMemoryGb": 121.7,
        "accelerators": ["cuda", "nvidia-gpu", "blackwell", "gb10"],
        "devices": [
            {
                "id": "cuda:0",
                "kind": "gpu",
                "vendor": "nvidia",
                "name": "NVIDIA GB10",
                "backend": "cuda",
                "computeCapability": "12.1",
                "accelerators": ["cuda", "gb10"],
            }
        ],
        "isAppleSilicon": False,
        "memoryDomains": [{"id": "system:0", "kind": "system", "capacityGb": 121.7, "deviceIds": ["cpu:0"]}],
        **facts,
    }


def node(name: str, runtimes: Doc | None = None, *, used_gb: float = 0, **facts: Any) -> Doc:
    """An answer to `/gateway/node`."""
    memory = {"totalBytes": round(121.7 * GIB), "availableBytes": round((121.7 - used_gb) * GIB)}
    block = {
        "id": name,
        "system": {"hostname": "secret-host.example.com"},
        "profile": machine(),
        "telemetry": {"memory": memory},
        "runtimeManager": {"runtimes": runtimes or {}, "events": []},
    }
    return {"ok": True, "node": {**block, **facts}}


def status(runtimes: Doc | None = None, **facts: Any) -> Doc:
    return {"ok": True, "runtimeManager": {"runtimes": runtimes or {}, "events": []}, "cluster": {}, **facts}


def plan(name: str, sizes: dict[str, float], **facts: Any) -> Doc:
    """A plan without a lane id: what the oldest build tells of sizes and of its own admission."""
    rows = [{"runtimeId": lane, "memoryGb": gb} for lane, gb in sizes.items()]
    block = {"reachable": True, "totalMemoryGb": 121.7, "reserveMemoryGb": 8, "maxMemoryUtilization": 0.95, **facts}
    return {"ok": True, "admission": {"allowed": True, "clustered": True, "nodes": {name: block}}, "runtimes": rows}


def model(name: str, lane: str, kind: str = "chat", **facts: Any) -> Doc:
    return {"id": name, "kind": kind, "backend": lane, "runtime": lane, "contextWindow": 32768, **facts}


def bodies(name: str, runtimes: Doc | None = None, **facts: Any) -> NodeBodies:
    """All answers of a gateway whose lanes have 10 GB and one model each (`model-of-<lane>`)."""
    lanes = runtimes or {}
    given: Doc = {
        "node": node(name, {lane: shown for lane, shown in lanes.items() if not shown.get("distributed")}),
        "status": status(lanes),
        "plan": plan(name, dict.fromkeys(lanes, 10)),
        "routing": {"aliases": {}, "defaults": {}},
        "models": {"models": [model(f"model-of-{lane}", lane) for lane in lanes]},
        "metrics": {},
        "has_profiles": False,
    }
    return NodeBodies(**{**given, **facts})


def fleet(*names: str, head: str | None = None, **facts: Any) -> Desired:
    """A desired state with these nodes."""
    nodes = {name: Node(endpoint=f"http://{name}.example:8100", assume_memory_gb=Decimal(100)) for name in names}
    return Desired(name="test", pool=Pool(head=head or names[0]), **{"nodes": nodes, **facts})


def see(
    desired: Desired,
    answers: dict[str, NodeBodies],
    previous: Inventory | None = None,
    silent: dict[str, float | None] | None = None,
    health: dict[str, LaneState] | None = None,
) -> Sighting:
    """`sight`, with all that did not answer silent for a time that nobody knows; the answers stay as they were."""
    before = copy.deepcopy(answers)
    unheard = dict.fromkeys(desired.nodes.keys() - answers.keys()) if silent is None else silent
    found = sight(desired, previous or Inventory(), answers, unheard, health or {})
    assert answers == before
    return found
