"""What a plan may promise of what answers first: measured figures, else the best matching benchmark (CAT-4)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from lloom_gitops.catalog.hardware import known_as
from lloom_gitops.model.errors import Finding
from lloom_gitops.model.inventory import ObservedNode
from lloom_gitops.model.plan import Expects, PlannedRoute
from lloom_gitops.model.recipe import Benchmark

from .plan_codes import at, fault
from .plan_scene import LaneFacts, Scene

Figures = tuple[int | None, Decimal | None]
NOTHING: Figures = (None, None)


def expects_findings(scene: Scene, name: str, planned: PlannedRoute) -> Iterator[Finding]:
    """The figures of a route are those of its first entry, and they say truly where they come from."""
    if not planned.route:
        return
    allowed, sources = _allowed(scene, name, planned.route[0])
    said = (planned.expects.ttft_ms, planned.expects.tokens_per_second)
    if said not in allowed or planned.expects.source not in (None, *sources):
        yield fault(
            "planExpects",
            at("routes", name, "expects"),
            f"{name} is promised other figures than {planned.route[0]} has",
            wanted=f"{allowed[0][0]} ms, {allowed[0][1]}/s ({' or '.join(sources) or 'unknown'})",
            found=_words(planned.expects),
        )


def _words(said: Expects) -> str:
    return f"{said.ttft_ms} ms, {said.tokens_per_second}/s ({said.source or 'no source'})"


def _allowed(scene: Scene, alias: str, model: str) -> tuple[list[Figures], tuple[str, ...]]:
    """Figures that may be promised, with the words for where they come from."""
    measured = scene.inventory.performance.get(model)
    if measured is not None and measured.source == "metrics":
        return [(measured.ttft_ms, measured.tokens_per_second)], ("metrics",)
    lane = scene.first_lane(alias)
    recipe = scene.desired.recipes.get(lane.recipe or "") if lane else None
    rows = [
        row
        for row in (recipe.spec.benchmarks if recipe else ())
        if row.model in (None, model) and (row.ttft_ms, row.tokens_per_second) != NOTHING
    ]
    if lane is not None and rows:
        labels = set(scene.desired.node_labels.get(lane.nodes[0], {}).values())
        for match in ([row for row in rows if row.hardware in labels], _of_same_arch(scene, lane, rows)):
            if match:
                return [(row.ttft_ms, row.tokens_per_second) for row in match], ("benchmark",)
        scaled = list(_scaled(scene, lane, labels, rows))
        if scaled:
            return scaled, ("scaled",)
    if measured is not None:
        return [(measured.ttft_ms, measured.tokens_per_second)], (measured.source,)
    return [NOTHING], ()


def _machine(scene: Scene, node: str) -> set[str]:
    seen = scene.inventory.nodes.get(node, ObservedNode())
    return {accelerator.compute_arch for accelerator in seen.accelerators or () if accelerator.compute_arch}


def _of_same_arch(scene: Scene, lane: LaneFacts, rows: list[Benchmark]) -> list[Benchmark]:
    """Benchmarks of hardware with a compute arch of the lane's first node: as listed, or as the pool's own have it."""
    own = _machine(scene, lane.nodes[0])
    found = []
    for row in rows:
        kin = {node for node, labels in scene.desired.node_labels.items() if row.hardware in labels.values()}
        archs = {arch for node in kin for arch in _machine(scene, node)}
        listed = known_as(row.hardware)
        if own & (archs | ({listed.arch} if listed else set())):
            found.append(row)
    return found


def _scaled(scene: Scene, lane: LaneFacts, labels: set[str], rows: list[Benchmark]) -> Iterator[Figures]:
    """Benchmarks times the ratio of the two machines' memory bandwidth, to whole ms and tenths of a token."""
    seen = scene.inventory.nodes.get(lane.nodes[0], ObservedNode())
    names = [*sorted(labels), *(accelerator.name or "" for accelerator in seen.accelerators or ())]
    here = next((known for name in names if (known := known_as(name)) is not None), None)
    for row in rows:
        there = known_as(row.hardware)
        if here is None or there is None:
            continue
        ttft, speed = row.ttft_ms, row.tokens_per_second
        if ttft is not None:
            ttft = round(Decimal(ttft * there.bandwidth) / here.bandwidth)
        if speed is not None:
            speed = round(speed * here.bandwidth / there.bandwidth, 1)
        yield ttft, speed
