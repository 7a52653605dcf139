"""From answers to an inventory: what is known, what is carried over, and what stays unknown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.catalog.sighting import sight
from lloom_gitops.catalog.sighting_metrics import demand, performance
from lloom_gitops.catalog.sighting_nodes import NodeBodies, liveness
from lloom_gitops.catalog.sighting_routes import effective_routes
from lloom_gitops.catalog.sighting_words import lane_state
from lloom_gitops.codec import decode, encode
from lloom_gitops.model.desired import Lane, Link, Node, PoolFacts
from lloom_gitops.model.inventory import Accelerator, Inventory, LaneRecipe, MemoryDomain, Performance
from lloom_gitops.model.pool import LivenessRule
from lloom_gitops.model.words import DomainKind, LaneState, Liveness, Management, ModelKind, NodeState, Residency, Seen
from tests.pools import three_spark

from .bodies import bodies, fleet, machine, model, newer, node, plan, row, see, status

A, B = "node-a", "node-b"


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (row("running"), LaneState.RUNNING),
        (row("external"), LaneState.RUNNING),
        (row("a-new-word", healthy=True), LaneState.RUNNING),
        (row("stopped", healthy=True), LaneState.RUNNING),
        (row("starting"), LaneState.LOADING),
        (row("warming", healthy=True), LaneState.LOADING),
        (row("queued"), LaneState.LOADING),
        (row("draining", healthy=True), LaneState.DRAINING),
        (row("stopping"), LaneState.STOPPING),
        (row("idle"), LaneState.STOPPED),
        (row("exited"), LaneState.STOPPED),
        (row("created"), LaneState.STOPPED),
        (row("failed"), LaneState.FAILED),
        (row("dead"), LaneState.FAILED),
        (row("unreachable"), LaneState.UNKNOWN),
        (row("paused"), LaneState.UNKNOWN),
        ({}, LaneState.UNKNOWN),
        ({"status": ["running"]}, LaneState.UNKNOWN),
    ],
)
def test_states_in_our_words(shown: dict[str, Any], state: LaneState) -> None:
    assert lane_state(shown) is state


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "ready"), (59.9, "ready"), (60, "suspect"), (299.9, "suspect"), (300, "lost"), (1e9, "lost")],
)
def test_liveness_by_time(seconds: float, expected: str) -> None:
    assert liveness(LivenessRule(), seconds) is Liveness(expected)


ROUTINGS = {
    "old: text": ({"aliases": {"a": "m"}}, ("m",)),
    "old: target": ({"aliases": {"a": {"target": "m", "description": "x"}}}, ("m",)),
    "old: fallbacks are only echoed": ({"aliases": {"a": {"target": "m", "fallbacks": ["n"]}}}, ("m",)),
    "newer: members": ({"aliases": {"a": {"members": ["m", "n"]}}, "routes": {}}, ("m", "n")),
    "newer: suspended": (
        {"aliases": {"a": {"members": ["m", "n"], "suspendedMembers": ["m"]}}, "routes": {}},
        ("n",),
    ),
    "newer: legacy form": (
        {"aliases": {"a": {"target": "m", "fallbacks": ["n"], "optionalFallbacks": ["o"]}}, "routes": {}},
        ("m", "n", "o"),
    ),
    "newer: what is live wins": (
        {"aliases": {"a": {"members": ["m"]}}, "routes": {"a": {"alias": "a", "members": ["n"]}}},
        ("n",),
    ),
    "newer: live routes in a list": ({"aliases": {}, "routes": [{"alias": "a", "members": ["n", 3, None]}]}, ("n",)),
    "odd": ({"aliases": {"a": 3}}, ()),
}


@pytest.mark.parametrize(("routing", "route"), ROUTINGS.values(), ids=ROUTINGS)
def test_the_route_in_effect(routing: dict[str, Any], route: tuple[str, ...]) -> None:
    assert effective_routes(routing) == {"a": route}


def test_an_old_build_tells_of_its_machine_and_no_more() -> None:
    seen = see(fleet(A), {A: bodies(A, {"chat": row()})}).inventory
    assert encode(seen.nodes[A]) == {
        "accelerators": [{"kind": "cuda", "name": "GB10", "computeArch": "sm_121"}],
        "admission": {"reserveGb": 8, "maxUtilization": Decimal("0.95")},
        # One unified memory, although the gateway speaks of a plain system domain.
        "memoryDomains": [{"id": "unified:0", "kind": "unified", "capacityGb": Decimal("121.7")}],
        "platform": "linux-arm64",
    }
    assert seen.nodes[A].disks is None
    assert encode(seen.lanes["chat"]) == {
        "contextWindow": 32768,
        "headModel": "model-of-chat",
        "kind": "chat",
        "maxSequences": 2,
        "memoryGb": {A: 10},
        "models": ["model-of-chat"],
        "nodes": [A],
        "owner": A,
        "state": "running",
    }


DOMAINS = {
    "a Mac": (
        machine(isAppleSilicon=True, devices=[], accelerators=["metal"], memoryDomains=[], totalMemoryGb=96),
        [MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=Decimal(96))],
    ),
    "a Spark that lists its GPU's share as well": (
        machine(
            memoryDomains=[
                {"id": "system:0", "kind": "system", "capacityGb": 121.7},
                {"id": "device:cuda:0", "kind": "device", "capacityGb": 119},
            ]
        ),
        [MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED, capacity_gb=Decimal("121.7"))],
    ),
    "a CUDA server": (
        machine(
            accelerators=["cuda"],
            devices=[{"name": "NVIDIA RTX 6000", "backend": "cuda", "computeCapability": "12.0"}] * 2,
            memoryDomains=[
                {"id": "system:0", "kind": "system", "capacityGb": 256},
                {"id": "device:cuda:0", "kind": "device", "capacityGb": 96},
                {"id": "device:cuda:1", "kind": "device"},
                {"id": "/dev/odd", "kind": "device"},
                {"id": "odd", "kind": "imaginary", "capacityGb": 1},
            ],
        ),
        [
            MemoryDomain(id="system:0", kind=DomainKind.SYSTEM, capacity_gb=Decimal(256)),
            MemoryDomain(id="device:cuda:0", kind=DomainKind.DEVICE, capacity_gb=Decimal(96)),
            MemoryDomain(id="device:cuda:1", kind=DomainKind.DEVICE),
        ],
    ),
}


@pytest.mark.parametrize(("profile", "domains"), DOMAINS.values(), ids=DOMAINS)
def test_memory_domains(profile: dict[str, Any], domains: list[MemoryDomain]) -> None:
    answers = {A: bodies(A, node=node(A, profile=profile))}
    assert list(see(fleet(A), answers).inventory.nodes[A].memory_domains) == domains


def test_equal_devices_are_counted() -> None:
    devices = [{"name": "NVIDIA RTX 6000", "backend": "cuda", "computeCapability": "12.0"}] * 2
    answers = {A: bodies(A, node=node(A, profile=machine(accelerators=[], devices=devices)))}
    (accelerator,) = see(fleet(A), answers).inventory.nodes[A].accelerators or ()
    assert accelerator == Accelerator(kind="cuda", name="RTX 6000", compute_arch="sm_120", count=2)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param({}, None, id="an unknown profile"),
        pytest.param({"devices": [], "accelerators": ["cuda"]}, None, id="tags without devices"),
        pytest.param({"devices": [], "accelerators": []}, (), id="known to have none"),
    ],
)
def test_no_guess_of_accelerators(profile: dict[str, Any], expected: object) -> None:
    seen = see(fleet(A), {A: bodies(A, node=node(A, profile=profile))}).inventory.nodes[A]
    assert seen.accelerators == expected
    assert seen.platform is None


def test_the_declared_size_counts_only_while_the_report_is_unknown() -> None:
    silent_machine = node(A, profile=machine(memoryDomains=[], totalMemoryGb=None), telemetry=None)
    found = see(fleet(A), {A: bodies(A, node=silent_machine)}).inventory.nodes[A]
    assert found.memory_domains[0].capacity_gb == 100
    reported = see(fleet(A), {A: bodies(A)}).inventory.nodes[A]
    assert reported.memory_domains[0].capacity_gb == Decimal("121.7")


FOREIGN = {
    "beyond what runs": (30.4, {"chat": row()}, None, 20),
    "nothing": (10, {"chat": row()}, None, 0),
    "less than declared": (4, {"chat": row()}, None, 0),
    "a lane is loading: as before": (50, {"chat": row("starting")}, 7, 7),
    "a lane whose size nobody knows: as before": (50, {"other": row()}, 7, 7),
    "stopped lanes have none": (30, {"chat": row("stopped")}, None, 30),
}


@pytest.mark.parametrize(("used", "lanes", "before", "foreign"), FOREIGN.values(), ids=FOREIGN)
def test_foreign_memory(used: float, lanes: dict[str, Any], before: int | None, foreign: int) -> None:
    answers = {A: bodies(A, lanes, node=node(A, lanes, used_gb=used), plan=plan(A, {"chat": 10}))}
    known = see(fleet(A), {A: bodies(A)}).inventory
    (domain,) = known.nodes[A].memory_domains
    if before is not None:
        domain = msgspec.structs.replace(domain, foreign_gb=Decimal(before))
    known = msgspec.structs.replace(known, nodes={A: msgspec.structs.replace(known.nodes[A], memory_domains=(domain,))})
    assert see(fleet(A), answers, known).inventory.nodes[A].memory_domains[0].foreign_gb == foreign


def test_links_come_from_both_sides_and_stay_in_the_pool() -> None:
    cluster = {
        "provider": "nvidia-sync",
        "links": [
            {"peerNodeId": B, "peerAddress": "10.100.192.1", "localInterface": "enp1s0f0np0"},
            {"peerNodeId": "10.100.196.2"},
            {"peerNodeId": "stranger"},
        ],
    }
    desired = fleet(A, B, "node-c")
    nodes = {**desired.nodes, "node-c": Node(links=(Link(peer=A, fabric="cable"),))}
    desired = msgspec.structs.replace(desired, nodes=nodes)
    seen = see(desired, {A: bodies(A, node=node(A, profile=machine(cluster=cluster)))}).inventory
    assert seen.nodes[A].links == (Link(peer=B, fabric="nvidia-sync"), Link(peer="node-c", fabric="cable"))
    pair = {"detected": True, "provider": "nvidia-sync", "nodeId": A, "nodes": {A: {}, B: {"backendHost": "10.1.1.1"}}}
    seen = see(fleet(A, B), {A: bodies(A, node=node(A, profile=machine(cluster=pair)))}).inventory
    assert seen.nodes[A].links == (Link(peer=B, fabric="nvidia-sync"),)


BUDGETS = {
    "none": ({}, None),
    "what utilisation comes to": ({"memoryBudgetGb": 115.6}, None),
    "wider than utilisation": ({"memoryBudgetGb": 118}, None),
    "stricter": ({"memoryBudgetGb": 90}, 90),
    "what the reserve comes to": ({"memoryBudgetGb": 113.7, "maxMemoryUtilization": None}, None),
    "zero is no budget to trust less": ({"memoryBudgetGb": 0}, 0),
}


@pytest.mark.parametrize(("facts", "budget"), BUDGETS.values(), ids=BUDGETS)
def test_a_budget_counts_where_it_is_stricter(facts: dict[str, Any], budget: int | None) -> None:
    seen = see(fleet(A), {A: bodies(A, plan=plan(A, {}, **facts))}).inventory
    assert seen.nodes[A].admission.budget_gb == budget


def group(*members: tuple[str, str, float], **facts: Any) -> dict[str, Any]:
    """A distributed lane's row: node, runtime and GB of each rank."""
    listed = [{"node": at, "runtime": name, "resources": {"memoryGb": gb}} for at, name, gb in members]
    shares = {at: {"memoryGb": gb, "gpuMemoryGb": 0} for at, _, gb in members}
    return row(distributed=True, node=None, members=listed, resourcesByNode=shares, **facts)


