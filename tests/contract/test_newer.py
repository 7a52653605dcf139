"""Routes that only newer builds have."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.contract.world import N1, N2, N3, Gateways, wait_until

Doc = dict[str, Any]


@pytest.fixture
def newer(gateways: Gateways) -> Iterator[Gateways]:
    if not gateways.newer or not gateways.simulated:
        pytest.skip("for the simulated newer build")
    before = {node: path.read_text() for node, path in gateways.pool.configs.items()}
    yield gateways
    for node, path in gateways.pool.configs.items():
        if path.read_text() != before[node]:
            edit(gateways, node, json.loads(before[node]))


def edit(gateways: Gateways, node: str, sections: Doc) -> None:
    """Change a node's file and wait until it shows, by a default that nothing else uses."""
    mark = f"mark-{len(gateways.pool.configs[node].read_text())}-{sections.keys()}"
    defaults = {**sections.get("defaults", {"chatModel": "acme/chat-a"}), "mark": mark}
    gateways.pool.edit(node, {**sections, "defaults": defaults})
    wait_until(lambda: gateways.get(node, "/gateway/routing")["defaults"].get("mark") == mark, what="the edit")


def file_of(gateways: Gateways, node: str) -> Doc:
    found: Doc = json.loads(gateways.pool.configs[node].read_text())
    return found


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_residency_is_a_live_job(newer: Gateways) -> None:
    newer.up("image-03")
    pid = newer.row("image-03")["pid"]
    answer = newer.act("image-03", "residency", {"policy": "preferred", "yes": True})
    job = {"runtimeId": "image-03", "policy": "preferred", "previousPolicy": "auto", "changed": True, "error": None}
    assert answer.status_code == 202
    assert answer.json().items() >= {"ok": True, "status": "pending", **job}.items()
    path = "/gateway/runtimes/image-03/residency"
    wait_until(lambda: newer.get(N3, path)["job"]["status"] == "succeeded", what="the job")
    row = newer.row("image-03")
    assert (row["preferredWarm"], row["keepWarm"], row["pid"]) == (True, False, pid)
    assert file_of(newer, N3)["runtimes"]["image-03"]["preferredWarm"] is True
    assert file_of(newer, N3)["security"]["adminApiKeys"] == ["${LLOOM_SIM_KEY}"], "the text of the variable stays"
    assert newer.get(N3, "/gateway/runtimes/big-03/residency") == {"ok": True, "job": None}


@pytest.mark.parametrize(
    ("lane", "via", "body", "wanted"),
    [
        pytest.param("image-03", N3, {"policy": "auto"}, (400, "bad_request"), id="without yes"),
        pytest.param("image-03", N3, {"policy": "often", "yes": True}, (400, "bad_request"), id="no such policy"),
        pytest.param("none", N3, {"policy": "auto", "yes": True}, (404, "not_found"), id="unknown lane"),
        pytest.param(
            "image-03", N1, {"policy": "auto", "yes": True}, (403, "RUNTIME_AUTHORITY_FORBIDDEN"), id="another's lane"
        ),
        pytest.param(
            "flash-head", N1, {"policy": "auto", "yes": True}, (409, "invalid_residency_policy"), id="member of a group"
        ),
    ],
)
def test_residency_refusals(newer: Gateways, lane: str, via: str, body: Doc, wanted: tuple[int, str]) -> None:
    assert code_of(newer.act(lane, "residency", body, via=via)) == wanted


def test_route_profiles_switch_and_members_are_suspended(newer: Gateways) -> None:
    profiles = {"both": {"members": ["acme/chat-a", "acme/big"]}, "big": {"members": ["acme/big"]}}
    chat = {"members": ["acme/chat-a", "acme/big"], "activeRoute": "both", "routeProfiles": profiles}
    edit(newer, N1, {"aliases": {"chat": chat}})
    switched = newer.call(N1, "POST", "/gateway/routes/chat/profile", {"profile": "big"}).json()
    assert (switched["changed"], switched["activeRoute"], switched["members"]) == (True, "big", ["acme/big"])
    assert switched["route"]["profiles"] == ["both", "big"]
    assert file_of(newer, N1)["aliases"]["chat"]["members"] == ["acme/big"]
    path = "/gateway/routes/chat/members/acme%2Fbig/suspension"
    suspended = newer.call(N1, "POST", path, {"suspended": True}).json()
    assert (suspended["changed"], suspended["suspendedMembers"]) == (True, ["acme/big"])
    assert newer.call(N1, "POST", path, {"suspended": "yes"}).status_code == 400
    assert newer.call(N1, "POST", "/gateway/routes/chat/profile", {"profile": "none"}).status_code == 500


