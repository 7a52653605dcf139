"""Planner and judge read recipes, machines and links alike, whatever they are: no plan with installs has a finding."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lloom_gitops.checks.plan import judge
from lloom_gitops.codec import load_document
from lloom_gitops.codec.documents import Metadata, dump_document, plan_id
from lloom_gitops.model.desired import Alias, Desired, Needs
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Refused
from lloom_gitops.model.inventory import Disk, Inventory, ObservedLane, ObservedNode, Performance, Weights
from lloom_gitops.model.recipe import Benchmark, Recipe, Requirements
from lloom_gitops.model.words import LaneState, ModelKind, Residency
from lloom_gitops.planner import plan

from .pools import mac, pool, recipe, server, spark

NODES, MODELS = ("a", "b", "c"), ("m1", "m2", "m3")


@st.composite
def machines(draw: st.DrawFn) -> ObservedNode:
    made = draw(st.sampled_from([spark(), spark(), mac(), server(), server(devices=2), server(devices=1)]))
    disks = draw(st.sampled_from([made.disks, (Disk(root="models", free_gb=Decimal(20)),), None]))
    weights = draw(st.sampled_from([None, (Weights(model="org/m1"),)]))
    return replace(made, disks=disks, weights=weights, commands=draw(st.sampled_from([("docker",), (), None])))


@st.composite
def recipes(draw: st.DrawFn, model: str) -> Recipe:
    needs = Requirements(
        platforms=draw(st.sampled_from([(), (), ("linux-arm64",), ("linux-arm64", "linux-x64")])),
        accelerators=draw(st.sampled_from([(), (), ("cuda",), ("metal",)])),
        compute_archs=draw(st.sampled_from([(), (), ("sm_121",), ("sm_89", "apple-metal")])),
        commands=draw(st.sampled_from([(), ("docker",)])),
        nodes=draw(st.sampled_from([1, 1, 1, 2, 3])),
        devices_per_node=draw(st.sampled_from([1, 1, 2])),
        tensor_parallel=draw(st.sampled_from([None, None, 2, 4])),
        memory_gb=draw(st.sampled_from([None, *(Decimal(size) for size in (4, 20, 40, 70))])),
        host_memory_gb=draw(st.sampled_from([Decimal(0), Decimal(16)])),
        load_peak_gb=draw(st.sampled_from([None, Decimal(44)])),
        disk_gb=draw(st.sampled_from([None, Decimal(30)])),
    )
    figures = [Benchmark(hardware=label, ttft_ms=700, tokens_per_second=Decimal(33)) for label in ("m2-max", "l40s")]
    return recipe(
        model,
        needs=needs,
        env=draw(st.sampled_from([{}, {"CUTE_DSL_ARCH": "sm_121a"}, {"TORCH_CUDA_ARCH_LIST": "8.9 12.1"}])),
        args=draw(st.sampled_from([(), ("--tensor-parallel-size", "2"), ("--max-num-seqs=4",)])),
        benchmarks=tuple(draw(st.sets(st.sampled_from(figures)))),
    )


@st.composite
def pools(draw: st.DrawFn) -> tuple[Desired, Inventory]:
    names = NODES[: draw(st.integers(1, 3))]
    links = draw(st.lists(st.tuples(*[st.sampled_from(names)] * 2, st.sampled_from(["sync", "lan"])), max_size=4))
    nodes = {
        name: replace(draw(machines()), links=spark(*((b, f) for a, b, f in links if a == name != b)).links)
        for name in names
    }
    made = {f"r{index}": draw(recipes(model)) for index, model in enumerate(MODELS) if draw(st.booleans())}
    aliases = {
        f"x{index}": Alias(
            models=tuple(draw(st.permutations(MODELS))[: draw(st.integers(1, 3))]),
            external=draw(st.sampled_from([(), ("cloud/x",)])),
            residency=draw(st.sampled_from(list(Residency))),
            needs=Needs(sequences=draw(st.sampled_from([None, None, 4]))),
            priority=draw(st.sampled_from([20, 100])),
        )
        for index in range(draw(st.integers(1, 3)))
    }
    lanes = {}
    if draw(st.booleans()):
        home = draw(st.sampled_from(names))
        lanes["l"] = ObservedLane(
            models=("m3",),
            kind=ModelKind.CHAT,
            nodes=(home,),
            owner=home,
            state=draw(st.sampled_from([LaneState.RUNNING, LaneState.STOPPED])),
            residency=draw(st.sampled_from([Residency.AUTO, Residency.ALWAYS])),
            memory_gb={home: Decimal(20)},
        )
    labels = {name: draw(st.sampled_from(["m2-max", "dgx-spark", "box"])) for name in names}
    live = {"m2": Performance(ttft_ms=90)} if draw(st.booleans()) else {}
    desired, inventory = pool(nodes, made, aliases, labels, lanes=lanes, performance=live)
    undeclared = {name: node for name, node in desired.nodes.items() if name == names[0] or draw(st.integers(0, 5))}
    return replace(desired, nodes=undeclared), inventory


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pools())
def test_no_plan_with_installs_has_a_finding(made: tuple[Desired, Inventory]) -> None:
    desired, inventory = made
    try:
        planned = plan(desired, inventory)
    except Refused:
        return
    found = [f"{f.code} {f.pointer}: {f.message} ({f.wanted} / {f.found})" for f in judge(desired, inventory, planned)]
    assert found == []
    text = dump_document(Kind.PLAN, Metadata(name="plan", id=plan_id(planned)), planned)
    assert load_document(Kind.PLAN, text.encode(), "plan.yaml").spec == planned