def test_ranks_are_no_lanes() -> None:
    pair = group((A, "flash-head", 84), (B, "flash-worker", 80), maxConcurrency=4)
    answers = {
        A: bodies(
            A, {"flash-tp2": pair, "flash-head": row()}, status=status({"flash-tp2": pair}, cluster={"leaderNode": A})
        ),
        B: bodies(
            B,
            {"flash-worker": row()},
            status=status({"flash-tp2": {**pair, "remote": True}}, cluster={"leaderNode": A}),
        ),
    }
    seen = see(fleet(A, B), answers).inventory
    assert list(seen.lanes) == ["flash-tp2"]
    lane = seen.lanes["flash-tp2"]
    assert (lane.nodes, lane.owner) == ((A, B), A)
    assert lane.memory_gb == {A: Decimal(84), B: Decimal(80)}
    # The worker alone still knows that its lane is a rank; the group stays as its owner last showed it.
    alone = see(fleet(A, B), {B: answers[B]}, seen).inventory
    assert alone.lanes == seen.lanes


def test_disabled_lanes_count_only_while_they_hold_memory() -> None:
    lanes = {"off": row("idle", enabled=False), "still-up": row("running", enabled=False)}
    assert list(see(fleet(A), {A: bodies(A, lanes)}).inventory.lanes) == ["still-up"]


