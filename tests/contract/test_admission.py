"""Admission: plans, what an apply does, and how each build refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.contract.shapes import differences, sample
from tests.contract.world import N1, N3, Gateways, wait_until

PLANS = sample("plans")
ERRORS = sample("errors")
APPLY = {"apply": True, "yes": True}


def test_a_dry_run_is_the_plan_and_touches_nothing(gateways: Gateways) -> None:
    body = gateways.act("chat-a-01", "admit").json()
    assert differences(body, PLANS["dry"], more=gateways.newer) == []
    wanted = dict(PLANS["plan"])
    if gateways.newer:
        wanted["runtimes"] = [{k: v for k, v in PLANS["plan"]["runtimes"][0].items() if k != "evictable"}]
    assert differences(body["plan"], wanted, more=gateways.newer) == []
    assert gateways.row("chat-a-01")["healthy"] is False


def test_the_plan_counts_what_is_loaded_and_what_the_request_adds(gateways: Gateways) -> None:
    node = gateways.plan("chat-a-01")["admission"]["nodes"][N1]
    assert (node["loadedMemoryGb"], node["requestedAddsMemoryGb"], node["projectedMemoryGb"]) == (12, 40, 52)
    row = next(r for r in gateways.plan("chat-a-01")["runtimes"] if r["runtimeId"] == "chat-a-01")
    assert (row["priority"], row["memoryGb"], row["requested"]) == (100000, 40, True)


def test_apply_starts_and_a_second_apply_finds_it_admitted(gateways: Gateways) -> None:
    first = gateways.act("chat-a-01", "admit", APPLY)
    assert differences(first.json(), PLANS["apply"], more=gateways.newer) == []
    again = gateways.act("chat-a-01", "admit", APPLY)
    assert differences(again.json(), PLANS["again"], more=gateways.newer) == []
    assert again.json()["plan"]["actions"] == []


def test_apply_evicts_what_the_plan_names(gateways: Gateways) -> None:
    gateways.act("pinned-03", "stop")
    gateways.up("image-03")
    plan = gateways.plan("big-03")
    assert [a["type"] for a in plan["actions"]] == ["stop", "start"]
    assert differences(plan["actions"][0], PLANS["stop"]) == []
    assert plan["admission"]["nodes"][N3]["projectedMemoryGb"] == 130
    assert plan["admission"]["nodes"][N3]["overBudgetGb"] == 0
    body = gateways.act("big-03", "admit", APPLY).json()
    assert [(r["type"], r["runtimeId"]) for r in body["results"]] == [("stop", "image-03"), ("start", "big-03")]
    assert (gateways.row("image-03")["healthy"], gateways.row("big-03")["healthy"]) == (False, True)


def test_a_plain_start_checks_no_memory(gateways: Gateways) -> None:
    answer = gateways.act("big-03", "start", {"warmup": False})
    assert answer.json()["started"] is True
    assert gateways.plan("image-03")["admission"]["nodes"][N3]["loadedMemoryGb"] == 120


@pytest.mark.parametrize(
    ("lane", "body", "name", "newer_status", "newer_code"),
    [
        pytest.param("chat-a-01", {"apply": True}, "admit-apply-without-yes", 400, "bad_request", id="without yes"),
        pytest.param("no-such", APPLY, "unknown-runtime-admit-apply", 400, "bad_request", id="unknown lane"),
        pytest.param("huge-03", APPLY, "admit-refused-too-big", 503, "runtime_capacity_impossible", id="too big"),
        pytest.param("big-03", APPLY, "admit-refused-pinned", 503, "runtime_keep_warm_conflict", id="beside a pin"),
    ],
)
def test_refusals(
    gateways: Gateways, lane: str, body: dict[str, bool], name: str, newer_status: int, newer_code: str
) -> None:
    answer = gateways.act(lane, "admit", body)
    if gateways.newer:
        assert (answer.status_code, answer.json()["error"]["code"]) == (newer_status, newer_code)
    else:
        assert (answer.status_code, answer.json()) == (400, ERRORS[name]["body"])


def test_a_start_that_fails_inside_admit_is_a_bad_request(gateways: Gateways) -> None:
    answer = gateways.act("crash-03", "admit", APPLY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")
    assert answer.json()["error"]["message"] == "runtime crash-03 exited before becoming healthy"


@contextmanager
def busy(gateways: Gateways, model: str, lane: str) -> Iterator[None]:
    """Keep a lane busy with a real stream, at the gateway of its node."""
    ended = threading.Event()

    def stream() -> None:
        body = {"model": model, "messages": [], "stream": True, "max_tokens": 2000}
        url = gateways.pool.urls[gateways.owner(lane)] + "/v1/chat/completions"
        with gateways.pool.client.stream("POST", url, json=body, timeout=60) as answer:
            for _ in answer.iter_raw():
                if ended.is_set():
                    break

    thread = threading.Thread(target=stream)
    thread.start()
    try:
        wait_until(lambda: gateways.row(lane)["activeRequests"] == 1, what="a busy lane")
        yield
    finally:
        ended.set()
        thread.join()
        wait_until(lambda: gateways.row(lane)["activeRequests"] == 0, what="an idle lane")


def test_a_busy_lane_is_not_evicted(gateways: Gateways) -> None:
    gateways.act("pinned-03", "stop")
    gateways.up("big-03")
    with busy(gateways, "acme/big", "big-03"):
        answer = gateways.act("image-03", "admit", APPLY)
        refused = (429, "runtime_capacity_busy") if gateways.newer else (400, "bad_request")
        assert (answer.status_code, answer.json()["error"]["code"]) == refused
        assert answer.json()["error"]["message"].startswith(
            "Runtime image-03 is queued for capacity; waiting for active runtime(s) to drain: big-03 (active-requests)"
        )
        protected = {p["runtimeId"]: p["protectedReasons"] for p in gateways.plan("image-03")["protected"]}
        assert protected["big-03"] == ["active-requests"]


def test_a_stop_cuts_the_streams_in_flight(gateways: Gateways) -> None:
    gateways.up("image-03", "chat-a-01")
    lines: list[bytes] = []

    def stream() -> None:
        body = {"model": "acme/chat-a", "messages": [], "stream": True, "max_tokens": 2000}
        url = gateways.pool.urls[N1] + "/v1/chat/completions"
        with gateways.pool.client.stream("POST", url, json=body, timeout=60) as answer:
            lines.append(str(answer.status_code).encode())
            try:
                lines.extend(answer.iter_raw())
            except httpx.RemoteProtocolError:
                lines.append(b"broken off")

    client = threading.Thread(target=stream)
    client.start()
    wait_until(lambda: gateways.row("chat-a-01")["activeRequests"] == 1)
    wait_until(lambda: len(lines) > 1, what="first content")
    gateways.act("chat-a-01", "stop")
    client.join()
    assert lines[0] == b"200"
    assert b"[DONE]" not in b"".join(lines)
