"""Gateways that hang, die and come back."""

from __future__ import annotations

import threading
import time

import httpx
import pytest

from tests.contract.shapes import differences, sample
from tests.contract.world import N1, N3, Gateways, wait_until

ROWS = sample("rows")
STATUS_CACHE_SECONDS = 0.25


def test_lanes_outlive_their_gateway_and_come_back_external(gateways: Gateways) -> None:
    gateways.up("image-03")
    gateways.pool.kill(N3)
    wait_until(lambda: _seen_from_the_leader(gateways)["status"] == "unreachable", what="the lost node")
    wanted = {**ROWS["unreachable"], "node": N3, "keepWarm": False, "error": "<text>"}
    assert differences(_seen_from_the_leader(gateways), wanted, more=gateways.newer) == []
    gateways.revive(N3)
    row = gateways.row("image-03")
    assert differences(row, {**ROWS["restarted"], "node": N3, "keepWarm": False}, more=gateways.newer) == []
    assert gateways.row("big-03")["status"] == "idle"
    stopped = gateways.act("image-03", "stop").json()
    assert (stopped["stopped"], stopped["processResult"]) == (True, None)
    assert len(stopped["portResult"]["terminated"]) == 1
    assert gateways.row("image-03")["healthy"] is False


def _seen_from_the_leader(gateways: Gateways) -> dict[str, object]:
    rows = gateways.get(N1, "/gateway/status")["runtimeManager"]["runtimes"]
    found: dict[str, object] = rows["image-03"]
    return found


def test_a_plan_for_an_unreachable_node_is_invalid(gateways: Gateways) -> None:
    gateways.pool.kill(N3)
    try:
        wait_until(lambda: _seen_from_the_leader(gateways)["status"] == "unreachable", what="the lost node")
        plan = gateways.plan("image-03", N1)
        assert plan["ok"] is False
        assert plan["validationErrors"] == [f"cluster node {N3} is unreachable"]
        assert plan["admission"]["nodes"][N3]["totalMemoryGb"] == 128
        if not gateways.newer:
            answer = gateways.act("image-03", "start", via=N1)
            assert (answer.status_code, answer.json()["error"]["message"]) == (500, "fetch failed")
    finally:
        gateways.revive(N3)


def test_a_hung_gateway_holds_the_callers_and_does_it_all_when_it_wakes(gateways: Gateways) -> None:
    gateways.up("chat-a-02")
    gateways.pool.pause(N3)
    answers: list[httpx.Response] = []
    try:
        with pytest.raises(httpx.ReadTimeout):
            gateways.call(N3, "POST", "/gateway/runtimes/image-03/start", {}, timeout=0.3)
        time.sleep(STATUS_CACHE_SECONDS)
        reading = threading.Thread(target=lambda: answers.append(gateways.call(N1, "GET", "/gateway/status")))
        reading.start()
        reading.join(0.3)
        assert reading.is_alive(), "the leader waits for the hung node"
        assert gateways.get(N1, "/gateway/node")["ok"] is True
    finally:
        gateways.pool.unpause(N3)
    reading.join()
    assert answers[0].status_code == 200
    wait_until(lambda: gateways.row("image-03")["healthy"], what="the start that the caller gave up on")