def test_a_lane_that_only_watches_is_unmanaged() -> None:
    seen = see(fleet(A), {A: bodies(A, {"theirs": row(management="external")})}).inventory.lanes["theirs"]
    assert (seen.management, seen.residency) == (Management.UNMANAGED, Residency.ALWAYS)


def test_two_gateways_with_one_lane_id_are_told() -> None:
    found = see(fleet(A, B), {A: bodies(A, {"same": row()}), B: bodies(B, {"same": row()})})
    assert found.inventory.lanes["same"].owner == A
    assert found.notes == ("node-b: a lane same exists on node-a too; lane ids must differ",)


def test_guard_evidence_is_kept_until_a_healthy_start() -> None:
    aborted = newer("failed", memorySafetyLatched=True, lastMemorySafetyAbort={"usedGb": 110.2, "consumedGb": 43.1})
    first = see(fleet(A), {A: bodies(A, {"chat": aborted})}).inventory
    assert (first.lanes["chat"].latched, first.lanes["chat"].abort_gb) == (True, {A: Decimal("43.1")})
    # A restart of the gateway forgets it; the inventory does not, and remembers the most that was seen.
    again = see(fleet(A), {A: bodies(A, {"chat": newer("idle")})}, first).inventory
    assert (again.lanes["chat"].latched, again.lanes["chat"].abort_gb) == (False, {A: Decimal("43.1")})
    less = newer("failed", memorySafetyLatched=True, lastMemorySafetyAbort={"usedGb": 110.2, "consumedGb": 12})
    assert see(fleet(A), {A: bodies(A, {"chat": less})}, first).inventory.lanes["chat"].abort_gb == {A: Decimal("43.1")}
    healthy = see(fleet(A), {A: bodies(A, {"chat": newer()})}, first).inventory
    assert (healthy.lanes["chat"].latched, healthy.lanes["chat"].abort_gb) == (False, {})
    # Builds with the guard but without the flag.
    old = row("failed", transitionReason="memory-safety-abort")
    assert see(fleet(A), {A: bodies(A, {"chat": old})}).inventory.lanes["chat"].latched


