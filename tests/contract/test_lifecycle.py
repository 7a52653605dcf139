"""Start, stop and warm-up: 200 does not mean it worked, and calls hold until done."""

from __future__ import annotations

import threading

import httpx
import pytest

from tests.contract.shapes import differences, sample
from tests.contract.world import N1, N3, Gateways, wait_until

ACTIONS = sample("actions")
ERRORS = sample("errors")
ROWS = sample("rows")


def said(gateways: Gateways, answer: httpx.Response, name: str) -> list[str]:
    assert answer.status_code == ACTIONS[name]["status"], answer.text
    wanted = {**ACTIONS[name]["body"], "runtimeId": "<text>"}
    return differences(answer.json(), wanted, more=gateways.newer)


def test_a_cold_start_holds_until_the_lane_is_warm(gateways: Gateways) -> None:
    assert said(gateways, gateways.act("chat-a-01", "start"), "start-cold") == []
    row = gateways.row("chat-a-01")
    assert (row["status"], row["healthy"]) == ("running", True)


def test_a_start_of_a_running_lane_is_already_healthy_and_warms_up_again(gateways: Gateways) -> None:
    gateways.up("chat-a-01")
    assert said(gateways, gateways.act("chat-a-01", "start"), "start-when-running") == []
    again = gateways.act("chat-a-01", "start", {"warmup": False})
    assert said(gateways, again, "start-when-running-nowarmup") == []


def test_two_starts_are_one_after_the_other(gateways: Gateways) -> None:
    answers: list[httpx.Response] = []
    first = threading.Thread(target=lambda: answers.append(gateways.act("chat-a-01", "start")))
    first.start()
    wait_until(lambda: gateways.row("chat-a-01")["status"] == "starting")
    second = gateways.act("chat-a-01", "start")
    first.join()
    assert said(gateways, answers[0], "start-cold") == []
    assert said(gateways, second, "start-while-starting") == []


@pytest.mark.parametrize(
    ("lane", "body", "name"),
    [
        pytest.param("chat-a-01", {"force": False, "warmup": False}, "start-force-false", id="without force"),
        pytest.param("disabled-03", {"force": False}, "start-disabled-default-force", id="disabled"),
        pytest.param("disabled-03", {}, "start-disabled-forced", id="disabled, forced"),
        pytest.param("no-such", {}, "unknown-runtime-start", id="unknown lane"),
    ],
)
def test_start_answers(gateways: Gateways, lane: str, body: dict[str, bool], name: str) -> None:
    assert said(gateways, gateways.act(lane, "start", body), name) == []


def test_an_external_process_lane_is_spawned_and_can_not_be_stopped(gateways: Gateways) -> None:
    if gateways.row("external-03")["healthy"]:
        pytest.skip("it runs already, and nobody can stop it")
    assert said(gateways, gateways.act("external-03", "start"), "start-external") == []
    assert said(gateways, gateways.act("external-03", "stop"), "stop-external") == []
    assert gateways.row("external-03")["healthy"] is True


def test_a_lane_that_dies_while_loading_fails_the_start(gateways: Gateways) -> None:
    answer = gateways.act("crash-03", "start")
    assert (answer.status_code, answer.json()) == (500, ERRORS["start-crashes"]["body"])
    row = gateways.row("crash-03")
    wanted = {**ROWS["crashed"], "transitionReason": "<any>"}
    assert differences(row, wanted, more=gateways.newer) == []


def test_a_missed_health_deadline_fails_the_start_and_leaves_the_child(gateways: Gateways) -> None:
    answer = gateways.act("slow-03", "start")
    assert (answer.status_code, answer.json()) == (500, ERRORS["start-health-timeout"]["body"])
    assert differences(gateways.row("slow-03"), {**ROWS["slow"], "pid": "<int>"}, more=gateways.newer) == []
    assert said(gateways, gateways.act("slow-03", "stop"), "stop-running") == []
    assert gateways.row("slow-03")["status"] == "stopped"


def test_a_client_that_gives_up_does_not_stop_the_load(gateways: Gateways) -> None:
    with pytest.raises(httpx.ReadTimeout):
        gateways.call(N1, "POST", "/gateway/runtimes/chat-a-01/start", {}, timeout=0.15)
    assert gateways.row("chat-a-01")["status"] == "starting"
    wait_until(lambda: gateways.row("chat-a-01")["healthy"], what="the abandoned load")


def test_stop_says_stopped_whatever_was_there(gateways: Gateways) -> None:
    gateways.up("chat-a-01")
    assert said(gateways, gateways.act("chat-a-01", "stop"), "stop-running") == []
    assert said(gateways, gateways.act("chat-a-01", "stop"), "stop-stopped") == []
    assert said(gateways, gateways.act("no-such", "stop"), "unknown-runtime-stop") == []


def test_a_stop_during_a_start_waits_in_the_snapshot_and_aborts_it_in_newer_builds(gateways: Gateways) -> None:
    answers: list[httpx.Response] = []
    starting = threading.Thread(target=lambda: answers.append(gateways.act("chat-a-01", "start", {"warmup": False})))
    starting.start()
    wait_until(lambda: gateways.row("chat-a-01")["status"] == "starting")
    stopped = gateways.act("chat-a-01", "stop")
    starting.join()
    assert said(gateways, stopped, "stop-during-start") == []
    assert answers[0].status_code == (500 if gateways.newer else 200)
    assert gateways.row("chat-a-01")["healthy"] is False


def test_warmup_never_starts_a_lane(gateways: Gateways) -> None:
    assert said(gateways, gateways.act("flash-head", "warmup"), "warmup-stopped") == []
    assert said(gateways, gateways.act("embed-01", "warmup"), "warmup-no-config") == []
    assert said(gateways, gateways.act("no-such", "warmup"), "unknown-runtime-warmup") == []
    gateways.up("chat-a-01")
    assert said(gateways, gateways.act("chat-a-01", "warmup"), "warmup-running") == []


def test_only_the_snapshot_acts_for_another_node(gateways: Gateways) -> None:
    answer = gateways.act("image-03", "start", via=N1)
    if gateways.newer:
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "RUNTIME_AUTHORITY_FORBIDDEN"
        assert answer.json()["error"]["type"] == "runtime_authority_error"
    else:
        assert said(gateways, answer, "start-remote-via-leader") == []


def test_keep_warm_loads_only_the_pins_of_the_called_node(gateways: Gateways) -> None:
    body = gateways.call(N3, "POST", "/gateway/runtimes/keep-warm", {}).json()
    assert body["keepWarm"] == ["embed-01", "pinned-03"]
    assert body["results"][0] == {"runtimeId": "embed-01", "started": False, "reason": "node-owned"}
    assert body["results"][1]["results"][0]["reason"] == "already-admitted"
    assert ("preferredWarm" in body) is gateways.newer
