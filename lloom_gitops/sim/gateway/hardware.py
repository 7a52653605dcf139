"""What a node says of its machine: profile, telemetry, guard limits and (newer builds) inventory.

Facts come from the `sim.machine` block of the config, which a real gateway ignores:
`{memoryGb, platform, arch, cpus, cpuBrand, accelerators[], devices[], memoryDomains[], computeArchs[], disks[],
weights[], commands[], images[], links[], foreignGb}`.
"""

from __future__ import annotations

import hashlib
import json

from lloom_gitops.sim.gateway.document import GatewayConfig
from lloom_gitops.sim.gateway.guard import guard_limits
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.refusals import Doc
from lloom_gitops.sim.gateway.stamps import iso

_GIB = 1024**3
_DEFAULT_MEMORY_GB = 128.0
_INVENTORY = ("computeArchs", "memoryDomains", "disks", "weights", "commands", "images", "links", "loadSeconds")


def machine_block(config: GatewayConfig) -> Doc:
    return dict((config.doc.get("sim") or {}).get("machine") or {})


def total_gb(config: GatewayConfig) -> float:
    """Memory of the simulated machine: the sim block's, else what the config declares of this node."""
    declared = (config.nodes.get(config.node_id, {}).get("resources") or {}).get("memoryGb", _DEFAULT_MEMORY_GB)
    return float(machine_block(config).get("memoryGb", declared))


def system(node: Node) -> Doc:
    block = machine_block(node.config)
    return {
        "hostname": node.node_id,
        "platform": block.get("platform", "linux"),
        "arch": block.get("arch", "x64"),
        "release": "sim",
        "uptimeSeconds": (node.now - node.booted_at) / 1000,
    }


def profile(node: Node) -> Doc:
    """The machine profile (schema version 1)."""
    block = machine_block(node.config)
    platform, arch = block.get("platform", "linux"), block.get("arch", "x64")
    total = round(node.machine.total_gb, 1)
    devices = list(block.get("devices") or [])
    domains = block.get("memoryDomains") or [
        {"id": "system:0", "kind": "system", "capacityGb": total, "deviceIds": ["cpu:0"]}
    ]
    identity = [platform, arch, block.get("cpuBrand"), devices, domains]
    fingerprint = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    body: Doc = {
        "$schema": "https://lloom.dev/schemas/machine-profile.v1.schema.json",
        "schemaVersion": 1,
        "profile": "https://lloom.dev/profiles/interchange/v1",
        "id": f"{platform}-{arch}-{str(total).replace('.', '_')}gb",
        "platform": platform,
        "arch": arch,
        "platformId": f"{platform}-{arch}",
        "cpuBrand": block.get("cpuBrand", "Simulated CPU"),
        "totalMemoryGb": total,
        "logicalCpus": block.get("cpus", 20),
        "accelerators": list(block.get("accelerators") or []),
        "devices": devices,
        "isAppleSilicon": platform == "darwin" and arch == "arm64",
        "memoryDomains": domains,
        "topologyFingerprint": f"sha256:{fingerprint}",
    }
    return {**body, "cluster": block["cluster"]} if "cluster" in block else body


def telemetry(node: Node) -> Doc:
    total = round(node.machine.total_gb * _GIB)
    used = round(node.machine.used_gb(node.now) * _GIB)
    share = 100 * used / total if total else 0
    return {
        "sampledAt": iso(node.now),
        "cpu": {"utilization": 0, "logicalCpus": machine_block(node.config).get("cpus", 20), "model": "Simulated CPU"},
        "memory": {
            "usedBytes": used,
            "freeBytes": total - used,
            "availableBytes": total - used,
            "totalBytes": total,
            "utilization": share,
            "pressureUtilization": share,
            "source": "simulated",
        },
        "gpu": None,
    }


def memory_safety(node: Node) -> Doc:
    """The guard's limits as newer builds show them."""
    limits = guard_limits(node)
    return {
        "mode": limits.mode,
        "minAvailableMemoryGb": limits.min_available_gb,
        "maxMemoryUtilization": limits.ceiling,
        "pollIntervalMs": limits.poll_ms,
    }


def inventory(node: Node) -> Doc:
    """The structured inventory that a newer gateway collects on request. What the sim block leaves out is absent."""
    block = machine_block(node.config)
    platform, arch = block.get("platform", "linux"), block.get("arch", "x64")
    body: Doc = {"platform": f"{platform}-{arch}"}
    for key in _INVENTORY:
        if key in block:
            body[key] = block[key]
    if "inventory" in block:
        body |= block["inventory"]
    return body