MEASURED = {
    "more than declared": (10.4, {A: Decimal("10.4")}),
    "about the declared size": (8.5, {}),
    "much less": (7.9, {A: Decimal("7.9")}),
}


@pytest.mark.parametrize(("gb", "expected"), MEASURED.values(), ids=MEASURED)
def test_measured_sizes(gb: float, expected: dict[str, Decimal]) -> None:
    lane = newer(memoryUsage={"residentGb": gb, "source": "process"})
    first = see(fleet(A), {A: bodies(A, {"chat": lane})}).inventory
    assert first.lanes["chat"].measured_gb == expected
    # The figure stays when the lane is stopped, or not measured this time.
    for later in (newer("stopped"), newer()):
        assert see(fleet(A), {A: bodies(A, {"chat": later})}, first).inventory.lanes["chat"].measured_gb == expected


def pair_lane(**facts: Any) -> Lane:
    facts_of_it = PoolFacts(models=("big",), kind=ModelKind.CHAT, nodes=(A, B), memory_gb=Decimal(96), **facts)
    return Lane(management=Management.UNMANAGED, pool=facts_of_it)


def test_a_hand_run_lane_comes_from_its_document_and_its_health() -> None:
    desired = fleet(A, B, lanes={"pair": pair_lane(context_window=1000)})
    answers = {A: bodies(A, models={"models": [{"id": "big", "kind": "chat", "backend": "big"}]}), B: bodies(B)}
    lane = see(desired, answers, health={"pair": LaneState.RUNNING}).inventory.lanes["pair"]
    assert encode(lane) == {
        "contextWindow": 1000,
        "headModel": "big",
        "kind": "chat",
        "management": "unmanaged",
        "memoryGb": {A: 96, B: 96},
        "models": ["big"],
        "nodes": [A, B],
        "owner": A,
        "residency": "always",
        "state": "running",
    }


