"""Plans that install a recipe: what the judge asks of a lane that does not exist yet."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from lloom_gitops.checks.plan import judge
from lloom_gitops.codec import digest
from lloom_gitops.model.desired import Alias, Desired, Node
from lloom_gitops.model.document import Metadata
from lloom_gitops.model.inventory import (
    Accelerator,
    Disk,
    GatewayBuild,
    Inventory,
    MemoryDomain,
    ObservedNode,
    Weights,
)
from lloom_gitops.model.plan import AliasCount, Diff, Expects, Plan, PlanInputs, Read, RouteChange, StartChange, Step
from lloom_gitops.model.plan import Verdict as PlanVerdict
from lloom_gitops.model.pool import Planning, Pool
from lloom_gitops.model.recipe import Backend, Benchmark, Recipe, RecipeModel, RecipeSpec, Requirements
from lloom_gitops.model.words import DomainKind, Feature, ModelKind, Residency, StepKind
from tests.judge.plans import Case, lane, route, row

LANE, GPU = "m@n", Accelerator(kind="cuda", name="GB10", compute_arch="sm_121")
READY = Read(at="/nodes/n/liveness", equals="ready")


def recipe() -> Recipe:
    """One model of 40 GiB for a GB10."""
    needs = Requirements(
        platforms=("linux-arm64",),
        accelerators=("gb10",),
        compute_archs=("sm_121",),
        memory_gb=Decimal(40),
        load_peak_gb=Decimal(46),
        disk_gb=Decimal(30),
        commands=("docker",),
    )
    model = RecipeModel(model="org/m", gateway_model="m", kind=ModelKind.CHAT)
    figures = Benchmark(hardware="dgx-spark", ttft_ms=400, tokens_per_second=Decimal(20))
    spec = RecipeSpec(
        backend=Backend(id="vllm"),
        requirements=needs,
        models=(model,),
        load_seconds=Decimal(100),
        benchmarks=(figures,),
    )
    return Recipe(metadata=Metadata(name="r"), spec=spec)


def installed() -> Case:
    """One node, one alias, and a recipe that serves it once it is installed."""
    node = ObservedNode(
        platform="linux-arm64",
        accelerators=(GPU,),
        memory_domains=(MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=Decimal("121.7")),),
        disks=(Disk(root="models", free_gb=Decimal(100)),),
        commands=("docker",),
        gateway=GatewayBuild(features=tuple(Feature)),
    )
    desired = Desired(
        name="p",
        pool=Pool(head="n", planning=Planning(consider_installs=True)),
        nodes={"n": Node()},
        node_labels={"n": {"hardware": "dgx-spark"}},
        aliases={"a": Alias(models=("m",), residency=Residency.ALWAYS)},
        recipes={"r": recipe()},
    )
    inventory = Inventory(nodes={"n": node})
    return desired, inventory, _plan(desired, inventory)


def _plan(desired: Desired, inventory: Inventory) -> Plan:
    steps = (
        Step(id=f"install:{LANE}", kind=StepKind.INSTALL, node="n", lane=LANE, recipe="r", timeout_seconds=7200),
        Step(
            id=f"start:{LANE}",
            kind=StepKind.START,
            node="n",
            lane=LANE,
            residency=Residency.ALWAYS,
            timeout_seconds=1800,
            after=(f"install:{LANE}",),
            reads=(READY,),
        ),
        Step(
            id="route:a",
            kind=StepKind.ROUTE,
            alias="a",
            route=("m",),
            lanes=(LANE,),
            timeout_seconds=30,
            after=(f"start:{LANE}",),
        ),
    )
    start = StartChange(lane=LANE, nodes=("n",), residency=Residency.ALWAYS, load_gb=Decimal(40), load_seconds=100)
    latency = 1_000 * 400 + 1_000 * 100_000
    return Plan(
        inputs=PlanInputs(desired=digest(desired), inventory=digest(inventory)),
        verdict=PlanVerdict(
            levels=(0, 0, 0, 0, 0, latency, 2, -68_300),
            aliases=AliasCount(covered=1),
            start=1,
            load_gb=Decimal(40),
            load_seconds=100,
        ),
        lanes={LANE: lane("m", "n", Residency.ALWAYS, 40)},
        routes={"a": route(("m",), (LANE,), Expects(ttft_ms=400, tokens_per_second=Decimal(20)))},
        budget={"n": row("106.7", 40, 0, 0, "66.7")},
        diff=Diff(start=(start,), routes=(RouteChange(alias="a", before=(), after=("m",)),)),
        steps=steps,
    )


def test_a_right_install_has_no_findings() -> None:
    assert [f"{f.code} {f.pointer}: {f.message}" for f in judge(*installed())] == []


def seen(**fields: Any) -> Callable[[Case], Case]:
    return lambda case: (case[0], replace(case[1], nodes={"n": replace(case[1].nodes["n"], **fields)}), case[2])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (seen(disks=(Disk(root="models", free_gb=Decimal(29)),)), "disk: n"),
        (seen(disks=None), "disk: n"),
        (seen(commands=()), "commands: n"),
        (seen(accelerators=None), "accelerator: n"),
        (seen(accelerators=(replace(GPU, compute_arch="sm_100"),)), "computeArch: n"),
        (seen(platform="darwin-arm64"), "platform: n"),
    ],
    ids=["disk too small", "disk unknown", "command missing", "accelerator unknown", "other arch", "other platform"],
)
def test_an_install_where_it_cannot_run_is_found(change: Callable[[Case], Case], found: str) -> None:
    findings = judge(*change(installed()))
    assert ("planStartBlocked", found) in {(finding.code, finding.found) for finding in findings}


def test_weights_on_disk_need_no_room() -> None:
    case = seen(disks=(), weights=(Weights(model="org/m"),))(installed())
    assert "planStartBlocked" not in {finding.code for finding in judge(*case)}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda plan: replace(plan, steps=plan.steps[1:]), "planUnknownLane"),
        (
            lambda plan: replace(plan, steps=(plan.steps[0], replace(plan.steps[1], after=()), plan.steps[2])),
            "planOrderBeforeStart",
        ),
        (
            lambda plan: replace(plan, routes={"a": replace(plan.routes["a"], expects=Expects(ttft_ms=1))}),
            "planExpects",
        ),
        (lambda plan: replace(plan, lanes={LANE: lane("m", "n", Residency.ALWAYS, 39)}), "planLaneFacts"),
    ],
    ids=["not installed", "started before it is installed", "figures of no benchmark", "less memory than the recipe"],
)
def test_a_fault_of_an_install_is_found(change: Callable[[Plan], Plan], code: str) -> None:
    desired, inventory, plan = installed()
    assert code in {finding.code for finding in judge(desired, inventory, change(plan))}
