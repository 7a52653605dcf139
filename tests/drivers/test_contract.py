"""The drivers' contract on a cluster of three gateways: simulated ones of both builds, and real ones where
LLOOM_GATEWAY names a gateway's command.
"""

from __future__ import annotations

import msgspec
import pytest

from lloom_gitops.codec import encode
from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.drivers.gateway_config import GatewayConfigFile
from lloom_gitops.drivers.gateway_http import HttpGateway
from lloom_gitops.drivers.observe import Observer
from lloom_gitops.model.desired import Node
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.words import Feature, LaneState, Residency
from tests.contract.conftest import gateways, running
from tests.contract.world import LANES, N1, N2, N3, Gateways

from .bodies import fleet
from .conftest import gateway

__all__ = ["gateways", "running"]


def driver(gateways: Gateways, node: str) -> HttpGateway:
    return gateway(gateways.pool, node)


def state(gateways: Gateways, lane: str) -> LaneState:
    reading = driver(gateways, gateways.owner(lane)).read_lane(lane, distributed=lane not in LANES)
    assert reading is not None
    return LaneState(reading.state)


def observe(gateways: Gateways) -> Inventory:
    nodes = {name: Node(endpoint=url) for name, url in gateways.pool.urls.items()}
    desired = msgspec.structs.replace(fleet(*nodes, head=N1), nodes=nodes)
    seen = Observer(desired, lambda _: gateways.pool.key, SystemClock()).observe(Inventory(), {})
    assert (seen.answered, seen.failed, seen.notes) == (frozenset(nodes), False, ())
    return seen.inventory


def test_features(gateways: Gateways) -> None:
    expected = frozenset(Feature) if gateways.newer else frozenset()
    assert [driver(gateways, node).features() for node in (N1, N2, N3)] == [expected] * 3


def test_each_lane_once_at_its_owner(gateways: Gateways) -> None:
    """All three share one config, so each of them lists all lanes, models and groups."""
    seen = observe(gateways)
    assert {name: lane.owner for name, lane in seen.lanes.items()} == {
        "embed-01": N1,
        "chat-a-01": N1,
        "chat-a-02": N2,
        "flash-tp2": N1,
        **dict.fromkeys(("image-03", "big-03", "pinned-03", "crash-03", "slow-03", "huge-03", "external-03"), N3),
    }
    pair = encode(seen.lanes["flash-tp2"])
    assert (pair["nodes"], pair["memoryGb"]) == ([N1, N2], {N1: 84, N2: 84})
    assert (pair["headModel"], pair["models"], pair["maxSequences"]) == ("acme/flash", ["acme/flash"], 4)
    pinned = encode(seen.lanes["pinned-03"])
    assert (pinned["memoryGb"], pinned["residency"], pinned["state"]) == ({N3: 20}, "always", "running")
    assert seen.lanes["embed-01"].kind == "embedding"
    assert encode(seen.aliases) == {
        "chat": {"lanes": ["chat-a-01"], "route": ["acme/chat-a"]},
        "embeddings": {"route": ["acme/embed-4b"]},
    }
    both = [seen.lanes[name] for name in ("chat-a-01", "chat-a-02")]
    assert [(lane.models, lane.head_model) for lane in both] == [(("acme/chat-a",), "acme/chat-a")] * 2


def test_a_load_and_a_stop(gateways: Gateways) -> None:
    asked = driver(gateways, N1)
    assert asked.admission("chat-a-01").kind == "ok"
    assert state(gateways, "chat-a-01") is LaneState.STOPPED
    assert asked.admit("chat-a-01", 30).kind == "ok"
    assert state(gateways, "chat-a-01") is LaneState.RUNNING
    assert observe(gateways).lanes["chat-a-01"].state is LaneState.RUNNING
    assert asked.admit("chat-a-01", 30).kind == "ok"
    assert asked.stop("chat-a-01", 30).kind == "ok"
    assert state(gateways, "chat-a-01") is LaneState.STOPPED
    assert asked.stop("chat-a-01", 30).kind == "ok"