@pytest.mark.parametrize(
    ("heard", "health", "expected"),
    [
        pytest.param((A, B), LaneState.STOPPED, LaneState.STOPPED, id="stopped"),
        pytest.param((A, B), LaneState.UNKNOWN, LaneState.UNKNOWN, id="its nodes answer, it can't be told"),
        pytest.param((B,), LaneState.UNKNOWN, LaneState.RUNNING, id="silent together with its node: as before"),
        pytest.param((B,), LaneState.STOPPED, LaneState.STOPPED, id="a refused connection is an answer"),
    ],
)
def test_silence_of_a_hand_run_lane(heard: tuple[str, ...], health: LaneState, expected: LaneState) -> None:
    desired = fleet(A, B, lanes={"pair": pair_lane()})
    before = see(desired, {A: bodies(A), B: bodies(B)}, health={"pair": LaneState.RUNNING}).inventory
    after = see(desired, {name: bodies(name) for name in heard}, before, health={"pair": health}).inventory
    assert after.lanes["pair"].state is expected


def federated() -> dict[str, NodeBodies]:
    """Two gateways that serve a model of the same name; the head reaches the other's as `node-b/chat`."""
    head_models = [
        model("chat", "chat-a"),
        {"id": "node-b/chat", "upstreamModel": "chat", "targets": [{"node": B, "backend": "x"}], "federated": True},
        {"id": "other-name", "targets": [{"node": B, "remoteRuntime": "image-b", "upstreamModel": "img"}]},
        {"id": "cloud/chat", "backend": "cloud"},
        {"id": "front", "alias": True, "aliasTarget": "chat", "runtime": "chat-a"},
    ]
    routes = {
        "front": {"members": ["chat", "node-b/chat", "cloud/chat"]},
        "pictures": {"members": ["other-name"]},
        "nested": {"members": ["front"]},
    }
    return {
        A: bodies(
            A,
            {"chat-a": newer()},
            models={"models": head_models},
            routing={"aliases": routes, "routes": {}},
        ),
        B: bodies(
            B,
            {"chat-b": newer(), "image-b": newer()},
            models={"models": [model("chat", "chat-b"), model("img", "image-b", "image")]},
        ),
    }


def test_routes_in_our_names_for_models() -> None:
    seen = see(fleet(A, B), federated()).inventory
    assert {name: lane.head_model for name, lane in seen.lanes.items()} == {
        "chat-a": "chat",
        "chat-b": "node-b/chat",
        "image-b": "other-name",
    }
    assert encode(seen.aliases) == {
        "front": {"route": ["chat", "chat", "cloud/chat"], "lanes": ["chat-a", "chat-b", None]},
        "nested": {"route": ["front"]},
        "pictures": {"route": ["img"]},
    }


def test_one_id_over_several_lanes_is_the_lane_that_counts() -> None:
    """Loaded before not, then on a node that stays, then by id; each of the lanes can be routed to by that id."""
    spread = {"id": "chat", "targets": [{"runtime": "chat-a"}, {"node": B, "upstreamModel": "chat"}]}
    answers = federated()
    answers[A] = msgspec.structs.replace(
        answers[A], models={"models": [spread]}, routing={"aliases": {"front": {"members": ["chat"]}}, "routes": {}}
    )
    desired = fleet(A, B)
    seen = see(desired, answers).inventory
    assert encode(seen.aliases["front"]) == {"route": ["chat"], "lanes": ["chat-a"]}
    assert [seen.lanes[name].head_model for name in ("chat-a", "chat-b")] == ["chat", "chat"]
    cordoned = {**desired.nodes, A: msgspec.structs.replace(desired.nodes[A], state=NodeState.CORDON)}
    leaving = msgspec.structs.replace(desired, nodes=cordoned)
    assert see(leaving, answers).inventory.aliases["front"].lanes == ("chat-b",)
    stopped = {**answers, B: bodies(B, {"chat-b": newer("idle")}, models=answers[B].models)}
    assert see(leaving, stopped).inventory.aliases["front"].lanes == ("chat-a",)


