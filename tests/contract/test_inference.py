"""Inference refusals, and what the metrics count."""

from __future__ import annotations

import time

import pytest

from tests.contract.shapes import differences, sample
from tests.contract.world import INFERENCE_KEY, N1, N3, Gateways, wait_until

ERRORS = sample("errors")
METRICS = sample("metrics")


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("infer-unknown-model", N1),
        ("infer-disabled-model", N1),
        ("infer-wrong-kind-chat-on-embedding", N1),
        ("infer-wrong-kind-embedding-on-chat", N1),
        ("infer-capacity-impossible", N3),
    ],
)
def test_refusals(gateways: Gateways, name: str, node: str) -> None:
    wanted = ERRORS[name]
    answer = gateways.call(node, "POST", wanted["request"]["path"], wanted["request"]["body"], key=INFERENCE_KEY)
    assert answer.status_code == wanted["status"]
    seen, expected = answer.json()["error"], wanted["body"]["error"]
    assert {k: v for k, v in seen.items() if k != "message"} == {k: v for k, v in expected.items() if k != "message"}
    if not gateways.newer:
        assert seen["message"] == expected["message"]
    if name == "infer-capacity-impossible":
        assert answer.headers["retry-after"] == "2"


def test_a_request_is_counted_by_model_and_listed_with_what_was_asked_for(gateways: Gateways) -> None:
    gateways.up("chat-a-01")
    before = _requests(gateways, "acme/chat-a")
    body = {"model": "chat", "messages": [{"role": "user", "content": "x"}]}
    assert gateways.call(N1, "POST", "/v1/chat/completions", body, key=INFERENCE_KEY).status_code == 200
    wait_until(lambda: _requests(gateways, "acme/chat-a") == before + 1, what="the count")
    metrics = gateways.get(N1, "/gateway/metrics")
    newest = metrics["recent"][-1]
    assert [r["at"] for r in metrics["recent"]] == sorted(r["at"] for r in metrics["recent"])
    wanted = {**METRICS["recent"], "id": "<text>"}
    assert differences(newest, wanted, more=gateways.newer) == []
    assert (newest["requestedModel"], newest["model"], newest["runtime"]) == ("chat", "acme/chat-a", "chat-a-01")
    assert abs(newest["firstContentMs"] - newest["durationMs"]) <= 5, "a whole answer's first content is its end"
    bucket = next(b for b in metrics["models"] if b["id"] == "acme/chat-a")
    pattern = {**METRICS["bucket"], "recentDecodeRates": "<list>", "decodeTokensPerSecond": "<any>"}
    assert differences(bucket, pattern, more=gateways.newer) == []


def _requests(gateways: Gateways, model: str) -> int:
    metrics = gateways.get(N1, "/gateway/metrics")
    return next((b["requests"] for b in metrics["models"] if b["id"] == model), 0)


def test_metrics_have_the_parts_of_the_sample(gateways: Gateways) -> None:
    metrics = gateways.get(N1, "/gateway/metrics")
    wanted = {**METRICS["empty"], "totals": "<object>", "models": "<list>", "routes": "<list>", "recent": "<list>"}
    wanted["host"] = {**METRICS["empty"]["host"], "cpu": "<object>", "memory": "<object>"}
    assert differences(metrics, wanted, more=gateways.newer) == []
    one = gateways.get(N1, "/gateway/metrics/models/acme%2Fembed-4b")
    assert "host" not in one
    assert {b["id"] for b in one["models"]} <= {"acme/embed-4b"}


def test_an_embedding_is_answered_by_the_pinned_lane(gateways: Gateways) -> None:
    body = {"model": "embeddings", "input": "x"}
    answer = gateways.call(N1, "POST", "/v1/embeddings", body, key=INFERENCE_KEY)
    assert answer.status_code == 200
    assert answer.json()["data"][0]["object"] == "embedding"


def test_a_cold_model_is_loaded_for_its_client(gateways: Gateways) -> None:
    body = {"model": "acme/chat-a", "messages": []}
    gateways.act("chat-a-02", "stop", via=None)
    answer = gateways.call(N1, "POST", "/v1/chat/completions", body, key=INFERENCE_KEY)
    assert answer.status_code in ((200, 429) if gateways.newer else (200,))
    if answer.status_code == 429:
        assert answer.json()["error"]["code"] == "RUNTIME_STARTING"
    wait_until(lambda: gateways.row("chat-a-01")["healthy"] or gateways.row("chat-a-02")["healthy"], what="the load")


def test_counts_survive_a_restart_and_lists_do_not(gateways: Gateways) -> None:
    gateways.up("embed-01")
    body = {"model": "embeddings", "input": "x"}
    gateways.call(N1, "POST", "/v1/embeddings", body, key=INFERENCE_KEY)
    counted = _requests(gateways, "acme/embed-4b")
    assert counted >= 1
    time.sleep(0.2 if gateways.simulated else 1.5)
    gateways.pool.kill(N1)
    gateways.revive(N1)
    assert _requests(gateways, "acme/embed-4b") == counted
    assert gateways.get(N1, "/gateway/metrics")["recent"] == []
