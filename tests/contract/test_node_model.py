"""The node model by itself: virtual time, no network, the same history every time."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from lloom_gitops.sim.gateway import admit, lifecycle
from lloom_gitops.sim.gateway.admission import make_plan
from lloom_gitops.sim.gateway.api import answer
from lloom_gitops.sim.gateway.document import Build
from lloom_gitops.sim.gateway.guard import GuardLimits
from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.reading import read_config
from lloom_gitops.sim.gateway.refusals import GatewayRefusal
from lloom_gitops.sim.gateway.requests import open_call
from lloom_gitops.sim.gateway.serve import make_node
from lloom_gitops.sim.gateway.tasks import Answer, Ask, Flow, Task
from lloom_gitops.sim.gateway.wire import Reply, Request

Doc = dict[str, Any]
START = 1_800_000_000_000


def lane(memory_gb: float = 10, seconds: float = 60, **more: Any) -> Doc:
    sim = {"loadSeconds": seconds, **more.pop("sim", {})}
    url = {"healthUrl": "http://127.0.0.1:1/health"}
    return {"enabled": True, "command": "server", "memoryGb": memory_gb, **url, **more, "sim": sim}


def document(lanes: dict[str, Doc], *, memory_gb: float = 100, policy: Doc | None = None, **more: Any) -> Doc:
    return {
        "runtimes": lanes,
        "backends": {name: {"baseUrl": "http://127.0.0.1:1/v1"} for name in lanes},
        "models": [{"id": f"m/{name}", "backend": name, "runtime": name} for name in lanes],
        "runtimePolicy": {"autoEvict": True, "reserveMemoryGb": 10, **(policy or {})},
        "sim": {"machine": {"memoryGb": memory_gb}},
        **more,
    }


def node_of(config: Doc, build: Build = Build.NEWER, name: str = "n1") -> Node:
    return make_node(read_config(config, build, {"LLOOM_NODE_ID": name}), START)


def finish(node: Node, flow: Flow, limit_ms: int = 10_000_000) -> Any:
    """Run a flow to its end in virtual time; its result, or its error raised."""
    return outcome(node, node.run(flow), limit_ms)


def outcome(node: Node, task: Task, limit_ms: int = 10_000_000) -> Any:
    node.advance(node.now)
    end = node.now + limit_ms
    while not task.done:
        due = node.next_due()
        assert due is not None, "nothing will ever wake it"
        assert due <= end, "it takes too long"
        node.advance(due)
    if task.error is not None:
        raise task.error
    return task.result


def start(node: Node, name: str, reason: str = "admin-start") -> Flow:
    return lifecycle.start(node, name, force=True, warmup=False, reason=reason)


def apply(node: Node, name: str, reason: str = "admin-admit") -> Flow:
    return admit.apply(node, name, force=True, warmup=False, reason=reason)


def loaded(node: Node) -> set[str]:
    return {name for name in node.config.runtimes if node.healthy(name)}


def test_a_load_takes_its_time_rounded_up_to_the_next_health_poll() -> None:
    node = node_of(document({"a": lane(seconds=900.2, startupTimeoutMs=1_000_000)}))
    finish(node, start(node, "a"))
    assert node.now - START == 900_500


def test_a_load_beyond_its_deadline_fails_and_the_child_goes_on() -> None:
    node = node_of(document({"a": lane(seconds=900)}))
    with pytest.raises(GatewayRefusal, match="did not become healthy before timeout"):
        finish(node, start(node, "a"))
    assert (node.now - START, node.visible_status("a")) == (300_000, "starting")
    node.advance(START + 900_000)
    assert node.visible_status("a") == "running"


def test_the_same_calls_make_the_same_history() -> None:
    def history() -> list[Doc]:
        node = node_of(document({"a": lane(60, 30), "b": lane(60, 40)}))
        first, second = node.run(apply(node, "a")), node.run(apply(node, "b"))
        outcome(node, first)
        outcome(node, second)
        return list(node.events)

    assert history() == history()
    assert [e["runtimeId"] for e in history() if e["event"] == "start"] == ["b", "a"]


def test_the_guard_learns_a_lower_bound_of_a_load_that_was_declared_too_small() -> None:
    config = document({"a": lane(20, 100, sim={"rssGb": 60, "peakGb": 60})}, policy={"reserveMemoryGb": 5})
    node = node_of(config)
    node.machine.foreign_gb = 50
    with pytest.raises(GatewayRefusal) as refused:
        finish(node, start(node, "a"))
    assert refused.value.code == "runtime_memory_safety_abort"
    latch = node.state("a").latch
    assert latch is not None
    assert 20 < latch["consumedGb"] <= 60
    assert latch["usedGb"] == 50 + latch["consumedGb"]
    assert node.machine.used_gb(node.now) == 50, "the load is gone"
    with pytest.raises(GatewayRefusal, match="aborted by the memory guard"):
        finish(node, start(node, "a", reason="keep-warm"))
    node.machine.foreign_gb = 0
    assert finish(node, start(node, "a"))["started"] is True
    assert node.state("a").latch is None


@pytest.mark.parametrize(
    ("policy", "capacity", "ceiling", "least", "margin"),
    [
        pytest.param({}, 100, 0.9, 8, 10, id="defaults"),
        pytest.param({"maxMemoryUtilization": 0.95}, 121.7, 0.9, 8, 13, id="admission above the guard"),
        pytest.param({"maxMemoryUtilization": 0.8}, 100, 0.8, 8, 20, id="admission below the guard"),
        pytest.param({"memorySafety": {"maxMemoryUtilization": 0.97}}, 100, 0.97, 8, 3, id="guard raised"),
        pytest.param({"reserveMemoryGb": 30}, 100, 0.9, 15, 10, id="a large reserve counts to 15 percent"),
    ],
)
def test_guard_limits(policy: Doc, capacity: float, ceiling: float, least: float, margin: float) -> None:
    limits = GuardLimits.of(policy, capacity)
    assert (limits.ceiling, limits.min_available_gb, limits.margin_gb(capacity)) == (ceiling, least, margin)


@pytest.mark.parametrize(
    ("resources", "policy", "budget"),
    [
        pytest.param({"memoryGb": 100}, {"maxMemoryUtilization": 0.95}, 90, id="capped at the guard ceiling"),
        pytest.param({"memoryGb": 100, "memoryBudgetGb": 70}, {}, 70, id="absolute"),
        pytest.param({"memoryGb": 100, "memoryBudgetGb": 99}, {}, 90, id="absolute, capped"),
        pytest.param({"memoryGb": 100}, {"memorySafety": {"maxMemoryUtilization": 0.5}}, 50, id="guard alone"),
        pytest.param({}, {}, 0, id="unknown capacity is no negative budget"),
    ],
)
def test_node_budgets_of_newer_builds(resources: Doc, policy: Doc, budget: float) -> None:
    cluster = {"nodeId": "n1", "nodes": {"n1": {"resources": resources}}}
    config = read_config(document({"a": lane()}, policy=policy, cluster=cluster), Build.NEWER, {})
    plan = make_plan(config, {}, {"n1": {"reachable": True}}, "a")
    assert plan["admission"]["nodes"]["n1"]["memoryBudgetGb"] == budget


@pytest.mark.parametrize(
    ("lanes", "gone"),
    [
        pytest.param({"a": {"seen": 2}, "b": {"seen": 1}}, "b", id="least recently requested"),
        pytest.param({"a": {"seen": 1}, "b": {}}, "b", id="never requested is oldest"),
        pytest.param({"a": {"priority": 5}, "b": {"priority": 9}}, "a", id="then lower priority"),
        pytest.param({"a": {"gb": 40}, "b": {"gb": 45}}, "b", id="then larger"),
        pytest.param({"a": {"preferred": True}, "b": {"seen": 9}}, "b", id="ordinary before preferred"),
        pytest.param({"a": {"keepWarm": True}, "b": {"seen": 9}}, "b", id="never a pin"),
        pytest.param({"a": {"busy": 1}, "b": {"seen": 9}}, "b", id="never a busy one"),
    ],
)
def test_eviction_order(lanes: dict[str, Doc], gone: str) -> None:
    entries = {
        name: lane(
            facts.get("gb", 40),
            10,
            policy={"priority": facts.get("priority", 0)},
            preferredWarm=facts.get("preferred", False),
            keepWarm=facts.get("keepWarm", False),
        )
        for name, facts in lanes.items()
    }
    node = node_of(document({**entries, "new": lane(45, 10)}))
    for name, facts in lanes.items():
        finish(node, start(node, name))
        node.state(name).last_requested_at = START + facts["seen"] if "seen" in facts else None
        node.state(name).held = facts.get("busy", 0)
    finish(node, apply(node, "new"))
    assert loaded(node) == {"a", "b", "new"} - {gone}


def test_a_stopping_lane_holds_its_memory_and_a_start_waits_for_it() -> None:
    node = node_of(document({"a": lane(60, 10), "b": lane(60, 10)}))
    finish(node, start(node, "a"))
    stopping = node.run(lifecycle.stop(node, "a"))
    node.advance(node.now + 1)
    assert node.visible_status("a") == "stopping"
    assert node.machine.used_gb(node.now) == 60
    body = finish(node, apply(node, "b"))
    assert stopping.done
    assert [action["type"] for action in body["plan"]["actions"]] == ["start"], "it frees by itself, nothing to evict"


def test_a_client_loads_a_cold_lane_and_comes_back() -> None:
    node = node_of(document({"a": lane(10, 100)}))
    call = open_call(node, "/v1/chat/completions", "chat", "m/a", stream=False, bytes_in=0)
    with pytest.raises(GatewayRefusal) as refused:
        finish(node, call)
    assert (refused.value.status, refused.value.code, refused.value.retry_after) == (429, "RUNTIME_STARTING", 15)
    node.advance(node.now + 100_000)
    assert loaded(node) == {"a"}


@pytest.mark.parametrize("build", list(Build))
def test_a_client_waits_for_a_busy_lane_and_then_gives_way(build: Build) -> None:
    node = node_of(document({"a": lane(60, 10), "b": lane(60, 10)}, policy={"admissionWaitMs": 3000}), build)
    finish(node, start(node, "a"))
    node.state("a").held = 1
    begun = node.now
    call = node.run(open_call(node, "/v1/chat/completions", "chat", "m/b", stream=False, bytes_in=0))
    if build is Build.SNAPSHOT:
        with pytest.raises(GatewayRefusal) as refused:
            outcome(node, call)
        assert (refused.value.code, node.now - begun) == ("runtime_capacity_busy", 3000)
    else:
        node.advance(node.now + 500)
        assert node.visible_status("b") == "queued"


def test_a_preferred_lane_comes_back_when_its_place_is_free() -> None:
    lanes = {"image": lane(60, 50, preferredWarm=True), "video": lane(60, 20)}
    node = node_of(document(lanes))
    node.run(admit.boot(node))
    node.advance(START + 60_000)
    assert loaded(node) == {"image"}, "loaded at boot"
    finish(node, apply(node, "video"))
    assert loaded(node) == {"video"}
    node.advance(node.now + 120_000)
    assert loaded(node) == {"video"}, "nobody makes room for a preferred lane that could not fit"
    finish(node, lifecycle.stop(node, "video"))
    node.advance(node.now + 31_000 + 51_000)
    assert loaded(node) == {"image"}


def test_a_group_spans_two_nodes_without_any_network() -> None:
    members = [
        {"node": "n2", "runtime": "worker", "order": 10, "resources": {"memoryGb": 84}},
        {"node": "n1", "runtime": "head", "order": 20, "resources": {"memoryGb": 84}},
    ]
    nodes = {name: {"endpoint": f"http://{name}", "resources": {"memoryGb": 100}} for name in ("n1", "n2")}
    lanes = {
        "worker": lane(0, 100, node="n2"),
        "head": lane(0, 50, node="n1"),
        "pair": {**lane(0), "placement": {"mode": "distributed", "members": members}},
    }
    config = document(lanes, cluster={"leaderNode": "n1", "nodes": nodes})
    config["security"] = {"allowMissingAuth": True}
    pool = {name: node_of(copy.deepcopy(config), name=name) for name in nodes}
    task = pool["n1"].run(start(pool["n1"], "pair"))
    while not task.done:
        now = min(due for node in pool.values() if (due := node.next_due()) is not None) if _settle(pool) else START
        for node in pool.values():
            node.advance(now)
    assert task.error is None, task.error
    assert pool["n1"].now - START == 150_000, "one member after the other"
    assert [m["runtime"] for m in task.result["members"]] == ["worker", "head"]


def _settle(pool: dict[str, Node]) -> bool:
    """Carry the nodes' calls to each other until nobody has one left."""
    busy = True
    while busy:
        busy = False
        for node in pool.values():
            node.advance(node.now)
            while node.tasks.outbox:
                busy = True
                _deliver(pool, node)
    return any(node.next_due() is not None for node in pool.values())


def _deliver(pool: dict[str, Node], node: Node) -> None:
    errand = node.tasks.outbox.popleft()
    ask = errand.wish
    assert isinstance(ask, Ask)
    headers = {"host": "localhost", **({"x-lloom-requester-node": ask.requester} if ask.requester else {})}
    raw = b"" if ask.body is None else json.dumps(ask.body).encode()
    request = Request(method=ask.method, path=ask.path, headers=headers, raw=raw)

    def reply(task: Task) -> None:
        found: Reply = task.result
        node.tasks.answer(errand, Answer(body=found.body) if found.status < 400 else Answer(error=str(found.body)))

    pool[ask.node].run(answer(pool[ask.node], request), reply)
