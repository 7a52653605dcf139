"""Memory rules of the outcome: no sum over its bound, and the plan's own figures are right (PLN-1)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from lloom_gitops.catalog.memory import exact_gib
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.plan import DomainBudget
from lloom_gitops.model.words import Residency

from .plan_codes import at, fault
from .plan_scene import Scene
from .plan_sums import Broken, Sums

# Plan files show GiB to a tenth; a sum of rounded figures may be off by a little more.
ROUNDING = Decimal("0.06")

_CODES = {
    "residency": "planOverResidency",
    "onDemand": "planOverOnDemand",
    "coResident": "planOverCoResident",
    "loadPeak": "planOverLoadPeak",
}


def memory_findings(scene: Scene, sums: Sums) -> Iterator[Finding]:
    """Every sum over its bound, and every figure of the budget block that is not the recomputed one."""
    for broken in sums.broken(scene.limits):
        yield _over(scene, broken)
    for node, rows in scene.plan.budget.items():
        for index, row in enumerate(rows):
            if scene.gone(node):
                continue  # nothing counts there, whatever is shown
            yield from _figures(scene, sums, node, index, row)
    if scene.plan.budget:
        yield from _left_out(scene)


def _over(scene: Scene, broken: Broken) -> Finding:
    limit = scene.limits[broken.domain]
    pointer = at("budget", limit.node)
    if broken.lanes and broken.lanes[0] in scene.plan.lanes:
        pointer = at("lanes", broken.lanes[0])
    lanes = f" with {', '.join(broken.lanes)}" if broken.lanes else ""
    return fault(
        _CODES[broken.sum],
        pointer,
        f"{broken.domain}{lanes}: {broken.mib} MiB of {broken.bound} MiB",
        wanted=f"at most {broken.bound} MiB",
        found=f"{broken.mib} MiB",
    )


def _figures(scene: Scene, sums: Sums, node: str, index: int, row: DomainBudget) -> Iterator[Finding]:
    limit = next((d for d in scene.limits.values() if d.node == node and d.domain == row.domain), None)
    if limit is None:
        yield fault("planBudgetFigure", at("budget", node, index, "domain"), f"{node} has no domain {row.domain}")
        return
    always = sums.resident(limit.key, Residency.ALWAYS)
    preferred = sums.resident(limit.key, Residency.PREFERRED)
    budget = limit.budget_mib
    wanted: dict[str, tuple[int | None, Decimal | None]] = {
        "budgetGb": (budget, row.budget_gb),
        "alwaysGb": (always, row.always_gb),
        "preferredGb": (preferred, row.preferred_gb),
        "freeGb": (None if budget is None else budget - always - preferred, row.free_gb),
    }
    off = [(name, mib, said) for name, (mib, said) in wanted.items() if not same_gib(mib, said)]
    autos = _largest_autos(scene, sums, limit.key)
    if not any(same_gib(mib, row.largest_auto_gb) for mib in autos):
        off.append(("largestAutoGb", autos[0], row.largest_auto_gb))
    for name, mib, said in off:
        yield fault(
            "planBudgetFigure",
            at("budget", node, index, name),
            f"{limit.key}: {name} is not what the sums give",
            wanted="unknown" if mib is None else f"{exact_gib(mib):.2f}",
            found="unknown" if said is None else str(said),
        )


def _largest_autos(scene: Scene, sums: Sums, key: str) -> tuple[int, int]:
    """The largest auto lane of the routes, and of the plan: a lane that an old build's route can't name may count."""
    autos = [lane for lane in sums.lanes_on.get(key, ()) if sums.weight(lane) is Residency.AUTO]
    routed = max((lane.memory[key] for lane in autos if sums.loadable(lane)), default=0)
    return routed, max((lane.memory[key] for lane in autos if lane.id in scene.plan.lanes), default=0)


def _left_out(scene: Scene) -> Iterator[Finding]:
    """A domain that planned lanes fill must be in the budget block."""
    shown = {(node, row.domain) for node, rows in scene.plan.budget.items() for row in rows}
    for name in sorted(scene.plan.lanes):
        for key in scene.lanes[name].memory:
            limit = scene.limits.get(key)
            if limit is not None and not scene.gone(limit.node) and (limit.node, limit.domain) not in shown:
                yield fault("planBudgetFigure", at("budget", limit.node), f"{key} holds {name} and is not listed")


def same_gib(mib: int | None, said: Decimal | None) -> bool:
    """Whether a figure of a plan file says so many MiB, up to its rounding; unknown only where unknown."""
    if mib is None or said is None:
        return mib is None and said is None
    return abs(exact_gib(mib) - said) <= ROUNDING
