"""Live figures, else the best matching benchmark: same hardware, then same arch, then scaled and said so (CAT-4)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from lloom_gitops.catalog.hardware import HARDWARE, known_as
from lloom_gitops.catalog.performance import Figures, expected
from lloom_gitops.checks.plan import judge
from lloom_gitops.model.desired import Alias, Slo
from lloom_gitops.model.inventory import ObservedNode, Performance
from lloom_gitops.model.recipe import Benchmark
from lloom_gitops.planner import plan

from .pools import mac, pool, recipe, server, spark


def row(hardware: str, ttft: int, rate: str, sequences: int = 1, model: str | None = None) -> Benchmark:
    return Benchmark(hardware=hardware, ttft_ms=ttft, tokens_per_second=Decimal(rate), sequences=sequences, model=model)


def figures(ttft: int, rate: str, source: str, hardware: str | None = None) -> Figures:
    return Figures(ttft_ms=ttft, tokens_per_second=Decimal(rate), source=source, hardware=hardware)


SPARK, MAC, L40S = row("dgx-spark", 1000, "20"), row("m2-max", 700, "30"), row("l40s", 200, "60")


@pytest.mark.parametrize(
    ("rows", "node", "label", "seen", "wanted"),
    [
        pytest.param(
            (SPARK,), spark(), "dgx-spark", figures(830, "45.2", "metrics"), figures(830, "45.2", "metrics"), id="live"
        ),
        pytest.param(
            (MAC, SPARK), spark(), "dgx-spark", None, figures(1000, "20", "benchmark", "dgx-spark"), id="same"
        ),
        pytest.param(
            (row("dgx-spark", 4000, "9", 8), SPARK),
            spark(),
            "dgx-spark",
            None,
            figures(1000, "20", "benchmark", "dgx-spark"),
            id="the fewest streams",
        ),
        pytest.param(
            (SPARK, row("dgx-spark", 500, "40", 1, "m")),
            spark(),
            "dgx-spark",
            None,
            figures(500, "40", "benchmark", "dgx-spark"),
            id="of this very model",
        ),
        pytest.param((SPARK,), spark(), "my-box", None, figures(1000, "20", "benchmark", "dgx-spark"), id="same arch"),
        # 400 / 273 GB/s: 682.5 ms and 29.3 tokens a second
        pytest.param((SPARK,), mac(), "m2-max", None, figures(682, "29.3", "scaled", "dgx-spark"), id="scaled"),
        pytest.param((SPARK,), mac(), "no-label", None, figures(682, "29.3", "scaled", "dgx-spark"), id="by its chip"),
        pytest.param((L40S,), spark(), "dgx-spark", None, figures(633, "19", "scaled", "l40s"), id="scaled down"),
        pytest.param((row("abacus", 1, "1"),), spark(), "dgx-spark", None, None, id="unknown hardware is not scaled"),
        pytest.param((SPARK,), ObservedNode(), "", None, None, id="to an unknown machine neither"),
        pytest.param((), spark(), "", figures(9, "8", "benchmark"), figures(9, "8", "benchmark"), id="what was kept"),
    ],
)
def test_what_to_expect(
    rows: tuple[Benchmark, ...], node: ObservedNode, label: str, seen: Figures | None, wanted: Figures | None
) -> None:
    known = {} if seen is None else {"m": Performance(seen.ttft_ms, seen.tokens_per_second, seen.source)}
    desired, inventory = pool({"n": node}, {"r": recipe(benchmarks=rows)}, labels={"n": label}, performance=known)
    assert expected(desired, inventory, "m", ("n",), "r") == wanted


def test_the_pools_own_machines_tell_the_arch_of_a_label() -> None:
    rows = (row("rack-one", 300, "70"),)
    nodes = {"a": server(), "b": server()}
    desired, inventory = pool(nodes, {"r": recipe(benchmarks=rows)}, labels={"a": "rack-one", "b": "rack-two"})
    assert expected(desired, inventory, "m", ("b",), "r") == figures(300, "70", "benchmark", "rack-one")


def test_an_external_model_has_live_figures_or_none() -> None:
    desired, inventory = pool({"n": spark()}, {"r": recipe(benchmarks=(SPARK,))})
    assert expected(desired, inventory, "cloud/m") is None


@pytest.mark.parametrize(
    ("name", "label"),
    [("Apple M2 Max", "m2-max"), ("NVIDIA GeForce RTX 4090", "rtx-4090"), ("GB10", "gb10"), ("M2", "m2")],
)
def test_hardware_is_known_by_its_names(name: str, label: str) -> None:
    assert known_as(name) == HARDWARE[label]


def test_no_hardware_is_known_by_a_part_of_a_word() -> None:
    assert known_as("m20-maximum") is None


@pytest.mark.parametrize(
    ("label", "source", "misses"),
    [("m2-max", "scaled", 0), ("dgx-spark", "benchmark", 1000)],
    ids=["scaled", "as it is"],
)
def test_a_plan_promises_and_weighs_what_the_lane_can_do(label: str, source: str, misses: int) -> None:
    node = mac() if label == "m2-max" else spark()
    alias = Alias(models=("m",), slo=Slo(tokens_per_second=Decimal(25)))
    desired, inventory = pool({"n": node}, {"r": recipe(benchmarks=(SPARK,))}, {"a": alias}, {"n": label})
    made = plan(desired, inventory)
    assert judge(desired, inventory, made) == ()
    assert made.routes["a"].expects.source == source
    assert made.verdict.levels[2] == misses
    assert [note.code for note in made.notes if note.code == "scaledFigures"] == ["scaledFigures"] * (
        source == "scaled"
    )
    forged = replace(made.routes["a"], expects=replace(made.routes["a"].expects, source="metrics"))
    found = {finding.code for finding in judge(desired, inventory, replace(made, routes={"a": forged}))}
    assert "planExpects" in found
