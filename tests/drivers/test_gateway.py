"""The gateway driver against simulated gateways of both builds, over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.drivers.gateway_http import HttpGateway
from lloom_gitops.model.words import Feature, LaneState, Residency
from lloom_gitops.sim.pool import SimPool
from lloom_gitops.sim.three_spark import HEAD, PAIR, pair_health_url

from .conftest import THIRD, gateway, running

ALL = frozenset(Feature)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPool]:
    with running(tmp_path_factory.mktemp("head"), "newer", HEAD) as pool:
        yield pool


@pytest.fixture(scope="module", params=["newer", "snapshot"])
def running_third(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPool]:
    with running(tmp_path_factory.mktemp("third"), request.param, THIRD) as pool:
        yield pool


@pytest.fixture
def third(running_third: SimPool) -> Iterator[SimPool]:
    """The third Spark of either build, with its lanes as they were made."""
    yield running_third
    running_third.control(THIRD, "set-foreign", gb=0)
    for lane in ("music-03", "video-03"):
        gateway(running_third, THIRD).stop(lane, 30)
    for lane in ("image-03", "spark03-stt"):
        assert gateway(running_third, THIRD).admit(lane, 30).kind == "ok"


def state(driver: HttpGateway, lane: str) -> LaneState:
    reading = driver.read_lane(lane, distributed=False)
    assert reading is not None
    return LaneState(reading.state)


def test_a_newer_build_is_told_by_what_it_shows(third_newer: SimPool) -> None:
    assert gateway(third_newer, THIRD).features() == ALL


def test_a_newer_build_without_lanes_is_told_by_its_routes(head: SimPool) -> None:
    assert gateway(head, HEAD).features() == ALL


def test_an_old_build_can_do_nothing_special(third_snapshot: SimPool) -> None:
    assert gateway(third_snapshot, THIRD).features() == frozenset()


def test_a_lane_is_loaded_read_and_stopped(third: SimPool) -> None:
    driver = gateway(third, THIRD)
    assert state(driver, "music-03") is LaneState.STOPPED
    assert driver.stop("spark03-stt", 30).kind == "ok"
    assert state(driver, "spark03-stt") is LaneState.STOPPED
    assert driver.admission("music-03").kind == "ok"
    assert state(driver, "music-03") is LaneState.STOPPED
    assert driver.admit("music-03", 30).kind == "ok"
    assert state(driver, "music-03") is LaneState.RUNNING
    assert driver.admit("music-03", 30).kind == "ok"
    reading = driver.read_lane("music-03", distributed=False)
    assert reading is not None
    assert (reading.active_requests, reading.residency, reading.latched) == (0, Residency.AUTO, False)


def test_nothing_is_evicted_for_a_load(third: SimPool) -> None:
    third.control(THIRD, "set-foreign", gb=30)
    driver = gateway(third, THIRD)
    got = driver.admit("video-03", 30)
    assert (got.kind, got.code, got.retry) == ("refused", "wouldEvict", "later")
    assert got.body["lanes"] == ["image-03"]
    assert state(driver, "image-03") is LaneState.RUNNING
    assert state(driver, "video-03") is LaneState.STOPPED


def test_what_the_gateway_does_not_know(third: SimPool) -> None:
    driver = gateway(third, THIRD)
    assert (driver.admit("no-such", 10).code, driver.admit("no-such", 10).retry) == ("invalidPlan", "never")
    reading = driver.read_lane("no-such", distributed=False)
    assert reading is not None
    assert (reading.state, reading.residency) == (LaneState.UNKNOWN, None)


def test_a_start_that_fails_may_be_tried_again(third: SimPool) -> None:
    driver = gateway(third, THIRD)
    got = driver.admit("video-03", 30)
    assert (got.kind, got.code, got.retry) == ("refused", "startFailed", "later")
    assert state(driver, "video-03") is LaneState.FAILED


def test_a_gateway_that_is_gone_or_hangs(third_newer: SimPool) -> None:
    third = third_newer
    driver = gateway(third, THIRD)
    third.pause(THIRD)
    got = driver.stop("image-03", 0.3)
    assert (got.kind, got.code) == ("lost", "timeout")
    third.kill(THIRD)
    assert driver.stop("image-03", 5).kind == "unreachable"
    assert driver.admit("music-03", 5).kind == "unreachable"
    assert driver.read_lane("image-03", distributed=False) is None
    assert driver.routing() is None
    assert driver.features() == frozenset()


def test_a_wrong_key_is_refused_for_good(third: SimPool) -> None:
    driver = HttpGateway(third.urls[THIRD], "wrong", SystemClock())
    got = driver.stop("image-03", 5)
    assert (got.kind, got.code, got.retry) == ("refused", "unauthorized", "never")
    assert driver.read_lane("image-03", distributed=False) is None


def test_requests_in_flight_are_counted_where_they_are_served(third: SimPool) -> None:
    third.control(THIRD, "set-active", lane="spark03-tts", count=3)
    reading = gateway(third, THIRD).read_lane("spark03-tts", distributed=False)
    third.control(THIRD, "set-active", lane="spark03-tts", count=0)
    assert reading is not None
    assert reading.active_requests == 3


def test_a_latched_lane_shows_its_evidence(third_newer: SimPool) -> None:
    third_newer.control(THIRD, "latch", lane="image-03", usedGb=110.2, consumedGb=43.1)
    reading = gateway(third_newer, THIRD).read_lane("image-03", distributed=False)
    assert reading is not None
    assert (reading.state, reading.latched) == (LaneState.FAILED, True)
    assert reading.last_error is not None
    assert "110.2" in reading.last_error


def test_an_installation_is_watched_to_its_end(tmp_path: Path) -> None:
    recipes = {"good": {"seconds": 40}, "bad": {"seconds": 40, "fails": "checksum differs"}, "slow": {"seconds": 9999}}
    with running(tmp_path, "newer", THIRD, recipes=recipes) as pool:
        driver = gateway(pool, THIRD)
        assert driver.install("good", 30).kind == "ok"
        got = driver.install("bad", 30)
        assert (got.kind, got.code, got.says) == ("refused", "jobFailed", "checksum differs")
        assert driver.install("no-such", 30).code == "installation_plan_failed"
        assert driver.install("slow", 0.2).kind == "lost"
        assert driver.install("good", 30).retry == "later"


def test_a_fenced_gateway_takes_no_changes(third_newer: SimPool) -> None:
    driver = gateway(third_newer, THIRD)
    body = {"opId": "update", "timeoutMs": 1000}
    assert third_newer.call(THIRD, "POST", "/gateway/deployment-fence/prepare", body).status_code == 200
    for got in (driver.reachable(), driver.stop("image-03", 10), driver.admit("music-03", 10)):
        assert (got.kind, got.code, got.retry) == ("refused", "deployment_fenced", "later")
    assert state(driver, "image-03") is LaneState.RUNNING


def test_residency_over_http_on_newer_builds(third_newer: SimPool) -> None:
    driver = gateway(third_newer, THIRD)
    assert driver.set_residency("music-03", Residency.PREFERRED, 30).kind == "ok"
    reading = driver.read_lane("music-03", distributed=False)
    assert reading is not None
    assert reading.residency is Residency.PREFERRED
    assert driver.set_residency("no-such", Residency.ALWAYS, 30).kind == "refused"


def test_residency_over_http_is_unknown_to_old_builds(third_snapshot: SimPool) -> None:
    got = gateway(third_snapshot, THIRD).set_residency("music-03", Residency.ALWAYS, 30)
    assert (got.kind, got.code, got.retry) == ("refused", "noRoute", "never")


def test_old_builds_install_nothing(third_snapshot: SimPool) -> None:
    got = gateway(third_snapshot, THIRD).install("linux-nvidia-gb10-qwen38-27b-nvfp4-vllm", 30)
    assert (got.kind, got.code) == ("refused", "noRoute")


def test_the_route_in_effect(head: SimPool) -> None:
    routes = gateway(head, HEAD).routing()
    assert routes is not None
    assert routes["cognition"] == ("qwen3.8-flash-next", "spark-node-03/qwen3.8-27b", "cloud/openrouter/q38fn")
    assert head.call(
        HEAD, "POST", "/gateway/routes/cognition/members/qwen3.8-flash-next/suspension", {"suspended": True}
    ).is_success
    suspended = gateway(head, HEAD).routing()
    assert suspended is not None
    assert suspended["cognition"] == ("spark-node-03/qwen3.8-27b", "cloud/openrouter/q38fn")


def test_only_the_owner_is_asked_and_only_it_may(head: SimPool) -> None:
    """The head reaches the third Spark by federation: its lanes are none of the head's."""
    reading = gateway(head, HEAD).read_lane("image-03", distributed=False)
    assert reading is not None
    assert reading.state == LaneState.UNKNOWN


def test_several_threads_may_use_one_driver(third_newer: SimPool) -> None:
    driver = gateway(third_newer, THIRD)
    found: list[LaneState] = []
    threads = [threading.Thread(target=lambda: found.append(state(driver, "image-03"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    driver.close()
    assert found == [LaneState.RUNNING] * 12


def test_a_hand_run_lane_is_read_from_its_health_address(head: SimPool) -> None:
    health = {PAIR: pair_health_url(head.urls)}
    driver = HttpGateway(head.urls[HEAD], head.key, SystemClock(), health_urls=health)
    assert state(driver, PAIR) is LaneState.RUNNING
    head.control(HEAD, "stop-unmanaged", id=PAIR)
    assert state(driver, PAIR) is not LaneState.RUNNING
