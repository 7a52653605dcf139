"""Admission: what a gateway would load and evict for a request, and why it refuses. Pure, per build.

Numbers are floating GiB, as the gateway itself counts them.
"""

from __future__ import annotations

from typing import Any

from lloom_gitops.sim.gateway.document import Build, GatewayConfig
from lloom_gitops.sim.gateway.guard import GuardLimits
from lloom_gitops.sim.gateway.planrows import plain, plan_rows, protected_reasons
from lloom_gitops.sim.gateway.refusals import Doc


def make_plan(
    config: GatewayConfig,
    statuses: dict[str, Doc],
    telemetry: dict[str, Doc],
    requested_id: str | None,
    requester: str | None = None,
    evict: bool = True,
) -> Doc:
    """The admission plan for `requested_id` (None: the view over all); without `evict` every loaded lane stays.

    `telemetry` is keyed by node: `{reachable, totalMemoryGb, availableMemoryGb}`, the last two None where unknown.
    """
    rows = plan_rows(config, statuses, requested_id)
    if not evict:
        for row in rows:
            row["evictable"] = False
    requested = next((row for row in rows if row["requested"]), None)
    errors = [] if requested or requested_id is None else [f"unknown runtime {requested_id}"]
    warnings: list[str] = []
    policy = _policy(config)
    shape = _Clustered if config.clustered else _Single
    count = shape(config, policy, rows, requested, telemetry, errors, warnings)
    evictions = count.evict()
    actions = [*evictions, *([count.start_action()] if requested and not requested["loaded"] else [])]
    admission = count.admission()
    plan: Doc = {
        "ok": not errors,
        "policy": policy,
        "requestedRuntimeId": requested_id,
        "admission": admission,
        "runtimes": rows,
        "actions": actions,
        "protected": [
            {"runtimeId": row["runtimeId"], "protectedReasons": reasons}
            for row in rows
            if row["loaded"] and (reasons := protected_reasons(row, policy, config.build))
        ],
        "warnings": warnings,
        "validationErrors": errors,
    }
    if config.build is Build.NEWER:
        plan["requesterNode"] = requester or config.node_id
    return plan


def _policy(config: GatewayConfig) -> Doc:
    return {
        "enabled": config.policy.get("enabled") is not False,
        "autoEvict": config.policy.get("autoEvict") is True,
        "protectActiveRequests": config.policy.get("protectActiveRequests") is not False,
        "protectKeepWarm": True,
    }


def _strongest(key: str, *holders: Doc) -> Any:
    return next((holder[key] for holder in holders if holder.get(key) is not None), None)


class _Count:
    """The arithmetic both shapes share: what is over, and which lanes would go."""

    def __init__(
        self,
        config: GatewayConfig,
        policy: Doc,
        rows: list[Doc],
        requested: Doc | None,
        telemetry: dict[str, Doc],
        errors: list[str],
        warnings: list[str],
    ) -> None:
        self.config, self.policy, self.rows, self.requested = config, policy, rows, requested
        self.telemetry, self.errors, self.warnings = telemetry, errors, warnings
        self.newer = config.build is Build.NEWER

    def candidates(self) -> list[Doc]:
        """Loaded lanes that may go, in the order in which they would."""
        free = [r for r in self.rows if r["loaded"] and not protected_reasons(r, self.policy, self.config.build)]
        return sorted(free, key=self._eviction_key)

    def _eviction_key(self, row: Doc) -> tuple[Any, ...]:
        used = row["lastRequestedAt"] or row["lastIdleAt"] or ""
        preferred = self.newer and row["preferredWarm"]
        last = "" if self.config.clustered else row["runtimeId"]
        return (preferred, used, row["priority"], -row["memoryGb"], last)

    def adds(self, node: str) -> float:
        if self.requested is None or self.requested["loaded"]:
            return 0
        at: Doc = self.requested["resourcesByNode"].get(node) or {}
        return float(at.get("memoryGb", 0))

    def budget(self, resources: Doc, total: float) -> tuple[float, float, float | None]:
        """(budget, reserve, utilisation) of one node, the strongest setting first."""
        policy = self.config.policy
        reserve = float(_strongest("reserveMemoryGb", resources, policy, {"reserveMemoryGb": 8}))
        utilization = _strongest("maxMemoryUtilization", resources, policy)
        fixed = _strongest("memoryBudgetGb", resources, policy)
        if fixed is not None:
            budget = float(fixed)
        elif utilization is not None:
            budget = max(0.0, total * utilization)
        else:
            budget = max(0.0, total - reserve)
        guard = GuardLimits.of(policy, total)
        if self.newer and guard.mode != "yolo":
            budget = max(0.0, min(budget, total * guard.ceiling))
        return budget, reserve, utilization