def test_a_silent_head_leaves_routes_as_they_were() -> None:
    desired, answers = fleet(A, B), federated()
    before = see(desired, answers).inventory
    after = see(desired, {B: answers[B]}, before).inventory
    assert (after.aliases, after.lanes) == (before.aliases, before.lanes)


def test_a_silent_node_keeps_its_facts() -> None:
    desired, answers = fleet(A, B), federated()
    before = see(desired, answers).inventory
    for seconds, expected in (
        (None, Liveness.SUSPECT),
        (10.0, Liveness.READY),
        (100.0, Liveness.SUSPECT),
        (400.0, Liveness.LOST),
    ):
        after = see(desired, {A: answers[A]}, before, {B: seconds}).inventory
        assert (after.nodes[B].seen, after.nodes[B].liveness) == (Seen.UNKNOWN, expected)
        assert msgspec.structs.replace(after.nodes[B], seen=Seen.PRESENT, liveness=Liveness.READY) == before.nodes[B]
        assert after.lanes == before.lanes
    lost = see(desired, {A: answers[A]}, before, {B: 400.0}).inventory
    assert see(desired, {A: answers[A]}, lost).inventory.nodes[B].liveness is Liveness.LOST
    assert see(desired, answers, lost).inventory == before


def test_a_node_that_was_never_seen_is_unknown() -> None:
    seen = see(fleet(A, B), {A: bodies(A)}).inventory.nodes[B]
    assert encode(seen) == {"seen": "unknown", "liveness": "suspect"}


def test_a_node_that_was_not_asked_stays_as_it_was() -> None:
    desired, answers = fleet(A, B), federated()
    before = see(desired, answers).inventory
    after = see(desired, {B: answers[B]}, before, silent={}).inventory
    assert after == before


def test_lanes_of_undeclared_nodes_go_and_those_of_members_stay() -> None:
    before = see(fleet(A, B), federated()).inventory
    member = msgspec.structs.replace(before.nodes[B], member=True)
    kept = msgspec.structs.replace(before, nodes={**before.nodes, B: member})
    answers = {A: federated()[A]}
    assert list(see(fleet(A), answers, before).inventory.lanes) == ["chat-a"]
    found = see(fleet(A), answers, kept).inventory
    assert (list(found.lanes), found.nodes[B]) == (["chat-a", "chat-b", "image-b"], member)


def test_what_is_not_told_this_time_stays() -> None:
    """A route of the gateway's API that fails once changes nothing."""
    desired = fleet(A)
    before = see(desired, {A: bodies(A, {"chat": row()})}).inventory
    for missing in ("plan", "models", "routing", "metrics"):
        assert see(desired, {A: bodies(A, {"chat": row()}, **{missing: None})}, before).inventory == before, missing


def test_a_recipe_lends_its_load_time_and_benchmark() -> None:
    desired, _ = three_spark()
    third = "spark-node-03"
    named = "linux-nvidia-gb10-qwen38-27b-nvfp4-vllm"
    shown = row(recipe={"id": named, "version": 1, "source": "/home/me/recipes"})
    answers = {third: bodies(third, {"chat": shown}, models={"models": [model("qwen3.8-27b", "chat")]})}
    seen = see(desired, answers).inventory
    assert seen.lanes["chat"].recipe == LaneRecipe(id=named, version=1)
    assert seen.lanes["chat"].load_seconds == 180
    assert seen.performance == {
        "qwen3.8-27b": Performance(ttft_ms=1000, tokens_per_second=Decimal("20.8"), source="benchmark")
    }
    live = msgspec.structs.replace(
        seen, performance={"qwen3.8-27b": Performance(ttft_ms=900, tokens_per_second=Decimal(30))}
    )
    assert see(desired, answers, live).inventory.performance == live.performance


