"""A distributed lane over two nodes."""

from __future__ import annotations

import pytest

from tests.contract.shapes import differences, sample
from tests.contract.world import N1, N2, Gateways, wait_until

GROUPS = sample("groups")


def statuses(gateways: Gateways) -> tuple[str, bool]:
    row = gateways.row("flash-tp2")
    return row["status"], row["healthy"]


def test_start_brings_the_members_up_in_order_and_stop_takes_them_down(gateways: Gateways) -> None:
    started = gateways.act("flash-tp2", "start")
    assert differences(started.json(), GROUPS["tp-start-leader"], more=gateways.newer) == []
    assert statuses(gateways) == ("running", True)
    row = gateways.row("flash-tp2")
    assert row["resourcesByNode"] == {n: {"memoryGb": 84, "gpuMemoryGb": 0} for n in (N2, N1)}
    stopped = gateways.act("flash-tp2", "stop")
    assert differences(stopped.json(), GROUPS["tp-stop-leader"], more=gateways.newer) == []
    assert statuses(gateways) == ("stopped", False)


def test_a_second_start_leaves_the_snapshot_alone_and_restarts_in_newer_builds(gateways: Gateways) -> None:
    gateways.act("flash-tp2", "start")
    before = {lane: gateways.row(lane)["pid"] for lane in ("flash-head", "flash-worker")}
    again = gateways.act("flash-tp2", "start")
    after = {lane: gateways.row(lane)["pid"] for lane in ("flash-head", "flash-worker")}
    if gateways.newer:
        assert differences(again.json(), GROUPS["tp-start-leader"], more=True) == []
        assert all(before[lane] != after[lane] for lane in before)
    else:
        assert differences(again.json(), GROUPS["tp-start-again"]) == []
        assert before == after


def test_without_force_a_healthy_group_stays_in_both_builds(gateways: Gateways) -> None:
    gateways.act("flash-tp2", "start")
    before = gateways.row("flash-head")["pid"]
    body = gateways.act("flash-tp2", "start", {"force": False}).json()
    assert gateways.row("flash-head")["pid"] == before
    assert body["healthy"] is True
    if gateways.newer:
        assert (body["started"], body["reason"]) == (False, "already-healthy")


def test_a_group_that_lost_its_worker_shows_starting_until_it_is_healed(gateways: Gateways) -> None:
    gateways.act("flash-tp2", "start")
    assert gateways.stop_for_leader("flash-worker").json()["stopped"] is True
    # Newer builds judge a group with a health URL by that URL alone.
    wanted = ("running", True) if gateways.newer else ("starting", False)
    wait_until(lambda: statuses(gateways) == wanted and not _worker_row(gateways)["healthy"], what="the degraded group")
    if gateways.newer:
        assert gateways.row("flash-tp2")["availabilityState"] == "management-degraded"
    healed = gateways.act("flash-tp2", "start", {"force": False})
    if not gateways.newer:
        assert differences(healed.json(), GROUPS["tp-start-heals"]) == []
    assert healed.json()["started"] is True
    assert statuses(gateways) == ("running", True)


def _worker_row(gateways: Gateways) -> dict[str, object]:
    rows = gateways.get(N1, "/gateway/status")["runtimeManager"]["runtimes"]
    found: dict[str, object] = rows["flash-worker"]
    return found


def test_an_unreachable_member_node_fails_the_start(gateways: Gateways) -> None:
    gateways.pool.kill(N2)
    try:
        answer = gateways.act("flash-tp2", "start")
        if gateways.newer:
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "RUNTIME_CONTROL_UNAVAILABLE")
        else:
            assert answer.status_code == 500
            assert answer.json()["error"]["message"] == "fetch failed"
    finally:
        gateways.revive(N2)


@pytest.mark.parametrize("lane", ["flash-head", "flash-worker"])
def test_members_are_the_leaders_in_newer_builds(gateways: Gateways, lane: str) -> None:
    answer = gateways.act(lane, "start", {"warmup": False})
    if gateways.newer and lane == "flash-worker":
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "RUNTIME_AUTHORITY_FORBIDDEN")
    else:
        assert answer.json()["started"] is True
