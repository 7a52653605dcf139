"""What a gateway shows, in the shapes of the samples."""

from __future__ import annotations

from tests.contract.shapes import differences, sample
from tests.contract.world import N1, N2, N3, NODES, Gateways, wait_until

READS = sample("reads")
ROWS = sample("rows")


def test_health_is_public_and_tells_the_build(gateways: Gateways) -> None:
    answer = gateways.call(N1, "GET", "/health", key=None)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert set(answer.json()) == {"ok", "name", *(["pid"] if gateways.newer else [])}


def test_answers_are_pretty_printed_but_for_the_profile(gateways: Gateways) -> None:
    assert gateways.call(N1, "GET", "/gateway/routing").text.startswith('{\n  "aliases"')
    profile = gateways.call(N1, "GET", "/gateway/profile")
    assert profile.headers["content-type"].startswith("application/vnd.lloom.machine-profile+json;version=1")
    assert differences(profile.json(), READS["profile"]) == []


def test_security_is_public(gateways: Gateways) -> None:
    answer = gateways.call(N1, "GET", "/gateway/security", key=None)
    assert differences(answer.json(), READS["security"], more=gateways.newer) == []


def test_routing_shows_aliases_as_configured(gateways: Gateways) -> None:
    body = gateways.get(N1, "/gateway/routing")
    if gateways.newer:
        assert body["aliases"]["embeddings"] == {"members": ["acme/embed-4b"]}
        assert body["routes"]["chat"]["members"] == ["acme/chat-a"]
    else:
        assert body == READS["routing"]


def test_models_list_models_and_aliases_sorted_by_name(gateways: Gateways) -> None:
    models = gateways.get(N1, "/gateway/models")["models"]
    by_id = {model["id"]: model for model in models}
    for kind, name in [("direct", "acme/big"), ("alias", "embeddings"), ("targets", "acme/chat-a")]:
        assert differences(by_id[name], READS["models"][kind], more=gateways.newer) == []
    assert "acme/disabled" not in by_id
    assert [m["name"] for m in models] == sorted((m["name"] for m in models), key=str.lower)


def test_a_node_shows_its_own_lanes_and_no_groups(gateways: Gateways) -> None:
    block = gateways.get(N1, "/gateway/node")["node"]
    assert list(block["runtimeManager"]["runtimes"]) == ["embed-01", "chat-a-01", "flash-head"]
    assert {"id", "name", "labels", "resources", "system", "profile", "models", "telemetry"} <= set(block)
    assert block["local"] is True
    assert block["reachable"] is True
    assert (
        differences(block["telemetry"]["memory"], sample("metrics")["empty"]["host"]["memory"] | {"source": "<text>"})
        == []
    )


def test_a_running_lane_has_every_field_of_the_sample(gateways: Gateways) -> None:
    wait_until(lambda: gateways.row("embed-01")["healthy"], what="the pin")
    row = gateways.row("embed-01")
    wanted = {**ROWS["running"], "status": "<text>", "pid": "<int?>", "startedAt": "<time?>", "lastWarmup": "<any>"}
    assert differences(row, wanted, more=gateways.newer) == []
    assert row["status"] in ("running", "external")


def test_status_adds_groups_and_the_lanes_of_other_nodes(gateways: Gateways) -> None:
    body = gateways.get(N1, "/gateway/status")
    rows = body["runtimeManager"]["runtimes"]
    assert rows["image-03"]["remote"] is True
    assert rows["image-03"]["node"] == N3
    assert "remote" not in rows["embed-01"]
    wanted = {**ROWS["group"], "transitionReason": "<any>", "startedAt": "<time?>", "stoppedAt": "<time?>"}
    wanted |= {"lastError": "<any>", "members": "<list>"}
    assert differences(rows["flash-tp2"], wanted, more=gateways.newer) == []
    assert list(body["cluster"]["nodes"]) == list(NODES)
    assert body["cluster"]["leaderNode"] == N1
    assert ("memorySafety" in body["runtimeManager"]) is gateways.newer


def test_the_cluster_has_a_block_a_node(gateways: Gateways) -> None:
    cluster = gateways.get(N2, "/gateway/cluster")["cluster"]
    assert cluster["nodeId"] == N2
    assert {name: node["local"] for name, node in cluster["nodes"].items()} == {N1: False, N2: True, N3: False}


def test_unknown_paths_and_wrong_methods_are_404(gateways: Gateways) -> None:
    for method, path, name in [
        ("GET", "/gateway/nope", "unknown-route"),
        ("GET", "/gateway/runtimes/chat-a-01/start", "wrong-method-get-start"),
        ("DELETE", "/gateway/runtimes/chat-a-01", "method-delete"),
    ]:
        answer = gateways.call(N1, method, path)
        assert (answer.status_code, answer.json()) == (404, sample("errors")[name]["body"])


def test_malformed_json_is_a_500(gateways: Gateways) -> None:
    url = gateways.pool.urls[N1] + "/gateway/runtimes/chat-a-01/start"
    answer = gateways.pool.client.post(url, content=b"{nope", headers=gateways.pool.headers())
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "server_error"