def bucket(name: str, count: int, **facts: Any) -> dict[str, Any]:
    return {"id": name, "requests": count, "firstContentCount": count, **facts}


SINCE = {"generatedAt": "2026-11-30T12:00:00.000Z", "persistence": {"since": "2026-11-29T12:00:00.000Z"}}
RATE = {"decodeSamples": 7, "decodeTokensPerSecond": 48.39}
FIGURES = {
    "a window of the last minutes": (
        {"performance": {"models": {"m": {"samples": 12, "meanFirstContentMs": 311.7, "tokensPerSecond": 48.4}}}},
        (312, Decimal("48.4")),
    ),
    "too few in the window": (
        {"performance": {"models": {"m": {"samples": 4, "meanFirstContentMs": 311.7, "tokensPerSecond": 48.4}}}},
        None,
    ),
    "the last requests, one of them cold": (
        {"recent": [{"model": "m", "ok": True, "firstContentMs": t} for t in (300, 310, 305, 295, 90000)]},
        (305, None),
    ),
    "failed requests don't count": (
        {"recent": [{"model": "m", "ok": False, "firstContentMs": 5}] * 9},
        None,
    ),
    "sums alone, the longest taken out": (
        {
            "models": [
                bucket(
                    "m", 8, firstContentMs=5429, maxFirstContentMs=3247, decodeSamples=7, decodeTokensPerSecond=48.39
                )
            ]
        },
        (312, Decimal("48.4")),
    ),
    "too few requests": (
        {"models": [bucket("m", 4, firstContentMs=400, decodeSamples=4, decodeTokensPerSecond=9)]},
        None,
    ),
    "odd": ({"models": {"m": 3}, "recent": 5, "performance": []}, None),
}


@pytest.mark.parametrize(("metrics", "expected"), FIGURES.values(), ids=FIGURES)
def test_warm_figures(metrics: dict[str, Any], expected: tuple[int, Decimal | None] | None) -> None:
    found = performance(metrics, {"m": ModelKind.CHAT, "unused": ModelKind.CHAT})
    wanted = {} if expected is None else {"m": Performance(ttft_ms=expected[0], tokens_per_second=expected[1])}
    assert found == wanted


def test_embeddings_have_no_token_rate_and_media_no_figures() -> None:
    metrics = {
        "models": [
            bucket("e", 8, firstContentMs=528, maxFirstContentMs=66, decodeSamples=8, decodeTokensPerSecond=878),
            bucket("i", 8, firstContentMs=90000, maxFirstContentMs=9000),
        ]
    }
    found = performance(metrics, {"e": ModelKind.EMBEDDING, "i": ModelKind.IMAGE})
    assert found == {"e": Performance(ttft_ms=66)}


ROUTES = {"a": ("m", "n"), "b": ("m",), "quiet": ("q",)}
DEMANDS = {
    "by requested id": (
        {"requested": [bucket("a", 240, decodeSamples=200, decodeTokens=120000), bucket("m", 9)], "models": []},
        {"a": {"requestsPerHour": 10, "outputTokens": 600}},
    ),
    "shared out by the last requests": (
        {
            "models": [bucket("m", 240)],
            "recent": [{"model": "m", "requestedModel": asked} for asked in ("a", "a", "b", "m")],
        },
        {"a": {"requestsPerHour": 5}, "b": {"requestsPerHour": Decimal("2.5")}},
    ),
    "split evenly where nothing tells": (
        {"models": [bucket("m", 240), bucket("n", 24)]},
        {"a": {"requestsPerHour": 6}, "b": {"requestsPerHour": 5}},
    ),
    "none of ours": ({"models": [bucket("stranger", 240)]}, {}),
}


@pytest.mark.parametrize(("metrics", "expected"), DEMANDS.values(), ids=DEMANDS)
def test_demand_by_alias(metrics: dict[str, Any], expected: dict[str, Any]) -> None:
    assert encode(demand({**SINCE, **metrics}, "7d", ROUTES)) == expected


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {**SINCE, "persistence": {"since": "2026-11-30T11:30:00.000Z"}},
        {**SINCE, "generatedAt": "yesterday"},
        {**SINCE, "persistence": {"since": "2026-11-29T12:00:00"}},
    ],
    ids=["no times", "half an hour", "no time", "no zone"],
)
def test_demand_of_too_short_a_time_is_unknown(facts: dict[str, Any]) -> None:
    assert demand({**facts, "models": [bucket("m", 240)]}, "7d", ROUTES) is None


