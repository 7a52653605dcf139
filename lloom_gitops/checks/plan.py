"""The independent judge of plans: every broken rule of a plan, found without sharing code with the search.

It runs on each plan made, in production and in every test. One small file a group of rules (`plan_*.py`), the codes in
`plan_codes`, each rule with a planted fault in the tests that it must catch.
"""

from __future__ import annotations

from collections.abc import Iterator

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan

from .plan_diff import diff_findings
from .plan_fold import fold_findings
from .plan_graph import Graph
from .plan_lanes import lane_findings
from .plan_memory import memory_findings
from .plan_objective import level_findings
from .plan_references import input_findings, reference_findings
from .plan_residency import residency_findings
from .plan_room import room_findings
from .plan_routes import route_findings
from .plan_scene import Scene
from .plan_steps import step_findings
from .plan_stops import stop_findings
from .plan_sums import Sums
from .plan_wishes import wish_findings


def judge(desired: Desired, inventory: Inventory, plan: Plan) -> tuple[Finding, ...]:
    """All broken rules of a plan, sorted; none for a legal plan whose own account of itself is true.

    `desired` is the effective one: what-if pins, cordons and profile merged in (the digest of such a plan's desired
    state is not judged). It does not judge whether a better plan exists, only that the levels are those of this one.
    """
    scene = Scene(desired, inventory, plan)
    unknown = tuple(reference_findings(scene))
    if unknown:
        # The other rules follow these names; judging a plan with dangling ones would only repeat the same fault.
        return _sorted(unknown)
    return _sorted(_rules(scene))


def _rules(scene: Scene) -> Iterator[Finding]:
    sums, graph = Sums(scene), Graph(scene.plan.steps)
    yield from input_findings(scene)
    yield from lane_findings(scene, sums)
    yield from memory_findings(scene, sums)
    yield from route_findings(scene, sums)
    yield from residency_findings(scene, sums)
    yield from wish_findings(scene, sums)
    yield from stop_findings(scene, graph)
    yield from diff_findings(scene)
    yield from level_findings(scene, sums)
    yield from step_findings(scene, graph)
    yield from fold_findings(scene, graph)
    yield from room_findings(scene, graph, sums)


def _sorted(findings: Iterator[Finding] | tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: finding.sort_key))
