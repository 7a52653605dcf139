"""Edits of the head gateway's config file: only our keys, in one step, read back; against running gateways."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.drivers.gateway_config import OWN_PROFILE, GatewayConfigFile
from lloom_gitops.drivers.gateway_config_file import FileFault, read_content, replace_content
from lloom_gitops.model.words import LaneState, Residency
from lloom_gitops.sim.pool import SimPool
from lloom_gitops.sim.three_spark import HEAD

from .conftest import NOBODY, THIRD, gateway, running

LOCAL = "spark-node-03/qwen3.8-27b"
CLOUD = "cloud/openrouter/q38fn"
SECONDS = 10.0


def wait_for(pool: SimPool, routes: dict[str, tuple[str, ...]]) -> None:
    """Until the gateway shows these routes, whatever it did before."""
    driver, clock = gateway(pool, HEAD), SystemClock()
    for _ in range(400):
        shown = driver.routing() or {}
        if all(shown.get(alias) == route for alias, route in routes.items()):
            return
        clock.sleep(0.02)
    raise AssertionError(f"the gateway did not take {', '.join(routes)} over")


@pytest.fixture(scope="module")
def running_head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPool]:
    with running(tmp_path_factory.mktemp("head"), "newer", HEAD) as pool:
        yield pool


@pytest.fixture
def head(running_head: SimPool) -> Iterator[SimPool]:
    """The head with its config as it was made."""
    path = running_head.configs[HEAD]
    original = path.read_bytes()
    routes = dict(gateway(running_head, HEAD).routing() or {})
    yield running_head
    path.write_bytes(original)
    wait_for(running_head, {alias: tuple(route) for alias, route in routes.items()})


def editor(pool: SimPool, node: str = HEAD, seconds: float = SECONDS) -> GatewayConfigFile:
    return GatewayConfigFile(pool.configs[node], gateway(pool, node), SystemClock(), seconds)


def config(pool: SimPool, node: str = HEAD) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(pool.configs[node].read_text())
    return found


def edit(pool: SimPool, alias: str, entry: Any) -> None:
    """What a person or the gateway itself wrote there before, taken over by the gateway."""
    pool.edit(HEAD, {"aliases": {**config(pool)["aliases"], alias: entry}})
    shown = [m for m in entry["members"] if m not in entry.get("suspendedMembers", [])]
    wait_for(pool, {alias: tuple(shown)})


def route(pool: SimPool, alias: str) -> tuple[str, ...]:
    return tuple((gateway(pool, HEAD).routing() or {}).get(alias, ()))


def test_a_route_of_several_members(head: SimPool) -> None:
    path = head.configs[HEAD]
    path.chmod(0o640)
    before = path.read_text()
    assert editor(head).set_route("cognition", [LOCAL, CLOUD]).kind == "ok"
    assert route(head, "cognition") == (LOCAL, CLOUD)
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent).count(path.name) == 1
    assert not [name for name in os.listdir(path.parent) if name.endswith(".new")]
    # All else is as it was, to the letter: key order, two spaces, ${ENV} texts, the line break at the end.
    old = json.loads(before)
    old["aliases"]["cognition"]["members"] = [LOCAL, CLOUD]
    assert path.read_text() == json.dumps(old, indent=2) + "\n"
    assert "${LLOOM_SIM_KEY}" in path.read_text()


def test_people_keep_what_they_wrote_beside_a_route(head: SimPool) -> None:
    edit(head, "cognition", {
        "description": "für alle",
        "advertise": False,
        "members": ["qwen3.8-flash-next", LOCAL, CLOUD],
        "optionalMembers": ["qwen3.8-flash-next", CLOUD],
        "suspendedMembers": [LOCAL],
        "rateLimit": {"maxConcurrent": 4},
    })  # fmt: skip
    assert editor(head).set_route("cognition", [LOCAL, CLOUD]).kind == "ok"
    assert config(head)["aliases"]["cognition"] == {
        "description": "für alle",
        "advertise": False,
        "members": [LOCAL, CLOUD],
        "optionalMembers": [CLOUD],
        "rateLimit": {"maxConcurrent": 4},
    }
    assert "für alle" in head.configs[HEAD].read_text()


def test_a_route_profile_that_says_the_same_is_switched_to(head: SimPool) -> None:
    profiles = {"pair": {"members": ["qwen3.8-flash-next", CLOUD]}, "standalone": {"members": [LOCAL, CLOUD]}}
    entry = {"members": profiles["pair"]["members"], "activeRoute": "pair", "routeProfiles": profiles}
    edit(head, "cognition", entry)
    assert editor(head).set_route("cognition", [LOCAL, CLOUD]).kind == "ok"
    found = config(head)["aliases"]["cognition"]
    assert (found["activeRoute"], found["members"], found["routeProfiles"]) == ("standalone", [LOCAL, CLOUD], profiles)


def test_an_alias_with_other_route_profiles_gets_ours(head: SimPool) -> None:
    profiles = {"pair": {"members": ["qwen3.8-flash-next"]}}
    edit(head, "cognition", {"members": ["qwen3.8-flash-next"], "activeRoute": "pair", "routeProfiles": profiles})
    for members in ([LOCAL, CLOUD], [CLOUD]):
        assert editor(head).set_route("cognition", members).kind == "ok"
        found = config(head)["aliases"]["cognition"]
        assert found["activeRoute"] == OWN_PROFILE
        assert found["routeProfiles"] == {**profiles, OWN_PROFILE: {"members": members}}
        assert route(head, "cognition") == tuple(members)


def test_an_alias_comes_and_goes(head: SimPool) -> None:
    assert editor(head).set_route("fresh", [CLOUD]).kind == "ok"
    assert config(head)["aliases"]["fresh"] == {"members": [CLOUD]}
    assert editor(head).set_route("fresh", []).kind == "ok"
    assert "fresh" not in config(head)["aliases"]


def test_what_the_file_says_already_is_not_written(head: SimPool) -> None:
    before = head.configs[HEAD].stat()
    assert editor(head).set_route("speech", ["spark-node-03/qwen3-tts-1.7b"]).kind == "ok"
    after = head.configs[HEAD].stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_edit_that_the_gateway_dislikes_is_taken_back(head: SimPool) -> None:
    before = head.configs[HEAD].read_bytes()
    got = editor(head, seconds=0.5).set_route("cognition", ["no-such-model"])
    assert (got.kind, got.code) == ("refused", "notTakenOver")
    assert got.says is not None
    assert got.says.endswith("the edit was taken back")
    assert head.configs[HEAD].read_bytes() == before
    assert editor(head).set_route("cognition", [CLOUD]).kind == "ok"


def test_a_newer_edit_of_somebody_else_is_not_taken_back(head: SimPool) -> None:
    path = head.configs[HEAD]
    theirs = dict(config(head), name="theirs")

    class Meanwhile(SystemClock):
        def sleep(self, seconds: float) -> None:
            path.write_text(json.dumps(theirs))
            super().sleep(seconds)

    got = GatewayConfigFile(path, gateway(head, HEAD), Meanwhile(), 0.5).set_route("cognition", ["no-such-model"])
    assert got.says is not None
    assert got.says.endswith("the file has changed again since")
    assert config(head)["name"] == "theirs"


def test_old_builds_get_one_target_and_nothing_they_would_refuse(head_snapshot: SimPool) -> None:
    driver = editor(head_snapshot)
    before = head_snapshot.configs[HEAD].read_bytes()
    got = driver.set_route("cognition", [LOCAL, CLOUD])
    assert (got.kind, got.code, got.retry) == ("refused", "oneTarget", "never")
    assert head_snapshot.configs[HEAD].read_bytes() == before
    assert driver.set_route("cognition", [LOCAL]).kind == "ok"
    assert config(head_snapshot)["aliases"]["cognition"] == {"target": LOCAL}
    assert driver.set_route("fresh", [CLOUD]).kind == "ok"
    assert config(head_snapshot)["aliases"]["fresh"] == CLOUD
    assert route(head_snapshot, "fresh") == (CLOUD,)
    assert driver.set_route("fresh", []).kind == "ok"
    assert route(head_snapshot, "fresh") == ()


def test_residency_goes_over_http_where_the_build_can(third_newer: SimPool) -> None:
    driver = editor(third_newer, THIRD)
    for residency in (Residency.PREFERRED, Residency.ALWAYS, Residency.AUTO):
        assert driver.set_residency("spark03-stt", residency).kind == "ok"
        reading = gateway(third_newer, THIRD).read_lane("spark03-stt", distributed=False)
        assert reading is not None
        assert reading.residency is residency


def test_residency_goes_into_the_file_on_old_builds(third_snapshot: SimPool) -> None:
    driver = editor(third_snapshot, THIRD)
    for residency, flag in ((Residency.ALWAYS, True), (Residency.AUTO, False)):
        assert driver.set_residency("music-03", residency).kind == "ok"
        assert config(third_snapshot, THIRD)["runtimes"]["music-03"]["keepWarm"] is flag
        reading = gateway(third_snapshot, THIRD).read_lane("music-03", distributed=False)
        assert reading is not None
        assert reading.residency is residency
    assert driver.set_residency("video-03", Residency.AUTO).kind == "ok"
    assert "keepWarm" not in config(third_snapshot, THIRD)["runtimes"]["video-03"]
    assert driver.set_residency("music-03", Residency.PREFERRED).code == "noPreferred"
    assert driver.set_residency("no-such", Residency.ALWAYS).code == "laneMissing"


def test_nothing_is_written_for_a_gateway_that_does_not_answer(doomed: SimPool) -> None:
    head = doomed
    before = head.configs[HEAD].read_bytes()
    head.kill(HEAD)
    assert editor(head).set_route("cognition", [CLOUD]).kind == "unreachable"
    assert editor(head).set_residency("any", Residency.AUTO).kind == "unreachable"
    assert head.configs[HEAD].read_bytes() == before


def test_a_gateway_that_dies_meanwhile_leaves_the_edit(doomed: SimPool) -> None:
    head = doomed
    driver = gateway(head, HEAD)
    file = GatewayConfigFile(head.configs[HEAD], driver, SystemClock(), 0.5)
    answers = driver.routing
    calls: list[int] = []

    def routing() -> Any:
        calls.append(1)
        if len(calls) == 1:
            head.kill(HEAD)
        return answers()

    driver.routing = routing  # type: ignore[method-assign]
    got = file.set_route("cognition", [CLOUD])
    assert (got.kind, got.code) == ("lost", "timeout")
    assert config(head)["aliases"]["cognition"]["members"] == [CLOUD]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gateway.json").write_text('{"aliases": {}}')
    return tmp_path


BROKEN = {
    "no JSON": (b"{", "configInvalid"),
    "no object": (b"[]", "configInvalid"),
    "no JSON number": (b'{"aliases": {}, "x": NaN}', "configInvalid"),
    "no Unicode": (b'{"aliases": {}, "x": "\\ud800"}', "configInvalid"),
    "a key twice": (b'{"aliases": {"a": "x", "a": "y"}}', "configInvalid"),
    "aliases are no object": (b'{"aliases": []}', "configInvalid"),
}


@pytest.mark.parametrize(("content", "code"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_stays_as_it_is(head: SimPool, content: bytes, code: str) -> None:
    head.configs[HEAD].write_bytes(content)
    got = editor(head).set_route("cognition", [CLOUD])
    assert (got.kind, got.code, got.retry) == ("refused", code, "never")
    assert head.configs[HEAD].read_bytes() == content


def test_links_and_other_things_are_no_config_files(folder: Path) -> None:
    (folder / "link.json").symlink_to(folder / "gateway.json")
    os.mkfifo(folder / "pipe.json")
    for name, code in {
        "link.json": "configSymlink",
        "pipe.json": "configUnreadable",
        "none.json": "configMissing",
    }.items():
        with pytest.raises(FileFault) as fault:
            read_content(folder / name)
        assert fault.value.code == code


def test_a_file_that_changed_is_not_overwritten(folder: Path) -> None:
    path = folder / "gateway.json"
    before = read_content(path)
    path.write_text('{"aliases": {"theirs": "x"}}')
    with pytest.raises(FileFault) as fault:
        replace_content(path, before, b"{}")
    assert fault.value.code == "configChanged"
    assert path.read_text() == '{"aliases": {"theirs": "x"}}'
    assert os.listdir(folder) == ["gateway.json"]


def test_readers_see_the_old_or_the_new_file(folder: Path) -> None:
    path = folder / "gateway.json"
    documents = [json.dumps({"n": n, "pad": "x" * 200_000}).encode() for n in range(40)]
    path.write_bytes(documents[0])
    done = threading.Event()
    torn: list[bytes] = []

    def read() -> None:
        while not done.is_set():
            data = path.read_bytes()
            if data not in documents:
                torn.append(data[:40])

    reader = threading.Thread(target=read)
    reader.start()
    for document in documents[1:]:
        replace_content(path, read_content(path), document)
    done.set()
    reader.join()
    assert not torn


def test_a_read_only_folder_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> tuple[int, str]:
        raise PermissionError(13, "no")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(FileFault) as fault:
        replace_content(folder / "gateway.json", read_content(folder / "gateway.json"), b"{}")
    assert fault.value.code == "configUnwritable"


def test_lanes_of_the_head_stay_up_through_a_route_change(third_newer: SimPool) -> None:
    """A change of aliases restarts nothing."""
    assert editor(third_newer, THIRD).set_route("hear", ["whisper-large-v3-turbo"]).kind == "ok"
    reading = gateway(third_newer, THIRD).read_lane("spark03-stt", distributed=False)
    assert reading is not None
    assert reading.state == LaneState.RUNNING
    assert NOBODY not in repr(reading)