PLANTED = ["sk-planted", "/opt/secret", "10.9.8.7", "http://", "secret-host", "\x1b", "\u202e", "/home/me"]


def test_nothing_that_must_not_be_told_gets_in() -> None:
    """Paths, addresses, host names, keys and escape sequences, planted wherever text is read."""
    evil = [*(f"x{word}y" for word in ("\x1b[31m", "\u202e", "\n"))]
    inventory = {
        "platform": "http://10.9.8.7/linux",
        "accelerators": [{"kind": "cuda", "name": "/opt/secret/GB10"}, {"kind": "~/secret-host"}],
        "disks": [{"root": "/opt/secret/models", "freeGb": 800.4}, {"root": "/home/me/", "freeGb": 1}, {"root": "//"}],
        "weights": [{"model": "org/model", "revision": "/opt/secret"}, {"model": "http://10.9.8.7/m"}],
        "commands": ["docker", "/opt/secret/bin/run", *evil],
        "images": ["org/image@sha256:0", "http://10.9.8.7/image"],
        "links": [{"peer": "secret-host", "fabric": "10.9.8.7"}],
        "memoryDomains": [{"id": "/opt/secret", "kind": "unified"}],
        "token": "sk-planted",
    }
    lanes = {"chat": row("failed", lastError="sk-planted at /opt/secret"), "esc\x1b[31m": row()}
    answers = {
        A: bodies(
            A,
            lanes,
            node=node(A, lanes, inventory=inventory, note="sk-planted"),
            models={"models": [{**model("chat-model", "chat"), "baseUrl": "http://10.9.8.7"}]},
            routing={"aliases": {"a": "chat-model", "b\x1b": "chat-model"}, "backends": "http://10.9.8.7"},
        )
    }
    seen = see(fleet(A), answers).inventory
    text = repr(encode(seen)) + repr(seen)
    assert not [word for word in PLANTED if word in text]
    assert [disk.root for disk in seen.nodes[A].disks or ()] == ["models", "me"]
    assert list(seen.lanes) == ["chat"]
    assert list(seen.aliases) == ["a"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(body: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    keys = body.keys() if isinstance(body, dict) else range(len(body)) if isinstance(body, list) else ()
    return [prefix, *(place for key in keys for place in places(body[key], (*prefix, key)))]


def put(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    if isinstance(body, dict):
        return {key: put(item, place[1:], value) if key == place[0] else item for key, item in body.items()}
    return [put(item, place[1:], value) if index == place[0] else item for index, item in enumerate(body)]


WHOLE = msgspec.to_builtins(federated())
WHOLE[A]["metrics"] = {
    **SINCE,
    "models": [bucket("chat", 240)],
    "recent": [{"model": "chat", "requestedModel": "front"}],
}
WHOLE[B]["node"]["node"]["inventory"] = {
    "disks": [{"root": "models", "freeGb": 3}],
    "loadSeconds": {"chat-b": 3},
    "accelerators": [{"kind": "cuda"}],
    "links": [{"peer": A, "fabric": "f"}],
}


PLACES = [
    (name, *place)
    for name in (A, B)
    for route in ("node", "status", "plan", "routing", "models", "metrics")
    for place in places(WHOLE[name][route], (route,))
    if len(place) > 1
]


@settings(max_examples=300, deadline=None)
@given(place=st.sampled_from(PLACES), value=json_values)
def test_no_answer_can_break_an_observation(place: tuple[Any, ...], value: Any) -> None:
    """Any value at any place of any answer gives a valid inventory (that can be written), never an exception."""
    broken = put(WHOLE, place, value)
    answers = {name: NodeBodies(**facts) for name, facts in broken.items()}
    seen = sight(fleet(A, B), Inventory(), answers, {}, {}).inventory
    assert decode(encode(seen), Inventory) == seen