def test_suspend_drains_then_stops_and_refuses_every_start_until_resumed(newer: Gateways) -> None:
    newer.up("image-03")
    path = "/gateway/models/acme%2Fimage/suspend"
    dry = newer.call(N3, "POST", path, {}).json()
    assert (dry["runtimeIds"], dry["applied"], dry["state"]) == (["image-03"], False, {"image-03": None})
    newer.pool.control(N3, "set-active", lane="image-03", count=1)
    answers: list[httpx.Response] = []
    body = {"apply": True, "yes": True}
    suspending = threading.Thread(target=lambda: answers.append(newer.call(N3, "POST", path, body)))
    suspending.start()
    wait_until(lambda: newer.row("image-03")["status"] == "draining", what="the drain")
    assert newer.row("image-03")["healthy"] is True
    newer.pool.control(N3, "set-active", lane="image-03", count=0)
    suspending.join()
    applied = answers[0].json()
    assert (applied["applied"], applied["status"], applied["health"]) == (True, "suspended", {"image-03": False})
    assert file_of(newer, N3)["runtimes"]["image-03"]["maintenance"]["state"] == "suspended"
    assert code_of(newer.act("image-03", "start")) == (503, "RUNTIME_MAINTENANCE")
    assert code_of(newer.act("image-03", "admit", body)) == (503, "RUNTIME_MAINTENANCE")
    resumed = newer.call(N3, "POST", "/gateway/models/acme%2Fimage/resume", body).json()
    assert (resumed["status"], resumed["health"]) == ("resumed", {"image-03": True})
    assert "maintenance" not in file_of(newer, N3)["runtimes"]["image-03"]


def test_a_drain_that_takes_too_long_leaves_the_lane_up_and_suspended(newer: Gateways) -> None:
    newer.up("image-03")
    newer.pool.control(N3, "set-active", lane="image-03", count=1)
    body = {"apply": True, "yes": True, "drainTimeoutMs": 50}
    answer = newer.call(N3, "POST", "/gateway/models/image-03/suspend", body)
    assert answer.status_code == 500
    row = newer.row("image-03")
    assert (row["healthy"], row["maintenance"]["state"]) == (True, "suspended")
    newer.pool.control(N3, "set-active", lane="image-03", count=0)


def test_the_fence_refuses_new_work_until_its_owner_releases_it(newer: Gateways) -> None:
    prepared = newer.call(
        N2, "POST", "/gateway/deployment-fence/prepare", {"opId": "plan-42", "timeoutMs": 1000}
    ).json()
    assert (prepared["state"], prepared["fenced"], prepared["drained"]) == ("prepared", True, True)
    try:
        refused = newer.act("chat-a-02", "start")
        assert code_of(refused) == (503, "deployment_fenced")
        assert refused.headers["retry-after"] == "5"
        assert newer.get(N2, "/gateway/status")["deploymentFence"]["fenced"] is True
        newer.pool.kill(N2)
        newer.revive(N2)
        assert newer.get(N2, "/gateway/status")["deploymentFence"]["fenced"] is True, "it survives a restart"
        wrong = newer.call(N2, "POST", "/gateway/deployment-fence/release", {"opId": "other", "generation": 1})
        assert wrong.status_code == 409
    finally:
        body = {"opId": "plan-42", "generation": prepared["generation"]}
        released = newer.call(N2, "POST", "/gateway/deployment-fence/release", body).json()
    assert (released["released"], released["fenced"]) == (True, False)
    assert newer.call(N2, "POST", "/gateway/deployment-fence/release", body).json()["released"] is True
    newer.up("chat-a-02")


def test_an_installation_takes_its_time_and_then_declares_the_lane(newer: Gateways) -> None:
    lane = {"enabled": True, "node": N3, "command": "x", "healthUrl": "http://127.0.0.1:1/health", "memoryGb": 5}
    recipe = {
        "seconds": 2,
        "runtimes": {"fresh-03": lane},
        "backends": {"fresh-03": {"baseUrl": "http://127.0.0.1:1/v1"}},
        "models": [{"id": "acme/fresh", "kind": "chat", "backend": "fresh-03", "runtime": "fresh-03"}],
    }
    broken = {"seconds": 0, "fails": "no space left"}
    edit(newer, N3, {"sim": {"recipes": {"fresh": recipe, "broken": broken}}})
    plan = newer.call(N3, "POST", "/gateway/installations/plan", {"recipeId": "fresh"}).json()
    assert (plan["kind"], len(plan["planId"])) == ("recipe", 48)
    started = newer.call(N3, "POST", "/gateway/installations", {"planId": plan["planId"], "yes": True})
    assert (started.status_code, started.json()["job"]["status"]) == (202, "running")
    wait_until(lambda: newer.get(N3, "/gateway/installations")["job"]["status"] == "succeeded", what="the job")
    assert "acme/fresh" in [m["id"] for m in newer.get(N3, "/gateway/models")["models"]]
    rows = newer.get(N3, "/gateway/node")["node"]["runtimeManager"]["runtimes"]
    assert (rows["fresh-03"]["healthy"], rows["fresh-03"]["pid"]) == (False, None)
    stale = newer.call(N3, "POST", "/gateway/installations", {"planId": plan["planId"], "yes": True})
    assert code_of(stale) == (409, "installation_start_failed"), "the config changed since the plan"
    unknown = newer.call(N3, "POST", "/gateway/installations/plan", {"recipeId": "none"})
    assert code_of(unknown) == (400, "installation_plan_failed")
    plan = newer.call(N3, "POST", "/gateway/installations/plan", {"recipeId": "broken"}).json()
    newer.call(N3, "POST", "/gateway/installations", {"planId": plan["planId"], "yes": True})
    wait_until(lambda: newer.get(N3, "/gateway/installations")["job"]["status"] == "failed", what="the failure")
    assert newer.get(N3, "/gateway/installations")["job"]["error"] == "no space left"