def test_a_group_is_one_lane_and_is_not_restarted(gateways: Gateways) -> None:
    asked = driver(gateways, N1)
    assert state(gateways, "flash-tp2") is LaneState.STOPPED
    assert asked.admit("flash-tp2", 30).kind == "ok"
    assert state(gateways, "flash-tp2") is LaneState.RUNNING
    starts = [gateways.row(rank)["starts"] for rank in ("flash-head", "flash-worker")]
    assert asked.admit("flash-tp2", 30).kind == "ok"
    assert [gateways.row(rank)["starts"] for rank in ("flash-head", "flash-worker")] == starts
    assert asked.stop("flash-tp2", 30).kind == "ok"
    assert state(gateways, "flash-tp2") is LaneState.STOPPED
    assert state(gateways, "flash-worker") is LaneState.STOPPED


def test_nothing_is_evicted(gateways: Gateways) -> None:
    gateways.act("pinned-03", "stop")
    gateways.up("image-03")
    got = driver(gateways, N3).admit("big-03", 30)
    assert (got.kind, got.code, got.body) == ("refused", "wouldEvict", {"lanes": ["image-03"]})
    assert (state(gateways, "image-03"), state(gateways, "big-03")) == (LaneState.RUNNING, LaneState.STOPPED)


REFUSALS = {
    "too big for any budget": ("huge-03", "runtime_capacity_impossible", "never"),
    "a pin in the way": ("big-03", "runtime_capacity_impossible", "never"),
    "unknown": ("no-such", "invalidPlan", "never"),
    "disabled": ("disabled-03", "runtime-disabled", "never"),
    "dies while loading": ("crash-03", "startFailed", "later"),
    "never becomes healthy": ("slow-03", "startFailed", "later"),
}


@pytest.mark.parametrize(("lane", "code", "retry"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(gateways: Gateways, lane: str, code: str, retry: str) -> None:
    got = driver(gateways, N3).admit(lane, 30)
    assert (got.kind, got.code, got.retry) == ("refused", code, retry), got
    assert got.says


def test_another_nodes_lane_is_unknown_here(gateways: Gateways) -> None:
    reading = driver(gateways, N1).read_lane("image-03", distributed=False)
    assert reading is not None
    assert (reading.state, reading.residency, reading.active_requests) == (LaneState.UNKNOWN, None, None)


def test_routes_in_the_config_file(gateways: Gateways) -> None:
    file = GatewayConfigFile(gateways.pool.configs[N1], driver(gateways, N1), SystemClock(), 15)
    before = gateways.pool.configs[N1].read_bytes()
    try:
        assert file.set_route("chat", ["acme/big"]).kind == "ok"
        assert file.set_route("fresh", ["acme/big"]).kind == "ok"
        assert driver(gateways, N1).routing() == {
            "chat": ("acme/big",),
            "embeddings": ("acme/embed-4b",),
            "fresh": ("acme/big",),
        }
        assert file.set_route("fresh", []).kind == "ok"
        assert file.set_route("chat", ["acme/chat-a"]).kind == "ok"
    finally:
        gateways.pool.configs[N1].write_bytes(before)


def test_residency_by_whatever_way_the_build_has(gateways: Gateways) -> None:
    asked = driver(gateways, N3)
    file = GatewayConfigFile(gateways.pool.configs[N3], asked, SystemClock(), 15)
    before = gateways.pool.configs[N3].read_bytes()
    try:
        for residency in (Residency.ALWAYS, Residency.AUTO):
            assert file.set_residency("image-03", residency).kind == "ok"
            reading = asked.read_lane("image-03", distributed=False)
            assert reading is not None
            assert reading.residency is residency
    finally:
        gateways.pool.configs[N3].write_bytes(before)
        gateways.act("image-03", "stop")
