"""Warm figures of a model where a lane runs: live metrics, else the best matching benchmark (CAT-4).

One function for the observer, the planner and what a plan says that it expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory, ObservedNode, Performance
from lloom_gitops.model.recipe import Benchmark

from .hardware import known_as, of_machine

METRICS = "metrics"
BENCHMARK = "benchmark"
SCALED = "scaled"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Warm figures and where they come from: metrics, a benchmark as it is, or one that is scaled.

    `hardware` is the label of the machine that a benchmark was made on.
    """

    ttft_ms: int | None = None
    tokens_per_second: Decimal | None = None
    source: str = METRICS
    hardware: str | None = None


def expected(
    desired: Desired, inventory: Inventory, model: str, nodes: tuple[str, ...] = (), recipe: str | None = None
) -> Figures | None:
    """What to expect of a model from a lane on `nodes`, of `recipe`; None: nothing is known.

    Live figures first, then the recipe's benchmarks, then what the inventory has kept of one.
    """
    seen = inventory.performance.get(model)
    if seen is not None and seen.source == METRICS:
        return _seen(seen)
    published = benchmarked(desired, inventory.nodes, model, nodes, recipe)
    return published or (None if seen is None else _seen(seen))


def _seen(figure: Performance) -> Figures:
    return Figures(ttft_ms=figure.ttft_ms, tokens_per_second=figure.tokens_per_second, source=figure.source)


def benchmarked(
    desired: Desired, seen: Mapping[str, ObservedNode], model: str, nodes: tuple[str, ...], recipe: str | None
) -> Figures | None:
    """The recipe's benchmark that fits the lane's first node best, at the fewest streams at once.

    First one made on hardware of the node's label, then one made on the same compute arch, then one that is scaled by
    memory bandwidth, where that of both machines is known.
    """
    document = desired.recipes.get(recipe or "")
    if document is None or not nodes:
        return None
    rows = [
        row
        for row in document.spec.benchmarks
        if row.model in (None, model) and (row.ttft_ms is not None or row.tokens_per_second is not None)
    ]
    rows.sort(key=lambda row: (row.sequences, row.model is None))
    labels = frozenset(desired.node_labels.get(nodes[0], {}).values())
    machine = seen.get(nodes[0], ObservedNode())
    same = next((row for row in rows if row.hardware in labels), None)
    kin = next((row for row in rows if _archs(desired, seen, row.hardware) & _archs_of(machine)), None)
    if same is not None or kin is not None:
        return _published(same or kin)
    to = of_machine(labels, machine.accelerators or ())
    known = [(row, found) for row in rows if (found := known_as(row.hardware)) is not None]
    if to is None or not known:
        return None
    row, made_on = known[0]
    return _scaled(row, made_on.bandwidth, to.bandwidth)


def _archs_of(node: ObservedNode) -> frozenset[str]:
    return frozenset(each.compute_arch for each in node.accelerators or () if each.compute_arch)


def _archs(desired: Desired, seen: Mapping[str, ObservedNode], hardware: str) -> frozenset[str]:
    """Compute archs of a hardware label: those of the pool's own machines of that label, and what is known of it."""
    found = known_as(hardware)
    own = [seen[name] for name, labels in desired.node_labels.items() if hardware in labels.values() and name in seen]
    return frozenset({arch for node in own for arch in _archs_of(node)} | ({found.arch} if found else set()))


def _published(row: Benchmark | None) -> Figures | None:
    if row is None:
        return None
    return Figures(
        ttft_ms=row.ttft_ms, tokens_per_second=row.tokens_per_second, source=BENCHMARK, hardware=row.hardware
    )


def _scaled(row: Benchmark, made_on: int, to: int) -> Figures:
    """A benchmark carried over between two bandwidths, in whole milliseconds and tenths of a token."""
    ttft, rate = row.ttft_ms, row.tokens_per_second
    return Figures(
        ttft_ms=None if ttft is None else int((Decimal(ttft * made_on) / to).to_integral_value()),
        tokens_per_second=None if rate is None else (rate * to / made_on).quantize(Decimal("0.1")).normalize() + 0,
        source=SCALED,
        hardware=row.hardware,
    )