def test_fleet_profiles_are_captured_planned_and_applied(newer: Gateways) -> None:
    captured = newer.call(N3, "POST", "/gateway/fleet/profiles/calm", {"yes": True}).json()["profile"]
    assert captured["residency"]["pinned-03"] == "always"
    edit(newer, N3, {"aliases": {"chat": "acme/big", "embeddings": "acme/embed-4b"}})
    plan = newer.get(N3, "/gateway/fleet/profiles/calm")
    assert [(r["id"], r["from"], r["to"]) for r in plan["routes"]] == [("chat", "acme/big", "acme/chat-a")]
    applied = newer.call(N3, "POST", "/gateway/fleet/profiles/calm?apply=1", {"yes": True})
    assert applied.status_code == 200, applied.text
    assert newer.get(N3, "/gateway/routing")["aliases"]["chat"]["members"] == ["acme/chat-a"]
    listed = newer.get(N3, "/gateway/fleet/profiles")
    assert (listed["active"], listed["profiles"]) == ("calm", ["calm"])


def test_readiness_probes_every_node_of_a_group(newer: Gateways) -> None:
    down = newer.get(N1, "/gateway/cluster/readiness?runtime=flash-tp2")
    assert (down["ok"], down["requiredNodes"], down["readyForControl"]) == (False, [N1, N2], True)
    newer.act("flash-tp2", "start", {"force": False})
    up = newer.get(N1, "/gateway/cluster/readiness?runtime=flash-head")
    assert (up["ok"], up["groupRuntimeId"], up["availabilityState"]) == (True, "flash-tp2", "healthy")
    assert code_of(newer.call(N1, "GET", "/gateway/cluster/readiness")) == (400, "invalid_request")


def test_the_guard_aborts_a_load_and_latches_the_lane_until_a_person_starts_it(newer: Gateways) -> None:
    newer.pool.control(N3, "set-foreign", gb=126)
    try:
        answer = newer.act("image-03", "start")
        assert code_of(answer) == (503, "runtime_memory_safety_abort")
        row = newer.row("image-03")
        assert (row["status"], row["transitionReason"], row["memorySafetyLatched"]) == (
            "failed",
            "memory-safety-abort",
            True,
        )
    finally:
        newer.pool.control(N3, "set-foreign", gb=0)
    asked = newer.call(N3, "POST", "/v1/images/generations", {"model": "acme/image", "prompt": "x"})
    assert code_of(asked) == (503, "runtime_memory_safety_abort"), "a client's request does not clear the latch"
    assert newer.act("image-03", "start").json()["started"] is True
    assert newer.row("image-03")["memorySafetyLatched"] is False


def test_inventory_and_measured_memory_come_on_request(newer: Gateways) -> None:
    machine = {"computeArchs": ["sm_121"], "disks": [{"root": "models", "freeGb": 5}]}
    edit(newer, N3, {"sim": {"machine": machine}})
    assert "inventory" not in newer.get(N3, "/gateway/node")["node"]
    inventory = newer.get(N3, "/gateway/node?inventory=1")["node"]["inventory"]
    assert inventory == {"platform": "linux-x64", **machine}
    blocks = newer.get(N1, "/gateway/cluster?inventory=1")["cluster"]["nodes"]
    assert blocks[N3]["inventory"] == inventory
    rows = newer.get(N3, "/gateway/node?memoryUsage=1")["node"]["runtimeManager"]["runtimes"]
    assert rows["pinned-03"]["memoryUsage"]["residentGb"] == 0.1


def test_a_foreign_host_name_is_turned_away(newer: Gateways) -> None:
    headers = {**newer.pool.headers(), "host": "evil.example"}
    answer = newer.pool.client.get(newer.pool.urls[N1] + "/gateway/routing", headers=headers)
    assert code_of(answer) == (403, "admin_origin_denied")