class _Clustered(_Count):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.policy["clustered"] = True
        self.nodes = {name: self._node(name, node) for name, node in self.config.nodes.items()}

    def _node(self, name: str, node: Doc) -> Doc:
        resources = node.get("resources") or {}
        seen = self.telemetry.get(name) or {}
        total = seen.get("totalMemoryGb")
        total = resources.get("memoryGb") if total is None else total
        available = seen.get("availableMemoryGb")
        if total is None:
            self.warnings.append(f"cluster node {name} has no live or configured memory capacity")
        capacity = float(total or 0)
        budget, reserve, utilization = self.budget(resources, capacity)
        loaded = sum(r["resourcesByNode"].get(name, {}).get("memoryGb", 0) for r in self.rows if r["loaded"])
        used = max(0.0, capacity - (capacity if available is None else available))
        predictive = utilization is not None and available is not None
        basis = max(used, loaded) if self.newer else used if predictive else loaded
        adds = self.adds(name)
        relieved = self.requested is not None and self.requested["loaded"]
        return {
            "reachable": seen.get("reachable") is not False,
            "totalMemoryGb": total,
            "availableMemoryGb": available,
            "gpuMemoryUsedGb": None,
            "gpuMemoryTotalGb": None,
            "reserveMemoryGb": plain(reserve),
            "maxMemoryUtilization": utilization,
            "memoryBudgetGb": plain(budget),
            "loadedMemoryGb": loaded,
            "actualUsedMemoryGb": used,
            "requestedAddsMemoryGb": plain(adds),
            "projectedMemoryGb": plain(basis + adds),
            "predictive": predictive,
            "overBudgetGb": 0 if relieved else plain(max(0.0, basis + adds - budget)),
        }

    def counted(self) -> list[str]:
        """Whose pressure counts: any node's in the snapshot, only the touched ones in newer builds."""
        if self.newer and self.requested is not None:
            return [name for name in self.requested["resourcesByNode"] if name in self.nodes]
        return list(self.nodes)

    def evict(self) -> list[Doc]:
        counted = self.counted()
        evictions: list[Doc] = []
        for row in self.candidates():
            held = row["resourcesByNode"]
            if not any(self.nodes[n]["overBudgetGb"] > 0 and held.get(n, {}).get("memoryGb", 0) > 0 for n in counted):
                continue
            evictions.append(
                {
                    "type": "stop",
                    "runtimeId": row["runtimeId"],
                    "reason": "node-memory-budget",
                    "freesMemoryGb": row["memoryGb"],
                    "resourcesByNode": held,
                    "priority": row["priority"],
                }
            )
            for name, at in held.items():
                if name in self.nodes:
                    node = self.nodes[name]
                    node["overBudgetGb"] = plain(max(0.0, node["overBudgetGb"] - at["memoryGb"]))
        return evictions

    def start_action(self) -> Doc:
        assert self.requested is not None
        return {
            "type": "start",
            "runtimeId": self.requested["runtimeId"],
            "reason": "requested-runtime",
            "memoryGb": self.requested["memoryGb"],
            "resourcesByNode": self.requested["resourcesByNode"],
        }

    def admission(self) -> Doc:
        for name in self.requested["resourcesByNode"] if self.requested else ():
            node = self.nodes.get(name) or {}
            if not node.get("totalMemoryGb"):
                self.errors.append(f"cluster node {name} has no known memory capacity")
            if node.get("reachable") is False:
                self.errors.append(f"cluster node {name} is unreachable")
        over = sum(self.nodes[name]["overBudgetGb"] for name in self.counted())
        if over > 0:
            text = f"{round(over, 1):g}"
            self.warnings.append(f"requested runtime exceeds per-node memory budgets by {text} GB after safe evictions")
        return {"allowed": not self.errors and over <= 0, "clustered": True, "overBudgetGb": over, "nodes": self.nodes}


class _Single(_Count):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        seen = self.telemetry.get(self.config.node_id) or {}
        self.total = float(seen.get("totalMemoryGb") or 0)
        self.available = float(seen.get("availableMemoryGb") or 0)
        resources = (self.config.doc["cluster"]["nodes"].get(self.config.node_id) or {}).get("resources") or {}
        self.budget_gb, self.reserve, utilization = self.budget(resources, self.total)
        self.predictive = utilization is not None and not self.newer
        self.loaded = sum(row["memoryGb"] for row in self.rows if row["loaded"])
        self.added = self.adds(self.config.node_id)
        basis = self.total - self.available if self.predictive else self.loaded
        self.projected = basis + self.added
        idle = self.requested is not None and self.requested["loaded"]
        self.over = 0.0 if idle else max(0.0, self.projected - self.budget_gb)
        self.short = 0.0
        if self.newer and self.added > 0:
            keep = max(self.reserve, GuardLimits.of(self.config.policy, self.total).margin_gb(self.total))
            self.short = max(0.0, keep + self.added - self.available)
        self.policy |= {
            "totalMemoryGb": self.total,
            "reserveMemoryGb": plain(self.reserve),
            "memoryBudgetGb": plain(self.budget_gb),
            "maxMemoryUtilization": utilization,
        }

    def evict(self) -> list[Doc]:
        evictions: list[Doc] = []
        for row in self.candidates():
            if self.over <= 0 and self.short <= 0:
                break
            evictions.append(
                {
                    "type": "stop",
                    "runtimeId": row["runtimeId"],
                    "reason": "memory-budget",
                    "freesMemoryGb": row["memoryGb"],
                    "priority": row["priority"],
                }
            )
            self.over = max(0.0, self.over - row["memoryGb"])
            self.short = max(0.0, self.short - row["memoryGb"])
        return evictions

    def start_action(self) -> Doc:
        assert self.requested is not None
        lane, memory = self.requested["runtimeId"], self.requested["memoryGb"]
        return {"type": "start", "runtimeId": lane, "reason": "requested-runtime", "memoryGb": memory}

    def admission(self) -> Doc:
        over = max(self.over, self.short)
        if over > 0:
            text = f"{round(over, 1):g}"
            self.warnings.append(
                f"projected runtime memory exceeds policy budget by {text} GB after all safe evictions"
            )
        body: Doc = {
            "allowed": not self.errors and over <= 0,
            "overBudgetGb": plain(self.over),
            "loadedMemoryGb": self.loaded,
            "actualUsedMemoryGb": self.total - self.available,
            "availableMemoryGb": self.available,
            "predictive": self.predictive,
            "requestedAddsMemoryGb": plain(self.added),
            "projectedMemoryGb": plain(self.projected),
            "memoryBudgetGb": plain(self.budget_gb),
        }
        if self.newer:
            body["hostShortfallGb"] = plain(self.short)
        return body
