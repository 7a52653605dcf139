"""Why an admission plan is refused: the error of the build that answers."""

from __future__ import annotations

from lloom_gitops.sim.gateway.document import Build
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal, admission_refusal, bad_request

_IMPOSSIBLE = "runtime_capacity_impossible"


def refusal_of(plan: Doc, build: Build) -> GatewayRefusal | None:
    """What an apply of `plan` is refused with; None: it may go on. Inference and newer admits pass it on as it is."""
    if plan["validationErrors"]:
        return bad_request(
            "Runtime admission plan is invalid:\n" + "\n".join(f"- {e}" for e in plan["validationErrors"])
        )
    if not plan["policy"]["enabled"] or plan["admission"]["allowed"]:
        return None
    lane = plan["requestedRuntimeId"]
    busy = [p for p in plan["protected"] if "active-requests" in p["protectedReasons"]]
    pinned = [p for p in plan["protected"] if {"pinned", "keep-warm", "keep-warm-pin"} & set(p["protectedReasons"])]
    names = ", ".join(f"{p['runtimeId']} ({', '.join(p['protectedReasons'])})" for p in [*busy, *pinned])
    waiting = f"Runtime {lane} is queued for capacity; waiting for active runtime(s) to drain: {names}"
    if build is Build.SNAPSHOT:
        if busy:
            return admission_refusal(waiting, "runtime_capacity_busy", temporary=True)
        return admission_refusal(f"{_cannot_fit(plan)}; protected runtime(s): {names or 'none'}", _IMPOSSIBLE)
    if _fits_without(plan, {"active-requests"}):
        return admission_refusal(waiting, "runtime_capacity_busy", temporary=True)
    if _fits_without(plan, {"active-requests", "keep-warm-pin"}):
        text = f"Runtime {lane} would have to evict keep-warm runtime(s): {names}"
        return admission_refusal(text, "runtime_keep_warm_conflict")
    return admission_refusal(f"{_cannot_fit(plan)}; protected runtime(s): {names or 'none'}", _IMPOSSIBLE)


def _cannot_fit(plan: Doc) -> str:
    lane = plan["requestedRuntimeId"]
    if plan["admission"].get("clustered"):
        return f"Runtime {lane} cannot fit within the per-node cluster memory budgets"
    return f"Runtime {lane} cannot fit within the {plan['policy']['memoryBudgetGb']:.1f} GB memory budget"


def _fits_without(plan: Doc, removable: set[str]) -> bool:
    """Whether the lane would fit if the lanes protected only for `removable` reasons could go too."""
    rows = {row["runtimeId"]: row for row in plan["runtimes"]}
    going = [rows[p["runtimeId"]] for p in plan["protected"] if set(p["protectedReasons"]) <= removable]
    admission = plan["admission"]
    if not admission.get("clustered"):
        over = max(admission["overBudgetGb"], admission.get("hostShortfallGb", 0))
        return bool(over <= sum(row["memoryGb"] for row in going))
    touched = rows[plan["requestedRuntimeId"]]["resourcesByNode"]
    return all(
        admission["nodes"][name]["overBudgetGb"]
        <= sum(row["resourcesByNode"].get(name, {}).get("memoryGb", 0) for row in going)
        for name in touched
    )
